//! Compaction by a summarizer: planning what to compact, and laying what it answers.
//!
//! A model takes seconds, so it never works inside a transaction: a plan says what to ask and what
//! was seen, and a commit lays the answer if that still stands. [`Session::compact`] does both with
//! the session's own summarizer; with a threshold ([`auto`]) each append sees to it.

mod auto;
mod branch_summary;
mod by_hand;
mod in_progress;
mod settings;
mod split;

use serde::Serialize;

use super::Session;
use crate::compaction::policy::{
    CompactionOptions, CompactionPlan, Item, NothingToCompact, Planned, Summarizer, WindowUsage,
    ask, judge,
};
use crate::compaction::{Compaction, Summary};
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;

pub use branch_summary::BranchSummaryPlan;
pub(crate) use in_progress::InProgress;
pub(crate) use settings::{CompactionSettings, CompactionSettingsBuilder};

/// What a summary that was laid replaced, in figures.
///
/// ```
/// use talktree::{CompactionOptions, Message, Planned, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Planned::Compact(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
///
/// let compacted = chat.commit(plan, "They said words.")?;
/// assert_eq!((compacted.messages, compacted.tokens_before, compacted.tokens_after), (4, 276, 8));
/// assert!(compacted.is_shown);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// The compaction.
    pub id: CompactionId,
    /// How many messages of the view it replaced, beside summaries.
    pub messages: usize,
    /// How many tokens a model saw there before.
    pub tokens_before: u64,
    /// How many tokens the summary has.
    pub tokens_after: u64,
    /// Whether a model sees it now: the head may have moved to another branch meanwhile.
    pub is_shown: bool,
}

/// What compacting came to.
///
/// ```
/// use talktree::{BoxError, CompactionOutcome, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let brief = |_: &str| -> Result<&'static str, BoxError> { Ok("They said words.") };
/// let chat = store.session_builder("s").summarizer(brief).open()?;
/// chat.append(Message::user("hello"))?;
///
/// match chat.compact()? {
///     CompactionOutcome::Compacted(compacted) => println!("{} tokens less", compacted.tokens_before - compacted.tokens_after),
///     CompactionOutcome::Nothing(why) => println!("nothing to do: {why}"),
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// A summary was laid.
    Compacted(Compacted),
    /// Nothing was, and why.
    Nothing(NothingToCompact),
}

impl Session {
    /// Returns what of the history should be compacted now, and what to ask a summarizer for it.
    ///
    /// Nothing is written, and nothing is locked until the plan is committed.
    ///
    /// [`CompactionPlan`] and [`Planned`] have examples.
    ///
    /// # Errors
    /// [`Error::Provider`] if a block of the prompt cannot be read; as every read.
    pub fn plan_compaction(&self, options: &CompactionOptions) -> Result<Planned> {
        // Not the view of the message at the head: the head may stand on a deleted one that a summary
        // ends at. Where it moves meanwhile, the commit compares with what is seen then.
        let leaf = self.provider.head()?.unwrap_or_else(MessageId::new);
        self.plan_of(&self.provider.history(None)?, leaf, options)
    }

    /// Returns what should be compacted of the path to a message, on any branch.
    ///
    /// ```
    /// use talktree::{CompactionOptions, Message, Planned, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    /// chat.append_to(&"1".into(), Message::assistant("another way"))?; // the head is here now
    ///
    /// let options = CompactionOptions::default().keep_recent_tokens(0);
    /// let Planned::Compact(plan) = chat.plan_compaction_at(&"9".into(), &options)? else { panic!() };
    /// assert!(!chat.commit(plan, "They said words.")?.is_shown);
    /// assert_eq!(chat.history_at(&"9".into())?.len(), 6);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if `leaf` is not in this session; as
    /// [`plan_compaction`](Self::plan_compaction).
    pub fn plan_compaction_at(
        &self,
        leaf: &MessageId,
        options: &CompactionOptions,
    ) -> Result<Planned> {
        let view = self.provider.history(Some(leaf))?;
        self.plan_of(&view, leaf.clone(), options)
    }

    fn plan_of(
        &self,
        view: &[Message],
        leaf: MessageId,
        options: &CompactionOptions,
    ) -> Result<Planned> {
        let prompt = self.prompt_tokens()?;
        Ok(match CompactionPlan::of(view, leaf, prompt, options, self.compaction.counter()) {
            Ok(plan) => Planned::Compact(plan),
            Err(why) => Planned::Nothing(why),
        })
    }

    /// Lays a summary over the stretch that was planned, if it still stands.
    ///
    /// What was appended since does not matter, and where the head is does not either: the summary
    /// shows on the paths that hold the stretch. A message that was updated or deleted in it, or
    /// another summary over it, is a refusal that says so.
    ///
    /// [`CompactionOutcome`] and [`Stale`](crate::Stale) have examples.
    ///
    /// # Errors
    /// [`Error::Stale`] if the stretch is not what it was; [`Error::SummaryRefused`] if the summary
    /// is blank or not shorter than what it would replace. Nothing was stored then.
    pub fn commit(&self, plan: CompactionPlan, summary: impl Into<Summary>) -> Result<Compacted> {
        let summary = summary.into();
        let counter = self.compaction.counter();
        let tokens_after = judge(&summary.text, plan.tokens(), counter)
            .map_err(|why| Error::SummaryRefused { why })?;
        let compaction = Compaction {
            tokens_before: plan.tokens(),
            tokens_after,
            model: summary.model,
            details: summary.details,
            ..Compaction::new(summary.text, plan.first().clone(), plan.last().clone())
        };
        let is_shown = self.provider.commit_compaction(&compaction, plan.leaf(), plan.seen())?;
        let id = compaction.id;
        self.tell(|| Change::Compact { id: id.clone() });
        Ok(Compacted {
            messages: plan.messages(),
            tokens_before: plan.tokens(),
            tokens_after,
            is_shown,
            id,
        })
    }

    /// Compacts the history by the session's own summarizer, once.
    ///
    /// [`CompactionOutcome`] has an example.
    ///
    /// # Errors
    /// [`Error::NoSummarizer`]; [`Error::Summarizer`] if it fails or panics; as
    /// [`plan_compaction`](Self::plan_compaction) and [`commit`](Self::commit). The history is then
    /// as it was.
    pub fn compact(&self) -> Result<CompactionOutcome> {
        let summarizer = self.summarizer()?;
        self.compact_by(summarizer, self.plan_compaction(self.compaction.options())?)
    }

    /// Compacts the path to a message, on any branch, by the session's own summarizer, once.
    ///
    /// ```
    /// use talktree::{BoxError, CompactionOutcome, CompactionOptions, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("s")
    ///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
    ///     .compaction_options(CompactionOptions::default().keep_recent_tokens(0))
    ///     .open()?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    ///
    /// assert!(matches!(chat.compact_at(&"7".into())?, CompactionOutcome::Compacted(compacted) if compacted.messages == 2));
    /// assert_eq!(chat.history()?.len(), 8);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if `leaf` is not in this session; as [`compact`](Self::compact).
    pub fn compact_at(&self, leaf: &MessageId) -> Result<CompactionOutcome> {
        let summarizer = self.summarizer()?;
        self.compact_by(summarizer, self.plan_compaction_at(leaf, self.compaction.options())?)
    }

    fn compact_by(&self, summarizer: &dyn Summarizer, plan: Planned) -> Result<CompactionOutcome> {
        match plan {
            Planned::Nothing(why) => Ok(CompactionOutcome::Nothing(why)),
            Planned::Compact(plan) => {
                let summary = ask(summarizer, plan.prompt())?;
                self.commit(plan, summary).map(CompactionOutcome::Compacted)
            }
        }
    }

    fn summarizer(&self) -> Result<&dyn Summarizer> {
        self.compaction
            .summarizer()
            .ok_or_else(|| Error::NoSummarizer { session: self.id().clone() })
    }

    /// Returns how the tokens of the history are spread over the window: prompt, head, summaries,
    /// middle and tail, as the session's options for compaction cut it.
    ///
    /// ```
    /// use talktree::{CompactionOptions, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(20);
    /// let chat = store.session_builder("s").compaction_options(options).open()?;
    /// chat.append_all((1..=9).map(|_| Message::user("Hello world")))?;
    ///
    /// let usage = chat.window_usage()?;
    /// assert_eq!((usage.head, usage.middle, usage.tail, usage.total), (7, 42, 14, 63));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`plan_compaction`](Self::plan_compaction).
    pub fn window_usage(&self) -> Result<WindowUsage> {
        self.usage_of(&self.provider.history(None)?)
    }

    /// Returns how the tokens of the path to a message are spread over the window.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("Hello world").with_id(n.to_string())))?;
    /// assert_eq!(chat.window_usage_at(&"4".into())?.total, 28);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if `leaf` is not in this session; as
    /// [`plan_compaction`](Self::plan_compaction).
    pub fn window_usage_at(&self, leaf: &MessageId) -> Result<WindowUsage> {
        self.usage_of(&self.provider.history(Some(leaf))?)
    }

    fn usage_of(&self, view: &[Message]) -> Result<WindowUsage> {
        let counter = self.compaction.counter();
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        Ok(WindowUsage::of(&items, self.prompt_tokens()?, self.compaction.options()))
    }

    /// Returns how many tokens a model sees of the history, without the system prompt.
    ///
    /// A store keeps the figure with the session, so this reads no message; it is counted anew only
    /// after something other than an append changed the history.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("Hello world"))?;
    /// assert_eq!(chat.visible_tokens()?, 7);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; where the figure must be stored anew, as every write.
    pub fn visible_tokens(&self) -> Result<u64> {
        match self.provider.visible_tokens()? {
            Some(tokens) => Ok(tokens),
            None => {
                let counter = self.compaction.counter();
                Ok(self.provider.history(None)?.iter().map(|item| counter.message(item)).sum())
            }
        }
    }

    /// Notes what the prompt takes that the program is about to use.
    pub(in crate::session) fn note_prompt(&self, prompt: &str) {
        if self.compaction.threshold().is_some() {
            self.compaction.note_prompt(self.compaction.counter().text(prompt));
        }
    }

    /// Returns the tokens of the prompt as it would read now; it is not frozen by that.
    fn prompt_tokens(&self) -> Result<u64> {
        let tokens = self.compaction.counter().text(&self.context.current_prompt()?);
        self.compaction.note_prompt(tokens);
        Ok(tokens)
    }
}
