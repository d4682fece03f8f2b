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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use super::{Path, Session};
use crate::callback;
use crate::compaction::policy::{CompactionOptions, CompactionPolicy, Summarizer};
use crate::error::{Error, Result};
use crate::id::check_name;
use crate::tokens::{Count, Counter, Handler, TokenCounter};
use auto::{Executor, Wait};

pub use branch_summary::BranchSummaryPlan;
pub use by_model::Compacted;
use by_model::compacted;

/// The size of a prompt that was not counted yet.
const UNKNOWN: u64 = u64::MAX;

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
#[derive(Clone)]
pub(crate) struct CompactionSettings(Arc<Shared>);

/// Settings that end when all sessions with them are dropped.
#[derive(Clone)]
pub(crate) struct WeakSettings(Weak<Shared>);

impl WeakSettings {
    pub(crate) fn upgrade(&self) -> Option<CompactionSettings> {
        self.0.upgrade().map(CompactionSettings)
    }
}

struct Shared {
    asked: CompactionSettingsBuilder,
    options: CompactionOptions,
    counter: Counter,
    state: State,
}

/// What one append leaves for the next.
struct State {
    /// The tokens of the prompt when it was last read.
    prompt: AtomicU64,
    /// The count of the last prompt, by a hash of its text.
    counted_prompt: CachedCount,
    /// The count of the last tools, by a hash of their definitions.
    counted_tools: CachedCount,
    /// The tokens of the tools when they were last read, by the revision of the context.
    noted_tools: CachedCount,
    /// What has to happen before the next attempt.
    wait: Mutex<Wait>,
    /// Whether subscribers know that nothing can be shortened.
    is_stuck: AtomicBool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            prompt: AtomicU64::new(UNKNOWN),
            counted_prompt: CachedCount::default(),
            counted_tools: CachedCount::default(),
            noted_tools: CachedCount::default(),
            wait: Mutex::default(),
            is_stuck: AtomicBool::new(false),
        }
    }
}

impl CompactionSettingsBuilder {
    /// Returns the settings.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the counter's name is empty or too long; [`Error::TokenCounter`] if it panics when it is
    /// asked for its name.
    pub(crate) fn build(self) -> Result<CompactionSettings> {
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

    pub(crate) fn with(self, counter: Counter) -> CompactionSettings {
        let options = self.options.clone().unwrap_or_default();
        let options = match self.threshold {
            Some(threshold) => options.within(threshold),
            None => options,
        };
        let state = State::default();
        CompactionSettings(Arc::new(Shared { asked: self, options, counter, state }))
    }
}

/// Calls an error handler. What went before is committed: a panic of the handler must not make it look failed.
fn tell(handler: &Handler, error: &Error) {
    let _ = callback::call_error_handler(|| handler(error));
}

impl CompactionSettings {
    pub(crate) fn downgrade(&self) -> WeakSettings {
        WeakSettings(Arc::downgrade(&self.0))
    }

    /// Returns the same settings for another session, with fresh state.
    pub(crate) fn of_another(&self) -> Self {
        self.0.asked.clone().with(self.0.counter.clone())
    }

    pub(super) fn summarizer(&self) -> Option<&dyn Summarizer> {
        self.0.asked.summarizer.as_deref()
    }

    pub(super) fn policy(&self) -> Option<&dyn CompactionPolicy> {
        self.0.asked.policy.as_deref()
    }

    /// Returns whether the program has set the options.
    pub(super) fn has_own_options(&self) -> bool {
        self.0.asked.options.is_some()
    }

    pub(super) fn executor(&self) -> Option<&Executor> {
        self.0.asked.executor.as_ref()
    }

    pub(super) fn is_of_history(&self) -> bool {
        self.0.asked.is_of_history
    }

    pub(super) fn threshold(&self) -> Option<u64> {
        self.0.asked.threshold
    }

    pub(super) fn options(&self) -> &CompactionOptions {
        &self.0.options
    }

    pub(in crate::session) fn counter(&self) -> &Counter {
        &self.0.counter
    }

    pub(in crate::session) fn report(&self, error: &Error) {
        if let Some(handler) = &self.0.asked.on_error {
            tell(handler, error);
        }
    }

    /// Remembers the size of the prompt.
    pub(super) fn note_prompt(&self, tokens: u64) {
        if self.0.state.prompt.swap(tokens, Ordering::Relaxed) != tokens {
            self.note_change();
        }
    }

    pub(super) fn counted_prompt(&self) -> &CachedCount {
        &self.0.state.counted_prompt
    }

    pub(super) fn counted_tools(&self) -> &CachedCount {
        &self.0.state.counted_tools
    }

    pub(super) fn noted_tools(&self) -> &CachedCount {
        &self.0.state.noted_tools
    }

    /// Returns the size of the prompt when it was last read.
    pub(super) fn noted_prompt(&self) -> Option<u64> {
        Some(self.0.state.prompt.load(Ordering::Relaxed)).filter(|tokens| *tokens != UNKNOWN)
    }

    /// Notes that the window is within the threshold: the next attempt need not wait.
    pub(super) fn reset_wait(&self) {
        *self.wait() = Wait::default();
        self.0.state.is_stuck.store(false, Ordering::Relaxed);
    }

    /// Notes appended messages.
    pub(super) fn note_appended(&self, messages: usize) {
        self.wait().note_appended(messages);
    }

    /// Notes a change that is no append: there may be something to compact now.
    pub(in crate::session) fn note_change(&self) {
        self.wait().note_change();
    }

    /// Delays the next attempt.
    fn set_wait(&self, wait: Wait) {
        *self.wait() = wait;
    }

    /// Returns whether a window of this size is due for an attempt.
    pub(super) fn is_due(&self, window: u64) -> bool {
        self.wait().is_over(window)
    }

    /// Notes that nothing can be shortened; returns whether subscribers do not know yet.
    pub(super) fn is_newly_stuck(&self) -> bool {
        !self.0.state.is_stuck.swap(true, Ordering::Relaxed)
    }

    /// Returns whether compaction could not bring the window within the threshold.
    pub(super) fn is_stuck(&self) -> bool {
        self.0.state.is_stuck.load(Ordering::Relaxed)
    }

    fn wait(&self) -> MutexGuard<'_, Wait> {
        self.0.state.wait.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The last count, with the key of what was counted. The count of a counter that failed is not kept.
#[derive(Default)]
pub(super) struct CachedCount(Mutex<Option<(u64, u64)>>);

impl CachedCount {
    /// Returns the tokens under this key; counts them if the last key was another one.
    pub(super) fn get(&self, key: u64, count: impl FnOnce() -> Count) -> u64 {
        if let Some((counted, tokens)) = *self.last()
            && counted == key
        {
            return tokens;
        }
        // Counted outside the lock: a counter may call the library.
        let Count { tokens, is_estimate } = count();
        *self.last() = (!is_estimate).then_some((key, tokens));
        tokens
    }

    /// Keeps a count that was made elsewhere.
    pub(super) fn put(&self, key: u64, tokens: u64) {
        *self.last() = Some((key, tokens));
    }

    fn last(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_key_or_an_estimate_is_counted_again() {
        let cached = CachedCount::default();
        let exact = |tokens| move || Count { tokens, is_estimate: false };
        assert_eq!(cached.get(1, exact(5)), 5);
        assert_eq!(cached.get(1, || unreachable!()), 5);
        assert_eq!(cached.get(2, || Count { tokens: 7, is_estimate: true }), 7);
        assert_eq!(cached.get(2, exact(8)), 8);
        assert_eq!(cached.get(2, || unreachable!()), 8);
        cached.put(3, 9);
        assert_eq!(cached.get(3, || unreachable!()), 9);
    }
}
