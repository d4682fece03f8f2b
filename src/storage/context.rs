//! The doorway to the context's storage: the texts of blocks, frozen prompts, elisions.
//!
//! A text belongs to an [`Owner`] and lies under a label and a key: the block's own text under the
//! empty key, a document of it under any other. Each text that is put or taken away is a version;
//! the versions before stay, so that any of them can be put again. A frozen prompt is the sections
//! it was frozen with; only [`thaw`](ContextStore::thaw) and [`refreeze`](ContextStore::refreeze)
//! change it, and what a session does to its conversation as a whole: to clear it or to compact a
//! stretch of it thaws the prompt.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::{MessageId, SessionId};
use crate::search::{Found, Matched, SearchRequest};

/// How many versions of a text are kept, the present one included; the oldest go first.
pub(crate) const MAX_VERSIONS: u64 = 1_000;

/// Whose stored text is: this session's, or all sessions'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Of the session alone; it goes with it, and a fork begins with a copy.
    Session,
    /// Of every session of the store.
    Shared,
}

/// A stored text of a block: the block's own under the empty key, a document under any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name of the document in its block; empty for the block's own text.
    pub(crate) key: String,
    /// What people call it.
    pub(crate) title: Option<String>,
    /// What it is about, in a line.
    pub(crate) description: Option<String>,
    /// The text.
    pub(crate) content: String,
    /// The number of this version, from 1.
    pub(crate) version: u64,
    /// When it was put.
    pub(crate) changed_at: DateTime<Utc>,
}

/// What is known of a document without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryInfo {
    /// The name of the document in its block.
    pub key: String,
    /// What people call it.
    pub title: Option<String>,
    /// What it is about, in a line.
    pub description: Option<String>,
    /// The number of its present version, from 1.
    pub version: u64,
    /// When that was put.
    pub changed_at: DateTime<Utc>,
}

/// One of the texts that an entry has had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryVersion {
    /// Its number, from 1.
    pub version: u64,
    /// What people called it.
    pub title: Option<String>,
    /// What it was about, in a line.
    pub description: Option<String>,
    /// The text; `None` where the entry was removed.
    pub content: Option<String>,
    /// When it was put, or removed.
    pub changed_at: DateTime<Utc>,
}

/// A label that holds any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLabel {
    pub(crate) label: String,
    /// Whether it holds a text of its own, under the empty key.
    pub(crate) has_text: bool,
    pub(crate) has_documents: bool,
    /// Whether the documents are in the index.
    pub(crate) is_searchable: bool,
}

/// A text to be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NewEntry<'a> {
    pub(crate) key: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) content: &'a str,
}

/// What became of a text that was to be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is a new version.
    Stored { version: u64 },
    /// It stood there already, word for word.
    Unchanged { version: u64 },
    /// Another version was there than the caller had seen; 0: none. Nothing was done.
    Moved { found: u64 },
}

/// One section of a frozen prompt. The prompt's bytes are all sections joined by an empty line; a
/// section's are its header, a line break, its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) label: String,
    pub(crate) header: String,
    pub(crate) content: String,
}

/// The storage of one session's context, and of what all sessions share.
///
/// Shared by threads; calls may come at the same time. Each verb is atomic: all of it is done, or
/// nothing. A session that was never written to reads as empty; the first write makes it. A label
/// and a key are held to the rules of other names, a text to the store's limit for messages.
pub(crate) trait ContextStore: Send + Sync {
    /// Returns the session's id.
    fn session(&self) -> &SessionId;

    /// Returns the context of another session.
    fn of(&self, session: &SessionId) -> Arc<dyn ContextStore>;

    /// Searches the messages of all sessions.
    fn search_sessions(&self, request: &SearchRequest) -> Result<Found>;

    /// Returns the labels that hold any text, sorted.
    fn labels(&self, owner: Owner) -> Result<Vec<StoredLabel>>;

    /// Checks a text as [`put`](Self::put) does before it writes.
    fn check(&self, label: &str, entry: &NewEntry<'_>) -> Result<()>;

    /// Returns the text under a key.
    fn entry(&self, owner: Owner, label: &str, key: &str) -> Result<Option<Entry>>;

    /// Returns what is known of a label's documents, by key, the block's own text left out.
    fn documents(&self, owner: Owner, label: &str) -> Result<Vec<EntryInfo>>;

    /// Returns how many documents a label holds.
    fn count(&self, owner: Owner, label: &str) -> Result<u64>;

    /// Puts a text; one that differs from what is there is a new version.
    ///
    /// `expected` is the version that the caller saw (0: none); if another one is there, nothing is
    /// done, also where it says the same.
    fn put(
        &self,
        owner: Owner,
        label: &str,
        entry: &NewEntry<'_>,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put>;

    /// Puts many texts, whatever is there: all of them or none.
    fn put_all(
        &self,
        owner: Owner,
        label: &str,
        all: &[NewEntry<'_>],
        is_searchable: bool,
    ) -> Result<()>;

    /// Takes a text away and returns whether it was there. Its versions stay.
    fn remove(&self, owner: Owner, label: &str, key: &str) -> Result<bool>;

    /// Returns the versions of a text, oldest first, the present one included.
    fn versions(&self, owner: Owner, label: &str, key: &str) -> Result<Vec<EntryVersion>>;

    /// Returns one version of a text; the others, which may be large and many, are not read.
    fn version(
        &self,
        owner: Owner,
        label: &str,
        key: &str,
        number: u64,
    ) -> Result<Option<EntryVersion>>;

    /// Searches a label's searchable texts, best first: for all words and, where that finds
    /// nothing, for any of them.
    ///
    /// Keys, titles and descriptions are found, too. The language is that of message search; what
    /// narrows messages (roles, sessions, times, `in:`) says nothing of documents and is passed
    /// over. Without a word to look for nothing is found.
    fn search(
        &self,
        owner: Owner,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)>;

    /// Returns the frozen prompt, if one is frozen.
    fn frozen(&self) -> Result<Option<Vec<Section>>>;

    /// Freezes these sections unless a prompt is frozen already; returns what is frozen now.
    fn freeze(&self, sections: &[Section]) -> Result<Vec<Section>>;

    /// Freezes these sections in place of what was.
    fn refreeze(&self, sections: &[Section]) -> Result<()>;

    /// Forgets the frozen prompt.
    fn thaw(&self) -> Result<()>;

    /// Returns whether a marker lies over the output of a tool call of a message.
    fn is_elided(&self, message: &MessageId, call: &str) -> Result<bool>;

    /// Lays a marker over the outputs of tool calls, each named with the message that holds it, in place of one that lies
    /// there: over all of them or none. Histories show it, the stored messages stay as they are.
    fn elide(&self, results: &[(MessageId, String)], marker: &str) -> Result<()>;
}
