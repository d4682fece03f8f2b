//! The texts of blocks and their versions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::append::check_size;
use super::super::error::{BackendResult, damaged};
use super::super::index::{Found, Index, cut};
use super::super::row::time;
use super::block;
use crate::message::now;
use crate::storage::context::{self, Entry, EntryInfo, EntryVersion, MAX_VERSIONS, NewEntry};
use crate::tree::Address;

/// Where a text is stored.
pub(super) struct EntryRow {
    address: Address,
    version: u64,
    is_present: bool,
    is_searchable: bool,
}

impl EntryRow {
    /// Returns whether the text was not removed.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }
}

/// Checks the names and the size of a new text.
pub(super) fn check(label: &str, new: &NewEntry<'_>, max: usize) -> BackendResult<()> {
    context::check(label, new)?;
    let beside = new.title.map_or(0, str::len) + new.description.map_or(0, str::len);
    check_size("a context text", new.content.len() + beside, max)
}

/// Returns where a text is stored, a removed one included.
pub(super) fn find(conn: &Connection, block: i64, key: &str) -> BackendResult<Option<EntryRow>> {
    let stored = conn
        .prepare_cached(FIND)?
        .query_row(params![block, key], |row| {
            Ok(EntryRow {
                address: row.get(0)?,
                version: row.get(1)?,
                is_present: row.get(2)?,
                is_searchable: row.get(3)?,
            })
        })
        .optional()?;
    Ok(stored)
}

pub(in super::super) const FIND: &str = "SELECT address, version, present, searchable
   FROM context_entry
  WHERE block = ?1 AND key = ?2";

pub(super) fn read(conn: &Connection, block: i64, key: &str) -> BackendResult<Option<Entry>> {
    let mut statement = conn.prepare_cached(BY_KEY)?;
    let mut rows = statement.query(params![block, key])?;
    rows.next()?.map(read_row).transpose()
}

pub(in super::super) const BY_KEY: &str =
    "SELECT address, key, title, description, version, changed_at, content
   FROM context_entry
  WHERE block = ?1 AND key = ?2 AND present = 1";

pub(super) fn at(conn: &Connection, address: Address) -> BackendResult<Option<Entry>> {
    let mut statement = conn.prepare_cached(AT)?;
    let mut rows = statement.query([address])?;
    rows.next()?.map(read_row).transpose()
}

pub(in super::super) const AT: &str =
    "SELECT address, key, title, description, version, changed_at, content
   FROM context_entry
  WHERE address = ?1 AND present = 1";

/// Reads a row of `address, key, title, description, version, changed_at, content`.
pub(in super::super) fn read_row(row: &Row<'_>) -> BackendResult<Entry> {
    let address: Address = row.get(0)?;
    let read = || -> BackendResult<Entry> {
        let EntryInfo { key, title, description, version, changed_at } = read_info(row)?;
        Ok(Entry { key, title, description, content: row.get(6)?, version, changed_at })
    };
    read().map_err(damaged(named(address)))
}

fn read_info(row: &Row<'_>) -> BackendResult<EntryInfo> {
    Ok(EntryInfo {
        key: row.get(1)?,
        title: row.get(2)?,
        description: row.get(3)?,
        version: row.get(4)?,
        changed_at: time(row.get(5)?)?,
    })
}

/// Returns the name of a text in reports of damage.
pub(in super::super) fn named(address: Address) -> String {
    format!("text {} of context block {}", address.n(), address.session())
}

/// Returns a block's documents without their texts, sorted by key.
pub(super) fn documents(conn: &Connection, block: i64) -> BackendResult<Vec<EntryInfo>> {
    let mut statement = conn.prepare_cached(DOCUMENTS)?;
    let mut rows = statement.query([block])?;
    let mut documents = Vec::new();
    while let Some(row) = rows.next()? {
        let address: Address = row.get(0)?;
        documents.push(read_info(row).map_err(damaged(named(address)))?);
    }
    Ok(documents)
}

pub(in super::super) const DOCUMENTS: &str =
    "SELECT address, key, title, description, version, changed_at
   FROM context_entry
  WHERE block = ?1 AND key > '' AND present = 1
  ORDER BY key";

pub(super) fn count(conn: &Connection, block: i64) -> BackendResult<u64> {
    Ok(conn.prepare_cached(COUNT)?.query_row([block], |row| row.get(0))?)
}

pub(in super::super) const COUNT: &str = "SELECT count(*)
   FROM context_entry
  WHERE block = ?1 AND key > '' AND present = 1";

/// Returns whether the stored text is the same.
pub(super) fn is_stored(
    conn: &Connection,
    stored: &EntryRow,
    new: &NewEntry<'_>,
) -> BackendResult<bool> {
    let is_stored = conn
        .prepare_cached(
            "SELECT content IS ?2 AND title IS ?3 AND description IS ?4
               FROM context_entry
              WHERE address = ?1",
        )?
        .query_row(params![stored.address, new.content, new.title, new.description], |row| {
            row.get(0)
        })?;
    Ok(is_stored)
}

/// Puts the first version of a text.
pub(super) fn insert(
    conn: &Connection,
    block: i64,
    new: &NewEntry<'_>,
    is_searchable: bool,
) -> BackendResult<()> {
    let address = block::next_address(conn, block)?;
    conn.prepare_cached(
        "INSERT INTO context_entry
                (address, block, key, present, version, searchable, changed_at, title, description,
                 content)
         VALUES (?1, ?8, ?2, 1, 1, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        address,
        new.key,
        is_searchable,
        now().timestamp_micros(),
        new.title,
        new.description,
        new.content,
        block,
    ])?;
    add_to_index(conn, address, address)
}

/// Puts a further version of a text.
pub(super) fn replace(
    conn: &Connection,
    stored: &EntryRow,
    new: &NewEntry<'_>,
    is_searchable: bool,
) -> BackendResult<()> {
    let version = save_version(conn, stored)?;
    conn.prepare_cached(
        "UPDATE context_entry
            SET present = 1, version = ?2, searchable = ?3, changed_at = ?4, title = ?5,
                description = ?6, content = ?7
          WHERE address = ?1",
    )?
    .execute(params![
        stored.address,
        version,
        is_searchable,
        now().timestamp_micros(),
        new.title,
        new.description,
        new.content,
    ])?;
    add_to_index(conn, stored.address, stored.address)
}

/// Removes a text; its versions stay.
pub(super) fn remove(conn: &Connection, stored: &EntryRow) -> BackendResult<()> {
    let version = save_version(conn, stored)?;
    conn.prepare_cached(
        "UPDATE context_entry
            SET present = 0, version = ?2, searchable = 0, changed_at = ?3, title = NULL,
                description = NULL, content = NULL
          WHERE address = ?1",
    )?
    .execute(params![stored.address, version, now().timestamp_micros()])?;
    Ok(())
}

/// Saves the current version as an earlier one, and returns the number of the next.
fn save_version(conn: &Connection, stored: &EntryRow) -> BackendResult<u64> {
    remove_from_index(conn, stored.address, stored.address)?;
    conn.prepare_cached(
        "INSERT INTO context_version (entry, version, changed_at, title, description, content)
         SELECT address, version, changed_at, title, description, content
           FROM context_entry
          WHERE address = ?1",
    )?
    .execute([stored.address])?;
    let next = stored.version + 1;
    conn.prepare_cached("DELETE FROM context_version WHERE entry = ?1 AND version <= ?2")?
        .execute(params![stored.address, next.saturating_sub(MAX_VERSIONS)])?;
    Ok(next)
}

/// Sets whether an unchanged text is searchable.
pub(super) fn set_searchable(
    conn: &Connection,
    stored: &EntryRow,
    is_searchable: bool,
) -> BackendResult<()> {
    if stored.is_searchable == is_searchable {
        return Ok(());
    }
    remove_from_index(conn, stored.address, stored.address)?;
    conn.prepare_cached("UPDATE context_entry SET searchable = ?2 WHERE address = ?1")?
        .execute(params![stored.address, is_searchable])?;
    add_to_index(conn, stored.address, stored.address)
}

/// Returns the versions of a text, oldest first.
pub(super) fn versions(
    conn: &Connection,
    block: i64,
    key: &str,
) -> BackendResult<Vec<EntryVersion>> {
    let Some(stored) = find(conn, block, key)? else { return Ok(Vec::new()) };
    let mut versions = Vec::new();
    for sql in [FORMER, PRESENT] {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([stored.address])?;
        while let Some(row) = rows.next()? {
            versions.push(read_version(row).map_err(damaged(named(stored.address)))?);
        }
    }
    Ok(versions)
}

pub(in super::super) const FORMER: &str = "SELECT version, title, description, content, changed_at
   FROM context_version
  WHERE entry = ?1
  ORDER BY version";

pub(in super::super) const PRESENT: &str = "SELECT version, title, description, content, changed_at
   FROM context_entry
  WHERE address = ?1";

pub(super) fn version(
    conn: &Connection,
    block: i64,
    key: &str,
    number: u64,
) -> BackendResult<Option<EntryVersion>> {
    let Some(stored) = find(conn, block, key)? else { return Ok(None) };
    // A number larger than SQLite's integers is no version.
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let mut statement = conn.prepare_cached(VERSION)?;
    let mut rows = statement.query(params![stored.address, number])?;
    let version = rows.next()?.map(read_version).transpose();
    version.map_err(damaged(named(stored.address)))
}

pub(in super::super) const VERSION: &str = "SELECT version, title, description, content, changed_at
   FROM context_version
  WHERE entry = ?1 AND version = ?2
  UNION ALL
 SELECT version, title, description, content, changed_at
   FROM context_entry
  WHERE address = ?1 AND version = ?2";

/// Reads a row of `version, title, description, content, changed_at`.
pub(in super::super) fn read_version(row: &Row<'_>) -> BackendResult<EntryVersion> {
    Ok(EntryVersion {
        version: row.get(0)?,
        title: row.get(1)?,
        description: row.get(2)?,
        content: row.get(3)?,
        changed_at: time(row.get(4)?)?,
    })
}

/// Removes a range of texts from the index.
pub(in super::super) fn remove_from_index(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<()> {
    Index::Context.remove(conn, first, last)
}

/// Indexes the searchable texts of a range.
pub(super) fn add_to_index(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(SEARCHABLE)?;
    let mut rows = statement.query([first, last])?;
    let mut found = Found::default();
    while let Some(row) = rows.next()? {
        let (address, [name, text]) = read_terms(row, &mut found)?;
        Index::Context.put(conn, address, [&name, &text, ""])?;
    }
    found.store(conn)
}

/// Calls `take` with every searchable text, as the index has it.
pub(in super::super) fn each_text(
    conn: &Connection,
    mut take: impl FnMut(Address, [&str; 3]),
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(SEARCHABLE)?;
    let mut rows = statement.query([i64::MIN, i64::MAX])?;
    while let Some(row) = rows.next()? {
        let (address, [name, text]) = read_terms(row, &mut Found::default())?;
        take(address, [&name, &text, ""]);
    }
    Ok(())
}

/// Reads the terms of a text's name, and of its content, and notes them. A value that is not text has none; `verify` reports it.
fn read_terms(row: &Row<'_>, found: &mut Found) -> BackendResult<(Address, [String; 2])> {
    let text =
        |column| row.get_ref(column).ok().and_then(|it| it.as_str().ok()).unwrap_or_default();
    let name = [text(1), text(2), text(3)].join("\n");
    Ok((row.get(0)?, [cut(&name, found), cut(text(4), found)]))
}

/// Indexes the searchable texts of all blocks.
pub(in super::super) fn index_all(conn: &Connection) -> BackendResult<()> {
    add_to_index(conn, Address::from_raw(i64::MIN), Address::from_raw(i64::MAX))
}

pub(in super::super) const SEARCHABLE: &str = "SELECT address, key, title, description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2 AND searchable = 1 AND present = 1
  ORDER BY address";
