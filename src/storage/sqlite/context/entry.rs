//! The texts of blocks and their versions.
//!
//! Invariant: the current version of a text is in its own row; it is copied to `context_version` when the next one is
//! written. A removal is a version without content.

use super::super::append::check_size;
use super::super::index::{Found, Index, cut};
use super::ScopeKey;
use crate::error::Error;
use crate::id::{check_name, check_name_length};
use crate::message::now;
use crate::sql::{BackendError, BackendResult, Connection, Read, Row, corrupt, damaged};
use crate::storage::context::{Document, MAX_VERSIONS, StoredLabel, StoredText};
use crate::tree::{Address, MAX_MESSAGES, MAX_SESSIONS};

/// How many blocks a store can create over its lifetime: the upper half of an address.
const MAX_BLOCKS: i64 = MAX_SESSIONS;
/// How many texts a block can get over its lifetime; numbers are never reused.
const MAX_ENTRIES: u64 = MAX_MESSAGES;

/// Returns the key of a block.
pub(super) fn block(
    conn: &Connection,
    scope_key: &ScopeKey,
    label: &str,
) -> BackendResult<Option<i64>> {
    conn.first(BLOCK, (scope_key.session, &scope_key.owner, label))
}

pub(in super::super) const BLOCK: &str = "SELECT key
   FROM context_block
  WHERE session = ?1 AND owner = ?2 AND label = ?3 /*LOCK context_block*/";

/// Creates a block; its label must be free.
pub(super) fn create_block(
    conn: &Connection,
    scope_key: &ScopeKey,
    label: &str,
) -> BackendResult<i64> {
    let key = conn.one(
        "INSERT INTO context_block (session, owner, label) VALUES (?1, ?2, ?3) RETURNING key",
        (scope_key.session, &scope_key.owner, label),
    )?;
    if key > MAX_BLOCKS {
        let max = MAX_BLOCKS as u64;
        return Err(BackendError::Own(Error::ContextFull { what: "context blocks", max }));
    }
    Ok(key)
}

/// Returns the address of the block's next text.
fn next_address(conn: &Connection, block: i64) -> BackendResult<Address> {
    let number: u64 = conn
        .one("UPDATE context_block SET next = next + 1 WHERE key = ?1 RETURNING next - 1", block)?;
    match u32::try_from(number).ok().filter(|_| number <= MAX_ENTRIES) {
        // No read finds a text at this address.
        Some(0) => Err(corrupt(format!("the next number of context block {block} is 0"))),
        Some(number) => Ok(Address::new(block, number)),
        None => Err(BackendError::Own(Error::ContextFull {
            what: "texts in this block",
            max: MAX_ENTRIES,
        })),
    }
}

/// Returns the labels that have at least one text, sorted.
pub(super) fn labels(conn: &Connection, scope_key: &ScopeKey) -> BackendResult<Vec<StoredLabel>> {
    conn.rows_with(LABELS, (scope_key.session, &scope_key.owner), |row| {
        let (has_text, is_searchable): (_, Option<bool>) = Read::read(row, 2)?;
        let is_searchable = is_searchable == Some(true);
        Ok(StoredLabel { label: read_label(row)?, has_text, is_searchable })
    })
}

/// Reads the label of a row of `key, label`. One that talktree would refuse was written by another program.
pub(in super::super) fn read_label(row: &Row<'_>) -> BackendResult<String> {
    let key = i64::read(row, 0)?;
    let read = || {
        let label = String::read(row, 1)?;
        check_name("context label", &label).map_err(|error| corrupt(error.to_string()))?;
        Ok(label)
    };
    read().map_err(damaged(format_args!("context block {key}")))
}

/// The first document is enough: the block's kind decides whether its documents are searchable.
pub(in super::super) const LABELS: &str = "SELECT key, label, has_text, searchable
   FROM (SELECT key, label,
                EXISTS (SELECT 1
                          FROM context_entry
                         WHERE block = context_block.key AND context_entry.key = ''
                           AND present = 1) AS has_text,
                (SELECT searchable
                   FROM context_entry
                  WHERE block = context_block.key AND context_entry.key > '' AND present = 1
                  ORDER BY context_entry.key
                  LIMIT 1) AS searchable
           FROM context_block
          WHERE session = ?1 AND owner = ?2) AS labels
  WHERE has_text OR searchable IS NOT NULL
  ORDER BY label";

/// Returns the blocks of a session, by label.
fn blocks(conn: &Connection, session: i64) -> BackendResult<Vec<(i64, String)>> {
    conn.rows(BLOCKS, session)
}

pub(in super::super) const BLOCKS: &str =
    "SELECT key, label FROM context_block WHERE session = ?1 AND owner = '' ORDER BY label";

/// The texts of one block, as one read or one write sees them. SQL finds none in a missing block, whose key is NULL.
pub(crate) struct Texts<'c> {
    pub(super) conn: &'c Connection<'c>,
    pub(super) block: Option<i64>,
}

impl Texts<'_> {
    /// Returns the text under a key.
    pub(crate) fn text(&self, key: &str) -> BackendResult<Option<StoredText>> {
        self.conn.first_with(BY_KEY, (self.block, key), read_row)
    }

    /// Returns the documents without their texts, sorted by key. The block's own text is not among them.
    pub(crate) fn documents(&self) -> BackendResult<Vec<StoredText>> {
        self.conn.rows_with(DOCUMENTS, self.block, read_row)
    }

    /// Returns how many documents there are.
    pub(crate) fn count(&self) -> BackendResult<u64> {
        self.conn.one(COUNT, self.block)
    }

    /// Returns the versions of a text, oldest first, the current one included.
    pub(crate) fn versions(&self, key: &str) -> BackendResult<Vec<StoredText>> {
        let Some(stored) = find(self.conn, self.block, key, None)? else { return Ok(Vec::new()) };
        let mut versions = self.conn.rows_with(FORMER, (stored.address, key), read_row)?;
        versions.extend(self.conn.first_with(PRESENT, stored.address, read_row)?);
        Ok(versions)
    }

    /// Returns one version of a text, without reading the others.
    pub(crate) fn version(&self, key: &str, number: u64) -> BackendResult<Option<StoredText>> {
        let Some(stored) = find(self.conn, self.block, key, None)? else { return Ok(None) };
        // A number larger than SQLite's integers is no version.
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        self.conn.first_with(VERSION, (stored.address, key, number), read_row)
    }
}

pub(in super::super) const BY_KEY: &str =
    "SELECT address, key, title, description, version, changed_at, content
   FROM context_entry
  WHERE block = ?1 AND key = ?2 AND present = 1";

pub(in super::super) const DOCUMENTS: &str =
    "SELECT address, key, title, description, version, changed_at, NULL
   FROM context_entry
  WHERE block = ?1 AND key > '' AND present = 1
  ORDER BY key";

pub(in super::super) const COUNT: &str = "SELECT count(*)
   FROM context_entry
  WHERE block = ?1 AND key > '' AND present = 1";

pub(in super::super) const FORMER: &str =
    "SELECT entry, ?2, title, description, version, changed_at, content
   FROM context_version
  WHERE entry = ?1
  ORDER BY version";

pub(in super::super) const PRESENT: &str =
    "SELECT address, key, title, description, version, changed_at, content
   FROM context_entry
  WHERE address = ?1";

pub(in super::super) const VERSION: &str =
    "SELECT entry, ?2, title, description, version, changed_at, content
   FROM context_version
  WHERE entry = ?1 AND version = ?3
  UNION ALL
 SELECT address, key, title, description, version, changed_at, content
   FROM context_entry
  WHERE address = ?1 AND version = ?3";

/// Reads a row of `address, key, title, description, version, changed_at, content`.
pub(in super::super) fn read_row(row: &Row<'_>) -> BackendResult<StoredText> {
    let address = Address::read(row, 0)?;
    let read = || {
        let (key, title, description, version, changed_at, content) = Read::read(row, 1)?;
        Ok(StoredText { key, title, description, version, changed_at, content })
    };
    read().map_err(damaged(named(address)))
}

/// Returns the name of a text in reports of damage.
pub(in super::super) fn named(address: Address) -> String {
    format!("text {} of context block {}", address.n(), address.session())
}

/// Returns the text at an address.
pub(super) fn at(conn: &Connection, address: Address) -> BackendResult<Option<Document>> {
    let found = conn.first_with(PRESENT, address, read_row)?;
    Ok(found.and_then(|StoredText { key, title, description, content, .. }| {
        Some(Document { key, title, description, content: content? })
    }))
}

/// Returns label and key of all texts of a session or an owner, removed ones included.
pub(in super::super) fn names(
    conn: &Connection,
    session: i64,
    owner: &str,
) -> BackendResult<Vec<(String, String)>> {
    conn.rows(NAMES, (session, owner))
}

pub(in super::super) const NAMES: &str = "SELECT label, context_entry.key
   FROM context_block
  CROSS JOIN context_entry
  WHERE context_entry.block = context_block.key AND session = ?1 AND owner = ?2
  ORDER BY label, context_entry.key";

/// Where a text is stored, a removed one included.
pub(super) struct EntryRow {
    address: Address,
    version: u64,
    pub(super) is_present: bool,
    is_searchable: bool,
    /// Whether it is the new one.
    is_same: bool,
}

/// Returns where the text under a key is stored, and whether it is the same as a new one.
pub(super) fn find(
    conn: &Connection,
    block: Option<i64>,
    key: &str,
    new: Option<&Document>,
) -> BackendResult<Option<EntryRow>> {
    let content = new.map(|new| &new.content);
    let title = new.and_then(|new| filled(&new.title));
    let description = new.and_then(|new| filled(&new.description));
    let stored = conn.first(FIND, (block, key, content, title, description))?;
    Ok(stored.map(|(address, version, is_present, is_searchable, is_same)| EntryRow {
        address,
        version,
        is_present,
        is_searchable,
        is_same,
    }))
}

pub(in super::super) const FIND: &str = "SELECT address, version, present, searchable,
        content IS NOT DISTINCT FROM ?3
        AND title IS NOT DISTINCT FROM ?4
        AND description IS NOT DISTINCT FROM ?5
   FROM context_entry
  WHERE block = ?1 AND key = ?2";

/// Checks the names and the size of a new text.
pub(super) fn check(label: &str, new: &Document, max: usize) -> BackendResult<()> {
    check_name("context label", label)?;
    check_name_length("context key", &new.key)?;
    let beside = [&new.title, &new.description].into_iter().filter_map(filled);
    let bytes = new.content.len() + beside.map(str::len).sum::<usize>();
    check_size("a context text", bytes, max)
}

/// An empty title or description is none.
fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Sets whether a stored text is searchable, if the new one is the same; returns whether it is the same.
pub(super) fn keep(
    conn: &Connection,
    stored: &EntryRow,
    is_searchable: bool,
) -> BackendResult<bool> {
    if stored.is_same && stored.is_searchable != is_searchable {
        remove_from_index(conn, stored.address, stored.address)?;
        conn.run(
            "UPDATE context_entry SET searchable = ?2 WHERE address = ?1",
            (stored.address, is_searchable),
        )?;
        add_to_index(conn, stored.address, stored.address)?;
    }
    Ok(stored.is_same)
}

/// Writes the first version of a text.
pub(super) fn insert(
    conn: &Connection,
    block: i64,
    new: &Document,
    is_searchable: bool,
) -> BackendResult<()> {
    let address = next_address(conn, block)?;
    conn.send(
        "INSERT INTO context_entry (address, block, key, present, version, searchable, changed_at)
         VALUES (?1, ?2, ?3, 0, 0, 0, 0)",
        (address, block, &new.key),
    )?;
    write(conn, address, 1, Some(new), is_searchable)
}

/// Writes a further version of a text; without `new` it is removed, and its versions stay.
pub(super) fn replace(
    conn: &Connection,
    stored: &EntryRow,
    new: Option<&Document>,
    is_searchable: bool,
) -> BackendResult<()> {
    conn.claim("UPDATE context_block SET next = next WHERE key = ?1", stored.address.session())?;
    remove_from_index(conn, stored.address, stored.address)?;
    conn.send(
        "INSERT INTO context_version (entry, version, changed_at, title, description, content)
         SELECT address, version, changed_at, title, description, content
           FROM context_entry
          WHERE address = ?1",
        stored.address,
    )?;
    let version = stored.version + 1;
    conn.send(
        "DELETE FROM context_version WHERE entry = ?1 AND version <= ?2",
        (stored.address, version.saturating_sub(MAX_VERSIONS)),
    )?;
    write(conn, stored.address, version, new, is_searchable)
}

fn write(
    conn: &Connection,
    address: Address,
    version: u64,
    new: Option<&Document>,
    is_searchable: bool,
) -> BackendResult<()> {
    conn.send(
        "UPDATE context_entry
            SET present = ?2, version = ?3, searchable = ?4, changed_at = ?5, title = ?6,
                description = ?7, content = ?8
          WHERE address = ?1",
        (
            address,
            new.is_some(),
            version,
            is_searchable,
            now().timestamp_micros(),
            new.and_then(|new| filled(&new.title)),
            new.and_then(|new| filled(&new.description)),
            new.map(|new| &new.content),
        ),
    )?;
    // A server is not asked for what is not there.
    match new.filter(|_| is_searchable) {
        Some(_) => add_to_index(conn, address, address),
        None => Ok(()),
    }
}

/// Copies the current texts of a session's own blocks into another session, and indexes them.
///
/// Earlier versions and removed texts are not copied.
pub(in super::super) fn copy(conn: &Connection, source: i64, target: i64) -> BackendResult<()> {
    for (from, label) in blocks(conn, source)? {
        let to = create_block(conn, &ScopeKey::session(target), &label)?;
        let (first, last) = Address::range_of(from);
        conn.run(COPY, (first, last, (to - from) << 32))?;
        conn.run(
            "UPDATE context_block
                SET next = (SELECT next FROM context_block WHERE key = ?1)
              WHERE key = ?2",
            (from, to),
        )?;
        let (first, last) = Address::range_of(to);
        add_to_index(conn, first, last)?;
    }
    Ok(())
}

pub(in super::super) const COPY: &str = "INSERT INTO context_entry
        (address, block, key, present, version, searchable, changed_at, title, description, content)
 SELECT address + ?3, (address + ?3) >> 32, key, 1, version, searchable, changed_at, title,
        description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2 AND present = 1
  ORDER BY address";

/// Removes the texts of a session's own blocks and all their versions.
pub(in super::super) fn remove_blocks(conn: &Connection, session: i64) -> BackendResult<()> {
    for (block, _) in blocks(conn, session)? {
        let (first, last) = Address::range_of(block);
        remove_range(conn, first, last)?;
    }
    conn.run("DELETE FROM context_block WHERE session = ?1", session)?;
    Ok(())
}

/// Removes a range of texts and all their versions, from the index, too.
pub(in super::super) fn remove_range(
    conn: &Connection,
    first: Address,
    last: Address,
) -> BackendResult<()> {
    remove_from_index(conn, first, last)?;
    for sql in [REMOVE_VERSIONS, REMOVE_ENTRIES] {
        conn.run(sql, (first, last))?;
    }
    Ok(())
}

pub(in super::super) const REMOVE_VERSIONS: &str =
    "DELETE FROM context_version WHERE entry BETWEEN ?1 AND ?2";
pub(in super::super) const REMOVE_ENTRIES: &str =
    "DELETE FROM context_entry WHERE address BETWEEN ?1 AND ?2";

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
    let mut found = Found::default();
    conn.each(SEARCHABLE, (first, last), |row| {
        let (address, [name, text]) = read_terms(row, &mut found)?;
        Index::Context.put(conn, address, [&name, &text, ""])?;
        Ok(true)
    })?;
    found.store(conn)
}

/// Calls `take` with every searchable text, as the index has it.
pub(in super::super) fn each_text(
    conn: &Connection,
    mut take: impl FnMut(Address, [&str; 3]),
) -> BackendResult<()> {
    conn.each(SEARCHABLE, (i64::MIN, i64::MAX), |row| {
        let (address, [name, text]) = read_terms(row, &mut Found::default())?;
        take(address, [&name, &text, ""]);
        Ok(true)
    })
}

/// Reads the terms of a text's name, and of its content, and notes them. A value that is not text has none; `verify` reports it.
fn read_terms(row: &Row<'_>, found: &mut Found) -> BackendResult<(Address, [String; 2])> {
    let text = |column| row.value(column).ok().and_then(|it| it.as_str().ok()).unwrap_or_default();
    let name = [text(1), text(2), text(3)].join("\n");
    Ok((Address::read(row, 0)?, [cut(&name, found), cut(text(4), found)]))
}

/// Indexes the searchable texts of all blocks.
pub(in super::super) fn index_all(conn: &Connection) -> BackendResult<()> {
    add_to_index(conn, Address::from_raw(i64::MIN), Address::from_raw(i64::MAX))
}

pub(in super::super) const SEARCHABLE: &str = "SELECT address, key, title, description, content
   FROM context_entry
  WHERE address BETWEEN ?1 AND ?2 AND searchable = 1 AND present = 1
  ORDER BY address";
