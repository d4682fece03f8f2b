//! A search as it was understood: what must be found, what must not, where and when.
//!
//! A *term* is a word, or a phrase of several tokens. A *clause* is a list of terms of which one must be found; all
//! clauses must be. Terms hold the original spelling: the index folds and stems them as it did the text. A query is
//! written for FTS5 in two readings: every clause, or, where that finds too little, any word.
//!
//! Invariant: what reaches FTS5 is tokens in double quotes and operators of our own, whatever a term was made of.

use chrono::{DateTime, Utc};

use crate::search::parse;
use crate::search::prefix::{completions, spelling};
use crate::search::script::is_cut;
use crate::search::token::tokens;

/// Most terms a query may have, required and excluded together; what goes beyond is left out, with a notice.
///
/// ```
/// use talktree::{Query, search::MAX_TERMS};
///
/// let query = Query::parse(&"word ".repeat(MAX_TERMS + 1));
/// assert_eq!((query.clauses.len(), query.notices.len()), (MAX_TERMS, 1));
/// ```
pub const MAX_TERMS: usize = 64;

/// Most tokens one term may have; a longer phrase is cut there, with a notice.
///
/// ```
/// use talktree::{Query, search::MAX_TERM_TOKENS};
///
/// let query = Query::parse(&format!("\"{}\"", "word ".repeat(MAX_TERM_TOKENS + 1)));
/// assert_eq!(query.clauses[0][0].tokens.len(), MAX_TERM_TOKENS);
/// assert_eq!(query.notices.len(), 1);
/// ```
pub const MAX_TERM_TOKENS: usize = 64;

/// One word or one phrase to look for.
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse(r#""red fox" comp*"#);
/// let (phrase, start) = (&query.clauses[0][0], &query.clauses[1][0]);
/// assert_eq!(phrase.tokens, ["red", "fox"]);
/// assert!(phrase.is_quoted && start.is_prefix);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// The words in order, as they were spelled. One character each in scripts written without spaces.
    pub tokens: Vec<String>,
    /// Whether the last token may go on: `comp*` finds `compaction`.
    pub is_prefix: bool,
    /// Whether the phrase was put in quotes, and so is never taken apart.
    pub is_quoted: bool,
}

/// Terms of which one must be found.
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse("red OR blue fox");
/// assert_eq!(query.clauses.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
/// ```
pub type Clause = Vec<Term>;

/// Which part of a message is searched.
///
/// ```
/// use talktree::{Query, search::Columns};
///
/// assert_eq!(Query::parse("deploy").filters.columns, Columns::Text);
/// assert_eq!(Query::parse("deploy in:tools").filters.columns, Columns::Tools);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Columns {
    /// What was said: the text parts.
    #[default]
    Text,
    /// Reasoning, and the input and output of tools.
    Tools,
    /// Both.
    All,
}

/// What a message must satisfy beside its words.
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
    /// Roles, of which the message has one; empty for any.
    pub roles: Vec<String>,
    /// Ids of sessions, of which the message is in one; empty for any.
    pub sessions: Vec<String>,
    /// The earliest time, inclusive.
    pub after: Option<DateTime<Utc>>,
    /// The first time that is too late.
    pub before: Option<DateTime<Utc>>,
    /// Which part of the message is searched.
    pub columns: Columns,
}

impl Filters {
    /// Returns whether every message passes.
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
            && self.after.is_none()
            && self.before.is_none()
    }
}

/// A search, as [`Query::parse`] understood it.
///
/// ```
/// use talktree::Query;
///
/// let query = Query::parse("deploy after:someday");
/// assert_eq!(query.clauses[0][0].tokens, ["deploy"]);
/// assert_eq!(query.clauses[1][0].tokens, ["after", "someday"]); // no date: words
/// assert_eq!(query.notices.len(), 1); // which says so
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// All of these must be found, each by one of its terms.
    pub clauses: Vec<Clause>,
    /// None of these may be found.
    pub excluded: Vec<Term>,
    /// What the message must satisfy beside its words.
    pub filters: Filters,
    /// What was not understood or left out, for the one who asked.
    pub notices: Vec<String>,
}

impl Query {
    /// Returns the query that `text` asks for. Never fails; what it could not take is told in [`notices`](Self::notices).
    ///
    /// | written | means |
    /// |---|---|
    /// | `red fox` | both words, anywhere |
    /// | `"red fox"` | the phrase; without the closing quote, to the end |
    /// | `comp*` | words that start so; also the last word of a phrase |
    /// | `-red`, `-"red fox"` | not this |
    /// | `red OR blue fox` | `fox`, and one of the others |
    /// | `role:user` | by this role; repeated: by one of them |
    /// | `session:ID` | in this session; repeated: in one of them |
    /// | `after:2026-01-31`, `before:2026-02-01T12:00:00Z` | from this UTC day or instant on; until before it |
    /// | `in:text`, `in:tools`, `in:all` | what was said (also without `in:`), reasoning and tools, both |
    ///
    /// A word with punctuation inside (`user@host`, `don't`) is a phrase of its pieces, and so is a run of characters
    /// of a script written without spaces. Values with blanks stand in quotes: `session:"my chat"`.
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
        parse::parse(text)
    }

    /// Returns whether nothing can be found: no word is required, and no filter narrows.
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

    /// Returns whether a word or phrase is required. Without one, all that passes the filters is meant.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// assert!(Query::parse("deploy role:user").has_terms());
    /// assert!(!Query::parse("role:user").has_terms());
    /// ```
    #[must_use]
    pub fn has_terms(&self) -> bool {
        self.clauses.iter().flatten().any(|term| !term.is_blank())
    }

    /// Returns the FTS5 expression that finds every clause and nothing excluded; none if no word is required.
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
        let clauses: Vec<_> = self.clauses.iter().filter_map(|clause| any_of(clause)).collect();
        self.expression(&clauses.join(" AND "))
    }

    /// Returns the FTS5 expression that finds what is excluded; none if nothing is.
    ///
    /// For a query of filters and exclusions alone, whose matches are to be taken from what passes the filters.
    ///
    /// ```
    /// use talktree::Query;
    ///
    /// let query = Query::parse("role:user -draft in:all");
    /// assert_eq!(query.to_fts_excluded().unwrap(), r#"("draft")"#);
    /// ```
    #[must_use]
    pub fn to_fts_excluded(&self) -> Option<String> {
        Some(format!("{}({})", self.column_filter(), any_of(&self.excluded)?))
    }

    /// Returns `required` without what is excluded, in the columns asked for.
    fn expression(&self, required: &str) -> Option<String> {
        let columns = self.column_filter();
        match any_of(&self.excluded) {
            _ if required.is_empty() => None,
            None => Some(format!("{columns}({required})")),
            Some(excluded) => Some(format!("{columns}(({required}) NOT {excluded})")),
        }
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
    /// Returns the parts that may stand for the term where it is not found whole; none for a word or a quoted phrase.
    ///
    /// Words are a part each, but for single letters (the `t` of `don't`). Of a run of cut characters each pair of
    /// neighbours is one: a single character says too little, and a whole sentence is found nowhere.
    pub(crate) fn pieces(&self) -> Vec<Term> {
        if self.is_quoted || self.tokens.len() < 2 {
            return Vec::new();
        }
        let is_run = |token: &String| token.chars().all(is_cut);
        let mut pieces = Vec::new();
        for run in self.tokens.chunk_by(|a, b| is_run(a) && is_run(b)) {
            let is_single_letter = !is_run(&run[0]) && run[0].chars().nth(1).is_none();
            if !is_single_letter {
                let part = |tokens: &[String]| Term { tokens: tokens.to_vec(), ..Term::default() };
                pieces.extend(run.windows(run.len().min(2)).map(part));
            }
        }
        // The whole term is no piece of itself.
        pieces.retain(|piece| piece.tokens.len() < self.tokens.len());
        if let (true, Some(piece)) = (self.is_prefix, pieces.last_mut()) {
            piece.is_prefix = piece.tokens.last() == self.tokens.last();
        }
        pieces
    }

    /// Returns whether there is nothing to look for.
    pub(crate) fn is_blank(&self) -> bool {
        !self.tokens.iter().any(|token| tokens(token).next().is_some())
    }

    /// Returns the term as FTS5 reads it: a quoted string, with a star and the words it would miss if it is a prefix.
    ///
    /// The fields are public and may hold anything, so only what the tokenizer calls a token is written: neither a
    /// quote nor a NUL is one.
    fn to_fts(&self) -> Vec<String> {
        let words = self.tokens.iter().flat_map(|token| tokens(token)).map(|token| token.text());
        let mut words: Vec<_> = words.take(MAX_TERM_TOKENS).collect();
        let Some(last) = words.pop() else { return Vec::new() };
        let start = words.iter().fold(String::new(), |start, word| start + word + " ");
        if !self.is_prefix {
            return vec![format!("\"{start}{last}\"")];
        }
        let others = completions(last).into_iter().map(|word| format!("\"{start}{word}\""));
        std::iter::once(format!("\"{start}{}\"*", spelling(last))).chain(others).collect()
    }
}

/// Returns the FTS5 expression for one of `terms`, in parentheses if there are several.
fn any_of(terms: &[Term]) -> Option<String> {
    let written: Vec<_> = terms.iter().flat_map(Term::to_fts).collect();
    match written.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("({})", several.join(" OR "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds that `text` is written for FTS5 as `expected` when all words are required, in all columns.
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

    #[test]
    fn runs_and_mixed_words_are_phrases() {
        all("北京 Rust语言", r#"("北 京" AND "Rust 语 言")"#);
        all("don't user@host", r#"("don t" AND "user host")"#);
    }

    #[test]
    fn the_column_asked_for_is_named() {
        let written = |text| Query::parse(text).to_fts_all();
        assert_eq!(written("a -b").as_deref(), Some(r#"text : (("a") NOT "b")"#));
        assert_eq!(written("in:tools a").as_deref(), Some(r#"tools : ("a")"#));
    }

    #[test]
    fn nothing_required_is_no_expression() {
        for text in ["", "-a", "role:user", "???", "\0"] {
            assert_eq!(Query::parse(text).to_fts_all(), None, "{text:?}");
        }
        assert_eq!(
            Query::parse("-a -b").to_fts_excluded().as_deref(),
            Some(r#"text : (("a" OR "b"))"#)
        );
        assert_eq!(Query::parse("a").to_fts_excluded(), None);
    }

    #[test]
    fn terms_made_by_hand_cannot_leave_their_quotes() {
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
