//! How a session is compacted: the settings of its builder, and the state of automatic compaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::in_progress::InProgress;
use crate::compaction::policy::{CompactionOptions, Summarizer};
use crate::error::Error;
use crate::tokens::{Counter, TokenCounter};

/// Receives each failure of an automatic compaction.
type Handler = Arc<dyn Fn(&Error) + Send + Sync>;

/// The size of a prompt that was not counted yet.
const UNKNOWN: u64 = u64::MAX;

#[derive(Clone, Default)]
pub(crate) struct CompactionSettingsBuilder {
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) threshold: Option<u64>,
    pub(crate) options: Option<CompactionOptions>,
    pub(crate) on_error: Option<Handler>,
    pub(crate) counter: Option<Arc<dyn TokenCounter>>,
    pub(crate) in_progress: InProgress,
}

/// The settings of a session, and the state that clones of its handle share.
#[derive(Clone)]
pub(crate) struct CompactionSettings(Arc<Shared>);

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
    /// How large the window must be for the next attempt.
    next_try: AtomicU64,
    /// Whether subscribers know that nothing can be shortened.
    is_stuck: AtomicBool,
}

impl CompactionSettingsBuilder {
    pub(crate) fn build(self) -> CompactionSettings {
        let options = self.options.clone().unwrap_or_default();
        let options = match self.threshold {
            Some(threshold) => options.within(threshold),
            None => options,
        };
        let counter = self.counter.clone().map_or_else(Counter::default, Counter::new);
        let state = State {
            prompt: AtomicU64::new(UNKNOWN),
            next_try: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
        };
        CompactionSettings(Arc::new(Shared { asked: self, options, counter, state }))
    }
}

impl CompactionSettings {
    /// Returns the same settings for another session, with fresh state.
    pub(crate) fn of_another(&self) -> Self {
        self.0.asked.clone().build()
    }

    pub(super) fn summarizer(&self) -> Option<&dyn Summarizer> {
        self.0.asked.summarizer.as_deref()
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

    pub(super) fn in_progress(&self) -> &InProgress {
        &self.0.asked.in_progress
    }

    pub(super) fn report(&self, error: &Error) {
        if let Some(handler) = &self.0.asked.on_error {
            // The append has succeeded: a panic of the handler must not make it look failed.
            let _ = catch_unwind(AssertUnwindSafe(|| handler(error)));
        }
    }

    /// Remembers the size of the prompt.
    pub(super) fn note_prompt(&self, tokens: u64) {
        self.0.state.prompt.store(tokens, Ordering::Relaxed);
    }

    /// Returns the size of the prompt when it was last read.
    pub(super) fn noted_prompt(&self) -> Option<u64> {
        Some(self.0.state.prompt.load(Ordering::Relaxed)).filter(|tokens| *tokens != UNKNOWN)
    }

    /// Notes that the window is within the threshold: the next attempt need not wait.
    pub(super) fn reset_backoff(&self) {
        self.0.state.next_try.store(0, Ordering::Relaxed);
        self.0.state.is_stuck.store(false, Ordering::Relaxed);
    }

    /// Delays the next attempt until the window is this large.
    pub(super) fn back_off(&self, window: u64) {
        self.0.state.next_try.store(window, Ordering::Relaxed);
    }

    /// Returns whether a window of this size is due for an attempt.
    pub(super) fn is_due(&self, window: u64) -> bool {
        window >= self.0.state.next_try.load(Ordering::Relaxed)
    }

    /// Notes that nothing can be shortened; returns whether subscribers do not know yet.
    pub(super) fn is_newly_stuck(&self) -> bool {
        !self.0.state.is_stuck.swap(true, Ordering::Relaxed)
    }
}
