//! Calls [`talktree`] from tokio.
//!
//! Every call of talktree may wait for the disk, so it must not run on a worker thread of the runtime. A [`Pool`] runs calls on
//! tokio's blocking threads, at most so many at a time. An [`AsyncSession`] runs the calls for one session in the order in
//! which they were made; those for different sessions run side by side.
//!
//! ```
//! use talktree::{Message, Store};
//! use talktree_tokio::Pool;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> talktree::Result<()> {
//! let store = Store::open_in_memory()?;
//! let pool = Pool::new(8);
//! let chat = pool.session(store.session("telegram:4711")?);
//!
//! let history = chat.run(|chat| {
//!     chat.append(Message::user("Can we deploy on Friday?"))?;
//!     chat.history()
//! }).await?;
//! assert_eq!(history.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! A call takes its place in the order when [`run`](AsyncSession::run) is called, not when its future is polled. All
//! sessions of one id in one pool share an order, whatever handle they come from. Use a pool for each store.
//!
//! # Cancellation
//!
//! A call runs even if its future is never polled. Dropping the future of a call that has not begun cancels it. A call that
//! has begun runs to its end, and what it wrote stays written. So give a message its id before the call and append the same
//! message again if the outcome is not known: a known id is a no-op.
//!
//! # It is not
//!
//! - A way to await inside a call: the function given to `run` is synchronous. Call the model between two calls.
//! - Reentrant: a call that blocks on another call for its own session waits for ever, because that one comes after it.

mod call;
mod pool;
mod queue;

pub use call::Call;
pub use pool::{AsyncSession, Pool};

/// Runs the examples of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/async.md")]
    mod with_async {}
}
