//! Erases what an [`Erasure`] names: mark, then do.
//!
//! `mark` is one transaction, after which no read finds what is named. What is few, and messages of sessions that stay, it
//! deletes; a session or a transcript loses its row, so its messages or entries are *leftovers*
//! ([`removal`](super::catalog::removal)), which are deleted in batches, so that others can write meanwhile. Then `clean` overwrites
//! what remains of the deleted rows. A small file is rewritten; in a large file `scan` looks for the erased texts, and the file
//! is rewritten if it finds one.
//!
//! To mark ranges of messages in sessions that stay, too, would cost a condition in each statement that reads messages. The
//! transaction that deletes them instead makes others wait as an ordinary delete does: 30 ms for 1 000 messages. The texts of
//! what is marked are read after the transaction, from a snapshot of the moment before it; so whoever deletes the leftovers,
//! the texts are known to the proof.
//!
//! Invariant: the table of leftovers has a row for every erasure of which bytes may not be overwritten. Whatever finishes it
//! knows no texts, so it rewrites the file; an erasure that begins while there are such rows does that, too.

mod clean;
mod forbid;
mod mark;
mod scan;
#[cfg(test)]
mod tests;
mod texts;
mod widen;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sql::Connection;

use super::connection::Database;
use super::error::{BackendError, BackendResult};
use crate::erasure::{Erased, Erasure, ErasureExtent, ErasureSummary, ErasureTarget};
use crate::error::{Error, Result};
use crate::id::CompactionId;
use crate::report::Progress;
use crate::tree::Address;

pub(super) use forbid::check as check_import;
use mark::mark;
use texts::Texts;
use widen::Copied;
#[cfg(test)]
pub(super) use {mark::ITEMS_OF_OWNER, widen::COPIES};

/// What was marked.
#[derive(Default)]
struct Marked {
    out: Erased,
    texts: Texts,
    /// Of which messages, entries and compactions the texts are still to be read.
    messages: Vec<(Address, Address)>,
    entries: Vec<(Address, Address)>,
    summaries: Vec<(i64, CompactionId)>,
    copies_left: BTreeSet<Address>,
    relatives_left: BTreeSet<Copied>,
    summaries_left: BTreeSet<ErasureSummary>,
    /// The numbers of the rows in the table of leftovers that say that bytes are to be overwritten.
    own: Vec<i64>,
    /// How many leftovers were deleted.
    deleted: u64,
    /// Whether another erasure may have deleted a part of what is named: its texts are not known here.
    is_partial: bool,
}

impl Database {
    /// Marks what each of some erasures names, one after the other, and deletes what each leaves over; then overwrites the bytes
    /// of all. `vanished` is called when no read finds what was marked. If it is stopped, what it has not marked stays as it is.
    pub(crate) fn erase(
        self: &Arc<Self>,
        erasures: &[Erasure],
        mut vanished: impl FnMut(&Erased),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        let (watch, mut marked) = (self.watch(), Marked::default());
        // Whether there are bytes to overwrite of texts that are not known.
        let mut is_blind = false;
        for erasure in erasures {
            watch.check()?;
            let before = self.write(|conn| {
                // Nobody else writes now.
                let before = self.path().map(|_| self.snapshot()).transpose();
                let is_resumed = marked.own.is_empty() && has_unfinished(conn)?;
                is_blind |= is_resumed || erasure.targets.contains(&ErasureTarget::Deleted);
                let changes = conn.sqlite()?.total_changes();
                mark(conn, erasure, &mut marked, is_resumed)?;
                if is_blind || conn.sqlite()?.total_changes() > changes {
                    conn.sqlite()?.execute("INSERT INTO leftover DEFAULT VALUES", [])?;
                    marked.own.push(conn.sqlite()?.last_insert_rowid());
                }
                before.map_err(BackendError::Own)
            })?;
            // The snapshot is closed before code of the caller runs.
            let read = before.map_or(Ok(()), |before| {
                before.read_watched(watch.clone(), |conn| marked.read_texts(conn))
            });
            vanished(&marked.out);
            read?;
            let newest = marked.own.last().copied().unwrap_or_default();
            self.delete_leftovers(newest, |count| {
                marked.deleted += count;
                let Erased { extent, messages, .. } = &marked.out;
                let done = messages.len() as u64 + marked.deleted;
                progress(Progress::new(done, done.max(extent.messages + extent.entries)));
                watch.check()
            })?;
        }
        let Marked { mut out, texts, own, is_partial, .. } = marked;
        if let Some(newest) = own.last() {
            self.clean(&watch, (!is_blind).then_some(&texts), &mut out)?;
            if out.is_complete() {
                // A rewritten file has no byte of what others had deleted before.
                let (sql, done) = match out.is_rewritten {
                    true => (FORGET_UP_TO, std::slice::from_ref(newest)),
                    false => (FORGET, &own[..]),
                };
                self.write(|conn| {
                    done.iter()
                        .try_for_each(|number| Ok(_ = conn.sqlite()?.execute(sql, [number])?))
                })?;
            }
        }
        if self.path().is_some() {
            let database = Arc::clone(self);
            out.prover = Some(Arc::new(move || match is_partial {
                true => Err(Error::NotProved),
                false => database.prove(&texts),
            }));
        }
        Ok(out)
    }

    /// Returns what erasures would remove: each is marked in a transaction that is rolled back.
    pub(crate) fn erasure_extent(&self, erasures: &[Erasure]) -> Result<ErasureExtent> {
        let mut marked = Marked::default();
        for erasure in erasures {
            self.write_long(|conn| dry_run(conn, erasure, &mut marked))?;
        }
        Ok(marked.out.extent)
    }

    /// Returns whether an erasure is not complete.
    pub(crate) fn has_unfinished_erasure(&self) -> Result<bool> {
        self.read(has_unfinished)
    }

    /// Finishes all erasures that are not complete; returns whether they are now.
    pub(crate) fn finish_erasure(&self) -> Result<bool> {
        if !self.has_unfinished_erasure()? {
            return Ok(true);
        }
        let watch = self.watch();
        let newest: i64 =
            self.read(|conn| Ok(conn.sqlite()?.query_row(NEWEST, [], |row| row.get(0))?))?;
        self.delete_leftovers(newest, |_| watch.check())?;
        let mut out = Erased::default();
        self.clean(&watch, None, &mut out)?;
        if out.is_complete() {
            self.write(|conn| Ok(conn.sqlite()?.execute(FORGET_UP_TO, [newest])?))?;
        }
        Ok(!self.has_unfinished_erasure()?)
    }
}

fn dry_run(conn: &Connection, erasure: &Erasure, marked: &mut Marked) -> BackendResult<()> {
    conn.command("SAVEPOINT dry_run")?;
    mark(conn, erasure, marked, has_unfinished(conn)?)?;
    conn.command("ROLLBACK TO dry_run")?;
    conn.command("RELEASE dry_run")
}

fn has_unfinished(conn: &Connection) -> BackendResult<bool> {
    Ok(conn.sqlite()?.prepare_cached(UNFINISHED)?.exists([])?)
}

const UNFINISHED: &str = "SELECT 1 FROM leftover WHERE session = 0 AND transcript = 0";
const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM leftover";
const FORGET: &str = "DELETE FROM leftover WHERE number = ?1";
const FORGET_UP_TO: &str =
    "DELETE FROM leftover WHERE number <= ?1 AND session = 0 AND transcript = 0";
