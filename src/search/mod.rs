//! Search: what can be asked and what is found.
//!
//! A [`Query`] is what a person types. A [`SearchRequest`] puts it to a [`Scope`]; the answer is
//! [`Found`]: hits, best first, and how the query was read.

mod hit;
mod request;

pub use hit::{Found, Hit, Matched, SessionHit, SessionsFound};
pub use request::{Scope, SearchRequest};
