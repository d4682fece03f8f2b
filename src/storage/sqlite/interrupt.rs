//! Stopping long work from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::error::BackendResult;
use crate::error::{Error, Result};

/// How many virtual machine instructions SQLite runs between two checks of the signal.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

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
        Watch { signal: Arc::clone(&self.0), since: self.0.load(Ordering::SeqCst) }
    }
}

/// Says whether long work must stop.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    signal: Arc<AtomicU64>,
    since: u64,
}

impl Watch {
    pub(crate) fn is_raised(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != self.since
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
    conn.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || watch.is_raised()))?;
    let handler = Handler(conn);
    work(handler.0)
}
