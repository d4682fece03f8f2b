//! A search as a command line: to be given again, and as it was given.

use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;

use super::{Column, SearchArgs};
use crate::cli::Cli;
use crate::commands::Command;
use crate::prelude::*;
use crate::suggestion;

/// Which results a search prints.
pub(super) enum Page {
    /// The page with this number, from 1 on.
    Nth(usize),
    /// Those after this many results.
    After(usize),
}

impl Page {
    /// Returns the next page of a search: by number, or by offset if the search has one.
    pub(super) fn after(args: &SearchArgs) -> Self {
        match args.offset {
            0 => Self::Nth(args.page.saturating_add(1)),
            offset => Self::After(offset.saturating_add(args.limit)),
        }
    }
}

/// A search, to be written as a command line.
pub(super) struct Again<'a> {
    args: &'a SearchArgs,
    session: Option<&'a str>,
    column: Option<Column>,
    is_grouped: bool,
    is_json: bool,
    page: Page,
}

impl<'a> Again<'a> {
    /// Returns the first page of a search.
    pub(super) fn of(args: &'a SearchArgs) -> Self {
        let (session, column) = (args.session.as_deref(), args.column);
        Self { args, session, column, is_grouped: args.group, is_json: false, page: Page::Nth(1) }
    }

    /// Returns the search as it was given.
    pub(super) fn as_given(args: &'a SearchArgs, is_json: bool) -> Self {
        let page = match args.offset {
            0 => Page::Nth(args.page),
            offset => Page::After(offset),
        };
        Self { is_json, page, ..Self::of(args) }
    }

    /// Returns another page of it.
    pub(super) fn on(self, page: Page) -> Self {
        Self { page, ..self }
    }

    /// Returns the search of the messages of one session.
    pub(super) fn within(self, session: &'a str) -> Self {
        Self { session: Some(session), is_grouped: false, ..self }
    }

    /// Returns the command line, ready to be copied.
    pub(super) fn line(&self) -> String {
        let args = self.args;
        let mut line = command("search");
        let mut add = |name: &str, value: &str| {
            line += &format!(" {}", option(name, value));
        };
        let options = [("session", self.session), ("branch", args.branch.as_deref())];
        let dates = [("after", args.after.as_deref()), ("before", args.before.as_deref())];
        for (name, value) in options {
            value.into_iter().for_each(|value| add(name, value));
        }
        args.role.iter().for_each(|role| add("role", role));
        args.author.iter().for_each(|author| add("author", author));
        args.tag.iter().for_each(|tag| add("tag", tag));
        for (name, value) in dates {
            value.into_iter().for_each(|value| add(name, value));
        }
        match self.column {
            None => {}
            Some(Column::Text) => add("in", "text"),
            Some(Column::Tools) => add("in", "tools"),
            Some(Column::All) => add("in", "all"),
        }
        if let Some(timeout) = args.timeout.filter(|timeout| *timeout != Duration::from_secs(10)) {
            add("timeout", &timeout.as_secs_f64().to_string());
        }
        if args.limit != 20 {
            add("limit", &args.limit.to_string());
        }
        match self.page {
            Page::Nth(1) => {}
            Page::Nth(number) => add("page", &number.to_string()),
            Page::After(count) => add("offset", &count.to_string()),
        }
        if self.is_grouped {
            line += " --group";
        }
        if args.sessions {
            line += " --sessions";
        }
        if self.is_json {
            line += " --json";
        }
        if args.query.iter().any(|word| word.starts_with('-')) {
            line += " --";
        }
        args.query.iter().for_each(|word| line += &format!(" {}", quote(word)));
        line
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
