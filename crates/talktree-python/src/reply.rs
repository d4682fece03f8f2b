//! A reply that is streamed into a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::handle::{Handle, Life};
use crate::json;

/// A reply that is streamed.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Reply {
    /// Nothing after a `finish` that succeeded, and while a call has it: a listener that hears of the call may use the reply, too.
    reply: Handle<Arc<Mutex<Option<talktree_model::Reply>>>>,
    id: String,
    text: Mutex<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reply {
    pub(crate) fn keep(reply: talktree_model::Reply, life: &Life) -> Self {
        let id = reply.id().to_string();
        Self {
            reply: Handle::new(life, Arc::new(Mutex::new(Some(reply)))),
            id,
            text: Mutex::default(),
        }
    }
}

#[pymethods]
impl Reply {
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    /// The text so far, also after `finish`.
    #[getter]
    fn text(&self) -> String {
        lock(&self.text).clone()
    }

    /// Takes the next line; returns the new text, and whether the answer is complete.
    fn push(&self, py: Python<'_>, line: &str) -> PyResult<(Option<String>, bool)> {
        let pushed = self.reply.call(py, |kept| {
            let Some(mut reply) = lock(kept).take() else { return Ok(None) };
            let piece = reply.push(line);
            let is_complete = reply.is_complete();
            let mut text = lock(&self.text);
            let shown = text.len();
            text.push_str(&reply.text()[shown..]);
            *lock(kept) = Some(reply);
            Ok(Some((piece?, is_complete)))
        })?;
        pushed.ok_or_else(ended)
    }

    /// Returns the stored answer as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let finished = self.reply.call(py, |kept| {
            let Some(mut reply) = lock(kept).take() else { return Ok(None) };
            let finished = reply.finish();
            if finished.is_err() {
                *lock(kept) = Some(reply);
            }
            Ok(Some(json::text(&finished?)?))
        })?;
        finished.ok_or_else(ended)
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the reply was finished, or another call is using it")
}
