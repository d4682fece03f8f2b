//! The segments of the search index: how many there are, on which levels.
//!
//! Each commit that indexes messages writes a segment on the lowest level; a merge replaces the segments of one level by
//! one of the next. FTS5 records all of them in one row, the only place where their number can be read.

use rusqlite::{Connection, OptionalExtension};

use super::error::BackendResult;

/// The levels, lowest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Segments(Vec<Level>);

#[derive(Debug, PartialEq, Eq)]
struct Level {
    segments: u64,
    /// How many of them are being merged, in several transactions.
    merging: u64,
}

const RECORD: &str = "SELECT block FROM search_data WHERE id = 10";

impl Segments {
    pub(super) fn of(conn: &Connection) -> BackendResult<Self> {
        Self::in_record(conn, RECORD)
    }

    /// Returns the segments that a record lists.
    pub(super) fn in_record(conn: &Connection, sql: &str) -> BackendResult<Self> {
        let record: Option<Vec<u8>> =
            conn.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
        // A damaged record is for `verify` to report; without segments nothing is merged.
        Ok(record.and_then(|record| Self::parse(&record)).unwrap_or_default())
    }

    /// Reads the record: four bytes of a cookie, the numbers of levels, segments and writes, and for each level the
    /// numbers of segments that are being merged and of all, and three numbers for each of these.
    fn parse(record: &[u8]) -> Option<Self> {
        let mut rest = record.get(4..)?;
        let levels = number(&mut rest)?;
        let (_segments, _writes) = (number(&mut rest)?, number(&mut rest)?);
        let level = |_| {
            let (merging, segments) = (number(&mut rest)?, number(&mut rest)?);
            for _ in 0..segments.checked_mul(3)? {
                number(&mut rest)?;
            }
            Some(Level { segments, merging })
        };
        (0..levels).map(level).collect::<Option<_>>().map(Self)
    }

    /// Returns how many segments a search reads.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|level| level.segments).sum()
    }

    /// Returns the greatest number of segments on one level.
    pub(super) fn most_on_a_level(&self) -> u64 {
        self.0.iter().map(|level| level.segments).max().unwrap_or(0)
    }

    /// Returns the highest level with segments that are being merged.
    pub(super) fn highest_merging(&self) -> Option<usize> {
        self.0.iter().rposition(|level| level.merging > 0)
    }

    /// Returns whether the last level has segments, or the index has none.
    pub(super) fn is_last_level_used(&self) -> bool {
        self.0.last().is_none_or(|level| level.segments > 0)
    }

    /// Returns whether a merge goes on, or would begin if it takes at least this many segments.
    pub(super) fn can_merge(&self, least: u64) -> bool {
        self.most_on_a_level() >= least || self.0.iter().any(|level| level.merging > 0)
    }
}

/// Takes a number off the record: seven bits a byte, highest first, and the top bit set in all bytes but the last.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for _ in 0..5 {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    // A longer one is the number of writes, in nine bytes, the last of which has eight bits.
    for _ in 5..9 {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_two_levels_is_read() {
        let record = [
            &[0, 0, 0, 9, 2, 3, 0x81, 0][..], // 128 writes
            &[2, 2, 4, 1, 6, 5, 1, 0x82, 3],
            &[0, 1, 1, 1, 0x80 | 1, 0],
        ]
        .concat();
        let segments = Segments::parse(&record).unwrap();
        assert_eq!(
            segments.0,
            [Level { segments: 2, merging: 2 }, Level { segments: 1, merging: 0 }]
        );
        assert_eq!((segments.count(), segments.most_on_a_level()), (3, 2));
        assert!(segments.can_merge(4));
        assert_eq!(Segments::parse(&record[..record.len() - 1]), None);
    }

    #[test]
    fn a_number_of_nine_bytes_is_skipped() {
        let mut rest = &[0xff; 9][..];
        assert_eq!(number(&mut rest), Some(u64::MAX));
        assert!(rest.is_empty());
    }
}
