//! `talktree completions`: scripts for shells. Those of bash, fish and zsh also complete the filters of a query.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;
use talktree::{SessionFilter, SessionInfo, Store};

use crate::cli::Cli;
use crate::output::Exact;
use crate::prelude::*;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree completions [OPTIONS] <SHELL>")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(required_unless_present = "query")]
    shell: Option<Shell>,

    /// Print the completions of this word of a query; the scripts use it.
    #[arg(long, value_name = "WORD", hide = true, conflicts_with = "shell")]
    query: Option<String>,
}

const BASH: &str = include_str!("completions/filters.bash");
const FISH: &str = include_str!("completions/filters.fish");
const ZSH: &str = include_str!("completions/filters.zsh");

/// What clap's script for zsh calls to complete the query, and what it should call.
const ZSH_QUERY: (&str, &str) = (
    "query -- The words to find, and filters:_default",
    "query -- The words to find, and filters:_talktree_query",
);

/// How the part of clap's script for zsh begins that calls its functions.
const ZSH_CALL: &str = "if [ \"$funcstack[1]\" =";

pub(crate) fn run(args: CompletionsArgs, context: &mut Context) -> Result<()> {
    let Some(shell) = args.shell else {
        let word = args.query.unwrap_or_default();
        let found = candidates(&word, context);
        return Ok(found.iter().try_for_each(|word| put!(context.out; PLAIN word))?);
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "talktree", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script += BASH,
        Shell::Fish => script += FISH,
        Shell::Zsh => {
            // Before the part that may call the functions.
            let defined = format!("{ZSH}\n{ZSH_CALL}");
            script = script.replace(ZSH_QUERY.0, ZSH_QUERY.1).replacen(ZSH_CALL, &defined, 1);
        }
        _ => {}
    }
    Ok(Exact::new(&mut context.out, false).write_all(script.as_bytes())?)
}

/// The filters, with the values that need no store.
const FILTERS: &[(&str, &[&str])] = &[
    ("role:", &["user", "assistant", "system", "tool"]),
    ("session:", &[]),
    ("after:", DATES),
    ("before:", DATES),
    ("in:", &["text", "tools", "all"]),
];

const DATES: &[&str] = &["today", "yesterday", "7d", "2w", "3mo", "1y"];

/// How many sessions are proposed.
const MAX_SESSIONS: usize = 50;
/// How many sessions are looked through: those with the newest messages.
const MAX_READ: usize = 10_000;

/// Returns the completions of a word, as whole words. Without a readable store no session is proposed.
pub(crate) fn candidates(word: &str, context: &Context) -> Vec<String> {
    let Some((name, value)) = word.split_once(':') else {
        let names = FILTERS.iter().map(|(name, _)| *name);
        return names.filter(|name| name.starts_with(word)).map(str::to_owned).collect();
    };
    if name == "session" {
        let store = context.reader().ok();
        return store.map_or(Vec::new(), |store| sessions(&store, value));
    }
    let of_name = |filter: &&(&str, &[&str])| filter.0.strip_suffix(':') == Some(name);
    let values = FILTERS.iter().find(of_name).map_or(&[][..], |filter| filter.1);
    let fitting = values.iter().filter(|known| known.starts_with(value));
    fitting.map(|known| format!("{name}:{known}")).collect()
}

/// Returns the sessions whose id, or a word of whose name, starts with this text.
fn sessions(store: &Store, start: &str) -> Vec<String> {
    let all = lookup::listed(store, &SessionFilter::default(), MAX_READ).unwrap_or_default();
    let lower = start.to_lowercase();
    let fits = |info: &SessionInfo| {
        let name = info.name.as_deref().unwrap_or_default().to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        info.id.as_str().starts_with(start) || words.any(|word| word.starts_with(&lower))
    };
    all.iter()
        .map(|listed| &listed.info)
        // Another id would need quotes in a shell.
        .filter(|info| fits(info) && quote(info.id.as_str()) == info.id.as_str())
        .take(MAX_SESSIONS)
        .map(|info| format!("session:{}", info.id))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_zsh_completes_a_query_by_its_own_function() {
        let mut script = Vec::new();
        clap_complete::generate(Shell::Zsh, &mut Cli::command(), "talktree", &mut script);
        let script = String::from_utf8_lossy(&script);
        for part in [ZSH_QUERY.0, ZSH_CALL] {
            assert_eq!(script.matches(part).count(), 1, "{part}");
        }
    }
}
