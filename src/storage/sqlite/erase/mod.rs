//! Erases what an [`Erasure`] names.
//!
//! An erasure deletes in transactions of about ten milliseconds, so that others can write meanwhile. A session is put
//! into the trash first, and its messages are deleted from the newest to the oldest: so after a crash the store is
//! sound, and the same erasure, called again, finishes it. Then `clean` overwrites what remains of the deleted rows. A
//! small file is rewritten; in a large file `scan` looks for the erased texts, and the file is rewritten if it finds one.
//!
//! Invariant: the setting `erasure` exists from the first delete until the erasure is complete. Its value begins with
//! [`DELETING`] until everything is deleted; then only `clean` is left to do.

mod clean;
mod forbidden;
mod messages;
mod owner;
mod scan;
mod sessions;
mod targets;
mod texts;
mod transcripts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use super::row::session as session_row;
use super::transcript::projection;
use crate::erasure::{
    Erased, Erasure, ErasureCopies, ErasureExtent, ErasureProver, ErasureSummary,
};
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::tree::Address;

pub(super) use forbidden::check as check_import;
use scan::Prover;
use targets::Targets;
use texts::Texts;

/// The setting that exists while an erasure is unfinished.
const UNFINISHED: &str = "erasure";
/// How the value of [`UNFINISHED`] begins while rows are left to delete.
const DELETING: &str = "deleting ";
/// The setting that exists while the file has pages that were written without `secure_delete`.
const REWRITE: &str = "erasure_rewrites";

/// An erasure that is running.
struct Work<'a> {
    database: &'a Database,
    erasure: &'a Erasure,
    targets: &'a Targets,
    texts: Texts,
    out: Erased,
    copies_left: BTreeSet<Address>,
    summaries_left: BTreeSet<ErasureSummary>,
    progress: &'a mut dyn FnMut(Progress),
    total: u64,
    name: String,
    watch: Watch,
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
        let is_unfinished = self.read(|conn| setting(conn, UNFINISHED))?.is_some();
        let targets = self.read(|conn| Targets::find(conn, erasure, is_unfinished))?;
        let mut work = Work {
            database: self,
            erasure,
            targets: &targets,
            texts: Texts::default(),
            out: Erased::default(),
            copies_left: BTreeSet::new(),
            summaries_left: BTreeSet::new(),
            progress,
            total: targets.total + targets.entries,
            // The random half: an id that is made in the same millisecond begins with the other one.
            name: format!("{:x}", crate::clock::uuid().as_u128() as u64),
            watch: self.interrupt_signal().watch(),
        };
        work.run()?;
        work.note_deleted()?;
        let Work { texts, mut out, copies_left, summaries_left, .. } = work;
        out.copies_left = self.read(|conn| copies(conn, &copies_left))?;
        out.summaries_left = summaries_left.into_iter().collect();
        self.clean(&texts, &mut out)?;
        if self.path().is_some() {
            let prover = Prover { database: Arc::clone(self), texts };
            out.prover = Some(Arc::new(prover) as Arc<dyn ErasureProver>);
        }
        Ok(out)
    }

    /// Returns what an erasure would remove.
    pub(crate) fn erasure_extent(&self, erasure: &Erasure) -> Result<ErasureExtent> {
        self.read_long(|conn| Targets::find(conn, erasure, false)?.extent(conn, erasure))
    }

    /// Finishes an erasure that was interrupted, or whose log was in use; returns whether it is complete now.
    pub(crate) fn finish_erasure(&self) -> Result<bool> {
        let noted = self.read(|conn| setting(conn, UNFINISHED))?;
        let mut out = Erased::default();
        if noted.is_some() {
            self.clean(&Texts::default(), &mut out)?;
        }
        Ok(out.is_complete() && !noted.is_some_and(|noted| noted.starts_with(DELETING)))
    }

    /// Overwrites what remains of deleted rows.
    fn clean(&self, texts: &Texts, out: &mut Erased) -> Result<()> {
        let noted = self.read(|conn| setting(conn, UNFINISHED))?;
        self.merge_indexes()?;
        // SQLite moves rows between pages and leaves copies in the gaps, which it does not overwrite. They cannot be found
        // in an encrypted file.
        let is_rewritten = self.file.as_ref().is_some_and(|file| {
            file.bytes() <= self.config.rewritten_up_to || self.config.encryption.is_some()
        });
        if is_rewritten || self.read(|conn| setting(conn, REWRITE))?.is_some() {
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
            let is_rewritten = out.is_rewritten;
            self.write(|conn| {
                // An erasure that began meanwhile has replaced the value. One that was interrupted while it deleted is
                // only finished by the same call: until then an unknown id counts as erased.
                let is_deleting = noted.as_ref().is_some_and(|noted| noted.starts_with(DELETING));
                if !is_deleting && setting(conn, UNFINISHED)? == noted {
                    remove_setting(conn, UNFINISHED)?;
                }
                if is_rewritten { remove_setting(conn, REWRITE) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// Returns whether the database file has an erased text. A log that is in use cannot be overwritten.
    fn is_left(&self, texts: &Texts, out: &Erased) -> Result<bool> {
        let proof = self.scan_for(texts)?;
        let is_in_database =
            |path: &std::path::Path| self.path().is_some_and(|database| database == path);
        Ok(out.is_complete() && proof.occurrences.iter().any(|it| is_in_database(&it.path)))
    }
}

/// Names the sessions with copies that were left.
fn copies(conn: &Connection, left: &BTreeSet<Address>) -> BackendResult<Vec<ErasureCopies>> {
    let mut by_session: BTreeMap<i64, u64> = BTreeMap::new();
    for address in left {
        *by_session.entry(address.session()).or_default() += 1;
    }
    let mut copies = Vec::new();
    for (key, messages) in by_session {
        if let Some(info) = session_row::info_by_key(conn, key)? {
            copies.push(ErasureCopies { session: info.id, messages });
        }
    }
    Ok(copies)
}

fn setting(conn: &Connection, name: &str) -> BackendResult<Option<String>> {
    let value = conn
        .prepare_cached("SELECT value FROM setting WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(value)
}

fn remove_setting(conn: &Connection, name: &str) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM setting WHERE name = ?1")?.execute([name])?;
    Ok(())
}

impl Work<'_> {
    /// Runs a part of the work in a transaction that also notes that the erasure has begun.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut Self) -> BackendResult<T>,
    ) -> Result<T> {
        let database = self.database;
        let answer = database.write(|conn| {
            let noted = format!("{DELETING}{}", self.name);
            conn.prepare_cached(NOTE)?.execute(params![UNFINISHED, noted])?;
            work(conn, self)
        })?;
        let done = self.out.erased.messages + self.out.erased.entries;
        (self.progress)(Progress::new(done, self.total.max(done)));
        Ok(answer)
    }

    /// Notes that everything is deleted, unless another erasure has begun meanwhile.
    fn note_deleted(&self) -> Result<()> {
        let noted = format!("{DELETING}{}", self.name);
        self.database.write(|conn| {
            conn.prepare_cached(NOTE_DELETED)?.execute(params![UNFINISHED, noted, self.name])?;
            Ok(())
        })
    }

    /// Returns an error if the store was asked to stop.
    fn check(&self) -> Result<()> {
        self.watch.check()
    }

    fn run(&mut self) -> Result<()> {
        let targets = self.targets;
        for (session, addresses) in &targets.messages {
            self.erase_messages(session, addresses)?;
        }
        for transcript in &targets.transcripts {
            self.erase_transcript(*transcript)?;
            // Its row goes with the session that shows it.
            let shown = self.database.read(|conn| projection::session_of(conn, *transcript))?;
            if let Some((key, id)) = shown {
                self.erase_session(&targets::Target { key, id })?;
            }
        }
        for session in &targets.sessions {
            self.erase_session(session)?;
        }
        for owner in &targets.owners {
            self.erase_owner(owner)?;
        }
        for key in &targets.keys {
            self.erase_key(key)?;
        }
        Ok(())
    }
}

/// Each erasure writes a value of its own, so that one that finishes does not remove the setting of another.
const NOTE: &str = "INSERT OR REPLACE INTO setting (name, value) VALUES (?1, ?2)";
const NOTE_DELETED: &str = "UPDATE setting SET value = ?3 WHERE name = ?1 AND value = ?2";
