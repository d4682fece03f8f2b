//! What a program learns about projected transcripts.

use crate::id::{MessageId, SessionId};

/// A transcript as a session of the store: from [`Transcripts::projection`](crate::Transcripts::projection).
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts().projecting();
/// let key = TranscriptKey::new("project", "session");
/// let lost = r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"content":"And then?"}}"#;
/// transcripts.append(&key, &[Json::parse(lost)?])?;
///
/// let projection = transcripts.projection(&key)?.expect("it was projected");
/// assert_eq!(projection.session.as_str(), "session");
/// assert_eq!(projection.missing_parents[0].parent.as_str(), "a");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Projection {
    /// The session that shows the transcript.
    pub session: SessionId,
    /// How many of its entries are projected, from the first one on.
    pub entries: u64,
    /// How many later entries are not projected yet.
    pub waiting: u64,
    /// How many of the projected entries are not in the session although they are messages: they cannot be read as one, are
    /// too large for one, or were deleted from the session.
    pub left_out: u64,
    /// The messages whose parent is not in the transcript. Each follows the message before it.
    pub missing_parents: Vec<MissingParent>,
    /// Whether an entry has come that changes the place or the content of earlier messages, and the session does not show
    /// that yet.
    pub needs_repair: bool,
    /// Whether the session was changed by others: it was written to, or its head was moved. Such a session is not repaired.
    pub is_changed: bool,
}

/// A message whose parent is not in its transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingParent {
    /// The message.
    pub message: MessageId,
    /// The parent that its entry names.
    pub parent: MessageId,
}

impl MissingParent {
    pub(crate) fn new(message: MessageId, parent: MessageId) -> Self {
        Self { message, parent }
    }
}

/// The result of [`Transcripts::project_all`](crate::Transcripts::project_all).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProjectionReport {
    /// The number of transcripts that are sessions now.
    pub sessions: u64,
    /// The number of transcripts that are not: they have no messages, or their session was erased for good.
    pub without_session: u64,
    /// The number of messages whose parent is missing.
    pub missing_parents: u64,
    /// The number of entries that are messages and are left out.
    pub left_out: u64,
    /// The number of sessions that need a repair, which others have changed.
    pub unrepaired: u64,
}

impl ProjectionReport {
    pub(crate) fn add(&mut self, projection: Option<&Projection>) {
        let Some(projection) = projection else {
            self.without_session += 1;
            return;
        };
        self.sessions += 1;
        self.missing_parents += projection.missing_parents.len() as u64;
        self.left_out += projection.left_out;
        self.unrepaired += u64::from(projection.needs_repair);
    }
}
