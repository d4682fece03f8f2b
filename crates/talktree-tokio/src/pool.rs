//! The pool, and its sessions.

use std::fmt;
use std::sync::Arc;

use talktree::{Result, Session};

use crate::call::Call;
use crate::queue::Queues;

/// Runs calls on tokio's blocking threads, at most so many at a time. Clones share the bound and the order of sessions.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_tokio::Pool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> talktree::Result<()> {
/// let pool = Pool::new(8);
/// let store = pool.run(Store::open_in_memory).await?;
/// let chat = pool.session(store.session("s")?);
/// chat.run(|chat| chat.append(Message::user("hello"))).await?;
///
/// let found = pool.run(move || store.search("hello").run()).await?;
/// assert_eq!(found.hits.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool(Arc<Queues>);

impl Pool {
    /// Returns a pool that runs at most `max` calls at a time; at least one.
    ///
    /// A store has one writer at a time, so more than a few threads only help reads. tokio's own bound on blocking threads
    /// (512) is shared with the rest of the program.
    #[must_use]
    pub fn new(max: usize) -> Self {
        // More than a semaphore can count is no bound.
        Self(Arc::new(Queues::new(max.clamp(1, tokio::sync::Semaphore::MAX_PERMITS))))
    }

    /// Returns a session whose calls run in this pool, in order.
    #[must_use]
    pub fn session(&self, session: Session) -> AsyncSession {
        AsyncSession { session, pool: self.clone() }
    }

    /// Runs a call that belongs to no session, such as a search over all of them; in no order.
    ///
    /// It must be called inside a tokio runtime.
    ///
    /// # Errors
    /// That of `work`; [`Error::Callback`](talktree::Error::Callback) if it panics or the runtime ends before it runs.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Call<T> {
        let (call, work) = Call::new(work);
        self.0.run(work);
        call
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// A session whose calls run in a pool, in the order in which they were made.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_tokio::Pool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> talktree::Result<()> {
/// let chat = Pool::new(8).session(Store::open_in_memory()?.session("s")?);
/// // Made in this order, so run in this order.
/// let first = chat.run(|chat| chat.append(Message::user("Can we deploy?")));
/// let second = chat.run(|chat| chat.append(Message::user("On Friday?")));
/// second.await?;
/// first.await?;
/// let texts = chat.run(|chat| Ok(chat.history()?.iter().map(Message::text).collect::<Vec<_>>())).await?;
/// assert_eq!(texts, ["Can we deploy?", "On Friday?"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AsyncSession {
    session: Session,
    pool: Pool,
}

impl AsyncSession {
    /// Runs a call with the session on a blocking thread, after all calls for the session that were made before.
    ///
    /// Everything that belongs together goes into one call: an append and the read after it. The call takes its place now;
    /// awaiting it returns its outcome. It must be called inside a tokio runtime.
    ///
    /// # Errors
    /// That of `work`; [`Error::Callback`](talktree::Error::Callback) if it panics or the runtime ends before it runs.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Session) -> Result<T> + Send + 'static,
    ) -> Call<T> {
        let session = self.session.clone();
        let (call, work) = Call::new(move || work(&session));
        self.pool.0.push(self.session.id(), work);
        call
    }

    /// Returns the session, for calls that block the current thread.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}
