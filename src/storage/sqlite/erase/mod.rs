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

use rusqlite::Connection;

use super::catalog::removal::{delete_batch, is_unchanged};
use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::interrupt::Watch;
use super::transaction::run;
use crate::erasure::{Erased, Erasure, ErasureExtent, ErasureSummary, ErasureTarget};
use crate::error::{Error, Result};
use crate::id::CompactionId;
use crate::outcome::SessionInfo;
use crate::report::Progress;
use crate::tree::Address;

pub(super) use forbid::check as check_import;
use mark::mark;
use texts::Texts;
use widen::Copied;
#[cfg(test)]
pub(super) use {mark::ITEMS_OF_OWNER, widen::COPIES};

/// How many sessions of a retention one transaction marks: if it is stopped, the others stay as they are.
const GROUP: usize = 16;

/// What one erasure has marked, perhaps in several groups.
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
    /// The numbers of the erasure's own rows in the table of leftovers, one for each group.
    own: Vec<i64>,
    /// How many leftovers were deleted.
    deleted: u64,
    /// Whether another erasure may have deleted a part of what is named: its texts are not known here.
    is_partial: bool,
}

impl Database {
    /// Erases what is named, and overwrites what remains of it. `vanished` is called when no read finds it any more.
    pub(crate) fn erase(
        self: &Arc<Self>,
        erasure: &Erasure,
        mut vanished: impl FnMut(&Erased),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        let named = std::iter::once(|_: &Connection| Ok(erasure.clone()));
        let has_unknown_texts = erasure.targets.contains(&ErasureTarget::Deleted);
        self.erase_groups(named, has_unknown_texts, &mut vanished, progress)
    }

    /// Erases sessions that have not changed since they were read, group by group: if it is stopped, those of the groups that
    /// it has marked are erased when the erasure is finished.
    pub(crate) fn erase_unchanged(
        self: &Arc<Self>,
        sessions: &[SessionInfo],
        options: &Erasure,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        let groups = sessions.chunks(GROUP);
        let groups = groups.map(|group| move |conn: &Connection| unchanged(conn, group, options));
        self.erase_groups(groups, false, &mut |_| {}, progress)
    }

    fn erase_groups<N>(
        self: &Arc<Self>,
        groups: impl Iterator<Item = N>,
        mut has_unknown_texts: bool,
        vanished: &mut dyn FnMut(&Erased),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased>
    where
        N: FnOnce(&Connection) -> BackendResult<Erasure>,
    {
        let (watch, mut marked) = (self.watch(), Marked::default());
        for named in groups {
            watch.check()?;
            let before = self.write(|conn| {
                let erasure = named(conn)?;
                if erasure.targets.is_empty() {
                    return Ok(None);
                }
                // Nobody else writes now.
                let before = self.path().map(|_| self.snapshot()).transpose();
                let is_resumed = marked.own.is_empty() && has_unfinished(conn)?;
                has_unknown_texts |= is_resumed;
                mark(conn, &erasure, &mut marked, is_resumed)?;
                conn.execute("INSERT INTO leftover DEFAULT VALUES", [])?;
                marked.own.push(conn.last_insert_rowid());
                before.map_err(BackendError::Own)
            })?;
            // The snapshot is closed before code of the caller runs.
            let read = before.map_or(Ok(()), |before| {
                before.read_watched(watch.clone(), |conn| marked.read_texts(conn))
            });
            vanished(&marked.out);
            read?;
            self.delete_leftovers(&watch, &mut marked, progress)?;
        }
        let Marked { mut out, texts, own, is_partial, .. } = marked;
        if let Some(newest) = own.last() {
            self.clean(&watch, (!has_unknown_texts).then_some(&texts), &mut out)?;
            if out.is_complete() {
                // A rewritten file has no byte of what others had deleted before.
                let done = if out.is_rewritten { &[*newest] } else { &own[..] };
                let sql = if out.is_rewritten { FORGET_UP_TO } else { FORGET };
                self.write(|conn| {
                    done.iter().try_for_each(|number| Ok(_ = conn.execute(sql, [number])?))
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

    /// Deletes what is left over, of earlier erasures, too.
    fn delete_leftovers(
        &self,
        watch: &Watch,
        marked: &mut Marked,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let newest = marked.own.last().copied().unwrap_or_default();
        loop {
            let batch = self.write(|conn| delete_batch(conn, newest))?;
            marked.deleted += batch.count;
            let Erased { extent, messages, .. } = &marked.out;
            let done = messages.len() as u64 + marked.deleted;
            progress(Progress::new(done, done.max(extent.messages + extent.entries)));
            watch.check()?;
            if batch.is_last {
                return Ok(());
            }
        }
    }

    /// Returns what an erasure would remove: it is marked in a transaction that is rolled back.
    pub(crate) fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.write_long(|conn| extent(conn, erasure))
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
        let newest: i64 = self.read(|conn| Ok(conn.query_row(NEWEST, [], |row| row.get(0))?))?;
        while !self.write(|conn| delete_batch(conn, newest))?.is_last {
            watch.check()?;
        }
        let mut out = Erased::default();
        self.clean(&watch, None, &mut out)?;
        if out.is_complete() {
            self.write(|conn| Ok(conn.execute(FORGET_UP_TO, [newest])?))?;
        }
        Ok(!self.has_unfinished_erasure()?)
    }
}

fn extent(conn: &Connection, erasure: &Erasure) -> BackendResult<ErasureExtent> {
    let mut marked = Marked::default();
    run(conn, "SAVEPOINT dry_run")?;
    mark(conn, erasure, &mut marked, has_unfinished(conn)?)?;
    run(conn, "ROLLBACK TO dry_run")?;
    run(conn, "RELEASE dry_run")?;
    Ok(marked.out.extent)
}

fn has_unfinished(conn: &Connection) -> BackendResult<bool> {
    Ok(conn.prepare_cached(UNFINISHED)?.exists([])?)
}

/// Returns the erasure of those of some sessions that have not changed.
fn unchanged(
    conn: &Connection,
    sessions: &[SessionInfo],
    options: &Erasure,
) -> BackendResult<Erasure> {
    let mut erasure = options.clone();
    for known in sessions {
        if is_unchanged(conn, known)? {
            erasure.targets.push(ErasureTarget::Session(known.id.clone()));
        }
    }
    Ok(erasure)
}

const UNFINISHED: &str = "SELECT 1 FROM leftover WHERE session = 0 AND transcript = 0";
const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM leftover";
const FORGET: &str = "DELETE FROM leftover WHERE number = ?1";
const FORGET_UP_TO: &str =
    "DELETE FROM leftover WHERE number <= ?1 AND session = 0 AND transcript = 0";
