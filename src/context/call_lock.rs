//! Turns: which thread is in a call of a provider that no other may overlap.
//!
//! The first call of a provider's `init`, and a write, which reads before it writes. No lock is held during the call, so a
//! provider may call the library. It may not write to its own block: that call would wait for itself, so it is refused.
//! A provider may also wait for another thread that writes to its block. This cannot be known, so nobody waits for
//! ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// The turns of one kind of call of one block.
#[derive(Debug, Default)]
pub(super) struct Turns {
    holder: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

/// One turn; it ends when it is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits for a turn; `None` after `patience`, or at once if this thread has one.
    pub(super) fn take(&self, patience: Duration) -> Option<Turn<'_>> {
        let own = std::thread::current().id();
        let holder = self.holder();
        if *holder == Some(own) {
            return None;
        }
        let waited = self.freed.wait_timeout_while(holder, patience, |holder| holder.is_some());
        let (mut holder, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if holder.is_some() {
            return None;
        }
        *holder = Some(own);
        Some(Turn(self))
    }

    pub(super) fn is_own(&self) -> bool {
        *self.holder() == Some(std::thread::current().id())
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.holder() = None;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_turn_is_refused_inside_a_turn_and_given_after_it() {
        let turns = Turns::default();
        let turn = turns.take(LONG).unwrap();
        assert!(turns.is_own() && turns.take(LONG).is_none());
        drop(turn);
        assert!(!turns.is_own() && turns.take(LONG).is_some());
    }

    #[test]
    fn another_thread_waits_for_its_turn_but_not_for_ever() {
        let turns = Turns::default();
        std::thread::scope(|scope| {
            let turn = turns.take(LONG).unwrap();
            let other = scope.spawn(|| turns.take(Duration::from_millis(1)).is_none());
            assert!(other.join().unwrap());
            let other = scope.spawn(|| turns.take(LONG).is_some());
            drop(turn);
            assert!(other.join().unwrap());
        });
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turns = Turns::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _turn = turns.take(LONG);
            panic!("boom")
        }));
        assert!(panicked.is_err() && turns.take(LONG).is_some());
    }
}
