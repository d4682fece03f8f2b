//! What a store has opened, and how that ends: by `close`, by a fork, with its last handle.
//!
//! Everything that was opened from one store shares a [`Life`]. Each Python object keeps its part of the library in a
//! [`Handle`], whose content `close` takes away. A call works on a clone of the content, so a call that runs while the
//! store is closed comes to its end, and `close` waits for it.
//!
//! Invariant: after a fork, the child neither uses nor drops what the parent opened. SQLite forbids the use, and a drop
//! would close the file, with a checkpoint of a log that the parent still writes.

use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use serde_json::json;
use talktree::{InterruptHandle, Result};

use crate::call::{detached, run, run_long};
use crate::error::of_class;

/// How often `close` looks for signals while it waits.
const TICK: Duration = Duration::from_millis(50);

/// The files that this process and the processes that it was forked from have open.
static OPEN_FILES: Mutex<Vec<OpenFile>> = Mutex::new(Vec::new());

#[derive(PartialEq)]
struct OpenFile {
    path: PathBuf,
    process: u32,
}

std::thread_local! {
    /// How many calls run inside each other in this thread.
    static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The life of a store: shared by everything that was opened from it.
#[derive(Clone)]
pub(crate) struct Life(Arc<Inner>);

struct Inner {
    process: u32,
    file: Mutex<Option<PathBuf>>,
    interrupt: InterruptHandle,
    calls: Mutex<Calls>,
    ended: Condvar,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Calls {
    is_closed: bool,
    running: usize,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Weak<dyn Clear>>,
    /// Dropped handles are removed when there are this many.
    prune_at: usize,
}

impl Life {
    /// Returns the life of a store that was opened now.
    pub(crate) fn new(file: Option<PathBuf>, interrupt: InterruptHandle) -> Self {
        let process = process::id();
        if let Some(path) = file.clone() {
            lock(&OPEN_FILES).push(OpenFile { path, process });
        }
        Self(Arc::new(Inner {
            process,
            file: Mutex::new(file),
            interrupt,
            calls: Mutex::default(),
            ended: Condvar::new(),
            slots: Mutex::default(),
        }))
    }

    /// Returns the path under which a file is known, and refuses one that was open when this process was forked: the
    /// child would act as if it had locks that only the parent has.
    pub(crate) fn file_to_open(py: Python<'_>, path: &Path) -> PyResult<Option<PathBuf>> {
        let Ok(path) = path.canonicalize() else { return Ok(None) };
        let process = process::id();
        if lock(&OPEN_FILES).iter().any(|open| open.path == path && open.process != process) {
            let text = format!(
                "{} was open when this process was forked; close the store before the fork, or open it only in the \
                 child (start method \"spawn\" of multiprocessing does that)",
                path.display()
            );
            return Err(of_class(py, "ForkedError", &text, &json!({})));
        }
        Ok(Some(path))
    }

    fn is_of_this_process(&self) -> bool {
        self.0.process == process::id()
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0.calls).is_closed
    }

    /// Interrupts the long work of the store.
    pub(crate) fn interrupt(&self) {
        self.0.interrupt.interrupt();
    }

    pub(crate) fn closed_error(&self, py: Python<'_>) -> PyErr {
        of_class(py, "ClosedError", "the store is closed", &json!({}))
    }

    /// Begins a call.
    ///
    /// # Errors
    /// `ForkedError` in a child of the process that opened the store, `ClosedError` after `close`.
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Running> {
        if !self.is_of_this_process() {
            let text = "the store was opened before this process was forked; open it in the child";
            return Err(of_class(py, "ForkedError", text, &json!({})));
        }
        let mut calls = lock(&self.0.calls);
        if calls.is_closed {
            drop(calls);
            return Err(self.closed_error(py));
        }
        calls.running += 1;
        drop(calls);
        Ok(Running { life: self.clone(), _inside: Inside::new() })
    }

    /// Closes the store: interrupts long work, takes the content of all handles, and waits for the calls that run, unless a
    /// callback inside one of them closes the store. `is_inside` returns whether this thread, which is not that of a call, runs
    /// a callback or blocks the event loop of one. It is asked again and again, because a call may begin one meanwhile.
    ///
    /// # Errors
    /// What a signal handler raises while it waits; the store is closed all the same.
    pub(crate) fn close(&self, py: Python<'_>, is_inside: &Bound<'_, PyAny>) -> PyResult<()> {
        // Before any lock: another thread may have held it when the process was forked.
        if !self.is_of_this_process() {
            return Ok(());
        }
        lock(&self.0.calls).is_closed = true;
        self.interrupt();
        detached(py, || {
            let slots = mem::take(&mut lock(&self.0.slots).slots);
            slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.clear());
        });
        while lock(&self.0.calls).running > 0 {
            if DEPTH.get() > 0 || is_inside.call0()?.is_truthy()? {
                return Ok(());
            }
            py.detach(|| {
                let calls = lock(&self.0.calls);
                if calls.running > 0 {
                    drop(self.0.ended.wait_timeout(calls, TICK));
                }
            });
            py.check_signals()?;
        }
        self.0.forget_file();
        Ok(())
    }

    /// Registers something that the store opened.
    pub(crate) fn keep<T: Send + 'static>(&self, value: T) -> Slot<T> {
        let content = Arc::new(Content { value: Mutex::new(Some(value)), process: self.0.process });
        let weak: Weak<dyn Clear> = Arc::downgrade(&content) as Weak<dyn Clear>;
        let mut slots = lock(&self.0.slots);
        if slots.slots.len() >= slots.prune_at {
            slots.slots.retain(|slot| slot.strong_count() > 0);
            slots.prune_at = (slots.slots.len() * 2).max(64);
        }
        slots.slots.push(weak);
        Slot { life: self.clone(), content }
    }
}

impl Inner {
    fn forget_file(&self) {
        if let Some(path) = lock(&self.file).take() {
            let mut files = lock(&OPEN_FILES);
            let entry = OpenFile { path, process: self.process };
            if let Some(at) = files.iter().position(|open| *open == entry) {
                files.swap_remove(at);
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a child, the entry says that the parent may still have the file open.
        if self.process == process::id() {
            self.forget_file();
        }
    }
}

/// Marks this thread as inside a call.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn new() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// A call that runs.
pub(crate) struct Running {
    life: Life,
    _inside: Inside,
}

impl Drop for Running {
    fn drop(&mut self) {
        let inner = &self.life.0;
        let mut calls = lock(&inner.calls);
        calls.running -= 1;
        if calls.running == 0 {
            inner.ended.notify_all();
        }
    }
}

trait Clear: Send + Sync {
    fn clear(&self);
}

struct Content<T> {
    value: Mutex<Option<T>>,
    process: u32,
}

impl<T: Send> Clear for Content<T> {
    fn clear(&self) {
        let value = lock(&self.value).take();
        // Outside the lock: a drop may call Python.
        drop(value);
    }
}

impl<T> Drop for Content<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(value.take());
        }
    }
}

/// Something that the store opened, until it is closed.
pub(crate) struct Slot<T> {
    life: Life,
    content: Arc<Content<T>>,
}

impl<T: Send + 'static> Slot<T> {
    pub(crate) fn life(&self) -> &Life {
        &self.life
    }

    /// Takes the content out, if this process may drop it.
    pub(crate) fn take(&self) -> Option<T> {
        match self.life.is_of_this_process() {
            true => lock(&self.content.value).take(),
            false => None,
        }
    }
}

/// A handle of the library, as a Python object keeps it.
pub(crate) struct Handle<T>(Slot<T>);

impl<T: Clone + Send + Sync + 'static> Handle<T> {
    pub(crate) fn new(life: &Life, value: T) -> Self {
        Self(life.keep(value))
    }

    pub(crate) fn life(&self) -> &Life {
        self.0.life()
    }

    fn begin(&self, py: Python<'_>) -> PyResult<(T, Running)> {
        let running = self.life().enter(py)?;
        let value = lock(&self.0.content.value).clone();
        // A close between the two.
        let value = value.ok_or_else(|| self.life().closed_error(py))?;
        Ok((value, running))
    }

    /// Runs a call of the library.
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T) -> Result<R> + Send,
    ) -> PyResult<R> {
        let (value, running) = self.begin(py)?;
        let answer = run(py, self.life(), move || {
            let answer = call(&value);
            drop(value);
            answer
        });
        drop(running);
        answer
    }

    /// Runs a call of the library that may take long.
    pub(crate) fn call_long<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T) -> Result<R> + Send,
    ) -> PyResult<R> {
        let (value, running) = self.begin(py)?;
        let answer = run_long(py, self.life(), move || {
            let answer = call(&value);
            drop(value);
            answer
        });
        drop(running);
        answer
    }
}
