//! The words of talktree: cuts texts of any language into words, reads queries, ranks texts, and shows why they were found.
//!
//! No I/O, and nothing here knows what a message is. An engine stores [`terms`]: a text's words in their [normal form](normal_form). A
//! [`Query`] is what a person types. An [`Analysis`] says what of it must match, and gives an engine the [`Expr`] to look up. A
//! [`Finder`] finds the words of a query in a text: [`rank()`] counts them, and a [`Snippet`] shows them.
//!
//! In the order of use: `token` cuts and normalizes with the tables of `chars`, `identifiers` adds the parts of identifiers; `lexer` and
//! `parser` make a `query`, with the dates of `date`; `language` and `forms` say which other words may be meant, and
//! `date_hint` which time; `analysis` divides the query into units; `finder` finds them, `rank` scores, `snippet` shows.

mod analysis;
mod chars;
mod date;
mod date_hint;
mod exact;
mod finder;
pub mod foreign;
mod forms;
mod identifiers;
mod language;
mod lexer;
mod parser;
mod query;
mod rank;
mod snippet;
mod token;

pub use analysis::{Analysis, Unit};
pub use chars::{is_space_or_control, is_unigram};
pub use date::{EXPECTED as DATES, parse_date};
pub use date_hint::{DateHint, date_hint};
pub use exact::holds as holds_exactly;
pub use finder::{Finder, Match};
pub use forms::{Misspelled, Stems, spellings, splits};
pub use identifiers::terms;
pub use language::{Language, StopWords, languages};
pub use lexer::{Filter, Lexeme, LexemeKind, lex};
pub use query::{Clause, Columns, Expr, Filters, MAX_TERM_TOKENS, MAX_TERMS, Phrase, Query, Term};
pub use rank::{Candidate, Corpus, Ranking, inverse_frequency, rank};
pub use snippet::{SNIPPET_CHARS, Snippet, snippet};
pub use token::{Token, normal_form, tokens};
