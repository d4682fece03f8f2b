//! Automatic compaction: after an append that takes the window over its threshold.
//!
//! An [`Attempt`] runs after the commit, in the thread that appended or on the executor of the program, and never fails the
//! append. One attempt at a time compacts a session; other appends go on without waiting. A failure goes to the error
//! handler and to subscribers. [`Wait`] says when the next attempt is due.

use super::background::hand_over;
use super::draft::Draft;
use super::in_progress::{self, Guard};
use super::wait::Wait;
use super::{CompactionOutcome, Session};
use crate::callback::caught;
use crate::compaction::policy::{BesidesMessages, ThresholdOf, WindowUsage};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};

/// The most compactions after one append; several are needed where one prompt does not hold all.
const MAX_STEPS: usize = 64;

/// One automatic compaction of a session, until the window is within the threshold or nothing more can be compacted.
pub(super) struct Attempt {
    session: Session,
    threshold: u64,
    /// The size of the window after the append.
    tokens: u64,
    guard: Guard,
}

impl Attempt {
    /// Compacts, and reports a failure.
    pub(super) fn run(self) {
        let Self { session, threshold, tokens, guard } = self;
        let done = caught_or_failed(|| session.compact_within(threshold));
        if done.is_err() {
            // Some steps may have succeeded, and others may have appended.
            let tokens =
                caught(|| session.window_tokens()).ok().and_then(Result::ok).unwrap_or(tokens);
            session.compaction.set_wait(Wait::after_failure(tokens, threshold));
        }
        // A handler that appends may start the next attempt.
        drop(guard);
        if let Err(error) = done {
            session.report_failure(&error);
        }
    }

    /// Ends without having run, and returns the session.
    pub(super) fn give_up(self) -> Session {
        self.session.compaction.set_wait(Wait::after_failure(self.tokens, self.threshold));
        self.session
    }
}

/// Returns a panic, such as one of a caller's storage, as an error: what was appended is committed.
fn caught_or_failed(compact: impl FnOnce() -> Result<()>) -> Result<()> {
    let what = "automatic compaction";
    caught(compact).unwrap_or_else(|failed| Err(Error::Callback { what, why: failed.to_string() }))
}

impl Session {
    /// Compacts the history after an append of some messages if it is over the threshold; `visible` is
    /// its size in tokens, if known.
    pub(in crate::session) fn keep_within(&self, visible: Option<u64>, appended: usize) {
        let Some(threshold) = self.compaction.threshold() else { return };
        self.compaction.note_appended(appended);
        if let Err(error) = caught_or_failed(|| self.try_keep_within(threshold, visible)) {
            self.report_failure(&error);
        }
    }

    /// Tells the error handler and subscribers of a failure that no verb returns.
    pub(super) fn report_failure(&self, error: &Error) {
        self.compaction.report(error);
        self.emit_failure(error);
    }

    fn try_keep_within(&self, threshold: u64, visible: Option<u64>) -> Result<()> {
        let visible = visible.map_or_else(|| self.visible_tokens(), Ok)?;
        let besides = match (self.compaction.threshold_of(), self.compaction.noted_prompt()) {
            (ThresholdOf::Messages, _) => BesidesMessages::default(),
            (_, None) if !self.compaction.is_due(visible) => return Ok(()),
            _ => self.noted_besides().inspect_err(|_| {
                self.compaction.set_wait(Wait::after_failure(visible, threshold));
            })?,
        };
        let tokens = visible.saturating_add(besides.total());
        self.emit(|| self.window(Phase::Idle, tokens));
        if tokens <= threshold {
            self.compaction.reset_wait();
            return Ok(());
        }
        if !self.compaction.is_due(tokens) {
            return Ok(());
        }
        let identity = self.storage.identity()?;
        if in_progress::is_running(&in_progress::by_request(&identity)) {
            return Ok(());
        }
        let Some(guard) = in_progress::enter(identity) else { return Ok(()) };
        // The attempt that held the guard before may have failed since this window was measured.
        if !self.compaction.is_due(tokens) {
            return Ok(());
        }
        let attempt = Attempt { session: self.clone(), threshold, tokens, guard };
        match self.compaction.executor() {
            Some(executor) => hand_over(executor, attempt),
            None => {
                attempt.run();
                Ok(())
            }
        }
    }

    /// Compacts until the window is within the threshold or nothing more can be compacted.
    fn compact_within(&self, threshold: u64) -> Result<()> {
        for _ in 0..MAX_STEPS {
            let Some((draft, before)) = self.draft_over(threshold)? else { break };
            self.emit(|| self.window(Phase::Compacting, before));
            let done = self.compact_draft(draft);
            let after = match &done {
                Ok(CompactionOutcome::Compacted(compacted)) => {
                    before - compacted.tokens_before + compacted.tokens_after
                }
                _ => before,
            };
            self.emit(|| self.window(Phase::Idle, after));
            match done? {
                CompactionOutcome::Nothing(why) => {
                    let usage = WindowUsage { total: before, ..WindowUsage::default() };
                    let wait = Wait::for_a_plan(&why, &usage, self.compaction.options(), threshold);
                    self.wait_stuck(wait, threshold, before, || why.to_string());
                    break;
                }
                CompactionOutcome::Compacted(_) if after <= threshold => {
                    self.compaction.reset_wait();
                    break;
                }
                CompactionOutcome::Compacted(_) => {}
            }
        }
        Ok(())
    }

    /// Returns what to compact next and the size of the window, if that is over the threshold and worth a summary.
    fn draft_over(&self, threshold: u64) -> Result<Option<(Draft, u64)>> {
        let options = self.compaction.options();
        let path = self.path();
        match path.draft(|| self.counted_besides())? {
            Ok(Draft::View(seen)) => {
                let total = seen.total();
                Ok((total > threshold).then_some((Draft::View(seen), total)))
            }
            Ok(Draft::Plan(plan)) if plan.usage().total <= threshold => Ok(None),
            Ok(Draft::Plan(plan)) => {
                let (usage, was_stuck) = (plan.usage(), self.compaction.is_stuck());
                let wait = match plan.expected_total() <= threshold && !was_stuck {
                    true => None,
                    false => Wait::for_a_better_plan(&usage, options, threshold, was_stuck),
                };
                let Some(wait) = wait else { return Ok(Some((Draft::Plan(plan), usage.total))) };
                let WindowUsage { prompt, tools, head, tail, .. } = usage;
                self.wait_stuck(wait, threshold, usage.total, || {
                    format!("the prompt has {prompt} tokens, the tools have {tools}, the protected messages have {head} at the start and {tail} at the end")
                });
                Ok(None)
            }
            Err(why) => {
                let usage = path.usage_beside(|| self.counted_besides())?;
                if usage.total > threshold {
                    let wait = Wait::for_a_plan(&why, &usage, options, threshold);
                    self.wait_stuck(wait, threshold, usage.total, || why.to_string());
                }
                Ok(None)
            }
        }
    }

    fn wait_stuck(&self, wait: Wait, threshold: u64, tokens: u64, why: impl FnOnce() -> String) {
        self.compaction.set_wait(wait);
        if self.compaction.is_newly_stuck() {
            self.emit(|| Change::CannotShorten { tokens, threshold, why: why() });
        }
    }
}
