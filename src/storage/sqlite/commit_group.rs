//! The queue of writers, and the groups of them that share a commit.
//!
//! The threads of this process get the *turn* in the order in which they ask for it; only who has the turn uses the
//! writing connection. A *long* write is a transaction of its own. A *short* write does not commit while another short
//! one is next in the queue: it hands the turn to that one with the transaction open, and waits. The last of such a
//! *group* commits for all of them and tells each. So threads that write at the same time share one commit and its wait
//! for the disk, and every write still runs on the thread that asked for it.
//!
//! Invariant: either someone has the turn, or nobody waits for it.
//! Invariant: a member of a group learns how the commit ended after it has ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sql::BackendError;

/// How many writes one commit holds at most.
pub(super) const MAX_MEMBERS: usize = 64;
/// When a group is this old nobody joins it. Other processes wait as long, and so does the first member. A write takes
/// longer the more bytes it has, so this limits the bytes, too.
const MAX_TIME: Duration = Duration::from_millis(5);
/// After a commit that took at least this long, the first of the next group waits for those who have just been told ..
const SLOW_COMMIT: Duration = Duration::from_micros(800);
/// .. for this part of the time: they come back at once if they write without a pause, and one commit for all is less
/// than one for half of them and another for the other half.
const GATHERING_PART: u32 = 8;

/// How often a thread that was woken before its turn yields its processor before it sleeps again: about a short write.
const YIELDS: u32 = 100;

/// Whether a write shares a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// It takes well under a millisecond.
    Short,
    Long,
}

/// How the commit of a group ended.
pub(super) type Outcome = Result<(), Arc<BackendError>>;

/// The writers of one database in this process.
pub(super) struct Writers {
    queue: Mutex<Queue>,
    arrival: Condvar,
    /// [`MAX_TIME`], but for tests, whose machine may be slow.
    pub(super) max_time: Duration,
}

impl Default for Writers {
    fn default() -> Self {
        Self { queue: Mutex::default(), arrival: Condvar::new(), max_time: MAX_TIME }
    }
}

#[derive(Default)]
struct Queue {
    /// Whether someone has the turn.
    is_taken: bool,
    /// What the next writer gets if nobody has the turn.
    idle: GroupState,
    waiting: VecDeque<(Length, Arc<Waiter>)>,
    /// How many long writes have the turn or wait for it.
    long_writes: usize,
    /// How many must wait until [`Writers::arrival`] is signalled; 0 if nobody listens.
    wanted: usize,
}

/// What one writer hands to the next.
#[derive(Default)]
struct GroupState {
    /// Whose writes are in the open transaction.
    members: Vec<Arc<Waiter>>,
    /// When the open transaction began; `None` if there is none.
    began: Option<Instant>,
    /// Since when every attempt to get the lock that other processes hold has failed.
    refused_since: Option<Instant>,
    /// How many threads were writing when the last group ended.
    expected: usize,
    /// How long its commit took.
    commit_time: Duration,
}

/// A thread that waits, for the turn and later for the end of its group.
#[derive(Default)]
struct Waiter {
    notice: Mutex<Option<Notice>>,
    signal: Condvar,
    /// Whether it was told what it waits for.
    is_notified: AtomicBool,
}

enum Notice {
    /// It is the next to get the turn.
    Soon,
    Turn(GroupState),
    End(Outcome),
}

impl Waiter {
    fn notify(&self, what: Notice) {
        let mut notice = lock(&self.notice);
        self.is_notified.store(!matches!(what, Notice::Soon), Ordering::Release);
        *notice = Some(what);
        drop(notice);
        self.signal.notify_one();
    }

    fn listen(&self) -> Notice {
        let mut notice = lock(&self.notice);
        loop {
            match notice.take() {
                Some(Notice::Soon) => {
                    drop(notice);
                    for _ in 0..YIELDS {
                        if self.is_notified.load(Ordering::Acquire) {
                            break;
                        }
                        std::thread::yield_now();
                    }
                    notice = lock(&self.notice);
                }
                Some(what) => return what,
                None => notice = self.signal.wait(notice).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// No code of a caller runs while one of these mutexes is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// Waits for the turn.
    pub(super) fn ask(&self, length: Length) -> Turn<'_> {
        self.ask_in(lock(&self.queue), length)
    }

    /// Waits for the turn of a short write, unless a long one comes before it: `None` then.
    pub(super) fn ask_unless_long(&self) -> Option<Turn<'_>> {
        let queue = lock(&self.queue);
        (queue.long_writes == 0).then(|| self.ask_in(queue, Length::Short))
    }

    /// Returns the turn of a long write if nobody has the turn.
    pub(super) fn try_ask(&self) -> Option<Turn<'_>> {
        let queue = lock(&self.queue);
        (!queue.is_taken).then(|| self.ask_in(queue, Length::Long))
    }

    /// Returns how many wait for the turn.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.queue).waiting.len()
    }

    /// Returns whether nobody has the turn.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        !lock(&self.queue).is_taken
    }

    fn ask_in<'w>(&'w self, mut queue: MutexGuard<'w, Queue>, length: Length) -> Turn<'w> {
        let asked = Instant::now();
        queue.long_writes += usize::from(length == Length::Long);
        if !queue.is_taken {
            queue.is_taken = true;
            let state = std::mem::take(&mut queue.idle);
            return Turn { writers: self, length, asked, waiter: None, state };
        }
        let waiter = Arc::new(Waiter::default());
        queue.waiting.push_back((length, Arc::clone(&waiter)));
        if queue.wanted > 0 && queue.waiting.len() >= queue.wanted {
            queue.wanted = 0;
            self.arrival.notify_one();
        }
        drop(queue);
        loop {
            // A member of a group learns of its end, but this one is in none yet.
            if let Notice::Turn(state) = waiter.listen() {
                return Turn { writers: self, length, asked, waiter: Some(waiter), state };
            }
        }
    }
}

/// The right to use the writing connection; dropping it gives the turn to the next in the queue.
pub(super) struct Turn<'w> {
    writers: &'w Writers,
    length: Length,
    asked: Instant,
    waiter: Option<Arc<Waiter>>,
    state: GroupState,
}

/// The writer that gets the turn with the open transaction.
pub(super) struct Next(Arc<Waiter>);

impl Turn<'_> {
    /// Returns how long the write has waited, in milliseconds.
    pub(super) fn waited_ms(&self) -> u64 {
        millis_since(self.asked)
    }

    /// Returns when the write asked for its turn.
    pub(super) fn asked(&self) -> Instant {
        self.asked
    }

    /// Returns whether a transaction is open, which this write joins.
    pub(super) fn is_in_group(&self) -> bool {
        self.state.began.is_some()
    }

    /// Returns what is left of the time for which this write waits for other processes.
    ///
    /// All in the queue wait while the first one polls, so that time counts for each of them.
    pub(super) fn left_of(&self, timeout: Duration) -> Duration {
        let since = self.state.refused_since.map(|since| since.max(self.asked));
        timeout.saturating_sub(since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Returns since when other processes have refused their lock; the poll for it updates this.
    pub(super) fn refused_since(&mut self) -> &mut Option<Instant> {
        &mut self.state.refused_since
    }

    /// Waits a moment for the threads that wrote in the last group, if its commit was slow.
    ///
    /// Before the transaction begins: no lock is held.
    pub(super) fn gather(&mut self) {
        let GroupState { expected, commit_time, .. } = self.state;
        if expected < 2 || commit_time < SLOW_COMMIT {
            return;
        }
        let until = Instant::now() + commit_time / GATHERING_PART;
        let mut queue = lock(&self.writers.queue);
        while queue.waiting.len() + 1 < expected.min(MAX_MEMBERS) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue.wanted = expected.min(MAX_MEMBERS) - 1;
            let waited = self.writers.arrival.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.wanted = 0;
    }

    /// Notes that a transaction has begun.
    pub(super) fn begin(&mut self) {
        self.state.began = Some(Instant::now());
    }

    /// Wakes the next writer before its turn, if it may join the open transaction.
    ///
    /// To wake a thread takes about as long as a short write. So one wakes while the other writes.
    pub(super) fn wake_next(&self) {
        if self.state.members.len() + 1 < MAX_MEMBERS
            && let Some((Length::Short, next)) = lock(&self.writers.queue).waiting.front()
        {
            next.notify(Notice::Soon);
        }
    }

    /// Returns how long ago the open transaction began.
    fn age(&self) -> Duration {
        self.state.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Returns the next writer, if it may join the open transaction.
    pub(super) fn next(&self) -> Option<Next> {
        if self.state.members.len() + 1 >= MAX_MEMBERS {
            return None;
        }
        let mut queue = lock(&self.writers.queue);
        match queue.waiting.front() {
            Some((Length::Short, _)) if self.age() < self.writers.max_time => {
                queue.waiting.pop_front().map(|(_, waiter)| Next(waiter))
            }
            _ => None,
        }
    }

    /// Hands the turn to the next writer, waits for the end of the group, and returns it.
    ///
    /// The connection must be free.
    pub(super) fn hand_over(mut self, next: Next) -> Outcome {
        let own = self.waiter.take().unwrap_or_default();
        let mut state = std::mem::take(&mut self.state);
        // The turn is no longer this one's to give away.
        std::mem::forget(self);
        state.members.push(Arc::clone(&own));
        next.0.notify(Notice::Turn(state));
        loop {
            // The turn was this one's before, so all it can be told is the end.
            if let Notice::End(outcome) = own.listen() {
                return outcome;
            }
        }
    }

    /// Tells all members how the transaction ended; `commit_time` is how long its commit took.
    pub(super) fn end(&mut self, outcome: &Outcome, commit_time: Duration) {
        self.state.began = None;
        self.state.commit_time = commit_time;
        let members = std::mem::take(&mut self.state.members);
        self.state.expected = members.len() + 1 + lock(&self.writers.queue).waiting.len();
        for member in members {
            member.notify(Notice::End(outcome.clone()));
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_in_group() {
            // Only a panic of talktree's own code leads here; the next writer rolls back what it left.
            let what = "a write of the same transaction panicked".to_owned();
            let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT);
            let error = rusqlite::Error::SqliteFailure(error, Some(what));
            self.end(&Err(Arc::new(BackendError::Sqlite(error))), Duration::ZERO);
        }
        let state = std::mem::take(&mut self.state);
        let mut queue = lock(&self.writers.queue);
        queue.long_writes -= usize::from(self.length == Length::Long);
        match queue.waiting.pop_front() {
            Some((_, next)) => {
                drop(queue);
                next.notify(Notice::Turn(state));
            }
            None => {
                queue.idle = state;
                queue.is_taken = false;
            }
        }
    }
}

/// Returns the milliseconds since then.
pub(super) fn millis_since(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
