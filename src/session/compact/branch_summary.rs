//! Leaving a branch: a summary of what was tried there goes along to the next one.

use serde_json::json;

use super::Session;
use crate::compaction::policy::{CompactionOptions, Item, Purpose, ask, summary_prompt};
use crate::compaction::{Summary, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::Appended;
use crate::view::{ExpectedHead, Parent};

/// A branch that is to be left by a checkout, and what to ask a summarizer about it.
///
/// ```
/// use talktree::{CompactionOptions, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let task = chat.append(Message::user("Make the build faster."))?.id;
/// chat.append_all([Message::assistant("I try a cache."), Message::user("It broke the tests.")])?;
///
/// let plan = chat.plan_branch_summary(&task, &CompactionOptions::default())?.expect("two messages are left");
/// assert_eq!(plan.messages(), 2);
/// assert!(plan.prompt().contains("It broke the tests."));
///
/// chat.checkout_with_summary(plan, "A cache was tried: it broke the tests.")?;
/// let shown: Vec<String> = chat.history()?.iter().map(Message::text).collect();
/// assert_eq!(shown, ["Make the build faster.", "A cache was tried: it broke the tests."]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a plan does nothing until the checkout"]
pub struct BranchSummaryPlan {
    from: MessageId,
    to: MessageId,
    messages: usize,
    tokens: u64,
    prompt: String,
}

impl BranchSummaryPlan {
    /// Returns what a summarizer is to be asked.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the message the head stands on: the end of the branch that is left.
    #[must_use]
    pub fn from(&self) -> &MessageId {
        &self.from
    }

    /// Returns the message that the head goes to.
    #[must_use]
    pub fn to(&self) -> &MessageId {
        &self.to
    }

    /// Returns how many messages and summaries of the view are left behind.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns how many tokens they take in the window.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

impl Session {
    /// Returns what a checkout of `to` would leave behind, and what to ask a summarizer about it;
    /// `None` if it leaves nothing: the head is on the way there.
    ///
    /// Of a very long branch the end is asked about, as much as
    /// [`max_step_tokens`](CompactionOptions::max_step_tokens) allows.
    ///
    /// [`BranchSummaryPlan`] has an example.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if `to` is not in this session; as every read.
    pub fn plan_branch_summary(
        &self,
        to: &MessageId,
        options: &CompactionOptions,
    ) -> Result<Option<BranchSummaryPlan>> {
        let Some(from) = self.provider.head()? else {
            return self.message(to)?.map(|_| None).ok_or_else(|| self.unknown(to));
        };
        if self.provider.is_on_path(&from, Some(to))? {
            return Ok(None);
        }
        let view = self.provider.history(Some(&from))?;
        let left = &view[self.parting(&view, to)?..];
        let counter = self.compaction.counter();
        let items: Vec<Item<'_>> = left.iter().map(|message| Item::of(message, counter)).collect();
        let asked = end_within(&items, options.max_step_tokens);
        if asked.is_empty() {
            return Ok(None);
        }
        Ok(Some(BranchSummaryPlan {
            from,
            to: to.clone(),
            messages: items.len(),
            tokens: items.iter().map(|item| item.tokens).sum(),
            prompt: summary_prompt(asked, options, Purpose::Branch),
        }))
    }

    /// Moves the head to where a plan goes, and appends the summary of what is left behind there: an
    /// `assistant` message whose metadata is `{"branch_summary": {"from", "messages", ..}}`. One
    /// transaction; undoing it is [`undo_head`](Session::undo_head).
    ///
    /// [`BranchSummaryPlan`] has an example.
    ///
    /// # Errors
    /// [`Error::HeadMoved`] if the head is not where it was when this was planned;
    /// [`Error::SummaryRefused`] if the summary is blank; [`Error::UnknownMessage`] if the message to
    /// go to was deleted.
    pub fn checkout_with_summary(
        &self,
        plan: BranchSummaryPlan,
        summary: impl Into<Summary>,
    ) -> Result<Appended> {
        let Summary { text, model, details } = summary.into();
        if is_blank(&text) {
            return Err(Error::SummaryRefused { why: SummaryRefused::Blank });
        }
        let details = details.map(|details| details.value());
        let about = json!({"branch_summary": {
            "from": plan.from, "messages": plan.messages, "model": model, "details": details,
        }});
        let expected = ExpectedHead::At(Some(plan.from));
        let message = Message::assistant(text).with_metadata(about);
        self.append_one(&Parent::Message(plan.to), &expected, message)
    }

    /// Moves the head to a message, and records there what was tried on the branch that is left, by
    /// the session's own summarizer; `None` if nothing is left behind: then it only moves.
    ///
    /// ```
    /// use talktree::{BoxError, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let brief = |_: &str| -> Result<&'static str, BoxError> { Ok("A cache broke the tests.") };
    /// let chat = store.session_builder("s").summarizer(brief).open()?;
    /// let task = chat.append(Message::user("Make the build faster."))?.id;
    /// chat.append(Message::assistant("I try a cache."))?;
    ///
    /// assert!(chat.checkout_summarized(&task)?.is_some());
    /// assert_eq!(chat.history()?[1].text(), "A cache broke the tests.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSummarizer`]; [`Error::Summarizer`] if it fails or panics; as
    /// [`checkout_with_summary`](Self::checkout_with_summary). The head is then where it was.
    pub fn checkout_summarized(&self, to: &MessageId) -> Result<Option<Appended>> {
        let summarizer = self.summarizer()?;
        match self.plan_branch_summary(to, self.compaction.options())? {
            Some(plan) => {
                let summary = ask(summarizer, plan.prompt())?;
                self.checkout_with_summary(plan, summary).map(Some)
            }
            None => self.checkout(to).map(|()| None),
        }
    }

    /// Returns where in a view the path to a message parts from it.
    fn parting(&self, view: &[Message], to: &MessageId) -> Result<usize> {
        let (mut shared, mut left) = (0, view.len());
        // Once apart, paths do not meet again.
        while shared < left {
            let middle = shared + (left - shared) / 2;
            match self.is_shared(&view[middle], to)? {
                true => shared = middle + 1,
                false => left = middle,
            }
        }
        Ok(shared)
    }

    /// Returns whether all that an item of a view stands for lies on the path to a message.
    fn is_shared(&self, item: &Message, to: &MessageId) -> Result<bool> {
        match CompactionId::from_message(&item.id) {
            None => self.provider.is_on_path(&item.id, Some(to)),
            Some(summary) => match self.provider.expand_raw(&summary)?.last() {
                Some(last) => self.provider.is_on_path(&last.id, Some(to)),
                None => Ok(false),
            },
        }
    }
}

/// Returns as many of the last items as fit, and at least one.
fn end_within<'a, 'm>(items: &'a [Item<'m>], max_tokens: u64) -> &'a [Item<'m>] {
    let mut tokens = 0u64;
    let first = items.iter().rposition(|item| {
        tokens = tokens.saturating_add(item.tokens);
        tokens > max_tokens
    });
    let first = first.map_or(0, |at| at + 1).min(items.len().saturating_sub(1));
    &items[first..]
}
