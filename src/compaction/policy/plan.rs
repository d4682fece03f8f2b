//! Plans: the range to compact, the prompt for its summary, and what was seen of the view.

use std::ops::Range;

use super::item::tokens_of;
use super::summary_prompt::{Purpose, summary_prompt};
use super::{BesidesMessages, CompactionOptions, Item, NothingToCompact, WindowUsage, boundary};
use crate::compaction::{PlanOrigin, Seen};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::tokens::Counter;

/// A plan for a compaction, or the reason why there is nothing to compact.
///
/// ```
/// use talktree::{CompactionOptions, Message, NothingToCompact, Planned, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hello"))?;
/// match chat.plan_compaction(&CompactionOptions::default())? {
///     Planned::Compact(plan) => println!("{}", plan.prompt()),
///     Planned::Nothing(why) => assert!(matches!(why, NothingToCompact::TooShort { messages: 1, .. })),
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Planned {
    /// A range to compact.
    Compact(CompactionPlan),
    /// There is nothing to compact, for this reason.
    Nothing(NothingToCompact),
}

/// A range of a view to compact, and the prompt for its summary.
///
/// Nothing is locked while a summarizer answers the prompt. [`Session::commit`](crate::Session::commit)
/// commits the plan with the answer, and refuses if the range has changed since it was planned.
///
/// ```
/// use talktree::{CompactionOptions, Message, Planned, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
///
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Planned::Compact(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
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
        besides: BesidesMessages,
        options: &CompactionOptions,
        counter: &Counter,
    ) -> Result<Self, NothingToCompact> {
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        let range = boundary(&items, options)?;
        let prompt = summary_prompt(&items[range.clone()], options, Purpose::Range);
        let plan = Self::over(&items, range, leaf, besides, options);
        let plan = plan.ok_or(NothingToCompact::OnlySummaries { summaries: 0 })?;
        Ok(Self { prompt: prompt.into(), ..plan })
    }

    /// Returns the plan for a range of a view, without a prompt; `None` if the range is empty.
    pub(super) fn over(
        items: &[Item<'_>],
        range: Range<usize>,
        leaf: MessageId,
        besides: BesidesMessages,
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
            usage: WindowUsage::of(items, besides, options),
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
