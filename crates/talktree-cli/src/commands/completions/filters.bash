
# The filters of a query, such as `role:user`, and their values.
_talktree_filters() {
    local line=${COMP_LINE:0:COMP_POINT}
    (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 403 )) && _talktree_line_by_bytes
    local word=${line##*[[:space:]]}
    local before=${line%"$word"}
    local quotes=${line//[^\"\']/}
    before=${before%"${before##*[![:space:]]}"}
    local previous=${before##*[[:space:]]}
    COMPREPLY=()
    if [[ " $before " == *" search "* && -n $word && $word != -* ]] && (( ${#quotes} % 2 == 0 )) &&
        [[ $previous != --* || $previous == -- || $previous == --sessions || $previous == --group || $previous == --json ]]; then
        local IFS=$'\n'
        COMPREPLY=($(talktree completions --query "$word" 2>/dev/null))
        # The function of clap divides its lists at blanks.
        IFS=$' \t\n'
    fi
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        _talktree "$@"
        return
    fi
    # A filter without its value is not complete.
    [[ ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
    # Bash completes what follows the last colon.
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local start=${word%"${word##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$start"}")
    fi
}

# Before version 4.3 bash counts bytes up to the cursor, not characters.
_talktree_line_by_bytes() {
    local LC_ALL=C
    line=${COMP_LINE:0:COMP_POINT}
}

complete -F _talktree_filters -o bashdefault -o default talktree
