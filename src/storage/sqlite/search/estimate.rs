//! What the index tells of matches without their texts: how often they have each word, where, and how long they are.
//!
//! Of more matches than can be read, the best are chosen by these estimates, and only those are read. An estimate takes
//! about 2 µs, and to read and scan a message 10 µs. It does not tell a word from the part of an identifier.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::super::search_filter::{Reader, Wanted};
use super::size::varint;
use crate::search::Columns;
use crate::search::analysis::{Analysis, Unit};
use crate::search::rank::Candidate;
use crate::search::scanner::{NEAR_WORDS, Scan};
use crate::tree::Address;

/// An occurrence: the place of the match in the list, the column and the place in the text.
type Occurrence = u64;
const COLUMN: u64 = 1 << 31;

/// Returns whether the index has what the ranking needs: plain words, no times, and no vowel signs.
pub(super) fn is_possible(reading: &Analysis) -> bool {
    let is_plain =
        |unit: &Unit| unit.stems.len() == 1 && unit.forms.is_empty() && !unit.term.is_prefix;
    let has_signs = |unit: &Unit| !unit.term.signs().is_empty();
    !reading.is_question
        && reading.units.iter().all(is_plain)
        && !reading.units.iter().any(has_signs)
}

/// Returns estimates of matches, in their order; `found` is the newest first.
pub(super) fn candidates(
    conn: &Connection,
    reading: &Analysis,
    found: &[Address],
    watch: &Watch,
) -> BackendResult<Vec<Candidate>> {
    // A virtual table over the index, in the connection's temporary schema; it stores nothing.
    conn.execute_batch(MAKE_OCCURRENCES)?;
    let units = reading.units.len();
    let columns = reading.query.filters.columns;
    let lengths = lengths(conn, found, columns, watch)?;
    let pairs = reading.pairs(|_| true);
    let scan = |length: usize| Scan {
        counts: vec![0; units],
        whole: vec![0; units],
        near: vec![false; pairs.len()],
        length,
    };
    let by_users = by_users(conn, reading, found)?;
    let candidate = |(address, length): (&Address, usize)| Candidate {
        session: address.session(),
        is_user: by_users.contains(address),
        is_in_time: false,
        scan: scan(length),
    };
    let mut all: Vec<Candidate> = found.iter().zip(lengths).map(candidate).collect();
    let mut places = Vec::with_capacity(units);
    for (number, unit) in reading.units.iter().enumerate() {
        let of_unit = occurrences(conn, &unit.stems[0], found, columns, watch)?;
        for occurrence in &of_unit {
            all[(occurrence >> 32) as usize].scan.counts[number] += 1;
        }
        places.push(of_unit);
    }
    // The index does not tell parts of identifiers from words, so all count as words.
    for Scan { counts, whole, .. } in all.iter_mut().map(|candidate| &mut candidate.scan) {
        whole.clone_from(counts);
    }
    for (number, (a, b)) in pairs.iter().enumerate() {
        each_near(&places[*a], &places[*b], |place| all[place].scan.near[number] = true);
    }
    Ok(all)
}

/// Returns which matches people wrote, if that counts.
fn by_users(
    conn: &Connection,
    reading: &Analysis,
    found: &[Address],
) -> BackendResult<HashSet<Address>> {
    match Wanted::of((None, None), &["user".to_owned()]) {
        Some(wanted) if reading.is_about_me => Reader::new(conn, &wanted).filter(found),
        _ => Ok(HashSet::new()),
    }
}

/// Returns the lengths of matches in words.
fn lengths(
    conn: &Connection,
    found: &[Address],
    columns: Columns,
    watch: &Watch,
) -> BackendResult<Vec<usize>> {
    let mut statement = conn.prepare_cached(LENGTHS)?;
    let mut lengths = Vec::with_capacity(found.len());
    for address in found {
        watch.check()?;
        let record: Option<Vec<u8>> =
            statement.query_row([address], |row| row.get(0)).optional()?;
        let record = record.unwrap_or_default();
        let mut bytes = record.as_slice();
        let [text, tools] = [(); 2].map(|()| varint(&mut bytes) as usize);
        lengths.push(match columns {
            Columns::Text => text,
            Columns::Tools => tools,
            Columns::All => text + tools,
        });
    }
    Ok(lengths)
}

/// Returns the occurrences of a stem in the matches, in ascending order of address.
fn occurrences(
    conn: &Connection,
    stem: &str,
    found: &[Address],
    columns: Columns,
    watch: &Watch,
) -> BackendResult<Vec<Occurrence>> {
    let mut statement = conn.prepare_cached(OCCURRENCES)?;
    let mut rows = statement.query([stem])?;
    let mut occurrences = Vec::new();
    // The oldest is the last.
    let mut left = found;
    while let Some(row) = rows.next()? {
        watch.check()?;
        let address: Address = row.get(0)?;
        while left.last().is_some_and(|oldest| *oldest < address) {
            left = &left[..left.len() - 1];
        }
        match left.last() {
            None => break,
            Some(oldest) if *oldest > address => continue,
            Some(_) => {}
        }
        let is_tools = row.get_ref(1)?.as_str()? == "tools";
        let is_searched = match columns {
            Columns::Text => !is_tools,
            Columns::Tools => is_tools,
            Columns::All => true,
        };
        if is_searched {
            let offset = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0).min(COLUMN / 2);
            let column = if is_tools { COLUMN } else { 0 };
            occurrences.push(((left.len() - 1) as u64) << 32 | column | offset);
        }
    }
    Ok(occurrences)
}

/// Calls `near` with the place of each match in which an occurrence of one list is near one of the other.
fn each_near(a: &[Occurrence], b: &[Occurrence], mut near: impl FnMut(usize)) {
    let key = |occurrence: &Occurrence| (std::cmp::Reverse(occurrence >> 32), *occurrence);
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        if one.abs_diff(**other) <= NEAR_WORDS as u64 {
            near((**one >> 32) as usize);
        }
        if key(one) < key(other) {
            a.next()
        } else {
            b.next()
        };
    }
}

const MAKE_OCCURRENCES: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_occurrences
 USING fts5vocab (main, search, instance)";

const OCCURRENCES: &str = "SELECT doc, col, offset FROM temp.search_occurrences WHERE term = ?1";

const LENGTHS: &str = "SELECT sz FROM search_docsize WHERE id = ?1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_near_in_the_same_match_and_column() {
        let at = |place: u64, offset: u64| place << 32 | offset;
        // In the order of the index: the match that is last in the list comes first.
        let a = [at(2, 5), at(2, 90), at(1, 0), at(0, 7)];
        let b = [at(2, 88), at(1, 3), at(1, COLUMN), at(0, 9)];
        let mut places = Vec::new();
        each_near(&a, &b, |place| places.push(place));
        assert_eq!(places, [2, 0]);
    }
}
