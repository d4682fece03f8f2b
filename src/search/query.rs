//! A parsed query: what must match, what must not, and filters.
//!
//! A *term* is a word, or a phrase of several tokens. A *clause* is a list of alternative terms: one of them must
//! match, and so must every clause. Terms keep the original spelling: FTS5 normalizes and stems them as it does the
//! text.
//!
//! Invariant: FTS5 receives only quoted tokens and this module's operators, whatever the fields of a term hold.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};

use crate::search::exact;
use crate::search::folding::folded;
use crate::search::parser::{self, add_value};
use crate::search::prefix::{completions, spelling};
use crate::search::script::is_unigram;
use crate::search::stemmer::stem;
use crate::search::tokenizer::{is_sign, normalize, tokens};

/// The maximum number of terms of a query, required and excluded together. The rest is ignored, with a notice.
///
/// After the first 64 terms, stop words and words that the query already has do not count, and are ignored without a
/// notice: such a query is a text that somebody pasted.
///
/// ```
/// use talktree::{Query, search::MAX_TERMS};
///
/// let text: String = (0..=MAX_TERMS).map(|number| format!("the word{number} ")).collect();
/// let query = Query::parse(&text);
/// assert_eq!((query.clauses.len(), query.notices.len()), (MAX_TERMS, 1));
/// assert!(Query::parse(&"word ".repeat(MAX_TERMS + 1)).notices.is_empty());
/// ```
pub const MAX_TERMS: usize = 512;

/// A query with more terms is not a list of keywords, all of which a message must have, but a text.
pub(crate) const MAX_KEYWORDS: usize = 64;

/// The maximum number of tokens of a term. A longer phrase is truncated, with a notice.
///
/// ```
/// use talktree::{Query, search::MAX_TERM_TOKENS};
///
/// let query = Query::parse(&format!("\"{}\"", "word ".repeat(MAX_TERM_TOKENS + 1)));
/// assert_eq!(query.clauses[0][0].tokens.len(), MAX_TERM_TOKENS);
/// assert_eq!(query.notices.len(), 1);
/// ```
pub const MAX_TERM_TOKENS: usize = 64;

/// How many words of the index the prefixes of a query expand to at most, together.
///
/// The longest prefixes are expanded first. Those beyond the limit are searched as whole words, with a notice, and the
/// result is [partial](super::Found::is_partial).
///
/// ```
/// use talktree::search::MAX_EXPANSIONS;
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let words: Vec<String> = (0..=MAX_EXPANSIONS).map(|n| format!("a{n}")).collect();
/// store.session("s")?.append(Message::user(words.join(" ")))?;
///
/// assert!(!store.search("a12*").run()?.is_partial);
/// let found = store.search("a*").run()?;
/// assert!(found.is_partial && found.hits.is_empty());
/// # Ok::<(), talktree::Error>(())
/// ```
pub const MAX_EXPANSIONS: usize = 10_000;

/// A word or phrase to find.
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse(r#""red fox" comp*"#);
/// let (phrase, prefix) = (&query.clauses[0][0], &query.clauses[1][0]);
/// assert_eq!(phrase.tokens, ["red", "fox"]);
/// assert!(phrase.is_quoted && prefix.is_prefix);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// The tokens in order, in the original spelling. In scripts written without spaces, each character is a token, with
    /// the vowel signs that follow it.
    pub tokens: Vec<String>,
    /// Whether the last token is a prefix: `comp*` matches `compaction`.
    pub is_prefix: bool,
    /// Whether the phrase is quoted. A quoted phrase is never matched in pieces.
    pub is_quoted: bool,
    /// Other words or phrases that match as the term does: `Http Request` for `HttpRequest`. A search adds the forms of a
    /// word that the store has, with the feature `stemmers`.
    pub forms: Vec<String>,
}

/// Alternative terms, of which one must match.
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse("red OR blue fox");
/// assert_eq!(query.clauses.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
/// ```
pub type Clause = Vec<Term>;

/// The part of a message that is searched.
///
/// ```
/// use talktree::{Query, search::Columns};
///
/// assert_eq!(Query::parse("deploy").filters.columns, Columns::Text);
/// assert_eq!(Query::parse("deploy in:tools").filters.columns, Columns::Tools);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Columns {
    /// The text parts.
    #[default]
    Text,
    /// Reasoning, and the names, inputs and outputs of tools.
    Tools,
    /// Both.
    All,
}

/// The conditions on a message other than words.
///
/// ```
/// use talktree::Query;
///
/// let filters = Query::parse("deploy role:user after:2026-01-31").filters;
/// assert_eq!(filters.roles, ["user"]);
/// assert_eq!(filters.after.unwrap().to_rfc3339(), "2026-01-31T00:00:00+00:00");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Allowed roles; empty for any.
    pub roles: Vec<String>,
    /// The ids of allowed sessions; empty for any.
    pub sessions: Vec<String>,
    /// The authors, by [`Author::key`](crate::Author::key); empty for any.
    pub authors: Vec<String>,
    /// The tags, all of which the message must have.
    pub tags: Vec<String>,
    /// The earliest time, inclusive.
    pub after: Option<DateTime<Utc>>,
    /// The latest time, exclusive.
    pub before: Option<DateTime<Utc>>,
    /// Runs of characters, each of which the searched part of the message must contain exactly.
    pub exact: Vec<String>,
    /// The part of the message that is searched.
    pub columns: Columns,
}

impl Filters {
    /// Returns whether every message passes. `columns` is not a condition.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// assert!(Query::parse("deploy -draft").filters.is_empty());
    /// assert!(!Query::parse("deploy role:user").filters.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
            && self.sessions.is_empty()
            && self.authors.is_empty()
            && self.tags.is_empty()
            && self.after.is_none()
            && self.before.is_none()
            && self.exact.is_empty()
    }
}

/// A parsed query; see [`Query::parse`].
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse("deploy after:someday");
/// assert_eq!(query.clauses[0][0].tokens, ["deploy"]);
/// assert_eq!(query.clauses[1][0].tokens, ["after", "someday"]); // not a date: words
/// assert_eq!(query.notices.len(), 1); // and a notice
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// The clauses, all of which must match.
    pub clauses: Vec<Clause>,
    /// The terms that must not match.
    pub excluded: Vec<Term>,
    /// The conditions other than words.
    pub filters: Filters,
    /// For people: which parts of the query were ignored or searched as words.
    pub notices: Vec<String>,
}

impl Query {
    /// Parses a query. Never fails: [`notices`](Self::notices) lists what was ignored or searched as words.
    ///
    /// | written | means |
    /// |---|---|
    /// | `red fox` | both words, anywhere |
    /// | `"red fox"` | the phrase; without the closing quote, to the end |
    /// | `comp*` | words with this prefix; also for the last word of a phrase |
    /// | `-red`, `-"red fox"` | not this; but `-s`, `-la`: one or two letters are an option, `ln -s` is a phrase |
    /// | `red OR blue fox` | `fox`, and one of the others |
    /// | `role:user` | by this role; repeated: by one of them |
    /// | `session:ID` | in this session; repeated: in one of them |
    /// | `author:ID` | written by this person, see [`Author::key`](crate::Author::key); repeated: by one of them |
    /// | `tag:spam` | with this tag; repeated: with all of them |
    /// | `after:2026-01-31`, `before:7d` | from this date on; until before it; see [`parse_date`](super::parse_date) |
    /// | `in:text`, `in:tools`, `in:all` | text parts (the default), reasoning and tools, both |
    /// | `exact:"a ?? b"` | exactly these characters, in upper or lower case as written |
    ///
    /// A word with punctuation inside (`user@host`, `don't`) is a phrase of its parts, and so are adjacent characters
    /// of a script written without spaces. Values with blanks need quotes: `session:"my chat"`.
    ///
    /// ```
    /// # use talktree::Query;
    /// let query = Query::parse("deploy OR release -draft role:user");
    /// assert_eq!(query.clauses[0].len(), 2);
    /// assert_eq!(query.excluded[0].tokens, ["draft"]);
    /// assert_eq!(query.filters.roles, ["user"]);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Query {
        Self::parse_at(text, crate::clock::now())
    }

    /// Parses a query as of `now`, for dates like `yesterday` and `7d`.
    ///
    /// ```
    /// # use talktree::Query;
    /// let now = "2026-03-05T15:00:00Z".parse().unwrap();
    /// let after = Query::parse_at("deploy after:yesterday", now).filters.after;
    /// assert_eq!(after.unwrap().to_rfc3339(), "2026-03-04T00:00:00+00:00");
    /// ```
    #[must_use]
    pub fn parse_at(text: &str, now: DateTime<Utc>) -> Query {
        parser::parse(text, now)
    }

    /// Returns a query for the words of a text: nothing in it is an operator or a filter.
    ///
    /// ```
    /// # use talktree::Query;
    /// let query = Query::plain("-draft session:other");
    /// assert_eq!(query.clauses[0][0].tokens, ["draft"]);
    /// assert_eq!(query.clauses[1][0].tokens, ["session", "other"]);
    /// assert!(query.excluded.is_empty() && query.filters.is_empty());
    /// ```
    #[must_use]
    pub fn plain(text: &str) -> Query {
        parser::parse_plain(text)
    }

    /// Requires a run of characters, and the words of the index that every text with it has.
    pub(crate) fn add_exact(&mut self, run: &str) {
        if run.is_empty() {
            return;
        }
        let known = self.filters.exact.len();
        add_value(&mut self.filters.exact, run);
        if self.filters.exact.len() > known {
            self.clauses.extend(exact::words(run).map(|term| vec![term]));
        }
    }

    /// Returns whether the query finds nothing: it has no required term and no filter.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// assert!(Query::parse("-draft").is_empty());
    /// assert!(!Query::parse("role:user").is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_terms() && self.filters.is_empty()
    }

    /// Returns whether the query has a required term. Without one, it finds every message that passes the filters.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// assert!(Query::parse("deploy role:user").has_terms());
    /// assert!(!Query::parse("role:user").has_terms());
    /// ```
    #[must_use]
    pub fn has_terms(&self) -> bool {
        self.clauses.iter().flatten().any(|term| !term.is_empty())
    }

    /// Returns the FTS5 expression that matches every clause and no excluded term; `None` without a required term.
    ///
    /// FTS5 compares letters only: a text that matches may have other vowel signs than a word of Thai, and an excluded word
    /// whose signs count is left out here.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// let query = Query::parse(r#"deploy "on friday" -draft"#);
    /// assert_eq!(
    ///     query.to_fts_all().unwrap(),
    ///     r#"text : (("deploy" AND "on friday") NOT "draft")"#,
    /// );
    /// assert_eq!(Query::parse("role:user").to_fts_all(), None);
    /// ```
    #[must_use]
    pub fn to_fts_all(&self) -> Option<String> {
        let mut clauses: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for clause in &self.clauses {
            let keys: BTreeSet<_> = clause.iter().map(Term::key).collect();
            // FTS5 would read the posting lists of a repeated clause again.
            if seen.insert(keys) {
                clauses.extend(any_of(clause));
            }
        }
        self.expression(&clauses.join(" AND "))
    }

    /// Returns the FTS5 expression that matches any excluded term; `None` if there is none.
    ///
    /// For a query without a required term: its result is the messages that pass the filters, minus these.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// let query = Query::parse("role:user -draft in:all");
    /// assert_eq!(query.to_fts_excluded().unwrap(), r#"("draft")"#);
    /// ```
    #[must_use]
    pub fn to_fts_excluded(&self) -> Option<String> {
        Some(format!("{}({})", self.column_filter(), self.excluded_by_letters()?))
    }

    /// Returns the expression for `required`, without the excluded terms, in the columns of the query.
    fn expression(&self, required: &str) -> Option<String> {
        let columns = self.column_filter();
        match self.excluded_by_letters() {
            _ if required.is_empty() => None,
            None => Some(format!("{columns}({required})")),
            Some(excluded) => Some(format!("{columns}(({required}) NOT {excluded})")),
        }
    }

    /// Returns the expression for the excluded terms whose vowel signs do not count: the index has letters only.
    fn excluded_by_letters(&self) -> Option<String> {
        let by_letters: Vec<Term> =
            self.excluded.iter().filter(|term| !term.needs_signs()).cloned().collect();
        any_of(&by_letters)
    }

    fn column_filter(&self) -> &'static str {
        match self.filters.columns {
            Columns::Text => "text : ",
            Columns::Tools => "tools : ",
            Columns::All => "",
        }
    }
}

impl Term {
    /// Returns the pieces that are searched if the whole term is not found; none for a word or a quoted phrase.
    ///
    /// Each word is a piece, except single letters (the `t` of `don't`). Of adjacent unigrams each pair is a piece:
    /// one character is too common, and a whole sentence too rare.
    pub(crate) fn pieces(&self) -> Vec<Term> {
        if self.is_quoted || self.tokens.len() < 2 {
            return Vec::new();
        }
        let is_run = |token: &String| token.chars().all(is_unigram);
        let mut pieces = Vec::new();
        for run in self.tokens.chunk_by(|a, b| is_run(a) && is_run(b)) {
            let is_single_letter =
                !is_run(&run[0]) && run[0].trim_end_matches(is_sign).chars().nth(1).is_none();
            if !is_single_letter {
                let part = |tokens: &[String]| Term { tokens: tokens.to_vec(), ..Term::default() };
                pieces.extend(run.windows(run.len().min(2)).map(part));
            }
        }
        // A piece is shorter than the term.
        pieces.retain(|piece| piece.tokens.len() < self.tokens.len());
        if let (true, Some(piece)) = (self.is_prefix, pieces.last_mut()) {
            piece.is_prefix = piece.tokens.last() == self.tokens.last();
        }
        pieces
    }

    /// Returns the terms that the index also matches with a prefix that is longer than their stems: `run` for `runn*`.
    pub(crate) fn completed(&self) -> Vec<Term> {
        let words: Vec<&str> = self.words().collect();
        let Some((last, start)) = words.split_last().filter(|_| self.is_prefix) else {
            return Vec::new();
        };
        let with = |word: String| {
            let tokens = start.iter().map(|word| (*word).to_owned()).chain([word]).collect();
            Term { tokens, is_quoted: self.is_quoted, ..Term::default() }
        };
        completions(last).into_iter().map(with).collect()
    }

    /// Returns a key that terms share if they match the same texts: the stems, whether the last is a prefix, the forms.
    fn key(&self) -> (Vec<String>, bool, &[String]) {
        let words: Vec<_> = self.words().collect();
        let last = words.len().saturating_sub(1);
        let stems = words.iter().enumerate().map(|(at, word)| {
            let normalized = normalize(word);
            if self.is_prefix && at == last {
                normalized.into_owned()
            } else {
                stem(&normalized).into_owned()
            }
        });
        (stems.collect(), self.is_prefix, &self.forms)
    }

    /// Returns the words of the term. Its fields are public and may hold anything, so they are tokenized again: a
    /// quote or a NUL is never part of a word.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.tokens.iter().flat_map(|token| tokens(token)).map(|token| token.text());
        words.take(MAX_TERM_TOKENS)
    }

    /// Returns the vowel signs after each word; nothing if no word has any. The index does not have them.
    pub(crate) fn signs(&self) -> Vec<&str> {
        if self.tokens.iter().all(|token| token.is_ascii()) {
            return Vec::new();
        }
        let words = self.tokens.iter().flat_map(|token| tokens(token)).take(MAX_TERM_TOKENS);
        let signs: Vec<&str> = words.map(|word| word.signs()).collect();
        if signs.iter().all(|signs| signs.is_empty()) { Vec::new() } else { signs }
    }

    /// Returns whether a text with the same letters and other signs does not match.
    ///
    /// In quotes none does. Without quotes it depends on the script: a unigram with another vowel is another word, but a
    /// word of Hindi may have another last sign in another form.
    pub(crate) fn needs_signs(&self) -> bool {
        let signs = self.signs();
        let is_unigram = |word: &str| word.chars().next().is_some_and(is_unigram);
        !signs.is_empty()
            && (self.is_quoted
                || self.words().zip(signs).any(|(word, of)| !of.is_empty() && is_unigram(word)))
    }

    /// Returns whether a text with the same letters and other signs matches, as another spelling.
    pub(crate) fn has_other_signs(&self) -> bool {
        !self.signs().is_empty() && !self.needs_signs()
    }

    /// Returns whether the term has no token.
    pub(crate) fn is_empty(&self) -> bool {
        !self.tokens.iter().any(|token| tokens(token).next().is_some())
    }

    /// Returns each form as a term.
    pub(crate) fn form_terms(&self) -> impl Iterator<Item = Term> {
        self.forms.iter().map(|form| Term { tokens: vec![form.clone()], ..Term::default() })
    }

    /// Returns the alternatives that FTS5 searches: the quoted term, its forms, and for a prefix also its completions.
    fn to_fts(&self) -> Vec<String> {
        let mut words: Vec<_> = self.words().map(folded).collect();
        let Some(last) = words.pop() else {
            return Vec::new();
        };
        let last = last.as_ref();
        let start = words.iter().fold(String::new(), |start, word| start + word + " ");
        if !self.is_prefix {
            let forms = self.form_terms().flat_map(|form| form.to_fts());
            return std::iter::once(format!("\"{start}{last}\"")).chain(forms).collect();
        }
        let others = completions(last).into_iter().map(|word| format!("\"{start}{word}\""));
        std::iter::once(format!("\"{start}{}\"*", spelling(last))).chain(others).collect()
    }
}

/// Returns the FTS5 expression that matches any of `terms`, in parentheses if there are several.
fn any_of(terms: &[Term]) -> Option<String> {
    let mut seen = HashSet::new();
    let distinct = terms.iter().filter(|term| seen.insert(term.key()));
    let written: Vec<_> = distinct.flat_map(Term::to_fts).collect();
    match written.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("({})", several.join(" OR "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the FTS5 expression of `text` if every word is required, in all columns.
    #[track_caller]
    fn all(text: &str, expected: &str) {
        assert_eq!(
            Query::parse(&format!("in:all {text}")).to_fts_all().as_deref().unwrap_or("none"),
            expected
        );
    }

    #[test]
    fn every_word_is_quoted_and_required() {
        all("red Fox", r#"("red" AND "Fox")"#);
        all("a b OR c", r#"("a" AND ("b" OR "c"))"#);
        all("red -fox -\"two words\"", r#"(("red") NOT ("fox" OR "two words"))"#);
        all("comp* NEAR NOT", r#"("comp"* AND "NEAR" AND "NOT")"#);
        all("\"red runn*\"", r#"(("red runn"* OR "red runned"))"#);
    }

    /// A query of 64 times `a*` took a minute: FTS5 read the posting lists of each again.
    #[test]
    fn a_repeated_term_is_looked_up_once() {
        all(&"a* ".repeat(64), r#"("a"*)"#);
        all("deploy Deployed \"deploy\" deplo*", r#"("deploy" AND "deplo"*)"#);
        all("a OR b b OR a OR A a", r#"(("a" OR "b") AND "a")"#);
        all("a -bat -bat -BAT", r#"(("a") NOT "bat")"#);
    }

    #[test]
    fn unigrams_and_mixed_words_are_phrases() {
        all("北京 Rust语言", r#"("北 京" AND "Rust 语 言")"#);
        all("don't user@host", r#"("don t" AND "user host")"#);
    }

    #[test]
    fn identifiers_have_other_spellings() {
        all("HttpRequest", r#"(("HttpRequest" OR "Http Request"))"#);
        all("http_request", r#"(("http request" OR "httprequest"))"#);
        all("v0.14.2 RTX3060", r#"(("v0 14 2" OR "0 14 2") AND ("RTX3060" OR "RTX 3060"))"#);
        all("\"HttpRequest\" HttpR*", r#"("HttpRequest" AND "httpr"*)"#);
        all("x -HttpRequest", r#"(("x") NOT "HttpRequest")"#);
        all("C++ c#", "(\"C\u{FDD01}\" AND \"c\u{FDD02}\")");
        all("Straße 電腦", r#"("Strasse" AND "电 脑")"#);
    }

    #[test]
    fn the_columns_of_the_query_are_named() {
        let written = |text| Query::parse(text).to_fts_all();
        assert_eq!(written("a -bat").as_deref(), Some(r#"text : (("a") NOT "bat")"#));
        assert_eq!(written("in:tools a").as_deref(), Some(r#"tools : ("a")"#));
    }

    #[test]
    fn without_a_required_term_there_is_no_expression() {
        for text in ["", "-ant", "role:user", "???", "\0"] {
            assert_eq!(Query::parse(text).to_fts_all(), None, "{text:?}");
        }
        assert_eq!(
            Query::parse("-ant -bat").to_fts_excluded().as_deref(),
            Some(r#"text : (("ant" OR "bat"))"#)
        );
        assert_eq!(Query::parse("a").to_fts_excluded(), None);
    }

    #[test]
    fn terms_built_by_callers_cannot_leave_their_quotes() {
        let term = Term {
            tokens: vec!["a\" OR \"b\0".into(), "\"".into(), "重c".into()],
            ..Term::default()
        };
        let empty = Term { tokens: vec![String::new()], ..Term::default() };
        let query = Query { clauses: vec![vec![term, empty], vec![]], ..Query::default() };
        assert_eq!(query.to_fts_all().as_deref(), Some(r#"text : ("a OR b 重 c")"#));
    }

    #[test]
    fn a_query_of_filters_is_not_empty_but_has_no_terms() {
        let query = Query::parse("role:user");
        assert!(!query.is_empty() && !query.has_terms());
        assert!(Query::parse("in:tools").is_empty());
        assert!(Query::default().is_empty());
    }
}
