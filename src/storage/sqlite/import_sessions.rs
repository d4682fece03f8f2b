//! Creating many sessions in one transaction, each in a savepoint.
//!
//! Invariant: of a session that is refused nothing is stored, and the others are not affected.

use std::collections::HashMap;

use rusqlite::Connection;

use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::row::session as session_row;
use super::tokens::CountedMessages;
use super::transaction::run;
use super::{append, catalog, compaction, erase, head, import, index, label};
use crate::error::{Error, Result};
use crate::id::MessageId;
use crate::outcome::{Imported, SessionImport};
use crate::tokens::Counter;
use crate::tree::Address;

/// The tokens of a session, counted before the transaction.
struct Counted<'a> {
    messages: CountedMessages<'a>,
    summaries: Vec<u64>,
}

impl Database {
    /// Creates sessions, and returns the outcome of each.
    pub(crate) fn import_sessions(
        &self,
        sessions: &[&SessionImport],
    ) -> Result<Vec<Result<Vec<Imported>>>> {
        if sessions.is_empty() {
            return Ok(Vec::new());
        }
        let counter = Counter::default();
        let counted = sessions.iter().map(|session| Counted {
            messages: CountedMessages::of(&counter, session.records.iter().map(|r| &r.message)),
            summaries: session
                .compactions
                .iter()
                .map(|compaction| counter.message(&compaction.to_message(None)))
                .collect(),
        });
        let counted: Vec<Counted<'_>> = counted.collect();
        let outcomes = self.write(|conn| {
            let each = sessions.iter().zip(&counted);
            each.map(|(session, counted)| {
                in_savepoint(conn, || create(conn, session, counted, &self.config))
            })
            .collect::<BackendResult<Vec<_>>>()
        })?;
        let count: usize = outcomes.iter().flatten().map(Vec::len).sum();
        self.appended(count as u64);
        Ok(outcomes)
    }
}

/// Runs work that leaves nothing behind if it is refused. The outer error ends the transaction.
fn in_savepoint<T>(
    conn: &Connection,
    work: impl FnOnce() -> BackendResult<T>,
) -> BackendResult<Result<T>> {
    run(conn, "SAVEPOINT one_session")?;
    match work() {
        Ok(done) => {
            run(conn, "RELEASE one_session")?;
            Ok(Ok(done))
        }
        // SQLite may have rolled the whole transaction back.
        Err(error) if error.is_of_system() || error.is_busy() || conn.is_autocommit() => Err(error),
        Err(error) => {
            run(conn, "ROLLBACK TO one_session")?;
            run(conn, "RELEASE one_session")?;
            Ok(Err(error.into_error(0)))
        }
    }
}

fn create(
    conn: &Connection,
    whole: &SessionImport,
    counted: &Counted<'_>,
    config: &super::connection::Config,
) -> BackendResult<Vec<Imported>> {
    let SessionImport { id: name, details, records, compactions, labels, head, marks } = whole;
    erase::check_import(conn, name)?;
    if session_row::find(conn, name)?.is_some() {
        return Err(BackendError::Own(Error::SessionExists { id: name.clone() }));
    }
    let mut session = catalog::create(conn, name)?;
    let first = session.next;
    let forked = match &details.parent_session {
        Some(forked) => session_row::find(conn, forked)?.map(|forked| forked.key),
        None => None,
    };
    let mut places: HashMap<&MessageId, Address> = HashMap::with_capacity(records.len());
    let place_of = |places: &HashMap<&MessageId, Address>, id: &MessageId| {
        let unknown = || Error::UnknownMessage { session: name.clone(), id: id.clone() };
        places.get(id).copied().ok_or_else(|| BackendError::Own(unknown()))
    };
    let mut imported = Vec::with_capacity(records.len());
    for (record, count) in records.iter().zip(counted.messages.token_counts(conn)?) {
        import::remember(conn, &session, &record.record)?;
        let parent = record.parent.as_ref().map(|id| place_of(&places, id)).transpose()?;
        let message = &record.message;
        let content = append::content(message, config.max_message_bytes)?;
        let stored = append::insert(conn, &mut session, name, parent, message, &content, count)?;
        let Some(address) = stored else {
            let (_, differs) = append::compare(conn, &session, message)?;
            imported.push(if differs { Imported::Differs } else { Imported::Known });
            continue;
        };
        if session.head == parent {
            session.head = Some(address);
            session.invalidate_visible_tokens();
        }
        let is_copy = import::make_copy(conn, address, &message.id, &content, forked)?;
        import::note(conn, &mut session, address, message, is_copy)?;
        places.insert(&message.id, address);
        imported.push(Imported::Added);
    }
    index::make_pending(conn, &mut session, first)?;
    for (compaction, after) in compactions.iter().zip(&counted.summaries) {
        compaction::check_size(compaction, config.max_message_bytes)?;
        compaction::add(conn, &session, name, compaction, *after)?;
    }
    for wanted in labels {
        label::set(conn, session.key, &wanted.name, place_of(&places, &wanted.id)?)?;
    }
    if let Some(head) = head {
        let target = Some(place_of(&places, head)?);
        head::move_to(conn, &mut session, target)?;
    }
    session.invalidate_visible_tokens();
    session_row::store(conn, &session)?;
    session_row::store_listed_at(conn, &mut session)?;
    for mark in marks {
        import::remember(conn, &session, mark)?;
    }
    // Last, because every other write sets the time of the last write.
    catalog::set_details(conn, session.key, details, config.max_message_bytes)?;
    Ok(imported)
}
