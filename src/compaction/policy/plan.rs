//! Plans: a stretch to compaction, what to ask a summarizer, and what was seen of the view.

use super::item::tokens_of;
use super::summary_prompt::{Purpose, summary_prompt};
use super::{CompactionOptions, Item, NothingToCompact, WindowUsage, boundary};
use crate::compaction::Seen;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::tokens::Counter;

/// What a plan came to: something to compact, or why there is nothing.
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
    /// A stretch to compact.
    Compact(CompactionPlan),
    /// Nothing, and why.
    Nothing(NothingToCompact),
}

/// A stretch of a view that is to be compacted.
///
/// It holds what a summarizer is to be asked; nothing is locked meanwhile. It is committed with
/// the answer by [`Session::commit`](crate::Session::commit), which refuses if the stretch is no
/// longer what was seen here.
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
    leaf: MessageId,
    first: MessageId,
    last: MessageId,
    messages: usize,
    summaries: Vec<CompactionId>,
    tokens: u64,
    target_tokens: u64,
    usage: WindowUsage,
    prompt: String,
    seen: Seen,
}

impl CompactionPlan {
    /// Returns the plan for a view that leads to `leaf`, below a system prompt of this many tokens.
    pub(crate) fn of(
        view: &[Message],
        leaf: MessageId,
        prompt_tokens: u64,
        options: &CompactionOptions,
        counter: &Counter,
    ) -> Result<Self, NothingToCompact> {
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        let stretch = boundary(&items, options)?;
        let compacted = &items[stretch.clone()];
        let (Some(first), Some(last)) = (compacted.first(), compacted.last()) else {
            return Err(NothingToCompact::OnlySummaries { summaries: 0 });
        };
        let summaries =
            compacted.iter().filter_map(|item| CompactionId::from_message(&item.message.id));
        let summaries: Vec<CompactionId> = summaries.collect();
        let tokens = tokens_of(compacted);
        Ok(Self {
            leaf,
            first: first.message.id.clone(),
            last: last.message.id.clone(),
            messages: compacted.len() - summaries.len(),
            summaries,
            tokens,
            target_tokens: options.target_tokens(tokens),
            usage: WindowUsage::of(&items, prompt_tokens, options),
            prompt: summary_prompt(compacted, options, Purpose::Stretch),
            seen: Seen::of(&view[stretch]),
        })
    }

    /// Returns what a summarizer is to be asked.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the message that the view leads to.
    #[must_use]
    pub fn leaf(&self) -> &MessageId {
        &self.leaf
    }

    /// Returns the first item of the stretch: a message, or a summary by the id it reads under.
    #[must_use]
    pub fn first(&self) -> &MessageId {
        &self.first
    }

    /// Returns the last item of the stretch.
    #[must_use]
    pub fn last(&self) -> &MessageId {
        &self.last
    }

    /// Returns how many messages are compacted, summaries hidden.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the summaries that the new one takes in, oldest first. The prompt quotes them all.
    #[must_use]
    pub fn summaries(&self) -> &[CompactionId] {
        &self.summaries
    }

    /// Returns how many tokens the stretch takes in the window.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns how many tokens the summary is asked to have at the most.
    #[must_use]
    pub fn target_tokens(&self) -> u64 {
        self.target_tokens
    }

    /// Returns how the tokens are spread over the window now.
    #[must_use]
    pub fn usage(&self) -> WindowUsage {
        self.usage
    }

    /// Returns how many tokens the window holds afterwards, if the summary has as many as it is
    /// asked for.
    #[must_use]
    pub fn expected_total(&self) -> u64 {
        self.usage.total - self.tokens + self.target_tokens.min(self.tokens)
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }
}
