//! Search: what can be asked, how text is cut and matched, and what is found.
//!
//! A [`Query`] is what a person types. A [`SearchRequest`] puts it to a [`Scope`]; the answer is
//! [`Found`]: hits, best first, and how the query was read. Scripts written without spaces are cut
//! into characters, for the index and for the query alike, so that one- and two-character words
//! are found. No I/O here: the index itself is the storage's.

mod builder;
pub(crate) mod choose;
mod hit;
pub(crate) mod indexed;
mod lex;
mod parse;
mod prefix;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod reading;
mod request;
pub(crate) mod scan;
pub(crate) mod script;
pub(crate) mod snippet;
pub(crate) mod spot;
pub(crate) mod stem;
pub(crate) mod stop;
mod tables;
pub(crate) mod token;
pub(crate) mod when;
mod words;

pub(crate) use builder::SearchTarget;
pub use builder::{Search, SearchBySession};
pub use hit::{Found, Hit, Matched, SessionHit, SessionsFound};
pub use query::{Clause, Columns, Filters, MAX_TERM_TOKENS, MAX_TERMS, Query, Term};
pub(crate) use request::HITS_PER_SESSION;
pub use request::{Scope, SearchRequest};
pub use snippet::{SNIPPET_CHARS, Snippet};
