//! Automatic compaction: after an append that takes the window over its threshold.
//!
//! It runs in the thread that appended, after the commit, and never fails the append. One thread at a
//! time compacts a session; others go on without waiting. A failure goes to the error handler and to
//! subscribers. [`Wait`] says when the next attempt is due.

use super::wait::Wait;
use crate::callback::caught;
use crate::compaction::policy::{CompactionPlan, Planned, WindowUsage, ask};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};
use crate::session::Session;

/// The most compactions after one append; several are needed where one prompt does not hold all.
const MAX_STEPS: usize = 64;

impl Session {
    /// Compacts the history after an append of some messages if it is over the threshold; `visible` is
    /// its size in tokens, if known.
    pub(in crate::session) fn keep_within(&self, visible: Option<u64>, appended: usize) {
        let Some(threshold) = self.compaction.threshold() else { return };
        self.compaction.note_appended(appended);
        // The append is committed: a panic here, such as one of a caller's storage, must not make it look failed.
        let kept = caught(|| self.try_keep_within(threshold, visible));
        let kept = kept.unwrap_or_else(|failed| {
            Err(Error::Callback { what: "automatic compaction", why: failed.to_string() })
        });
        if let Err(error) = kept {
            self.compaction.report(&error);
            self.emit_failure(&error);
        }
    }

    fn try_keep_within(&self, threshold: u64, visible: Option<u64>) -> Result<()> {
        let visible = visible.map_or_else(|| self.visible_tokens(), Ok)?;
        let prompt = match self.compaction.noted_prompt() {
            Some(prompt) => prompt,
            None if !self.compaction.is_due(visible) => return Ok(()),
            None => self.prompt_tokens().inspect_err(|_| {
                self.compaction.set_wait(Wait::after_failure(visible, threshold));
            })?,
        };
        let tokens = visible.saturating_add(prompt);
        self.emit(|| self.window(Phase::Idle, tokens));
        if tokens <= threshold {
            self.compaction.reset_wait();
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
            let tokens = visible.saturating_add(prompt);
            self.compaction.set_wait(Wait::after_failure(tokens, threshold));
        }
        compacted
    }

    /// Compacts until the window is within the threshold or nothing more can be compacted.
    fn compact_within(&self, threshold: u64) -> Result<()> {
        for _ in 0..MAX_STEPS {
            let Some(plan) = self.plan_over(threshold)? else { break };
            let before = plan.usage().total;
            self.emit(|| self.window(Phase::Compacting, before));
            let asked = self.summarizer().and_then(|summarizer| ask(summarizer, plan.prompt()));
            let compacted = asked.and_then(|summary| self.commit_silently(plan, summary));
            let after = compacted.as_ref().map_or(before, |compacted| {
                before - compacted.tokens_before + compacted.tokens_after
            });
            self.emit(|| self.window(Phase::Idle, after));
            compacted?;
            if after <= threshold {
                self.compaction.reset_wait();
                break;
            }
        }
        Ok(())
    }

    /// Returns the next plan, if the window is over the threshold and the plan is worth a summary.
    fn plan_over(&self, threshold: u64) -> Result<Option<CompactionPlan>> {
        let options = self.compaction.options();
        match self.plan_compaction(options)? {
            Planned::Compact(plan) if plan.usage().total <= threshold => Ok(None),
            Planned::Compact(plan) => {
                let (usage, was_stuck) = (plan.usage(), self.compaction.is_stuck());
                let wait = match plan.expected_total() <= threshold && !was_stuck {
                    true => None,
                    false => Wait::for_a_better_plan(&usage, options, threshold, was_stuck),
                };
                let Some(wait) = wait else { return Ok(Some(plan)) };
                let WindowUsage { prompt, head, tail, .. } = usage;
                self.wait_stuck(wait, threshold, usage.total, || {
                    format!("the prompt has {prompt} tokens, the protected messages have {head} at the start and {tail} at the end")
                });
                Ok(None)
            }
            Planned::Nothing(why) => {
                let usage = self.window_usage()?;
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
