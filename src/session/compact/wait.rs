//! Waiting: when automatic compaction is tried again.
//!
//! After a failure the window has to grow, so that a model that cannot be reached does not delay every append. If the
//! summarizer declined, the window has to grow by more, or the history or the prompt has to change in another way. If there
//! was nothing to compact, the wait ends when a plan may exist: when as many messages or tokens were appended as the last
//! plan lacked, or when the history or the prompt changed in another way.

use crate::compaction::policy::{CompactionOptions, NothingToCompact, WindowUsage};

/// After a failure, the window grows by this part of the threshold before the next attempt.
const RETRY_PART: u64 = 20;
/// After the summarizer declined, the window grows by this part of the threshold before the next attempt. If compaction
/// cannot bring the window within its threshold, the messages between head and tail grow to this part of
/// it before the next attempt. Otherwise nearly every append would call the summarizer.
const STUCK_PART: u64 = 4;

/// What has to happen before the next attempt; the default waits for nothing.
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
