//! A subscription to changes.

use pyo3::prelude::*;
use talktree::Event;

use crate::call::{detached, python_or_panic};
use crate::callback::Function;
use crate::handle::{Life, Slot};
use crate::json;

/// A subscription; it ends with `close`, or when it is collected.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Subscription(Slot<talktree::Subscription>);

impl Subscription {
    pub(crate) fn keep(subscription: talktree::Subscription, life: &Life) -> Self {
        Self(life.keep(subscription))
    }

    /// Returns the listener of a Python callable, which receives an event as JSON.
    pub(crate) fn call(listener: Function) -> impl Fn(&Event) + Send + Sync + 'static {
        move |event| {
            let event = json::text(event);
            python_or_panic(|py| {
                let event = event.map_err(|error| crate::error::exception(py, &error))?;
                listener.bind(py).call1((event,)).map(drop)
            });
        }
    }
}

#[pymethods]
impl Subscription {
    fn close(&self, py: Python<'_>) {
        let subscription = self.0.take();
        detached(py, || drop(subscription));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}
