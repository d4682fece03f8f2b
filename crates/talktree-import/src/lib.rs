//! Imports conversations from the files of other programs into a [`talktree`] store.
//!
//! ```
//! use talktree::Store;
//! use talktree_import::ImportOptions;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("chat.json");
//! let chat = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]"#;
//! std::fs::write(&path, chat).unwrap();
//! let store = Store::open_in_memory()?;
//! let report = talktree_import::import(&store, &path, &ImportOptions::default(), |_| {})?;
//! assert_eq!((report.format.as_str(), report.kept, report.added), ("openai", 2, 2));
//! assert_eq!(store.session(&report.sessions[0])?.history()?[1].text(), "ho");
//!
//! let again = talktree_import::import(&store, &path, &ImportOptions::default(), |_| {})?;
//! assert_eq!((again.added, again.known), (0, 2));
//! # Ok::<(), talktree::Error>(())
//! ```
//!
//! A file is read as what it is, whatever its name: the [`Format`] is told from the content. Each of
//! its *records* (a line, a message, a node of a tree) becomes a message, or something else that a
//! session holds, or nothing; the [`ImportReport`] counts all three and says why. Ids that a source
//! gives are kept to the letter, and others are derived from the content, so importing a file again
//! adds nothing and importing one that has grown adds what is new. Trees stay trees. A compaction of
//! the source becomes a compaction; the messages that its summary replaces are kept. talktree's own
//! JSON lines are handed to [`Store::import_jsonl`](talktree::Store::import_jsonl).
//!
//! # How it is built
//!
//! A *reader*, one file a format, turns records into *drafts*: conversations of nodes that name
//! their parents, with compactions, labels and a head. The driver cuts the file into records, and
//! puts each draft in order and stores it over talktree's public API. A reader decides what a record
//! means; the driver decides what becomes of parents that are missing, circles, repeated records,
//! and messages that the store already has.
//!
//! Invariant: parents are stored before their children, in the order of the file otherwise.
//!
//! Invariant: what a file cannot tell is never guessed in silence: a line that is damaged, a parent
//! that is missing, a circle, a session id that another conversation has are all in the report.
//!
//! Invariant: no more than one record of a file is in memory, and an index of ids and places.

mod compactions;
mod conflict;
mod draft;
mod driver;
mod fields;
mod formats;
mod noted;
mod order;
mod pointer;
mod records;
mod work;
mod write;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use talktree::import::ImportReport;
use talktree::{Error, Progress, Result, SessionId, Store};

pub use formats::Format;

/// How a file is imported.
///
/// ```
/// use talktree_import::{Format, ImportOptions};
///
/// let format = Some(Format::Pi);
/// let options = ImportOptions { format, is_dry_run: true, ..ImportOptions::default() };
/// assert!(!options.is_strict);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// The format of the file; `None` to tell it from the content.
    pub format: Option<Format>,
    /// The session to import into, for a file that holds one conversation; `None` for the id that
    /// the file gives, or one derived from its name and first words.
    pub session: Option<SessionId>,
    /// Whether the first fault of the source (a damaged line, a missing parent, ..) is an error;
    /// then nothing of the file is written.
    pub is_strict: bool,
    /// Whether to write nothing, and to report what would be done.
    pub is_dry_run: bool,
    /// Whether to keep each message's record as it came, under the metadata key `source`;
    /// talktree's own records are the messages themselves.
    pub keeps_source: bool,
}

/// Imports the conversations of a file and returns what became of its records.
///
/// A second import of the same file adds nothing, and one of a file that has grown adds its tail. The
/// head stays where it is unless something was added. Messages, labels and compactions that were
/// deleted or removed since they were imported do not come back. Messages are written about a thousand
/// at a time: what was written before an error stays, and importing again completes it, the head
/// included. `progress` hears bytes.
///
/// ```
/// use talktree::Store;
/// use talktree_import::ImportOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("chat.json");
/// # std::fs::write(&path, r#"[{"role": "user", "content": "hi"}, 7]"#).unwrap();
/// let store = Store::open_in_memory()?;
/// let rehearsal = ImportOptions { is_dry_run: true, ..ImportOptions::default() };
/// let report = talktree_import::import(&store, &path, &rehearsal, |_| {})?;
/// assert_eq!((report.records, report.added, report.dropped), (2, 1, 1));
/// assert!(store.sessions()?.is_empty());
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Import`] if it is in no format that is read
/// here, if [`ImportOptions::is_strict`] is set and something is wrong with it, or if
/// [`ImportOptions::session`] is set and it holds several conversations; [`Error::Interrupted`]; as
/// every write.
pub fn import(
    store: &Store,
    path: impl AsRef<Path>,
    options: &ImportOptions,
    progress: impl FnMut(Progress),
) -> Result<ImportReport> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    import_reader(store, path, file, options, progress)
}

/// Imports the conversations of anything that can be read and sought in: an entry of an archive,
/// bytes in memory.
///
/// The name is for the report, and its last component for ids that are derived.
///
/// ```
/// use std::io::Cursor;
/// use talktree::Store;
/// use talktree_import::{ImportOptions, import_reader};
///
/// let store = Store::open_in_memory()?;
/// let file = Cursor::new(r#"{"id": "c1", "messages": [{"role": "user", "content": "hi"}]}"#);
/// let options = ImportOptions::default();
/// let report = import_reader(&store, "export.zip/c1.json", file, &options, |_| {})?;
/// assert_eq!((report.format.as_str(), report.sessions[0].as_str()), ("openai", "c1"));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`import`].
pub fn import_reader(
    store: &Store,
    name: impl AsRef<Path>,
    mut reader: impl Read + Seek,
    options: &ImportOptions,
    mut progress: impl FnMut(Progress),
) -> Result<ImportReport> {
    driver::import(store, name.as_ref(), &mut reader, options, &mut progress)
}
