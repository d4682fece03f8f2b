//! Ignores the common units of a query for any word.
//!
//! They find too much, and where other words remain they hardly change the order.

/// A unit is common if more than this share of the messages have it.
const COMMON_SHARE: f64 = 0.3;
/// Common units are ignored in a store of more than this many messages.
const MANY_MESSAGES: f64 = 1_000.0;
/// How many other units must remain.
const MIN_KEPT: usize = 2;

/// Replaces the number of messages that hold a unit by 0 for each unit to ignore, in a store of `messages`.
pub(crate) fn prune(mut frequencies: Vec<f64>, messages: f64) -> Vec<f64> {
    let is_common = |found: f64| found > COMMON_SHARE * messages;
    let rare = frequencies.iter().filter(|found| **found > 0.0 && !is_common(**found)).count();
    if messages > MANY_MESSAGES && rare >= MIN_KEPT {
        frequencies.iter_mut().filter(|found| is_common(**found)).for_each(|found| *found = 0.0);
    }
    frequencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_units_are_ignored_in_a_large_store_where_others_remain() {
        for (found, messages, kept) in [
            (vec![900.0, 10.0, 20.0], 2_000.0, vec![0.0, 10.0, 20.0]),
            (vec![900.0, 10.0, 0.0], 2_000.0, vec![900.0, 10.0, 0.0]),
            (vec![90.0, 10.0, 20.0], 100.0, vec![90.0, 10.0, 20.0]),
            (vec![], 0.0, vec![]),
        ] {
            assert_eq!(prune(found, messages), kept);
        }
    }
}
