//! Retry: another answer to the same question.

use std::collections::HashSet;

use super::Session;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::MessageId;
use crate::message::{Message, NewestFirst, Part, Role};
use crate::view::{ExpectedHead, Order, View};

/// How many messages are read at once on the way up to the question.
const BATCH: usize = 16;

/// What [`Session::retry`] did.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("Name a colour"))?.id;
/// let retried = chat.retry()?;
/// assert_eq!(retried.question, Some(question));
/// assert!(!retried.is_moved); // it has no answer yet
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retried {
    /// The message that the next answer will follow; `None` if no user has asked anything.
    pub question: Option<MessageId>,
    /// Whether the head was moved. `false` if nothing has answered the question, or there is none.
    pub is_moved: bool,
}

/// A question above a place.
struct Question {
    id: MessageId,
    /// Whether a model has answered it since.
    is_answered: bool,
}

impl Session {
    /// Moves the head back to the question that was answered last, so that the next answer is a sibling of the old one.
    ///
    /// The question is the nearest user message above the head. Hidden messages are no questions, nor are those that
    /// hold only results of tools, nor what a user said between a call and its result: the whole tool round is the
    /// answer. Without an answer between the question and the head this is a no-op that says so.
    ///
    /// The old answer keeps its place, and [`undo_head`](Self::undo_head) returns to it. A summary that ends below the
    /// question is not visible on the path to it, and is visible again on that of the old answer.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// assert!(chat.retry()?.is_moved);
    /// chat.append(Message::assistant("cyan"))?;
    /// assert_eq!(chat.branches(&question)?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn retry(&self) -> Result<Retried> {
        loop {
            let head = self.storage.head()?;
            let question = match &head {
                Some(head) => self.question_above(head)?,
                None => None,
            };
            let Some(Question { id, is_answered: true }) = question else {
                return Ok(Retried { question: question.map(|it| it.id), is_moved: false });
            };
            match self.storage.checkout(&ExpectedHead::At(head), Some(&id)) {
                // Another writer moved it after it was read: the question may be another one now.
                Err(Error::HeadMoved { .. }) => {}
                moved => {
                    moved?;
                    self.emit_changed(|| Change::Head { id: Some(id.clone()) });
                    return Ok(Retried { question: Some(id), is_moved: true });
                }
            }
        }
    }

    /// Returns the question that the head answers, or the unanswered one at the head; `None` if there is none.
    ///
    /// It is the one that [`retry`](Self::retry) goes back to; the head is not moved.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// let red = chat.append(Message::assistant("red"))?.id;
    /// assert_eq!(chat.question()?, Some(question));
    /// assert_eq!(chat.head()?, Some(red));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn question(&self) -> Result<Option<MessageId>> {
        let Some(head) = self.storage.head()? else { return Ok(None) };
        Ok(self.question_above(&head)?.map(|question| question.id))
    }

    fn question_above(&self, leaf: &MessageId) -> Result<Option<Question>> {
        let mut cursor = self.storage.cursor(&View::at(leaf).raw(), Order::NewestFirst)?;
        let mut way = WayUp::default();
        loop {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                return Ok(way.nearest());
            }
            for message in batch {
                if let Some(question) = way.take(message) {
                    return Ok(Some(question));
                }
            }
        }
    }
}

/// The search for a question, newest message first.
///
/// A user message between a call and its result is inside a tool round. Whether it is shows only above it, where the call
/// is, or is not: some results have none. So such a message is kept until then.
#[derive(Default)]
struct WayUp {
    is_answered: bool,
    /// The ids of results whose call was not seen so far.
    results: HashSet<String>,
    /// User messages above such results, nearest first, each with the ids.
    kept: Vec<(Question, HashSet<String>)>,
    /// How many messages were seen since the first was kept.
    since: usize,
}

impl WayUp {
    /// Takes the next older message, and returns the question if it is found.
    fn take(&mut self, message: Message) -> Option<Question> {
        for tool in message.parts.iter().rev().filter_map(Part::tool) {
            if tool.side().is_call() {
                self.results.remove(&tool.call_id);
                self.kept.retain(|(_, results)| !results.contains(&tool.call_id));
            } else {
                self.results.insert(tool.call_id.clone());
            }
        }
        if asks(&message) {
            let question = Question { id: message.id, is_answered: self.is_answered };
            if self.results.is_empty() {
                return Some(question);
            }
            self.kept.push((question, self.results.clone()));
        }
        self.is_answered |= message.role == Role::Assistant;
        self.since = if self.kept.is_empty() { 0 } else { self.since + 1 };
        // No call so far above belongs to a result.
        if self.since > NewestFirst::REACH { self.nearest() } else { None }
    }

    fn nearest(&mut self) -> Option<Question> {
        self.kept.drain(..).next().map(|(question, _)| question)
    }
}

/// Returns whether a user says something in the message, beside results of tools.
fn asks(message: &Message) -> bool {
    message.role == Role::User
        && !message.is_hidden
        && message.parts.iter().any(|part| part.tool().is_none())
}
