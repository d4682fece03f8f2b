//! The transcripts of agents in a store.

use std::sync::Arc;

use super::Store;
use crate::error::Result;
use crate::message::Json;
use crate::storage::sqlite::{Database, transcript as stored};
use crate::transcript::{
    AppendedEntries, Derived, StoredTranscript, TranscriptFilter, TranscriptKey,
};

/// The transcripts of a store: logs of entries that agents wrote. Made by [`Store::transcripts`].
///
/// An entry is a JSON object, which comes back as it was appended. What entries mean is not known here: `talktree-claude`
/// has the rules of the Claude Agent SDK.
#[derive(Debug, Clone)]
pub struct Transcripts {
    database: Arc<Database>,
    owner: Option<Arc<str>>,
}

impl Store {
    /// Returns the transcripts of agents in this store.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let (key, entry) = (TranscriptKey::new("project", "session"), Json::parse(r#"{"type":"user"}"#)?);
    /// transcripts.append(&key, &[entry.clone()])?;
    /// assert_eq!(transcripts.load(&key)?, Some(vec![entry]));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn transcripts(&self) -> Transcripts {
        Transcripts { database: Arc::clone(&self.database), owner: None }
    }
}

impl Transcripts {
    /// Returns a handle of the same transcripts whose appends are the data of this owner.
    ///
    /// The owner counts when transcripts are listed by owner or erased. It limits neither reads nor deletes.
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

    /// Appends entries to a transcript and returns how many were added.
    ///
    /// An entry whose `uuid` the transcript has is not added: the first one stays, in its place. An entry without one is always
    /// added. No entries: nothing is done. Entries stay in the order of the appends, which is that of the commits.
    ///
    /// An *mtime* is the time of an append, in milliseconds since 1970. It is greater than that of every append before, to any
    /// transcript of the store, deleted ones included. On a server, of which hosts do not wait for each other, to this transcript,
    /// to deleted ones and by this handle.
    ///
    /// A transcript without an owner gets that of the handle.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if an entry is not an object, a part of the key is too long, or the
    /// transcript has another owner; [`Error::TooLarge`](crate::Error::TooLarge) if an entry is over the store's limit for
    /// messages, or all are over 1 GiB.
    pub fn append(&self, key: &TranscriptKey, entries: &[Json]) -> Result<AppendedEntries> {
        self.append_with(key, entries, |_, _| Ok(Derived::default()))
    }

    /// Appends entries as [`append`](Self::append) does, and writes what a function derives of them in the same transaction.
    ///
    /// The function is given the transcript as it is and the entries that are new. It runs outside the transaction, and again
    /// if another append comes first, so it must not have effects of its own.
    ///
    /// ```
    /// use talktree::{Derived, Json, Message, Record, SessionDetails, Store, TranscriptKey};
    ///
    /// let store = Store::open_in_memory()?;
    /// let key = TranscriptKey::new("project", "session");
    /// let entries = [Json::parse(r#"{"uuid":"1","text":"hello"}"#)?, Json::parse(r#"{"uuid":"2","text":"again"}"#)?];
    /// store.transcripts().append_with(&key, &entries, |before, new| {
    ///     let text = |entry: &&Json| entry.value()["text"].as_str().unwrap_or_default().to_owned();
    ///     let id = before.key.session.as_str().into();
    ///     let mut session = vec![Record::Session { id, details: SessionDetails::default() }];
    ///     session.extend(new.iter().map(|entry| {
    ///         Record::Message { below: None, message: Message::user(text(entry)), name: None }
    ///     }));
    ///     let summary = Some(Json::from(serde_json::json!({"newest": new.last().map(text)})));
    ///     Ok(Derived { summary, session: Some(session), replaces: false })
    /// })?;
    /// let stored = store.transcripts().find(&key)?.expect("it was appended");
    /// assert_eq!(stored.summary.expect("it was derived").value()["newest"], "again");
    /// assert_eq!(store.session("session")?.leaves()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`append`](Self::append), and those of the function: then nothing is appended.
    pub fn append_with(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        derive: impl FnMut(&StoredTranscript, &[&Json]) -> Result<Derived>,
    ) -> Result<AppendedEntries> {
        self.database.append_entries(key, entries, self.owner.as_deref(), derive)
    }

    /// Returns all entries of a transcript, each with the text it was appended with; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if an entry is damaged.
    pub fn load(&self, key: &TranscriptKey) -> Result<Option<Vec<Json>>> {
        let entries = self.load_after(key, 0)?;
        Ok(Some(entries).filter(|entries| !entries.is_empty()))
    }

    /// Returns the entries of a transcript without its first ones, of which it leaves out so many.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
    /// transcripts.append(&key, &[entry.clone(), entry])?;
    /// assert_eq!(transcripts.load_after(&key, 1)?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if an entry is damaged.
    pub fn load_after(&self, key: &TranscriptKey, entries: u64) -> Result<Vec<Json>> {
        self.database.read(|conn| stored::load_after(conn, key, entries))
    }

    /// Returns a transcript without its entries; `None` if it is unknown.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn find(&self, key: &TranscriptKey) -> Result<Option<StoredTranscript>> {
        self.database.read(|conn| stored::find(conn, key))
    }

    /// Returns the main transcripts of a project, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn of_project(&self, project: &str) -> Result<Vec<StoredTranscript>> {
        self.database.read(|conn| stored::of_project(conn, project))
    }

    /// Returns the subpaths of a session's transcripts, without the main one, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn subpaths(&self, project: &str, session: &str) -> Result<Vec<String>> {
        self.database.read(|conn| stored::subpaths(conn, project, session))
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
        self.database.read(|conn| stored::list(conn, filter, after, limit))
    }

    /// Deletes a transcript; the main one with all others of its session. Returns how many were deleted. The sessions that
    /// show them are removed.
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
        self.database.delete_transcripts(|conn| stored::named(conn, key))
    }

    /// Deletes all transcripts of an owner, and the others of a session whose main one is the owner's. Returns how many
    /// were deleted.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn delete_of_owner(&self, owner: &str) -> Result<u64> {
        self.database.delete_transcripts(|conn| stored::of_owner(conn, owner))
    }
}
