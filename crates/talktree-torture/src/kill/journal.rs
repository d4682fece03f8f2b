//! What a worker has begun and done: its log on the disk, and the model that it gives.
//!
//! A verb may make several commits. What runs between them, a summarizer say, tells the journal that the one is done and
//! the next begins; so the journal is shared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::deed::{Deed, Line, Log};
use super::model::Model;
use crate::Result;

/// A journal. Clones write to the same one.
#[derive(Debug, Clone)]
pub(super) struct Journal(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    log: Log,
    model: Model,
    /// What has begun.
    pending: Option<Deed>,
    /// What was heard of as failed that should not fail.
    heard: Vec<String>,
}

impl Journal {
    pub(super) fn new(log: Log, model: Model) -> Self {
        Self(Arc::new(Mutex::new(Inner { log, model, pending: None, heard: Vec::new() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the model.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&Model) -> T) -> T {
        ask(&self.inner().model)
    }

    /// Notes that a verb is called.
    pub(super) fn begin(&self, deed: Deed) -> Result<()> {
        let mut inner = self.inner();
        inner.log.write(&Line::Begin(deed.clone()))?;
        inner.pending = Some(deed);
        Ok(())
    }

    /// Notes that what was begun has been done.
    pub(super) fn done(&self) -> Result<()> {
        let mut inner = self.inner();
        inner.log.write(&Line::Done)?;
        let deed = inner.pending.take().ok_or("an end without a beginning")?;
        inner.model.apply(&deed);
        Ok(())
    }

    /// Notes that a verb answered as it should not.
    pub(super) fn wrong(&self, what: &str) -> Result<()> {
        self.inner().log.write(&Line::Wrong(what.to_owned()))
    }

    /// Notes a failure that no verb answers with.
    pub(super) fn hear(&self, what: String) {
        self.inner().heard.push(what);
    }

    /// Fails if a failure was heard of.
    pub(super) fn heard(&self) -> Result<()> {
        match self.inner().heard.pop() {
            Some(what) => Err(what.into()),
            None => Ok(()),
        }
    }
}
