//! Splits the text of a query into words, quoted phrases and filters.

use crate::chars::is_space_or_control;
use crate::date;

/// The filters, with the expected form of the value of each, for a notice.
const FILTERS: [(&str, Filter, &str); 8] = [
    ("role:", Filter::Role, "the name of a role"),
    ("session:", Filter::Session, "the id of a session"),
    ("author:", Filter::Author, "the id of an author"),
    ("tag:", Filter::Tag, "a tag of messages"),
    ("after:", Filter::After, date::EXPECTED),
    ("before:", Filter::Before, date::EXPECTED),
    ("in:", Filter::In, "in:text, in:tools or in:all"),
    ("exact:", Filter::Exact, "exact:\"characters\""),
];

/// The name of a filter in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// `role:`
    Role,
    /// `session:`
    Session,
    /// `author:`
    Author,
    /// `tag:`
    Tag,
    /// `after:`
    After,
    /// `before:`
    Before,
    /// `in:`
    In,
    /// `exact:`
    Exact,
}

impl Filter {
    /// Returns the expected form of its value, for a notice.
    pub(crate) fn expected(self) -> &'static str {
        FILTERS.iter().find(|(_, filter, _)| *filter == self).map_or("", |(.., expected)| expected)
    }
}

/// A word, phrase or filter of the query text.
#[derive(Debug, PartialEq, Eq)]
pub struct Lexeme<'a> {
    /// What it is.
    pub kind: LexemeKind<'a>,
    /// Its source text, with the minus.
    pub written: &'a str,
    /// Whether it has a leading minus that excludes it.
    pub is_excluded: bool,
    /// Whether it has a leading minus before one or two letters or digits: `-s` is an option of a command.
    pub is_flag: bool,
}

/// What a part of a query is.
#[derive(Debug, PartialEq, Eq)]
pub enum LexemeKind<'a> {
    /// A quoted text, and whether a star follows it.
    Phrase {
        /// The text between the quotes.
        text: &'a str,
        /// Whether a star follows.
        has_star: bool,
    },
    /// A filter and its value.
    Filter {
        /// Its name.
        filter: Filter,
        /// Its value.
        value: &'a str,
    },
    /// Any other text up to the next blank.
    Word(&'a str),
}

/// Returns the lexemes of `text` in order. An unclosed quote extends to the end of the text.
pub fn lex(text: &str) -> impl Iterator<Item = Lexeme<'_>> {
    Lexer { rest: text }
}

struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Lexeme<'a>;

    fn next(&mut self) -> Option<Lexeme<'a>> {
        self.rest = self.rest.trim_start_matches(is_space_or_control);
        let whole = self.rest;
        // Two minus signs do not negate: `--release` is a command-line option.
        let has_minus = self
            .rest
            .strip_prefix('-')
            .is_some_and(|rest| !rest.starts_with(|c| c == '-' || is_space_or_control(c)));
        if has_minus {
            self.rest = &self.rest[1..];
        }
        let is_flag = has_minus && is_short_option(self.rest);
        let is_excluded = has_minus && !is_flag;
        let start = self.rest;
        if start.is_empty() {
            return None;
        }
        let kind = if start.starts_with(is_quote) {
            let text = self.quoted();
            let after = self.rest.trim_start_matches('*');
            let has_star = after.len() < self.rest.len();
            self.rest = after;
            LexemeKind::Phrase { text, has_star }
        } else if let Some((filter, key_len)) = filter_at(start) {
            self.rest = &start[key_len..];
            let value = if self.rest.starts_with(is_quote) { self.quoted() } else { self.word() };
            LexemeKind::Filter { filter, value }
        } else {
            LexemeKind::Word(self.word())
        };
        let written = &whole[..whole.len() - self.rest.len()];
        Some(Lexeme { kind, written, is_excluded, is_flag })
    }
}

impl<'a> Lexer<'a> {
    /// Consumes the text up to the next blank.
    fn word(&mut self) -> &'a str {
        let (word, rest) =
            self.rest.split_at(self.rest.find(is_space_or_control).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Consumes a quoted text; without a closing quote, up to the end.
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

/// Returns the filter at the start of `text`, and the length of its name with the colon.
fn filter_at(text: &str) -> Option<(Filter, usize)> {
    let is_here =
        |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    FILTERS.iter().find(|(name, ..)| is_here(name)).map(|(name, filter, _)| (*filter, name.len()))
}

/// Returns whether the word at the start of `text` has only one or two letters or digits of ASCII.
fn is_short_option(text: &str) -> bool {
    let word = text.split(is_space_or_control).next().unwrap_or_default();
    (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Includes curly quotes: phones type them.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '＂')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<LexemeKind<'_>> {
        lex(text).map(|lexeme| lexeme.kind).collect()
    }

    #[test]
    fn a_quote_opens_a_phrase_only_at_the_start_of_a_word() {
        let phrase = |text, has_star| LexemeKind::Phrase { text, has_star };
        assert_eq!(
            kinds("\"a b\"* 5\" x\"y \"c"),
            [
                phrase("a b", true),
                LexemeKind::Word("5\""),
                LexemeKind::Word("x\"y"),
                phrase("c", false)
            ]
        );
        assert_eq!(kinds("\"\"a”b"), [phrase("", false), LexemeKind::Word("a”b")]);
    }

    #[test]
    fn a_filter_keeps_its_source_text() {
        let filter = Filter::Session;
        assert_eq!(
            kinds("Session:\"a b\"c"),
            [LexemeKind::Filter { filter, value: "a b" }, LexemeKind::Word("c")]
        );
        assert_eq!(
            kinds("xrole:a rolé:b"),
            [LexemeKind::Word("xrole:a"), LexemeKind::Word("rolé:b")]
        );
    }

    #[test]
    fn one_minus_excludes_but_two_do_not() {
        let signs: String = lex("-red --b - -\"c\" -- d-e -la -s -c* -C++ -重 -x=1")
            .map(|lexeme| match (lexeme.is_excluded, lexeme.is_flag) {
                (true, _) => '-',
                (_, true) => 'f',
                _ => '.',
            })
            .collect();
        assert_eq!(signs, "-..-..ff----");
    }
}
