//! The end of the program: first nothing new begins, then nothing waits any longer.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The phases of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Phase {
    #[default]
    Running,
    /// Nothing new begins; running work continues.
    Ending,
    /// All waits end.
    Over,
}

/// Tells all threads that the program ends, and ends their waits.
///
/// ```
/// use std::time::Duration;
/// use talktree_telegram::Stop;
///
/// let stop = Stop::default();
/// stop.end();
/// assert!(!stop.wait_idle(Duration::from_secs(60))); // nothing new begins
/// assert!(stop.wait(Duration::from_millis(1))); // what runs may wait
/// stop.over();
/// assert!(!stop.wait(Duration::from_secs(60)));
/// ```
#[derive(Debug, Default)]
pub struct Stop {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Stop {
    /// Lets nothing new begin from now on.
    pub fn end(&self) {
        self.go_to(Phase::Ending);
    }

    /// Ends all waits from now on.
    pub fn over(&self) {
        self.go_to(Phase::Over);
    }

    /// Returns whether nothing new is to begin.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        *self.phase() >= Phase::Ending
    }

    /// Returns whether all waits have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.phase() == Phase::Over
    }

    /// Waits that long within work that has begun; returns `false`, at once, when [`over`](Self::over) was called.
    pub fn wait(&self, time: Duration) -> bool {
        self.wait_unless(Phase::Over, time)
    }

    /// Waits that long before new work; returns `false`, at once, when [`end`](Self::end) was called.
    pub fn wait_idle(&self, time: Duration) -> bool {
        self.wait_unless(Phase::Ending, time)
    }

    fn wait_unless(&self, end: Phase, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut phase = self.phase();
        while *phase < end {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(phase, left);
            phase = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn go_to(&self, to: Phase) {
        let mut phase = self.phase();
        *phase = to.max(*phase);
        self.changed.notify_all();
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_reply_may_wait_until_it_is_over() {
        let stop = Stop::default();
        assert!(stop.wait_idle(Duration::from_millis(1)));
        stop.end();
        assert!(!stop.wait_idle(Duration::from_secs(60)));
        assert!(stop.wait(Duration::from_millis(1)));
        stop.over();
        stop.end(); // does not go back
        assert!(!stop.wait(Duration::from_secs(60)));
    }
}
