//! `talktree completions`: completion scripts for shells.
//!
//! The scripts of clap complete commands and options. For bash, fish and zsh a part is added that completes the filters of a
//! query: it gets the completions of a word from this command, by a hidden option.

mod filters;

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::Result;
use crate::output::Exact;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree completions [OPTIONS] <SHELL>")]
pub(crate) struct Args {
    /// The shell.
    #[arg(required_unless_present = "query")]
    shell: Option<Shell>,

    /// Print the completions of this word of a query; the scripts use it.
    #[arg(long, value_name = "WORD", hide = true, conflicts_with = "shell")]
    query: Option<String>,
}

const BASH: &str = include_str!("filters.bash");
const FISH: &str = include_str!("filters.fish");
const ZSH: &str = include_str!("filters.zsh");

/// What clap's script for zsh calls to complete the query, and what it should call.
const ZSH_QUERY: (&str, &str) = (
    "query -- The words to find, and filters:_default",
    "query -- The words to find, and filters:_talktree_query",
);

/// How the part of clap's script for zsh begins that calls its functions.
const ZSH_CALL: &str = "if [ \"$funcstack[1]\" =";

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let Some(shell) = args.shell else {
        let word = args.query.unwrap_or_default();
        return Ok(filters::candidates(&word, context)
            .iter()
            .try_for_each(|candidate| context.out.line(&[(crate::style::PLAIN, candidate)]))?);
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
