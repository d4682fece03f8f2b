//! Permits: how many turns work at once, and in which order.
//!
//! A turn needs a few milliseconds of a core before its reply begins. After a restart a hundred turns may come at once. If all
//! work at once, each reply begins when nearly all the work is done. If they work one after the other, half of the replies begin
//! in half that time. What a turn does after its reply has begun can wait: it gives way to the turns that wait for a permit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time that a turn gives way, so that its own reply ends while others keep coming.
const GIVES_WAY: Duration = Duration::from_millis(100);

/// A semaphore with an order: of the turns that wait for a permit, that of the oldest update gets the next one.
///
/// Hold a permit while you use a core or the disk, and drop it before you wait for the network.
///
/// ```
/// use talktree_telegram::Permits;
///
/// let permits = Permits::new(2);
/// let (first, second) = (permits.acquire(501), permits.acquire(502));
/// drop(first);
/// let third = permits.acquire(503);
/// ```
pub struct Permits {
    state: Mutex<State>,
    /// Signalled when nobody waits for a permit any more.
    nobody_waits: Condvar,
}

struct State {
    free: usize,
    /// By the number of the update, and by arrival.
    waiting: BTreeMap<(i64, u64), Arc<Waiter>>,
    next: u64,
}

#[derive(Default)]
struct Waiter {
    has_permit: Mutex<bool>,
    signal: Condvar,
}

impl Permits {
    /// Returns a semaphore with so many permits, at least one.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let state = State { free: count.max(1), waiting: BTreeMap::new(), next: 0 };
        Self { state: Mutex::new(state), nobody_waits: Condvar::new() }
    }

    /// Waits for a permit for the update with this number. Dropping the permit gives it to the oldest update that waits.
    #[must_use]
    pub fn acquire(&self, update: i64) -> Permit<'_> {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            return Permit(self);
        }
        let waiter = Arc::new(Waiter::default());
        let key = (update, state.next);
        state.next += 1;
        state.waiting.insert(key, Arc::clone(&waiter));
        drop(state);
        let has_permit = waiter.has_permit.lock().unwrap_or_else(PoisonError::into_inner);
        drop(waiter.signal.wait_while(has_permit, |has_permit| !*has_permit));
        Permit(self)
    }

    /// Waits until nobody waits for a permit, and at most 100 ms. The caller must have none.
    ///
    /// ```
    /// use talktree_telegram::Permits;
    ///
    /// let permits = Permits::new(1);
    /// let permit = permits.acquire(501); // nobody waits for another one
    /// permits.give_way();
    /// ```
    pub fn give_way(&self) {
        self.give_way_for(GIVES_WAY);
    }

    fn give_way_for(&self, longest: Duration) {
        let state = self.state();
        let waited =
            self.nobody_waits.wait_timeout_while(state, longest, |state| !state.waiting.is_empty());
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("free", &self.state().free).finish_non_exhaustive()
    }
}

/// A permit to work, given back when it is dropped.
#[derive(Debug)]
pub struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let Some((_, next)) = state.waiting.pop_first() else {
            state.free += 1;
            return;
        };
        if state.waiting.is_empty() {
            self.0.nobody_waits.notify_all();
        }
        drop(state);
        *next.has_permit.lock().unwrap_or_else(PoisonError::into_inner) = true;
        next.signal.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_oldest_update_is_the_next() {
        let permits = Permits::new(1);
        let order = Mutex::new(Vec::new());
        let first = permits.acquire(0);
        thread::scope(|scope| {
            for update in [5, 3, 9, 4, 3] {
                let (permits, order) = (&permits, &order);
                let before = permits.state().waiting.len();
                scope.spawn(move || {
                    let _permit = permits.acquire(update);
                    order.lock().unwrap().push(update);
                });
                while permits.state().waiting.len() == before {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [3, 3, 4, 5, 9]);
        assert_eq!(permits.state().free, 1);
    }

    #[test]
    fn giving_way_ends_when_nobody_waits_or_after_a_time() {
        let permits = Permits::new(1);
        let first = permits.acquire(1);
        permits.give_way_for(Duration::from_secs(60));
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                let _permit = permits.acquire(2);
                order.lock().unwrap().push("permit");
                thread::sleep(Duration::from_millis(5));
            });
            while permits.state().waiting.is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
            let began = Instant::now();
            permits.give_way_for(Duration::from_millis(20));
            assert!(began.elapsed() >= Duration::from_millis(20));
            assert!(order.lock().unwrap().is_empty());
            scope.spawn(|| {
                permits.give_way_for(Duration::from_secs(60));
                order.lock().unwrap().push("gave way");
            });
            thread::sleep(Duration::from_millis(20));
            assert!(order.lock().unwrap().is_empty());
            drop(first);
        });
        let mut order = order.into_inner().unwrap();
        order.sort_unstable();
        assert_eq!(order, ["gave way", "permit"]);
    }

    #[test]
    fn no_more_turns_work_than_there_are_permits_even_after_a_panic() {
        let permits = Permits::new(3);
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for update in 0..40 {
                let (permits, working, most) = (&permits, &working, &most);
                scope.spawn(move || {
                    let result = std::panic::catch_unwind(|| {
                        let _permit = permits.acquire(update);
                        most.fetch_max(
                            working.fetch_add(1, Ordering::SeqCst) + 1,
                            Ordering::SeqCst,
                        );
                        thread::sleep(Duration::from_millis(1));
                        working.fetch_sub(1, Ordering::SeqCst);
                        assert!(update % 8 != 0, "in a turn");
                    });
                    assert_eq!(result.is_err(), update % 8 == 0);
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(permits.state().free, 3);
    }
}
