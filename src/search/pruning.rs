//! Selects the units of a query that are looked up in a large index.
//!
//! FTS5 reads the full posting list of each word it is asked for. Rare words find the candidates; common words only
//! affect their order, and ranking counts those outside the index.

/// The units looked up may match this many messages in total ..
const MAX_MATCHES: f64 = 20_000.0;
/// .. but at least this many units are looked up.
const MIN_UNITS: usize = 3;
/// A unit found in more than this share of the messages is ignored ..
const COMMON_SHARE: f64 = 0.3;
/// .. if the store holds more than this many messages and at least `MIN_KEPT` other units remain.
const MANY_MESSAGES: f64 = 1_000.0;
const MIN_KEPT: usize = 2;

/// The units of a query, without the common ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pruned {
    /// The number of messages that hold each unit; 0 for a unit that is ignored.
    pub(crate) frequencies: Vec<f64>,
    /// The units to look up, the rarest first.
    pub(crate) lookups: Vec<usize>,
}

/// Prunes units, given in how many of `messages` messages each occurs.
pub(crate) fn prune(mut frequencies: Vec<f64>, messages: f64) -> Pruned {
    let is_common = |found: f64| found > COMMON_SHARE * messages;
    let rare = frequencies.iter().filter(|found| **found > 0.0 && !is_common(**found)).count();
    if messages > MANY_MESSAGES && rare >= MIN_KEPT {
        frequencies.iter_mut().filter(|found| is_common(**found)).for_each(|found| *found = 0.0);
    }
    let mut units: Vec<usize> = (0..frequencies.len()).filter(|&n| frequencies[n] > 0.0).collect();
    units.sort_by(|a, b| frequencies[*a].total_cmp(&frequencies[*b]));
    let mut sum = 0.0;
    let mut lookups = Vec::new();
    for unit in units {
        sum += frequencies[unit];
        if lookups.len() >= MIN_UNITS && sum > MAX_MATCHES {
            break;
        }
        lookups.push(unit);
    }
    Pruned { frequencies, lookups }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts which units are looked up, and which are counted.
    #[track_caller]
    fn chosen(found: &[f64], messages: f64, lookups: &[usize], counting: &[usize]) {
        let choice = prune(found.to_vec(), messages);
        let counts: Vec<usize> =
            (0..found.len()).filter(|&unit| choice.frequencies[unit] > 0.0).collect();
        assert_eq!((choice.lookups.as_slice(), counts.as_slice()), (lookups, counting));
    }

    #[test]
    fn a_unit_found_nowhere_is_not_looked_up() {
        chosen(&[5.0, 0.0, 2.0], 10.0, &[2, 0], &[0, 2]);
        chosen(&[], 0.0, &[], &[]);
    }

    #[test]
    fn common_units_are_ignored_in_a_large_store() {
        chosen(&[900.0, 10.0, 20.0], 2_000.0, &[1, 2], &[1, 2]);
        chosen(&[900.0, 10.0], 2_000.0, &[1, 0], &[0, 1]);
        chosen(&[90.0, 10.0, 20.0], 100.0, &[1, 2, 0], &[0, 1, 2]);
    }

    #[test]
    fn only_the_rarest_units_are_looked_up_but_all_are_counted() {
        let found = [9e4, 8e4, 7e4, 5.0, 6.0];
        chosen(&found, 1e6, &[3, 4, 2], &[0, 1, 2, 3, 4]);
        chosen(&[1e4, 9e3, 8e2, 1e2, 1e5], 1e6, &[3, 2, 1, 0], &[0, 1, 2, 3, 4]);
    }
}
