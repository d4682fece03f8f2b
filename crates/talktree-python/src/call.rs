//! Calls of the library: without the interpreter's lock, with the exceptions of the callbacks that they called.
//!
//! A callback runs inside a call. Its exception reaches the caller where the verb returns errors, and otherwise the error
//! handler of the session. What neither can take is kept for this thread: `SystemExit` and `KeyboardInterrupt` are raised
//! when the call ends, other exceptions go to `sys.unraisablehook`.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use talktree::{BoxError, Error, Result};

use crate::error::exception;
use crate::fork;
use crate::handle::{Inside, Life};

/// How often a long call of the main thread looks for signals.
const TICK: Duration = Duration::from_millis(50);

thread_local! {
    static LEFT: RefCell<Left> = const { RefCell::new(Left { pending: None, unheard: None }) };
}

/// Exceptions of callbacks that no verb has returned.
struct Left {
    /// Ends the program, or the call at least.
    pending: Option<PyErr>,
    /// Waits for the error handler of the session.
    unheard: Option<Unheard>,
}

struct Unheard {
    error: PyErr,
    /// Whether the handler may have received such an error before; then it is not called again.
    may_be_known: bool,
}

impl Left {
    fn take() -> Self {
        LEFT.with_borrow_mut(|left| Self {
            pending: left.pending.take(),
            unheard: left.unheard.take(),
        })
    }
}

/// Carries an exception of a progress callback through the library to the call.
struct Raised(PyErr);

/// Ends the call that is running with this exception.
pub(crate) fn abandon(error: PyErr) -> ! {
    resume_unwind(Box::new(Raised(error)))
}

/// Runs a function of the library without the interpreter's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> T {
    py.detach(|| fork::inside(call))
}

/// Runs Python code from a callback; `None` if the interpreter is shutting down.
pub(crate) fn attached<T>(code: impl for<'py> FnOnce(Python<'py>) -> T) -> Option<T> {
    fork::outside(|| Python::try_attach(code))
}

/// Calls Python code from a callback.
///
/// # Errors
/// The exception, as a [`PyErr`]; a text if the interpreter is shutting down.
pub(crate) fn python<T>(
    call: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>,
) -> std::result::Result<T, BoxError> {
    let called = attached(|py| {
        call(py).inspect_err(|error| {
            if !error.is_instance_of::<PyException>(py) {
                let pending = error.clone_ref(py);
                LEFT.with_borrow_mut(|left| left.pending = Some(pending));
            }
        })
    });
    match called {
        Some(answer) => answer.map_err(Into::into),
        None => Err("the interpreter is shutting down".into()),
    }
}

/// Calls Python code where the library takes no error: the error handler receives the exception instead of the error that
/// the library makes of it.
///
/// # Panics
/// If the code raises; the library reports that to the error handler.
pub(crate) fn python_or_panic<T>(call: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> T {
    python(call).unwrap_or_else(|error| {
        let text = error.to_string();
        keep_unheard(error, false);
        // Without the panic hook, which would print it.
        resume_unwind(Box::new(text))
    })
}

/// Returns whether a callback of the present call raised what ends the program or the task.
pub(crate) fn has_pending() -> bool {
    LEFT.with_borrow(|left| left.pending.is_some())
}

/// Keeps the exception of a callback for the error handler. One that no handler takes goes to `sys.unraisablehook`, unless
/// the handler may know it already.
pub(crate) fn keep_unheard(error: BoxError, may_be_known: bool) {
    if let Ok(error) = error.downcast::<PyErr>() {
        let unheard = Unheard { error: *error, may_be_known };
        LEFT.with_borrow_mut(|left| left.unheard = Some(unheard));
    }
}

/// Returns the exception of the callback that just failed.
pub(crate) fn take_unheard() -> Option<PyErr> {
    LEFT.with_borrow_mut(|left| left.unheard.take()).map(|unheard| unheard.error)
}

type Outcome<T> = std::result::Result<Result<T>, Box<dyn Any + Send>>;

/// Runs a call of the library without the interpreter's lock.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    life: &Life,
    call: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let outcome = detached(py, || catch_unwind(AssertUnwindSafe(call)));
    finish(py, life, outcome, Left::take())
}

/// Runs a call that may take long. In the main thread, a signal whose handler raises interrupts the work of the store.
pub(crate) fn run_long<T: Send>(
    py: Python<'_>,
    life: &Life,
    call: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run(py, life, call);
    }
    let (joined, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (done, ended) = mpsc::channel::<()>();
            let worker = thread::Builder::new().spawn_scoped(scope, move || {
                let _done = done;
                let _inside = Inside::new();
                (fork::inside(|| catch_unwind(AssertUnwindSafe(call))), Left::take())
            });
            let mut raised = None;
            while ended.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals().err());
                }
                if raised.is_some() {
                    life.interrupt();
                }
            }
            (worker.map(thread::ScopedJoinHandle::join), raised)
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match joined {
        Ok(Ok((outcome, left))) => finish(py, life, outcome, left),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => Err(PyRuntimeError::new_err(format!("no thread for this call: {error}"))),
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let (main, current) =
        (threading.call_method0("main_thread")?, threading.call_method0("current_thread")?);
    Ok(main.is(&current))
}

fn finish<T>(py: Python<'_>, life: &Life, outcome: Outcome<T>, left: Left) -> PyResult<T> {
    if let Some(unheard) = left.unheard.filter(|unheard| !unheard.may_be_known) {
        unheard.error.write_unraisable(py, None);
    }
    if let Some(error) = left.pending {
        return Err(error);
    }
    match outcome {
        Ok(Ok(done)) => Ok(done),
        // The work was interrupted because the store was closed.
        Ok(Err(Error::Interrupted)) if life.is_closed() => Err(life.closed_error(py)),
        Ok(Err(error)) => Err(exception(py, &error)),
        Err(panic) => match panic.downcast::<Raised>() {
            Ok(raised) => Err(raised.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// The interpreter that imported the module first; -1 before that.
static OWNER: AtomicI64 = AtomicI64::new(-1);

/// Claims the module for the present interpreter.
///
/// # Errors
/// `ImportError` in any other interpreter of the process.
pub(crate) fn claim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let id = present(module.py());
    match OWNER.compare_exchange(-1, id, Ordering::SeqCst, Ordering::SeqCst) {
        Err(owner) if owner != id => Err(PyImportError::new_err(
            "talktree is in use by another interpreter of this process, and cannot be imported in two",
        )),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "PyO3 has no safe call for it")]
fn present(_py: Python<'_>) -> i64 {
    // SAFETY: the thread is attached to an interpreter, as the argument proves; the state is only read.
    unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) }
}
