//! A parsed query: what must match, what must not, and filters.
//!
//! A *term* is a word, or a phrase of several tokens. A *clause* is a list of alternative terms: one of them must
//! match, and so must every clause. Terms keep the original spelling; their [phrases](Term::phrases) have normal forms.

use chrono::{DateTime, Utc};

use crate::chars::is_unigram;
use crate::date_hint::DateHint;
use crate::exact;
use crate::identifiers::spellings;
use crate::parser::{self, add_value};
use crate::token::tokens;

/// The maximum number of terms of a query, required and excluded together. The rest is ignored, with a notice.
///
/// ```
/// use talktree_text::{MAX_TERMS, Query};
///
/// let text: String = (0..=MAX_TERMS).map(|number| format!("word{number} ")).collect();
/// let query = Query::parse(&text);
/// assert_eq!((query.clauses.len(), query.notices.len()), (MAX_TERMS, 1));
/// ```
pub const MAX_TERMS: usize = 512;

/// A query with more terms is not a list of keywords, all of which a message must have, but a text.
pub(crate) const MAX_KEYWORDS: usize = 64;

/// The maximum number of tokens of a term. A longer phrase is truncated, with a notice.
///
/// ```
/// use talktree_text::{MAX_TERM_TOKENS, Query};
///
/// let query = Query::parse(&format!("\"{}\"", "word ".repeat(MAX_TERM_TOKENS + 1)));
/// assert_eq!(query.clauses[0][0].tokens.len(), MAX_TERM_TOKENS);
/// assert_eq!(query.notices.len(), 1);
/// ```
pub const MAX_TERM_TOKENS: usize = 64;

/// A word or phrase to find.
///
/// ```
/// use talktree_text::Query;
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
    /// Whether a message need not have it, as the date of a question: it counts in the order of hits.
    pub is_optional: bool,
    /// Other words or phrases that match as the term does: `Http Request` for `HttpRequest`. A search adds the forms of a
    /// word that the store has.
    pub forms: Vec<String>,
}

/// Alternative terms, of which one must match.
///
/// ```
/// use talktree_text::Query;
///
/// let query = Query::parse("red OR blue fox");
/// assert_eq!(query.clauses.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
/// ```
pub type Clause = Vec<Term>;

/// The part of a message that is searched.
///
/// ```
/// use talktree_text::{Columns, Query};
///
/// assert_eq!(Query::parse("deploy").filters.columns, Columns::All);
/// assert_eq!(Query::parse("deploy in:tools").filters.columns, Columns::Tools);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Columns {
    /// The text parts.
    Text,
    /// Reasoning, and the names, inputs and outputs of tools.
    Tools,
    /// Both. In the order of hits a word in tools counts less.
    #[default]
    All,
}

/// The conditions on a message other than words.
///
/// ```
/// use talktree_text::Query;
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
    /// The authors; empty for any.
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
    /// use talktree_text::Query;
    ///
    /// assert!(Query::parse("deploy -draft").filters.is_empty());
    /// assert!(!Query::parse("deploy role:user").filters.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self { columns: self.columns, ..Self::default() }
    }
}

/// A parsed query; see [`Query::parse`].
///
/// ```
/// use talktree_text::Query;
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
    /// | `author:ID` | written by this person; repeated: by one of them |
    /// | `tag:spam` | with this tag; repeated: with all of them |
    /// | `after:2026-01-31`, `before:7d` | from this date on; until before it; see [`parse_date`](crate::parse_date) |
    /// | `in:text`, `in:tools`, `in:all` | text parts, reasoning and tools, both (the default) |
    /// | `exact:"a ?? b"` | exactly these characters, in upper or lower case as written |
    ///
    /// A word with punctuation inside (`user@host`, `don't`) is a phrase of its parts, and so are adjacent characters
    /// of a script written without spaces. Values with blanks need quotes: `session:"my chat"`.
    ///
    /// ```
    /// # use talktree_text::Query;
    /// let query = Query::parse("deploy OR release -draft role:user");
    /// assert_eq!(query.clauses[0].len(), 2);
    /// assert_eq!(query.excluded[0].tokens, ["draft"]);
    /// assert_eq!(query.filters.roles, ["user"]);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Query {
        Self::parse_at(text, DateTime::from(std::time::SystemTime::now()))
    }

    /// Parses a query as of `now`, for dates like `yesterday` and `7d`.
    ///
    /// ```
    /// # use talktree_text::Query;
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
    /// # use talktree_text::Query;
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
    pub fn add_exact(&mut self, run: &str) {
        if run.is_empty() {
            return;
        }
        let known = self.filters.exact.len();
        add_value(&mut self.filters.exact, run);
        if self.filters.exact.len() > known {
            self.clauses.extend(exact::words(run).map(|term| vec![term]));
        }
    }

    /// Leaves out the words of a time, or makes them optional if they are a date, which a message may have, too. Keeps them if there are
    /// no others.
    pub fn set_time(&mut self, hint: &DateHint) {
        let is_time = |clause: &Clause| match &clause[..] {
            [term] if !term.is_quoted && !term.is_prefix => {
                forms(term.tokens.iter().map(String::as_str))
                    .iter()
                    .all(|form| hint.words.contains(form))
            }
            _ => false,
        };
        if self.clauses.iter().all(is_time) {
            return;
        }
        self.clauses.retain_mut(|clause| {
            let is_time = is_time(clause);
            clause.iter_mut().for_each(|term| term.is_optional |= is_time);
            hint.is_date || !is_time
        });
    }

    /// Returns whether the query finds nothing: it has no required term and no filter.
    ///
    /// ```
    /// use talktree_text::Query;
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
    /// use talktree_text::Query;
    ///
    /// assert!(Query::parse("deploy role:user").has_terms());
    /// assert!(!Query::parse("role:user").has_terms());
    /// ```
    #[must_use]
    pub fn has_terms(&self) -> bool {
        self.clauses.iter().flatten().any(|term| !term.is_empty())
    }
}

/// Words in a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Phrase {
    /// The normal forms of the words.
    pub words: Vec<String>,
    /// Whether the last word is the beginning of a word.
    pub is_prefix: bool,
}

/// What an engine looks up. An engine writes it in a language of its own, with each word quoted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A phrase.
    Phrase(Phrase),
    /// Any of these.
    Any(Vec<Expr>),
    /// All of these.
    All(Vec<Expr>),
    /// The first without the second.
    Without(Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Returns the expression for any of some terms; `None` if they have no word.
    #[must_use]
    pub fn any<'t>(terms: impl IntoIterator<Item = &'t Term>) -> Option<Self> {
        let mut phrases: Vec<Phrase> = Vec::new();
        for phrase in terms.into_iter().flat_map(Term::phrases) {
            if !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        Self::joined(phrases.into_iter().map(Expr::Phrase).collect(), Expr::Any)
    }

    /// Returns the expression for all of some clauses; `None` if they have no word.
    #[must_use]
    pub fn all<'t>(clauses: impl IntoIterator<Item = &'t Clause>) -> Option<Self> {
        let clauses: Vec<&Clause> = clauses.into_iter().collect();
        let is_required = |clause: &&&Clause| clause.iter().any(|term| !term.is_optional);
        let has_required = clauses.iter().any(|clause| is_required(&clause));
        let clauses = clauses.iter().filter(|clause| !has_required || is_required(clause));
        let mut all: Vec<Expr> = Vec::new();
        for clause in clauses.copied().filter_map(Expr::any) {
            // An engine would read the list of a repeated clause again.
            if !all.contains(&clause) {
                all.push(clause);
            }
        }
        Self::joined(all, Expr::All)
    }

    fn joined(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Option<Self> {
        if parts.len() > 1 { Some(join(parts)) } else { parts.pop() }
    }

    /// Returns the expression without what another one matches.
    #[must_use]
    pub fn without(self, other: Option<Expr>) -> Self {
        match other {
            Some(other) => Self::Without(Box::new(self), Box::new(other)),
            None => self,
        }
    }
}

impl Term {
    /// Returns the phrases that match as the term does: its own words, and its forms.
    #[must_use]
    pub fn phrases(&self) -> Vec<Phrase> {
        // The fields are public and may hold anything, so they are cut again: no quote and no NUL is part of a word.
        let words: Vec<String> = forms(self.tokens.iter().map(String::as_str));
        let mut phrases = Vec::with_capacity(1 + self.forms.len());
        if !words.is_empty() {
            phrases.push(Phrase { words, is_prefix: self.is_prefix });
        }
        for form in &self.forms {
            let words = forms([form.as_str()]);
            if !words.is_empty() {
                phrases.push(Phrase { words, is_prefix: false });
            }
        }
        phrases
    }

    /// Returns the pieces that are searched if the whole term is not found; none for a word or a quoted phrase.
    ///
    /// Each word is a piece, except single letters (the `t` of `don't`). Of adjacent unigrams each pair is a piece:
    /// one character is too common, and a whole sentence too rare.
    pub(crate) fn pieces(&self) -> Vec<Term> {
        if self.is_quoted || self.tokens.len() < 2 {
            return Vec::new();
        }
        let is_run = |token: &String| token.chars().next().is_some_and(is_unigram);
        let is_letter =
            |token: &String| matches!(token.as_bytes(), [byte] if byte.is_ascii_alphabetic());
        let mut pieces = Vec::new();
        for run in self.tokens.chunk_by(|a, b| is_run(a) && is_run(b)) {
            if !is_letter(&run[0]) {
                let forms = |tokens: &[String]| match tokens {
                    [token] => spellings(tokens, token),
                    _ => Vec::new(),
                };
                let piece = |tokens: &[String]| Term {
                    tokens: tokens.to_vec(),
                    forms: forms(tokens),
                    ..Term::default()
                };
                pieces.extend(run.windows(run.len().min(2)).map(piece));
            }
        }
        // A piece is shorter than the term.
        pieces.retain(|piece| piece.tokens.len() < self.tokens.len());
        if let (true, Some(piece)) = (self.is_prefix, pieces.last_mut())
            && let [token] = &piece.tokens[..]
            && self.tokens.last() == Some(token)
        {
            (piece.is_prefix, piece.forms) = (true, Vec::new());
        }
        pieces
    }

    /// Returns whether the term has no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.tokens.iter().any(|token| tokens(token).next().is_some())
    }
}

/// Returns the normal forms of the words of some texts.
fn forms<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let words = texts.into_iter().flat_map(|text| tokens(text).collect::<Vec<_>>());
    words.take(MAX_TERM_TOKENS).map(|token| token.form().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_again_whatever_a_term_holds() {
        let term = Term { tokens: vec!["a\" OR b\0".into(), "*".into()], ..Term::default() };
        assert_eq!(
            term.phrases(),
            [Phrase { words: vec!["a".into(), "or".into(), "b".into()], is_prefix: false }]
        );
    }

    #[test]
    fn a_repeated_clause_is_looked_up_once() {
        assert_eq!(
            Expr::all(&Query::parse("red Red réd").clauses),
            Expr::all(&Query::parse("red").clauses)
        );
    }
}
