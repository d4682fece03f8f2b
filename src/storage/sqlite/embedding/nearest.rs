//! The vectors nearest to one: all of a range of addresses are compared, so none is missed.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::error::BackendResult;
use super::super::interrupt::Watch;
use super::EmbedderRow;
use crate::embedding::{Vector, cosine};
use crate::tree::Address;

/// Returns the nearest messages in ranges of addresses with their cosines, nearest first, at most `limit`; of equal ones
/// the oldest first.
pub(in super::super) fn nearest(
    conn: &Connection,
    embedder: EmbedderRow,
    vector: &Vector,
    ranges: &[(Address, Address)],
    holds: impl Fn(Address) -> bool,
    limit: usize,
    watch: &Watch,
) -> BackendResult<Vec<(Address, f64)>> {
    let mut best: Vec<(Address, f32)> = Vec::with_capacity(2 * limit);
    let by_worth = |a: &(Address, f32), b: &(Address, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let mut least = f32::NEG_INFINITY;
    let mut statement = conn.prepare_cached(VECTORS)?;
    for (low, high) in ranges {
        let mut rows = statement.query(params![embedder.key, low, high])?;
        while let Some(row) = rows.next()? {
            watch.check()?;
            let Some(stored) = row.get_ref(1)?.as_blob_or_null()? else { continue };
            let Some(cosine) = cosine(vector, stored).filter(|cosine| *cosine >= least) else {
                continue;
            };
            let address = row.get(0)?;
            if holds(address) {
                best.push((address, cosine));
            }
            if best.len() == 2 * limit {
                best.select_nth_unstable_by(limit - 1, by_worth);
                best.truncate(limit);
                least = best[limit - 1].1;
            }
        }
    }
    best.sort_unstable_by(by_worth);
    best.truncate(limit);
    Ok(best.into_iter().map(|(address, cosine)| (address, f64::from(cosine))).collect())
}

/// Returns the cosine of a message's vector with this one; `None` if it has none.
pub(in super::super) fn cosine_with(
    conn: &Connection,
    embedder: EmbedderRow,
    vector: &Vector,
    address: Address,
) -> BackendResult<Option<f64>> {
    let mut statement = conn.prepare_cached(VECTOR)?;
    let found = statement
        .query_row(params![embedder.key, address], |row| {
            Ok(row.get_ref(0)?.as_blob_or_null()?.and_then(|stored| cosine(vector, stored)))
        })
        .optional()?;
    Ok(found.flatten().map(f64::from))
}

pub(in super::super) const VECTORS: &str = "SELECT address, vector
   FROM embedding
  WHERE embedder = ?1
    AND address BETWEEN ?2 AND ?3";

pub(in super::super) const VECTOR: &str =
    "SELECT vector FROM embedding WHERE embedder = ?1 AND address = ?2";
