//! A Model Context Protocol server over a store: a model searches, lists and reads stored conversations.
//!
//! [`serve`] answers the lines of a client until its input ends. [`Access`] says what the model may see, and whether it may write.
//!
//! - `protocol`: lines, JSON-RPC, versions, cancellation; `methods`: what is requested: tools, resources, prompts;
//! - `tools`: what is offered (`offers.json`), and the check of what a model gives; `find`, `read`, `notes`: what the tools do;
//! - `answer`: how texts from the store are quoted, and cut.
//!
//! Invariant: every text from the store is quoted, so that an old message cannot pass for an instruction. A line that begins with
//! `> ` is a quotation, whatever it says; a name is in one of our lines, one word or in quotation marks.

mod access;
mod answer;
mod find;
mod methods;
mod notes;
mod protocol;
mod read;
mod tools;

pub use access::Access;
pub use protocol::serve;

/// Runs the examples of the document.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/mcp.md")]
    mod mcp {}
}
