//! Cutting what people type into words, quoted phrases and filters.

use crate::search::token::is_blank;

const FILTERS: [(&str, Filter); 5] = [
    ("role:", Filter::Role),
    ("session:", Filter::Session),
    ("after:", Filter::After),
    ("before:", Filter::Before),
    ("in:", Filter::In),
];

/// What a filter narrows by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Role,
    Session,
    After,
    Before,
    In,
}

impl Filter {
    /// Returns what its value should have been, for a notice.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Filter::Role => "the name of a role",
            Filter::Session => "the id of a session",
            Filter::After | Filter::Before => {
                "a UTC day like 2026-01-31 or an instant like 2026-01-31T12:00:00Z"
            }
            Filter::In => "in:text, in:tools or in:all",
        }
    }
}

/// One thing between blanks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) kind: Kind<'a>,
    /// Whether a minus stands before it.
    pub(crate) is_excluded: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// What stands between quotes, and whether a star follows.
    Phrase { text: &'a str, has_star: bool },
    /// A filter, its value, and both as they are written.
    Filter { filter: Filter, value: &'a str, written: &'a str },
    /// Anything else up to the next blank.
    Word(&'a str),
}

/// Returns the items of `text`, left to right. Quotes without an end reach to the end of the text.
pub(crate) fn items(text: &str) -> impl Iterator<Item = Item<'_>> {
    Lexer { rest: text }
}

struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.rest = self.rest.trim_start_matches(is_blank);
        // Two minuses are no negation but an option of some command: `--release`.
        let is_excluded = self
            .rest
            .strip_prefix('-')
            .is_some_and(|rest| !rest.starts_with(|c| c == '-' || is_blank(c)));
        if is_excluded {
            self.rest = &self.rest[1..];
        }
        let start = self.rest;
        if start.is_empty() {
            return None;
        }
        let kind = if start.starts_with(is_quote) {
            let text = self.quoted();
            let after = self.rest.trim_start_matches('*');
            let has_star = after.len() < self.rest.len();
            self.rest = after;
            Kind::Phrase { text, has_star }
        } else if let Some((filter, key_len)) = filter_at(start) {
            self.rest = &start[key_len..];
            let value = if self.rest.starts_with(is_quote) { self.quoted() } else { self.word() };
            Kind::Filter { filter, value, written: &start[..start.len() - self.rest.len()] }
        } else {
            Kind::Word(self.word())
        };
        Some(Item { kind, is_excluded })
    }
}

impl<'a> Lexer<'a> {
    /// Reads up to the next blank.
    fn word(&mut self) -> &'a str {
        let (word, rest) = self.rest.split_at(self.rest.find(is_blank).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Reads what stands between the quote here and the next one, or the end.
    fn quoted(&mut self) -> &'a str {
        let mut chars = self.rest.chars();
        chars.next();
        let body = chars.as_str();
        match body.split_once(is_quote) {
            Some((text, rest)) => {
                self.rest = rest;
                text
            }
            None => {
                self.rest = "";
                body
            }
        }
    }
}

/// Returns the filter `text` starts with, and the length of its name with the colon.
fn filter_at(text: &str) -> Option<(Filter, usize)> {
    let is_here =
        |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    FILTERS.into_iter().find(|(name, _)| is_here(name)).map(|(name, filter)| (filter, name.len()))
}

/// Telephones type curly quotes.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '＂')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        items(text).map(|item| item.kind).collect()
    }

    #[test]
    fn a_quote_opens_a_phrase_only_where_a_word_starts() {
        let phrase = |text, has_star| Kind::Phrase { text, has_star };
        assert_eq!(
            kinds("\"a b\"* 5\" x\"y \"c"),
            [phrase("a b", true), Kind::Word("5\""), Kind::Word("x\"y"), phrase("c", false)]
        );
        assert_eq!(kinds("\"\"a”b"), [phrase("", false), Kind::Word("a”b")]);
    }

    #[test]
    fn a_filter_keeps_how_it_was_written() {
        let filter = Filter::Session;
        let written = "Session:\"a b\"";
        assert_eq!(
            kinds("Session:\"a b\"c"),
            [Kind::Filter { filter, value: "a b", written }, Kind::Word("c")]
        );
        assert_eq!(kinds("xrole:a rolé:b"), [Kind::Word("xrole:a"), Kind::Word("rolé:b")]);
    }

    #[test]
    fn one_minus_excludes_two_do_not() {
        let flags: Vec<_> = items("-a --b - -\"c\" -- d-e").map(|item| item.is_excluded).collect();
        assert_eq!(flags, [true, false, false, true, false, false]);
    }
}
