//! Projects transcripts: their entries as messages of a session, written with the entries.
//!
//! A row of `projection` says which session shows a transcript, and how many of its entries. The messages of new entries
//! follow those before them. If an entry changes an earlier message, the session is written again, in the same transaction
//! if the transcript is short, and otherwise by [`Database::project`].
//!
//! A [`Projector`] knows what the entries so far say of the next one. The database keeps a few of them, which are as old as
//! the row says or older; without one, the entries are read again.
//!
//! Invariant: a session that nobody else has changed, and that needs no repair, is what the projected entries say, however
//! they came in batches.

mod messages;
mod row;

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::super::connection::{Config, Database};
use super::super::error::{BackendError, BackendResult};
use super::super::row::session::{self as session_row, SessionRow};
use super::super::{catalog, erase, head, index, label, message, path};
use super::{range, read};
use crate::clock;
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Json;
use crate::outcome::SessionDetails;
use crate::records::ids::{derive, session_id};
use crate::transcript::{Connected, MissingParent, Projection, Projector, TranscriptKey};

#[cfg(test)]
pub(in super::super) use row::{FIND, OF_SESSION};
pub(in super::super) use row::{close, close_of_session, forget, of_session, session_of};

use row::Row;

/// How many entries an append projects besides its own, and how many entries a transcript has at most whose session an
/// append writes again: about 30 ms.
const MAX_IN_APPEND: u64 = 1_000;
/// How many projectors are kept at most.
const MAX_KEPT: usize = 8;
/// How many messages the kept projectors have at most, together.
const MAX_KEPT_MESSAGES: usize = 200_000;

/// How much a write projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As much as an append may, which is to be short; this many entries are its own.
    Append(u64),
    All,
}

/// The projectors of the transcripts that were projected last.
#[derive(Debug, Default)]
pub(in super::super) struct Projectors {
    kept: Mutex<Vec<(i64, Projector)>>,
}

impl Projectors {
    /// Takes the projector of a transcript.
    fn take(&self, transcript: i64) -> Option<Projector> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(key, _)| *key == transcript)?;
        Some(kept.remove(at).1)
    }

    /// Keeps a projector of committed entries.
    fn keep(&self, transcript: i64, projector: Projector) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(key, _)| *key != transcript);
        kept.insert(0, (transcript, projector));
        let mut messages = 0;
        kept.truncate(MAX_KEPT);
        kept.retain(|(_, projector)| {
            messages += projector.messages();
            messages <= MAX_KEPT_MESSAGES
        });
    }
}

/// A projector, and how many messages it has added.
pub(super) struct Projected {
    transcript: i64,
    projector: Projector,
    added: u64,
}

impl Database {
    /// Returns a projector that knows the projected entries of a transcript, so that a write need not read them.
    pub(super) fn prepared_projector(&self, key: &TranscriptKey) -> Result<Option<Projector>> {
        self.read(|conn| {
            let Some(transcript) = read::row_of(conn, key)? else { return Ok(None) };
            let Some(row) = Row::find(conn, transcript)? else { return Ok(None) };
            let known = self.projectors.take(transcript);
            let mut projector = known.filter(|it| it.entries() <= row.entries).unwrap_or_default();
            feed(conn, transcript, &mut projector, row.entries)?;
            projector.connect();
            Ok(Some(projector))
        })
    }

    /// Keeps what a committed write has projected.
    pub(super) fn projected(&self, projected: Option<Projected>) {
        let Some(Projected { transcript, projector, added }) = projected else { return };
        self.projectors.keep(transcript, projector);
        if added > 0 {
            self.appended(added);
        }
    }

    /// Projects all entries of a transcript, and repairs its session; `None` if no session shows it.
    pub(crate) fn project(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        let prepared = self.prepared_projector(key)?;
        let projected = self.write_long(|conn| {
            let Some(stored) = read::stored(conn, key)? else { return Ok(None) };
            let transcript = i64::try_from(stored.number).unwrap_or_default();
            let whole = Whole { transcript, key, owner: stored.owner.as_deref() };
            whole.project(conn, &self.config, prepared, stored.entries, Reach::All)
        })?;
        self.projected(projected);
        self.projection(key)
    }

    /// Returns how a session shows a transcript; `None` if none does.
    pub(crate) fn projection(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        let Some(projector) = self.prepared_projector(key)? else { return Ok(None) };
        self.read(|conn| {
            let Some(stored) = read::stored(conn, key)? else { return Ok(None) };
            let transcript = i64::try_from(stored.number).unwrap_or_default();
            let Some(row) = Row::find(conn, transcript)? else { return Ok(None) };
            let Some((id, session)) = row.session(conn)? else { return Ok(None) };
            let mut left_out = projector.unread();
            for at in projector.order() {
                let found = message::find(conn, session.key, projector.id(*at))?;
                left_out += u64::from(found.is_none());
            }
            let missing = projector.missing();
            Ok(Some(Projection {
                session: id,
                entries: row.entries,
                waiting: stored.entries.saturating_sub(row.entries),
                left_out,
                missing_parents: missing
                    .map(|(id, parent)| MissingParent::new(id.clone(), parent.clone()))
                    .collect(),
                needs_repair: row.needs_repair,
                is_changed: row.is_changed_in(&session),
            }))
        })
    }
}

/// A transcript that is to be projected.
pub(super) struct Whole<'a> {
    pub(super) transcript: i64,
    pub(super) key: &'a TranscriptKey,
    pub(super) owner: Option<&'a str>,
}

impl Whole<'_> {
    /// Projects the entries that are not projected yet; the transcript has `total`.
    pub(super) fn project(
        &self,
        conn: &Connection,
        config: &Config,
        prepared: Option<Projector>,
        total: u64,
        reach: Reach,
    ) -> BackendResult<Option<Projected>> {
        let stored = Row::find(conn, self.transcript)?;
        if stored.as_ref().is_some_and(|row| row.is_closed) {
            return Ok(None);
        }
        let shown = stored.as_ref().map_or(0, |row| row.entries);
        let mut projector = prepared.filter(|it| it.entries() <= shown).unwrap_or_default();
        feed(conn, self.transcript, &mut projector, shown)?;
        projector.connect();
        if let Reach::Append(own) = reach
            && total.saturating_sub(shown) > own + MAX_IN_APPEND
        {
            let transcript = self.transcript;
            return Ok(Some(Projected { transcript, projector, added: 0 }));
        }
        let head = projector.head();
        let details = projector.details();
        feed(conn, self.transcript, &mut projector, total)?;
        let connected = projector.connect();
        let Some((id, mut session, mut row)) = self.session(conn, stored, &projector, config)?
        else {
            return Ok(None);
        };
        if session.deleted_at.is_some() {
            if erase::is_being_erased(conn, session.key)? {
                return Ok(None);
            }
            // It goes on, so it is wanted.
            row::restore(conn, session.key)?;
        }
        row.is_changed = row.is_changed_in(&session);
        row.needs_repair |= connected == Connected::Rearranged;
        let is_short = reach == Reach::All || total <= MAX_IN_APPEND;
        let is_again = row.needs_repair && is_short && !row.is_changed;
        let mut labels = Vec::new();
        if is_again {
            labels = label::all(conn, session.key)?;
            session = clear(conn, &id, session)?;
        }
        let work = messages::Work { conn, config, id: &id, transcript: self.transcript };
        let first_new = session.next;
        let after = if is_again { 0 } else { shown };
        let added = work.add_messages(&mut session, &projector, after)?;
        work.add_compactions(&session, &projector, after)?;
        for (label, _) in labels {
            if let Some(address) = message::find(conn, session.key, &label.id)? {
                label::copy(conn, session.key, &label.name, address)?;
            }
        }
        if is_again || head != projector.head() {
            let living = messages::living(conn, session.key, &projector, projector.head(), None)?;
            move_head(conn, &mut session, living)?;
        }
        index::make_pending(conn, &mut session, first_new)?;
        session.invalidate_visible_tokens();
        session_row::store(conn, &session)?;
        session_row::store_listed_at(conn, &mut session)?;
        row::set_details(conn, session.key, &details, &projector.details(), config)?;
        row::set_owner(conn, session.key, self.owner)?;
        if let Some(newest) = projector.newest().filter(|_| !row.is_changed) {
            row::set_updated_at(conn, session.key, newest)?;
        }
        row.needs_repair &= !is_again;
        (row.entries, row.next, row.changes) = (total, session.next, session.changes);
        row.store(conn)?;
        Ok(Some(Projected { transcript: self.transcript, projector, added }))
    }

    /// Returns the session that shows the transcript, creating it for the first message; `None` if there is none.
    fn session(
        &self,
        conn: &Connection,
        stored: Option<Row>,
        projector: &Projector,
        config: &Config,
    ) -> BackendResult<Option<(SessionId, SessionRow, Row)>> {
        if let Some(row) = stored {
            return Ok(row.session(conn)?.map(|(id, session)| (id, session, row)));
        }
        if projector.messages() == 0 {
            return Ok(None);
        }
        let Some(id) = self.free_id(conn)? else { return Ok(None) };
        let session = match catalog::create(conn, &id) {
            Ok(session) => session,
            // The store is full.
            Err(BackendError::Own(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let details = SessionDetails {
            owner: self.owner.map(str::to_owned),
            parent_session: self.parent(conn)?,
            source: projector.details().source,
            ..SessionDetails::default()
        };
        catalog::set_details(conn, session.key, &details, config.max_message_bytes)?;
        row::set_details(
            conn,
            session.key,
            &SessionDetails::default(),
            &projector.details(),
            config,
        )?;
        let row = Row::new(self.transcript, session.key);
        Ok(Some((id, session, row)))
    }

    /// Returns the id of the session to be; `None` if it must not come back, or all ids are in use.
    ///
    /// It is the id that the SDK gives; if another session has it, with the project before it; then one that is derived.
    fn free_id(&self, conn: &Connection) -> BackendResult<Option<SessionId>> {
        let TranscriptKey { project, session, subpath } = self.key;
        let own = own_id(session, subpath);
        if let Err(BackendError::Own(_)) = erase::check_import(conn, &own) {
            return Ok(None);
        }
        let derived = derive(&["transcript", project, session, subpath]).to_string();
        for id in [own.clone(), session_id(format!("{project}/{own}")), derived.into()] {
            if session_row::find(conn, &id)?.is_none() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Returns the session of the main transcript, if this is another one.
    fn parent(&self, conn: &Connection) -> BackendResult<Option<SessionId>> {
        if self.key.is_main() {
            return Ok(None);
        }
        let main = TranscriptKey::new(&self.key.project, &self.key.session);
        let found = match read::row_of(conn, &main)? {
            Some(main) => row::session_of(conn, main)?,
            None => None,
        };
        Ok(found.map(|(_, id)| id).or_else(|| Some(own_id(&self.key.session, ""))))
    }
}

/// Returns the id that a session has unless another one has it.
fn own_id(session: &str, subpath: &str) -> SessionId {
    match subpath {
        "" => session_id(session),
        _ => session_id(format!("{session}/{subpath}")),
    }
}

/// Reads the entries up to a number.
fn feed(
    conn: &Connection,
    transcript: i64,
    projector: &mut Projector,
    to: u64,
) -> BackendResult<()> {
    if projector.entries() >= to {
        return Ok(());
    }
    let [first, _] = range(transcript);
    let mut statement = conn.prepare_cached(ENTRIES)?;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let after = first + number(projector.entries());
    let mut rows = statement.query([after, first - 1 + number(to)])?;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)? & i64::from(u32::MAX);
        // A damaged entry is no message.
        let entry = row.get_ref(1)?.as_str().ok().and_then(|text| Json::parse(text).ok());
        projector.read(u64::try_from(number).unwrap_or_default(), entry.as_ref());
    }
    Ok(())
}

pub(in super::super) const ENTRIES: &str = "SELECT address, entry
   FROM transcript_entry
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

/// Deletes the messages of a session that are to be written again.
fn clear(conn: &Connection, id: &SessionId, session: SessionRow) -> BackendResult<SessionRow> {
    // The messages get new addresses, and their usage is recorded again.
    conn.prepare_cached("DELETE FROM usage WHERE session = ?1 AND address IS NOT NULL")?
        .execute([session.key])?;
    catalog::clear(conn, session.key)?;
    Ok(session_row::find(conn, id)?.unwrap_or(session))
}

/// Moves the head. One that goes on with the conversation cannot be undone.
fn move_head(
    conn: &Connection,
    session: &mut SessionRow,
    to: Option<crate::tree::Address>,
) -> BackendResult<()> {
    let follows = match session.head {
        None => true,
        Some(before) => to.is_some() && path::holds(conn, to, before)?,
    };
    match follows {
        true => session.head = to,
        false => head::move_to(conn, session, to)?,
    }
    Ok(())
}
