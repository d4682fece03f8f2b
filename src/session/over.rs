//! A session over a storage of the program's own: the verbs that its dozen methods carry.

use super::{Compacted, Session};
use crate::compaction::policy::{
    CompactionOptions, CompactionPlan, NothingToCompact, Overhead, Summarizer, ask, judge,
};
use crate::compaction::{Compaction, CompactionStatus, Summary};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::Appended;
use crate::storage::SessionProvider;
use crate::tokens::Counter;
use crate::view::Parent;

/// A session over a [`SessionProvider`]. Made by [`Session::over`].
///
/// It has no head of its own, labels, context blocks or events: those need a [`Store`](crate::Store).
#[derive(Debug, Clone)]
pub struct ProviderSession<P> {
    provider: P,
}

impl Session {
    /// Returns a session over a storage of the program's own.
    ///
    /// `examples/own_storage.rs` has a whole one.
    ///
    /// ```
    /// use talktree::{Message, Result, Session, SessionProvider};
    ///
    /// fn greet(storage: impl SessionProvider) -> Result<usize> {
    ///     let chat = Session::over(storage);
    ///     chat.append(Message::user("hello"))?;
    ///     chat.append(Message::assistant("hi"))?;
    ///     Ok(chat.history()?.len())
    /// }
    /// ```
    #[must_use]
    pub fn over<P: SessionProvider>(provider: P) -> ProviderSession<P> {
        ProviderSession { provider }
    }
}

impl<P: SessionProvider> ProviderSession<P> {
    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.provider.id()
    }

    /// Returns the storage.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Returns the message with this id, or the summary as it reads in a history.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        match CompactionId::from_message(id) {
            None => self.provider.message(id),
            Some(summary) => {
                let found = self.compactions()?.into_iter().find(|known| known.id == summary);
                let Some(found) = found else { return Ok(None) };
                let first = self.provider.message(&found.first)?;
                Ok(Some(found.to_message(first.and_then(|first| first.parent))))
            }
        }
    }

    /// Returns the path to the newest message as a model should see it, oldest first.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn history(&self) -> Result<Vec<Message>> {
        self.provider.history(None)
    }

    /// Returns the path to a message as a model should see it, oldest first.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`]; as every read of the storage.
    pub fn history_at(&self, leaf: &MessageId) -> Result<Vec<Message>> {
        self.provider.history(Some(leaf))
    }

    /// Returns how many messages are on the path to the newest one.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn path_length(&self) -> Result<u64> {
        self.provider.path_length(None)
    }

    /// Returns the newest message.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn latest_leaf(&self) -> Result<Option<Message>> {
        self.provider.latest_leaf()
    }

    /// Returns the children of a message, in order of creation.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`]; as every read of the storage.
    pub fn branches(&self, id: &MessageId) -> Result<Vec<Message>> {
        self.provider.branches(Some(id))
    }

    /// Returns the messages without a parent, in order of creation.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn roots(&self) -> Result<Vec<Message>> {
        self.provider.branches(None)
    }

    /// Appends a message to the newest one. A known id is a no-op.
    ///
    /// # Errors
    /// As every write of the storage.
    pub fn append(&self, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Head, message)
    }

    /// Appends a message to the given one.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`]; as every write of the storage.
    pub fn append_to(&self, parent: &MessageId, message: Message) -> Result<Appended> {
        self.append_one(&Parent::Message(parent.clone()), message)
    }

    /// Appends messages, each the child of the one before, the first one to the newest message.
    ///
    /// # Errors
    /// As every write of the storage.
    pub fn append_all(&self, messages: impl IntoIterator<Item = Message>) -> Result<Vec<Appended>> {
        self.append_chain(&Parent::Head, &messages.into_iter().collect::<Vec<_>>())
    }

    /// Replaces the content of a message; returns whether it changed.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`]; as every write of the storage.
    pub fn update(&self, message: &Message) -> Result<bool> {
        self.provider.update(message)
    }

    /// Replaces the content of a message, or appends the message if its id is unknown; returns whether it is new.
    ///
    /// # Errors
    /// As every write of the storage.
    pub fn upsert(&self, message: Message) -> Result<bool> {
        // Two steps are enough: of two racing upserts the later append finds the id and updates.
        let is_new = self.append(message.clone())?.is_new;
        if !is_new {
            self.update(&message)?;
        }
        Ok(is_new)
    }

    /// Deletes messages; the children of one become those of its parent.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`]; as every write of the storage.
    pub fn delete<'a>(&self, ids: impl IntoIterator<Item = &'a MessageId>) -> Result<()> {
        self.provider.delete(&ids.into_iter().cloned().collect::<Vec<_>>())
    }

    /// Deletes all messages and compactions.
    ///
    /// # Errors
    /// As every write of the storage.
    pub fn clear(&self) -> Result<()> {
        self.provider.clear()
    }

    /// Adds a summary that replaces a range of a path; returns its id. The id of a summary as an end is that of its first or
    /// last message.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`], [`Error::NotAncestor`]; as every write of the storage.
    pub fn add_compaction(
        &self,
        summary: impl Into<Summary>,
        first: &MessageId,
        last: &MessageId,
    ) -> Result<CompactionId> {
        let Summary { text, model, details, .. } = summary.into();
        let compaction = Compaction::new(text, first.clone(), last.clone());
        let compaction = Compaction { model, details, ..compaction };
        self.store(compaction)
    }

    /// Returns all compactions, oldest first.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn compactions(&self) -> Result<Vec<Compaction>> {
        self.provider.compactions()
    }

    /// Replaces the middle of the history with a summary, as [`Session::compact`] does. Without a summary that is shorter
    /// than the messages nothing is stored.
    ///
    /// # Errors
    /// [`Error::Summarizer`], [`Error::SummaryRefused`]; [`Error::Stale`] if a message that the summary replaces was changed or
    /// deleted meanwhile; as every write of the storage.
    pub fn compact(
        &self,
        summarizer: &dyn Summarizer,
        options: &CompactionOptions,
    ) -> Result<std::result::Result<Compacted, NothingToCompact>> {
        let (view, counter) = (self.history()?, Counter::default());
        let leaf = view.last().map_or_else(MessageId::new, |last| last.id.clone());
        let plan = CompactionPlan::of(&view, leaf, Overhead::default(), options, &counter);
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why)),
        };
        let Some(summary) = ask(summarizer, plan.prompt())? else {
            return Ok(Err(NothingToCompact::Declined));
        };
        let (tokens_before, messages) = (plan.tokens(), plan.messages());
        let tokens_after = judge(&summary.text, tokens_before, &counter)
            .map_err(|why| Error::SummaryRefused { why })?;
        let now = self.provider.history(Some(plan.leaf()))?;
        plan.seen()
            .check_each(|id| Ok::<_, Error>(now.iter().find(|item| item.id == *id).cloned()))?;
        let id = self.store(Compaction {
            count: messages as u64,
            tokens_before,
            tokens_after,
            model: summary.model,
            details: summary.details,
            ..Compaction::new(summary.text, plan.first().clone(), plan.last().clone())
        })?;
        let is_shown = self.history()?.iter().any(|item| item.id == id.as_message());
        let status = if is_shown { CompactionStatus::Shown } else { CompactionStatus::OffPath };
        Ok(Ok(Compacted { id, messages, tokens_before, tokens_after, status }))
    }

    /// Returns at most `limit` messages that contain all words of a query, the best first.
    ///
    /// # Errors
    /// As every read of the storage.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<Message>> {
        self.provider.search(query, limit)
    }

    fn append_one(&self, parent: &Parent, message: Message) -> Result<Appended> {
        let appended = self.append_chain(parent, &[message])?;
        appended.into_iter().next().ok_or_else(|| Error::Corrupt {
            what: "the storage did not answer for an appended message".to_owned(),
        })
    }

    fn append_chain(&self, parent: &Parent, messages: &[Message]) -> Result<Vec<Appended>> {
        messages.iter().try_for_each(|message| message.id.check_for_writing())?;
        self.provider.append(parent, messages)
    }

    /// Adds a compaction over messages: a summary at an end stands for its own end.
    fn store(&self, mut compaction: Compaction) -> Result<CompactionId> {
        let known = self.compactions()?;
        let of = |end: &MessageId| {
            let summary = CompactionId::from_message(end)?;
            known.iter().find(|known| known.id == summary)
        };
        if let Some(of) = of(&compaction.first) {
            compaction.first = of.first.clone();
        }
        if let Some(of) = of(&compaction.last) {
            compaction.last = of.last.clone();
        }
        self.provider.add_compaction(&compaction)?;
        Ok(compaction.id)
    }
}
