//! Context: what a model should know beside the conversation.
//!
//! A [`Block`] says what is behind a label: a text, a stored text, a provider. What a block can do
//! follows from what is behind it: to be read, to be written, to give documents by key (skills), to
//! be searched. All blocks, rendered one below the other, are the system prompt; it is frozen once
//! rendered, so that a provider's cache of it holds, and drift says where the blocks have moved on
//! since. Tools let the model itself write, load and search.
//!
//! What is here needs no storage: it is given texts and gives texts.
//!
//! Invariant: nothing here names a backend or a session.

mod block;
mod drift;
mod folder;
mod front_matter;
mod loaded;
mod markdown;
mod prompt;
mod provider;
mod slug;
mod tool;

pub use block::{Block, BlockInfo};
pub use drift::{Drift, DriftKind};
pub use folder::SkillFolder;
pub use provider::{
    BoxError, Document, ReadProvider, SearchProvider, SkillProvider, WriteProvider,
};
pub use tool::{ToolDefinition, Tools};
