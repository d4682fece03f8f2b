//! Search: the query language, the tokenizer, ranking and snippets. No I/O.
//!
//! A [`Query`] is what a person types. A [`SearchRequest`] adds a [`Scope`] and a page; the result is [`Found`]: hits,
//! best first, and whether the query was relaxed. The storage keeps the index and finds candidates; this module
//! supplies everything else, in the order of use: `indexed_text` and `script` produce the text that is indexed, with the
//! spellings of `folding` and the parts of `identifiers`; `lexer`
//! and `parser` make the query; `analysis` decides what must match and what counts; `pruning` selects the words to look
//! up; `spelling` compares the vowel signs that the index does not have; `scanner` counts them in a candidate and `rank` scores
//! it; `matcher` and `snippet` show why it was found. If nothing was
//! found, `alternative` looks for a query that finds something.
//!
//! Invariant: a text and a query pass through the same tokenizer, so every substring of whole words is found.
//!
//! Invariant: each character of a script written without spaces is a token, so words of one or two characters are found.

mod alternative;
pub(crate) mod analysis;
mod builder;
mod date;
pub(crate) mod date_hint;
mod dictionary;
pub(crate) mod exact;
pub(crate) mod folding;
#[cfg(feature = "stemmers")]
pub(crate) mod forms;
mod hit;
pub(crate) mod identifiers;
pub(crate) mod indexed_text;
pub(crate) mod ladder;
pub(crate) mod language;
mod lexer;
pub(crate) mod matcher;
mod parser;
pub(crate) mod prefix;
pub(crate) mod pruning;
pub(crate) mod query;
pub(crate) mod rank;
mod request;
pub(crate) mod scanner;
pub(crate) mod script;
pub(crate) mod snippet;
pub(crate) mod spelling;
pub(crate) mod stemmer;
pub(crate) mod tokenizer;
mod unicode_tables;
pub(crate) mod vocabulary;
pub(crate) mod word;

pub use crate::embedding::QueryVector;
pub use alternative::{Alternative, Widening};
pub(crate) use builder::SearchTarget;
pub use builder::{Search, SearchBySession};
pub use date::parse_date;
pub use hit::{Found, Hit, Matched, SessionHit, SessionsFound};
pub use ladder::{Step, Taken};
pub use query::{
    Clause, Columns, Filters, MAX_EXPANSIONS, MAX_TERM_TOKENS, MAX_TERMS, Query, Term,
};
pub(crate) use request::HITS_PER_SESSION;
pub use request::{Scope, SearchRequest};
pub use snippet::{SNIPPET_CHARS, Snippet};
