//! How the tokens of a view are spread over a model's window.

use std::fmt;

use serde::Serialize;

use super::boundary::Zones;
use super::{CompactionOptions, Item};

/// How many tokens of a conversation a model sees, by part of its window.
///
/// The prompt and the tools are those of the session's context. Each message and each summary counts in exactly one part. `middle` can be compacted, together with
/// the summaries in it, unless that would part a tool call from its result.
///
/// ```
/// use talktree::WindowUsage;
///
/// let mut usage = WindowUsage::default();
/// (usage.prompt, usage.tail, usage.total) = (120, 40, 160);
/// assert_eq!(
///     usage.to_string(),
///     "160 tokens: prompt 120, tools 0, head 0, summaries 0, middle 0, tail 40",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WindowUsage {
    /// The system prompt.
    pub prompt: u64,
    /// The definitions of the tools that the context offers.
    pub tools: u64,
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
    /// Returns the usage of a view in a request with this prompt and these tools.
    pub(crate) fn of(
        view: &[Item<'_>],
        besides: BesidesMessages,
        options: &CompactionOptions,
    ) -> Self {
        let zones = Zones::of(view, options);
        let BesidesMessages { prompt, tools } = besides;
        let mut usage = Self { prompt, tools, total: besides.total(), ..Self::default() };
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

/// The tokens of a request that are not messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BesidesMessages {
    pub(crate) prompt: u64,
    pub(crate) tools: u64,
}

impl BesidesMessages {
    pub(crate) fn total(self) -> u64 {
        self.prompt.saturating_add(self.tools)
    }
}

/// How many tokens a request to a model has, by part.
///
/// ```
/// use talktree::{Block, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
/// chat.append(Message::user("Hello world"))?;
///
/// let request = chat.request_tokens()?;
/// assert_eq!(request.messages, 7);
/// assert!(request.prompt > 0 && request.tools > 0); // the block, and the tool that writes it
/// assert_eq!(request.total, request.prompt + request.tools + request.messages);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct RequestTokens {
    /// The system prompt with its context blocks.
    pub prompt: u64,
    /// The definitions of the tools that the context offers. The program's own tools are not known here.
    pub tools: u64,
    /// The messages and summaries of the history.
    pub messages: u64,
    /// The sum of all parts.
    pub total: u64,
}

impl RequestTokens {
    pub(crate) fn of(besides: BesidesMessages, messages: u64) -> Self {
        let BesidesMessages { prompt, tools } = besides;
        Self { prompt, tools, messages, total: besides.total().saturating_add(messages) }
    }
}

/// What the threshold of automatic compaction is compared with.
///
/// ```
/// use talktree::{Block, BoxError, Message, Store, ThresholdOf};
///
/// let store = Store::open_in_memory()?;
/// let chat = store
///     .session_builder("s")
///     .block("rules", Block::text("rule ".repeat(1_000))) // more than the threshold
///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
///     .compact_after(1_000)
///     .threshold_of(ThresholdOf::Messages)
///     .open()?;
/// for _ in 0..9 {
///     chat.append(Message::user("word ".repeat(50)))?;
/// }
/// assert_eq!(chat.compactions()?.len(), 0); // the messages have 621 tokens
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ThresholdOf {
    /// The prompt with its blocks, the tools of the context, and the history.
    #[default]
    Request,
    /// The history alone.
    Messages,
}

impl fmt::Display for WindowUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt, tools, summaries, head, middle, tail, total } = self;
        write!(
            f,
            "{total} tokens: prompt {prompt}, tools {tools}, head {head}, summaries {summaries}, middle {middle}, tail {tail}"
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
            let besides = BesidesMessages { prompt: 7, tools: 4 };
            let usage = WindowUsage::of(&items(&messages), besides, &options);
            assert_eq!([usage.summaries, usage.head, usage.middle, usage.tail], parts, "{view}");
            assert_eq!((usage.prompt, usage.tools), (7, 4));
            assert_eq!(usage.total, 11 + 5 * view.len() as u64, "{view}");
        }
    }
}
