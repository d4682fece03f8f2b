//! The one error type.
//!
//! A variant stands for something a caller would act on; what only a person can look into is
//! [`Error::Storage`]. Each text names the place, the offender and the limit.

use std::path::PathBuf;

use crate::compaction::{Stale, SummaryRefused};
use crate::id::{CompactionId, MessageId, SessionId};

/// Any error, so that what a caller hands in can use `?` on whatever it calls.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A [`Result`](std::result::Result) whose error is talktree's [`Error`], unless it is said to be another.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
///
/// ```
/// use talktree::{Error, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let answer = chat.append_to(&"nobody".into(), Message::assistant("hello?"));
/// assert!(matches!(answer, Err(Error::UnknownMessage { .. })));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No message of this id is in the session; nothing was done.
    #[error("session {session:?} has no message {id:?}")]
    UnknownMessage {
        /// The session that was asked.
        session: SessionId,
        /// The id it does not hold.
        id: MessageId,
    },
    /// No session of this id is in the store.
    #[error("the store has no session {id:?}")]
    UnknownSession {
        /// The id the store does not hold.
        id: SessionId,
    },
    /// No compaction of this id is in the session.
    #[error("session {session:?} has no compaction {id:?}")]
    UnknownCompaction {
        /// The session that was asked.
        session: SessionId,
        /// The id it does not hold.
        id: CompactionId,
    },
    /// No tool call of this id has a result in the message.
    #[error("message {message:?} holds no result of tool call {call:?}")]
    UnknownCall {
        /// The message that was asked.
        message: MessageId,
        /// The id of the call, cut after 80 characters.
        call: String,
    },
    /// A session of this id stands already.
    #[error("the store already has a session {id:?}")]
    SessionExists {
        /// The id that is taken.
        id: SessionId,
    },
    /// An id, a name or a label that may not be used as one.
    #[error("{what} {given:?} cannot be used: {why}")]
    InvalidName {
        /// Which argument: `message id`, `session id`, `label`, ..
        what: &'static str,
        /// The text, cut after 80 characters.
        given: String,
        /// The rule it breaks, with the limit.
        why: String,
    },
    /// A message larger than the store's limit.
    #[error("message {id:?} is {bytes} bytes of JSON, over the store's limit of {max}")]
    MessageTooLarge {
        /// The message.
        id: MessageId,
        /// Its size, in bytes of JSON.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// Something beside a message that is larger than the store's limit for messages.
    #[error("{what} is {bytes} bytes, over the store's limit of {max}")]
    TooLarge {
        /// What: `a summary`, `session metadata`, ..
        what: &'static str,
        /// Its size, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// The head was not where the caller believed it to be; nothing was appended.
    #[error("the head is at {found:?}, not at {expected:?}")]
    HeadMoved {
        /// Where the caller took the head to be.
        expected: Option<MessageId>,
        /// Where it is.
        found: Option<MessageId>,
    },
    /// A stretch whose first message does not lie on the path to its last.
    #[error("message {first:?} is not an ancestor of {last:?}")]
    NotAncestor {
        /// The message meant as the start.
        first: MessageId,
        /// The message meant as the end.
        last: MessageId,
    },
    /// An end of a new compaction lies inside a summary that is shown there.
    #[error(
        "message {id:?} lies inside the summary {compaction:?}; compaction the whole summary or remove it first"
    )]
    InsideSummary {
        /// The message that was given as an end.
        id: MessageId,
        /// The compaction it lies under.
        compaction: CompactionId,
    },
    /// A stretch that holds nothing a model sees, so that a summary of it would lengthen the history.
    #[error("from {first:?} to {last:?} there is nothing that a model sees")]
    NothingVisible {
        /// The first message of the stretch.
        first: MessageId,
        /// The last message of the stretch.
        last: MessageId,
    },
    /// A summary that may not stand in place of anything, or not of this; ask for another.
    #[error("{why}")]
    SummaryRefused {
        /// What is wrong with it.
        why: SummaryRefused,
    },
    /// A plan that no longer stands; make another. Nothing was stored.
    #[error("the plan no longer stands: {why}")]
    Stale {
        /// What changed meanwhile.
        why: Stale,
    },
    /// The summarizer failed or panicked; the conversation is as it was.
    #[error("the summarizer failed: {source}")]
    Summarizer {
        /// What it said.
        source: BoxError,
    },
    /// A summary was asked for, and the session has no summarizer.
    #[error(
        "session {session:?} has no summarizer; give its builder one, or plan and commit by hand"
    )]
    NoSummarizer {
        /// The session.
        session: SessionId,
    },
    /// A content larger than the limit of its context block; the block is as it was.
    #[error("context block {label:?} holds {tokens} tokens, over its limit of {max}")]
    BlockOverLimit {
        /// The block.
        label: String,
        /// What it would hold, in estimated tokens.
        tokens: u64,
        /// The block's limit.
        max: u64,
    },
    /// A write to a context block that can only be read.
    #[error("context block {label:?} is read-only")]
    BlockReadOnly {
        /// The block.
        label: String,
    },
    /// A plain write to a context block that holds documents under keys.
    #[error("context block {label:?} holds documents under keys; write one with {call}")]
    BlockKeyed {
        /// The block.
        label: String,
        /// The call that writes a document.
        call: &'static str,
    },
    /// Something that the kind of a context block does not allow.
    #[error("context block {label:?} cannot {what}")]
    BlockCannot {
        /// The block.
        label: String,
        /// What was asked of it.
        what: &'static str,
    },
    /// No context block of this label is there.
    #[error("there is no context block {label:?}")]
    UnknownBlock {
        /// The label nothing bears.
        label: String,
    },
    /// A context block of this label is there already.
    #[error("there already is a context block {label:?}")]
    BlockExists {
        /// The label that is taken.
        label: String,
    },
    /// More context blocks than a context takes.
    #[error("a context holds at most {max} blocks")]
    TooManyBlocks {
        /// How many it may hold.
        max: usize,
    },
    /// A version that a stored text of a context block never had, or that was dropped since.
    #[error("context block {label:?} has no version {version}{}", of_document(key.as_deref()))]
    UnknownVersion {
        /// The block.
        label: String,
        /// The document, if it is not the block's own text.
        key: Option<String>,
        /// The version that was asked for.
        version: u64,
    },
    /// What is behind a context block failed; the block is as it was.
    #[error("the provider of context block {label:?} failed: {source}")]
    Provider {
        /// The block.
        label: String,
        /// What the provider said.
        source: BoxError,
    },
    /// The session has used up its 4 294 967 294 places.
    #[error("session {session:?} is full: it has taken {max} messages")]
    SessionFull {
        /// The session.
        session: SessionId,
        /// The number of messages a session can take in its life.
        max: u64,
    },
    /// The store has used up the keys that sessions are stored under.
    #[error("the store is full: it has held {max} sessions")]
    StoreFull {
        /// The number of sessions a store can hold in its life.
        max: i64,
    },
    /// The store has used up the places that texts of context blocks are stored at.
    #[error("no place is left: there have been {max} {what}")]
    ContextFull {
        /// Of what: `context blocks` in the store, `texts` in a block.
        what: &'static str,
        /// The number that there can be in the store's life.
        max: u64,
    },
    /// The file is no talktree store.
    #[error("{} is no talktree store: {why}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// How that is known.
        why: String,
    },
    /// The store was written by a newer talktree.
    #[error("store has schema version {found}; this build reads up to {supported}")]
    NewerStore {
        /// The version in the file.
        found: u32,
        /// The newest version this build knows.
        supported: u32,
    },
    /// A write to a store that was opened, or lies, read-only.
    #[error("the store is read-only")]
    ReadOnly,
    /// Other writers held the store for longer than the busy timeout.
    #[error("the store is busy: other writers held it for over {waited_ms} ms")]
    Busy {
        /// The busy timeout, in milliseconds.
        waited_ms: u64,
    },
    /// No space is left on the disk; the write was undone.
    #[error("no space is left for the store; the write was undone")]
    DiskFull,
    /// The work was stopped through an interrupt handle.
    #[error("the work was interrupted")]
    Interrupted,
    /// Data that breaks an invariant of the store.
    #[error("the store is damaged: {what}; `verify` tells more")]
    Corrupt {
        /// The broken invariant and where.
        what: String,
    },
    /// The storage behind a session cannot do this.
    #[error("this storage does not support {what}")]
    Unsupported {
        /// The verb.
        what: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Text that should be JSON, or JSON of another shape than needed.
    #[error("{what} is not valid: {source}")]
    Json {
        /// What was read.
        what: &'static str,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// A transcript that cannot be imported.
    #[error("{}{}: {why}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Import {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where the format has lines.
        line: Option<u64>,
        /// What is wrong with it.
        why: String,
    },
    /// The database reported something else.
    #[error("the store failed: {source}")]
    Storage {
        /// What the database said.
        source: BoxError,
    },
}

fn of_document(key: Option<&str>) -> String {
    key.map(|key| format!(" of document {key:?}")).unwrap_or_default()
}

impl Error {
    /// Returns whether the same call may succeed when it is made again later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::DiskFull | Self::Interrupted | Self::HeadMoved { .. }
        )
    }

    /// Returns whether a verb refused what it was given: an id, a name, a range, a summary. Nothing was
    /// done, and the same call is refused again.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// assert!(chat.add_compaction(" ", &hello, &hello).unwrap_err().is_refused());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(
            self,
            Self::UnknownMessage { .. }
                | Self::NotAncestor { .. }
                | Self::InsideSummary { .. }
                | Self::NothingVisible { .. }
                | Self::SummaryRefused { .. }
                | Self::InvalidName { .. }
        )
    }

    /// Returns whether something that was named does not exist.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::UnknownMessage { .. }
                | Self::UnknownSession { .. }
                | Self::UnknownCompaction { .. }
                | Self::UnknownCall { .. }
                | Self::UnknownBlock { .. }
                | Self::UnknownVersion { .. }
        )
    }
}
