//! Comparing the search index with the messages.
//!
//! FTS5 reports only whether they differ. If they do, it checks whether the index itself is sound. If it is, each
//! message's words are counted in the index and in the text, and the messages that differ are named. Either the index
//! or the message was changed outside talktree, and rebuilding the index would hide a changed message.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::Connection;

use super::super::error::{BackendError, BackendResult};
use super::super::search::pending;
use super::super::search_filter;
use super::{MAX_OF_A_KIND, REBUILD};
use crate::report::Damage;
use crate::tree::Address;

/// The remedy for a message that differs from its index entry.
const COMPARE: &str = "compare the message with a backup; `rebuild_search`, or `talktree verify --rebuild-index`, \
                       indexes it as it is now";
/// How many messages are split into words at a time.
const BATCH: u64 = 4_096;

/// Compares the indexes with the texts of messages and of the context, which SQLite's `integrity_check` does not.
pub(super) fn damages(conn: &Connection) -> BackendResult<Vec<Damage>> {
    let mut damages = of_messages(conn)?;
    damages.extend(of_filter(conn)?);
    damages.extend(of_context(conn)?);
    Ok(damages)
}

fn of_context(conn: &Connection) -> BackendResult<Option<Damage>> {
    let what = if holds(
        conn,
        "INSERT INTO context_search (context_search, rank) VALUES ('integrity-check', 1)",
    )? {
        return Ok(None);
    } else if holds(conn, "INSERT INTO context_search (context_search) VALUES ('integrity-check')")?
    {
        "the search index of the context differs from its texts"
    } else {
        "the search index of the context is damaged"
    };
    Ok(Some(Damage { kind: "search-index", what: what.to_owned(), remedy: REBUILD }))
}

fn of_filter(conn: &Connection) -> BackendResult<Option<Damage>> {
    if search_filter::is_sound(conn)? {
        return Ok(None);
    }
    let what = "the times and roles in the search index differ from the messages".to_owned();
    Ok(Some(Damage { kind: "search-index", what, remedy: REBUILD }))
}

fn of_messages(conn: &Connection) -> BackendResult<Vec<Damage>> {
    if holds(conn, "INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")? {
        return Ok(Vec::new());
    }
    // SQLite's own message, "database disk image is malformed", would alarm for no reason.
    let broken =
        |what: &str| Damage { kind: "search-index", what: what.to_owned(), remedy: REBUILD };
    if !holds(conn, "INSERT INTO search (search) VALUES ('integrity-check')")? {
        return Ok(vec![broken("the search index is damaged")]);
    }
    let differing = differing(conn)?;
    if differing.is_empty() {
        return Ok(vec![broken("the search index differs from the messages")]);
    }
    Ok(differing)
}

fn holds(conn: &Connection, check: &str) -> BackendResult<bool> {
    match conn.execute(check, []) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            Ok(false)
        }
        Err(error) => Err(BackendError::Sqlite(error)),
    }
}

/// A sum per message over its words and their positions.
type Words = BTreeMap<i64, u64>;

/// Returns the messages whose words differ between index and text.
fn differing(conn: &Connection) -> BackendResult<Vec<Damage>> {
    conn.execute_batch(VOCABULARIES)?;
    let mut indexed = Words::new();
    count(conn, "SELECT doc, term, col, offset FROM temp.verified_words", &mut indexed)?;
    let mut said = Words::new();
    let mut after = Address::from_raw(i64::MIN);
    while let Some(last) = pending::fill_after(conn, after, BATCH)? {
        count(conn, "SELECT doc, term, col, offset FROM temp.verified_pending_words", &mut said)?;
        after = last;
    }
    conn.execute_batch("DROP TABLE temp.verified_words; DROP TABLE temp.verified_pending_words")?;
    let addresses: std::collections::BTreeSet<i64> =
        indexed.keys().chain(said.keys()).copied().collect();
    let tell = |raw: i64| {
        let (address, indexed, said) = (Address::from_raw(raw), indexed.get(&raw), said.get(&raw));
        let what = match (indexed, said) {
            (indexed, said) if indexed == said => return None,
            (Some(_), Some(_)) => "has other words than its index entry",
            (None, _) => "is not in the search index",
            (_, None) => "has no words and is in the search index with some",
        };
        let what = format!("message {} of session {} {what}", address.n(), address.session());
        Some(Damage { kind: "search-index", what, remedy: COMPARE })
    };
    Ok(addresses.into_iter().filter_map(tell).take(MAX_OF_A_KIND).collect())
}

const VOCABULARIES: &str =
    "CREATE VIRTUAL TABLE temp.verified_words USING fts5vocab('main', 'search', 'instance');
CREATE VIRTUAL TABLE temp.verified_pending_words USING fts5vocab('temp', 'pending_index', 'instance')";

fn count(conn: &Connection, sql: &str, words: &mut Words) -> BackendResult<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut hasher = DefaultHasher::new();
        (row.get_ref(1)?.as_bytes()?, row.get_ref(2)?.as_bytes()?, row.get::<_, i64>(3)?)
            .hash(&mut hasher);
        let sum = words.entry(row.get(0)?).or_default();
        *sum = sum.wrapping_add(hasher.finish());
    }
    Ok(())
}
