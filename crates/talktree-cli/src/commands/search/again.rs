//! The command line that repeats a search, for another page or for one session.

use std::time::Duration;

use super::{Args, Column};
use crate::shell::quote;
use crate::suggestion::{command, option};

/// Which results a search prints.
pub(super) enum Page {
    /// The page with this number, from 1 on.
    Nth(usize),
    /// Those after this many results.
    After(usize),
}

impl Page {
    /// Returns the next page of a search: by number, or by offset if the search has one.
    pub(super) fn after(args: &Args) -> Self {
        match args.offset {
            0 => Self::Nth(args.page.saturating_add(1)),
            offset => Self::After(offset.saturating_add(args.limit)),
        }
    }
}

/// A search, to be written as a command line.
pub(super) struct Again<'a> {
    args: &'a Args,
    session: Option<&'a str>,
    column: Option<Column>,
    is_grouped: bool,
    is_json: bool,
    page: Page,
}

impl<'a> Again<'a> {
    /// Returns the first page of a search.
    pub(super) fn of(args: &'a Args) -> Self {
        let (session, column) = (args.session.as_deref(), args.column);
        Self { args, session, column, is_grouped: args.group, is_json: false, page: Page::Nth(1) }
    }

    /// Returns the search as it was given.
    pub(super) fn as_given(args: &'a Args, is_json: bool) -> Self {
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
