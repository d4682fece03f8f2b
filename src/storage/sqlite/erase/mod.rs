//! Erases what an [`Erasure`] names.
//!
//! An erasure deletes in transactions of about ten milliseconds, so that others can write meanwhile. All sessions are put
//! into the trash first, and the messages of each are deleted from the newest to the oldest: so after a crash the store is
//! sound, and the same erasure, called again, finishes it; so does `finish_erasure`. Then `clean` overwrites what remains of the deleted rows. A
//! small file is rewritten; in a large file `scan` looks for the erased texts, and the file is rewritten if it finds one.
//!
//! Invariant: an erasure has a note in the settings from its first delete until it is complete. The note lists what is left
//! to delete, until all is deleted; then only `clean` is left to do.

mod clean;
pub(super) mod delete;
mod extent;
mod note;
pub(super) mod owner;
mod scan;
mod targets;
#[cfg(test)]
mod tests;
mod texts;
pub(super) mod widen;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use super::catalog;
use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::row::session as session_row;
use super::transcript;
use crate::erasure::{
    Erased, Erasure, ErasureCopies, ErasureExtent, ErasureProver, ErasureSummary, ErasureTarget,
};
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::outcome::SessionInfo;
use crate::report::Progress;
use crate::tree::Address;

use delete::Copies;
pub(super) use note::check as check_import;
pub(super) use note::has_session as is_being_erased;
use note::{Note, ToDelete};
use scan::Prover;
use targets::Targets;
use texts::Texts;
use widen::Relative;

/// How many sessions a retention begins to erase at a time: only these are erased although it is stopped.
const GROUP: usize = 16;

/// How many sessions one transaction puts into the trash: about ten milliseconds.
const MAX_TRASHED: usize = 500;

/// What erasures have deleted, before the file is cleaned.
struct Deleted {
    out: Erased,
    texts: Texts,
    copies_left: BTreeSet<Address>,
    relatives_left: Vec<Relative>,
    summaries_left: BTreeSet<ErasureSummary>,
    total: u64,
    /// Whether others deleted a part of what is named: its texts are not known here.
    is_partial: bool,
    watch: Watch,
}

impl Deleted {
    fn nothing(watch: Watch) -> Self {
        Self {
            out: Erased::default(),
            texts: Texts::default(),
            copies_left: BTreeSet::new(),
            relatives_left: Vec::new(),
            summaries_left: BTreeSet::new(),
            total: 0,
            is_partial: false,
            watch,
        }
    }
}

/// An erasure that is running.
struct Work<'a> {
    database: &'a Database,
    erasure: &'a Erasure,
    targets: &'a Targets,
    deleted: &'a mut Deleted,
    progress: &'a mut dyn FnMut(Progress),
    note: Note,
    copies: Copies,
}

impl Deref for Work<'_> {
    type Target = Deleted;

    fn deref(&self) -> &Deleted {
        self.deleted
    }
}

impl DerefMut for Work<'_> {
    fn deref_mut(&mut self) -> &mut Deleted {
        self.deleted
    }
}

impl Database {
    /// Erases what is named, and overwrites what remains of it.
    pub(crate) fn erase(
        self: &Arc<Self>,
        erasure: &Erasure,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let targets = self.read(|conn| Targets::find(conn, erasure))?;
        let note = Note::new(&targets.to_delete(erasure));
        let mut deleted = Deleted::nothing(self.watch());
        self.delete(erasure, &targets, note, &mut deleted, progress)?;
        let has_other_texts = erasure.targets.contains(&ErasureTarget::Deleted);
        self.complete(deleted, has_other_texts)
    }

    /// Erases sessions that have not changed since they were read, a few at a time: if it is stopped, only those that it has
    /// begun with are erased when the erasure is finished.
    pub(crate) fn erase_unchanged(
        self: &Arc<Self>,
        sessions: &[SessionInfo],
        options: &Erasure,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Erased> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let mut deleted = Deleted::nothing(self.watch());
        deleted.total = sessions.iter().map(|session| session.messages).sum();
        let first = Note::new(&ToDelete::default());
        for group in sessions.chunks(GROUP) {
            deleted.watch.check()?;
            loop {
                let erasure = self.read(|conn| unchanged(conn, group, options))?;
                let targets = self.read(|conn| Targets::find(conn, &erasure))?;
                let mut note = first.with(&targets.to_delete(&erasure));
                // From here on nobody can write to them, or restore them.
                let is_noted = self.write(|conn| {
                    let is_same = unchanged(conn, group, options)? == erasure;
                    if is_same && !targets.sessions.is_empty() {
                        note.store(conn)?;
                        for session in &targets.sessions {
                            catalog::put_into_trash(conn, session.key)?;
                        }
                    }
                    Ok(is_same)
                })?;
                if !is_noted {
                    continue;
                }
                if !targets.sessions.is_empty() {
                    self.delete(&erasure, &targets, note, &mut deleted, progress)?;
                }
                break;
            }
        }
        if deleted.out.extent.sessions.is_empty() {
            return Ok(deleted.out);
        }
        self.complete(deleted, false)
    }

    /// Overwrites what remains of deleted rows.
    fn complete(self: &Arc<Self>, deleted: Deleted, has_other_texts: bool) -> Result<Erased> {
        let Deleted { mut out, texts, is_partial, .. } = deleted;
        self.clean(&texts, has_other_texts, &mut out)?;
        if self.path().is_some() {
            let prover = Prover { database: Arc::clone(self), texts, is_partial };
            out.prover = Some(Arc::new(prover) as Arc<dyn ErasureProver>);
        }
        Ok(out)
    }

    /// Deletes the rows of an erasure, and adds to what was deleted before.
    fn delete(
        &self,
        erasure: &Erasure,
        targets: &Targets,
        note: Note,
        deleted: &mut Deleted,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        deleted.summaries_left.extend(targets.summaries_left.iter().cloned());
        deleted.copies_left.extend(targets.kept_copies.iter().copied());
        deleted.total = deleted.total.max(targets.total + targets.entries);
        let mut work = Work {
            database: self,
            erasure,
            targets,
            deleted,
            progress,
            note,
            copies: Copies::default(),
        };
        let (messages, sessions) = (work.out.extent.messages, work.out.extent.sessions.len());
        work.run()?;
        self.write(|conn| {
            work.note.keep(conn)?;
            work.note.store_deleted(conn)
        })?;
        let is_taken = work.note.is_taken;
        deleted.is_partial |= is_taken
            || targets.is_partial
            || deleted.out.extent.messages - messages < targets.total
            || deleted.out.extent.sessions.len() - sessions < targets.sessions.len();
        let Deleted { out, copies_left, relatives_left, summaries_left, .. } = deleted;
        out.extent.copies_left = self.read(|conn| named(conn, copies_left, relatives_left))?;
        out.extent.summaries_left = summaries_left.iter().cloned().collect();
        out.extent.continued_in.extend(targets.continued_in.iter().cloned());
        let erased: BTreeSet<SessionId> = out.extent.sessions.iter().cloned().collect();
        out.extent.continued_in.retain(|session| !erased.contains(session));
        Ok(())
    }

    /// Returns what an erasure would remove.
    pub(crate) fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.read_long(|conn| Targets::find(conn, erasure)?.extent(conn, erasure))
    }

    /// Returns whether an erasure is not complete.
    pub(crate) fn has_unfinished_erasure(&self) -> Result<bool> {
        self.read(|conn| Ok(!note::all(conn)?.is_empty()))
    }

    /// Finishes all erasures that are not complete. Returns whether they are now, and what was deleted.
    pub(crate) fn finish_erasure(&self) -> Result<(bool, Erased)> {
        let notes = self.read(note::all)?;
        if notes.is_empty() {
            return Ok((true, Erased::default()));
        }
        let mut deleted = Deleted::nothing(self.watch());
        for note in notes {
            let Some(to_delete) = note.to_delete() else { continue };
            let note = self.write(|conn| note.take(conn))?;
            let targets = self.read(|conn| Targets::again(conn, &to_delete))?;
            self.delete(&to_delete.options(), &targets, note, &mut deleted, &mut |_| {})?;
        }
        let mut out = deleted.out;
        self.clean(&Texts::default(), true, &mut out)?;
        Ok((out.is_complete() && !self.has_unfinished_erasure()?, out))
    }

    /// Overwrites what remains of deleted rows, and removes the notes of the erasures that are complete then.
    /// `has_other_texts` says that other texts were deleted, too, which are not known any more.
    fn clean(&self, texts: &Texts, has_other_texts: bool, out: &mut Erased) -> Result<()> {
        let notes = self.deleted()?;
        self.sweep_terms()?;
        self.merge_indexes()?;
        // SQLite moves rows between pages and leaves copies in the gaps, which it does not overwrite. They cannot be found
        // in an encrypted file, nor if another erasure was interrupted: then its texts are not known any more.
        let has_other_texts = notes.len() > 1 || has_other_texts && !notes.is_empty();
        let is_rewritten = self.file.as_ref().is_some_and(|file| {
            file.bytes() <= self.config.rewritten_up_to
                || self.config.encryption.is_some()
                || has_other_texts
        });
        if is_rewritten {
            self.rewrite()?;
            out.is_rewritten = true;
        }
        out.is_log_in_use = !self.empty_log()?;
        if !out.is_rewritten && !texts.is_empty() && self.is_left(texts, out)? {
            self.rewrite()?;
            out.is_rewritten = true;
            out.is_log_in_use = !self.empty_log()?;
        }
        if out.is_complete() {
            self.write(|conn| notes.iter().try_for_each(|note| note.remove(conn)))?;
        }
        Ok(())
    }

    /// Returns the notes of the erasures whose rows are all deleted. Another erasure may have deleted the last ones.
    fn deleted(&self) -> Result<Vec<Note>> {
        for note in self.read(note::all)? {
            let Some(to_delete) = note.to_delete() else { continue };
            let is_deleted = |conn: &Connection| Targets::again(conn, &to_delete)?.is_empty(conn);
            if self.read(is_deleted)? {
                self.write(|conn| note.store_deleted(conn))?;
            }
        }
        let mut notes = self.read(note::all)?;
        notes.retain(|note| note.to_delete().is_none());
        Ok(notes)
    }

    /// Returns whether the database file has an erased text. A log that is in use cannot be overwritten.
    fn is_left(&self, texts: &Texts, out: &Erased) -> Result<bool> {
        let proof = self.scan_for(texts)?;
        let is_in_database =
            |path: &std::path::Path| self.path().is_some_and(|database| database == path);
        Ok(out.is_complete() && proof.occurrences.iter().any(|(path, _)| is_in_database(path)))
    }
}

/// Returns the erasure of those of some sessions that have not changed.
fn unchanged(
    conn: &Connection,
    sessions: &[SessionInfo],
    options: &Erasure,
) -> BackendResult<Erasure> {
    let mut erasure = options.clone();
    for known in sessions {
        let found = session_row::info(conn, &known.id)?;
        // A parent that was erased is none any more.
        let is_same = found.is_some_and(|found| {
            let (parent_session, fork_point) =
                (known.parent_session.clone(), known.fork_point.clone());
            SessionInfo { parent_session, fork_point, ..found } == *known
        });
        if is_same {
            erasure.targets.push(ErasureTarget::Session(known.id.clone()));
        }
    }
    Ok(erasure)
}

/// Names the copies that were left: messages, and what relatives have besides.
fn named(
    conn: &Connection,
    messages: &BTreeSet<Address>,
    relatives: &[Relative],
) -> BackendResult<Vec<ErasureCopies>> {
    let mut copies = BTreeMap::new();
    for address in messages {
        let id: Option<String> =
            conn.prepare_cached(ID)?.query_row([address], |row| row.get(0)).optional()?;
        // One that was erased later is none.
        let Some(id) = id.map(MessageId::from) else { continue };
        if let Some(of_session) = copies_in(conn, &mut copies, address.session())? {
            of_session.messages += 1;
            of_session.ids.push(id);
        }
    }
    for Relative { key, texts, has_name, has_metadata } in relatives {
        if let Some(of_session) = copies_in(conn, &mut copies, *key)? {
            let labels: BTreeSet<&String> = texts.iter().map(|(_, label)| label).collect();
            of_session.blocks.extend(labels.into_iter().cloned());
            let details = [("name", has_name), ("metadata", has_metadata)];
            let has = details.iter().filter(|(_, has)| **has);
            of_session.details.extend(has.map(|(detail, _)| (*detail).to_owned()));
        }
    }
    Ok(copies.into_values().collect())
}

/// Returns the copies in a session, unless it is gone.
fn copies_in<'c>(
    conn: &Connection,
    copies: &'c mut BTreeMap<i64, ErasureCopies>,
    key: i64,
) -> BackendResult<Option<&'c mut ErasureCopies>> {
    Ok(match copies.entry(key) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(place) => session_row::info_by_key(conn, key)?
            .map(|info| place.insert(ErasureCopies::in_session(info.id))),
    })
}

/// Returns the keys of the sessions that name one as their parent.
fn children_of(conn: &Connection, parent: &SessionId) -> BackendResult<Vec<i64>> {
    delete::keys(conn, CHILDREN, [parent.as_str()])
}

pub(super) const CHILDREN: &str = "SELECT key FROM session WHERE parent_session = ?1";

const ID: &str = "SELECT id FROM message WHERE address = ?1 AND id IS NOT NULL";

impl Work<'_> {
    /// Runs a part of the work in a transaction that also notes that the erasure has begun.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut Self) -> BackendResult<T>,
    ) -> Result<T> {
        let database = self.database;
        let answer = database.write(|conn| {
            self.note.keep(conn)?;
            work(conn, self)
        })?;
        let done = self.out.extent.messages + self.out.extent.entries;
        let total = self.total.max(done);
        (self.progress)(Progress::new(done, total));
        Ok(answer)
    }

    /// Returns an error if the store was asked to stop.
    fn check(&self) -> Result<()> {
        self.watch.check()
    }

    /// Puts all sessions into the trash: nobody can write to one that is not begun with, nor restore it.
    fn put_into_trash(&mut self) -> Result<()> {
        let keys: Vec<i64> = self.targets.sessions.iter().map(|session| session.key).collect();
        for group in keys.chunks(MAX_TRASHED) {
            self.check()?;
            self.write(|conn, _| {
                group.iter().try_for_each(|key| catalog::put_into_trash(conn, *key))
            })?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let targets = self.targets;
        // First, while the bindings still lead to their keys.
        self.erase_items()?;
        self.put_into_trash()?;
        self.erase_relatives()?;
        for compaction in &targets.summaries {
            self.erase_summary(*compaction)?;
        }
        for messages in &targets.messages {
            for (session, addresses) in messages {
                self.erase_messages(session, addresses)?;
            }
        }
        for key in &targets.transcripts {
            self.erase_transcript(*key)?;
            // Its row goes with the session that shows it.
            let shown = self.database.read(|conn| transcript::session_of(conn, *key))?;
            if let Some((key, id)) = shown {
                self.erase_session(&targets::Target { key, id })?;
            }
        }
        for session in &targets.sessions {
            self.erase_session(session)?;
        }
        self.erase_new_copies()?;
        if !targets.owners.is_empty() {
            self.erase_blocks(&targets.blocks)?;
        }
        for owner in &targets.owners {
            self.erase_owner(owner)?;
        }
        for author in &targets.authors {
            self.forget_author(author)?;
        }
        for key in &targets.keys {
            self.erase_key(key)?;
        }
        Ok(())
    }
}
