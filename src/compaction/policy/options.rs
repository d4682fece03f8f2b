//! What the policy is told.

/// What of a conversation is compacted, and how long its summary may be.
///
/// ```
/// use talktree::CompactionOptions;
///
/// let options = CompactionOptions::default()
///     .protect_head(1) // the first message stays as it is
///     .keep_recent_tokens(8_000); // and so does the end, up to this size
/// assert_ne!(options, CompactionOptions::default());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "options do nothing until something is compacted with them"]
pub struct CompactionOptions {
    pub(crate) protect_head: usize,
    /// What was asked for.
    keep_recent_tokens: Option<u64>,
    /// Over how many tokens the history is compacted by itself, if it is.
    threshold: Option<u64>,
    pub(crate) min_tail: usize,
    pub(crate) max_step_tokens: u64,
    pub(crate) max_tool_chars: usize,
    pub(crate) target_share: f64,
    pub(crate) min_summary_tokens: u64,
}

/// How many tokens of the end are kept if nobody says otherwise.
const KEEP_RECENT_TOKENS: u64 = 20_000;

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            protect_head: 3,
            keep_recent_tokens: None,
            threshold: None,
            min_tail: 2,
            max_step_tokens: 100_000,
            max_tool_chars: 500,
            target_share: 0.2,
            min_summary_tokens: 100,
        }
    }
}

impl CompactionOptions {
    /// The same for a history that is compacted by itself when it is over a threshold.
    pub(crate) fn within(self, threshold: u64) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// Returns how many tokens at the end are kept; if nobody said how many, some room is left below
    /// the threshold: 20 000 would be all of a small window.
    pub(crate) fn tail_tokens(&self) -> u64 {
        let room = self.threshold.map_or(u64::MAX, |threshold| threshold / 2);
        self.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS.min(room))
    }

    /// How many messages at the start are never compacted; 3 if it is not called. A summary ends the
    /// head, however short it is: what comes before it was left when the summary was made.
    pub fn protect_head(mut self, messages: usize) -> Self {
        self.protect_head = messages;
        self
    }

    /// How many tokens at the end are never compacted. If it is not called, 20 000, or in a session with
    /// [`compact_after`](crate::SessionBuilder::compact_after) half of that threshold if it is less.
    pub fn keep_recent_tokens(mut self, tokens: u64) -> Self {
        self.keep_recent_tokens = Some(tokens);
        self
    }

    /// How many messages at the end are never compacted, however long they are; 2 if it is not called,
    /// and at least 1.
    pub fn min_tail(mut self, messages: usize) -> Self {
        self.min_tail = messages.max(1);
        self
    }

    /// How many tokens are compacted at a time at the most, so that what a summarizer is asked fits its own
    /// window; 100 000 if it is not called. The prompt adds a line of its own to each message and some hundred words. What is more is compacted in steps, oldest first, each with
    /// the summary of those before. One message, and calls with their results, are compacted however long
    /// they are.
    pub fn max_step_tokens(mut self, tokens: u64) -> Self {
        self.max_step_tokens = tokens;
        self
    }

    /// How much a summarizer is shown of what a tool was called with and of what it answered, in
    /// characters of JSON; 500 each if it is not called.
    pub fn max_tool_chars(mut self, chars: usize) -> Self {
        self.max_tool_chars = chars;
        self
    }

    /// How long a summary should be, as a share of what it replaces; 0.2 if it is not called. Below
    /// 0 and above 1, it is taken as these; what is no number, as 0.
    pub fn target_share(mut self, share: f64) -> Self {
        self.target_share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self
    }

    /// How many tokens a summarizer is given at the least; 100 if it is not called.
    pub fn min_summary_tokens(mut self, tokens: u64) -> Self {
        self.min_summary_tokens = tokens;
        self
    }

    /// Returns how many tokens a summary of this many should have: the share of them, rounded down,
    /// but no fewer than the minimum.
    ///
    /// ```
    /// use talktree::CompactionOptions;
    ///
    /// let options = CompactionOptions::default();
    /// assert_eq!(options.target_tokens(30_000), 6_000);
    /// assert_eq!(options.target_tokens(504), 100);
    /// ```
    #[must_use]
    pub fn target_tokens(&self, replaced: u64) -> u64 {
        let share = (replaced as f64 * self.target_share).floor() as u64;
        share.max(self.min_summary_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_a_fifth_but_no_fewer_than_a_hundred() {
        let options = CompactionOptions::default();
        for (replaced, target) in
            [(0, 100), (1, 100), (504, 100), (505, 101), (509, 101), (510, 102), (100_003, 20_000)]
        {
            assert_eq!(options.target_tokens(replaced), target, "{replaced}");
        }
    }

    #[test]
    fn shares_that_are_none_are_taken_as_the_nearest() {
        for (share, target) in
            [(2.0, 1_000), (f64::INFINITY, 1_000), (-1.0, 5), (f64::NAN, 5), (0.5, 500)]
        {
            let options = CompactionOptions::default().target_share(share).min_summary_tokens(5);
            assert_eq!(options.target_tokens(1_000), target, "{share}");
        }
    }
}
