//! Imports conversations from the files of other programs into a [`talktree`] store, and exports them.
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
//! The [`Format`] of a file is detected from its content, not from its name. Each of its *records* (a line, a message,
//! a node of a tree) becomes a message, or another part of a session, or is dropped; the [`ImportReport`] counts all
//! three and gives reasons. Ids of the source are kept unchanged, and missing ones are derived from the content. So
//! importing a file again adds nothing, and importing a file that has grown adds its new messages. Trees stay trees. A
//! compaction of the source becomes a compaction; the messages that its summary replaces are kept. talktree's own JSON
//! lines ([`export_jsonl`](export::export_jsonl)) are one of the formats; they are exact.
//!
//! # How it is built
//!
//! A *reader*, one per format, turns records into *drafts*: conversations of nodes that name their parents, with
//! compactions, labels and a head. The driver splits the file into records, sorts each draft and stores it through
//! talktree's public API. The reader decides what a record means. The driver handles missing parents, cycles, repeated
//! records, and messages that the store already has.
//!
//! Invariant: parents are stored before their children, and otherwise in the order of the file.
//!
//! Invariant: nothing is guessed silently. A damaged line, a missing parent, a cycle, and a session id that another
//! conversation has are all in the report.
//!
//! Invariant: memory holds at most one record of a file, and an index of ids and positions.

mod attached;
mod collect;
mod conflict;
mod copy;
mod draft;
mod driver;
mod edits;
pub mod export;
mod folder;
mod formats;
mod importer;
mod lineage;
mod places;
mod plan;
mod records;
mod redact;
mod report;
mod sniff;
mod unnamed;
#[cfg(feature = "zstd")]
mod unpack;
mod watch;
mod work;
mod write;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use talktree::{Error, Progress, Result, SessionId, Store};

pub use collect::Collector;
pub use copy::{Copied, copy};
pub use folder::{FolderImport, conversation_files, import_folder};
pub use formats::Format;
pub use importer::Importer;
pub use places::Place;
pub use redact::redact;
pub use report::{ImportReport, MAX_NOTES, Note};
use talktree::records::{fields, order, title};
pub use title::Title;
pub use watch::{Watched, watch};

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
    /// The format of the file; `None` to detect it from the content.
    pub format: Option<Format>,
    /// The session to import into, for a file that holds one conversation; `None` for the id that
    /// the file gives, or one derived from its messages.
    pub session: Option<SessionId>,
    /// Whether the first fault of the source (a damaged line, a missing parent, ..) is an error;
    /// then nothing of the file is written.
    pub is_strict: bool,
    /// Whether to write nothing, and report what would be done.
    pub is_dry_run: bool,
    /// Whether to keep each message's original record, under the metadata key `source`. talktree's own records are the
    /// messages themselves.
    pub keeps_source: bool,
    /// Whether what looks like a key or a token is replaced by its kind before it is stored: in texts, reasoning, inputs and
    /// outputs of tools, summaries and metadata. The report counts each [kind](ImportReport::redacted).
    pub is_redacted: bool,
}

/// Imports the conversations of a file and returns the counts of its records.
///
/// A second import of the same file adds nothing, and an import of a file that has grown adds its new messages. The
/// head stays where it is unless a message that is not hidden was added. Messages, labels and compactions that were
/// deleted or removed since they were imported do not come back. A conversation is stored in one transaction, as a whole or
/// not at all; those stored before an error stay, and a second import completes the file. `progress` receives bytes.
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
/// [`Error::Io`] if the file cannot be read; [`Error::Import`] if its format is unknown, if it belongs to a store that this
/// process has open, if [`ImportOptions::is_strict`] is set and the file has a fault, or if [`ImportOptions::session`] is
/// set and it holds several conversations; [`Error::Interrupted`]; as every write.
pub fn import(
    store: &Store,
    path: impl AsRef<Path>,
    options: &ImportOptions,
    progress: impl FnMut(Progress),
) -> Result<ImportReport> {
    let path = path.as_ref();
    let file = open(path)?;
    import_reader(store, path, file, options, progress)
}

/// Opens a file, unless a store of this process has it open.
fn open(path: &Path) -> Result<File> {
    // To open and close it would drop the locks of that store.
    if Store::is_open_file(path) {
        let why = "it belongs to a store that this program has open".to_owned();
        return Err(Error::Import { path: path.to_owned(), line: None, why });
    }
    File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// Imports the conversations of any reader that can seek, such as an entry of an archive or bytes in memory.
///
/// `name` is for the report; derived ids use its last component.
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
    reader: impl Read + Seek,
    options: &ImportOptions,
    progress: impl FnMut(Progress),
) -> Result<ImportReport> {
    let name = name.as_ref();
    let mut importer = Importer::new(store, options.clone());
    importer.add(name, reader, progress)?;
    let report = importer.finish()?.pop();
    // There is one for every file that was added.
    Ok(report.unwrap_or_else(|| ImportReport::new(name, "")))
}

/// Runs the examples of the document that needs this crate.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/migrating.md")]
    mod migrating {}
}
