//! Where to search, as ranges of addresses.

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use super::super::row::session as session_row;
use super::super::{message, path};
use crate::id::SessionId;
use crate::search::{Query, Scope};
use crate::tree::{Address, Stretch};

/// Where to search.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Range {
    Store,
    /// These sessions, by key, in ascending order; empty if none exists.
    Sessions(Vec<i64>),
    /// One path: its ranges of addresses, oldest first.
    Path(Vec<(Address, Address)>),
}

impl Range {
    /// Returns the range that a request names; adds a notice for each unknown session in the query.
    pub(super) fn of(
        conn: &Connection,
        scope: &Scope,
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
            match session_row::find(conn, &id)?.filter(|_| is_in_scope) {
                Some(session) => named.push(session.key),
                None => notices.push(format!("no session is called {:?}", shortened(id.as_str()))),
            }
        }
        named.sort_unstable();
        let is_named = |key: i64| query.filters.sessions.is_empty() || named.contains(&key);
        match scope {
            Scope::Store if query.filters.sessions.is_empty() => Ok(Self::Store),
            Scope::Store => Ok(Self::Sessions(named)),
            Scope::Sessions(ids) => {
                let mut keys = Vec::with_capacity(ids.len());
                for id in ids {
                    keys.extend(session_row::find(conn, id)?.map(|session| session.key));
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
                if let Some(key) = key.filter(|&key| is_named(key)) {
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

    /// Returns the ranges of addresses to read, in ascending order; a path is one range.
    pub(super) fn ranges(&self) -> Vec<(Address, Address)> {
        match self {
            Self::Store => vec![(Address::from_raw(i64::MIN), Address::from_raw(i64::MAX))],
            Self::Sessions(keys) => keys.iter().map(|&key| Address::range_of(key)).collect(),
            Self::Path(stretches) => match (stretches.first(), stretches.last()) {
                (Some(first), Some(last)) => vec![(first.0, last.1)],
                _ => Vec::new(),
            },
        }
    }

    /// Returns whether an address from one of these ranges belongs to the searched range.
    pub(super) fn holds(&self, address: Address) -> bool {
        match self {
            Self::Store | Self::Sessions(_) => true,
            Self::Path(stretches) => {
                let at = stretches.partition_point(|stretch| stretch.0 <= address);
                at > 0 && address <= stretches[at - 1].1
            }
        }
    }
}

/// What a hit needs of its session.
#[derive(Debug, Clone)]
pub(super) struct SessionNames {
    pub(super) id: SessionId,
    pub(super) name: Option<String>,
    pub(super) head: Option<Address>,
}

pub(super) fn names(conn: &Connection, key: i64) -> BackendResult<Option<SessionNames>> {
    let found = conn
        .prepare_cached(NAMES)?
        .query_row([key], |row| {
            Ok(SessionNames {
                id: SessionId::from(row.get::<_, String>(0)?),
                name: row.get(1)?,
                head: row.get(2)?,
            })
        })
        .optional()?;
    Ok(found)
}

pub(super) const NAMES: &str = "SELECT id, name, head FROM session WHERE key = ?1";

fn shortened(id: &str) -> String {
    id.chars().take(80).collect()
}
