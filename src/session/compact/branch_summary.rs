//! Leaving a branch with a summary, and going on in a new session that begins with one.

use serde_json::json;

use super::Session;
use crate::compaction::policy::{CompactionOptions, Item, Purpose, ask, summary_prompt};
use crate::compaction::{PlanOrigin, Seen, Summary, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::Appended;
use crate::storage::sqlite::fork;
use crate::view::{ExpectedHead, Parent};

/// A planned checkout with the prompt for a summary of the branch it comes from.
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
    origin: PlanOrigin,
    from: MessageId,
    to: MessageId,
    messages: usize,
    tokens: u64,
    prompt: String,
    /// What the prompt quotes.
    seen: Seen,
}

impl BranchSummaryPlan {
    /// Returns the prompt for the summarizer.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the head at the time of the plan: the end of the branch to summarize.
    #[must_use]
    pub fn from(&self) -> &MessageId {
        &self.from
    }

    /// Returns the message to check out.
    #[must_use]
    pub fn to(&self) -> &MessageId {
        &self.to
    }

    /// Returns how many messages and summaries are only on the branch to summarize.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns how many tokens they have.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

impl Session {
    /// Returns a plan to check out `to` with a summary of what is only on the current branch; `None` if nothing is,
    /// because the head is on the path to `to`.
    ///
    /// The prompt of a very long branch quotes its end, up to
    /// [`max_step_tokens`](CompactionOptions::max_step_tokens).
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
        let Some(from) = self.storage.head()? else {
            return self.message(to)?.map(|_| None).ok_or_else(|| self.unknown(to));
        };
        if self.storage.is_on_path(&from, Some(to))? {
            return Ok(None);
        }
        let view = self.storage.history(Some(&from), false)?;
        let origin = self.plan_origin()?;
        let left = &view[self.first_unshared(&view, to)?..];
        let counter = &self.compaction.counter;
        let items: Vec<Item<'_>> = left.iter().map(|message| Item::of(message, counter)).collect();
        let asked = end_within(&items, options.max_step_tokens);
        if asked.is_empty() {
            return Ok(None);
        }
        Ok(Some(BranchSummaryPlan {
            origin,
            from,
            to: to.clone(),
            messages: items.len(),
            tokens: items.iter().map(|item| item.tokens).sum(),
            prompt: summary_prompt(asked, options, Purpose::Branch),
            seen: Seen::of(asked.iter().map(|item| item.message)),
        }))
    }

    /// Moves the head to the planned message and appends the summary there, as an `assistant` message
    /// with the metadata `{"branch_summary": {"from", "messages", ..}}`.
    ///
    /// One transaction; [`undo_head`](Session::undo_head) reverts the move.
    ///
    /// [`BranchSummaryPlan`] has an example.
    ///
    /// # Errors
    /// [`Error::PlanOfAnother`] if the plan was made in another session or store; [`Error::HeadMoved`] if the head moved
    /// since the plan; [`Error::Stale`] if what the prompt quotes was changed, deleted or erased since;
    /// [`Error::SummaryRefused`] if the summary is blank; [`Error::UnknownMessage`] if the
    /// message to check out was deleted.
    pub fn checkout_with_summary(
        &self,
        plan: BranchSummaryPlan,
        summary: impl Into<Summary>,
    ) -> Result<Appended> {
        let Summary { text, model, details } = summary.into();
        if is_blank(&text) {
            return Err(Error::SummaryRefused { why: SummaryRefused::Blank });
        }
        self.check_origin(Some(&plan.origin))?;
        let details = details.map(|details| details.value());
        let about = json!({"branch_summary": {
            "from": plan.from, "messages": plan.messages, "model": model, "details": details,
        }});
        let expected = ExpectedHead::At(Some(plan.from));
        let message = Message::assistant(text).with_metadata(about);
        let summary = Change::BranchSummary {
            id: message.id.clone(),
            messages: plan.messages as u64,
            tokens_before: plan.tokens,
            tokens_after: self.compaction.counter.message(&message),
        };
        self.compaction.note_change();
        let (parent, summary) = (Parent::Message(plan.to), Some((summary, &plan.seen)));
        self.append_message(&parent, &expected, message, summary)
    }

    /// Moves the head to a message and appends a summary of the branch it comes from, by the session's
    /// own summarizer; `None` if there is nothing to summarize or the summarizer declines, and the head only moves.
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
    /// [`Error::NoSummarizer`]; [`Error::CompactionInProgress`] if the session is being compacted in this process;
    /// [`Error::Summarizer`] if the summarizer fails or panics; as [`checkout_with_summary`](Self::checkout_with_summary). The head does not move
    /// then.
    pub fn checkout_summarized(&self, to: &MessageId) -> Result<Option<Appended>> {
        let summarizer = self.summarizer()?;
        let guard = self.begin_compaction()?;
        match self.plan_branch_summary(to, &self.compaction.options)? {
            Some(plan) => {
                self.emit_window_in(Phase::Compacting);
                let asked = ask(summarizer, plan.prompt());
                // The append may compact.
                drop(guard);
                let appended = asked.and_then(|summary| match summary {
                    Some(summary) => self.checkout_with_summary(plan, summary).map(Some),
                    None => self.checkout(to).map(|()| None),
                });
                // With a threshold, the append has sent the size of the window.
                if !matches!(appended, Ok(Some(_))) || self.compaction.asked.threshold.is_none() {
                    self.emit_window_in(Phase::Idle);
                }
                appended.inspect_err(|error| self.emit_failure(error))
            }
            None => self.checkout(to).map(|()| None),
        }
    }

    /// Returns the position of the first item of a view that is not on the path to a message.
    fn first_unshared(&self, view: &[Message], to: &MessageId) -> Result<usize> {
        let (mut shared, mut left) = (0, view.len());
        // Two paths share a prefix only, so a binary search finds its end.
        while shared < left {
            let middle = shared + (left - shared) / 2;
            match self.is_shared(&view[middle], to)? {
                true => shared = middle + 1,
                false => left = middle,
            }
        }
        Ok(shared)
    }

    /// Returns whether all messages of an item are on the path to a message.
    fn is_shared(&self, item: &Message, to: &MessageId) -> Result<bool> {
        match CompactionId::from_message(&item.id) {
            None => self.storage.is_on_path(&item.id, Some(to)),
            Some(summary) => match self.storage.expand_raw(&summary)?.last() {
                Some(last) => self.storage.is_on_path(&last.id, Some(to)),
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

/// The end reason of a session that was split.
const END_REASON: &str = "compaction";

impl Session {
    /// Ends this session with the reason `compaction`, and returns its child, which begins with the
    /// summary as one `assistant` message. One transaction.
    ///
    /// The child has the name, model and source of this session, records it as its parent, and gets
    /// copies of its own context blocks. This session can still be read, searched and appended to,
    /// but not split again: of several threads or processes that split it at once, one succeeds.
    /// After [`SessionChange::Reopen`](crate::SessionChange::Reopen) it can be split again.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("telegram:4711")?;
    /// let last = chat.append(Message::user("Until tomorrow!"))?.id;
    ///
    /// let next = chat.compact_and_split("They said goodbye.")?;
    /// assert_eq!(next.history()?[0].text(), "They said goodbye.");
    /// let info = next.info()?.unwrap();
    /// assert_eq!((info.parent_session, info.fork_point), (Some("telegram:4711".into()), Some(last)));
    /// assert_eq!(chat.info()?.unwrap().end_reason.as_deref(), Some("compaction"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SummaryRefused`] if the summary is blank; [`Error::UnknownSession`] if this
    /// session was never written to; [`Error::InvalidValue`] if it was split before; as every write.
    pub fn compact_and_split(&self, summary: impl Into<Summary>) -> Result<Self> {
        self.compact_and_split_as(&SessionId::new(), summary)
    }

    /// Splits as [`compact_and_split`](Self::compact_and_split) does; the child has the given id.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s/1")?;
    /// chat.append(Message::user("hello"))?;
    /// chat.compact_and_split_as(&"s/2".into(), "They greeted.")?;
    /// let again = chat.compact_and_split_as(&"s/2".into(), "They greeted.");
    /// assert!(matches!(again, Err(Error::SessionExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken; as [`compact_and_split`](Self::compact_and_split).
    pub fn compact_and_split_as(
        &self,
        id: &SessionId,
        summary: impl Into<Summary>,
    ) -> Result<Self> {
        id.check()?;
        let Summary { text, model, details } = summary.into();
        if is_blank(&text) {
            return Err(Error::SummaryRefused { why: SummaryRefused::Blank });
        }
        let details = details.map(|details| details.value());
        let about = json!({"split": {"session": self.id(), "model": model, "details": details}});
        let opening = Message::assistant(text).with_metadata(about);
        let (messages, tokens_before) = match self.events.has_listeners() {
            true => (self.storage.path_length(None)?, self.visible_tokens()?),
            false => (0, 0),
        };
        let messages_of_child = std::slice::from_ref(&opening);
        let key =
            self.storage.write_messages(messages_of_child, |conn, name, counted, max_bytes| {
                fork::split(conn, name, id, &opening, counted, END_REASON, max_bytes)
            })?;
        self.storage.appended(1);
        let child = self.of_another(self.storage.sibling(id, key));
        child.emit(|| Change::Append { ids: vec![opening.id.clone()] });
        self.emit(|| Change::Split {
            child: child.id().clone(),
            messages,
            tokens_before,
            tokens_after: self.compaction.counter.message(&opening),
        });
        child.emit_window();
        Ok(child)
    }
}
