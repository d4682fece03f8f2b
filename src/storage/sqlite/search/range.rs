//! Where to search, as ranges of addresses.

use super::super::row::session::{self as session_row, read_id};
use super::super::{message, path};
use crate::id::{MessageId, SessionId};
use crate::search::{Query, Scope};
use crate::sql::{BackendResult, Bind, Connection};
use crate::tree::{Address, PlanPart};

/// More sessions than this are searched as one range of addresses: to start a search in a range takes about 0.1 ms.
const MAX_RANGES: usize = 16;

/// Where to search.
#[derive(Debug, Clone)]
pub(in super::super) struct Range {
    pub(super) kind: Kind,
    /// What is searched, in ascending order: the store as one range, each session as one, or the runs of a path.
    parts: Vec<(Address, Address)>,
    /// The sessions of the store that are in the trash, by key, in ascending order.
    trash: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Store,
    Sessions,
    Path,
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
            let name: String = id.as_str().chars().take(MAX_NAME_CHARS).collect();
            match found(conn, &id, owner)?.filter(|_| is_in_scope) {
                Some((key, false)) => named.push(key),
                Some((_, true)) => {
                    notices
                        .push(format!("session {name:?} is in the trash, which is not searched"));
                }
                None => notices.push(format!("no session is called {name:?}")),
            }
        }
        let is_named = |key: &i64| query.filters.sessions.is_empty() || named.contains(key);
        match scope {
            Scope::Store if !query.filters.sessions.is_empty() => Ok(Self::sessions(named)),
            Scope::Store => match owner {
                Some(owner) => Ok(Self::sessions(keys(conn, OWNED, owner)?)),
                None => {
                    conn.ask_ahead(KEYS, ())?;
                    conn.ask_ahead(TRASH, ())?;
                    conn.ask_ahead(COUNT, SAMPLE)?;
                    let (first, last): (i64, i64) = conn.one(KEYS, ())?;
                    let all = (Address::range_of(first).0, Address::range_of(last).1);
                    let trash = keys(conn, TRASH, ())?;
                    Ok(Self { kind: Kind::Store, parts: vec![all], trash })
                }
            },
            Scope::Sessions(ids) => {
                let mut keys = Vec::with_capacity(ids.len());
                for id in ids {
                    keys.extend(find(conn, id, owner)?.filter(is_named));
                }
                Ok(Self::sessions(keys))
            }
            Scope::Path(id, leaf) => {
                let session = session_row::find(conn, id)?;
                let key = session.map(|session| session.key);
                let leaf = match leaf {
                    Some(leaf) => Some(message::place(conn, key, id, leaf)?),
                    None => session.and_then(|session| session.head),
                };
                let mut parts = Vec::new();
                if let Some(key) = find(conn, id, owner)?.filter(is_named) {
                    for planned in path::plan(conn, key, leaf, true)?.into_iter().rev() {
                        if let PlanPart::Messages { first, last } = planned {
                            parts.push((first, last));
                        }
                    }
                }
                Ok(Self { kind: Kind::Path, parts, trash: Vec::new() })
            }
        }
    }

    fn sessions(mut keys: Vec<i64>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        let parts = keys.into_iter().map(Address::range_of).collect();
        Self { kind: Kind::Sessions, parts, trash: Vec::new() }
    }

    /// Leaves out a message.
    pub(super) fn without(
        mut self,
        conn: &Connection,
        (session, id): &(SessionId, MessageId),
    ) -> BackendResult<Self> {
        let Some(row) = session_row::find(conn, session)? else { return Ok(self) };
        let Some(address) = message::find(conn, row.key, id)? else { return Ok(self) };
        self.parts = self
            .parts
            .into_iter()
            .flat_map(|(low, high)| {
                [(low, high.min(address.before())), (low.max(address.after()), high)]
            })
            .filter(|(low, high)| low <= high)
            .collect();
        Ok(self)
    }

    /// Returns the ranges of addresses to read, in ascending order; a path is one range, and so are many sessions.
    pub(in super::super) fn ranges(&self) -> Vec<(Address, Address)> {
        match (self.parts.first(), self.parts.last()) {
            _ if self.kind != Kind::Path && self.parts.len() <= MAX_RANGES => self.parts.clone(),
            (Some(first), Some(last)) => vec![(first.0, last.1)],
            _ => Vec::new(),
        }
    }

    /// Returns all that is searched, in ascending order.
    pub(super) fn parts(&self) -> &[(Address, Address)] {
        &self.parts
    }

    /// Returns the range of each session, in ascending order, however many there are.
    pub(super) fn of_sessions(&self) -> Vec<(Address, Address)> {
        let of_one = self.parts.chunk_by(|a, b| a.0.session() == b.0.session());
        of_one.map(|parts| (parts[0].0, parts[parts.len() - 1].1)).collect()
    }

    /// Returns whether each address of its ranges belongs to it.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.len() == self.ranges().len() && self.trash.is_empty()
    }

    /// Returns whether all of it is in one session.
    pub(super) fn is_one_session(&self) -> bool {
        let ends = self.parts.first().zip(self.parts.last());
        ends.is_some_and(|(first, last)| first.0.session() == last.1.session())
    }

    /// Returns whether a session outside the trash is in scope; a path has messages of its own session alone.
    pub(super) fn holds_session(&self, key: i64) -> bool {
        let at = self.parts.partition_point(|part| part.1.session() < key);
        self.parts.get(at).is_some_and(|part| part.0.session() <= key)
            && self.trash.binary_search(&key).is_err()
    }

    /// Returns whether an address belongs to it.
    pub(in super::super) fn holds(&self, address: Address) -> bool {
        let at = self.parts.partition_point(|part| part.1 < address);
        self.parts.get(at).is_some_and(|part| part.0 <= address)
            && self.trash.binary_search(&address.session()).is_err()
    }

    /// Returns the greatest address below one that does not belong to it, from which on others may.
    pub(super) fn below(&self, address: Address) -> Option<Address> {
        if self.kind == Kind::Store {
            return Some(Address::range_of(address.session()).0.before());
        }
        let at = self.parts.partition_point(|part| part.1 < address);
        at.checked_sub(1).map(|at| self.parts[at].1)
    }

    /// Returns how many messages it has, more or less.
    pub(super) fn count(&self, conn: &Connection) -> BackendResult<f64> {
        match self.kind {
            Kind::Store => {
                let (all, some, messages): (i64, i64, i64) = conn.one(COUNT, SAMPLE)?;
                Ok(messages as f64 * (all as f64 / some as f64))
            }
            Kind::Sessions => {
                let mut messages = 0;
                let sample = self.parts.iter().rev().take(SAMPLE);
                sample.clone().try_for_each(|it| conn.ask_ahead(MESSAGES, it.0.session()))?;
                for part in sample {
                    messages += conn.one::<i64>(MESSAGES, part.0.session())?;
                }
                let count = self.parts.len();
                Ok(messages as f64 * (count as f64 / count.clamp(1, SAMPLE) as f64))
            }
            Kind::Path => {
                let length = |part: &(Address, Address)| part.1.raw() - part.0.raw() + 1;
                Ok(self.parts.iter().map(length).sum::<i64>() as f64)
            }
        }
    }
}

/// How many characters of an unknown name a notice has.
const MAX_NAME_CHARS: usize = 80;

/// Of how many sessions the messages are counted; the others are taken to have as many.
const SAMPLE: usize = 1_000;

/// How many keys all sessions span, how many the newest ones, and the messages of these. To count the sessions would read each.
pub(in super::super) const COUNT: &str =
    "SELECT coalesce((SELECT max(key) FROM session) - (SELECT min(key) FROM session), 0) + 1,
        coalesce(max(key) - min(key), 0) + 1, CAST(coalesce(sum(messages), 0) AS BIGINT)
   FROM (SELECT key, messages FROM session ORDER BY key DESC LIMIT ?1) AS newest";

pub(in super::super) const MESSAGES: &str =
    "SELECT CAST(coalesce(sum(messages), 0) AS BIGINT) FROM session WHERE key = ?1";

pub(in super::super) const KEYS: &str = "SELECT coalesce((SELECT min(key) FROM session), 0), coalesce((SELECT max(key) FROM session), 0)";

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
    conn.first(NAMED, (id, owner))
}

const NAMED: &str = "SELECT key, deleted_at IS NOT NULL
   FROM session
  WHERE id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2)";

fn keys(conn: &Connection, sql: &'static str, values: impl Bind) -> BackendResult<Vec<i64>> {
    let mut keys: Vec<i64> = conn.rows(sql, values)?;
    keys.sort_unstable();
    Ok(keys)
}

pub(super) const OWNED: &str = "SELECT key FROM session WHERE owner = ?1 AND deleted_at IS NULL";

pub(super) const TRASH: &str = "SELECT key FROM session WHERE deleted_at IS NOT NULL
 UNION ALL
 SELECT session FROM leftover WHERE session <> 0";

/// What a hit needs of its session.
#[derive(Debug, Clone)]
pub(super) struct SessionNames {
    pub(super) id: SessionId,
    pub(super) name: Option<String>,
    pub(super) head: Option<Address>,
}

pub(super) fn names(conn: &Connection, key: i64) -> BackendResult<Option<SessionNames>> {
    conn.first_with(NAMES, key, |row| {
        Ok(SessionNames { id: read_id(row, 0, key)?, name: row.get(1)?, head: row.get(2)? })
    })
}

pub(super) const NAMES: &str = "SELECT id, name, head FROM session WHERE key = ?1";
