//! Compaction of a session: by hand, by a model, and automatically after an append.
//!
//! A model takes seconds to write a summary, so none is asked inside a transaction or under a lock.
//! Work is in two phases ([`by_model`]): a *plan* holds the range to compact, the prompt to send and
//! what was seen of the range; a *commit* stores the summary if the range still reads as it did.
//! [`Session::compact`] runs both with the session's own summarizer, and [`auto`] runs them after an
//! append that takes the window over its threshold: at once, or on the program's executor. With a policy of
//! the program, the range and the summary are its answer instead. [`by_hand`] adds a summary to any range.

mod auto;
mod branch_summary;
mod by_hand;
mod by_model;
mod window;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::{Path, Session};
use crate::callback;
use crate::compaction::policy::{CompactionOptions, CompactionPolicy, Summarizer};
use crate::error::{Error, Result};
use crate::id::check_name;
use crate::tokens::{Counter, Handler, TokenCounter};
use auto::{Executor, Wait};

pub use branch_summary::BranchSummaryPlan;
pub use by_model::Compacted;
use by_model::compacted;

#[derive(Clone, Default)]
pub(crate) struct CompactionSettingsBuilder {
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) policy: Option<Arc<dyn CompactionPolicy>>,
    pub(crate) threshold: Option<u64>,
    /// Whether the threshold is compared with the history alone, not with the whole request.
    pub(crate) is_of_history: bool,
    pub(crate) executor: Option<Executor>,
    pub(crate) options: Option<CompactionOptions>,
    pub(crate) on_error: Option<Handler>,
    pub(crate) counter: Option<Arc<dyn TokenCounter>>,
}

/// The settings of a session, and the state that clones of its handle share.
pub(crate) struct CompactionSettings {
    asked: CompactionSettingsBuilder,
    options: CompactionOptions,
    pub(in crate::session) counter: Counter,
    /// Invariant: no callback runs under the lock.
    state: Mutex<State>,
}

/// What one append leaves for the next.
#[derive(Default)]
struct State {
    /// The prompt when it was last read.
    prompt: Option<Counted>,
    /// The definitions of the tools when they were last read, and the revision of the context then.
    tools: Option<(u64, Counted)>,
    /// What has to happen before the next attempt.
    wait: Wait,
    /// Whether subscribers know that nothing can be shortened.
    is_stuck: bool,
}

/// The tokens of a text.
#[derive(Clone, Copy, Default)]
struct Counted {
    tokens: u64,
    /// A hash of the text; `None` if the counter failed, and is asked again for the same text.
    hash: Option<u64>,
}

impl CompactionSettingsBuilder {
    /// Returns the settings.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the counter's name is empty or too long; [`Error::TokenCounter`] if it panics when it is
    /// asked for its name.
    pub(crate) fn build(self) -> Result<Arc<CompactionSettings>> {
        let counter = match &self.counter {
            None => Counter::default(),
            Some(counter) => {
                let handler = self.on_error.clone().map(|handler| -> Handler {
                    Arc::new(move |error: &Error| tell(&handler, error))
                });
                let counter = Counter::of_program(Arc::clone(counter), handler)?;
                check_name("name of a token counter", counter.name())?;
                counter
            }
        };
        Ok(self.with(counter))
    }

    pub(crate) fn with(self, counter: Counter) -> Arc<CompactionSettings> {
        let options = self.options.clone().unwrap_or_default();
        let options = match self.threshold {
            Some(threshold) => options.within(threshold),
            None => options,
        };
        let state = Mutex::default();
        Arc::new(CompactionSettings { asked: self, options, counter, state })
    }
}

/// Calls an error handler. What went before is committed: a panic of the handler must not make it look failed.
fn tell(handler: &Handler, error: &Error) {
    let _ = callback::call_error_handler(|| handler(error));
}

impl CompactionSettings {
    /// Returns the same settings for another session, with fresh state.
    pub(crate) fn of_another(&self) -> Arc<Self> {
        self.asked.clone().with(self.counter.clone())
    }

    pub(in crate::session) fn report(&self, error: &Error) {
        if let Some(handler) = &self.asked.on_error {
            tell(handler, error);
        }
    }

    /// Notes a change that is no append: there may be something to compact now.
    pub(in crate::session) fn note_change(&self) {
        self.state().wait.note_change();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions of all stores that are being compacted in this process, by their identity. A store that is opened twice has the
/// same ones.
static SESSIONS: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// One compaction of a session; dropping it lets another begin.
pub(super) struct Guard(String);

/// Returns the key of a compaction that the program asked for, of the session with this identity. It does not wait for
/// an automatic one, which may run on an executor and never end.
pub(super) fn by_request(identity: &str) -> String {
    format!("{identity}, by request")
}

/// Returns whether one of this key runs.
pub(super) fn is_running(key: &str) -> bool {
    sessions().contains(key)
}

/// Returns a guard, or `None` while another thread compacts the session; never waits.
pub(super) fn enter(key: String) -> Option<Guard> {
    // The lock is released before: dropping a guard takes it.
    let is_free = sessions().insert(key.clone());
    is_free.then(|| Guard(key))
}

fn sessions() -> MutexGuard<'static, HashSet<String>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Guard {
    fn drop(&mut self) {
        sessions().remove(&self.0);
    }
}
