//! What relatives of an erased session have of it besides messages: texts of blocks, metadata, a name.
//!
//! A fork and a continuation begin with copies of the session's own texts and of its details. A text is such a copy if a
//! relative has it under the same label and key, in any version of both. Relatives are the sessions that name each other as
//! parents, and those that share messages.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use super::sessions::keys;
use super::targets::{Target, Targets, target};
use super::{Work, children_of};
use crate::error::Result;
use crate::tree::Address;

/// What a session that stays has of the erased ones.
#[derive(Debug)]
pub(super) struct Relative {
    pub(super) key: i64,
    /// Texts of its blocks, with the labels.
    pub(super) texts: BTreeSet<(Address, String)>,
    pub(super) has_name: bool,
    pub(super) has_metadata: bool,
}

/// The current texts of a session's own blocks and their earlier versions.
const TEXTS: &str = "SELECT label, context_entry.key, address, content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
  WHERE session = ?1 AND owner = '' AND content IS NOT NULL
 UNION ALL
 SELECT label, context_entry.key, address, context_version.content
   FROM context_block
   JOIN context_entry ON context_entry.block = context_block.key
   JOIN context_version ON entry = address
  WHERE session = ?1 AND owner = '' AND context_version.content IS NOT NULL";
const DETAILS: &str = "SELECT name, metadata FROM session WHERE key = ?1";
const PARENT: &str = "SELECT parent.key
   FROM session
   JOIN session AS parent ON parent.id = session.parent_session
  WHERE session.key = ?1";
/// The first message of a fork is a copy.
const COPIED_FROM: &str =
    "SELECT origin >> 32 FROM message WHERE address = ?1 AND origin IS NOT NULL";
const COPIED_TO: &str = "SELECT DISTINCT address >> 32 FROM message WHERE origin BETWEEN ?1 AND ?2";

impl Targets {
    /// Returns the relatives of erased sessions that stay and have something of them.
    pub(super) fn relatives(&self, conn: &Connection) -> BackendResult<Vec<Relative>> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::<i64>::new());
        for session in &self.sessions {
            if seen.contains(&session.key) {
                continue;
            }
            let family = Self::family(conn, session.clone())?;
            seen.extend(&family);
            let (gone, kept): (Vec<i64>, Vec<i64>) =
                family.into_iter().partition(|key| self.has_session(*key));
            if !kept.is_empty() {
                found.extend(copies(conn, &gone, &kept)?);
            }
        }
        Ok(found)
    }

    /// Returns a session, its relatives, and theirs.
    fn family(conn: &Connection, session: Target) -> BackendResult<BTreeSet<i64>> {
        let mut family = BTreeSet::from([session.key]);
        let mut left = vec![session];
        while let Some(Target { key, id }) = left.pop() {
            let (first, last) = Address::range_of(key);
            let mut next = children_of(conn, &id)?;
            next.extend(keys(conn, PARENT, [key])?);
            next.extend(keys(conn, COPIED_FROM, [Address::new(key, 1)])?);
            next.extend(keys(conn, COPIED_TO, [first, last])?);
            for key in next {
                if family.insert(key) {
                    left.extend(target(conn, key)?);
                }
            }
        }
        Ok(family)
    }
}

/// Returns what these sessions have of erased ones.
fn copies(conn: &Connection, gone: &[i64], kept: &[i64]) -> BackendResult<Vec<Relative>> {
    let random = RandomState::new();
    let (mut texts, mut names, mut metadata) = (HashSet::new(), HashSet::new(), HashSet::new());
    for session in gone {
        each_text(conn, *session, |label, key, _, content| {
            texts.insert((label.to_owned(), key.to_owned(), random.hash_one(content)));
        })?;
        let (name, json) = details(conn, *session)?;
        names.extend(name);
        metadata.extend(json);
    }
    let mut found = Vec::new();
    for session in kept {
        let mut copied = BTreeSet::new();
        each_text(conn, *session, |label, key, address, content| {
            if texts.contains(&(label.to_owned(), key.to_owned(), random.hash_one(content))) {
                copied.insert((address, label.to_owned()));
            }
        })?;
        let (name, json) = details(conn, *session)?;
        let has_name = name.is_some_and(|name| names.contains(&name));
        let has_metadata = json.is_some_and(|json| metadata.contains(&json));
        if has_name || has_metadata || !copied.is_empty() {
            found.push(Relative { key: *session, texts: copied, has_name, has_metadata });
        }
    }
    Ok(found)
}

fn each_text(
    conn: &Connection,
    session: i64,
    mut take: impl FnMut(&str, &str, Address, &str),
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(TEXTS)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        take(text(0)?, text(1)?, row.get(2)?, text(3)?);
    }
    Ok(())
}

/// Returns the name and the metadata of a session.
fn details(conn: &Connection, key: i64) -> BackendResult<(Option<String>, Option<String>)> {
    let found = conn
        .prepare_cached(DETAILS)?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or_default())
}

impl Work<'_> {
    /// Erases what relatives have of the sessions, or notes it if it is left.
    ///
    /// Comes after the sessions are in the trash, where nobody forks them, and before their texts are gone: so after a crash it
    /// is found again.
    pub(super) fn erase_relatives(&mut self) -> Result<()> {
        let targets = self.targets;
        let relatives = self.database.read(|conn| targets.relatives(conn))?;
        if !self.erasure.forks {
            self.relatives_left.extend(relatives);
            return Ok(());
        }
        for Relative { key, texts, has_name, has_metadata } in relatives {
            for (address, _) in &texts {
                self.erase_texts((*address, *address), Some(key))?;
            }
            self.write(|conn, work| {
                if has_name {
                    work.forget(conn, key, "name")?;
                }
                if has_metadata {
                    work.forget(conn, key, "metadata")?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Removes a detail of a session that stays.
    pub(super) fn forget(
        &mut self,
        conn: &Connection,
        session: i64,
        detail: &'static str,
    ) -> BackendResult<()> {
        self.note_all(conn, &format!("SELECT {detail} FROM session WHERE key = ?1"), session)?;
        let count = conn
            .prepare_cached(&format!(
                "UPDATE session SET {detail} = NULL WHERE key = ?1 AND {detail} IS NOT NULL"
            ))?
            .execute([session])?;
        self.out.extent.details += count as u64;
        Ok(())
    }
}
