//! How a session is compacted: the settings of its builder, and the state of automatic compaction.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::background::Executor;
use super::cached_count::CachedCount;
use super::wait::Wait;
use crate::callback;
use crate::compaction::policy::{CompactionOptions, CompactionPolicy, Summarizer, ThresholdOf};
use crate::error::{Error, Result};
use crate::id::check_name;
use crate::tokens::{Counter, Handler, TokenCounter};

/// The size of a prompt that was not counted yet.
const UNKNOWN: u64 = u64::MAX;

#[derive(Clone, Default)]
pub(crate) struct CompactionSettingsBuilder {
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) policy: Option<Arc<dyn CompactionPolicy>>,
    pub(crate) threshold: Option<u64>,
    pub(crate) threshold_of: ThresholdOf,
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

    pub(super) fn threshold_of(&self) -> ThresholdOf {
        self.0.asked.threshold_of
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
    pub(super) fn set_wait(&self, wait: Wait) {
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
