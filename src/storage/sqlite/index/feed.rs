//! Feeding the index: which messages are pending, and when they are indexed.
//!
//! An append only makes its message pending. When a handle has appended [`MANY`] messages, or a search comes, the pending ones are
//! indexed. A message that changes becomes pending again if it is the newest, because it may be streamed.
//!
//! If a search cannot bring the index up to date (others hold the lock, or the store is read-only), it indexes the pending messages
//! in the connection's temporary schema, or in memory beside a server, and searches there, too. Of a file that index is kept until
//! someone writes to the store, so a read-only handle fills it once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::terms::{Found, cut};
use super::{Index, labels_of};
use crate::error::{Error, Result};
use crate::message::parts_from_text;
use crate::report::Progress;
use crate::search::indexed_text;
use crate::sql::{Connection, Read, Row, time};
use crate::storage::sqlite::connection::{Config, Database};
use crate::storage::sqlite::context::entry;
use crate::storage::sqlite::error::BackendResult;
use crate::storage::sqlite::interrupt::{Phase, Watch};
use crate::storage::sqlite::row::session::SessionRow;
use crate::storage::sqlite::transaction;
use crate::storage::sqlite::write::try_lock;
use crate::tree::Address;

/// After so many appended messages a handle indexes them. FTS5 writes a segment each time, and merges them by itself.
const MANY: u64 = 64;
/// How many bytes of text one transaction indexes, so that others do not wait long for it.
const MAX_BYTES: usize = 256 << 10;
/// How many messages are read at a time, and how many of a server.
const READ_AHEAD: usize = 32;
const READ_AHEAD_FAR: usize = 256;

/// The tags of a message, each with its length before it.
macro_rules! tags {
    () => {
        "(SELECT string_agg(CAST(octet_length(tag) AS TEXT) || ':' || tag, '')
            FROM message_tag
           WHERE message_tag.address = message.address)"
    };
}

/// What a handle leaves for later.
#[derive(Debug, Default)]
pub(in super::super) struct Deferred {
    /// How many messages it has appended since it indexed some.
    appended: AtomicU64,
    /// Held by the thread that indexes them. On a server two would wait for each other's rows, and begin again.
    turn: Mutex<()>,
}

#[cfg(test)]
impl Deferred {
    /// Lets appends do nothing, however many there are.
    pub(in super::super) fn suspend(&self) {
        std::mem::forget(self.turn.lock());
    }
}

impl Database {
    /// Counts appended messages, and indexes what is pending if they are many, unless another thread does.
    pub(in super::super) fn appended(&self, count: u64) {
        if self.deferred.appended.fetch_add(count, Ordering::Relaxed) + count < MANY {
            return;
        }
        let Some(_turn) = try_lock(&self.deferred.turn) else { return };
        self.deferred.appended.store(0, Ordering::Relaxed);
        // Messages that cannot be indexed now stay pending, and a search still finds them.
        let mut left = MANY.max(count);
        while let Ok(Some(indexed)) = self.write_step(index_some) {
            left = left.saturating_sub(indexed.messages);
            if indexed.is_all || left == 0 {
                break;
            }
        }
    }

    /// Indexes the pending messages before a search; those that cannot be indexed now stay pending.
    ///
    /// # Errors
    /// [`Error::Interrupted`] between two transactions. A spent budget is no error: the rest stays pending.
    pub(in super::super) fn catch_up_for_search(&self, watch: &Watch) -> Result<()> {
        if self.is_read_only() || !self.read(is_any_pending)? {
            return Ok(());
        }
        loop {
            if watch.is_interrupted() {
                return Err(Error::Interrupted);
            }
            if watch.is_spent() {
                return Ok(());
            }
            match self.try_write(index_some) {
                Ok(Some(indexed)) if !indexed.is_all => {}
                // A full or failing disk is an error for a write, not for a search.
                Ok(_) | Err(Error::DiskFull | Error::Storage { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Indexes every pending message; `progress` is called before the first transaction and after each.
    ///
    /// Waits for the write lock as every write does. What is indexed is stored, so a call that is stopped is continued by the
    /// next one, or by searches.
    pub(crate) fn index_all(&self, mut progress: impl FnMut(Progress)) -> Result<()> {
        if self.is_read_only() || !self.read(is_any_pending)? {
            return Ok(());
        }
        let watch = self.watch();
        let (mut done, total) = (0, self.read(count_pending)?);
        loop {
            // Numbers without a message were counted, and others may have appended.
            progress(Progress { done, total: total.max(done) });
            watch.check()?;
            let indexed = self.write(index_some)?;
            done += indexed.messages;
            if indexed.is_all {
                progress(Progress { done, total: done });
                return Ok(());
            }
        }
    }

    /// Rebuilds the search indexes.
    pub(crate) fn rebuild_search(&self) -> Result<()> {
        self.write_long(rebuild)
    }
}

fn is_any_pending(conn: &Connection) -> BackendResult<bool> {
    conn.has(FIRST_PENDING, ())
}

fn count_pending(conn: &Connection) -> BackendResult<u64> {
    conn.one(COUNT_PENDING, ())
}

const COUNT_PENDING: &str = "SELECT CAST(coalesce(sum(CASE WHEN next > unindexed THEN next - unindexed ELSE 1 END), 0) AS BIGINT)
   FROM session INDEXED BY session_unindexed
  WHERE unindexed IS NOT NULL";

/// Makes the session's messages from this number on pending.
pub(in super::super) fn make_pending(
    conn: &Connection,
    session: &mut SessionRow,
    number: u64,
) -> BackendResult<()> {
    if session.unindexed.is_none_or(|first| number < first) && number < session.next {
        session.unindexed = Some(number);
        store_unindexed(conn, session.key, session.unindexed)?;
    }
    Ok(())
}

fn store_unindexed(conn: &Connection, session: i64, first: Option<u64>) -> BackendResult<()> {
    conn.send("UPDATE session SET unindexed = ?2 WHERE key = ?1", (session, first))
}

/// Removes a message from the index before its row changes; returns whether the caller has to add it again.
///
/// The newest message becomes pending instead: it may be streamed, and each update would write to the index.
pub(in super::super) fn remove_to_update(
    conn: &Connection,
    session: &mut SessionRow,
    address: Address,
) -> BackendResult<bool> {
    let number = u64::from(address.n());
    let first_pending = session.unindexed.unwrap_or(session.next);
    if number >= first_pending {
        return Ok(false);
    }
    Index::Messages.remove(conn, address, address)?;
    if number + 1 < first_pending {
        return Ok(true);
    }
    make_pending(conn, session, number)?;
    Ok(false)
}

/// Indexes a message again whose labels changed, unless it is pending.
pub(in super::super) fn refresh(conn: &Connection, address: Address) -> BackendResult<()> {
    let unindexed: Option<Option<u64>> =
        conn.first("SELECT unindexed FROM session WHERE key = ?1", address.session())?;
    if unindexed.flatten().is_some_and(|first| first <= u64::from(address.n())) {
        return Ok(());
    }
    Index::Messages.remove(conn, address, address)?;
    add(conn, address)
}

/// Indexes a message that is not pending.
pub(in super::super) fn add(conn: &Connection, address: Address) -> BackendResult<()> {
    let mut found = Found::default();
    let docs = conn
        .rows_with(PENDING_PARTS, (address, address, 1_usize), |row| read_doc(row, &mut found))?;
    for (address, columns) in docs {
        Index::Messages.put(conn, address, columns.each_ref().map(String::as_str))?;
    }
    found.store(conn)
}

/// A message as the index has it: its text, tools and labels.
type Doc = (Address, [String; 3]);

/// Reads a row of address, parts, role, time, author and tags, and notes its terms.
fn read_doc(row: &Row<'_>, found: &mut Found) -> BackendResult<Doc> {
    // Damaged parts have no text, and a damaged time has no label.
    let parts = row.value(1)?.as_str().ok().and_then(|text| parts_from_text(text).ok());
    let parts = parts.unwrap_or_default();
    let role = row.value(2)?.as_str().unwrap_or_default();
    let tags: Vec<String> = Read::read(row, 5)?;
    let labels = labels_of(role, time(row.get(3)?).ok(), row.value(4)?.as_str_or_null()?, &tags);
    let text = cut(&indexed_text::plain_text(&parts), found);
    let tools = cut(&indexed_text::searched_tools(&parts), found);
    Ok((row.get(0)?, [text, tools, labels]))
}

/// Calls `take` with every message that is not pending, as the index has it.
pub(in super::super) fn each_doc(
    conn: &Connection,
    mut take: impl FnMut(Address, [&str; 3]),
) -> BackendResult<()> {
    conn.each(INDEXED, (), |row| {
        let (address, columns) = read_doc(row, &mut Found::default())?;
        take(address, columns.each_ref().map(String::as_str));
        Ok(true)
    })
}

const INDEXED: &str = concat!(
    "SELECT address, parts, role, message.created_at, author, ",
    tags!(),
    "
   FROM session
   JOIN message ON address BETWEEN key << 32 AND (key << 32) + 4294967295
  WHERE message.id IS NOT NULL AND (unindexed IS NULL OR address < (key << 32) + unindexed)"
);

/// What was indexed in one transaction.
#[derive(Debug, Default, Clone, Copy)]
struct Indexed {
    messages: u64,
    /// Whether nothing is left.
    is_all: bool,
}

/// Indexes pending messages, up to [`MAX_BYTES`] of terms.
fn index_some(conn: &Connection) -> BackendResult<Indexed> {
    let (mut messages, mut bytes) = (0, 0);
    let mut found = Found::default();
    while bytes < MAX_BYTES {
        // In order of address: FTS5 writes a segment each time the order is broken.
        let Some(key) = conn.first::<i64>(FIRST_PENDING, ())? else {
            found.store(conn)?;
            return Ok(Indexed { messages, is_all: true });
        };
        let session: Option<(Option<i64>, i64)> = conn.first(UNINDEXED, key)?;
        // Another host has indexed it meanwhile.
        let Some((Some(first), next)) = session else { continue };
        let mut first = number(first);
        let last = Address::range_of(key).1;
        let mut rest = None;
        let count = conn.by_engine(READ_AHEAD, READ_AHEAD_FAR);
        while rest.is_none() {
            let values = (Address::new(key, first), last, count);
            let docs = conn.rows_with(PENDING_PARTS, values, |row| read_doc(row, &mut found))?;
            let is_end = docs.len() < count;
            for (address, columns) in docs {
                if bytes >= MAX_BYTES {
                    rest = Some(u64::from(address.n()));
                    break;
                }
                Index::Messages.put(conn, address, columns.each_ref().map(String::as_str))?;
                messages += 1;
                bytes += columns.iter().map(String::len).sum::<usize>();
                first = address.n().saturating_add(1);
            }
            if is_end {
                break;
            }
        }
        let rest = rest.filter(|rest| i64::try_from(*rest).is_ok_and(|rest| rest < next));
        store_unindexed(conn, key, rest)?;
    }
    found.store(conn)?;
    Ok(Indexed { messages, is_all: !is_any_pending(conn)? })
}

/// Returns the number of the first message that is not indexed. `verify` reports one that is damaged.
fn number(unindexed: i64) -> u32 {
    u32::try_from(unindexed.max(1)).unwrap_or(u32::MAX)
}

pub(in super::super) const FIRST_PENDING: &str = "SELECT key
   FROM session INDEXED BY session_unindexed
  WHERE unindexed IS NOT NULL
  ORDER BY key
  LIMIT 1";

const UNINDEXED: &str = "SELECT unindexed, next FROM session WHERE key = ?1 /*LOCK session*/";

pub(in super::super) const PENDING_PARTS: &str = concat!(
    "SELECT address, parts, role, created_at, author, ",
    tags!(),
    "
   FROM message
  WHERE address BETWEEN ?1 AND ?2 AND id IS NOT NULL
  ORDER BY address
  LIMIT ?3"
);

/// Checks that the index holds the current version of the indexed text.
///
/// Otherwise the index is emptied and everything is pending: the store opens at once, and the following writes and
/// searches index some of it at a time.
pub(in super::super) fn empty_if_outdated(
    conn: &rusqlite::Connection,
    config: &Config,
) -> BackendResult<()> {
    if has_current_version(&conn.into())? {
        return Ok(());
    }
    transaction::write(conn, config, config.busy_timeout, |conn| make_current(&conn.into()))
}

/// The same in the transaction of a caller.
pub(in super::super) fn make_current(conn: &Connection) -> BackendResult<()> {
    // Another process may have done it meanwhile.
    if has_current_version(conn)? { Ok(()) } else { empty(conn) }
}

fn empty(conn: &Connection) -> BackendResult<()> {
    Index::Messages.clear(conn)?;
    conn.run("DELETE FROM term", ())?;
    conn.run("UPDATE session SET unindexed = 1 WHERE next > 1", ())?;
    // Documents are few compared with messages, and are never pending.
    Index::Context.clear(conn)?;
    entry::index_all(conn)?;
    store_version(conn)
}

/// Rebuilds the indexes of messages and of the context.
pub(in super::super) fn rebuild(conn: &Connection) -> BackendResult<()> {
    empty(conn)?;
    while !index_some(conn)?.is_all {}
    Ok(())
}

/// Returns whether the index holds the current version of the indexed text.
pub(in super::super) fn has_current_version(conn: &Connection) -> BackendResult<bool> {
    let version: Option<String> =
        conn.first("SELECT value FROM setting WHERE name = 'index_version'", ())?;
    Ok(version.is_some_and(|version| version == indexed_text::VERSION.to_string()))
}

/// Records the version of the indexed text.
pub(in super::super) fn store_version(conn: &Connection) -> BackendResult<()> {
    let sql = "INSERT INTO setting (name, value) VALUES ('index_version', ?1)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    conn.run(sql, indexed_text::VERSION.to_string()).map(drop)
}

/// What the temporary index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Prepared {
    /// No message is pending.
    Nothing,
    /// The temporary index holds some of the pending messages, because the budget is spent.
    Some,
    /// The temporary index holds all of them.
    All,
}

pub(in super::super) const CREATE_PENDING: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.pending_index USING fts5 (
    text, tools, labels,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TABLE IF NOT EXISTS temp.pending_index_of (version, low, high, last)";

/// How many messages are indexed between two checks of the budget.
const CHUNK: usize = 256;

/// Indexes the pending messages in a range of addresses.
///
/// What is left when a budget is spent is indexed by the next search on this connection.
pub(in super::super) fn prepare(
    conn: &Connection,
    (low, high): (Address, Address),
    watch: &Watch,
) -> BackendResult<Prepared> {
    let next = |from: Address| -> BackendResult<Option<(i64, i64)>> {
        conn.first(NEXT_PENDING, (from.session(), high.session()))
    };
    if next(low)?.is_none() {
        return Ok(Prepared::Nothing);
    }
    let beside = conn.temporary()?;
    let sqlite = beside.sqlite()?;
    sqlite.execute_batch(CREATE_PENDING)?;
    // `data_version` does not count a connection's own writes.
    let is_reader = sqlite.is_readonly("main")?;
    let version: i64 = sqlite.pragma_query_value(None, "data_version", |row| row.get(0))?;
    let last: Option<Address> = beside.first(
        "SELECT last FROM temp.pending_index_of WHERE (version, low, high) = (?1, ?2, ?3)",
        (version, low, high),
    )?;
    let last = last.filter(|_| is_reader);
    let mut from = match last {
        Some(last) if last == high => return Ok(Prepared::All),
        Some(last) => last.after(),
        None => {
            Index::Pending.clear(conn)?;
            low
        }
    };
    loop {
        // An interrupted write would roll the whole transaction back, so the budget is checked between two writes.
        watch.enter(Phase::Indexing);
        if watch.is_spent() {
            return Ok(Prepared::Some);
        }
        watch.enter(Phase::Finishing);
        let mut count = CHUNK;
        let to = loop {
            let Some((key, first)) = next(from)? else { break high };
            let last = Address::range_of(key).1.min(high);
            let values = (Address::new(key, number(first)).max(from), last, count);
            let read = |row: &Row<'_>| read_doc(row, &mut Found::default());
            let docs = conn.rows_with(PENDING_PARTS, values, read)?;
            for (address, columns) in &docs {
                Index::Pending.put(conn, *address, columns.each_ref().map(String::as_str))?;
            }
            count -= docs.len();
            let to = docs.last().filter(|_| count == 0).map_or(last, |doc| doc.0);
            if count == 0 || to == high {
                break to;
            }
            from = to.after();
        };
        beside.run("DELETE FROM temp.pending_index_of", ())?;
        let sql = "INSERT INTO temp.pending_index_of VALUES (?1, ?2, ?3, ?4)";
        beside.run(sql, (version, low, high, to))?;
        if to == high {
            return Ok(Prepared::All);
        }
        from = to.after();
    }
}

/// The first session from ?1 to ?2 with pending messages, and the number of the first of these.
pub(in super::super) const NEXT_PENDING: &str = "SELECT key, unindexed
   FROM session INDEXED BY session_unindexed
  WHERE unindexed IS NOT NULL AND key BETWEEN ?1 AND ?2
  ORDER BY key
  LIMIT 1";
