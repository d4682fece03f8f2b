//! Background compaction: automatic compaction on an executor of the program.
//!
//! The append hands a [`Job`] to the executor and returns. The job holds a handle of the session and the guard by which no
//! other compaction of the session begins. An executor may run it in another thread, at once, late or never, drop it, or
//! panic. Whatever happens, the guard is released when the job has run or is dropped, and a failure is reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::auto::Attempt;
use crate::callback;
use crate::error::{Error, Result};

/// A compaction that waits to be run, as an executor receives it; see
/// [`SessionBuilder::compact_on`](crate::SessionBuilder::compact_on).
pub type CompactionJob = Box<dyn FnOnce() + Send>;

/// Runs jobs, in any thread and at any time.
pub(crate) type Executor = Arc<dyn Fn(CompactionJob) + Send + Sync>;

/// How the executor is named in errors.
const EXECUTOR: &str = "the executor of compactions";

/// How far the call of an executor is. It and the end of the job may come in any order and in two threads; the later one
/// reports that the job was dropped.
#[derive(Default)]
struct Handover(AtomicU8);

impl Handover {
    const RETURNED: u8 = 1;
    const DROPPED: u8 = 2;

    /// Notes that the executor has returned; returns whether the job was dropped before.
    fn note_returned(&self) -> bool {
        self.0.swap(Self::RETURNED, Ordering::AcqRel) == Self::DROPPED
    }

    /// Notes that the job was dropped; returns whether the executor had returned before.
    fn note_dropped(&self) -> bool {
        self.0.swap(Self::DROPPED, Ordering::AcqRel) == Self::RETURNED
    }
}

/// One automatic compaction for an executor. Dropped without being run, it is a failure.
struct Job {
    attempt: Option<Attempt>,
    handover: Arc<Handover>,
}

impl Job {
    fn run(mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.run();
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        let session = attempt.give_up();
        if self.handover.note_dropped() {
            session.report_failure(&dropped());
        }
    }
}

/// Gives an attempt to the executor.
///
/// # Errors
/// [`Error::Callback`] if the executor panics, or drops the job before it returns.
pub(super) fn hand_over(executor: &Executor, attempt: Attempt) -> Result<()> {
    let handover = Arc::new(Handover::default());
    let job = Job { attempt: Some(attempt), handover: Arc::clone(&handover) };
    let called = callback::call(|| executor(Box::new(move || job.run())));
    let was_dropped = handover.note_returned();
    match called {
        Err(failed) => Err(Error::Callback { what: EXECUTOR, why: failed.to_string() }),
        Ok(()) if was_dropped => Err(dropped()),
        Ok(()) => Ok(()),
    }
}

fn dropped() -> Error {
    let why = "it dropped a compaction without running it".to_owned();
    Error::Callback { what: EXECUTOR, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_return_and_the_drop_the_later_one_reports() {
        let dropped_first = Handover::default();
        assert!(!dropped_first.note_dropped());
        assert!(dropped_first.note_returned());
        let returned_first = Handover::default();
        assert!(!returned_first.note_returned());
        assert!(returned_first.note_dropped());
    }
}
