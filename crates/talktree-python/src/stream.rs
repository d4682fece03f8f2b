//! Messages one after another, read in batches.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::handle::{Handle, Life};
use crate::json;

/// A stream of messages.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Messages(Handle<Arc<Mutex<talktree::Messages>>>);

impl Messages {
    pub(crate) fn keep(messages: talktree::Messages, life: &Life) -> Self {
        Self(Handle::new(life, Arc::new(Mutex::new(messages))))
    }
}

#[pymethods]
impl Messages {
    /// Returns the next messages as a JSON list, at most so many; an empty list at the end.
    fn next(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        self.0.call(py, |messages| {
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            let batch: talktree::Result<Vec<talktree::Message>> =
                messages.by_ref().take(limit).collect();
            json::text(&batch?)
        })
    }
}
