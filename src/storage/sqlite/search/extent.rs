//! Where the searched texts are: how many of them are at or after an address.

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::range::Range;
use crate::tree::Address;

/// The newest sessions whose lengths are read; older ones are taken to be of the mean length. To read one takes 0.3 µs.
const MAX_READ: usize = 10_000;

/// Ranges of addresses with the number of their texts, newest first.
#[derive(Debug, Default)]
pub(in super::super) struct Extent(Vec<Part>);

#[derive(Debug)]
struct Part {
    low: Address,
    high: Address,
    texts: f64,
}

impl Extent {
    /// Returns the extent of one range of addresses.
    pub(in super::super) fn of_one((low, high): (Address, Address), texts: f64) -> Self {
        Self(vec![Part { low, high, texts }])
    }

    /// Returns the extent of what is searched in a store with this many messages.
    pub(super) fn of(conn: &Connection, range: &Range, messages: f64) -> BackendResult<Self> {
        let ranges = range.ranges();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return Ok(Self::default());
        };
        if let Range::Path(stretches) = range {
            let part = |&(low, high): &(Address, Address)| Part {
                low,
                high,
                texts: (high.raw() - low.raw() + 1) as f64,
            };
            return Ok(Self(stretches.iter().rev().map(part).collect()));
        }
        let mut parts = Vec::new();
        let mut statement = conn.prepare_cached(NEWEST_SESSIONS)?;
        let mut rows = statement.query(params![first.0.session(), last.1.session(), MAX_READ])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            let (key, next, texts): (i64, u32, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let low = Address::range_of(key).0;
            if range.holds(low) {
                parts.push(Part { low, high: Address::new(key, next.saturating_sub(1)), texts });
            }
            read += 1;
        }
        if let (true, Range::Store { .. }, Some(oldest)) = (read == MAX_READ, range, parts.last()) {
            let known: f64 = parts.iter().map(|part| part.texts).sum();
            let (low, high) = (Address::range_of(1).0, oldest.low.before());
            parts.push(Part { low, high, texts: (messages - known).max(0.0) });
        }
        Ok(Self(parts))
    }

    /// Returns the number of texts.
    pub(super) fn texts(&self) -> f64 {
        self.0.iter().map(|part| part.texts).sum()
    }

    /// Returns the share of the texts that are at or after an address, never 0.
    pub(super) fn share_from(&self, from: Address) -> f64 {
        let count = |part: &Part| {
            let width = (part.high.raw() - part.low.raw() + 1) as f64;
            let at_or_after = (part.high.raw() - from.raw() + 1) as f64;
            part.texts * (at_or_after / width.max(1.0)).clamp(0.0, 1.0)
        };
        let after: f64 = self.0.iter().map(count).sum();
        (after / self.texts().max(1.0)).clamp(f64::MIN_POSITIVE, 1.0)
    }
}

pub(super) const NEWEST_SESSIONS: &str = "SELECT key, next, messages
   FROM session
  WHERE key BETWEEN ?1 AND ?2
  ORDER BY key DESC
  LIMIT ?3";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_counts_the_texts_at_and_after_an_address() {
        let part = |key: i64, next: u32, texts: f64| Part {
            low: Address::new(key, 1),
            high: Address::new(key, next),
            texts,
        };
        let extent = Extent(vec![part(9, 100, 100.0), part(2, 10, 300.0)]);
        for (key, number, share) in
            [(9, 101, 0.0), (9, 91, 0.025), (9, 1, 0.25), (5, 7, 0.25), (2, 6, 0.625), (1, 1, 1.0)]
        {
            let found = extent.share_from(Address::new(key, number));
            assert!((found - share).abs() < 1e-9, "{key} {number}: {found}");
        }
        assert!(Extent::default().share_from(Address::new(1, 1)) > 0.0);
    }
}
