//! The doorway to the context's storage: the texts of blocks, frozen prompts, elisions.
//!
//! A text belongs to an [`Owner`] and has a label and a key: the block's own text has the empty key, a document any
//! other. Each put and each removal is a version. Earlier versions are kept and can be put again. A frozen prompt is
//! stored as its sections. [`thaw`](ContextStore::thaw) and [`refreeze`](ContextStore::refreeze) change it, and so do
//! two verbs of the session: clearing it and adding a compaction thaw the prompt.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::{MessageId, SessionId};
use crate::search::{Found, Matched, SearchRequest};
use crate::storage::SessionProvider;

/// How many versions of a text are kept, the current one included; the oldest are removed first.
pub(crate) const MAX_VERSIONS: u64 = 1_000;

/// Who a stored text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// One session: the text is removed with the session, and a fork starts with a copy.
    Session,
    /// All sessions of the store.
    Shared,
}

/// A marker that replaces the output of a tool call when a history is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Elision {
    pub(crate) message: MessageId,
    pub(crate) call: String,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLabel {
    pub(crate) label: String,
    /// Whether the block has its own text, under the empty key.
    pub(crate) has_text: bool,
    pub(crate) has_documents: bool,
    /// Whether the documents are in the search index.
    pub(crate) is_searchable: bool,
}

/// A text to put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NewEntry<'a> {
    pub(crate) key: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) content: &'a str,
}

/// What a put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// A new version was stored.
    Stored { version: u64 },
    /// The stored text is the same, so nothing was written.
    Unchanged { version: u64 },
    /// The stored version is not the one the caller had seen (0: no text), so nothing was written.
    Moved { found: u64 },
}

/// One section of a frozen prompt: its header, a line break, its content. The prompt joins all sections with an empty
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) label: String,
    pub(crate) header: String,
    pub(crate) content: String,
}

/// The storage of one session's context, and of the texts that all sessions share.
///
/// Threads share it and may call it at the same time. Each verb is atomic: all of it is done, or nothing. A session
/// that was never written to reads as empty, and the first write creates it. Labels and keys follow the rules for
/// other names; a text is limited to the store's limit for messages.
pub(crate) trait ContextStore: Send + Sync {
    /// Returns the session's id.
    fn session(&self) -> &SessionId;

    /// Returns how long a write waits for other writers.
    fn busy_timeout(&self) -> Duration;

    /// Returns this session and its context as they are now; later writes do not change them.
    fn snapshot(&self) -> Result<(Arc<dyn SessionProvider>, Arc<dyn ContextStore>)>;

    /// Returns the context of another session.
    fn of(&self, session: &SessionId) -> Arc<dyn ContextStore>;

    /// Searches the messages of all sessions.
    fn search_sessions(&self, request: &SearchRequest) -> Result<Found>;

    /// Returns the labels that have at least one text, sorted.
    fn labels(&self, owner: Owner) -> Result<Vec<StoredLabel>>;

    /// Checks a text as [`put`](Self::put) does, without writing it.
    fn check(&self, label: &str, entry: &NewEntry<'_>) -> Result<()>;

    /// Returns the text under a key.
    fn entry(&self, owner: Owner, label: &str, key: &str) -> Result<Option<Entry>>;

    /// Returns a label's documents without their texts, sorted by key. The block's own text is not among them.
    fn documents(&self, owner: Owner, label: &str) -> Result<Vec<EntryInfo>>;

    /// Returns how many documents a label has.
    fn count(&self, owner: Owner, label: &str) -> Result<u64>;

    /// Puts a text; one that differs from the stored text is a new version.
    ///
    /// `expected` is the version that the caller has seen (0: no text). If the stored version is another one, nothing
    /// is written, even if the text is the same.
    fn put(
        &self,
        owner: Owner,
        label: &str,
        entry: &NewEntry<'_>,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put>;

    /// Puts many texts, each with its expected version as in [`put`](Self::put); returns whether they were put. If one of
    /// them is stored in another version, none is put.
    fn put_all(
        &self,
        owner: Owner,
        label: &str,
        all: &[(NewEntry<'_>, Option<u64>)],
        is_searchable: bool,
    ) -> Result<bool>;

    /// Removes a text; returns whether there was one. Its versions are kept.
    fn remove(&self, owner: Owner, label: &str, key: &str) -> Result<bool>;

    /// Returns the versions of a text, oldest first, the current one included.
    fn versions(&self, owner: Owner, label: &str, key: &str) -> Result<Vec<EntryVersion>>;

    /// Returns one version of a text without reading the others, which may be large and many.
    fn version(
        &self,
        owner: Owner,
        label: &str,
        key: &str,
        number: u64,
    ) -> Result<Option<EntryVersion>>;

    /// Searches a label's searchable texts, best first: for all words and, if no text has them all, for any of them.
    ///
    /// Keys, titles and descriptions are searched too. The query language is that of message search; filters on
    /// messages (roles, sessions, times, `in:`) are ignored. A query without a word finds nothing.
    fn search(
        &self,
        owner: Owner,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)>;

    /// Returns the frozen prompt, if there is one.
    fn frozen(&self) -> Result<Option<Vec<Section>>>;

    /// Freezes these sections unless a prompt is frozen; returns the sections that are frozen now.
    fn freeze(&self, sections: &[Section]) -> Result<Vec<Section>>;

    /// Freezes these sections, replacing a prompt that is frozen.
    fn refreeze(&self, sections: &[Section]) -> Result<()>;

    /// Removes the frozen prompt.
    fn thaw(&self) -> Result<()>;

    /// Returns whether a marker replaces the output of a tool call of a message.
    fn is_elided(&self, message: &MessageId, call: &str) -> Result<bool>;

    /// Returns all elisions: the message, the tool call and the marker of each.
    fn elisions(&self) -> Result<Vec<Elision>>;

    /// Replaces the outputs of tool calls, each given with its message, by a marker: all of them or none. An earlier
    /// marker is replaced. Histories show the marker; the stored messages do not change.
    fn elide(&self, results: &[(MessageId, String)], marker: &str) -> Result<()>;
}
