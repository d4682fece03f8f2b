//! Search: requests, results and steps. The words are those of [`talktree_text`].
//!
//! A [`Query`] is what a person types. A request adds a scope and a page; the result is [`Found`]: hits,
//! best first, and whether the query was relaxed. The storage keeps the index, finds candidates and ranks them by
//! `talktree-text`; `indexed_text` says what of a message is searched. If nothing was found, `alternative` looks for a query that
//! finds something.
//!
//! Invariant: a text and a query are cut by one tokenizer, so every substring of whole words is found.

mod alternative;
mod builder;
mod hit;
pub(crate) mod indexed_text;
mod request;
mod step;

pub use alternative::{Alternative, Widening};
pub(crate) use builder::SearchTarget;
pub use builder::{Search, SearchBySession};
pub use hit::{Found, Hit, Matched, SessionHit, SessionsFound};
pub(crate) use request::HITS_PER_SESSION;
pub use request::MAX_EXPANSIONS;
pub(crate) use request::{Scope, SearchRequest};
pub use step::{Step, Taken};
pub use talktree_text::{
    Clause, Columns, Filters, MAX_TERM_TOKENS, MAX_TERMS, Query, SNIPPET_CHARS, Snippet, Term,
    parse_date,
};
