//! Words of a query that begin with a minus: `talktree search -coffee`.
//!
//! The parser of arguments reads `-coffee` as the options `-c`, `-o`, `-f`, and `-hotel` as `-h`. Such a word may also be a
//! mistyped option, so it is not searched for: the command says what to type. No option has a blank in it, so
//! `talktree search '-coffee milk'` is a query.

use std::ffi::OsString;

use clap::Parser;

use super::again::Again;
use crate::cli::Cli;
use crate::commands::Command;
use crate::failure::{Failure, Result};
use crate::suggestion;
use crate::text::quoted;

/// Put before a minus, so that the parser takes the word for a part of the query. No argument of a process has this character.
const MARK: &str = "\0";

/// Returns the arguments of the process as the parser should read them: with a blank before each minus that begins a query.
///
/// # Errors
/// [`Failure::Usage`] if a word of a query looks like an option.
pub(crate) fn with_queries(given: Vec<OsString>) -> Result<Vec<OsString>> {
    let (marked, count) = with_prefix(&given, MARK);
    let Some(Cli { command: Command::Search(mut args), store, json, .. }) =
        (count > 0).then(|| Cli::try_parse_from(marked).ok()).flatten()
    else {
        return Ok(given);
    };
    let mut words: Vec<String> = Vec::new();
    for word in args.query.iter_mut().filter(|word| word.starts_with(MARK)) {
        word.replace_range(..MARK.len(), "");
        words.push(word.clone());
    }
    // The others are values of options: a mistake of another kind.
    if words.len() < count {
        return Ok(given);
    }
    let Some(word) = words.iter().find(|word| !word.contains(char::is_whitespace)) else {
        return Ok(with_prefix(&given, " ").0);
    };
    suggestion::set_store(store.as_deref());
    let (word, line) = (quoted(word), Again::as_given(&args, json).line());
    Err(Failure::Usage(format!(
        "{word} is not an option; if it is part of the query, type: {line}"
    )))
}

/// Returns the arguments with a prefix before each that begins with one minus and is not the option `-h`, and how many
/// these are. After `--` there are none.
fn with_prefix(given: &[OsString], prefix: &str) -> (Vec<OsString>, usize) {
    let end = given.iter().position(|word| word == "--").unwrap_or(given.len());
    let mut count = 0;
    let changed = given.iter().enumerate().map(|(place, word)| match word.to_str() {
        Some(text) if place < end && looks_like_an_option(text) => {
            count += 1;
            format!("{prefix}{text}").into()
        }
        _ => word.clone(),
    });
    (changed.collect(), count)
}

fn looks_like_an_option(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest != "h" && !rest.starts_with('-'))
}
