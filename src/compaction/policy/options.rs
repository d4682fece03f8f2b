//! The options of a compaction.

/// Sets which range of a conversation is compacted and how long the summary should be.
///
/// ```
/// use talktree::CompactionOptions;
///
/// let options = CompactionOptions::default()
///     .protect_head(1) // never compacts the first message
///     .keep_recent_tokens(8_000); // nor the newest messages, up to this size
/// assert_ne!(options, CompactionOptions::default());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "options do nothing until something is compacted with them"]
pub struct CompactionOptions {
    pub(crate) protect_head: usize,
    /// `None` until it is set.
    keep_recent_tokens: Option<u64>,
    /// The size in tokens above which the session compacts its history by itself, if it does.
    threshold: Option<u64>,
    pub(crate) min_tail: usize,
    pub(crate) max_step_tokens: u64,
    pub(crate) max_tool_chars: usize,
    pub(crate) target_share: f64,
    pub(crate) min_summary_tokens: u64,
}

/// How many tokens at the end are kept by default.
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
    /// The same options for a session that compacts its history above a threshold.
    pub(crate) fn within(self, threshold: u64) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// Returns how many tokens at the end are kept. The default is at most half the threshold: 20 000
    /// would fill a small window.
    pub(crate) fn tail_tokens(&self) -> u64 {
        let room = self.threshold.map_or(u64::MAX, |threshold| threshold / 2);
        self.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS.min(room))
    }

    /// Sets how many messages at the start are never compacted; 3 by default.
    ///
    /// A summary among them ends the head early: only the messages before it are protected.
    pub fn protect_head(mut self, messages: usize) -> Self {
        self.protect_head = messages;
        self
    }

    /// Sets how many tokens at the end are never compacted; 20 000 by default.
    ///
    /// In a session with [`compact_after`](crate::SessionBuilder::compact_after) the default is at
    /// most half of that threshold.
    pub fn keep_recent_tokens(mut self, tokens: u64) -> Self {
        self.keep_recent_tokens = Some(tokens);
        self
    }

    /// Sets how many messages at the end are never compacted, however long they are; 2 by default,
    /// at least 1.
    pub fn min_tail(mut self, messages: usize) -> Self {
        self.min_tail = messages.max(1);
        self
    }

    /// Sets how many tokens are compacted at once at most, so that the prompt fits the summarizer's
    /// window; 100 000 by default.
    ///
    /// The prompt adds a line to each message, and some hundred words. A longer range is compacted in
    /// steps, oldest first; each step includes the summary of the one before. A step holds at
    /// least one message and never parts a call from its result, even if that exceeds the limit.
    pub fn max_step_tokens(mut self, tokens: u64) -> Self {
        self.max_step_tokens = tokens;
        self
    }

    /// Sets how much of each tool input and output the summarizer sees, in characters of JSON; 500 by
    /// default.
    pub fn max_tool_chars(mut self, chars: usize) -> Self {
        self.max_tool_chars = chars;
        self
    }

    /// Sets how long a summary should be, as a share of the tokens it replaces; 0.2 by default.
    ///
    /// Limited to 0 up to 1; NaN counts as 0.
    pub fn target_share(mut self, share: f64) -> Self {
        self.target_share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self
    }

    /// Sets the least number of tokens that a summarizer may use; 100 by default.
    pub fn min_summary_tokens(mut self, tokens: u64) -> Self {
        self.min_summary_tokens = tokens;
        self
    }

    /// Returns how many tokens a summary should have that replaces this many: the share of them,
    /// rounded down, but at least the minimum.
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
    fn a_summary_has_a_fifth_of_the_tokens_but_at_least_a_hundred() {
        let options = CompactionOptions::default();
        for (replaced, target) in
            [(0, 100), (1, 100), (504, 100), (505, 101), (509, 101), (510, 102), (100_003, 20_000)]
        {
            assert_eq!(options.target_tokens(replaced), target, "{replaced}");
        }
    }

    #[test]
    fn a_share_is_limited_to_valid_ones() {
        for (share, target) in
            [(2.0, 1_000), (f64::INFINITY, 1_000), (-1.0, 5), (f64::NAN, 5), (0.5, 500)]
        {
            let options = CompactionOptions::default().target_share(share).min_summary_tokens(5);
            assert_eq!(options.target_tokens(1_000), target, "{share}");
        }
    }
}
