//! The policy of compaction: pure logic without I/O, clock or model.
//!
//! A *view* is what a model sees of a path: messages and summaries, each with its tokens. Its head
//! and its tail are protected. [`boundary()`] chooses the range to compact from the *middle* between
//! them, [`summary_prompt()`] asks for its summary, and [`judge()`] says whether the answer may
//! replace the range. A program may have a [`CompactionPolicy`] of its own instead: its range and its summary are held to
//! the same rules. [`WindowUsage`] shows how the tokens are spread over the view. One
//! [`Counter`] counts the tokens for all of them.
//!
//! Invariant: a tool call and its result are both inside a compaction or both outside.
//! Invariant: an accepted summary has fewer tokens than the range it replaces.

mod boundary;
mod summarizer;
mod summary_prompt;
#[cfg(test)]
mod tests;
mod window;

use std::ops::Range;

use super::{PlanOrigin, Seen};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::tokens::Counter;

pub use boundary::NothingToCompact;
pub(crate) use boundary::boundary;
pub use summarizer::{Extract, Summarized, Summarizer};
pub(crate) use summarizer::{ask, judge};
pub(crate) use summary_prompt::{Purpose, summary_prompt};
pub use window::{CompactionPolicy, CompactionWindow, RangeSummary, RequestTokens, WindowUsage};
pub(crate) use window::{Given, Overhead, choose};

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

/// A range of a view to compact, and the prompt for its summary.
///
/// Nothing is locked while a summarizer answers the prompt. [`Session::commit`](crate::Session::commit)
/// commits the plan with the answer, and refuses if the range has changed since it was planned.
///
/// ```
/// use talktree::{CompactionOptions, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
///
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Ok(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
/// assert_eq!((plan.first().as_str(), plan.last().as_str(), plan.messages()), ("4", "7", 4));
/// assert_eq!((plan.tokens(), plan.target_tokens()), (4 * 69, 100));
/// assert_eq!((plan.usage().total, plan.expected_total()), (9 * 69, 5 * 69 + 100));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a plan does nothing until it is committed"]
pub struct CompactionPlan {
    origin: Option<PlanOrigin>,
    leaf: MessageId,
    first: MessageId,
    last: MessageId,
    messages: usize,
    summaries: Vec<CompactionId>,
    tokens: u64,
    target_tokens: u64,
    usage: WindowUsage,
    prompt: Box<str>,
    seen: Seen,
}

impl CompactionPlan {
    /// Returns the plan for the view at `leaf`, in a request with this prompt and these tools.
    pub(crate) fn of(
        view: &[Message],
        leaf: MessageId,
        overhead: Overhead,
        options: &CompactionOptions,
        counter: &Counter,
    ) -> Result<Self, NothingToCompact> {
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        let range = boundary(&items, options)?;
        let prompt = summary_prompt(&items[range.clone()], options, Purpose::Range);
        let plan = Self::over(&items, range, leaf, overhead, options);
        let plan = plan.ok_or(NothingToCompact::OnlySummaries { summaries: 0 })?;
        Ok(Self { prompt: prompt.into(), ..plan })
    }

    /// Returns the plan for a range of a view, without a prompt; `None` if the range is empty.
    pub(super) fn over(
        items: &[Item<'_>],
        range: Range<usize>,
        leaf: MessageId,
        overhead: Overhead,
        options: &CompactionOptions,
    ) -> Option<Self> {
        let compacted = &items[range];
        let (first, last) = (compacted.first()?, compacted.last()?);
        let summaries =
            compacted.iter().filter_map(|item| CompactionId::from_message(&item.message.id));
        let summaries: Vec<CompactionId> = summaries.collect();
        let tokens = tokens_of(compacted);
        Some(Self {
            origin: None,
            leaf,
            first: first.message.id.clone(),
            last: last.message.id.clone(),
            messages: compacted.len() - summaries.len(),
            summaries,
            tokens,
            target_tokens: options.target_tokens(tokens),
            usage: WindowUsage::of(items, overhead, options),
            prompt: Box::default(),
            seen: Seen::of(compacted.iter().map(|item| item.message)),
        })
    }

    /// Binds the plan to the session that it was made in.
    pub(crate) fn made_in(self, origin: PlanOrigin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Returns the session that the plan was made in.
    pub(crate) fn origin(&self) -> Option<&PlanOrigin> {
        self.origin.as_ref()
    }

    /// Returns the prompt for the summarizer.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the leaf of the view's path.
    #[must_use]
    pub fn leaf(&self) -> &MessageId {
        &self.leaf
    }

    /// Returns the id of the first item in the range: a message, or a summary as the history shows it.
    #[must_use]
    pub fn first(&self) -> &MessageId {
        &self.first
    }

    /// Returns the id of the last item in the range.
    #[must_use]
    pub fn last(&self) -> &MessageId {
        &self.last
    }

    /// Returns how many messages are compacted, without the summaries among them.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the compactions whose summaries are in the range, oldest first. The prompt quotes all of
    /// them.
    #[must_use]
    pub fn summaries(&self) -> &[CompactionId] {
        &self.summaries
    }

    /// Returns how many tokens the range takes in the window.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns how many tokens the prompt allows the summary.
    #[must_use]
    pub fn target_tokens(&self) -> u64 {
        self.target_tokens
    }

    /// Returns how the tokens of the view are spread over the window.
    #[must_use]
    pub fn usage(&self) -> WindowUsage {
        self.usage
    }

    /// Returns how many tokens the window holds after the compaction, if the summary has
    /// [`target_tokens`](Self::target_tokens).
    #[must_use]
    pub fn expected_total(&self) -> u64 {
        self.usage.total - self.tokens + self.target_tokens.min(self.tokens)
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }
}

/// A message or a summary that a model sees, with its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) message: &'a Message,
    pub(crate) tokens: u64,
    pub(crate) is_summary: bool,
}

impl<'a> Item<'a> {
    /// Returns the item of a message of a history. Its id shows whether it is a summary.
    pub(crate) fn of(message: &'a Message, counter: &Counter) -> Self {
        Self::counted(message, counter.message(message))
    }

    /// Returns the item of a message whose tokens are known.
    pub(crate) fn counted(message: &'a Message, tokens: u64) -> Self {
        let is_summary = CompactionId::from_message(&message.id).is_some();
        Self { message, tokens, is_summary }
    }
}

/// Returns the sum of the tokens.
pub(crate) fn tokens_of(items: &[Item<'_>]) -> u64 {
    items.iter().fold(0, |sum, item| sum.saturating_add(item.tokens))
}
