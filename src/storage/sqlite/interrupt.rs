//! Stopping long work from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::error::{BackendError, BackendResult};
use super::time_budget::{Phase, TimeBudget};
use crate::error::{Error, Result};

/// How many virtual machine instructions SQLite runs between two checks of the signal.
const STEPS_BETWEEN_CHECKS: i32 = 10_000;
/// The same for work with a budget. FTS5 counts only a few instructions for each page of its index.
const STEPS_IN_BUDGET: i32 = 500;

/// Counts how often long work was interrupted. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptSignal(Arc<AtomicU64>);

impl InterruptSignal {
    /// Interrupts all work that is being watched now.
    pub(crate) fn raise(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a watch for work that begins now.
    pub(crate) fn watch(&self) -> Watch {
        Watch { signal: Arc::clone(&self.0), since: self.0.load(Ordering::SeqCst), budget: None }
    }
}

/// Says whether long work must stop.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    signal: Arc<AtomicU64>,
    since: u64,
    budget: Option<Arc<TimeBudget>>,
}

impl Watch {
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
        self.signal.load(Ordering::Relaxed) != self.since
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
