//! Reading talktree's own JSON lines back.
//!
//! An [`export`](crate::export) is exact and has parents before their children, so it is read from front to back. Each
//! line is details of a session, a message (about a thousand are stored in one transaction), a compaction, a label or
//! the head. The [`ImportReport`] counts the result of each line and gives reasons. Files of other programs are read by
//! the crate `talktree-import`, which reports the same way.
//!
//! Invariant: importing again adds nothing, and does not restore what was deleted or removed since. For that the store
//! keeps the names of the records, see [`ImportRecord`](crate::ImportRecord).
//!
//! Invariant: nothing is guessed silently. A damaged line, a missing parent and a session id that another conversation
//! has are all in the report.
//!
//! Invariant: no more than one batch of messages is in memory, and the ids of one session.

mod boundary;
mod driver;
mod incoming;
mod lines;
mod look_ahead;
mod record;
mod record_names;
mod report;
mod whole;

use std::io::{Read, Seek};
use std::path::Path;

use crate::error::Result;
use crate::id::SessionId;
use crate::report::Progress;
use crate::store::Store;

pub use report::{ImportReport, MAX_NOTES, Note};

/// The name of talktree's own format in an [`ImportReport`].
pub const FORMAT: &str = "talktree";

/// How an export is imported.
///
/// ```
/// use talktree::import::JsonlOptions;
///
/// let options = JsonlOptions { is_strict: true, ..JsonlOptions::default() };
/// assert!(!options.is_dry_run);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonlOptions {
    /// The session to import into, for an export of one session; `None` for the id it has there.
    pub session: Option<SessionId>,
    /// Whether the first fault of the file (a damaged line, a missing parent, a wrong checksum, ..)
    /// is an error; then nothing of the file is written.
    pub is_strict: bool,
    /// Whether to write nothing, and report what would be done.
    pub is_dry_run: bool,
}

impl Store {
    /// Imports an export of [`export_jsonl`](Self::export_jsonl) and returns the counts of its lines.
    ///
    /// A second import of the same file adds nothing, and an import of a later export adds its new messages. The head
    /// stays where it is unless something was added. Messages, labels and compactions that were deleted or removed
    /// since they were imported do not come back. Messages are written about a thousand at a time: those written before
    /// an error stay, and a second import completes them and sets the head. `name` is for the report and for errors;
    /// `progress` receives bytes. Before you open a file that you did not choose, ask [`Store::is_open_file`].
    ///
    /// ```
    /// use std::io::Cursor;
    /// use talktree::{Message, Store, import::JsonlOptions};
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append(Message::user("hi"))?;
    /// let mut file = Vec::new();
    /// store.export_jsonl(&mut file)?;
    ///
    /// let copy = Store::open_in_memory()?;
    /// let options = JsonlOptions::default();
    /// let report = copy.import_jsonl("chats.jsonl", Cursor::new(&file), &options, |_| {})?;
    /// assert_eq!((report.added, report.dropped), (1, 0));
    /// assert_eq!(copy.content_hash()?, store.content_hash()?);
    ///
    /// let again = copy.import_jsonl("chats.jsonl", Cursor::new(&file), &options, |_| {})?;
    /// assert_eq!((again.added, again.known), (0, 1));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read;
    /// [`Error::Import`](crate::Error::Import) if [`JsonlOptions::is_strict`] is set and the file has a fault, or if
    /// [`JsonlOptions::session`] is set and it holds several sessions;
    /// [`Error::Interrupted`](crate::Error::Interrupted); as every write.
    pub fn import_jsonl(
        &self,
        name: impl AsRef<Path>,
        mut input: impl Read + Seek,
        options: &JsonlOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<ImportReport> {
        driver::import(self, name.as_ref(), &mut input, options, &mut progress)
    }
}
