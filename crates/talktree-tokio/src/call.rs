//! Calls: the work that a pool runs, and its outcome.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use talktree::{Error, Result};
use tokio::sync::oneshot;

/// What an error of a call calls it.
const WHAT: &str = "a call on the blocking pool";

/// Work that does not return, but sends its outcome.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The outcome of a call, to be awaited. Dropping it cancels the call if it has not begun.
///
/// A panic of the call is [`Error::Callback`], and so is the end of the runtime before the call was run.
///
/// ```
/// use talktree::{Error, Result};
/// use talktree_tokio::Pool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let pool = Pool::new(8);
/// let panicked: Result<()> = pool.run(|| panic!("boom")).await;
/// assert_eq!(panicked.unwrap_err().to_string(), "a call on the blocking pool failed: it panicked: boom");
/// # }
/// ```
#[must_use = "a call whose outcome is dropped is cancelled if it has not begun"]
pub struct Call<T>(oneshot::Receiver<Result<T>>);

impl<T: Send + 'static> Call<T> {
    /// Returns a call, and the work that completes it.
    pub(crate) fn new(work: impl FnOnce() -> Result<T> + Send + 'static) -> (Self, Work) {
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            if sender.is_closed() {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                let why = format!("it panicked: {}", text_of(&*panic));
                // The payload is the program's, too, and may panic when it is dropped.
                if let Err(other) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
                    std::mem::forget(other);
                }
                Err(Error::Callback { what: WHAT, why })
            });
            // Nobody waits for the outcome of a cancelled call; a value that panics when it is dropped ends only itself.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(sender.send(outcome))));
        };
        (Self(receiver), Box::new(work))
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|outcome| {
            outcome.unwrap_or_else(|_| {
                let why = "it was not run: no tokio runtime is running".to_owned();
                Err(Error::Callback { what: WHAT, why })
            })
        })
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
