//! What a model's window holds, and policies of the program that choose a range of it themselves.
//!
//! A policy is given the view, and names the first and the last item of a range in it. The range is checked as talktree's
//! own ranges are made: it consists of whole items, parts no tool call from its result, and leaves out what the options
//! of the session protect, if the program has set them.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use super::boundary::Zones;
use super::summary_prompt::{Purpose, summary_prompt};
use super::{CompactionOptions, CompactionPlan, Item, NothingToCompact, boundary};
use crate::callback;
use crate::compaction::{Summary, SummaryRefused};
use crate::error::{BoxError, Error, Result};
use crate::id::MessageId;
use crate::message::{Message, pairs_across};

/// Chooses a range of the history and writes its summary, in place of talktree's own choice and the summarizer.
///
/// Every closure that takes a [`CompactionWindow`] and returns a `Result` of a [`RangeSummary`], or of an `Option` of one,
/// is a policy; `None` declines. It may be slow and call the library, as a [`Summarizer`](crate::Summarizer) may.
///
/// The answer is refused with [`Error::SummaryRefused`] if the range names an item that the window does not show, begins
/// after its end, or parts a tool call from its result; if the summary is blank or not shorter than the range; and, in a
/// session with [`compaction_options`](crate::SessionBuilder::compaction_options), if the range holds a message that
/// these protect. If the range changed while the policy ran, the answer is refused with [`Error::Stale`].
///
/// ```
/// use talktree::{BoxError, CompactionWindow, Message, RangeSummary, Store};
///
/// // Drops the oldest messages, except for the first one.
/// let policy = |window: &CompactionWindow<'_>| -> Result<Option<RangeSummary>, BoxError> {
///     let [_, rest @ ..] = window.messages() else { return Ok(None) };
///     let (Some(first), Some(last)) = (rest.first(), rest.iter().rev().nth(4)) else { return Ok(None) };
///     Ok(Some(RangeSummary::new(&first.id, &last.id, "(left out)")))
/// };
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").compaction_policy(policy).compact_after(500).open()?;
/// for n in 1..=9 {
///     chat.append(Message::user("word ".repeat(50)).with_id(n.to_string()))?;
/// }
/// let shown: Vec<String> = chat.history()?.iter().map(|it| it.text().chars().take(10).collect()).collect();
/// assert_eq!(shown, ["word word ", "(left out)", "word word ", "word word ", "word word ", "word word ", "word word "]);
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait CompactionPolicy: Send + Sync {
    /// Returns the range to compact now with its summary; `None` if nothing should be compacted now.
    ///
    /// # Errors
    /// Any error; the caller gets it as [`Error::CompactionPolicy`].
    fn compact(
        &self,
        window: &CompactionWindow<'_>,
    ) -> std::result::Result<Option<RangeSummary>, BoxError>;
}

impl<F, A, E> CompactionPolicy for F
where
    F: Fn(&CompactionWindow<'_>) -> std::result::Result<A, E> + Send + Sync,
    A: Into<Option<RangeSummary>>,
    E: Into<BoxError>,
{
    fn compact(
        &self,
        window: &CompactionWindow<'_>,
    ) -> std::result::Result<Option<RangeSummary>, BoxError> {
        self(window).map(Into::into).map_err(Into::into)
    }
}

/// A range of a history with its summary: the answer of a [`CompactionPolicy`], which has an example.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSummary {
    first: MessageId,
    last: MessageId,
    summary: Summary,
}

impl RangeSummary {
    /// Returns a summary of the range from `first` to `last`, both included: ids of messages or summaries as the
    /// [`CompactionWindow`] shows them.
    #[must_use]
    pub fn new(first: &MessageId, last: &MessageId, summary: impl Into<Summary>) -> Self {
        Self { first: first.clone(), last: last.clone(), summary: summary.into() }
    }
}

/// What a [`CompactionPolicy`] is given: the history as a model sees it, with its tokens.
#[derive(Debug)]
pub struct CompactionWindow<'a> {
    view: &'a [Message],
    items: &'a [Item<'a>],
    usage: WindowUsage,
    options: &'a CompactionOptions,
    threshold: Option<u64>,
}

impl CompactionWindow<'_> {
    /// Returns the messages and summaries, oldest first.
    ///
    /// A summary is recognised by [`CompactionId::from_message`](crate::CompactionId::from_message).
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.view
    }

    /// Returns the tokens of the item at this place of [`messages`](Self::messages); 0 if there is none.
    #[must_use]
    pub fn tokens(&self, at: usize) -> u64 {
        self.items.get(at).map_or(0, |item| item.tokens)
    }

    /// Returns how the tokens are spread over the window.
    #[must_use]
    pub fn usage(&self) -> WindowUsage {
        self.usage
    }

    /// Returns the options of the session.
    pub fn options(&self) -> &CompactionOptions {
        self.options
    }

    /// Returns the threshold of automatic compaction, in tokens; `None` without one.
    #[must_use]
    pub fn threshold(&self) -> Option<u64> {
        self.threshold
    }

    /// Returns the range that talktree would compact, as places in [`messages`](Self::messages), or why it would compact
    /// nothing.
    ///
    /// ```
    /// use talktree::{BoxError, CompactionOptions, CompactionWindow, Message, RangeSummary, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let policy = |window: &CompactionWindow<'_>| -> Result<Option<RangeSummary>, BoxError> {
    ///     let Ok(range) = window.suggested() else { return Ok(None) };
    ///     let prompt = window.summary_prompt(range.clone()).unwrap_or_default(); // to ask a model of one's own
    ///     let summary = format!("They said words, in {} lines.", prompt.lines().count());
    ///     let range = &window.messages()[range];
    ///     Ok(Some(RangeSummary::new(&range[0].id, &range[range.len() - 1].id, summary)))
    /// };
    /// let options = CompactionOptions::default().keep_recent_tokens(0);
    /// let chat = store.session_builder("s").compaction_policy(policy).compaction_options(options).open()?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    ///
    /// let _ = chat.compact()?;
    /// let compaction = chat.compactions()?.remove(0);
    /// assert_eq!((compaction.first.as_str(), compaction.last.as_str()), ("4", "7"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// The reason why nothing would be compacted.
    pub fn suggested(&self) -> std::result::Result<Range<usize>, NothingToCompact> {
        boundary(self.items, self.options)
    }

    /// Returns the prompt with which talktree would ask a summarizer for a summary of this range of
    /// [`messages`](Self::messages); `None` if the range is empty or reaches beyond them.
    #[must_use]
    pub fn summary_prompt(&self, range: Range<usize>) -> Option<String> {
        let items = self.items.get(range).filter(|items| !items.is_empty())?;
        Some(summary_prompt(items, self.options, Purpose::Range))
    }
}

/// What a policy is asked about.
pub(crate) struct Given<'a> {
    pub(crate) view: &'a [Message],
    /// The tokens of each item of the view.
    pub(crate) tokens: &'a [u64],
    pub(crate) leaf: MessageId,
    pub(crate) overhead: Overhead,
    pub(crate) threshold: Option<u64>,
    pub(crate) options: &'a CompactionOptions,
    /// Whether the program has set the options: then what they protect is refused.
    pub(crate) is_protecting: bool,
}

/// Asks a policy; returns the plan for its range and its summary, or `None` if it declines. A panic becomes an error.
pub(crate) fn choose(
    policy: &dyn CompactionPolicy,
    given: Given<'_>,
) -> Result<Option<(CompactionPlan, Summary)>> {
    let Given { view, tokens, leaf, overhead, threshold, options, is_protecting } = given;
    let items: Vec<Item<'_>> =
        view.iter().zip(tokens).map(|(it, tokens)| Item::counted(it, *tokens)).collect();
    let usage = WindowUsage::of(&items, overhead, options);
    let window = CompactionWindow { view, items: &items, usage, options, threshold };
    let answer = callback::call(|| policy.compact(&window));
    let answer = answer.unwrap_or_else(|failed| Err(failed.into()));
    let chosen = answer.map_err(|source| Error::CompactionPolicy { source })?;
    let Some(RangeSummary { first, last, summary }) = chosen else { return Ok(None) };
    let zones = is_protecting.then(|| Zones::of(&items, options));
    let range = checked(&items, &first, &last, zones);
    let range = range.map_err(|why| Error::SummaryRefused { why })?;
    let plan = CompactionPlan::over(&items, range, leaf, overhead, options);
    Ok(plan.map(|plan| (plan, summary)))
}

/// Returns the range between two items, or why it may not be compacted.
fn checked(
    items: &[Item<'_>],
    first: &MessageId,
    last: &MessageId,
    zones: Option<Zones>,
) -> std::result::Result<Range<usize>, SummaryRefused> {
    let place = |id: &MessageId| {
        let at = items.iter().position(|item| item.message.id == *id);
        at.ok_or_else(|| SummaryRefused::NotShown { id: id.clone() })
    };
    let (start, end) = (place(first)?, place(last)?);
    if start > end {
        return Err(SummaryRefused::Reversed { first: first.clone(), last: last.clone() });
    }
    let range = start..end + 1;
    if let Some(Zones { head, tail }) = zones {
        let is_protected = |at: &usize| *at < head || *at >= tail;
        if let Some(at) = range.clone().find(is_protected) {
            return Err(SummaryRefused::Protected { id: items[at].message.id.clone() });
        }
    }
    let pairs = pairs_across(items.iter().map(|item| item.message));
    let parted = |(call, result): &(usize, usize)| range.contains(call) != range.contains(result);
    if let Some((call, result)) = pairs.into_iter().find(parted) {
        let id = |at: usize| items[at].message.id.clone();
        return Err(SummaryRefused::PartsPair { call: id(call), result: id(result) });
    }
    Ok(range)
}

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
    pub(crate) fn of(view: &[Item<'_>], overhead: Overhead, options: &CompactionOptions) -> Self {
        let zones = Zones::of(view, options);
        let Overhead { prompt, tools } = overhead;
        let mut usage = Self { prompt, tools, total: overhead.total(), ..Self::default() };
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
pub(crate) struct Overhead {
    pub(crate) prompt: u64,
    pub(crate) tools: u64,
}

impl Overhead {
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
    pub(crate) fn of(overhead: Overhead, messages: u64) -> Self {
        let Overhead { prompt, tools } = overhead;
        Self { prompt, tools, messages, total: overhead.total().saturating_add(messages) }
    }
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

    /// Returns the refusal of the range between two letters of a drawn view; empty if it is accepted.
    fn refusal(
        view: &str,
        first: usize,
        last: usize,
        options: Option<&CompactionOptions>,
    ) -> String {
        let messages = drawn(view);
        let items = items(&messages);
        let zones = options.map(|options| Zones::of(&items, options));
        let (first, last) = (&messages[first].id, &messages[last].id);
        match checked(&items, first, last, zones) {
            Ok(_) => String::new(),
            Err(SummaryRefused::Reversed { .. }) => "reversed".to_owned(),
            Err(SummaryRefused::Protected { id }) => {
                format!("protected {:?}", messages.iter().position(|it| it.id == id))
            }
            Err(SummaryRefused::PartsPair { call, result }) => {
                let place = |id| messages.iter().position(|it| it.id == id).unwrap();
                format!("parts {} {}", place(call), place(result))
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_range_of_whole_items_that_parts_no_pair_is_accepted() {
        for (view, first, last, expected) in [
            ("uaua", 0, 3, ""),
            ("uaua", 2, 2, ""),
            ("uaua", 2, 1, "reversed"),
            ("uA1u", 1, 2, ""),
            ("uA1u", 0, 1, "parts 1 2"),
            ("uA1u", 2, 3, "parts 1 2"),
            ("uAuu1u", 2, 3, ""),
            ("usua", 1, 1, ""),
            ("uTua", 1, 1, ""),
        ] {
            assert_eq!(refusal(view, first, last, None), expected, "{view} {first}..={last}");
        }
    }

    #[test]
    fn what_the_options_protect_is_refused_if_they_are_set() {
        let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(0);
        for (first, last, expected) in
            [(1, 3, ""), (0, 3, "protected Some(0)"), (1, 4, "protected Some(4)")]
        {
            assert_eq!(refusal("uauaua", first, last, Some(&options)), expected);
            assert_eq!(refusal("uauaua", first, last, None), "");
        }
    }

    #[test]
    fn an_item_that_the_view_does_not_show_is_refused() {
        let messages = drawn("ua");
        let refused = checked(&items(&messages), &messages[0].id, &"elsewhere".into(), None);
        assert_eq!(refused, Err(SummaryRefused::NotShown { id: "elsewhere".into() }));
    }
}

#[cfg(test)]
mod usage_tests {
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
            let overhead = Overhead { prompt: 7, tools: 4 };
            let usage = WindowUsage::of(&items(&messages), overhead, &options);
            assert_eq!([usage.summaries, usage.head, usage.middle, usage.tail], parts, "{view}");
            assert_eq!((usage.prompt, usage.tools), (7, 4));
            assert_eq!(usage.total, 11 + 5 * view.len() as u64, "{view}");
        }
    }
}
