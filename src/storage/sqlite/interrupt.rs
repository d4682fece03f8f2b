//! Stopping long work from another thread.
//!
//! A search may also have a budget of time. It has *phases*, and each ends at a share of the budget, so that something is left
//! for the next one. In tests a budget counts checks instead of time, so that a search can be stopped at each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::sql::{BackendError, BackendResult};

/// How many virtual machine instructions SQLite runs between two checks of the signal.
const STEPS_BETWEEN_CHECKS: i32 = 10_000;
/// The same for work with a budget. FTS5 counts only a few instructions for each page of its index.
const STEPS_IN_BUDGET: i32 = 500;

/// Says whether long work must stop.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    interrupts: Arc<AtomicU64>,
    since: u64,
    budget: Option<Arc<TimeBudget>>,
}

impl Watch {
    pub(super) fn new(interrupts: Arc<AtomicU64>) -> Self {
        Self { since: interrupts.load(Ordering::SeqCst), interrupts, budget: None }
    }

    /// Interrupts all work that is being watched now.
    pub(crate) fn raise(&self) {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the watch of work that must also stop when its budget is spent.
    pub(crate) fn within(mut self, budget: Option<TimeBudget>) -> Self {
        self.budget = budget.map(Arc::new);
        self
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.is_interrupted() || self.is_spent()
    }

    /// Returns whether another thread interrupts the work, whatever its budget.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed) != self.since
    }

    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Returns whether the budget of this phase is spent.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_spent())
    }

    /// Begins a phase of the budget.
    pub(crate) fn enter(&self, phase: Phase) {
        if let Some(budget) = &self.budget {
            budget.enter(phase);
        }
    }

    /// Returns whether work failed because its budget was spent.
    pub(crate) fn is_end_of_budget(&self, error: &BackendError) -> bool {
        self.has_budget() && error.is_interrupt() && !self.is_interrupted()
    }

    /// Returns [`Error::Interrupted`] if the work has to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Runs work on a connection whose statements stop when the signal is raised.
pub(super) fn interruptible<T>(
    conn: &mut Connection,
    watch: Watch,
    work: impl FnOnce(&Connection) -> BackendResult<T>,
) -> BackendResult<T> {
    /// Removes the handler, also if the work panics.
    struct Handler<'c>(&'c mut Connection);
    impl Drop for Handler<'_> {
        fn drop(&mut self) {
            // This fails only on a closed connection.
            let _ = self.0.progress_handler(0, None::<fn() -> bool>);
        }
    }
    let steps = if watch.has_budget() { STEPS_IN_BUDGET } else { STEPS_BETWEEN_CHECKS };
    conn.progress_handler(steps, Some(move || watch.is_raised()))?;
    let handler = Handler(conn);
    work(handler.0)
}

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
    /// It does what must not be stopped half way. No limit.
    Finishing,
}

/// The share of the budget at which each phase ends.
const ENDS: [f64; 3] = [0.5, 0.75, 1.0];

/// How long a search may take.
#[derive(Debug)]
pub(crate) struct TimeBudget {
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
    Checks {
        used: std::sync::atomic::AtomicU64,
        limit: u64,
    },
}

impl TimeBudget {
    /// Returns a budget that begins now.
    pub(crate) fn of_time(limit: Duration) -> Self {
        Self::new(Meter::Time { began: Instant::now(), limit })
    }

    /// Returns a budget that is spent after this many checks.
    #[cfg(test)]
    pub(crate) fn of_checks(limit: u64) -> Self {
        Self::new(Meter::Checks { used: 0.into(), limit })
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
            Meter::Checks { used, limit } => {
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
        let budget = TimeBudget::of_checks(8);
        let checks = |phase| {
            budget.enter(phase);
            (0..20).take_while(|_| !budget.is_spent()).count()
        };
        assert_eq!(checks(Phase::Indexing), 4);
        assert_eq!(checks(Phase::Ranking), 1); // The check that ended the phase before counts, too.
        assert_eq!(checks(Phase::Listing), 1);
        assert_eq!(checks(Phase::Finishing), 20);
    }

    #[test]
    fn a_budget_of_no_time_is_spent_at_once_and_a_long_one_is_not() {
        for (limit, is_spent) in [(Duration::ZERO, true), (Duration::MAX, false)] {
            let budget = TimeBudget::of_time(limit);
            assert!(!budget.is_spent());
            budget.enter(Phase::Listing);
            assert_eq!(budget.is_spent(), is_spent);
        }
    }
}
