//! The doorway to the context's storage: the texts of blocks, frozen prompts, elisions.
//!
//! A text belongs to a [`BlockScope`] and has a label and a key: the block's own text has the empty key, a document any
//! other. Each put and each removal is a version. Earlier versions are kept and can be put again. A frozen prompt is
//! stored as its sections. Clearing the session and adding a compaction remove it, and so does a change of the owner.
//!
//! Invariant: what is made from stored texts is stored by the [`write`](ContextStore::write) that read them. So neither a
//! newer version nor another owner can come in between.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId, check_name, check_name_length};
use crate::search::{Found, Matched, SearchRequest};
use crate::storage::DEFAULT_BUSY_TIMEOUT;
use crate::storage::catalog::SessionStorage;

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
#[non_exhaustive]
pub struct Elision {
    /// The message.
    pub message: MessageId,
    /// The id of the tool call.
    pub call: String,
    /// What a history shows instead of the output.
    pub marker: String,
}

/// A stored text of a block: the block's own text has the empty key, a document any other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name of the document in its block; empty for the block's own text.
    pub key: String,
    /// The name for people.
    pub title: Option<String>,
    /// One line on what it is about.
    pub description: Option<String>,
    /// The text.
    pub content: String,
    /// The number of this version, from 1.
    pub version: u64,
    /// When this version was put.
    pub changed_at: DateTime<Utc>,
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
#[non_exhaustive]
pub struct NewEntry<'a> {
    /// The name of the document in its block; empty for the block's own text.
    pub key: &'a str,
    /// The name for people.
    pub title: Option<&'a str>,
    /// One line on what it is about.
    pub description: Option<&'a str>,
    /// The text.
    pub content: &'a str,
}

/// One section of a frozen prompt: its header, a line break, its content. The prompt joins all sections with an empty
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptSection {
    /// The label of the block.
    pub label: String,
    /// The line above the content.
    pub header: String,
    /// The content of the block when the prompt was frozen.
    pub content: String,
}

/// The texts of a context, as one read or one write sees them. [`ContextStore::write`] has an example.
pub trait ContextTexts {
    /// Returns the text under a key.
    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>>;

    /// Returns a label's documents without their texts, sorted by key. The block's own text is not among them.
    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>>;

    /// Returns the versions of a text, oldest first, the current one included.
    fn versions(&self, scope: BlockScope, label: &str, key: &str) -> Result<Vec<EntryVersion>>;

    /// Returns how many documents a label has.
    fn count(&self, scope: BlockScope, label: &str) -> Result<u64> {
        Ok(self.documents(scope, label)?.len() as u64)
    }

    /// Returns one version of a text. A storage should not read the others, which may be large and many.
    fn version(
        &self,
        scope: BlockScope,
        label: &str,
        key: &str,
        number: u64,
    ) -> Result<Option<EntryVersion>> {
        let versions = self.versions(scope, label, key)?;
        Ok(versions.into_iter().find(|version| version.version == number))
    }

    /// Returns the frozen prompt, if there is one.
    fn frozen(&self) -> Result<Option<Vec<PromptSection>>>;
}

/// A write of a context: what it reads stays as it is until the write is done. [`ContextStore::write`] has an example.
pub trait ContextWrite: ContextTexts {
    /// Puts a text.
    ///
    /// A text that differs from the stored one in content, title or description is a new version; the same text is none,
    /// but `is_searchable` counts: it says whether [`search`](ContextStore::search) finds the text. At least the newest
    /// thousand versions are kept.
    fn put(
        &mut self,
        scope: BlockScope,
        label: &str,
        entry: &NewEntry<'_>,
        is_searchable: bool,
    ) -> Result<()>;

    /// Removes a text; returns whether there was one. The removal is a version, and the versions before are kept.
    fn remove(&mut self, scope: BlockScope, label: &str, key: &str) -> Result<bool>;

    /// Freezes these sections, replacing a prompt that is frozen; `None` removes it.
    fn set_frozen(&mut self, sections: Option<&[PromptSection]>) -> Result<()>;
}

/// What an export has written, before it is written to the output of the caller.
pub trait Spool: std::io::Write {
    /// Calls `with` with all that was written, piece by piece.
    fn each_piece(&mut self, with: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// The storage of one session's context, and of the texts that it shares with others.
///
/// Threads and processes share it and may call it at the same time. Each verb is atomic: all of it is done, or nothing.
/// Every read sees what was written before it, by whomever. A session that was never written to reads as empty, and the
/// first write of a text of its own or of a frozen prompt creates it. If sessions can be removed, the storage of a removed
/// session reads as empty, but for what is shared, and its other writes are [`Error::SessionRemoved`]; those of a session
/// in the trash are [`Error::SessionInTrash`].
///
/// The texts of [`BlockScope::Owner`] are those of the owner that the session has when the verb runs. Without an owner they
/// read as empty, and a write is [`Error::NoOwner`].
///
/// Labels and keys follow the rules for names: a label is not empty, and none is longer than
/// [`MAX_ID_BYTES`](crate::MAX_ID_BYTES); otherwise a put is [`Error::InvalidValue`]. A storage may limit texts
/// ([`Error::TooLarge`]).
///
/// Five verbs are required, and those of [`ContextTexts`] and [`ContextWrite`].
/// `talktree::testing::conformance_of_context` tests them.
///
/// ```
/// use talktree::testing::{MemoryContext, MemorySession}; // with the feature `testing`
/// use talktree::{Block, Session};
///
/// let chat = Session::builder(MemorySession::new("s".into()))
///     .context_store(MemoryContext::new("s".into()))
///     .block("memory", Block::stored())
///     .open()?;
/// chat.context().set("memory", "Likes coffee.")?;
/// assert!(chat.prompt()?.ends_with("\nLikes coffee."));
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait ContextStore: ContextTexts + Send + Sync {
    /// Returns the session's id.
    fn session(&self) -> &SessionId;

    /// Returns this session and its context as they are now, so that many reads see one state; `None` if the storage has
    /// no snapshots.
    fn snapshot(&self) -> Result<Option<SessionStorage>> {
        Ok(None)
    }

    /// Returns where an export of a snapshot is kept until the snapshot is closed; `None` if the storage has no snapshots.
    #[doc(hidden)]
    fn spool(&self) -> Option<Box<dyn Spool>> {
        None
    }

    /// Returns the context of another session of the same storage.
    fn of(&self, session: &SessionId) -> Arc<dyn ContextStore>;

    /// Returns the labels that have at least one text, sorted.
    fn labels(&self, scope: BlockScope) -> Result<Vec<StoredLabel>>;

    /// Searches a label's searchable texts, best first: for all words and, if no text has them all, for any of them.
    ///
    /// Keys, titles and descriptions are searched too. The query language is that of [`Query`](crate::Query); filters on
    /// messages (roles, sessions, times, `in:`) are ignored. A query without a word finds nothing.
    fn search(
        &self,
        scope: BlockScope,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)>;

    /// Runs `work` once as one write: nobody else writes meanwhile, and if it fails, nothing is written.
    ///
    /// `work` is talktree's own, reads and writes by its argument alone, and calls no code of the program.
    ///
    /// ```
    /// use talktree::testing::MemoryContext; // with the feature `testing`
    /// use talktree::{BlockScope, ContextStore, ContextTexts, NewEntry};
    ///
    /// let store = MemoryContext::new("s".into());
    /// let scope = BlockScope::Session;
    /// for _ in 0..2 {
    ///     store.write(&mut |texts| {
    ///         let was = texts.entry(scope, "memory", "")?.map(|entry| entry.content).unwrap_or_default();
    ///         texts.put(scope, "memory", &NewEntry::new("", &format!("{was}.")), false)
    ///     })?;
    /// }
    /// assert_eq!(store.entry(scope, "memory", "")?.unwrap().content, "..");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    fn write(&self, work: &mut dyn FnMut(&mut dyn ContextWrite) -> Result<()>) -> Result<()>;

    // The verbs below have a default built on those above, or are unsupported unless overridden.

    /// Puts texts in the order given, each as [`ContextWrite::put`] does.
    fn put(
        &self,
        scope: BlockScope,
        label: &str,
        entries: &[NewEntry<'_>],
        is_searchable: bool,
    ) -> Result<()> {
        self.write(&mut |texts| {
            entries.iter().try_for_each(|entry| texts.put(scope, label, entry, is_searchable))
        })
    }

    /// Removes a text as [`ContextWrite::remove`] does.
    fn remove(&self, scope: BlockScope, label: &str, key: &str) -> Result<bool> {
        let mut is_removed = false;
        self.write(&mut |texts| {
            is_removed = texts.remove(scope, label, key)?;
            Ok(())
        })?;
        Ok(is_removed)
    }

    /// Freezes a prompt or removes it, as [`ContextWrite::set_frozen`] does.
    fn set_frozen(&self, sections: Option<&[PromptSection]>) -> Result<()> {
        self.write(&mut |texts| texts.set_frozen(sections))
    }

    /// Returns how long a write waits for other writers: by default 30 seconds, as in a store.
    fn busy_timeout(&self) -> Duration {
        DEFAULT_BUSY_TIMEOUT
    }

    /// Checks a text as [`put`](ContextWrite::put) does, without writing it. By default, label and key.
    fn check(&self, label: &str, entry: &NewEntry<'_>) -> Result<()> {
        check(label, entry)
    }

    /// Searches the messages of all sessions, for the tool that offers it.
    fn search_sessions(&self, request: &SearchRequest) -> Result<Found> {
        let _ = request;
        Err(Error::Unsupported { what: "a search of all sessions" })
    }

    /// Returns whether a marker replaces the output of a tool call of a message.
    fn is_elided(&self, message: &MessageId, call: &str) -> Result<bool> {
        let is_it = |elision: &Elision| elision.message == *message && elision.call == call;
        Ok(self.elisions()?.iter().any(is_it))
    }

    /// Returns all elisions: the message, the tool call and the marker of each. By default there are none.
    fn elisions(&self) -> Result<Vec<Elision>> {
        Ok(Vec::new())
    }

    /// Replaces the outputs of tool calls, each given with its message, by a marker: all of them or none. An earlier
    /// marker is replaced. Histories show the marker; the stored messages do not change.
    ///
    /// Only a storage that keeps the messages, too, can do that; without it, skills cannot be unloaded.
    fn elide(&self, results: &[(MessageId, String)], marker: &str) -> Result<()> {
        let _ = (results, marker);
        Err(Error::Unsupported { what: "unloading a skill" })
    }
}

impl BlockScope {
    /// All scopes, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Session, Self::Owner, Self::Shared];
}

impl Elision {
    /// Returns an elision, for storages of your own.
    #[must_use]
    pub fn new(message: MessageId, call: String, marker: String) -> Self {
        Self { message, call, marker }
    }
}

impl Entry {
    /// Returns a text without title and description, for storages of your own.
    #[must_use]
    pub fn new(key: String, content: String, version: u64, changed_at: DateTime<Utc>) -> Self {
        Self { key, title: None, description: None, content, version, changed_at }
    }
}

impl EntryInfo {
    /// Returns a document without title and description, for storages of your own.
    #[must_use]
    pub fn new(key: String, version: u64, changed_at: DateTime<Utc>) -> Self {
        Self { key, title: None, description: None, version, changed_at }
    }
}

impl EntryVersion {
    /// Returns a version without title and description, for storages of your own; without content it is a removal.
    #[must_use]
    pub fn new(version: u64, content: Option<String>, changed_at: DateTime<Utc>) -> Self {
        Self { version, title: None, description: None, content, changed_at }
    }
}

impl StoredLabel {
    /// Returns a label without a text, for storages of your own; the fields say what it has.
    #[must_use]
    pub fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }
}

impl<'a> NewEntry<'a> {
    /// Returns a text to put, without title and description.
    #[must_use]
    pub fn new(key: &'a str, content: &'a str) -> Self {
        Self { key, content, ..Self::default() }
    }

    /// Returns the text of an entry, to put it elsewhere.
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let Entry { key, title, description, content, .. } = entry;
        let (title, description) = (title.as_deref(), description.as_deref());
        Self { title, description, ..Self::new(key, content) }
    }
}

impl PromptSection {
    /// Returns a section, for storages of your own.
    #[must_use]
    pub fn new(label: String, header: String, content: String) -> Self {
        Self { label, header, content }
    }
}

/// Checks the names of a new text.
pub(crate) fn check(label: &str, entry: &NewEntry<'_>) -> Result<()> {
    check_name("context label", label)?;
    check_name_length("context key", entry.key)
}

/// Copies the texts of a session to another one, without their earlier versions.
///
/// For a context beside the storage of the messages: a fork or a split copies only what that storage has.
pub(crate) fn copy(from: &dyn ContextStore, to: &dyn ContextStore) -> Result<()> {
    let scope = BlockScope::Session;
    for StoredLabel { label, has_text, is_searchable, .. } in from.labels(scope)? {
        let documents = from.documents(scope, &label)?;
        let mut entries = Vec::new();
        for document in documents {
            entries.extend(from.entry(scope, &label, &document.key)?);
        }
        let new: Vec<_> = entries.iter().map(NewEntry::of).collect();
        to.put(scope, &label, &new, is_searchable)?;
        if has_text && let Some(text) = from.entry(scope, &label, "")? {
            to.put(scope, &label, &[NewEntry::of(&text)], false)?;
        }
    }
    Ok(())
}
