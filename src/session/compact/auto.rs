//! Automatic compaction: after an append that takes the window over its threshold.
//!
//! [`keep_within`](Session::keep_within) measures the window after the commit, and makes an [`Attempt`] if it is too large and
//! the last attempt's [`Wait`] is over. The attempt runs in the thread that appended or on the executor of the program, and
//! never fails the append. One attempt at a time compacts a session; other appends go on without waiting. A failure goes to
//! the error handler and to subscribers.
//!
//! An executor may run an attempt in another thread, at once, late or never, drop it, or panic. Whatever happens, the guard
//! is released when the attempt has run or is dropped, and a failure is reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::by_model::Draft;
use super::{Guard, Session, by_request, enter, is_running};
use crate::callback;
use crate::callback::caught;
use crate::compaction::policy::{CompactionOptions, NothingToCompact, WindowUsage};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};

/// The most compactions after one append; several are needed where one prompt does not hold all.
const MAX_STEPS: usize = 64;

/// How the executor is named in errors.
const EXECUTOR: &str = "the executor of compactions";

/// Runs jobs, in any thread and at any time.
pub(crate) type Executor = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Returns a panic, such as one of a caller's storage, as an error: what was appended is committed.
fn caught_or_failed(compact: impl FnOnce() -> Result<()>) -> Result<()> {
    let what = "automatic compaction";
    caught(compact).unwrap_or_else(|failed| Err(Error::Callback { what, why: failed.to_string() }))
}

impl Session {
    /// Compacts the history after an append of some messages if it is over the threshold; `visible` is
    /// its size in tokens, if known.
    pub(in crate::session) fn keep_within(&self, visible: Option<u64>, appended: usize) {
        let Some(threshold) = self.compaction.asked.threshold else { return };
        self.compaction.state().wait.note_appended(appended);
        let done = caught_or_failed(|| match self.due_attempt(threshold, visible)? {
            None => Ok(()),
            Some(attempt) => match &self.compaction.asked.executor {
                None => {
                    attempt.run();
                    Ok(())
                }
                Some(executor) => attempt.run_on(executor),
            },
        });
        if let Err(error) = done {
            self.report_failure(&error);
        }
    }

    /// Measures the window; returns the attempt to shorten it, if it is over the threshold and nothing speaks against one.
    fn due_attempt(&self, threshold: u64, visible: Option<u64>) -> Result<Option<Attempt>> {
        let is_due = |window| self.compaction.state().wait.is_over(window);
        let visible = visible.map_or_else(|| self.visible_tokens(), Ok)?;
        // A prompt that could not be read is read again when the next attempt is due.
        let is_read =
            self.compaction.asked.is_of_history || self.compaction.state().prompt.is_some();
        if !is_read && !is_due(visible) {
            return Ok(None);
        }
        let overhead = self.noted_overhead().inspect_err(|_| {
            self.compaction.state().wait = Wait::after_failure(visible, threshold);
        })?;
        let tokens = visible.saturating_add(overhead.total());
        self.emit(|| self.window(Phase::Idle, tokens));
        if tokens <= threshold {
            self.end_wait();
            return Ok(None);
        }
        if !is_due(tokens) {
            return Ok(None);
        }
        let identity = self.storage.identity()?;
        if is_running(&by_request(&identity)) {
            return Ok(None);
        }
        let Some(guard) = enter(identity) else { return Ok(None) };
        // The attempt that held the guard before may have failed since this window was measured.
        let session = self.clone();
        Ok(is_due(tokens).then_some(Attempt { session, threshold, tokens, guard }))
    }

    /// Compacts until the window is within the threshold or nothing more can be compacted.
    fn compact_within(&self, threshold: u64) -> Result<()> {
        for _ in 0..MAX_STEPS {
            match self.compact_step(threshold)? {
                Step::Shortened => {}
                Step::Within => {
                    self.end_wait();
                    break;
                }
                Step::Stuck { wait, tokens, why } => {
                    let was_stuck = {
                        let mut state = self.compaction.state();
                        state.wait = wait;
                        std::mem::replace(&mut state.is_stuck, true)
                    };
                    if !was_stuck {
                        self.emit(|| Change::CannotShorten { tokens, threshold, why });
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Compacts once, if the window is over the threshold and that is worth a summary.
    fn compact_step(&self, threshold: u64) -> Result<Step> {
        let (path, options) = (self.path(), &self.compaction.options);
        let draft = match path.draft(|| self.counted_overhead())? {
            Ok(draft) => draft,
            Err(why) => {
                let usage = path.usage_beside(|| self.counted_overhead())?;
                let wait = Wait::for_a_plan(&why, &usage, options, threshold);
                return Ok(Step::stuck_over(threshold, wait, why.to_string()));
            }
        };
        let before = draft.total();
        if before <= threshold {
            return Ok(Step::Within);
        }
        if let Draft::Plan(plan) = &draft {
            let (usage, was_stuck) = (plan.usage(), self.compaction.state().is_stuck);
            if let Some(wait) = Wait::for_a_better_plan(&usage, options, threshold, was_stuck) {
                let WindowUsage { prompt, tools, head, tail, .. } = usage;
                let why = format!(
                    "the prompt has {prompt} tokens, the tools have {tools}, the protected messages have {head} at the start and {tail} at the end"
                );
                return Ok(Step::stuck_over(threshold, wait, why));
            }
        }
        self.emit(|| self.window(Phase::Compacting, before));
        let done = self.compact_draft(draft);
        let after = match &done {
            Ok(Ok(compacted)) => before - compacted.tokens_before + compacted.tokens_after,
            _ => before,
        };
        self.emit(|| self.window(Phase::Idle, after));
        Ok(match done? {
            Ok(_) if after <= threshold => Step::Within,
            Ok(_) => Step::Shortened,
            Err(why) => {
                let usage = WindowUsage { total: before, ..WindowUsage::default() };
                let wait = Wait::for_a_plan(&why, &usage, options, threshold);
                Step::stuck_over(threshold, wait, why.to_string())
            }
        })
    }

    /// Notes that the window is within the threshold.
    fn end_wait(&self) {
        let mut state = self.compaction.state();
        (state.wait, state.is_stuck) = (Wait::default(), false);
    }

    /// Tells the error handler and subscribers of a failure that no verb returns.
    pub(super) fn report_failure(&self, error: &Error) {
        self.compaction.report(error);
        self.emit_failure(error);
    }
}

/// What one compaction has done.
enum Step {
    /// The window is within the threshold.
    Within,
    /// It is shorter than before.
    Shortened,
    /// Nothing can be shortened now.
    Stuck { wait: Wait, tokens: u64, why: String },
}

impl Step {
    /// Returns the end of an attempt at which the wait begins.
    fn stuck_over(threshold: u64, wait: Wait, why: String) -> Self {
        match wait.from > threshold {
            true => Self::Stuck { wait, tokens: wait.from, why },
            false => Self::Within,
        }
    }
}

/// One automatic compaction of a session, until the window is within the threshold or nothing more can be compacted.
struct Attempt {
    session: Session,
    threshold: u64,
    /// The size of the window after the append.
    tokens: u64,
    guard: Guard,
}

impl Attempt {
    /// Compacts, and reports a failure.
    fn run(self) {
        let Self { session, threshold, tokens, guard } = self;
        let done = caught_or_failed(|| session.compact_within(threshold));
        if done.is_err() {
            // Some steps may have succeeded, and others may have appended.
            let tokens =
                caught(|| session.window_tokens()).ok().and_then(Result::ok).unwrap_or(tokens);
            session.compaction.state().wait = Wait::after_failure(tokens, threshold);
        }
        // A handler that appends may start the next attempt.
        drop(guard);
        if let Err(error) = done {
            session.report_failure(&error);
        }
    }

    /// Gives the attempt to an executor.
    ///
    /// # Errors
    /// [`Error::Callback`] if the executor panics, or drops the attempt before it returns.
    fn run_on(self, executor: &Executor) -> Result<()> {
        let has_ended = Arc::new(AtomicBool::new(false));
        let job = Job { attempt: Some(self), has_ended: Arc::clone(&has_ended) };
        let called = callback::call(|| executor(Box::new(move || job.run())));
        let was_dropped = has_ended.swap(true, Ordering::AcqRel);
        match called {
            Err(failed) => Err(Error::Callback { what: EXECUTOR, why: failed.to_string() }),
            Ok(()) if was_dropped => Err(dropped()),
            Ok(()) => Ok(()),
        }
    }
}

/// An attempt for an executor. Dropped without being run, it is a failure.
struct Job {
    attempt: Option<Attempt>,
    /// Whether the executor has returned, or the job was dropped without being run. Both may come first, in two threads; the
    /// later one reports the failure.
    has_ended: Arc<AtomicBool>,
}

impl Job {
    fn run(mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.run();
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(Attempt { session, threshold, tokens, guard }) = self.attempt.take() else {
            return;
        };
        session.compaction.state().wait = Wait::after_failure(tokens, threshold);
        drop(guard);
        if self.has_ended.swap(true, Ordering::AcqRel) {
            session.report_failure(&dropped());
        }
    }
}

fn dropped() -> Error {
    let why = "it dropped a compaction without running it".to_owned();
    Error::Callback { what: EXECUTOR, why }
}

/// After a failure, the window grows by this part of the threshold before the next attempt.
const RETRY_PART: u64 = 20;
/// After the summarizer declined, the window grows by this part of the threshold before the next attempt. If compaction
/// cannot bring the window within its threshold, the messages between head and tail grow to this part of
/// it before the next attempt. Otherwise nearly every append would call the summarizer.
const STUCK_PART: u64 = 4;

/// What has to happen before the next attempt; the default waits for nothing.
///
/// After a failure the window has to grow, so that a model that cannot be reached does not delay every append. If the
/// summarizer declined, the window has to grow by more, or the history or the prompt has to change in another way. If there
/// was nothing to compact, the wait ends when a plan may exist: when as many messages or tokens were appended as the last
/// plan lacked, or when the history or the prompt changed in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wait {
    /// The size of the window when the wait began.
    from: u64,
    /// The wait is over when the window has this size.
    window: u64,
    /// Or when this many messages were appended.
    messages: Option<usize>,
    /// Whether the last attempt failed: then nothing but the window ends the wait.
    is_failure: bool,
}

impl Wait {
    /// Returns the wait after a failure.
    pub(super) fn after_failure(window: u64, threshold: u64) -> Self {
        let growth = part(threshold, RETRY_PART);
        Self {
            from: window,
            window: window.saturating_add(growth),
            is_failure: true,
            ..Self::default()
        }
    }

    /// Returns the wait until there may be something to compact.
    pub(super) fn for_a_plan(
        why: &NothingToCompact,
        usage: &WindowUsage,
        options: &CompactionOptions,
        threshold: u64,
    ) -> Self {
        // One message more than fits has to push others out of the tail.
        let tail_lacks =
            |tokens: u64| options.tail_tokens().saturating_sub(tokens).saturating_add(1);
        let (growth, messages) = match why {
            // Other handles append, too; this one counts only its own messages.
            NothingToCompact::TooShort { messages, least } => {
                (part(threshold, STUCK_PART), Some(least.saturating_sub(*messages)))
            }
            NothingToCompact::NothingBetween { tail_tokens, .. } => {
                (tail_lacks(*tail_tokens), None)
            }
            // Some of the summaries may be in the tail.
            NothingToCompact::OnlySummaries { .. } => {
                (tail_lacks(usage.tail.saturating_add(usage.summaries)), None)
            }
            NothingToCompact::Declined => (part(threshold, STUCK_PART), None),
            // The next message may be the result of a call that waits.
            NothingToCompact::PairsInTheWay { .. } => (1, Some(1)),
        };
        let window = usage.total.saturating_add(growth);
        Self { from: usage.total, window, messages, is_failure: false }
    }

    /// Returns the wait until a plan is worth a summary; `None` if it is now.
    ///
    /// `was_stuck`: an attempt since the window was last within the threshold did not bring it there. Then a summary that
    /// is longer than it should be must not be summarized again with every message.
    pub(super) fn for_a_better_plan(
        usage: &WindowUsage,
        options: &CompactionOptions,
        threshold: u64,
        was_stuck: bool,
    ) -> Option<Self> {
        let summaries = if was_stuck { 0 } else { usage.summaries };
        let range = usage.middle.saturating_add(summaries);
        let summary = options.target_tokens(range).min(range);
        let after = usage.total.saturating_sub(range).saturating_add(summary);
        let least = part(threshold, STUCK_PART);
        if after <= threshold || usage.middle >= least {
            return None;
        }
        let window = usage.total.saturating_add(least - usage.middle);
        Some(Self { from: usage.total, window, ..Self::default() })
    }

    pub(super) fn note_appended(&mut self, messages: usize) {
        self.messages = self.messages.map(|left| left.saturating_sub(messages));
    }

    pub(super) fn note_change(&mut self) {
        if !self.is_failure {
            *self = Self::default();
        }
    }

    /// Returns whether the next attempt is due in a window of this size.
    pub(super) fn is_over(&self, window: u64) -> bool {
        // No append makes a window smaller: another handle changed the history.
        let has_shrunk = !self.is_failure && window < self.from;
        window >= self.window || has_shrunk || self.messages == Some(0)
    }
}

fn part(threshold: u64, part: u64) -> u64 {
    (threshold / part).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(parts: [u64; 4]) -> WindowUsage {
        let mut usage = WindowUsage::default();
        [usage.head, usage.summaries, usage.middle, usage.tail] = parts;
        usage.total = parts.iter().sum();
        usage
    }

    #[test]
    fn after_a_failure_only_growth_ends_the_wait() {
        let mut wait = Wait::after_failure(1_000, 400);
        wait.note_change();
        wait.note_appended(100);
        assert!(!wait.is_over(500) && !wait.is_over(1_019) && wait.is_over(1_020));
    }

    #[test]
    fn after_declining_growth_and_other_changes_end_the_wait() {
        let (why, options) = (NothingToCompact::Declined, CompactionOptions::default());
        let mut wait = Wait::for_a_plan(&why, &usage([0, 0, 1_000, 0]), &options, 400);
        wait.note_appended(100);
        assert!(!wait.is_over(1_000) && !wait.is_over(1_099) && wait.is_over(1_100));
        assert!(wait.is_over(999), "another handle deleted a message");
        wait.note_change();
        assert!(wait.is_over(1_000));
    }

    #[test]
    fn without_a_plan_the_wait_ends_when_there_may_be_one() {
        let options = CompactionOptions::default().keep_recent_tokens(100);
        let of = |why| Wait::for_a_plan(&why, &usage([0, 20, 0, 30]), &options, 1_000);

        let mut wait = of(NothingToCompact::TooShort { messages: 2, least: 4 });
        wait.note_appended(1);
        assert!(!wait.is_over(60) && wait.is_over(300), "others may have appended");
        wait.note_appended(1);
        assert!(wait.is_over(60));

        let wait = of(NothingToCompact::NothingBetween { head: 1, tail: 2, tail_tokens: 90 });
        assert!(!wait.is_over(60) && wait.is_over(61));
        let wait = of(NothingToCompact::OnlySummaries { summaries: 1 });
        assert!(!wait.is_over(100) && wait.is_over(101));
        let mut wait = of(NothingToCompact::PairsInTheWay { messages: 2 });
        assert!(!wait.is_over(50));
        wait.note_appended(1);
        assert!(wait.is_over(50));

        let mut wait = of(NothingToCompact::OnlySummaries { summaries: 1 });
        assert!(wait.is_over(49), "another handle deleted a message");
        wait.note_change();
        assert!(wait.is_over(50));
    }

    #[test]
    fn a_plan_that_cannot_reach_the_threshold_waits_for_more_messages() {
        let options = CompactionOptions::default();
        let better = |parts, was_stuck| {
            Wait::for_a_better_plan(&usage(parts), &options, 1_000, was_stuck).map(|it| it.window)
        };
        // 1 300 tokens become 260.
        assert_eq!(better([0, 0, 1_300, 60], true), None);
        // The head alone is too long: the next 250 tokens are compacted together.
        assert_eq!(better([1_300, 0, 60, 0], false), Some(1_360 + 190));
        assert_eq!(better([1_300, 0, 250, 0], true), None);
        // A long summary is summarized once, and not again with every message.
        assert_eq!(better([0, 900, 60, 100], false), None);
        assert_eq!(better([0, 900, 60, 100], true), Some(1_060 + 190));
    }
}
