//! Automatic compaction: after an append that takes the window over its threshold.
//!
//! It runs in the thread that appended, after the commit, and never fails the append. One thread at a
//! time compacts a session; others go on without waiting. A failure goes to the error handler and to
//! subscribers, and the next attempt backs off until the window has grown by a twentieth of the
//! threshold, so that an unreachable model or context provider does not delay every append. If head,
//! tail and prompt alone exceed the threshold, the next attempt backs off until the window has grown by
//! a quarter of it.

use crate::compaction::policy::{CompactionPlan, Planned, ask};
use crate::error::Result;
use crate::event::{Change, Phase};
use crate::session::Session;

/// After a failure, the window grows by this part of the threshold before the next attempt.
const RETRY_PART: u64 = 20;
/// If nothing could be shortened, it grows by this part before the next attempt.
const STUCK_PART: u64 = 4;
/// The most compactions after one append; several are needed where one prompt does not hold all.
const MAX_STEPS: usize = 64;

impl Session {
    /// Compacts the history after an append if it is over the threshold; `visible` is its size in
    /// tokens, if known.
    pub(in crate::session) fn keep_within(&self, visible: Option<u64>) {
        let Some(threshold) = self.compaction.threshold() else { return };
        if let Err(error) = self.try_keep_within(threshold, visible) {
            self.compaction.report(&error);
            self.emit(|| Change::CompactionFailed { why: error.to_string() });
        }
    }

    fn try_keep_within(&self, threshold: u64, visible: Option<u64>) -> Result<()> {
        let visible = visible.map_or_else(|| self.visible_tokens(), Ok)?;
        let prompt = match self.compaction.noted_prompt() {
            Some(prompt) => prompt,
            None if !self.compaction.is_due(visible) => return Ok(()),
            None => self.prompt_tokens().inspect_err(|_| self.back_off(visible, threshold))?,
        };
        let tokens = visible.saturating_add(prompt);
        self.emit(|| Change::Window { phase: Phase::Idle, tokens, threshold });
        if tokens <= threshold {
            self.compaction.reset_backoff();
            return Ok(());
        }
        let Some(_guard) = self.compaction.in_progress().enter(self.id()) else { return Ok(()) };
        // The thread that held the guard before may have failed since this window was measured.
        if !self.compaction.is_due(tokens) {
            return Ok(());
        }
        let compacted = self.compact_within(threshold);
        if compacted.is_err() {
            // Some steps may have succeeded.
            let visible = self.visible_tokens().unwrap_or(visible);
            self.back_off(visible.saturating_add(prompt), threshold);
        }
        compacted
    }

    /// Compacts until the window is within the threshold or nothing more can be compacted.
    fn compact_within(&self, threshold: u64) -> Result<()> {
        for _ in 0..MAX_STEPS {
            let Some(plan) = self.plan_over(threshold)? else { break };
            let before = plan.usage().total;
            self.emit(|| Change::Window { phase: Phase::Compacting, tokens: before, threshold });
            let asked = self.summarizer().and_then(|summarizer| ask(summarizer, plan.prompt()));
            let compacted = asked.and_then(|summary| self.commit(plan, summary));
            let after = compacted.as_ref().map_or(before, |compacted| {
                before - compacted.tokens_before + compacted.tokens_after
            });
            self.emit(|| Change::Window { phase: Phase::Idle, tokens: after, threshold });
            compacted?;
            if after <= threshold {
                self.compaction.reset_backoff();
                break;
            }
        }
        Ok(())
    }

    /// Returns the next plan, if the window is over the threshold and something can be compacted.
    fn plan_over(&self, threshold: u64) -> Result<Option<CompactionPlan>> {
        match self.plan_compaction(self.compaction.options())? {
            Planned::Compact(plan) => Ok(Some(plan).filter(|plan| plan.usage().total > threshold)),
            Planned::Nothing(why) => {
                let tokens = self.visible_tokens()?.saturating_add(self.prompt_tokens()?);
                if tokens > threshold {
                    self.compaction
                        .back_off(tokens.saturating_add((threshold / STUCK_PART).max(1)));
                    if self.compaction.is_newly_stuck() {
                        let why = why.to_string();
                        self.emit(|| Change::CannotShorten { tokens, threshold, why });
                    }
                }
                Ok(None)
            }
        }
    }

    /// Backs off until the window has grown.
    fn back_off(&self, tokens: u64, threshold: u64) {
        self.compaction.back_off(tokens.saturating_add((threshold / RETRY_PART).max(1)));
    }
}
