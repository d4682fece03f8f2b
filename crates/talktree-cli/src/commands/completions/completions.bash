# Completes by what the command prints for the words before the cursor.
_talktree() {
    local at last=-1 word start
    local -a words=()
    # Bash divides words at colons.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]//[\\\"\']/}
        if ((last > 0)) && [[ $word == :* || ${words[last]} == *: ]]; then
            words[last]+=$word
        else
            words[++last]=$word
        fi
    done
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(VARIABLE=bash talktree -- "${words[@]}" 2>/dev/null)
    # A filter without its value is not complete.
    [[ ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
    # Blanks in a name get a backslash.
    [[ ${COMPREPLY[*]} == *[[:space:]]* ]] && compopt -o filenames 2>/dev/null
    # Bash completes what follows the last colon.
    if [[ ${words[last]} == *:* && $COMP_WORDBREAKS == *:* ]]; then
        start=${words[last]%"${words[last]##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$start"}")
    fi
}

complete -F _talktree -o bashdefault -o default talktree
