//! How long a search may take.
//!
//! A budget is spent in *phases*: each may use it up to a share, so that a later phase has some left. Looking at the
//! budget is what spends it in a test: there it counts looks, not time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// What a search is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// It indexes pending messages, up to a half of the budget.
    Indexing,
    /// It finds and ranks matches, up to three quarters.
    Ranking,
    /// It lists matches without ranking them, up to the end.
    Listing,
    /// It does what must not be stopped half way, whatever that takes.
    Finishing,
}

/// The share of the budget at which each phase ends.
const ENDS: [f64; 3] = [0.5, 0.75, 1.0];

/// How much a search may spend.
#[derive(Debug)]
pub(crate) struct Budget {
    meter: Meter,
    phase: AtomicU8,
}

#[derive(Debug)]
enum Meter {
    Time {
        began: Instant,
        limit: Duration,
    },
    #[cfg(test)]
    Looks {
        used: std::sync::atomic::AtomicU64,
        limit: u64,
    },
}

impl Budget {
    /// Returns a budget of time, from now on.
    pub(crate) fn of_time(limit: Duration) -> Self {
        Self::new(Meter::Time { began: Instant::now(), limit })
    }

    /// Returns a budget of this many looks at it.
    #[cfg(test)]
    pub(crate) fn of_looks(limit: u64) -> Self {
        Self::new(Meter::Looks { used: 0.into(), limit })
    }

    fn new(meter: Meter) -> Self {
        Self { meter, phase: AtomicU8::new(Phase::Finishing as u8) }
    }

    /// Begins a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Returns whether the phase has used up its share.
    pub(crate) fn is_spent(&self) -> bool {
        let phase = usize::from(self.phase.load(Ordering::Relaxed));
        let Some(end) = ENDS.get(phase) else { return false };
        let (used, limit) = match &self.meter {
            Meter::Time { began, limit } => (began.elapsed().as_secs_f64(), limit.as_secs_f64()),
            #[cfg(test)]
            Meter::Looks { used, limit } => {
                (used.fetch_add(1, Ordering::Relaxed) as f64, *limit as f64)
            }
        };
        used >= limit * end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_ends_at_its_share() {
        let budget = Budget::of_looks(8);
        let looks = |phase| {
            budget.enter(phase);
            (0..20).take_while(|_| !budget.is_spent()).count()
        };
        assert_eq!(looks(Phase::Indexing), 4);
        assert_eq!(looks(Phase::Ranking), 1); // The look that ended the phase before is counted, too.
        assert_eq!(looks(Phase::Listing), 1);
        assert_eq!(looks(Phase::Finishing), 20);
    }

    #[test]
    fn a_budget_of_no_time_is_spent_at_once_and_a_long_one_is_not() {
        for (limit, is_spent) in [(Duration::ZERO, true), (Duration::MAX, false)] {
            let budget = Budget::of_time(limit);
            assert!(!budget.is_spent());
            budget.enter(Phase::Listing);
            assert_eq!(budget.is_spent(), is_spent);
        }
    }
}
