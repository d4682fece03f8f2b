//! The thread that drives all connections, and waiting for it without a runtime of one's own.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::task::unconstrained;

use super::Sent;
use crate::error::{Error, Result};

/// Returns a request that is on its way.
pub(super) fn sent<T>(mut request: Sent<T>) -> Sent<T>
where
    T: Send + 'static,
{
    match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => request,
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
    }
}

/// Returns the runtime that drives all connections of this process. One that was forked has no thread of its parent's.
pub(super) fn runtime() -> Result<Handle> {
    static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("talktree-postgres".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(handle)
    };
    let mut started = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*started {
        Some((process, handle)) if *process == std::process::id() => Ok(handle.clone()),
        _ => {
            let handle = start().map_err(|source| Error::Io {
                path: "the thread of the client of PostgreSQL".into(),
                source,
            })?;
            *started = Some((std::process::id(), handle.clone()));
            Ok(handle)
        }
    }
}

/// Waits for a future that another thread drives, until a time.
pub(super) fn wait<F: Future>(future: F, until: Option<Instant>) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    // In a task whose budget is spent tokio wakes this thread only when the task ends, which it does not while it waits here.
    let mut future = pin!(unconstrained(future));
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return Some(answer);
        }
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
