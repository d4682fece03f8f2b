
# The filters of a query, such as `role:user`, and their values.
complete -c talktree -n "__fish_seen_subcommand_from search" -f -a "(talktree completions --query (commandline -ct) 2>/dev/null)"
