//! Erases what an [`Erasure`] names: first in rows, then in the file.
//!
//! In rows, which is the same for every engine: `mark` is one transaction, after which no read finds what is named, nor what
//! `widen` finds to be a copy or a summary of it. What is few, and messages of sessions that stay, it deletes; a session or a
//! transcript loses its row, so its messages or entries are *leftovers* ([`removal`](super::catalog::removal)), which are deleted
//! in batches, so that others can write meanwhile.
//!
//! In the file, which is SQLite's: `clean` overwrites what remains of the deleted rows. A small file is rewritten; in a large
//! file `scan` looks for the erased texts, and the file is rewritten if it finds one. The texts of what is marked are read after
//! the transaction, from a snapshot of the moment before it; so whoever deletes the leftovers, the texts are known to the proof.
//!
//! To mark ranges of messages in sessions that stay, too, would cost a condition in each statement that reads messages. The
//! transaction that deletes them instead makes others wait as an ordinary delete does: 30 ms for 1 000 messages.
//!
//! Invariant: the table of leftovers has a row for every erasure of which bytes may not be overwritten. Whatever finishes it
//! knows no texts, so it rewrites the file; an erasure that begins while there are such rows does that, too.

mod clean;
mod mark;
mod scan;
#[cfg(test)]
mod tests;
mod texts;
mod widen;

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::connection::Database;
use crate::erasure::{Erased, Erasure, ErasureExtent, ErasureSummary, ErasureTarget};
use crate::error::{Error, Result};
use crate::id::{CompactionId, SessionId};
use crate::report::Progress;
use crate::sql::{BackendError, BackendResult, Connection};
use crate::tree::Address;

use mark::mark;
use texts::Texts;
use widen::Copied;
#[cfg(test)]
pub(super) use {mark::ITEMS_OF_OWNER, widen::COPIES};

/// What was marked.
#[derive(Clone, Default)]
struct Marked {
    out: Erased,
    /// Names that are erased.
    names: Vec<String>,
    /// Of which rows the texts are still to be read: by which statements, and their first and last key or address.
    rows: Vec<(&'static [&'static str], i64, i64)>,
    /// Of which compactions, too.
    summaries: Vec<(i64, CompactionId)>,
    copies_left: BTreeSet<Address>,
    relatives_left: BTreeSet<Copied>,
    summaries_left: BTreeSet<ErasureSummary>,
    /// The numbers of the rows in the table of leftovers that say that bytes are to be overwritten.
    own: Vec<i64>,
    /// The same of the erasures that others have not finished: what they leave over is deleted, too.
    unfinished: Vec<i64>,
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
        let (watch, mut marked, mut texts) = (self.watch(), Marked::default(), Texts::default());
        // Whether there are bytes to overwrite of texts that are not known.
        let (mut is_blind, mut deleted) = (false, 0);
        for erasure in erasures {
            watch.check()?;
            let before;
            (marked, before, is_blind) = self.write(|conn| {
                let mut marked = marked.clone();
                // Nobody else writes now.
                let before = self.path().map(|_| self.snapshot()).transpose()?;
                let is_resumed = marked.own.is_empty() && has_unfinished(conn)?;
                let is_blind =
                    is_blind || is_resumed || erasure.targets.contains(&ErasureTarget::Deleted);
                mark(conn, erasure, &mut marked, is_resumed)?;
                if is_blind || !marked.rows.is_empty() || marked.out.extent.usage > 0 {
                    let number = conn.one(BEGIN, ())?;
                    if marked.own.is_empty() {
                        marked.unfinished = conn.rows(UNFINISHED, number)?;
                    }
                    marked.own.push(number);
                }
                Ok((marked, before, is_blind))
            })?;
            // The snapshot is closed before code of the caller runs.
            let read = before.map_or(Ok(()), |before| {
                before.read_watched(watch.clone(), |conn| marked.read_texts(conn, &mut texts))
            });
            marked.rows.clear();
            vanished(&marked.out);
            read?;
            let newest = marked.own.last().copied().unwrap_or_default();
            self.delete_leftovers(newest, |count| {
                deleted += count;
                let Erased { extent, messages, .. } = &marked.out;
                let done = messages.len() as u64 + deleted;
                progress(Progress::new(done, done.max(extent.messages + extent.entries)));
                watch.check()
            })?;
        }
        self.read(|conn| marked.name_what_is_left(conn))?;
        let Marked { mut out, mut own, unfinished, is_partial, .. } = marked;
        if let Some(newest) = own.last() {
            self.clean(&watch, *newest, (!is_blind).then_some(&texts), &mut out)?;
            if out.is_complete() {
                // A rewritten file has no byte of what others had deleted before, and what is no file has none at all.
                if out.is_rewritten || self.path().is_none() {
                    own.extend(unfinished);
                }
                self.write(|conn| {
                    own.iter().try_for_each(|number| conn.run(FORGET, number).map(drop))
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
            marked = self.write_long(|conn| dry_run(conn, erasure, marked.clone()))?;
        }
        self.read(|conn| marked.name_what_is_left(conn))?;
        Ok(marked.out.extent)
    }

    /// Returns whether an erasure is not complete.
    pub(crate) fn has_unfinished_erasure(&self) -> Result<bool> {
        self.read(has_unfinished)
    }

    /// Finishes all erasures that are not complete; returns whether they are now.
    pub(crate) fn finish_erasure(self: &Arc<Self>) -> Result<bool> {
        if self.has_unfinished_erasure()? {
            let _ = self.erase(&[Erasure::deleted()], |_| {}, &mut |_| {})?;
        }
        Ok(!self.has_unfinished_erasure()?)
    }

    /// Returns whether a session was erased and must not be imported again.
    pub(crate) fn is_import_forbidden(&self, id: &SessionId) -> Result<bool> {
        self.read(|conn| is_import_forbidden(conn, id))
    }
}

fn dry_run(conn: &Connection, erasure: &Erasure, mut marked: Marked) -> BackendResult<Marked> {
    conn.command("SAVEPOINT dry_run")?;
    mark(conn, erasure, &mut marked, has_unfinished(conn)?)?;
    conn.command("ROLLBACK TO dry_run")?;
    conn.command("RELEASE dry_run")?;
    Ok(marked)
}

fn has_unfinished(conn: &Connection) -> BackendResult<bool> {
    conn.has("SELECT 1 FROM leftover WHERE session = 0 AND transcript = 0 LIMIT 1", ())
}

const BEGIN: &str = "INSERT INTO leftover (session) VALUES (0) RETURNING number";
const FORGET: &str = "DELETE FROM leftover WHERE number = ?1";
const UNFINISHED: &str =
    "SELECT number FROM leftover WHERE number < ?1 AND session = 0 AND transcript = 0";

/// Forbids imports of a session. The store keeps a keyed hash of its id: those of two stores tell nothing of each other.
fn forbid_import(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    conn.run(ADD_KEY, crate::clock::uuid().to_string())?;
    conn.run(FORBID, hash(conn, id)?)?;
    Ok(())
}

/// Returns an error if imports of a session are forbidden.
pub(super) fn check_import(conn: &Connection, id: &SessionId) -> BackendResult<()> {
    match is_import_forbidden(conn, id)? {
        true => Err(BackendError::Own(Error::SessionErased { id: id.clone() })),
        false => Ok(()),
    }
}

fn is_import_forbidden(conn: &Connection, id: &SessionId) -> BackendResult<bool> {
    // Few stores have a key.
    let Some(hash) = hash(conn, id)? else { return Ok(false) };
    conn.has("SELECT 1 FROM erased_session WHERE hash = ?1", hash)
}

/// Returns the hash of an id; `None` in a store without a key. With a damaged key no hash is found.
fn hash(conn: &Connection, id: &SessionId) -> BackendResult<Option<String>> {
    let key = conn.first::<String>("SELECT value FROM setting WHERE name = 'erasure_key'", ())?;
    let key = key.map(|key| Uuid::try_parse(&key).unwrap_or_default());
    Ok(key.map(|key| Uuid::new_v5(&key, id.as_str().as_bytes()).to_string()))
}

const ADD_KEY: &str =
    "INSERT INTO setting (name, value) VALUES ('erasure_key', ?1) ON CONFLICT DO NOTHING";
const FORBID: &str = "INSERT INTO erased_session (hash) VALUES (?1) ON CONFLICT DO NOTHING";
