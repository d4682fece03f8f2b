//! Compaction by itself: after an append, when the window is over its threshold.
//!
//! It runs in the thread that appended, once the append has been committed, and never fails it.
//! One thread at a time compacts a session; others that are over the threshold go on without
//! waiting. What fails is told to the handler and to subscribers, and is tried again when the window
//! has grown by a twentieth of the threshold: a model that is out of reach does not hold up every
//! append.

use crate::error::Result;
use crate::event::{Change, Phase};
use crate::fold::{NotFolded, Plan, ask};
use crate::session::Session;

/// By which part of the threshold the window grows before what failed is tried again.
const RETRY_PART: u64 = 20;
/// How many steps one append takes at the most, where more is folded than one prompt holds.
const MAX_STEPS: usize = 64;

impl Session {
    /// Compacts the history if it is over the threshold, now that messages were appended; `visible`
    /// is what a model sees of it, if that is known.
    pub(in crate::session) fn keep_within(&self, visible: Option<u64>) {
        let Some(threshold) = self.folding.threshold() else { return };
        if let Err(error) = self.try_keep_within(threshold, visible) {
            self.folding.hear(&error);
            self.tell(|| Change::CompactionFailed { why: error.to_string() });
        }
    }

    fn try_keep_within(&self, threshold: u64, visible: Option<u64>) -> Result<()> {
        let visible = visible.map_or_else(|| self.visible_tokens(), Ok)?;
        let prompt = self.folding.noted_prompt().map_or_else(|| self.prompt_tokens(), Ok)?;
        let tokens = visible.saturating_add(prompt);
        self.tell(|| Change::Window { phase: Phase::Idle, tokens, threshold });
        if tokens <= threshold {
            self.folding.calm();
            return Ok(());
        }
        let Some(_turn) = self.folding.turns().enter(self.id()) else { return Ok(()) };
        // Asked in the turn: whoever had it before may have failed since this window was measured.
        if !self.folding.is_due(tokens) {
            return Ok(());
        }
        let folded = self.fold_within(threshold);
        if folded.is_err() {
            // Some steps may have been taken.
            let visible = self.visible_tokens().unwrap_or(visible);
            self.folding.put_off(next_try(visible.saturating_add(prompt), threshold));
        }
        folded
    }

    /// Folds until the window is within the threshold, or nothing more can be.
    fn fold_within(&self, threshold: u64) -> Result<()> {
        let mut window = None;
        let folded = self.fold_in_steps(threshold, &mut window);
        // What was told to begin is told to end, however it did.
        if let Some(tokens) = window {
            self.tell(|| Change::Window { phase: Phase::Idle, tokens, threshold });
        }
        folded
    }

    /// Takes the steps; `window` is how large it is, once something is done about it.
    fn fold_in_steps(&self, threshold: u64, window: &mut Option<u64>) -> Result<()> {
        for _ in 0..MAX_STEPS {
            let plan = match self.plan_compaction(self.folding.options())? {
                Plan::Fold(plan) if plan.usage().total <= threshold => break,
                Plan::Fold(plan) => plan,
                Plan::Nothing(why) => return self.is_stuck(threshold, &why),
            };
            let total = *window.insert(plan.usage().total);
            self.tell(|| Change::Window { phase: Phase::Compacting, tokens: total, threshold });
            let summary = ask(self.summarizer()?, plan.prompt())?;
            let folded = self.commit(plan, summary)?;
            self.folding.calm();
            let now = *window.insert(total - folded.tokens_before + folded.tokens_after);
            if now <= threshold {
                break;
            }
        }
        Ok(())
    }

    /// Tells once that the window is over its threshold and cannot be shortened.
    fn is_stuck(&self, threshold: u64, why: &NotFolded) -> Result<()> {
        let tokens = self.visible_tokens()?.saturating_add(self.prompt_tokens()?);
        if tokens <= threshold {
            return Ok(());
        }
        self.folding.put_off(next_try(tokens, threshold));
        if self.folding.is_newly_stuck() {
            self.tell(|| Change::CannotShorten { tokens, threshold, why: why.to_string() });
        }
        Ok(())
    }
}

/// Returns how large a window of this size is to be for another try.
fn next_try(tokens: u64, threshold: u64) -> u64 {
    tokens.saturating_add((threshold / RETRY_PART).max(1))
}
