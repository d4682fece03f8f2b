//! What a worker has begun and done: its log on disk and the model that follows from it.
//!
//! A verb may make several commits. The journal is shared, so that a callback between them (a summarizer) can record
//! that one operation is done and the next begins.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::model::Model;
use super::operation::{Line, Log, Operation};
use crate::Result;

/// A journal. Clones write to the same log.
#[derive(Debug, Clone)]
pub(super) struct Journal(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    log: Log,
    model: Model,
    /// The operation that has begun.
    pending: Option<Operation>,
    /// Unexpected errors that callbacks reported.
    errors: Vec<String>,
}

impl Journal {
    pub(super) fn new(log: Log, model: Model) -> Self {
        Self(Arc::new(Mutex::new(Inner { log, model, pending: None, errors: Vec::new() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the model.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&Model) -> T) -> T {
        ask(&self.inner().model)
    }

    /// Records that a verb is about to be called.
    pub(super) fn begin(&self, operation: Operation) -> Result<()> {
        let mut inner = self.inner();
        inner.log.write(&Line::Begin(operation.clone()))?;
        inner.pending = Some(operation);
        Ok(())
    }

    /// Records that the pending operation is done.
    pub(super) fn done(&self) -> Result<()> {
        let mut inner = self.inner();
        inner.log.write(&Line::Done)?;
        let operation = inner.pending.take().ok_or("an end without a beginning")?;
        inner.model.apply(&operation);
        Ok(())
    }

    /// Records that a verb returned something wrong.
    pub(super) fn wrong(&self, what: &str) -> Result<()> {
        self.inner().log.write(&Line::Wrong(what.to_owned()))
    }

    /// Keeps an unexpected error that no verb returns.
    pub(super) fn add_error(&self, what: String) {
        self.inner().errors.push(what);
    }

    /// Fails if a callback reported an unexpected error.
    pub(super) fn check_errors(&self) -> Result<()> {
        match self.inner().errors.pop() {
            Some(what) => Err(what.into()),
            None => Ok(()),
        }
    }
}
