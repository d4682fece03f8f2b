//! Compaction by itself: after an append, when the window is over its threshold.
//!
//! It runs in the thread that appended, once the append has been committed, and never fails it.
//! One thread at a time compacts a session; others that are over the threshold go on without
//! waiting. What fails is told to the handler and to subscribers, and is tried again when the window
//! has grown by a twentieth of the threshold: a model that is out of reach, or a block of the prompt,
//! does not hold up every append. Where a long head or prompt alone fills the window, it is compacted
//! again each time it has grown by a quarter.

use crate::compaction::policy::{CompactionPlan, Planned, ask};
use crate::error::Result;
use crate::event::{Change, Phase};
use crate::session::Session;

/// By which part of the threshold the window grows before what failed is tried again.
const RETRY_PART: u64 = 20;
/// By which part of it the window grows before what was as short as it can be is tried again.
const STUCK_PART: u64 = 4;
/// How many steps one append takes at the most, where more is compacted than one prompt holds.
const MAX_STEPS: usize = 64;

impl Session {
    /// Compacts the history if it is over the threshold, now that messages were appended; `visible`
    /// is what a model sees of it, if that is known.
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
            None => self.prompt_tokens().inspect_err(|_| self.put_off(visible, threshold))?,
        };
        let tokens = visible.saturating_add(prompt);
        self.emit(|| Change::Window { phase: Phase::Idle, tokens, threshold });
        if tokens <= threshold {
            self.compaction.calm();
            return Ok(());
        }
        let Some(_turn) = self.compaction.in_progress().enter(self.id()) else { return Ok(()) };
        // Whoever had the turn before may have failed since this window was measured.
        if !self.compaction.is_due(tokens) {
            return Ok(());
        }
        let compacted = self.compact_within(threshold);
        if compacted.is_err() {
            // Some steps may have been taken.
            let visible = self.visible_tokens().unwrap_or(visible);
            self.put_off(visible.saturating_add(prompt), threshold);
        }
        compacted
    }

    /// Compacts until the window is within the threshold, or nothing more can be.
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
                self.compaction.calm();
                break;
            }
        }
        Ok(())
    }

    /// Returns what to compact, if the window is over its threshold and anything of it can be.
    fn plan_over(&self, threshold: u64) -> Result<Option<CompactionPlan>> {
        match self.plan_compaction(self.compaction.options())? {
            Planned::Compact(plan) => Ok(Some(plan).filter(|plan| plan.usage().total > threshold)),
            Planned::Nothing(why) => {
                let tokens = self.visible_tokens()?.saturating_add(self.prompt_tokens()?);
                if tokens > threshold {
                    self.compaction.put_off(tokens.saturating_add((threshold / STUCK_PART).max(1)));
                    if self.compaction.is_newly_stuck() {
                        let why = why.to_string();
                        self.emit(|| Change::CannotShorten { tokens, threshold, why });
                    }
                }
                Ok(None)
            }
        }
    }

    /// Puts the next try off until the window has grown.
    fn put_off(&self, tokens: u64, threshold: u64) {
        self.compaction.put_off(tokens.saturating_add((threshold / RETRY_PART).max(1)));
    }
}
