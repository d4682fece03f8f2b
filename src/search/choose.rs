//! Which units of a query are worth looking for in a large store.
//!
//! FTS5 reads the whole list of messages of each word it is asked for. The rare words find the answer; the common ones
//! only order what is found, and that is done outside the index.

/// Up to so many messages in all are looked at for the words of a query ..
const MAX_MATCHES: f64 = 20_000.0;
/// .. and always those of so many words.
const MIN_UNITS: usize = 3;
/// A unit that more than this share of the messages holds does not count ..
const COMMON_SHARE: f64 = 0.3;
/// .. if the store has so many messages, and so many other units do.
const MANY_MESSAGES: f64 = 1_000.0;
const MIN_KEPT: usize = 2;

/// What to look for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// In how many messages each unit stands; 0 for one that does not count.
    pub(crate) frequencies: Vec<f64>,
    /// The units to look for, the rarest first.
    pub(crate) looked_for: Vec<usize>,
}

/// Returns what to look for among units that stand in so many of `messages` messages.
pub(crate) fn choose(mut frequencies: Vec<f64>, messages: f64) -> Choice {
    let is_common = |found: f64| found > COMMON_SHARE * messages;
    let rare = frequencies.iter().filter(|found| **found > 0.0 && !is_common(**found)).count();
    if messages > MANY_MESSAGES && rare >= MIN_KEPT {
        frequencies.iter_mut().filter(|found| is_common(**found)).for_each(|found| *found = 0.0);
    }
    let mut units: Vec<usize> = (0..frequencies.len()).filter(|&n| frequencies[n] > 0.0).collect();
    units.sort_by(|a, b| frequencies[*a].total_cmp(&frequencies[*b]));
    let mut sum = 0.0;
    let mut looked_for = Vec::new();
    for unit in units {
        sum += frequencies[unit];
        if looked_for.len() >= MIN_UNITS && sum > MAX_MATCHES {
            break;
        }
        looked_for.push(unit);
    }
    Choice { frequencies, looked_for }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds which units are looked for, and which count.
    #[track_caller]
    fn chosen(found: &[f64], messages: f64, looked_for: &[usize], counting: &[usize]) {
        let choice = choose(found.to_vec(), messages);
        let counts: Vec<usize> =
            (0..found.len()).filter(|&unit| choice.frequencies[unit] > 0.0).collect();
        assert_eq!((choice.looked_for.as_slice(), counts.as_slice()), (looked_for, counting));
    }

    #[test]
    fn what_is_nowhere_is_not_looked_for() {
        chosen(&[5.0, 0.0, 2.0], 10.0, &[2, 0], &[0, 2]);
        chosen(&[], 0.0, &[], &[]);
    }

    #[test]
    fn what_is_everywhere_does_not_count_in_a_large_store() {
        chosen(&[900.0, 10.0, 20.0], 2_000.0, &[1, 2], &[1, 2]);
        chosen(&[900.0, 10.0], 2_000.0, &[1, 0], &[0, 1]);
        chosen(&[90.0, 10.0, 20.0], 100.0, &[1, 2, 0], &[0, 1, 2]);
    }

    #[test]
    fn common_words_only_order_what_the_rare_ones_find() {
        let found = [9e4, 8e4, 7e4, 5.0, 6.0];
        chosen(&found, 1e6, &[3, 4, 2], &[0, 1, 2, 3, 4]);
        chosen(&[1e4, 9e3, 8e2, 1e2, 1e5], 1e6, &[3, 2, 1, 0], &[0, 1, 2, 3, 4]);
    }
}
