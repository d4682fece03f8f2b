//! Random intervals, so that those who wait for one lock do not ask in step.

use std::time::{Duration, SystemTime};

/// Returns a duration between half of this one and one and a half.
pub(crate) fn jitter(interval: Duration) -> Duration {
    interval / 2 + interval * random() / 1024
}

/// Returns a number below 1 024: another one at each call and in each process.
fn random() -> u32 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (now.subsec_nanos() ^ std::process::id()).wrapping_mul(0x9e37_79b9) >> 22
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_half_of_the_interval() {
        let interval = Duration::from_millis(4);
        for _ in 0..1_000 {
            let jittered = jitter(interval);
            assert!(jittered >= interval / 2 && jittered <= interval * 3 / 2, "{jittered:?}");
        }
    }
}
