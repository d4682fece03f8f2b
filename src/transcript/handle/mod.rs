//! The transcripts of a store, for programs: the verbs of the agent SDK's store, and those that the agent SDK builds on them.
//! These are for titles, conversations, subagents, copies and files.

mod change;
mod files;
mod project;
mod read;

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::message::Json;
use crate::storage::sqlite::Database;
use crate::storage::sqlite::transcript::{self as stored, Projects};
use crate::transcript::{
    AppendedEntries, ListedTranscript, StoredTranscript, TranscriptFilter, TranscriptKey,
    TranscriptSummary,
};

/// The transcripts of agent sessions in a store: from [`Store::transcripts`](crate::Store::transcripts).
///
/// `append`, `load`, `list_sessions`, `list_session_summaries`, `delete` and `list_subkeys` are the verbs of the Claude Agent
/// SDK's `SessionStore`. The others do what the SDK builds on them.
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts();
/// let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10");
/// let entries = [
///     Json::parse(r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#)?,
///     Json::parse(r#"{"type":"assistant","uuid":"2","parentUuid":"1","message":{"content":[]}}"#)?,
/// ];
/// transcripts.append(&key, &entries)?;
/// transcripts.append(&key, &entries)?; // a retry adds nothing
/// assert_eq!(transcripts.load(&key)?.as_deref(), Some(&entries[..]));
/// assert_eq!(transcripts.infos(&key.project)?[0].summary, "Fix the login.");
/// assert_eq!(transcripts.messages(&key.project, &key.session)?.len(), 2);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Transcripts {
    database: Arc<Database>,
    owner: Option<Arc<str>>,
    projects: Projects,
}

impl Transcripts {
    pub(crate) fn of(database: Arc<Database>) -> Self {
        Self { database, owner: None, projects: Projects::No }
    }

    /// Returns a handle of the same transcripts that appends for this owner.
    ///
    /// Transcripts are listed, deleted and erased by owner. Reads and other deletes ignore it.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
    /// transcripts.owned_by("user:42").append(&key, &[entry.clone()])?;
    /// assert!(transcripts.owned_by("user:43").append(&key, &[entry]).is_err());
    /// assert_eq!(transcripts.delete_of_owner("user:42")?, 1);
    /// assert_eq!(transcripts.load(&key)?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<str>>) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// Returns a handle of the same transcripts that projects them: its appends also write sessions of the store.
    ///
    /// A session shows the entries of one transcript as messages, with branches, side chains and compactions, as
    /// `talktree-import` reads them from a file. It is written in the transaction of the append. It is listed and searched as
    /// any other session, has the owner of the transcript, and is removed and erased with it.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let store = Store::open_in_memory()?;
    /// let transcripts = store.transcripts().projecting();
    /// let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c");
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// transcripts.append(&key, &[Json::parse(question)?])?;
    /// assert_eq!(store.session("4b1e7d5c")?.history()?[0].text(), "Fix the login.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn projecting(&self) -> Self {
        Self { projects: Projects::Yes, ..self.clone() }
    }

    /// Appends entries to a transcript and returns how many were added.
    ///
    /// An entry whose `uuid` the transcript has is not added: the first one stays, in its place. An entry without one is always
    /// added. No entries: nothing is done. Entries stay in the order of the appends: within a process that of the calls, between
    /// processes that of the commits. If the handle projects, the session is written in the same transaction.
    ///
    /// An *mtime* is the time of an append, in milliseconds since 1970. It is greater than that of every append before, to any
    /// transcript of the store, deleted ones included.
    ///
    /// A transcript without an owner gets that of the handle.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if an entry is not an object, a part of the key is too long, or the
    /// transcript has another owner; [`Error::TooLarge`](crate::Error::TooLarge) if an entry is over the store's limit for
    /// messages, or all are over [`MAX_TRANSCRIPT_BATCH_BYTES`](crate::MAX_TRANSCRIPT_BATCH_BYTES).
    pub fn append(&self, key: &TranscriptKey, entries: &[Json]) -> Result<AppendedEntries> {
        self.database.append_entries(key, entries, self.owner.as_deref(), self.projects)
    }

    /// Returns all entries of a transcript, each with the text it was appended with; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if an entry is damaged.
    pub fn load(&self, key: &TranscriptKey) -> Result<Option<Vec<Json>>> {
        self.database.read(|conn| stored::read::load(conn, key))
    }

    /// Returns the sessions of a project that have a main transcript, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn list_sessions(&self, project: &str) -> Result<Vec<ListedTranscript>> {
        self.database.read(|conn| stored::read::sessions(conn, project))
    }

    /// Returns the summaries of a project's sessions, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn list_session_summaries(&self, project: &str) -> Result<Vec<TranscriptSummary>> {
        self.database.read(|conn| stored::read::summaries(conn, project))
    }

    /// Deletes a transcript; the main one with all others of its session. Returns how many were deleted.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
    /// transcripts.append(&key, &[entry.clone()])?;
    /// transcripts.append(&key.clone().subpath("subagents/agent-1"), &[entry])?;
    /// assert_eq!(transcripts.delete(&key)?, 2);
    /// assert_eq!(transcripts.delete(&key)?, 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn delete(&self, key: &TranscriptKey) -> Result<u64> {
        self.database.write_long(|conn| stored::delete::delete(conn, key))
    }

    /// Returns the subpaths of a session's transcripts, without the main one, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn list_subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        self.database.read(|conn| stored::read::subpaths(conn, project, session))
    }

    /// Returns at most `limit` transcripts that the filter shows, in order of creation: those with a number above `after`.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn list(
        &self,
        filter: &TranscriptFilter,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredTranscript>> {
        self.database.read(|conn| stored::read::list(conn, filter, after, limit))
    }

    /// Deletes all transcripts of an owner, and the others of a session whose main one is the owner's. Returns how many
    /// were deleted.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn delete_of_owner(&self, owner: &str) -> Result<u64> {
        self.database.write_long(|conn| stored::delete::delete_of_owner(conn, owner))
    }
}

impl fmt::Debug for Transcripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcripts")
            .field("owner", &self.owner)
            .field("projects", &self.projects)
            .finish_non_exhaustive()
    }
}
