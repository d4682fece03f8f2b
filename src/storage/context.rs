//! The texts of a context: of blocks, in a frozen prompt, and the elisions of a history.
//!
//! A text belongs to a [`BlockScope`] and has a label and a key: the block's own text has the empty key, a document any
//! other. Each put and each removal is a version. Earlier versions are kept and can be put again. A frozen prompt is
//! stored as its sections. Clearing the session and adding a compaction remove it, and so does a change of the owner.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::{MessageId, check_name, check_name_length};

/// How many versions of a text are kept, the current one included; the oldest are removed first.
pub(crate) const MAX_VERSIONS: u64 = 1_000;

/// Whose the texts of a block are.
///
/// ```
/// use talktree::BlockScope;
///
/// assert_eq!(BlockScope::default(), BlockScope::Session);
/// assert!(BlockScope::Session < BlockScope::Owner && BlockScope::Owner < BlockScope::Shared);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockScope {
    /// One session's: they are removed with the session, and a fork starts with a copy.
    #[default]
    Session,
    /// All sessions' of the session's owner: they stay when a session is removed, and a fork has them, too, because it
    /// has the same owner.
    Owner,
    /// All sessions'.
    Shared,
}

/// A marker that replaces the output of a tool call when a history is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Elision {
    /// The message.
    pub(crate) message: MessageId,
    /// The id of the tool call.
    pub(crate) call: String,
    /// What a history shows instead of the output.
    pub(crate) marker: String,
}

/// A stored text of a block: the block's own text has the empty key, a document any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name of the document in its block; empty for the block's own text.
    pub(crate) key: String,
    /// The name for people.
    pub(crate) title: Option<String>,
    /// One line on what it is about.
    pub(crate) description: Option<String>,
    /// The text.
    pub(crate) content: String,
    /// The number of this version, from 1.
    pub(crate) version: u64,
    /// When this version was put.
    pub(crate) changed_at: DateTime<Utc>,
}

/// A document without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryInfo {
    /// The name of the document in its block.
    pub key: String,
    /// The name for people.
    pub title: Option<String>,
    /// One line on what it is about.
    pub description: Option<String>,
    /// The number of the current version, from 1.
    pub version: u64,
    /// When the current version was put.
    pub changed_at: DateTime<Utc>,
}

/// One version of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryVersion {
    /// Its number, from 1.
    pub version: u64,
    /// The name for people in this version.
    pub title: Option<String>,
    /// One line on what it was about.
    pub description: Option<String>,
    /// The text; `None` if this version is a removal.
    pub content: Option<String>,
    /// When this version was put or removed.
    pub changed_at: DateTime<Utc>,
}

/// A label that has at least one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoredLabel {
    /// The label.
    pub label: String,
    /// Whether the block has its own text, under the empty key.
    pub has_text: bool,
    /// Whether the block has documents.
    pub has_documents: bool,
    /// Whether the documents can be searched.
    pub is_searchable: bool,
}

/// A text to put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NewEntry<'a> {
    /// The name of the document in its block; empty for the block's own text.
    pub(crate) key: &'a str,
    /// The name for people.
    pub(crate) title: Option<&'a str>,
    /// One line on what it is about.
    pub(crate) description: Option<&'a str>,
    /// The text.
    pub(crate) content: &'a str,
}

/// One section of a frozen prompt: its header, a line break, its content. The prompt joins all sections with an empty
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PromptSection {
    /// The label of the block.
    pub(crate) label: String,
    /// The line above the content.
    pub(crate) header: String,
    /// The content of the block when the prompt was frozen.
    pub(crate) content: String,
}

impl BlockScope {
    /// All scopes, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Session, Self::Owner, Self::Shared];
}

impl<'a> NewEntry<'a> {
    /// Returns a text to put, without title and description.
    pub(crate) fn new(key: &'a str, content: &'a str) -> Self {
        Self { key, content, ..Self::default() }
    }
}

/// Checks the names of a new text.
pub(crate) fn check(label: &str, entry: &NewEntry<'_>) -> Result<()> {
    check_name("context label", label)?;
    check_name_length("context key", entry.key)
}
