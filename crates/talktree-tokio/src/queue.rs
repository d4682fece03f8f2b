//! Queues: the calls that wait for their session.
//!
//! A queue exists while a call of its session waits or runs, and then has one worker. The worker takes a permit of the pool,
//! runs a few calls on a blocking thread, and gives the permit back, so that a busy session does not keep the others
//! waiting.
//!
//! Invariant: a queue in the map has a worker. If the runtime drops the worker, the queue goes with it, and with it the
//! senders of its calls, so nobody waits for a call that will not run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talktree::SessionId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::call::Work;

/// How many calls of one session run before the others have their turn.
const MAX_TURN: usize = 16;

pub(crate) struct Queues {
    waiting: Mutex<HashMap<SessionId, VecDeque<Work>>>,
    permits: Arc<Semaphore>,
}

impl Queues {
    pub(crate) fn new(max: usize) -> Self {
        Self { waiting: Mutex::default(), permits: Arc::new(Semaphore::new(max)) }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, VecDeque<Work>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call to the queue of a session. Outside of a runtime it is dropped.
    pub(crate) fn push(self: &Arc<Self>, session: &SessionId, work: Work) {
        let Ok(runtime) = Handle::try_current() else { return };
        {
            let mut waiting = self.waiting();
            if let Some(queue) = waiting.get_mut(session) {
                return queue.push_back(work);
            }
            waiting.insert(session.clone(), VecDeque::from([work]));
        }
        let worker = Worker { queues: Arc::clone(self), session: session.clone(), is_done: false };
        drop(runtime.spawn(worker.run()));
    }

    /// Runs work that belongs to no session. Outside of a runtime it is dropped.
    pub(crate) fn run(&self, work: Work) {
        let Ok(runtime) = Handle::try_current() else { return };
        let permits = Arc::clone(&self.permits);
        drop(runtime.spawn(async move {
            let Ok(permit) = permits.acquire_owned().await else { return };
            // Awaited, so that the permit is held until the work is done.
            let _ = tokio::task::spawn_blocking(work).await;
            drop(permit);
        }));
    }
}

struct Worker {
    queues: Arc<Queues>,
    session: SessionId,
    /// Whether the queue was empty, and has been removed.
    is_done: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_done {
            let calls = self.queues.waiting().remove(&self.session);
            // Dropped outside the lock: what a call holds may use the pool when it is dropped.
            drop(calls);
        }
    }
}

impl Worker {
    async fn run(self) {
        let mut worker = Some(self);
        while let Some(this) = worker.take() {
            let permits = Arc::clone(&this.queues.permits);
            // The semaphore is never closed.
            let Ok(permit) = permits.acquire_owned().await else { return };
            let turn = tokio::task::spawn_blocking(move || this.turn());
            // An error: the runtime ends, and has dropped the worker.
            worker = turn.await.unwrap_or_default();
            drop(permit);
            // A turn may end before it is awaited. Without a pause, workers that have not asked for a permit would wait.
            tokio::task::yield_now().await;
        }
    }

    /// Runs some calls; returns the worker if more may wait.
    fn turn(mut self) -> Option<Self> {
        for _ in 0..MAX_TURN {
            match self.next() {
                // A call catches its own panics.
                Some(work) => work(),
                None => return None,
            }
        }
        Some(self)
    }

    /// Takes the next call. An empty queue is removed under the same lock, so that the next call begins another.
    fn next(&mut self) -> Option<Work> {
        let mut waiting = self.queues.waiting();
        let work = waiting.get_mut(&self.session).and_then(VecDeque::pop_front);
        if work.is_none() {
            waiting.remove(&self.session);
            self.is_done = true;
        }
        work
    }
}
