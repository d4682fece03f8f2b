//! Import: storing sessions as they are, record by record, in one transaction.
//!
//! What the store refuses is left out, and the rest is stored. A record is imported once: its name is kept, so what was deleted
//! or removed since does not come back. The children of a message that is not stored follow the nearest one above that is.
//!
//! An export has the messages of a fork and those of the session that was forked. A message that is in both becomes a copy
//! again, as the fork had made it, whichever of the two comes first: its usage counts once, a search finds it once, and an
//! erasure finds every copy.
//!
//! The session that shows a transcript is written by the same engine. Its records are *derived* of entries, each of which comes
//! once, so their names are not kept; and what others have done to the session is no reason to leave one out.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use super::commit_group::millis_since;
use super::connection::{Config, Database};
use super::context::elision;
use super::row::message::Content;
use super::row::session::{self as session_row, SessionRow};
use super::session::Named;
use super::tokens::{CountedMessages, HEURISTIC_KEY, TokenCount};
use super::{append, catalog, compaction, delete, erase, head, index, message, path, usage};
use crate::compaction::{Compaction, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{Appended, Record, SessionDetails};
use crate::records::ids::derive;
use crate::sql::{BackendError, BackendResult, Connection};
use crate::tokens::Counter;
use crate::tree::Address;

thread_local! {
    /// The database whose import reads records on this thread now.
    static IMPORTING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Ends the import of this thread, also after a panic of what reads the records.
struct Importing {
    outer: Option<u64>,
}

impl Importing {
    fn begin(serial: u64) -> Self {
        Self { outer: IMPORTING.replace(Some(serial)) }
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        IMPORTING.set(self.outer);
    }
}

impl Database {
    /// Refuses what would wait for this thread's own import.
    pub(super) fn check_not_importing(&self) -> Result<()> {
        if IMPORTING.get() != Some(self.serial) {
            return Ok(());
        }
        Err(Error::InvalidValue {
            what: "iterator",
            given: "the records of an import".to_owned(),
            why: "it uses the store that they are imported into".to_owned(),
        })
    }

    /// Imports records. Returns how many messages were added to each session, and the records that were refused. An error of the
    /// iterator ends the import, and nothing is stored.
    pub(crate) fn import(&self, records: &mut dyn Iterator<Item = Result<Record>>) -> Result<Done> {
        let (counter, began) = (Counter::default(), Instant::now());
        let records = Cell::new(Some(records));
        let done = self.write_long(|conn| {
            // They are read once, so a write that a server gave up cannot run again.
            let records = records.take();
            let records = records.ok_or_else(|| Error::Busy { waited_ms: millis_since(began) })?;
            let _importing = Importing::begin(self.serial);
            let (config, open) = (&self.config, None);
            let mut import = Import { conn, config, counter: &counter, open };
            let (mut sessions, mut refused) = (Vec::new(), Vec::new());
            for (number, record) in (0..).zip(records) {
                let record = record.map_err(BackendError::Own)?;
                if let (Record::Session { id, .. }, Some(open)) = (&record, &import.open)
                    && *id != open.id
                {
                    sessions.extend(import.close()?);
                }
                match import.take(record) {
                    Ok(()) => {}
                    Err(error) if error.is_refusal() => refused.push((number, error.into_error(0))),
                    Err(error) => return Err(error),
                }
            }
            sessions.extend(import.close()?);
            Ok((sessions, refused))
        })?;
        self.appended(done.0.iter().map(|(_, added)| added).sum());
        Ok(done)
    }
}

/// The sessions with the numbers of messages that were added, and what was refused.
type Done = (Vec<(SessionId, u64)>, Vec<(u64, Error)>);

/// Stores messages, each below the parent that it names; a parent comes before its children.
pub(crate) fn import(
    conn: &Connection,
    name: &Named<'_>,
    messages: &[Message],
    counted: &CountedMessages<'_>,
    max_bytes: usize,
) -> BackendResult<Vec<Appended>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let mut open = Open::of(conn, name)?;
    let counts = counted.token_counts(conn)?;
    let imported = messages
        .iter()
        .zip(counts)
        .map(|(message, count)| {
            let appended = open.message(conn, max_bytes, (None, None), message, count)?;
            // A known message may have been deleted since.
            if appended.is_new || message::find(conn, open.row.key, &message.id)?.is_none() {
                return Ok(appended);
            }
            let (_, differs) = append::compare(conn, &open.row, message)?;
            Ok(Appended::known(message.id.clone(), differs))
        })
        .collect::<BackendResult<_>>()?;
    open.settle(conn)?;
    Ok(imported)
}

/// The tokens of a message that is deleted before anybody counts.
const NO_TOKENS: TokenCount = TokenCount { tokens: 0, counter: HEURISTIC_KEY };

/// An import in progress.
pub(super) struct Import<'a> {
    conn: &'a Connection<'a>,
    config: &'a Config,
    counter: &'a Counter,
    /// The session whose records come; `None` after one that was refused.
    open: Option<Open>,
}

/// A session while its records come.
struct Open {
    id: SessionId,
    row: SessionRow,
    is_derived: bool,
    /// The session that it was forked from, and whether a record says so now.
    forked: Option<i64>,
    is_forked_now: bool,
    /// The number of its first message that this import adds, and of the first that is not in the row yet.
    begin: u64,
    first_new: u64,
    added: u64,
    /// The time of the last write, which is set at the end.
    details: SessionDetails,
    /// The message before: most conversations are linear.
    before: Option<(MessageId, Address)>,
    /// The messages that are not stored, with the places that they would be below.
    gone: HashMap<MessageId, Option<Address>>,
    /// The places of tombstones, each named as the start and as the end of a compaction.
    tombstones: HashMap<u64, [MessageId; 2]>,
    /// The messages in the places of tombstones, which are deleted at the end.
    placeholders: BTreeSet<Address>,
}

impl<'a> Import<'a> {
    /// Begins to write a derived session, which is created if it does not exist.
    pub(super) fn derived(
        conn: &'a Connection<'a>,
        config: &'a Config,
        counter: &'a Counter,
        id: &SessionId,
    ) -> BackendResult<Self> {
        let open = Open { is_derived: true, ..Open::of(conn, &Named::unbound(id))? };
        Ok(Self { conn, config, counter, open: Some(open) })
    }

    /// Stores a record; an error of the store's own leaves nothing of it.
    pub(super) fn take(&mut self, record: Record) -> BackendResult<()> {
        let (conn, config, counter) = (self.conn, self.config, self.counter);
        match (record, &mut self.open) {
            (Record::Session { id, details }, Some(open)) if id == open.id => {
                open.settle(conn)?;
                open.set_details(conn, config, details)
            }
            (Record::Session { id, details }, _) => {
                let begin = || {
                    id.check()?;
                    let mut open = Open::of(conn, &Named::unbound(&id))?;
                    open.set_details(conn, config, details)?;
                    Ok(open)
                };
                self.open = Some(in_savepoint(conn, begin)?);
                Ok(())
            }
            (_, None) => Ok(()),
            (Record::Message { below, message, name }, Some(open)) => {
                let counted = CountedMessages::of(counter, [&message]);
                let Some(count) = counted.token_counts(conn)?.next() else { return Ok(()) };
                let max = config.max_message_bytes;
                open.message(conn, max, (below, name), &message, count).map(drop)
            }
            (Record::Head { id }, Some(open)) => open.move_head(conn, id.as_ref()),
            (record, Some(open)) => {
                open.settle(conn)?;
                let taken = in_savepoint(conn, || open.take(conn, config, counter, record));
                // Others than this import write to the row, too.
                open.row = session_row::find(conn, &open.id)?.unwrap_or(open.row);
                open.first_new = open.row.next;
                taken
            }
        }
    }

    /// Ends a session; returns how many messages were added to it.
    pub(super) fn close(&mut self) -> BackendResult<Option<(SessionId, u64)>> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        open.settle(self.conn)?;
        if !open.placeholders.is_empty() {
            delete::delete_at(self.conn, &mut open.row, &open.placeholders)?;
        }
        open.join_forks(self.conn)?;
        if open.details.updated_at.is_some() {
            // Last, because every other write sets the time of the last write.
            session_row::set_details(self.conn, open.row.key, &open.details)?;
        }
        Ok(Some((open.id, open.added)))
    }
}

impl Open {
    /// Opens a session, creating it if it does not exist.
    fn of(conn: &Connection, name: &Named<'_>) -> BackendResult<Self> {
        erase::check_import(conn, name)?;
        let row = name.find_or_create(conn)?;
        session_row::claim(conn, row.key)?;
        Ok(Self {
            id: SessionId::clone(name),
            row,
            is_derived: false,
            forked: forked(conn, row.key)?,
            is_forked_now: false,
            begin: row.next,
            first_new: row.next,
            added: 0,
            details: SessionDetails::default(),
            before: None,
            gone: HashMap::new(),
            tombstones: HashMap::new(),
            placeholders: BTreeSet::new(),
        })
    }

    fn set_details(
        &mut self,
        conn: &Connection,
        config: &Config,
        mut details: SessionDetails,
    ) -> BackendResult<()> {
        details.check()?;
        self.details.updated_at = details.updated_at.take().or(self.details.updated_at);
        self.is_forked_now |= details.parent_session.is_some();
        if details != SessionDetails::default() {
            in_savepoint(conn, || {
                catalog::set_details(conn, self.row.key, &details, config.max_message_bytes)
            })?;
            self.row = session_row::find(conn, &self.id)?.unwrap_or(self.row);
            self.forked = forked(conn, self.row.key)?;
        }
        Ok(())
    }

    /// Stores what appends change in the row.
    fn settle(&mut self, conn: &Connection) -> BackendResult<()> {
        if self.first_new < self.row.next {
            index::make_pending(conn, &mut self.row, self.first_new)?;
            session_row::store(conn, &self.row)?;
            session_row::store_listed_at(conn, &mut self.row)?;
            self.first_new = self.row.next;
        }
        Ok(())
    }

    /// Makes messages of its forks copies of those that were added, and its own of those of a session that it turns out to
    /// be a fork of.
    fn join_forks(&self, conn: &Connection) -> BackendResult<()> {
        if self.is_derived {
            return Ok(());
        }
        let key = self.row.key;
        if let Some(forked) = self.forked.filter(|_| self.is_forked_now && self.begin > 1) {
            make_copies(conn, key, Address::range_of(forked))?;
        }
        if self.added > 0 {
            let (_, last) = Address::range_of(key);
            let first = Address::from_raw(Address::new(key, 0).raw() + self.begin as i64);
            for fork in conn.rows::<i64>(FORKS, self.id.as_str())? {
                make_copies(conn, fork, (first, last))?;
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        conn: &Connection,
        max_bytes: usize,
        (below, name): (Option<u64>, Option<String>),
        message: &Message,
        count: TokenCount,
    ) -> BackendResult<Appended> {
        let parent = self.parent(conn, below, message.parent.as_ref())?;
        let content = match message.id.check_for_writing() {
            Ok(()) => append::content(message, max_bytes),
            Err(error) => Err(error.into()),
        };
        let content = content.inspect_err(|_| {
            self.gone.insert(message.id.clone(), parent);
        })?;
        let name = name.as_deref().unwrap_or(message.id.as_str());
        if !self.is_derived && !remember(conn, &self.row, name)? {
            if message::find(conn, self.row.key, &message.id)?.is_none() {
                self.gone.insert(message.id.clone(), parent);
            }
            return Ok(Appended::known(message.id.clone(), false));
        }
        let Some(address) = self.insert(conn, parent, message, &content, count)? else {
            return Ok(Appended::known(message.id.clone(), false));
        };
        let is_copy = make_copy(conn, address, &message.id, &content, self.forked)?;
        note(conn, &mut self.row, address, message, is_copy)?;
        self.before = Some((message.id.clone(), address));
        self.added += 1;
        Ok(Appended::new(message.id.clone()))
    }

    /// Stores a message; `None` if its id is known. The head moves to it if it is at the parent, unless a record will move it.
    fn insert(
        &mut self,
        conn: &Connection,
        parent: Option<Address>,
        message: &Message,
        content: &Content<'_>,
        count: TokenCount,
    ) -> BackendResult<Option<Address>> {
        let row = &mut self.row;
        let stored = append::insert(conn, row, &self.id, parent, message, (content, count), false)?;
        if stored.is_some() && row.head == parent && !self.is_derived {
            row.head = stored;
            row.invalidate_visible_tokens();
        }
        Ok(stored)
    }

    /// Moves the head. To go on from where it is cannot be undone.
    fn move_head(&mut self, conn: &Connection, id: Option<&MessageId>) -> BackendResult<()> {
        let target = self.parent(conn, None, id)?;
        if self.row.head == target {
            return Ok(());
        }
        let goes_on = match self.row.head {
            None => true,
            Some(at) => path::holds(conn, target, at)?,
        };
        match goes_on {
            true => self.row.head = target,
            false => head::move_to(conn, &mut self.row, target)?,
        }
        self.row.invalidate_visible_tokens();
        match self.first_new < self.row.next {
            true => self.settle(conn),
            false => session_row::store(conn, &self.row),
        }
    }

    /// Returns the place that a message is below; `None` for a root.
    fn parent(
        &self,
        conn: &Connection,
        below: Option<u64>,
        parent: Option<&MessageId>,
    ) -> BackendResult<Option<Address>> {
        let tombstone = below.and_then(|number| self.tombstones.get(&number));
        let Some(id) = tombstone.map(|[_, end]| end).or(parent) else { return Ok(None) };
        match (&self.before, self.gone.get(id)) {
            (Some((before, address)), _) if id == before => Ok(Some(*address)),
            (_, Some(place)) => Ok(*place),
            // Others may have deleted it.
            _ if self.is_derived => Ok(message::find(conn, self.row.key, id)?.or(self.row.head)),
            _ => message::place(conn, Some(self.row.key), &self.id, id).map(Some),
        }
    }

    /// Stores a record that is neither a session nor a message.
    fn take(
        &mut self,
        conn: &Connection,
        config: &Config,
        counter: &Counter,
        record: Record,
    ) -> BackendResult<()> {
        let key = self.row.key;
        if !self.is_derived
            && let Some(name) = name_of(&record)?
            && !remember(conn, &self.row, &name)?
        {
            return Ok(());
        }
        match record {
            Record::Tombstone { number, parent, below, starts, ends } => {
                self.tombstone(conn, number, (below, parent), (&starts, &ends))
            }
            Record::Compaction { mut compaction, first_tombstone, last_tombstone } => {
                compaction.id.check()?;
                if is_blank(&compaction.summary) {
                    let why = SummaryRefused::Blank;
                    return Err(BackendError::Own(Error::SummaryRefused { why }));
                }
                compaction::check_size(&compaction, config.max_message_bytes)?;
                if compaction::find(conn, key, &compaction.id)?.is_some() {
                    return Ok(());
                }
                let place = |number: Option<u64>, end: usize| {
                    number.and_then(|number| self.tombstones.get(&number)).map(|ids| &ids[end])
                };
                let first = place(first_tombstone, 0).unwrap_or(&compaction.first).clone();
                let last = match place(last_tombstone, 1) {
                    Some(id) => id.clone(),
                    None => {
                        compaction.last = self.living(conn, &compaction.last)?;
                        compaction.last.clone()
                    }
                };
                self.compact(conn, counter, compaction, first, last)
            }
            Record::Elision { message, call, marker } => {
                let name = Named::unbound(&self.id);
                let max = config.max_message_bytes;
                elision::add(conn, &name, &message, &call, &marker, max)
            }
            Record::Label(wanted) => {
                if head::labelled(conn, key, &wanted.name)?.is_some() {
                    return Ok(());
                }
                let address = message::require(conn, Some(key), &self.id, &wanted.id)?;
                head::set_label(conn, key, &wanted.name, address)?;
                catalog::touch(conn, key)
            }
            Record::Tag(tag) => head::tag(conn, &Named::unbound(&self.id), &tag.message, &tag.tag),
            Record::Session { .. }
            | Record::Message { .. }
            | Record::Head { .. }
            | Record::Imported { .. } => Ok(()),
        }
    }

    /// Returns the id of a message, or of the nearest one above if it is not stored.
    fn living(&self, conn: &Connection, id: &MessageId) -> BackendResult<MessageId> {
        let Some(place) = self.gone.get(id) else { return Ok(id.clone()) };
        let living = message::nearest_living(conn, *place)?;
        let unknown = || Error::UnknownMessage { session: self.id.clone(), id: id.clone() };
        living.map(|(_, id)| id).ok_or_else(|| BackendError::Own(unknown()))
    }

    /// Finds the place of a tombstone by the compactions that start or end there, or makes one.
    fn tombstone(
        &mut self,
        conn: &Connection,
        number: u64,
        (below, parent): (Option<u64>, Option<MessageId>),
        (starts, ends): (&[CompactionId], &[CompactionId]),
    ) -> BackendResult<()> {
        let known = |ids: &[CompactionId]| -> BackendResult<Option<MessageId>> {
            for id in ids {
                if compaction::find(conn, self.row.key, id)?.is_some() {
                    return Ok(Some(id.as_message()));
                }
            }
            Ok(None)
        };
        let (start, mut end) = (known(starts)?, known(ends)?);
        if end.is_none() {
            let name = format!("{}#tombstone", derive(&[&format!("{starts:?} {ends:?}")]));
            let parent = self.parent(conn, below, parent.as_ref())?;
            // One whose compactions were removed since is gone.
            if remember(conn, &self.row, &name)? {
                let message = Message::new("", Vec::new()).hidden();
                let content = append::content(&message, usize::MAX)?;
                let address = self.insert(conn, parent, &message, &content, NO_TOKENS)?;
                self.placeholders.extend(address);
                end = Some(message.id);
                self.settle(conn)?;
            }
        }
        if let Some(end) = end {
            self.tombstones.insert(number, [start.unwrap_or_else(|| end.clone()), end]);
        }
        Ok(())
    }

    fn compact(
        &self,
        conn: &Connection,
        counter: &Counter,
        compaction: Compaction,
        first: MessageId,
        last: MessageId,
    ) -> BackendResult<()> {
        let after = counter.message(&compaction.to_message(None));
        match compaction.count {
            0 => {
                let compaction = Compaction { first, last, ..compaction };
                compaction::add(conn, &self.row, &self.id, &compaction, after)?;
            }
            // As it was: a later one that was removed since may have hidden an end of it.
            _ => {
                let places = (&first, &last);
                compaction::restore(conn, &self.row, &self.id, &compaction, places, after)?;
            }
        }
        catalog::touch_view(conn, self.row.key)
    }
}

/// Runs work that leaves nothing behind if it fails.
fn in_savepoint<T>(conn: &Connection, work: impl FnOnce() -> BackendResult<T>) -> BackendResult<T> {
    conn.command("SAVEPOINT one_record")?;
    let done = work();
    // SQLite may have rolled the whole transaction back.
    if done.is_err() && conn.is_in_transaction() {
        conn.command("ROLLBACK TO one_record")?;
    }
    if conn.is_in_transaction() {
        conn.command("RELEASE one_record")?;
    }
    done
}

/// Returns the name under which a record that is neither a session nor a message is remembered.
fn name_of(record: &Record) -> BackendResult<Option<String>> {
    let kind = match record {
        Record::Imported { name } => return Ok(Some(name.clone())),
        Record::Compaction { compaction, .. } => {
            return Ok(Some(format!("{}#compaction", compaction.id)));
        }
        Record::Elision { .. } => "elision",
        Record::Label(_) => "label",
        Record::Tag(_) => "tag",
        _ => return Ok(None),
    };
    let text = serde_json::to_string(record);
    let text = text.map_err(|source| Error::Json { what: "a record", source })?;
    Ok(Some(format!("{}#{kind}", derive(&[&text]))))
}

/// Returns the key of the session that a session was forked from, if the store has it.
fn forked(conn: &Connection, session: i64) -> BackendResult<Option<i64>> {
    conn.first(FORKED, session)
}

const FORKED: &str = "SELECT forked.key
   FROM session
  CROSS JOIN session AS forked
  WHERE session.key = ?1
    AND forked.id = session.parent_session";

/// Notes the time of a message that was added, and its usage; that of a copy is noted with the original.
fn note(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
    message: &Message,
    is_copy: bool,
) -> BackendResult<()> {
    // Records may come in any order.
    let last = session.last_message_at;
    session.note_message_at(message.created_at.timestamp_micros());
    session.last_message_at = session.last_message_at.max(last);
    if is_copy { Ok(()) } else { usage::record(conn, address, message) }
}

/// Makes a message that was added a copy if the forked session has it with the same content; returns whether it is one.
fn make_copy(
    conn: &Connection,
    address: Address,
    id: &MessageId,
    content: &Content<'_>,
    forked: Option<i64>,
) -> BackendResult<bool> {
    let Some(forked) = forked else { return Ok(false) };
    let Some(original) = message::find(conn, forked, id)? else { return Ok(false) };
    let origin: Option<Address> = conn.first(ORIGIN, (original, &content.role, &content.parts))?;
    if let Some(origin) = origin {
        conn.run("UPDATE message SET origin = ?2 WHERE address = ?1", (address, origin))?;
    }
    Ok(origin.is_some())
}

/// Makes the messages of a fork that a range of another session has, too, copies of these.
fn make_copies(
    conn: &Connection,
    fork: i64,
    (first, last): (Address, Address),
) -> BackendResult<()> {
    if conn.run(MAKE_COPIES, (first, last, fork))? > 0 {
        conn.run(COPIES_OF_COPIES, Address::range_of(fork))?;
        conn.run(FORGET_USAGE, fork)?;
    }
    Ok(())
}

/// The forks of a session, without those that only belong to it.
pub(super) const FORKS: &str = "SELECT key
   FROM session
  WHERE parent_session = ?1
    AND fork_point IS NOT NULL";

pub(super) const MAKE_COPIES: &str = "UPDATE message
    SET origin = coalesce(original.origin, original.address)
   FROM message AS original
  WHERE original.address BETWEEN ?1 AND ?2
    AND message.session = ?3
    AND message.id = original.id
    AND message.role = original.role
    AND message.parts = original.parts
    AND message.origin IS NULL";

pub(super) const COPIES_OF_COPIES: &str = "UPDATE message
    SET origin = copied.origin
   FROM message AS copied
  WHERE message.origin BETWEEN ?1 AND ?2
    AND copied.address = message.origin
    AND copied.origin IS NOT NULL";

/// The usage of a copy is that of its original.
pub(super) const FORGET_USAGE: &str = "DELETE FROM usage
  WHERE session = ?1
    AND EXISTS (
        SELECT 1
          FROM message
         CROSS JOIN usage AS original
         WHERE message.address = usage.address
           AND original.session = message.origin >> 32
           AND original.address = message.origin)";

const ORIGIN: &str = "SELECT coalesce(origin, address)
   FROM message
  WHERE address = ?1 AND role = ?2 AND parts = ?3";

/// Returns whether a record was imported.
pub(crate) fn is_imported(
    conn: &Connection,
    session: &SessionRow,
    record: &str,
) -> BackendResult<bool> {
    let sql = "SELECT 1 FROM imported WHERE session = ?1 AND record = ?2 /*HASH*/";
    conn.has(sql, (session.key, record))
}

/// Stores that a record was imported; `false` if it was imported before.
fn remember(conn: &Connection, session: &SessionRow, record: &str) -> BackendResult<bool> {
    let count = conn.run(
        "INSERT INTO imported (session, record) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (session.key, record),
    )?;
    Ok(count > 0)
}
