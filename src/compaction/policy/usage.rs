//! How the tokens of a view are spread over a model's window.

use std::fmt;

use serde::Serialize;

use super::boundary::Zones;
use super::{CompactionOptions, Item};

/// How many tokens of a conversation a model sees, by part of its window.
///
/// Each message and each summary counts in exactly one part. `middle` can be compacted, together with
/// the summaries in it, unless that would part a tool call from its result.
///
/// ```
/// use talktree::WindowUsage;
///
/// let mut usage = WindowUsage::default();
/// (usage.prompt, usage.tail, usage.total) = (120, 40, 160);
/// assert_eq!(
///     usage.to_string(),
///     "160 tokens: prompt 120, head 0, summaries 0, middle 0, tail 40",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WindowUsage {
    /// The system prompt.
    pub prompt: u64,
    /// The summaries, wherever they are.
    pub summaries: u64,
    /// The protected messages at the start.
    pub head: u64,
    /// The messages between head and tail.
    pub middle: u64,
    /// The protected messages at the end; in a short view, all that are not in the head.
    pub tail: u64,
    /// The sum of all parts.
    pub total: u64,
}

impl WindowUsage {
    /// Returns the usage of a view with a system prompt of this many tokens.
    pub(crate) fn of(view: &[Item<'_>], prompt: u64, options: &CompactionOptions) -> Self {
        let zones = Zones::of(view, options);
        let mut usage = Self { prompt, total: prompt, ..Self::default() };
        for (at, item) in view.iter().enumerate() {
            let part = match item.is_summary {
                true => &mut usage.summaries,
                false if at < zones.head => &mut usage.head,
                false if at < zones.tail => &mut usage.middle,
                false => &mut usage.tail,
            };
            *part = part.saturating_add(item.tokens);
            usage.total = usage.total.saturating_add(item.tokens);
        }
        usage
    }
}

impl fmt::Display for WindowUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt, summaries, head, middle, tail, total } = self;
        write!(
            f,
            "{total} tokens: prompt {prompt}, head {head}, summaries {summaries}, middle {middle}, tail {tail}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, items};
    use super::*;

    #[test]
    fn every_item_counts_in_one_part() {
        // Each has 5 tokens.
        let options = CompactionOptions::default().keep_recent_tokens(10);
        for (view, parts) in [
            ("", [0, 0, 0, 0]),
            ("ua", [0, 10, 0, 0]),
            ("uaua", [0, 15, 0, 5]),
            ("uauaua", [0, 15, 5, 10]),
            ("uausuaua", [5, 15, 10, 10]),
            ("usauasa", [10, 5, 15, 5]),
        ] {
            let messages = drawn(view);
            let usage = WindowUsage::of(&items(&messages), 7, &options);
            assert_eq!([usage.summaries, usage.head, usage.middle, usage.tail], parts, "{view}");
            assert_eq!(usage.prompt, 7);
            assert_eq!(usage.total, 7 + 5 * view.len() as u64, "{view}");
        }
    }
}
