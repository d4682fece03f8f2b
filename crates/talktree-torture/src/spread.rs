//! The distribution of measured times.

use std::fmt;
use std::time::Duration;

/// The times of one kind of verb.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn extend(&mut self, times: impl IntoIterator<Item = Duration>) {
        self.0.extend(times);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn max(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// Returns the time that this share of all times does not exceed.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (p50, p99, max) = (self.percentile(0.5), self.percentile(0.99), self.max());
        write!(f, "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", ms(p50), ms(p99), ms(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_from_the_sorted_times() {
        let mut spread = Spread::default();
        spread.extend((1..=101).rev().map(Duration::from_millis));
        assert_eq!(spread.percentile(0.5), Duration::from_millis(51));
        assert_eq!(spread.to_string(), "p50 51.0 ms, p99 100.0 ms, max 101.0 ms");
    }
}
