//! Reading talktree's own JSON lines back.
//!
//! An [`export`](crate::export) is exact and has parents before their children, so it is read from
//! front to back, and each line becomes what it says: details of a session, messages (about a
//! thousand in one transaction), compactions, labels, the head. The [`ImportReport`] counts what
//! became of each line and says why. Files of other programs are read by the crate
//! `talktree-import`, which reports the same way.
//!
//! Invariant: importing again adds nothing, and what was deleted or removed since is not brought
//! back. What the store keeps for that is the names of the records, see
//! [`ImportRecord`](crate::ImportRecord).
//!
//! Invariant: what a file cannot tell is never guessed in silence: a line that is damaged, a parent
//! that is missing, a session id that another conversation has are all in the report.
//!
//! Invariant: no more than one batch of messages is in memory, and the ids of one session.

mod driver;
mod incoming;
mod lines;
mod look_ahead;
mod record;
mod report;

use std::io::{Read, Seek};
use std::path::Path;

use crate::error::Result;
use crate::id::SessionId;
use crate::report::Progress;
use crate::store::Store;

pub use report::{ImportReport, MAX_NOTES, Note};

/// The name of the own format in an [`ImportReport`].
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
    /// Whether to write nothing, and to report what would be done.
    pub is_dry_run: bool,
}

impl Store {
    /// Imports what [`export_jsonl`](Self::export_jsonl) wrote and returns what became of its lines.
    ///
    /// A second import of the same file adds nothing, and one of a later export adds its tail. The
    /// head stays where it is unless something was added. Messages, labels and compactions that were
    /// deleted or removed since they were imported do not come back. Messages are written about a
    /// thousand at a time: what was written before an error stays, and importing again completes it,
    /// the head included. `name` is for the report and for errors; `progress` hears bytes.
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
    /// [`Error::Import`](crate::Error::Import) if [`JsonlOptions::is_strict`] is set and something is
    /// wrong with it, or if [`JsonlOptions::session`] is set and it holds several sessions;
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
