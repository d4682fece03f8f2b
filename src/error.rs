//! The error type of the library.
//!
//! Each variant is something that a caller can act on; every other failure is [`Error::Storage`]. Each text names the place,
//! the offender and the limit.

use std::path::{Path, PathBuf};

use talktree_text::foreign;

use crate::compaction::{Stale, SummaryRefused};
use crate::id::{CompactionId, MessageId, SessionId, shorten};

/// Any error. Callbacks return it, so that they can use `?` on any error type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A [`Result`](std::result::Result) with talktree's [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of this library.
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
    /// The session has no message of this id. Nothing was changed.
    #[error("session {session:?} has no message {id:?}")]
    UnknownMessage {
        /// The session.
        session: SessionId,
        /// The unknown id.
        id: MessageId,
    },
    /// The message is not unfinished any more: someone finished it. Nothing was changed.
    #[error("message {id:?} of session {session:?} is finished")]
    Finished {
        /// The session.
        session: SessionId,
        /// The message.
        id: MessageId,
    },
    /// The store has no session of this id.
    #[error("the store has no session {id:?}")]
    UnknownSession {
        /// The unknown id.
        id: SessionId,
    },
    /// The session was removed after this handle had seen it. Nothing was written; the handle and its clones read as
    /// empty. A new handle of the same id begins a new session.
    #[error("session {id:?} was removed; a new handle of this id begins a new session")]
    SessionRemoved {
        /// The session.
        id: SessionId,
    },
    /// The session is in the trash, where it cannot be written. Nothing was written.
    #[error("session {id:?} is in the trash; restore it before writing to it")]
    SessionInTrash {
        /// The session.
        id: SessionId,
    },
    /// The session was erased, and imports of it are forbidden. Nothing was written.
    #[error("session {id:?} was erased, and must not be imported again")]
    SessionErased {
        /// The session.
        id: SessionId,
    },
    /// A text that was erased is still in a file of the store.
    #[error(
        "erased text is still in {} at byte {offset}, and at {} other places",
        foreign::path(path), occurrences.saturating_sub(1)
    )]
    NotErased {
        /// The number of places where it was found.
        occurrences: u64,
        /// The file of the first place.
        path: PathBuf,
        /// The first place, in bytes from the start of the file.
        offset: u64,
    },
    /// A part of what an erasure named was not found, and an erasure that was interrupted may have named it before. All of it is
    /// deleted, but the texts of that part are not known here, so a proof cannot look for them.
    #[error(
        "it cannot be proved that nothing is left: a part of what was named is unknown; an interrupted erasure may have deleted it, and its texts are not known here"
    )]
    NotProved,
    /// The session has no owner, so it has no texts of its owner. Nothing was written.
    #[error(
        "session {session:?} has no owner, so there are no texts of its owner; set an owner first"
    )]
    NoOwner {
        /// The session.
        session: SessionId,
    },
    /// The session has no compaction of this id.
    #[error("session {session:?} has no compaction {id:?}")]
    UnknownCompaction {
        /// The session.
        session: SessionId,
        /// The unknown id.
        id: CompactionId,
    },
    /// The message has no result of this tool call.
    #[error("message {message:?} has no result of tool call {call:?}")]
    UnknownCall {
        /// The message.
        message: MessageId,
        /// The id of the call, truncated to 80 characters.
        call: String,
    },
    /// The store already has a session of this id.
    #[error("the store already has a session {id:?}")]
    SessionExists {
        /// The id in use.
        id: SessionId,
    },
    /// An id, a name, a label or another value is not allowed.
    #[error("{what} {given:?} cannot be used: {why}")]
    InvalidValue {
        /// The kind of value: `message id`, `session id`, `label`, `number of tokens`, ..
        what: &'static str,
        /// The value, truncated to 80 characters.
        given: String,
        /// The rule, with its limit.
        why: String,
    },
    /// Every session of the store meets a rule of a retention. Nothing was discarded.
    #[error("{}; check the rule and the clock, or allow it", meets_all(rule, *sessions))]
    RuleMeetsAll {
        /// The name of the rule.
        rule: String,
        /// How many sessions there are, without pinned ones and those in the trash.
        sessions: u64,
    },
    /// A message is larger than the store's limit.
    #[error("message {id:?} is {bytes} bytes of JSON, over the store's limit of {max}")]
    MessageTooLarge {
        /// The message.
        id: MessageId,
        /// Its size, in bytes of JSON.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// A value other than a message is larger than the store's limit for messages.
    #[error("{what} is {bytes} bytes, over the store's limit of {max}")]
    TooLarge {
        /// The kind of value: `a summary`, `session metadata`, ..
        what: &'static str,
        /// Its size, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// The head is not where the caller expected it. Nothing was appended.
    #[error("the head is {}, not {}", at(found.as_ref()), at(expected.as_ref()))]
    HeadMoved {
        /// The head that the caller expected.
        expected: Option<MessageId>,
        /// The actual head.
        found: Option<MessageId>,
    },
    /// The first message of a range is not on the path to its last.
    #[error("message {first:?} is not on the path to {last:?}")]
    NotAncestor {
        /// The first message of the range.
        first: MessageId,
        /// The last message of the range.
        last: MessageId,
    },
    /// An end of a new compaction is inside the range of a visible summary.
    #[error(
        "message {id:?} is inside the summary {compaction:?}; compact the whole summary or remove it first"
    )]
    InsideSummary {
        /// The end.
        id: MessageId,
        /// The compaction of that summary.
        compaction: CompactionId,
    },
    /// The range has no visible message, so a summary would lengthen the history.
    #[error("no message from {first:?} to {last:?} is visible to a model")]
    NothingVisible {
        /// The first message of the range.
        first: MessageId,
        /// The last message of the range.
        last: MessageId,
    },
    /// The summary is blank or not shorter than its range, or the range of a policy may not be compacted. The caller may try
    /// another one.
    #[error("{why}")]
    SummaryRefused {
        /// The reason.
        why: SummaryRefused,
    },
    /// The plan is stale, and nothing was stored. The caller may make another plan.
    #[error("the plan is stale: {why}")]
    Stale {
        /// What changed since the plan was made.
        why: Stale,
    },
    /// The plan was made in another session, in another store, or before the session was removed. Nothing was stored.
    #[error("{}", made_elsewhere(planned, session))]
    PlanOfAnother {
        /// The session that the plan was made in.
        planned: SessionId,
        /// The session that it was given to.
        session: SessionId,
    },
    /// The summarizer failed or panicked. The session is unchanged.
    #[error("the summarizer failed: {source}")]
    Summarizer {
        /// The error of the summarizer.
        source: BoxError,
    },
    /// The embedder failed or panicked, or its vectors cannot be used. Nothing of the batch was stored.
    #[error("the embedder failed: {source}")]
    Embedder {
        /// The error of the embedder, or why its vectors cannot be used.
        source: BoxError,
    },
    /// The program's own compaction policy failed or panicked. The session is unchanged.
    #[error("the compaction policy failed: {source}")]
    CompactionPolicy {
        /// The error of the policy.
        source: BoxError,
    },
    /// A summary is needed, and the session has no summarizer.
    #[error(
        "session {session:?} has no `summarizer` and no `compaction_policy`; open it with one, or plan and commit by hand"
    )]
    NoSummarizer {
        /// The session.
        session: SessionId,
    },
    /// The session's summarizer already writes a summary of this session in this process. Nothing was done; the caller may
    /// try again, unless it is the summarizer itself.
    #[error("session {session:?} is being compacted already; wait until that is done")]
    CompactionInProgress {
        /// The session.
        session: SessionId,
    },
    /// A provider's response holds no answer of a model. Nothing was stored.
    #[error("the response holds no answer of a model: {why}")]
    NoAnswer {
        /// The reason; of a provider's error its message, truncated to 300 characters.
        why: String,
    },
    /// A text is larger than the limit of its context block. The block is unchanged.
    #[error("context block {:?} holds {tokens} tokens, over its limit of {max}", shorten(label))]
    BlockOverLimit {
        /// The block.
        label: String,
        /// The size of the text, in estimated tokens.
        tokens: u64,
        /// The block's limit.
        max: u64,
    },
    /// The context block is read-only.
    #[error("context block {:?} is read-only", shorten(label))]
    BlockReadOnly {
        /// The block.
        label: String,
    },
    /// The context block holds documents, so a write needs a key.
    #[error("context block {:?} holds documents under keys; write one with {call}", shorten(label))]
    BlockKeyed {
        /// The block.
        label: String,
        /// The call that writes a document.
        call: &'static str,
    },
    /// The kind of the context block does not allow this.
    #[error("context block {:?} cannot {what}", shorten(label))]
    BlockCannot {
        /// The block.
        label: String,
        /// The rejected operation.
        what: &'static str,
    },
    /// There is no context block of this label.
    #[error("there is no context block {:?}", shorten(label))]
    UnknownBlock {
        /// The unknown label.
        label: String,
    },
    /// There already is a context block of this label.
    #[error("there is already a context block {:?}", shorten(label))]
    BlockExists {
        /// The label in use.
        label: String,
    },
    /// A context has too many blocks.
    #[error("a context holds at most {max} blocks")]
    TooManyBlocks {
        /// The maximum number of blocks.
        max: usize,
    },
    /// The text has no such version, or no longer has it.
    #[error("context block {:?} has no version {version}{}", shorten(label), of_document(key.as_deref()))]
    UnknownVersion {
        /// The block.
        label: String,
        /// The key of the document; `None` for the text of the block itself.
        key: Option<String>,
        /// The unknown version.
        version: u64,
    },
    /// The provider of a context block failed. The block is unchanged.
    #[error("the provider of context block {:?} failed: {source}", shorten(label))]
    Provider {
        /// The block.
        label: String,
        /// The error of the provider.
        source: BoxError,
    },
    /// The provider of a context block was still in another call, and this one must not overlap it. The provider is slow,
    /// or it called its own block. The block is unchanged.
    #[error(
        "context block {:?} is busy: its provider was still in another call after {waited_ms} ms",
        shorten(label)
    )]
    BlockBusy {
        /// The block.
        label: String,
        /// How long the call waited; 0 if the provider itself made it.
        waited_ms: u64,
    },
    /// A token counter gave no valid count: it panicked, or its count is negative, not finite or over 4 294 967 295. The
    /// estimate is used instead. Only an error handler gets this error.
    #[error("the token counter {:?} failed: {why}", shorten(name))]
    TokenCounter {
        /// The name of the counter.
        name: String,
        /// What it did: the panic, or the count and the limit.
        why: String,
    },
    /// A callback failed where no verb can return its error. The change before it is committed. Only an error handler
    /// gets this error.
    #[error("{what} failed: {why}")]
    Callback {
        /// The callback: `a listener`, `automatic compaction`, ..
        what: &'static str,
        /// What it did.
        why: String,
    },
    /// The session has had 4 294 967 294 messages. Deleted messages count.
    #[error("session {session:?} is full: it has had {max} messages, its limit")]
    SessionFull {
        /// The session.
        session: SessionId,
        /// The limit.
        max: u64,
    },
    /// The store has reached the maximum number of sessions. Deleted sessions count.
    #[error("the store is full: it has had {max} sessions, its limit")]
    StoreFull {
        /// The limit.
        max: i64,
    },
    /// A store has reached the maximum number of context blocks, or a block the maximum number of texts. Deleted ones count.
    #[error("the limit of {max} {what} is reached; deleted ones count")]
    ContextFull {
        /// The kind: `context blocks` of the store, `texts` of a block.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// A store has reached the maximum number of transcripts, or a transcript the maximum number of entries. Deleted
    /// transcripts count.
    #[error("the limit of {max} {what} is reached; deleted ones count")]
    TranscriptFull {
        /// The kind: `transcripts` of the store, `entries` of a transcript.
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// The file is not a talktree store.
    #[error("{} is not a talktree store: {why}", foreign::path(path))]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file cannot be decrypted: it is encrypted and the key is wrong or was not given, it is not encrypted and a key was
    /// given, or it is not a store. Nothing was changed.
    #[error("{} cannot be decrypted: {why}", foreign::path(path))]
    WrongKey {
        /// The file.
        path: PathBuf,
        /// The likely reason; an encrypted file cannot be told from random bytes.
        why: String,
    },
    /// The store was written by a newer talktree.
    #[error("store has schema version {found}; this build reads up to {supported}")]
    NewerStore {
        /// The version of the file.
        found: u32,
        /// The newest version that this build supports.
        supported: u32,
    },
    /// The file was moved, replaced or deleted while the store was open, or the schema renamed or replaced; nothing was written to
    /// another store. Open the store again under its new name.
    #[error("{} is no longer this store: it was moved, replaced or deleted", foreign::path(path))]
    StoreMoved {
        /// The path that the store was opened under, without symbolic links; on a server the schema.
        path: PathBuf,
    },
    /// The file has another name, a hard link. By each name it would have a log of its own, and acknowledged writes would
    /// be lost. Remove the other name, or open a copy.
    #[error("{}", hard_linked(path, other.as_deref()))]
    HardLinked {
        /// The name by which it was opened, without symbolic links.
        path: PathBuf,
        /// The other name, if it is in the same folder.
        other: Option<PathBuf>,
    },
    /// The file is mounted by itself, as by `docker run -v /srv/bot.db:/data/bot.db`. Where it comes from it would have another
    /// log, and acknowledged writes would be lost. Mount the folder that it is in.
    #[error(
        "{} is a file that is mounted by itself; where it comes from it would have another log, and messages would be lost: \
         mount the folder that it is in",
        foreign::path(path)
    )]
    MountedFile {
        /// The file, without symbolic links.
        path: PathBuf,
    },
    /// The store has a log or is written by others, and its log cannot be read: SQLite needs lock files
    /// beside it, and cannot create them. What could be read would be an old state.
    #[error(
        "{} has a write-ahead log or is written by others, which cannot be read without permission to write in its \
         folder; get that permission, or have the programs that use it close it and open it again",
        foreign::path(path)
    )]
    UnreadableLog {
        /// The file, without symbolic links.
        path: PathBuf,
    },
    /// The file was written by an older build, and a store that is opened for reading only cannot
    /// migrate it.
    #[error(
        "store has schema version {found}; open it once for writing to migrate it to {current}"
    )]
    OlderStore {
        /// The version of the file.
        found: u32,
        /// The version that this build reads and writes.
        current: u32,
    },
    /// The store was opened as read-only, or its file is read-only.
    #[error("the store is read-only")]
    ReadOnly,
    /// Other writers held the lock for longer than the busy timeout.
    #[error("the store is busy: other writers held its lock for over {waited_ms} ms")]
    Busy {
        /// How long the write waited, for other threads of this process, too, in milliseconds.
        waited_ms: u64,
    },
    /// The disk is full. The write was rolled back.
    #[error("the disk is full; the write was rolled back")]
    DiskFull,
    /// The operation was stopped through an interrupt handle.
    #[error("the operation was interrupted")]
    Interrupted,
    /// The data breaks an invariant of the store.
    #[error("the store is damaged: {what}; `verify` tells more")]
    Corrupt {
        /// The broken invariant and its place.
        what: String,
    },
    /// The storage does not support this operation.
    #[error("this storage does not support {what}")]
    Unsupported {
        /// The operation.
        what: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", foreign::path(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A text is not JSON, or the JSON has another shape than expected.
    #[error("{what} is not valid: {source}")]
    Json {
        /// The text: `a message`, `a record`, ..
        what: &'static str,
        /// The error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// A file cannot be imported.
    #[error("{}{}: {why}", foreign::path(path), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Import {
        /// The file.
        path: PathBuf,
        /// The line, from 1; `None` if the format has no lines.
        line: Option<u64>,
        /// The reason.
        why: String,
    },
    /// Any other error of the database.
    #[error("the store failed: {source}")]
    Storage {
        /// The error of the database.
        source: BoxError,
    },
}

/// Returns where a head is, in words.
/// Checks that a text is within a limit, in bytes.
pub(crate) fn check_size(what: &'static str, bytes: usize, max: usize) -> Result<()> {
    if bytes > max { Err(Error::TooLarge { what, bytes, max }) } else { Ok(()) }
}

fn at(head: Option<&MessageId>) -> String {
    head.map_or_else(|| "before the first message".to_owned(), |id| format!("at {id:?}"))
}

fn meets_all(rule: &str, sessions: u64) -> String {
    let rule = shorten(rule);
    match sessions {
        1 => format!("the only session that is not pinned meets retention rule {rule:?}"),
        _ => format!("all {sessions} sessions that are not pinned meet retention rule {rule:?}"),
    }
}

fn made_elsewhere(planned: &SessionId, session: &SessionId) -> String {
    match planned == session {
        true => format!(
            "the plan was made in another session {session:?}: of another store, or removed since"
        ),
        false => format!("the plan was made in session {planned:?}, not in {session:?}"),
    }
}

fn hard_linked(path: &Path, other: Option<&Path>) -> String {
    let path = foreign::path(path);
    let other = match other {
        Some(other) => format!("the hard link {}", foreign::path(other)),
        None => "a hard link in another folder (`find -samefile` finds it)".to_owned(),
    };
    format!(
        "{path} has another name, {other}; each name would have a log of its own, and messages would be lost: remove \
         one of the names, or open a copy"
    )
}

fn of_document(key: Option<&str>) -> String {
    key.map(|key| format!(" of document {:?}", shorten(key))).unwrap_or_default()
}

impl Error {
    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::BlockBusy { .. }
                | Self::CompactionInProgress { .. }
                | Self::DiskFull
                | Self::Interrupted
                | Self::HeadMoved { .. }
        )
    }

    /// Returns whether a verb refused an argument: an id, a name, a range, a summary. Nothing was done,
    /// and the same call fails again.
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
                | Self::InvalidValue { .. }
        )
    }

    /// Returns whether a name in the call is unknown.
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
