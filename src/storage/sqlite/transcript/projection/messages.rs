//! Adds the messages of entries to a session, and their compactions.

use rusqlite::{Connection, OptionalExtension};

use super::super::super::connection::Config;
use super::super::super::error::{BackendError, BackendResult};
use super::super::super::row::session::SessionRow;
use super::super::super::tokens::CountedMessages;
use super::super::super::{append, compaction, import, message};
use super::super::range;
use super::clock;
use crate::error::Error;
use crate::id::SessionId;
use crate::message::{Json, Message};
use crate::tokens::Counter;
use crate::transcript::{At, Projector};
use crate::tree::Address;

/// How many messages are in memory at once.
const BATCH: usize = 256;

/// What the messages of one transcript are written with.
pub(super) struct Work<'a> {
    pub(super) conn: &'a Connection,
    pub(super) config: &'a Config,
    pub(super) id: &'a SessionId,
    pub(super) transcript: i64,
}

impl Work<'_> {
    /// Adds the messages of the entries after this one, parents first; returns how many were added.
    pub(super) fn add_messages(
        &self,
        session: &mut SessionRow,
        projector: &Projector,
        after: u64,
    ) -> BackendResult<u64> {
        let (counter, now) = (Counter::default(), clock::now());
        let (mut added, mut last) = (0, None);
        for batch in projector.after(after).chunks(BATCH) {
            let mut messages: Vec<(At, Message)> = Vec::with_capacity(batch.len());
            for &at in batch {
                if let Some(entry) = self.entry(projector.number(at))? {
                    messages.push((at, projector.message(at, &entry, now)));
                }
            }
            let counted = CountedMessages::of(&counter, messages.iter().map(|(_, it)| it));
            for ((at, message), count) in messages.iter().zip(counted.token_counts(self.conn)?) {
                let parent = projector.parent(*at);
                let parent = living(self.conn, session.key, projector, parent, last)?;
                let inserted =
                    append::content(message, self.config.max_message_bytes).and_then(|content| {
                        let (conn, id) = (self.conn, self.id);
                        append::insert(conn, session, id, parent, message, &content, count)
                    });
                let address = match inserted {
                    Ok(address) => address,
                    // It is too large, say: the entry stays, and the message is left out.
                    Err(BackendError::Own(error)) if !matches!(error, Error::Corrupt { .. }) => {
                        None
                    }
                    Err(error) => return Err(error),
                };
                if let Some(address) = address {
                    import::note(self.conn, session, address, message, false)?;
                    last = Some((*at, address));
                    added += 1;
                }
            }
        }
        Ok(added)
    }

    /// Adds the compactions of the entries after this one. One that is refused stays a hidden message.
    pub(super) fn add_compactions(
        &self,
        session: &SessionRow,
        projector: &Projector,
        after: u64,
    ) -> BackendResult<()> {
        let counter = Counter::default();
        for (mut found, first, last) in projector.compactions(after, clock::now()) {
            let (conn, key) = (self.conn, session.key);
            let (mut first, mut last) = (Some(first), Some(last));
            // Messages that were left out or deleted.
            while let Some(at) = last
                && message::find(conn, key, projector.id(at))?.is_none()
            {
                last = projector.parent(at);
            }
            let Some(last) = last else { continue };
            if first.is_some_and(|at| projector.parent(at).is_none())
                && message::find(conn, key, &found.first)?.is_none()
            {
                first = self.first_living(session.key, projector, last)?;
            }
            let Some(first) = first else { continue };
            found.first = projector.id(first).clone();
            found.last = projector.id(last).clone();
            let tokens = counter.message(&found.to_message(None));
            let added = compaction::check_size(&found, self.config.max_message_bytes)
                .and_then(|()| compaction::add(conn, session, self.id, &found, tokens));
            match added {
                Err(BackendError::Own(error)) if !matches!(error, Error::Corrupt { .. }) => {}
                added => added?,
            }
        }
        Ok(())
    }

    /// Returns the first message of a path that is stored.
    fn first_living(
        &self,
        session: i64,
        projector: &Projector,
        last: At,
    ) -> BackendResult<Option<At>> {
        let (mut first, mut above) = (None, Some(last));
        while let Some(at) = above {
            if message::find(self.conn, session, projector.id(at))?.is_some() {
                first = Some(at);
            }
            above = projector.parent(at);
        }
        Ok(first)
    }

    fn entry(&self, number: u64) -> BackendResult<Option<Json>> {
        let [first, _] = range(self.transcript);
        let address = first - 1 + i64::try_from(number).unwrap_or_default();
        let text: Option<String> =
            self.conn.prepare_cached(ENTRY)?.query_row([address], |row| row.get(0)).optional()?;
        Ok(text.and_then(|text| Json::parse(&text).ok()))
    }
}

pub(in super::super::super) const ENTRY: &str =
    "SELECT entry FROM transcript_entry WHERE address = ?1";

/// Returns the address of a message, or of its nearest ancestor that is stored. `last` is the message that was stored last.
pub(super) fn living(
    conn: &Connection,
    session: i64,
    projector: &Projector,
    mut at: Option<At>,
    last: Option<(At, Address)>,
) -> BackendResult<Option<Address>> {
    while let Some(place) = at {
        if let Some((_, address)) = last.filter(|(last, _)| *last == place) {
            return Ok(Some(address));
        }
        if let Some(address) = message::find(conn, session, projector.id(place))? {
            return Ok(Some(address));
        }
        at = projector.parent(place);
    }
    Ok(None)
}
