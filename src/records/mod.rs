//! How records of other programs become messages: fields, blocks of content, messages of chat APIs, ids, and the order of a
//! tree.
//!
//! `talktree-import` and `talktree-claude` read with it. It is not a part of the API, and changes without notice.

pub mod blocks;
pub mod chat;
pub mod fields;
pub mod ids;
pub mod order;
pub mod title;

pub use title::Title;
