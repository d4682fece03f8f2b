//! Parses the text of a query into a [`Query`]. One pass, left to right; nothing is an error.
//!
//! Invariant: the work is linear in the input, and the limits below bound the query.

use chrono::{DateTime, Utc};

use crate::chars::is_space_or_control;
use crate::date::parse_date;
use crate::identifiers::spellings;
use crate::lexer::{Filter, Lexeme, LexemeKind, lex};
use crate::query::{Clause, Columns, MAX_KEYWORDS, MAX_TERM_TOKENS, MAX_TERMS, Query, Term};
use crate::token::tokens;

/// The maximum number of values of one filter, and of notices: nobody reads more.
const MAX_VALUES: usize = 64;
const MAX_NOTICES: usize = 16;

/// How many characters of the query text a notice quotes.
const QUOTED_CHARS: usize = 40;

/// Parses the text of a query. Dates like `7d` count back from `now`.
pub(crate) fn parse(text: &str, now: DateTime<Utc>) -> Query {
    let mut parser = Parser::new(text, now);
    for lexeme in lex(text) {
        parser.push(lexeme);
    }
    let query = parser.finish(true);
    // In a text that somebody pasted quotes, stars and minuses are no operators: no message has what they would require, and
    // looking for it takes ten seconds in a million messages. Filters are kept.
    if has_keywords_of_a_text(&query) {
        let plain = parse_plain(text);
        if has_keywords_of_a_text(&plain) {
            return Query { filters: query.filters, ..plain };
        }
    }
    query
}

/// Returns whether a query has more words without an operator than anyone types.
fn has_keywords_of_a_text(query: &Query) -> bool {
    let is_plain = |clause: &&Clause| matches!(clause.as_slice(), [term] if !term.is_quoted && !term.is_prefix);
    query.clauses.iter().filter(is_plain).count() > MAX_KEYWORDS
}

/// Returns the query for the words of a text in which nothing is an operator or a filter.
pub(crate) fn parse_plain(text: &str) -> Query {
    let mut parser = Parser::new(text, DateTime::UNIX_EPOCH);
    for word in text.split(is_space_or_control).filter(|word| !word.is_empty()) {
        // Without its stars a word is no prefix.
        parser.add_term(word.trim_end_matches('*'), false, false, false);
    }
    parser.finish(false)
}

#[derive(Default)]
struct Parser<'a> {
    text: &'a str,
    now: DateTime<Utc>,
    query: Query,
    terms: usize,
    /// Whether the last thing read is a word, to which an option of a command can be added.
    ends_with_word: bool,
    /// Whether the last thing read is a term that is not excluded, to which `OR` can add another.
    ends_with_term: bool,
    /// Whether an `OR` precedes the next term.
    joins_last: bool,
    columns: Option<Columns>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, now: DateTime<Utc>) -> Self {
        Self { text, now, ..Self::default() }
    }

    fn push(&mut self, Lexeme { kind, written, is_excluded, is_flag }: Lexeme<'_>) {
        let follows_word = std::mem::take(&mut self.ends_with_word);
        let follows_term = std::mem::take(&mut self.ends_with_term);
        if self.joins_last && (is_excluded || matches!(kind, LexemeKind::Filter { .. })) {
            self.leave_out_or();
        }
        match kind {
            LexemeKind::Word("OR") if !is_excluded => match follows_term || self.joins_last {
                true => self.joins_last = true,
                false => self.leave_out_or(),
            },
            LexemeKind::Word(word) if is_flag => {
                self.add_flag(word, follows_word);
                self.note(format!(
                    "{written:?} is searched as a word: -\"{word}\" with quotes excludes it"
                ));
            }
            LexemeKind::Word(word) => {
                let terms = self.terms;
                self.add_term(word, false, false, is_excluded);
                // Dots without a word between a term and an `OR` change nothing.
                self.ends_with_term |= follows_term && self.terms == terms;
            }
            LexemeKind::Phrase { text, has_star } => {
                self.add_term(text, true, has_star, is_excluded)
            }
            LexemeKind::Filter { filter, value } => {
                let written = written.strip_prefix('-').unwrap_or(written);
                if is_excluded || !self.add_filter(filter, value) {
                    self.note(match is_excluded {
                        true => format!(
                            "{:?} with a minus excludes these words: a filter has no minus",
                            shortened(written)
                        ),
                        false => format!(
                            "{:?} is searched as words: {} was expected",
                            shortened(written),
                            filter.expected()
                        ),
                    });
                    self.add_term(written, false, false, is_excluded);
                }
            }
        }
    }

    /// Leaves out an `OR`, with a notice.
    fn leave_out_or(&mut self) {
        self.joins_last = false;
        self.note("an OR is left out: it joins two words or phrases".to_owned());
    }

    /// Adds an option of a command: `ln -s` is one term.
    fn add_flag(&mut self, flag: &str, follows_word: bool) {
        let before = self.query.clauses.last_mut().and_then(|clause| clause.last_mut());
        match before.filter(|term| follows_word && term.tokens.len() < MAX_TERM_TOKENS) {
            Some(term) => {
                term.tokens.push(flag.to_owned());
                // They are spellings of the word alone.
                term.forms.clear();
                self.ends_with_word = true;
                self.ends_with_term = true;
            }
            None => self.add_term(flag, false, false, false),
        }
    }

    fn add_term(&mut self, text: &str, is_quoted: bool, has_star: bool, is_excluded: bool) {
        let body = text.trim_end_matches('*');
        let mut words: Vec<_> = tokens(body).take(MAX_TERM_TOKENS + 1).collect();
        let Some(&last) = words.last() else { return };
        let joins_last = std::mem::take(&mut self.joins_last);
        // The star must follow the word directly, and a unigram has no longer words to match.
        let touches = last.range().end == body.len() && !last.is_unigram();
        let mut is_prefix = touches && (has_star || body.len() < text.len());
        let is_long = words.len() > MAX_TERM_TOKENS;
        words.truncate(MAX_TERM_TOKENS);
        let tokens: Vec<String> = words.iter().map(|word| word.text().to_owned()).collect();
        let is_plain = !is_quoted && !is_prefix && !is_excluded;
        if self.terms == MAX_TERMS {
            self.note(format!("only the first {MAX_TERMS} words and phrases are searched"));
            return;
        }
        self.terms += 1;
        if is_long {
            is_prefix = false;
            self.note(format!(
                "only the first {MAX_TERM_TOKENS} words of {:?} are searched",
                shortened(text)
            ));
        }
        let sign = ['+', '#'];
        if body.contains(sign) && !tokens.iter().any(|token| token.ends_with(sign)) {
            self.note(format!(
                "`+` and `#` are not indexed: {:?} is searched as {:?}",
                shortened(text),
                shortened(&tokens.join(" "))
            ));
        }
        let forms = if is_plain { spellings(&tokens, body) } else { Vec::new() };
        let term = Term { tokens, is_prefix, is_quoted, is_optional: false, forms };
        self.ends_with_word = is_plain;
        self.ends_with_term = !is_excluded;
        match self.query.clauses.last_mut() {
            _ if is_excluded => self.query.excluded.push(term),
            Some(clause) if joins_last => clause.push(term),
            _ => self.query.clauses.push(vec![term]),
        }
    }

    /// Adds a filter; returns false if its value is not valid.
    fn add_filter(&mut self, filter: Filter, value: &str) -> bool {
        let filters = &mut self.query.filters;
        match filter {
            Filter::Role => {
                let usual = ROLES.iter().find(|role| role.eq_ignore_ascii_case(value));
                usual.into_iter().for_each(|usual| add_value(&mut filters.roles, usual));
                add_value(&mut filters.roles, value);
            }
            Filter::Session => add_value(&mut filters.sessions, value),
            Filter::Author => add_value(&mut filters.authors, value),
            Filter::Tag => add_value(&mut filters.tags, value),
            // Several bounds must all hold, so the narrowest one applies.
            Filter::After => match parse_date(value, self.now) {
                Some(time) => filters.after = filters.after.max(Some(time)),
                None => return false,
            },
            Filter::Before => match parse_date(value, self.now) {
                Some(time) => {
                    filters.before = Some(filters.before.map_or(time, |earlier| earlier.min(time)))
                }
                None => return false,
            },
            Filter::Exact => self.query.add_exact(value),
            Filter::In => {
                let columns = match value.to_ascii_lowercase().as_str() {
                    "text" => Columns::Text,
                    "tools" => Columns::Tools,
                    "all" => Columns::All,
                    _ => return false,
                };
                let is_same = self.columns.is_none_or(|known| known == columns);
                self.columns = Some(if is_same { columns } else { Columns::All });
            }
        }
        !value.is_empty()
    }

    fn note(&mut self, notice: String) {
        if self.query.notices.len() < MAX_NOTICES && !self.query.notices.contains(&notice) {
            self.query.notices.push(notice);
        }
    }

    fn finish(mut self, is_query: bool) -> Query {
        if self.joins_last {
            self.leave_out_or();
        }
        self.query.filters.columns = self.columns.unwrap_or_default();
        let Query { excluded, filters, .. } = &self.query;
        if filters.before.is_some_and(|before| filters.after.is_some_and(|after| after >= before)) {
            self.note("nothing to find: the date of after: is not before that of before:".into());
        } else if self.query.is_empty() && !excluded.is_empty() {
            self.note("nothing to find: the query has only excluded words; add a word, or a filter like role:user".into());
        } else if self.query.is_empty()
            && self.columns.is_none()
            && self.text.contains(|c| !is_space_or_control(c))
        {
            let run = self.text.trim();
            let is_short = run.chars().count() <= QUOTED_CHARS;
            let is_run =
                is_query && is_short && !run.contains(|c: char| c == '"' || c.is_control());
            let hint = match is_run {
                true => format!("; exact:\"{run}\" finds these characters"),
                false => String::new(),
            };
            self.note(format!("nothing to find: a letter, digit or symbol was expected{hint}"));
        }
        self.query
    }
}

/// The usual roles. One is written with capitals or without; another program may have stored it with capitals, too.
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

pub(super) fn add_value(values: &mut Vec<String>, value: &str) {
    let is_known = values.iter().any(|known| known == value);
    if !value.is_empty() && !is_known && values.len() < MAX_VALUES {
        values.push(value.to_owned());
    }
}

/// Returns the start of the text on one line, for a notice.
fn shortened(text: &str) -> String {
    let mut short: String = text
        .chars()
        .map(|c| if is_space_or_control(c) { ' ' } else { c })
        .take(QUOTED_CHARS)
        .collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a query on 5 March 2026.
    fn parse(text: &str) -> Query {
        super::parse(text, "2026-03-05T15:00:00Z".parse().unwrap_or_default())
    }

    /// Asserts that `text` parses as drawn: `|` between alternatives, `+` inside a phrase, `-` and `*` as typed.
    #[track_caller]
    fn drawn(text: &str, expected: &str) {
        let draw = |term: &Term| term.tokens.join("+") + if term.is_prefix { "*" } else { "" };
        let query = parse(text);
        let clauses = query
            .clauses
            .iter()
            .map(|clause| clause.iter().map(draw).collect::<Vec<_>>().join("|"));
        let excluded = query.excluded.iter().map(|term| format!("-{}", draw(term)));
        assert_eq!(clauses.chain(excluded).collect::<Vec<_>>().join(" "), expected, "{text:?}");
    }

    /// Asserts that `text` gives exactly this notice.
    #[track_caller]
    fn notes(text: &str, expected: &str) {
        assert_eq!(parse(text).notices, [expected]);
    }

    #[test]
    fn words_and_phrases() {
        drawn("red  fox", "red fox");
        drawn("\"red fox\" den", "red+fox den");
        drawn("\"red fox", "red+fox");
        drawn("“red fox” 5\" a\"b", "red+fox 5 a+b");
        drawn("\"\" \"", "");
        drawn(
            "foo-bar C++ foo_bar user@host 3.14 don't",
            "foo+bar C++ foo+bar user+host 3+14 don+t",
        );
        drawn("北京 Rust语言 😀", "北+京 Rust+语+言 😀");
        drawn("foo:bar https://a.b/c", "foo+bar https+a+b+c");
    }

    #[test]
    fn a_star_directly_after_the_last_word_makes_a_prefix() {
        drawn("comp* foo-ba** \"red fo\"* \"red fo*\"", "comp* foo+ba* red+fo* red+fo*");
        drawn("* C++* a*b 重* \"a \"*", "C++* a+b 重 a");
    }

    #[test]
    fn a_minus_excludes() {
        drawn("a -bat -\"c d\" -e* -\"f\"", "a -bat -c+d -e* -f");
        drawn("--release - -- a-b", "release a+b");
    }

    #[test]
    fn one_or_two_letters_after_a_minus_are_an_option_of_the_word_before() {
        drawn("ln -s", "ln+s");
        drawn("tar -x -f backup -old", "tar+x+f backup -old");
        drawn("-la", "la");
        drawn("\"git push\" -f role:user -v", "git+push f v");
        drawn("cp OR mv -n", "cp|mv+n");
        drawn("ln -s OR cp", "ln+s|cp");
        notes("ln -s", "\"-s\" is searched as a word: -\"s\" with quotes excludes it");
    }

    #[test]
    fn or_binds_tighter_than_a_blank() {
        drawn("a b OR c d", "a b|c d");
        drawn("a OR b OR \"c d\"", "a|b|c+d");
        drawn("OR a OR", "a");
        drawn("a OR OR b or c", "a|b or c");
        drawn("a OR -bat c", "a c -bat");
        drawn("a OR role:user b", "a b");
        drawn("a role:user OR b", "a b");
        drawn("a \"OR\" b", "a OR b");
        drawn("a ... OR b", "a|b");
        let left_out = "an OR is left out: it joins two words or phrases";
        for text in ["OR a", "a OR", "a OR -bat", "a OR role:user", "role:user OR a"] {
            notes(text, left_out);
        }
        notes("exact:\"a b\" OR exact:\"c d\"", left_out);
        assert_eq!(parse("a OR OR b OR \"c d\"").notices, [""; 0]);
    }

    #[test]
    fn filters_are_not_words() {
        let query = parse(
            "x role:user ROLE:Tool role:User session:\"my chat\" after:2026-01-31 before:2026-02-01T01:00:00+01:00",
        );
        assert_eq!(query.filters.roles, ["user", "tool", "Tool", "User"]);
        assert_eq!(query.filters.sessions, ["my chat"]);
        assert_eq!(query.filters.after, "2026-01-31T00:00:00Z".parse().ok());
        assert_eq!(query.filters.before, "2026-02-01T00:00:00Z".parse().ok());
        assert_eq!((query.clauses.len(), query.notices.len()), (1, 0));
    }

    #[test]
    fn dates_are_the_parts_of_a_date_and_spans_before_now() {
        let filters = parse("after:2023-02 before:yesterday").filters;
        assert_eq!(filters.after, "2023-02-01T00:00:00Z".parse().ok());
        assert_eq!(filters.before, "2026-03-04T00:00:00Z".parse().ok());
        assert_eq!(parse("after:7d").filters.after, "2026-02-26T15:00:00Z".parse().ok());
        let quoted = parse("after:\"2026-01-31 09:00\"").filters.after;
        assert_eq!(quoted, "2026-01-31T09:00:00Z".parse().ok());
    }

    #[test]
    fn in_a_plain_text_nothing_is_an_operator_or_a_filter() {
        let query = parse_plain("-red \"blue fox\" OR comp* session:other after:2023 in:all don't");
        let tokens: Vec<_> =
            query.clauses.iter().map(|clause| clause[0].tokens.join("+")).collect();
        let expected = "red blue fox OR comp session+other after+2023 in+all don+t";
        assert_eq!(tokens.join(" "), expected);
        assert!(query.clauses.iter().all(|clause| matches!(
            &clause[..],
            [Term { is_quoted: false, is_prefix: false, .. }]
        )));
        assert_eq!((query.excluded, query.filters, query.notices), Default::default());
    }

    #[test]
    fn exact_characters_are_a_filter_and_their_inner_words_are_required() {
        for (text, words) in [
            ("exact:\"a.b(c)\"", "b+c"),
            ("exact:foo", ""),
            ("exact:\"foo bar\"", "bar*"),
            ("exact:\"?? \"", ""),
            ("exact:\"x 北京\"", "北+京"),
            ("exact:\"x ab\"", ""),
            ("exact:\"\u{AD}re done \"", "done"),
            ("exact:\"(HttpRequest)\"", "HttpRequest"),
            ("exact:\" C+\"", ""),
            ("exact:\"-ｶ\"", ""),
        ] {
            let query = parse(text);
            assert_eq!((query.filters.exact.len(), query.notices.len()), (1, 0), "{text}");
            let terms = query.clauses.iter().flatten();
            let drawn: Vec<_> =
                terms.map(|it| it.tokens.join("+") + if it.is_prefix { "*" } else { "" }).collect();
            assert_eq!(drawn.join(" "), words, "{text}");
        }
        assert_eq!(parse("exact:\"Foo  bar\" den").filters.exact, ["Foo  bar"]);
        notes("exact: ", "\"exact:\" is searched as words: exact:\"characters\" was expected");
        notes(
            "?? ",
            "nothing to find: a letter, digit or symbol was expected; exact:\"??\" finds these characters",
        );
    }

    #[test]
    fn the_narrower_of_two_bounds_applies() {
        let filters =
            parse("after:2026-01-01 after:2026-01-03 after:2026-01-02 before:2026-03-01 before:2026-02-01").filters;
        assert_eq!(filters.after, "2026-01-03T00:00:00Z".parse().ok());
        assert_eq!(filters.before, "2026-02-01T00:00:00Z".parse().ok());
    }

    #[test]
    fn different_columns_combine_to_all() {
        for (text, columns) in [
            ("a", Columns::All),
            ("in:tools", Columns::Tools),
            ("in:tools in:tools", Columns::Tools),
            ("in:text in:tools", Columns::All),
            ("in:All", Columns::All),
        ] {
            assert_eq!(parse(text).filters.columns, columns, "{text}");
        }
    }

    #[test]
    fn a_malformed_filter_is_searched_as_words_with_a_notice() {
        drawn("after:someday in:box role: -role:tool", "after+someday in+box role -role+tool");
        let expected = format!("{} was expected", crate::date::EXPECTED);
        for value in [
            "someday",
            "2026-13-01",
            "2026-01-31T12",
            "12026-01-01",
            "-0001-01-01",
            "9999-12-31T23:59:59-01:00",
        ] {
            notes(
                &format!("after:{value}"),
                &format!("\"after:{value}\" is searched as words: {expected}"),
            );
        }
        notes("in:b\0x", "\"in:b\" is searched as words: in:text, in:tools or in:all was expected");
        notes("a -role:x", "\"role:x\" with a minus excludes these words: a filter has no minus");
    }

    #[test]
    fn a_query_that_finds_nothing_says_why() {
        notes(
            "-ant",
            "nothing to find: the query has only excluded words; add a word, or a filter like role:user",
        );
        notes(
            "?!",
            "nothing to find: a letter, digit or symbol was expected; exact:\"?!\" finds these characters",
        );
        let plain = parse_plain("?!").notices;
        assert_eq!(plain, ["nothing to find: a letter, digit or symbol was expected"]);
        notes(
            "after:2026-01-02 before:2026-01-02",
            "nothing to find: the date of after: is not before that of before:",
        );
        for text in ["", " \0\n", "role:user -ant", "in:tools"] {
            assert!(parse(text).notices.is_empty(), "{text:?}");
        }
    }

    /// A pasted page required each of its quotations, so it found nothing, after ten seconds.
    #[test]
    fn a_long_text_has_no_operators() {
        let page: String = (0..100).map(|n| format!("word{n} ")).collect();
        let query = parse(&format!("\"a quotation\" role:user {page} * con* -draft a OR b"));
        let terms = || query.clauses.iter().flatten();
        assert!(terms().all(|term| !term.is_quoted && !term.is_prefix));
        assert!(terms().any(|term| term.tokens == ["quotation"]));
        assert_eq!((query.excluded.len(), query.filters.roles.len()), (0, 1));
        // A program's long list of alternatives is no text.
        let alternatives: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
        assert_eq!(parse(&alternatives.join(" OR ")).clauses.len(), 1);
    }

    #[test]
    fn input_over_a_limit_is_ignored_with_a_notice() {
        let query = parse(&"a b -cat ".repeat(400_000));
        assert_eq!(query.clauses.len() + query.excluded.len(), MAX_TERMS);
        assert_eq!(query.notices, ["only the first 512 words and phrases are searched"]);
        let query = parse(&format!("{}*", "重".repeat(1_000_000)));
        assert_eq!(query.clauses[0][0].tokens.len(), MAX_TERM_TOKENS);
        assert!(query.notices[0].starts_with("only the first 64 words of \"重"));
        let query = parse(&"after:never role:".repeat(100_000));
        assert!(query.notices.len() <= MAX_NOTICES);
    }
}
