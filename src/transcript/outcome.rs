//! The results of the verbs of transcripts.

use std::path::PathBuf;

use super::TranscriptKey;
use crate::id::SessionId;

/// The result of an append of entries.
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts();
/// let key = TranscriptKey::new("project", "session");
/// let entry = Json::parse(r#"{"type": "user", "uuid": "1"}"#)?;
/// assert_eq!(transcripts.append(&key, &[entry.clone()])?.added, 1);
/// let again = transcripts.append(&key, &[entry])?;
/// assert_eq!((again.added, again.known, again.differing), (0, 1, 0));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AppendedEntries {
    /// The number of entries that were added.
    pub added: u64,
    /// The number of entries that were not, because the transcript has an entry of their `uuid`.
    pub known: u64,
    /// How many of the known ones differ from the entry that is stored.
    pub differing: u64,
}

/// A session in a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedTranscript {
    /// The id of the session.
    pub session: String,
    /// When an entry was last appended to its main transcript, in milliseconds since 1970.
    pub mtime: i64,
}

/// A transcript in a list, with what a program needs to decide which transcripts to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredTranscript {
    /// Its place in lists of transcripts, which are in order of creation.
    pub number: u64,
    /// Its key.
    pub key: TranscriptKey,
    /// Whose data it is.
    pub owner: Option<String>,
    /// How many entries it has. Entries are only deleted with their transcript.
    pub entries: u64,
    /// When an entry was last appended, in milliseconds since 1970.
    pub mtime: i64,
    /// The session of the store that shows it, if it is projected.
    pub projected_to: Option<SessionId>,
}

/// Which transcripts a list shows; by default all.
///
/// ```
/// use talktree::{Json, Store, TranscriptFilter, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts().owned_by("user:42");
/// let entry = Json::parse(r#"{"type": "user"}"#)?;
/// transcripts.append(&TranscriptKey::new("project", "session"), &[entry])?;
/// let filter = TranscriptFilter { owner: Some("user:42".into()), ..TranscriptFilter::default() };
/// assert_eq!(transcripts.list(&filter, None, 20)?[0].key.session, "session");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptFilter {
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those to which nothing was appended at this time or later, in milliseconds since 1970.
    pub written_before: Option<i64>,
}

/// What a copy of a session's conversation has; by default all of it.
///
/// ```
/// use talktree::TranscriptFork;
///
/// let fork = TranscriptFork { title: Some("Second try".into()), ..TranscriptFork::default() };
/// assert_eq!(fork.last, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptFork {
    /// The `uuid` of the last entry that is copied, in the order of the transcript.
    pub last: Option<String>,
    /// The title of the copy; `None`: that of the session with ` (fork)`.
    pub title: Option<String>,
}

/// The result of an import or an export of transcripts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TranscriptFiles {
    /// The files that were read or written.
    pub files: Vec<PathBuf>,
    /// The number of entries that were added, or written to the files.
    pub entries: u64,
    /// In an import: the number of entries that the store had already.
    pub known: u64,
    /// In an import: the lines that are no entries. They were skipped.
    pub unread: Vec<UnreadLine>,
    /// In an export: the subpaths that are not safe in a path. They were not written.
    pub refused: Vec<String>,
}

/// A line of a file that is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// The reason.
    pub why: String,
}
