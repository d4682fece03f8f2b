//! Alternatives to a query that finds nothing.
//!
//! An *alternative* is the query with one condition less: without its roles, without its dates, without its quotes.
//! Each is tried, and returned only if it finds something. An alternative never leaves the scope of the search.

use std::time::Instant;

use serde::Serialize;
use talktree_text::{Columns, Filter, Lexeme, LexemeKind, lex, tokens};

use super::SearchRequest;
use crate::error::Result;

/// How an [`Alternative`] differs from the query.
///
/// ```
/// use talktree::search::Widening;
///
/// assert_eq!(Widening::AnyRole.to_string(), "for any role");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Widening {
    /// Messages of any role.
    AnyRole,
    /// Messages of any time.
    AnyTime,
    /// All sessions in scope.
    AnySession,
    /// Messages of any author.
    AnyAuthor,
    /// Messages with any tags.
    AnyTag,
    /// Text, reasoning and tools.
    AllColumns,
    /// Without the excluded words.
    NothingExcluded,
    /// The words of a phrase anywhere in the message.
    LoosePhrase,
    /// Without any filter, in all columns.
    NoFilter,
}

impl std::fmt::Display for Widening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AnyRole => "for any role",
            Self::AnyTime => "at any time",
            Self::AnySession => "in all sessions",
            Self::AnyAuthor => "by any author",
            Self::AnyTag => "with any tags",
            Self::AllColumns => "in text, reasoning and tools",
            Self::NothingExcluded => "without excluding words",
            Self::LoosePhrase => "with the words of the phrase in any place",
            Self::NoFilter => "without filters",
        })
    }
}

/// A query that finds something where another one found nothing.
///
/// ```
/// use talktree::search::Widening;
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// let alternatives = store.search("role:assistant friday").alternatives()?;
/// assert_eq!(alternatives[0].widening, Widening::AnyRole);
/// assert_eq!(alternatives[0].query, "friday");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Alternative {
    /// How it differs from the query.
    pub widening: Widening,
    /// The other query.
    pub query: String,
}

/// Returns the alternatives of a request that find something. `finds` runs a request.
pub(super) fn of(
    request: &SearchRequest,
    mut finds: impl FnMut(&SearchRequest) -> Result<bool>,
) -> Result<Vec<Alternative>> {
    if request.is_plain {
        return Ok(Vec::new());
    }
    let until = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut finds = |query: &str| {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if timeout.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        let mut other =
            SearchRequest { text: query.to_owned(), limit: 1, offset: 0, ..request.clone() };
        other.timeout = timeout;
        finds(&other)
    };
    let parts: Vec<Lexeme<'_>> = lex(&request.text).collect();
    let mut found = Vec::new();
    let mut queries = widened(&parts, request.query().filters.columns);
    let last = queries.pop_if(|last| last.widening == Widening::NoFilter);
    for alternative in queries {
        // For `-role:user` the query without filters is the one without excluded words.
        let is_known = found.iter().any(|it: &Alternative| it.query == alternative.query);
        if !is_known && finds(&alternative.query)? {
            found.push(alternative);
        }
    }
    if let Some(last) = last.filter(|_| found.is_empty())
        && finds(&last.query)?
    {
        found.push(last);
    }
    Ok(found)
}

/// Returns the query with one kind of condition less, for each kind that it has.
fn widened(parts: &[Lexeme<'_>], columns: Columns) -> Vec<Alternative> {
    let is = |part: &Lexeme<'_>, filters: &[Filter]| matches!(part.kind, LexemeKind::Filter { filter, .. } if filters.contains(&filter));
    let without = |filters: &'static [Filter]| {
        move |part: &Lexeme<'_>| {
            if is(part, filters) { String::new() } else { part.written.to_owned() }
        }
    };
    let all_columns = |query: String| format!("in:all {query}").trim_end().to_owned();
    let mut all = Vec::new();
    let mut add = |widening, query: String| all.push(Alternative { widening, query });
    for (widening, filters) in [
        (Widening::AnyRole, &[Filter::Role][..]),
        (Widening::AnyTime, &[Filter::After, Filter::Before]),
        (Widening::AnySession, &[Filter::Session]),
        (Widening::AnyAuthor, &[Filter::Author]),
        (Widening::AnyTag, &[Filter::Tag]),
    ] {
        if parts.iter().any(|part| is(part, filters)) {
            add(widening, rewritten(parts, without(filters)));
        }
    }
    if columns != Columns::All {
        add(Widening::AllColumns, all_columns(rewritten(parts, without(&[Filter::In]))));
    }
    if parts.iter().any(|part| part.is_excluded) {
        let kept = |part: &Lexeme<'_>| if part.is_excluded { "" } else { part.written }.to_owned();
        add(Widening::NothingExcluded, rewritten(parts, kept));
    }
    let is_phrase =
        |part: &Lexeme<'_>| matches!(part.kind, LexemeKind::Phrase { .. }) && !part.is_excluded;
    if parts.iter().any(is_phrase) {
        add(
            Widening::LoosePhrase,
            rewritten(parts, |part| match part.kind {
                LexemeKind::Phrase { text, .. } if !part.is_excluded => words(text),
                _ => part.written.to_owned(),
            }),
        );
    }
    const FILTERS: &[Filter] = &[
        Filter::Role,
        Filter::Session,
        Filter::Author,
        Filter::Tag,
        Filter::After,
        Filter::Before,
        Filter::In,
    ];
    if parts.iter().any(|part| is(part, FILTERS)) {
        add(Widening::NoFilter, all_columns(rewritten(parts, without(FILTERS))));
    }
    all
}

/// Returns the words of a phrase, none of which is an operator.
fn words(phrase: &str) -> String {
    let words = tokens(phrase).map(|token| token.text()).filter(|word| *word != "OR");
    words.collect::<Vec<_>>().join(" ")
}

/// Returns what a query says: its words and phrases, without filters, minus signs and excluded words.
pub(super) fn spoken(text: &str) -> String {
    let parts: Vec<Lexeme<'_>> = lex(text).collect();
    rewritten(&parts, |part| match part.kind {
        _ if part.is_excluded => String::new(),
        LexemeKind::Phrase { text, .. } => text.to_owned(),
        LexemeKind::Filter { .. } => String::new(),
        LexemeKind::Word(word) => word.to_owned(),
    })
}

fn rewritten(parts: &[Lexeme<'_>], mut write: impl FnMut(&Lexeme<'_>) -> String) -> String {
    let written = parts.iter().map(&mut write).filter(|part| !part.is_empty());
    written.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Scope;

    /// Asserts the alternatives of `text` if only the queries in `found` find something.
    #[track_caller]
    fn gives(text: &str, found: &[&str], expected: &[&str]) {
        let request = SearchRequest::new(text, Scope::Store);
        let finds = |request: &SearchRequest| Ok(found.contains(&request.text.as_str()));
        let all: Vec<String> =
            of(&request, finds).unwrap_or_default().into_iter().map(|one| one.query).collect();
        assert_eq!(all, expected, "{text}");
    }

    #[test]
    fn one_kind_of_condition_is_left_out_at_a_time() {
        gives("role:user fox role:tool", &["fox"], &["fox"]);
        gives("after:2023 fox before:7d", &["fox"], &["fox"]);
        gives("fox session:\"my chat\"", &["fox"], &["fox"]);
        gives("fox in:tools", &["in:all fox"], &["in:all fox"]);
        gives("fox in:text", &["in:all fox"], &["in:all fox"]);
        gives("fox -den -\"a b\"", &["fox"], &["fox"]);
        gives("role:user \"red OR fox\"", &["role:user red fox"], &["role:user red fox"]);
        gives("fox in:all", &["fox"], &[]);
        gives("fox -role:user", &["fox"], &["fox"]);
    }

    #[test]
    fn all_filters_are_left_out_if_one_is_not_enough() {
        let text = "role:user after:2023 fox";
        gives(text, &["in:all fox"], &["in:all fox"]);
        gives(text, &["in:all fox", "role:user fox"], &["role:user fox"]);
    }

    #[test]
    fn a_plain_text_and_a_spent_timeout_have_no_alternatives() -> Result<()> {
        let mut request = SearchRequest::new("role:user fox", Scope::Store);
        request.timeout = Some(std::time::Duration::ZERO);
        assert_eq!(of(&request, |_| Ok(true))?, []);
        request.timeout = None;
        assert!(!of(&request, |_| Ok(true))?.is_empty());
        request.is_plain = true;
        assert_eq!(of(&request, |_| Ok(true))?, []);
        Ok(())
    }
}
