//! Words of a query that look like options: `talktree search -coffee`.
//!
//! The parser of arguments reads `-coffee` as the options `-c`, `-o`, `-f`, and `-hotel` as `-h`. Such a word may also be a
//! mistyped option, so it is not searched for: the command says what to type.

use std::ffi::{OsStr, OsString};

use clap::Parser;

use super::again::Again;
use crate::cli::Cli;
use crate::commands::Command;
use crate::failure::Failure;
use crate::suggestion;
use crate::text::quoted;

/// Stands for a minus while the arguments are parsed. No argument of a process has this character.
const MARK: &str = "\0";

/// Returns the error for words of a query that begin with one minus; `None` if there are none.
pub(crate) fn mistaken_for_options(arguments: &[OsString]) -> Option<Failure> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let mut marked = arguments.to_vec();
    let mut count = 0;
    for word in &mut marked[..end] {
        if let Some(with_mark) = with_mark(word) {
            *word = with_mark.into();
            count += 1;
        }
    }
    if count == 0 {
        return None;
    }
    let cli = Cli::try_parse_from(marked).ok()?;
    suggestion::set_store(cli.store.as_deref());
    let Command::Search(mut args) = cli.command else { return None };
    let mut words = Vec::new();
    for word in args.query.iter_mut().filter(|word| word.starts_with(MARK)) {
        word.replace_range(..MARK.len(), "-");
        words.push(quoted(word));
    }
    // The others are values of options: a mistake of another kind.
    if words.len() < count {
        return None;
    }
    let line = Again::as_given(&args, cli.json).line();
    let word = words.first()?;
    Some(Failure::Usage(format!(
        "{word} is not an option; if it is part of the query, type: {line}"
    )))
}

/// Returns the argument with a mark for its minus, if it has one and is not the option `-h`.
fn with_mark(argument: &OsStr) -> Option<String> {
    let rest = argument.to_str()?.strip_prefix('-')?;
    (!rest.is_empty() && rest != "h" && !rest.starts_with('-')).then(|| format!("{MARK}{rest}"))
}
