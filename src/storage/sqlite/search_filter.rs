//! The times and roles of the indexed messages in compact form: which matches cannot pass the filters of a search.
//!
//! A search for a common word with a role and dates read the row of each match: 200 ms in a million messages. Here a row
//! holds a *stretch*, 256 consecutive addresses, with five bytes for each. A match that cannot pass is dropped by them;
//! one that may pass is checked by its row. Stretches without a message of the wanted time are skipped.
//!
//! The rows are written when messages are indexed, so an append writes none.
//!
//! Invariant: a stretch has an entry for each of its indexed messages and for no others; `first` and `last` are the least
//! and the greatest time among them. A stretch without entries has no row.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::BackendResult;
use crate::tree::Address;

/// An address without its last bits is the key of a stretch.
const BITS: u32 = 8;
/// Four bytes of time, the least first, and one of the role. A message that is not indexed has zeros.
const WIDTH: usize = 5;
/// The unit of time is 2^20 µs: about a second.
const TIME_BITS: u32 = 20;
/// The roles with a number of their own, from 1. Any other has the number 0.
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

fn stretch_of(address: Address) -> i64 {
    address.raw() >> BITS
}

/// Returns where the entry of an address begins.
fn place_of(address: Address) -> usize {
    // As many bits as a byte has.
    usize::from(address.raw() as u8) * WIDTH
}

/// Returns a time in units; never 0, so that an entry is not taken for none. Times beyond the range of the units have the
/// first or the last of them, so the order stays.
fn units(micros: i64) -> u32 {
    u32::try_from((micros >> TIME_BITS).clamp(1, i64::from(u32::MAX))).unwrap_or(u32::MAX)
}

/// Takes a role as it is stored: what another program wrote may be no UTF-8.
fn number_of(role: &[u8]) -> u8 {
    let place = ROLES.iter().position(|known| known.as_bytes() == role);
    place.map_or(0, |place| place as u8 + 1)
}

/// The entries of a stretch.
#[derive(Debug, Default, Clone, PartialEq)]
struct Entries(Vec<u8>);

impl Entries {
    fn set(&mut self, address: Address, role: &[u8], created_at: i64) {
        let place = place_of(address);
        if self.0.len() < place + WIDTH {
            self.0.resize(place + WIDTH, 0);
        }
        self.0[place..place + 4].copy_from_slice(&units(created_at).to_le_bytes());
        self.0[place + 4] = number_of(role);
    }

    /// Removes the entries from one address of the stretch to another.
    fn clear(&mut self, first: Address, last: Address) {
        let end = (place_of(last) + WIDTH).min(self.0.len());
        self.0[place_of(first).min(end)..end].fill(0);
        let used = self.0.chunks(WIDTH).rposition(|entry| entry.iter().any(|byte| *byte > 0));
        self.0.truncate(used.map_or(0, |last| (last + 1) * WIDTH));
    }

    /// Returns the time and the number of the role of a message; `None` if it is not indexed.
    fn get(&self, address: Address) -> Option<(u32, u8)> {
        let place = place_of(address);
        let &[a, b, c, d, role] = self.0.get(place..place + WIDTH)? else { return None };
        let time = u32::from_le_bytes([a, b, c, d]);
        (time > 0).then_some((time, role))
    }

    /// Returns the least and the greatest time; `None` if there are no entries.
    fn times(&self) -> Option<(u32, u32)> {
        let times = || {
            let time = |entry: &[u8]| match entry {
                [a, b, c, d, _] => u32::from_le_bytes([*a, *b, *c, *d]),
                _ => 0,
            };
            self.0.chunks(WIDTH).map(time).filter(|time| *time > 0)
        };
        times().min().zip(times().max())
    }
}

fn read(conn: &Connection, stretch: i64) -> BackendResult<Entries> {
    let mut statement =
        conn.prepare_cached("SELECT entries FROM search_filter WHERE stretch = ?1")?;
    let entries = statement.query_row([stretch], |row| row.get(0)).optional()?;
    Ok(Entries(entries.unwrap_or_default()))
}

fn write(conn: &Connection, stretch: i64, entries: &Entries) -> BackendResult<()> {
    match entries.times() {
        Some((first, last)) => conn
            .prepare_cached("INSERT OR REPLACE INTO search_filter VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![stretch, first, last, entries.0])?,
        None => conn
            .prepare_cached("DELETE FROM search_filter WHERE stretch = ?1")?
            .execute([stretch])?,
    };
    Ok(())
}

/// Adds entries of messages, in ascending order of address.
pub(super) struct Adder<'c> {
    conn: &'c Connection,
    stretch: Option<(i64, Entries)>,
}

impl<'c> Adder<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self { conn, stretch: None }
    }

    pub(super) fn add(
        &mut self,
        address: Address,
        role: &[u8],
        created_at: i64,
    ) -> BackendResult<()> {
        let stretch = stretch_of(address);
        let (_, entries) = match &mut self.stretch {
            Some(current) if current.0 == stretch => current,
            current => {
                if let Some((before, entries)) = current.take() {
                    write(self.conn, before, &entries)?;
                }
                current.insert((stretch, read(self.conn, stretch)?))
            }
        };
        entries.set(address, role, created_at);
        Ok(())
    }

    pub(super) fn finish(self) -> BackendResult<()> {
        match self.stretch {
            Some((stretch, entries)) => write(self.conn, stretch, &entries),
            None => Ok(()),
        }
    }
}

/// Adds the entry of one message.
pub(super) fn add(conn: &Connection, address: Address) -> BackendResult<()> {
    let mut statement =
        conn.prepare_cached("SELECT role, created_at FROM message WHERE address = ?1")?;
    let mut rows = statement.query([address])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let mut adder = Adder::new(conn);
    adder.add(address, row.get_ref(0)?.as_bytes()?, row.get(1)?)?;
    adder.finish()
}

/// Removes the entries of a range of addresses.
pub(super) fn remove(conn: &Connection, first: Address, last: Address) -> BackendResult<()> {
    let (from, to) = (stretch_of(first), stretch_of(last));
    if from + 1 < to {
        conn.prepare_cached("DELETE FROM search_filter WHERE stretch BETWEEN ?1 AND ?2")?
            .execute([from + 1, to - 1])?;
    }
    let edges = if from == to { vec![from] } else { vec![from, to] };
    for stretch in edges {
        let (low, high) = addresses_of(stretch);
        let mut entries = read(conn, stretch)?;
        if !entries.0.is_empty() {
            entries.clear(first.max(low), last.min(high));
            write(conn, stretch, &entries)?;
        }
    }
    Ok(())
}

fn addresses_of(stretch: i64) -> (Address, Address) {
    let low = stretch << BITS;
    (Address::from_raw(low), Address::from_raw(low | ((1 << BITS) - 1)))
}

pub(super) fn clear(conn: &Connection) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM search_filter")?.execute([])?;
    Ok(())
}

/// Writes the entries of all indexed messages again.
pub(super) fn rebuild(conn: &Connection) -> BackendResult<()> {
    clear(conn)?;
    each_indexed(conn, |stretch, entries| write(conn, stretch, entries))
}

/// Returns whether the entries are those of the indexed messages.
pub(super) fn is_sound(conn: &Connection) -> BackendResult<bool> {
    let mut stretches = 0;
    let mut is_sound = true;
    let mut statement =
        conn.prepare("SELECT first, last, entries FROM search_filter WHERE stretch = ?1")?;
    each_indexed(conn, |stretch, entries| {
        stretches += 1;
        let is_same = match statement.query([stretch])?.next()? {
            Some(row) => {
                // Damaged times may be outside of the range of units.
                let times: (i64, i64) = (row.get(0)?, row.get(1)?);
                entries.times().map(|(first, last)| (i64::from(first), i64::from(last)))
                    == Some(times)
                    && row.get_ref(2)?.as_blob()? == entries.0
            }
            None => false,
        };
        is_sound &= is_same;
        Ok(())
    })?;
    let stored: i64 = conn.query_row("SELECT count(*) FROM search_filter", [], |row| row.get(0))?;
    Ok(is_sound && stored == stretches)
}

/// Calls `take` with the entries of each stretch, as the indexed messages make them.
fn each_indexed(
    conn: &Connection,
    mut take: impl FnMut(i64, &Entries) -> BackendResult<()>,
) -> BackendResult<()> {
    let mut statement = conn.prepare(INDEXED)?;
    let mut rows = statement.query([])?;
    let mut current: Option<(i64, Entries)> = None;
    while let Some(row) = rows.next()? {
        let address: Address = row.get(0)?;
        let stretch = stretch_of(address);
        if let Some((before, entries)) = current.take_if(|current| current.0 != stretch) {
            take(before, &entries)?;
        }
        let (_, entries) = current.get_or_insert_with(|| (stretch, Entries::default()));
        entries.set(address, row.get_ref(1)?.as_bytes()?, row.get(2)?);
    }
    match current {
        Some((stretch, entries)) => take(stretch, &entries),
        None => Ok(()),
    }
}

const INDEXED: &str = "SELECT address, role, message.created_at
   FROM message
  CROSS JOIN session ON session.key = message.session
  WHERE message.id IS NOT NULL
    AND (unindexed IS NULL OR address < (key << 32) + unindexed)
  ORDER BY address";

/// What a search wants of a message, compared with the entries.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// In units, both included.
    times: (u32, u32),
    /// A bit for each number of a role.
    roles: u32,
}

/// What the entries say of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// It may pass.
    May,
    MayNot,
    /// No message of its stretch has a time that passes.
    WholeStretchMayNot,
}

impl Wanted {
    /// Returns what is wanted; `None` if any role and time is.
    pub(super) fn of(
        (after, before): (Option<i64>, Option<i64>),
        roles: &[String],
    ) -> Option<Self> {
        if after.is_none() && before.is_none() && roles.is_empty() {
            return None;
        }
        let times = (after.map_or(0, units), before.map_or(u32::MAX, units));
        let roles = match roles {
            [] => u32::MAX,
            roles => roles.iter().fold(0, |bits, role| bits | 1 << number_of(role.as_bytes())),
        };
        Some(Self { times, roles })
    }

    fn says(&self, entry: Option<(u32, u8)>) -> Said {
        let may = entry.is_some_and(|(time, role)| {
            (self.times.0..=self.times.1).contains(&time)
                && self.roles.checked_shr(u32::from(role)).is_some_and(|bits| bits & 1 == 1)
        });
        if may { Said::May } else { Said::MayNot }
    }
}

/// Reads the entries of matches. It keeps one stretch, so neighbours should be asked for in a row.
pub(super) struct Reader<'c> {
    conn: &'c Connection,
    wanted: &'c Wanted,
    /// `None` if no message of the stretch has a time that passes.
    current: Option<(i64, Option<Entries>)>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(conn: &'c Connection, wanted: &'c Wanted) -> Self {
        Self { conn, wanted, current: None }
    }

    pub(super) fn says(&mut self, address: Address) -> BackendResult<Said> {
        let stretch = stretch_of(address);
        let (_, entries) = match &mut self.current {
            Some(current) if current.0 == stretch => current,
            current => {
                let (first, last) = self.wanted.times;
                let entries: Option<Vec<u8>> = self
                    .conn
                    .prepare_cached(OF_TIMES)?
                    .query_row(params![stretch, first, last], |row| row.get(0))
                    .optional()?;
                current.insert((stretch, entries.map(Entries)))
            }
        };
        Ok(match entries {
            Some(entries) => self.wanted.says(entries.get(address)),
            None => Said::WholeStretchMayNot,
        })
    }

    /// Returns the last address of a range that is in a stretch with a message of the wanted time.
    pub(super) fn last_of(&self, low: Address, high: Address) -> BackendResult<Option<Address>> {
        let (first, last) = self.wanted.times;
        let stretch: Option<i64> = self
            .conn
            .prepare_cached(LAST_OF)?
            .query_row(params![stretch_of(low), stretch_of(high), first, last], |row| row.get(0))
            .optional()?;
        Ok(stretch.map(|stretch| addresses_of(stretch).1.min(high)))
    }

    /// Returns which of the addresses may pass.
    pub(super) fn filter(&mut self, found: &[Address]) -> BackendResult<HashSet<Address>> {
        let mut sorted = found.to_vec();
        sorted.sort_unstable();
        let mut may = HashSet::new();
        for address in sorted {
            if self.says(address)? == Said::May {
                may.insert(address);
            }
        }
        Ok(may)
    }
}

pub(super) const OF_TIMES: &str = "SELECT entries
   FROM search_filter
  WHERE stretch = ?1 AND last >= ?2 AND first <= ?3";

pub(super) const LAST_OF: &str = "SELECT stretch
   FROM search_filter
  WHERE stretch BETWEEN ?1 AND ?2 AND last >= ?3 AND first <= ?4
  ORDER BY stretch DESC
  LIMIT 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_may_pass() {
        let second = 1 << TIME_BITS;
        let at = |n: u32| Address::new(3, n);
        let mut entries = Entries::default();
        entries.set(at(1), b"user", 10 * second);
        entries.set(at(2), b"narrator", 20 * second);
        entries.set(at(4), b"tool", i64::MIN);
        let says = |after: Option<i64>, before: Option<i64>, roles: &[&str]| {
            let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
            let wanted = Wanted::of((after, before), &roles).unwrap();
            [1, 2, 3, 4].map(|n| wanted.says(entries.get(at(n))) == Said::May)
        };
        assert_eq!(says(Some(11 * second), None, &[]), [false, true, false, false]);
        assert_eq!(says(None, Some(11 * second), &[]), [true, false, false, true]);
        // The same unit: the row decides.
        assert_eq!(
            says(Some(10 * second + 5), Some(10 * second + 6), &[]),
            [true, false, false, false]
        );
        assert_eq!(says(None, None, &["user", "tool"]), [true, false, false, true]);
        // Roles without a number of their own are told apart by the row.
        assert_eq!(says(None, None, &["editor"]), [false, true, false, false]);
        assert_eq!(entries.times(), Some((1, 20)));
        assert!(Wanted::of((None, None), &[]).is_none());
    }

    #[test]
    fn entries_without_messages_are_cut_off() {
        let at = |n: u32| Address::new(3, n);
        let mut entries = Entries::default();
        entries.set(at(1), b"user", 1 << 40);
        let one = entries.clone();
        for n in [2, 9, 255] {
            entries.set(at(n), b"assistant", 1 << 41);
        }
        entries.clear(at(2), at(255));
        assert_eq!(entries, one);
        entries.clear(at(0), at(255));
        assert_eq!((entries.times(), entries.0.len()), (None, 0));
    }
}
