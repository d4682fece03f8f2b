//! A search as a command line: to be given again, and as it was given.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::SearchArgs;
use crate::cli::Cli;
use crate::commands::Command;
use crate::prelude::*;
use crate::suggestion;

impl SearchArgs {
    /// Returns the search for the next page: by number, or by offset if the search has one.
    pub(super) fn next_page(&self) -> Self {
        match self.offset {
            0 => Self { page: self.page.saturating_add(1), ..self.clone() },
            offset => Self { offset: offset.saturating_add(self.limit), ..self.clone() },
        }
    }

    /// Returns the search of the messages of one session.
    pub(super) fn within(&self, session: &str) -> Self {
        let session = Some(session.to_owned());
        Self { session, group: false, page: 1, offset: 0, ..self.clone() }
    }

    /// Returns the command line, ready to be copied.
    pub(super) fn line(&self, is_json: bool) -> String {
        let mut words = vec!["search".to_owned()];
        let mut add = |name: &str, values: &[String]| {
            words.extend(values.iter().map(|value| option(name, value)));
        };
        let unless = |value: usize, default: usize| {
            (value != default).then(|| value.to_string()).into_iter().collect::<Vec<_>>()
        };
        add("session", self.session.as_slice());
        add("branch", self.branch.as_slice());
        add("owner", self.owner.as_slice());
        add("role", &self.role);
        add("author", self.author.as_slice());
        add("tag", &self.tag);
        add("after", self.after.as_slice());
        add("before", self.before.as_slice());
        let column = self.column.and_then(|column| column.to_possible_value());
        add("in", column.map(|column| column.get_name().to_owned()).as_slice());
        let timeout = self.timeout.filter(|timeout| *timeout != Duration::from_secs(10));
        add("timeout", timeout.map(|timeout| timeout.as_secs_f64().to_string()).as_slice());
        add("limit", &unless(self.limit, 20));
        add("page", &unless(self.page, 1));
        add("offset", &unless(self.offset, 0));
        let has_minus = self.query.iter().any(|word| word.starts_with('-'));
        words.push(given(&[
            (self.group, "--group"),
            (self.sessions, "--sessions"),
            (is_json, "--json"),
            (has_minus, "--"),
        ]));
        words.extend(self.query.iter().map(|word| quote(word)));
        words.retain(|word| !word.is_empty());
        command(&words.join(" "))
    }
}

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
    let (word, line) = (quoted(word), args.line(json));
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
