//! Forks of the process, which wait until no thread is inside the library.
//!
//! A child has only the thread that forked. A lock that another thread held at the fork stays locked in the child forever:
//! that of SQLite's allocator, for example, which all stores of a process share. So a fork waits for the threads that are
//! inside, and no other one enters before it is done. Callbacks are outside: they run Python code, which may take long and
//! may fork. If a wait takes too long, it ends. If a thread was inside at the fork then, the child cannot open stores.
//!
//! Invariant: the state is atomic, because a child could inherit a locked mutex.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::error::of_class;

/// How long a fork waits for threads that are inside, and a thread for a fork. Most calls take milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a waiting thread looks again.
const TICK: Duration = Duration::from_micros(200);

/// One fork in [`STATE`], above the number of threads that are inside.
const FORK: u32 = 1 << 24;

/// How many threads are inside the library, and how many are about to fork.
static STATE: AtomicU32 = AtomicU32::new(0);

/// Whether the present fork takes too long. Then no other call waits for it.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// Whether a thread was inside when this process was forked.
static IS_LOCKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn has_threads_inside(state: u32) -> bool {
    !state.is_multiple_of(FORK)
}

/// Marks this thread as inside the library.
struct Inside;

impl Inside {
    /// Waits for the forks that have begun, unless one takes too long: it may wait for a lock that this thread has.
    fn enter() -> Self {
        let mut since = None;
        loop {
            let state = STATE.load(Ordering::SeqCst);
            if state >= FORK && !IS_LATE.load(Ordering::SeqCst) {
                if since.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
                    thread::sleep(TICK);
                    continue;
                }
                IS_LATE.store(true, Ordering::SeqCst);
            }
            let entered = state + 1;
            let exchanged =
                STATE.compare_exchange(state, entered, Ordering::SeqCst, Ordering::SeqCst);
            if exchanged.is_ok() {
                IS_INSIDE.set(true);
                return Self;
            }
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
        STATE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Enters the library. The thread must not have the interpreter's lock: the thread that forks needs it.
pub(crate) fn inside<T>(call: impl FnOnce() -> T) -> T {
    let _inside = (!IS_INSIDE.get()).then(Inside::enter);
    call()
}

/// Leaves the library for a callback.
pub(crate) fn outside<T>(callback: impl FnOnce() -> T) -> T {
    /// Enters again when the callback has ended, also by a panic.
    struct Outside;

    impl Drop for Outside {
        fn drop(&mut self) {
            std::mem::forget(Inside::enter());
        }
    }

    let _outside = IS_INSIDE.get().then(|| {
        drop(Inside);
        Outside
    });
    callback()
}

/// Refuses to use the library in a child whose parent had a thread inside.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    if !IS_LOCKED.load(Ordering::SeqCst) {
        return Ok(());
    }
    let text = "another thread was in a long call of talktree when this process was forked, so this process cannot open \
                a store; fork when no such call runs (or use start method \"spawn\" of multiprocessing)";
    Err(of_class(py, "ForkedError", text, &json!({})))
}

#[pyfunction]
fn before(py: Python<'_>) {
    if STATE.fetch_add(FORK, Ordering::SeqCst) < FORK {
        IS_LATE.store(false, Ordering::SeqCst);
    }
    py.detach(|| {
        let since = Instant::now();
        while has_threads_inside(STATE.load(Ordering::SeqCst)) && since.elapsed() < PATIENCE {
            thread::sleep(TICK);
        }
    });
}

#[pyfunction]
fn after_in_parent() {
    STATE.fetch_sub(FORK, Ordering::SeqCst);
}

#[pyfunction]
fn after_in_child() {
    let state = STATE.swap(0, Ordering::SeqCst);
    if has_threads_inside(state) {
        IS_LOCKED.store(true, Ordering::SeqCst);
    }
}

/// Lets the interpreter call this module at each fork.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Windows has no forks.
    let Ok(register) = py.import("os")?.getattr("register_at_fork") else { return Ok(()) };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_in_child, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}
