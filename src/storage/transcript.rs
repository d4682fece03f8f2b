//! The interface to a storage of transcripts: the entries of agent sessions.

use crate::error::{Error, Result};
use crate::message::Json;
use crate::transcript::{
    AppendedEntries, ListedTranscript, Projection, StoredTranscript, TranscriptFilter,
    TranscriptKey, TranscriptSummary,
};

/// The storage of transcripts: the contract of the Claude Agent SDK's `SessionStore`. [`Transcripts`](crate::Transcripts) works
/// over it.
///
/// Threads and processes share it and may call it at the same time. Each verb is atomic.
/// Entries are returned with the text with which they were appended, in the order of the appends: within a process the
/// order of the calls, between processes that of the commits.
///
/// An *mtime* is the time of an append, in milliseconds since 1970. It is greater than that of every append before, to any
/// transcript of the storage, deleted ones included.
///
/// `talktree::testing::conformance_of_transcripts` tests an implementation.
pub trait TranscriptStore: Send + Sync {
    /// Appends entries, which are objects. No entries: nothing is done, and an unknown transcript stays unknown.
    ///
    /// An entry whose `uuid` the transcript has is not added: the first one stays, in its place. An entry without one is
    /// always added. If nothing is added, nothing changes. What is added to a main transcript is added to the summary of
    /// its session in the same transaction.
    ///
    /// `owner` is the owner of the data. A transcript without an owner gets it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if an entry is not an object, a part of the key is too long, or the
    /// transcript has another owner; [`Error::TooLarge`] if an entry or the batch is too large.
    fn append(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
    ) -> Result<AppendedEntries>;

    /// Appends entries as [`append`](Self::append) does, and adds them to the session that shows the transcript, all in one
    /// transaction. An entry that cannot be shown is appended all the same.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Error::Unsupported`] if the storage has no such sessions, as is the default.
    fn append_projected(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
    ) -> Result<AppendedEntries> {
        let _ = (key, entries, owner);
        Err(Error::Unsupported { what: "the projection of transcripts" })
    }

    /// Adds all entries of a transcript to the session that shows it, and repairs that session if it needs it. Returns how it
    /// shows the transcript; `None` if no session does.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the storage has no such sessions, as is the default.
    fn project(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        let _ = key;
        Err(Error::Unsupported { what: "the projection of transcripts" })
    }

    /// Returns how a session shows a transcript; `None` if none does, as in a storage without such sessions.
    fn projection(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        let _ = key;
        Ok(None)
    }

    /// Returns all entries of a transcript; `None` if it has none.
    fn load(&self, key: &TranscriptKey) -> Result<Option<Vec<Json>>>;

    /// Returns the sessions of a project that have a main transcript, in any order, with the mtime of its last append.
    fn list_sessions(&self, project: &str) -> Result<Vec<ListedTranscript>>;

    /// Returns the summaries of the same sessions, in any order, with the same mtimes.
    fn list_session_summaries(&self, project: &str) -> Result<Vec<TranscriptSummary>>;

    /// Returns the summary of one session; `None` if it has no main transcript.
    fn session_summary(&self, project: &str, session: &str) -> Result<Option<TranscriptSummary>> {
        let summaries = self.list_session_summaries(project)?;
        Ok(summaries.into_iter().find(|summary| summary.session == session))
    }

    /// Deletes a transcript; the main one with all others of its session. Returns how many transcripts were deleted.
    fn delete(&self, key: &TranscriptKey) -> Result<u64>;

    /// Returns the subpaths of a session's transcripts, without the main one, in any order.
    fn list_subkeys(&self, project: &str, session: &str) -> Result<Vec<String>>;

    /// Returns at most `limit` transcripts that the filter shows, in order of creation: those with a number above `after`.
    fn list(
        &self,
        filter: &TranscriptFilter,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredTranscript>>;

    /// Returns one transcript as lists show it; `None` if it has no entries.
    fn stored(&self, key: &TranscriptKey) -> Result<Option<StoredTranscript>>;

    /// Deletes all transcripts of an owner, and the others of a session whose main one is the owner's. Returns how many
    /// transcripts were deleted.
    fn delete_of_owner(&self, owner: &str) -> Result<u64>;
}
