
# The filters of a query, such as `role:user`, and their values.
_talktree_query() {
    local -a found
    found=(${(f)"$(talktree completions --query "$PREFIX" 2>/dev/null)"})
    (( $#found )) && compadd -U -Q -S '' -- $found
}
