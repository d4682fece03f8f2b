//! Comparing the search indexes with the texts of messages and of the context.
//!
//! The index holds no text, so each text is cut again, and its terms are compared with those of the index. Either the index
//! or the message was changed outside talktree, and rebuilding the index would hide a changed message.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::index::{self, Index, each_doc};
use super::{MAX_OF_A_KIND, REBUILD};
use crate::report::Damage;
use crate::sql::{BackendError, BackendResult, Connection};
use crate::tree::Address;

/// The remedy for a message that differs from its index entry.
const COMPARE: &str = "compare the message with a backup; `rebuild_search`, or `talktree verify --rebuild-index`, \
                       indexes it as it is now";

/// Compares the indexes with the texts, which SQLite's `integrity_check` does not.
pub(in super::super) fn damages(conn: &Connection) -> BackendResult<Vec<Damage>> {
    // SQLite's own message, "database disk image is malformed", would alarm for no reason.
    let broken =
        |what: &str| Damage { kind: "search-index", what: what.to_owned(), remedy: REBUILD };
    let mut damages = Vec::new();
    match holds(conn, "INSERT INTO search (search) VALUES ('integrity-check')")? {
        true => damages.extend(of_messages(conn)?),
        false => damages.push(broken("the search index is damaged")),
    }
    if !holds(conn, "INSERT INTO context_search (context_search) VALUES ('integrity-check')")? {
        damages.push(broken("the search index of the context is damaged"));
    } else if !of_context(conn)? {
        damages.push(broken("the search index of the context differs from its texts"));
    }
    Ok(damages)
}

fn holds(conn: &Connection, check: &str) -> BackendResult<bool> {
    // A server looks after its own index.
    let Ok(sqlite) = conn.sqlite() else { return Ok(true) };
    match sqlite.execute(check, []) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            Ok(false)
        }
        Err(error) => Err(BackendError::Sqlite(error)),
    }
}

/// A sum per text over its terms and their positions.
type Sums = BTreeMap<i64, u64>;

/// Returns the messages whose terms differ between index and text.
fn of_messages(conn: &Connection) -> BackendResult<Vec<Damage>> {
    let indexed = indexed(conn, Index::Messages)?;
    let mut cut = Sums::new();
    each_doc(conn, |address, columns| {
        index::each_term(conn, columns, |term| add(&mut cut, address, term));
    })?;
    let leftovers = leftovers(conn)?;
    let mut addresses: BTreeSet<i64> = indexed.keys().chain(cut.keys()).copied().collect();
    addresses.retain(|raw| !leftovers.contains(&Address::from_raw(*raw).session()));
    let differs = |raw: i64| {
        let (address, indexed, cut) = (Address::from_raw(raw), indexed.get(&raw), cut.get(&raw));
        let what = match (indexed, cut) {
            (indexed, cut) if indexed == cut => return None,
            (Some(_), Some(_)) => "has other words than its index entry",
            (None, _) => "is not in the search index",
            (_, None) => "has no words and is in the search index with some",
        };
        let what = format!("message {} of session {} {what}", address.n(), address.session());
        Some(Damage { kind: "search-index", what, remedy: COMPARE })
    };
    Ok(addresses.into_iter().filter_map(differs).take(MAX_OF_A_KIND).collect())
}

/// Returns the keys of the sessions that are removed and still indexed.
fn leftovers(conn: &Connection) -> BackendResult<BTreeSet<i64>> {
    Ok(conn.rows("SELECT session FROM leftover", ())?.into_iter().collect())
}

fn of_context(conn: &Connection) -> BackendResult<bool> {
    let mut cut = Sums::new();
    index::each_text(conn, |address, columns| {
        index::each_term(conn, columns, |term| add(&mut cut, address, term));
    })?;
    Ok(indexed(conn, Index::Context)? == cut)
}

fn indexed(conn: &Connection, index: Index) -> BackendResult<Sums> {
    let mut sums = Sums::new();
    index.each_stored(conn, |address, term| add(&mut sums, address, term))?;
    Ok(sums)
}

/// Adds a term of a text as the index has it.
fn add(sums: &mut Sums, address: Address, term: impl Hash) {
    let mut hasher = DefaultHasher::new();
    term.hash(&mut hasher);
    let sum = sums.entry(address.raw()).or_default();
    *sum = sum.wrapping_add(hasher.finish());
}
