//! A lock on the calls to a provider that must not overlap: its `init`, and a write, which reads before it writes.
//!
//! Unlike a mutex it refuses the thread that holds it, because a provider may call the library: a write to its own block
//! would wait for itself. It also has a timeout, because a provider may wait for another thread that writes to its block,
//! which cannot be known.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// A lock on one kind of call to one block.
#[derive(Debug, Default)]
pub(super) struct CallLock {
    holder: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

/// Unlocks when it is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct CallGuard<'a>(&'a CallLock);

impl CallLock {
    /// Waits for the lock; `None` after `timeout`, or at once if this thread holds it.
    pub(super) fn lock(&self, timeout: Duration) -> Option<CallGuard<'_>> {
        let own = std::thread::current().id();
        let holder = self.holder();
        if *holder == Some(own) {
            return None;
        }
        let waited = self.freed.wait_timeout_while(holder, timeout, |holder| holder.is_some());
        let (mut holder, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if holder.is_some() {
            return None;
        }
        *holder = Some(own);
        Some(CallGuard(self))
    }

    /// Returns whether this thread holds it.
    pub(super) fn is_own(&self) -> bool {
        *self.holder() == Some(std::thread::current().id())
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallGuard<'_> {
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
    fn a_thread_that_holds_the_lock_is_refused_and_may_lock_again_after_it() {
        let lock = CallLock::default();
        let guard = lock.lock(LONG).unwrap();
        assert!(lock.is_own() && lock.lock(LONG).is_none());
        drop(guard);
        assert!(!lock.is_own() && lock.lock(LONG).is_some());
    }

    #[test]
    fn another_thread_waits_for_the_lock_up_to_the_timeout() {
        let lock = CallLock::default();
        std::thread::scope(|scope| {
            let guard = lock.lock(LONG).unwrap();
            let other = scope.spawn(|| lock.lock(Duration::from_millis(1)).is_none());
            assert!(other.join().unwrap());
            let other = scope.spawn(|| lock.lock(LONG).is_some());
            drop(guard);
            assert!(other.join().unwrap());
        });
    }

    #[test]
    fn a_panic_unlocks() {
        let lock = CallLock::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock(LONG);
            panic!("boom")
        }));
        assert!(panicked.is_err() && lock.lock(LONG).is_some());
    }
}
