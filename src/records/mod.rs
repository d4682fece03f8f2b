//! How records of other programs become messages: fields, blocks of content, messages of chat APIs, ids, the order of a tree,
//! and transcripts of Claude Code.
//!
//! `talktree-import` reads files with it, and a store projects the transcripts of agents with it. So the same entries give
//! the same session both ways. It is not a part of the API, and changes without notice.

pub mod blocks;
pub mod chat;
pub mod claude_code;
pub mod fields;
pub mod ids;
pub mod order;
pub mod title;

pub use title::Title;
