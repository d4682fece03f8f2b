//! Workers: a thread for each chat that has work, up to a limit.
//!
//! Invariant: one thread at most works on a key, so that its work is done in order. A key that is woken while a thread works
//! on it is worked on again: the thread may have looked before the work was there.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::stop::Stop;

/// Threads that work on keys, such as chats. Cloning it is cheap; clones share the threads.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use std::time::Duration;
/// use talktree_telegram::{Stop, Workers};
///
/// let (sender, done) = mpsc::channel();
/// let work = move |chat: &str| drop(sender.send(chat.to_owned()));
/// let workers = Workers::new(2, Arc::new(Stop::default()), work);
/// workers.wake(["a", "b", "c"].map(str::to_owned));
/// workers.wait(Duration::from_secs(9));
/// assert_eq!(done.try_iter().count(), 3);
/// ```
#[derive(Clone)]
pub struct Workers(Arc<Shared>);

struct Shared {
    work: Box<dyn Fn(&str) + Send + Sync>,
    max: usize,
    stop: Arc<Stop>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The keys that are worked on or wait for a thread; whether they were woken meanwhile.
    keys: HashMap<String, bool>,
    waiting: VecDeque<String>,
    threads: usize,
}

impl Workers {
    /// Returns workers with at most `max` threads, none of which runs yet. A call of `work` does all work of a key, and must
    /// not panic.
    #[must_use]
    pub fn new(max: usize, stop: Arc<Stop>, work: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (state, ended) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { work: Box::new(work), max, stop, state, ended }))
    }

    /// Lets a thread work on each of these keys. Call it after their work is stored.
    pub fn wake(&self, keys: impl IntoIterator<Item = String>) {
        let mut state = self.state();
        for key in keys {
            if let Some(again) = state.keys.get_mut(&key) {
                *again = true;
            } else {
                state.keys.insert(key.clone(), false);
                state.waiting.push_back(key);
            }
        }
        while state.threads < state.keys.len().min(self.0.max) {
            let workers = self.clone();
            let thread = thread::Builder::new().name("chat".to_owned());
            // The thread blocks on the lock that is held here, then takes a key.
            if let Err(error) = thread.spawn(move || workers.run()) {
                tracing::error!(%error, threads = state.threads, "no further thread");
                return; // running threads take what waits, and so does the next `wake`
            }
            state.threads += 1;
        }
    }

    /// Waits until no thread works, but at most this long.
    pub fn wait(&self, time: Duration) {
        let state = self.state();
        drop(self.0.ended.wait_timeout_while(state, time, |state| state.threads > 0));
    }

    /// Works on one key after the other, until none waits.
    fn run(self) {
        while let Some(key) = self.take() {
            let mut again = true;
            while again {
                (self.0.work)(&key);
                let mut state = self.state();
                again = state.keys.get_mut(&key).is_some_and(std::mem::take);
                again &= !self.0.stop.is_ending();
                if !again {
                    state.keys.remove(&key);
                }
            }
        }
        self.0.ended.notify_all();
    }

    /// Returns a waiting key. If there is none, the thread ends; it is no longer counted, so that `wake` starts another.
    fn take(&self) -> Option<String> {
        let mut state = self.state();
        let key = state.waiting.pop_front().filter(|_| !self.0.stop.is_ending());
        state.threads -= usize::from(key.is_none());
        key
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("threads", &self.state().threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_key_has_one_thread_and_no_work_is_left() {
        let queues: Arc<Mutex<HashMap<String, VecDeque<u32>>>> = Arc::default();
        let working: Arc<Mutex<HashSet<String>>> = Arc::default();
        let done: Arc<Mutex<HashMap<String, Vec<u32>>>> = Arc::default();
        let most = Arc::new(AtomicUsize::new(0));
        let work = {
            let (queues, done, most) = (Arc::clone(&queues), Arc::clone(&done), Arc::clone(&most));
            move |key: &str| {
                assert!(working.lock().unwrap().insert(key.to_owned()), "two threads on {key}");
                most.fetch_max(working.lock().unwrap().len(), Ordering::Relaxed);
                loop {
                    let next = queues.lock().unwrap().get_mut(key).and_then(VecDeque::pop_front);
                    let Some(next) = next else { break };
                    done.lock().unwrap().entry(key.to_owned()).or_default().push(next);
                }
                working.lock().unwrap().remove(key);
            }
        };
        let workers = Workers::new(3, Arc::new(Stop::default()), work);
        for n in 0..2_000 {
            let key = format!("chat {}", n % 7);
            queues.lock().unwrap().entry(key.clone()).or_default().push_back(n);
            workers.wake([key]);
        }
        workers.wait(Duration::from_secs(20));
        let done = done.lock().unwrap();
        assert_eq!(done.values().map(Vec::len).sum::<usize>(), 2_000);
        assert!(done.values().all(|numbers| numbers.is_sorted()));
        assert!(most.load(Ordering::Relaxed) <= 3);
    }

    #[test]
    fn nothing_new_begins_at_the_end() {
        let count = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(Stop::default());
        let (counts, stopping) = (Arc::clone(&count), Arc::clone(&stop));
        let workers = Workers::new(1, stop, move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
            stopping.end();
        });
        workers.wake(["a", "b"].map(str::to_owned));
        workers.wait(Duration::from_secs(20));
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
