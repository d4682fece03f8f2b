//! Where to search, as ranges of addresses.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::error::BackendResult;
use super::super::row::first_row;
use super::super::row::session::{self as session_row, read_id};
use super::super::{message, path};
use crate::id::SessionId;
use crate::search::{Query, Scope};
use crate::tree::{Address, Stretch};

/// More sessions than this are searched as one range of addresses: to start a search in a range takes about 0.1 ms.
const MAX_RANGES: usize = 16;

/// Where to search.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Range {
    /// All sessions but those in the trash, which are given by key in ascending order.
    Store { trash: Vec<i64> },
    /// These sessions, by key, in ascending order; empty if none exists.
    Sessions(Vec<i64>),
    /// One path: its ranges of addresses, oldest first.
    Path(Vec<(Address, Address)>),
}

impl Range {
    /// Returns the range that a request names; adds a notice for each session in the query that is unknown or in the trash.
    pub(super) fn of(
        conn: &Connection,
        (scope, owner): (&Scope, Option<&str>),
        query: &Query,
        notices: &mut Vec<String>,
    ) -> BackendResult<Self> {
        let mut named = Vec::new();
        for id in &query.filters.sessions {
            let id = SessionId::from(id.as_str());
            // Who may search some sessions must not learn which others there are.
            let is_in_scope = match scope {
                Scope::Store => true,
                Scope::Sessions(ids) => ids.contains(&id),
                Scope::Path(own, _) => *own == id,
            };
            let name = shortened(id.as_str());
            match found(conn, &id, owner)?.filter(|_| is_in_scope) {
                Some((key, false)) => named.push(key),
                Some((_, true)) => {
                    notices
                        .push(format!("session {name:?} is in the trash, which is not searched"));
                }
                None => notices.push(format!("no session is called {name:?}")),
            }
        }
        named.sort_unstable();
        let is_named = |key: i64| query.filters.sessions.is_empty() || named.contains(&key);
        match scope {
            Scope::Store if query.filters.sessions.is_empty() => match owner {
                Some(owner) => Ok(Self::Sessions(keys(conn, OWNED, [owner])?)),
                None => Ok(Self::Store { trash: keys(conn, TRASH, [])? }),
            },
            Scope::Store => Ok(Self::Sessions(named)),
            Scope::Sessions(ids) => {
                let mut keys = Vec::with_capacity(ids.len());
                for id in ids {
                    keys.extend(find(conn, id, owner)?);
                }
                keys.retain(|&key| is_named(key));
                keys.sort_unstable();
                keys.dedup();
                Ok(Self::Sessions(keys))
            }
            Scope::Path(id, leaf) => {
                let session = session_row::find(conn, id)?;
                let key = session.map(|session| session.key);
                let leaf = match leaf {
                    Some(leaf) => Some(message::place(conn, key, id, leaf)?),
                    None => session.and_then(|session| session.head),
                };
                let mut stretches = Vec::new();
                let is_owned = find(conn, id, owner)? == key;
                if let Some(key) = key.filter(|&key| is_owned && is_named(key)) {
                    for stretch in path::plan(conn, key, leaf, true)?.into_iter().rev() {
                        if let Stretch::Messages { first, last } = stretch {
                            stretches.push((first, last));
                        }
                    }
                }
                Ok(Self::Path(stretches))
            }
        }
    }

    /// Returns the ranges of addresses to read, in ascending order; a path is one range, and so are many
    /// sessions.
    pub(super) fn ranges(&self) -> Vec<(Address, Address)> {
        match self {
            Self::Store { .. } => vec![(Address::from_raw(i64::MIN), Address::from_raw(i64::MAX))],
            Self::Sessions(keys) if keys.len() <= MAX_RANGES => {
                keys.iter().map(|&key| Address::range_of(key)).collect()
            }
            Self::Sessions(keys) => match (keys.first(), keys.last()) {
                (Some(first), Some(last)) => {
                    vec![(Address::range_of(*first).0, Address::range_of(*last).1)]
                }
                _ => Vec::new(),
            },
            Self::Path(stretches) => match (stretches.first(), stretches.last()) {
                (Some(first), Some(last)) => vec![(first.0, last.1)],
                _ => Vec::new(),
            },
        }
    }

    pub(super) fn is_store(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    /// Returns whether all of it is in one session.
    pub(super) fn is_one_session(&self) -> bool {
        match self {
            Self::Store { .. } => false,
            Self::Sessions(keys) => keys.len() == 1,
            Self::Path(_) => true,
        }
    }

    /// Returns whether a session outside the trash is in scope; a path has messages of its own session alone.
    pub(super) fn holds_session(&self, key: i64) -> bool {
        match self {
            Self::Store { .. } => true,
            Self::Sessions(keys) => keys.binary_search(&key).is_ok(),
            Self::Path(stretches) => stretches.iter().any(|stretch| stretch.0.session() == key),
        }
    }

    /// Returns whether each address of its ranges belongs to it, so that a statement may count them.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Store { trash } => trash.is_empty(),
            Self::Sessions(keys) => keys.len() <= MAX_RANGES,
            Self::Path(_) => false,
        }
    }

    /// Returns whether a message is of a session in the trash that the range leaves out.
    pub(super) fn is_in_trash(&self, address: Address) -> bool {
        matches!(self, Self::Store { trash } if trash.binary_search(&address.session()).is_ok())
    }

    /// Returns whether an address from one of these ranges belongs to the searched range.
    pub(super) fn holds(&self, address: Address) -> bool {
        match self {
            Self::Sessions(keys) => {
                keys.len() <= MAX_RANGES || keys.binary_search(&address.session()).is_ok()
            }
            Self::Store { trash } => trash.is_empty() || !self.is_in_trash(address),
            Self::Path(stretches) => {
                let at = stretches.partition_point(|stretch| stretch.0 <= address);
                at > 0 && address <= stretches[at - 1].1
            }
        }
    }
}

/// Returns the key of a session that may be searched: not in the trash, and of this owner.
fn find(conn: &Connection, id: &SessionId, owner: Option<&str>) -> BackendResult<Option<i64>> {
    Ok(found(conn, id, owner)?.and_then(|(key, is_in_trash)| (!is_in_trash).then_some(key)))
}

/// Returns the key of a session of this owner, and whether it is in the trash.
fn found(
    conn: &Connection,
    id: &SessionId,
    owner: Option<&str>,
) -> BackendResult<Option<(i64, bool)>> {
    let found = conn
        .prepare_cached(NAMED)?
        .query_row(params![id.as_str(), owner], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found)
}

const NAMED: &str = "SELECT key, deleted_at IS NOT NULL
   FROM session
  WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)";

fn keys<const N: usize>(
    conn: &Connection,
    sql: &str,
    values: [&str; N],
) -> BackendResult<Vec<i64>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut keys: Vec<i64> = statement
        .query_map(rusqlite::params_from_iter(values), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

pub(super) const OWNED: &str = "SELECT key FROM session WHERE owner = ?1 AND deleted_at IS NULL";

pub(super) const TRASH: &str = "SELECT key FROM session WHERE deleted_at IS NOT NULL";

/// What a hit needs of its session.
#[derive(Debug, Clone)]
pub(super) struct SessionNames {
    pub(super) id: SessionId,
    pub(super) name: Option<String>,
    pub(super) head: Option<Address>,
}

pub(super) fn names(conn: &Connection, key: i64) -> BackendResult<Option<SessionNames>> {
    first_row(conn, NAMES, &[&key], |row| {
        Ok(SessionNames { id: read_id(row, 0, key)?, name: row.get(1)?, head: row.get(2)? })
    })
}

pub(super) const NAMES: &str = "SELECT id, name, head FROM session WHERE key = ?1";

fn shortened(id: &str) -> String {
    id.chars().take(80).collect()
}
