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

    /// Returns whether each address of its ranges belongs to it.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Store { trash } => trash.is_empty(),
            Self::Sessions(keys) => keys.len() <= MAX_RANGES,
            Self::Path(stretches) => stretches.len() == 1,
        }
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

    /// Returns the greatest address of the range below one that does not belong to it.
    pub(super) fn below(&self, address: Address) -> Option<Address> {
        match self {
            Self::Store { .. } => Some(Address::range_of(address.session()).0.before()),
            Self::Sessions(keys) => {
                let at = keys.partition_point(|key| *key < address.session());
                at.checked_sub(1).map(|at| Address::range_of(keys[at]).1)
            }
            Self::Path(stretches) => {
                let at = stretches.partition_point(|stretch| stretch.1 < address);
                at.checked_sub(1).map(|at| stretches[at].1)
            }
        }
    }

    /// Returns where an address is on a line on which each session has the same length, and where the line begins and ends.
    pub(super) fn place(
        &self,
        conn: &Connection,
        address: Address,
    ) -> BackendResult<(f64, f64, f64)> {
        let within = || -> BackendResult<f64> {
            let next: Option<u32> = conn
                .prepare_cached(NEXT)?
                .query_row([address.session()], |row| row.get(0))
                .optional()?;
            Ok((f64::from(address.n()) / f64::from(next.unwrap_or(1).max(1))).min(1.0))
        };
        match self {
            Self::Store { .. } => {
                let (first, last): (i64, i64) = conn
                    .prepare_cached(KEYS)?
                    .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok((address.session() as f64 + within()?, first as f64, last as f64 + 1.0))
            }
            Self::Sessions(keys) => {
                let at = keys.partition_point(|key| *key < address.session());
                Ok((at as f64 + within()?, 0.0, keys.len() as f64))
            }
            Self::Path(stretches) => {
                let count =
                    |stretch: &(Address, Address)| (stretch.1.raw() - stretch.0.raw() + 1) as f64;
                let before: f64 =
                    stretches.iter().filter(|stretch| stretch.1 < address).map(count).sum();
                let own =
                    stretches.iter().find(|stretch| stretch.0 <= address && address <= stretch.1);
                let own = own.map_or(0.0, |stretch| (address.raw() - stretch.0.raw()) as f64);
                Ok((before + own, 0.0, stretches.iter().map(count).sum()))
            }
        }
    }

    /// Returns the ranges of addresses in one of some spans of equal length on that line, in ascending order.
    pub(super) fn span(
        &self,
        conn: &Connection,
        (number, of): (usize, usize),
    ) -> BackendResult<Vec<(Address, Address)>> {
        let share = |of_all: f64, at: usize| of_all * at as f64 / of as f64;
        match self {
            Self::Path(stretches) => Ok(slice(stretches, number, of)),
            Self::Sessions(keys) if keys.len() == 1 => {
                let next: u32 = conn
                    .prepare_cached(NEXT)?
                    .query_row([keys[0]], |row| row.get(0))
                    .optional()?
                    .unwrap_or(1);
                Ok(slice(&[(Address::new(keys[0], 0), Address::new(keys[0], next))], number, of))
            }
            Self::Sessions(keys) => {
                let (from, to) = (
                    share(keys.len() as f64, number) as usize,
                    share(keys.len() as f64, number + 1) as usize,
                );
                Ok(Self::Sessions(keys[from..to.min(keys.len())].to_vec()).ranges())
            }
            Self::Store { .. } => {
                let (first, last): (i64, i64) = conn
                    .prepare_cached(KEYS)?
                    .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                if last - first < of as i64 {
                    let mut statement = conn.prepare_cached(ALL_KEYS)?;
                    let rows = statement.query_map([], |row| {
                        Ok((Address::new(row.get(0)?, 0), Address::new(row.get(0)?, row.get(1)?)))
                    })?;
                    return Ok(slice(&rows.collect::<Result<Vec<_>, _>>()?, number, of));
                }
                let count = (last - first + 1) as f64;
                let key = |at: usize| first + share(count, at) as i64;
                Ok(vec![(
                    Address::range_of(key(number)).0,
                    Address::range_of(key(number + 1)).0.before(),
                )])
            }
        }
    }

    /// Returns how many messages it has, more or less.
    pub(super) fn count(&self, conn: &Connection) -> BackendResult<f64> {
        match self {
            Self::Store { .. } => {
                let (sessions, some, messages): (f64, f64, f64) =
                    conn.prepare_cached(COUNT)?.query_row([SAMPLE as i64], |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                    })?;
                Ok(messages * (sessions / some.max(1.0)))
            }
            Self::Sessions(keys) => {
                let mut statement = conn.prepare_cached(MESSAGES)?;
                let mut messages = 0.0;
                for key in keys.iter().rev().take(SAMPLE) {
                    messages += statement.query_row([key], |row| row.get::<_, f64>(0))?;
                }
                Ok(messages * (keys.len() as f64 / keys.len().clamp(1, SAMPLE) as f64))
            }
            Self::Path(stretches) => Ok(stretches
                .iter()
                .map(|(first, last)| (last.raw() - first.raw() + 1) as f64)
                .sum()),
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

/// Returns one of some parts of equal length of ranges of addresses.
fn slice(ranges: &[(Address, Address)], number: usize, of: usize) -> Vec<(Address, Address)> {
    let count = |range: &(Address, Address)| range.1.raw() - range.0.raw() + 1;
    let total: i64 = ranges.iter().map(count).sum();
    let place = |at: usize| (i128::from(total) * at as i128 / of as i128) as i64;
    let (from, to) = (place(number), place(number + 1));
    let mut before = 0;
    let mut found = Vec::new();
    for range in ranges {
        let (low, high) = ((from - before).max(0), (to - before).min(count(range)) - 1);
        if low <= high {
            found.push((
                Address::from_raw(range.0.raw() + low),
                Address::from_raw(range.0.raw() + high),
            ));
        }
        before += count(range);
    }
    found
}

/// Of how many sessions the messages are counted; the others are taken to have as many.
const SAMPLE: usize = 1_000;

pub(in super::super) const COUNT: &str =
    "SELECT (SELECT count(*) FROM session), count(*), total(messages)
   FROM (SELECT messages FROM session ORDER BY key DESC LIMIT ?1)";

pub(in super::super) const MESSAGES: &str = "SELECT total(messages) FROM session WHERE key = ?1";

pub(in super::super) const NEXT: &str = "SELECT next FROM session WHERE key = ?1";

pub(in super::super) const KEYS: &str = "SELECT coalesce((SELECT min(key) FROM session), 0), coalesce((SELECT max(key) FROM session), 0)";

const ALL_KEYS: &str = "SELECT key, next FROM session ORDER BY key";

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
