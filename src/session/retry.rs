//! Retry: another answer to the same question.

use super::Session;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::MessageId;
use crate::message::{Message, NewestFirst, Role, tool_of};
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
            let head = self.provider.head()?;
            let question = match &head {
                Some(head) => self.question_above(head)?,
                None => None,
            };
            let Some(Question { id, is_answered: true }) = question else {
                return Ok(Retried { question: question.map(|it| it.id), is_moved: false });
            };
            match self.provider.checkout_if_head(&ExpectedHead::At(head), Some(&id)) {
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

    fn question_above(&self, leaf: &MessageId) -> Result<Option<Question>> {
        let mut cursor = self.provider.cursor(&View::at(leaf).raw(), Order::NewestFirst)?;
        let mut round = NewestFirst::default();
        let mut is_answered = false;
        loop {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                return Ok(None);
            }
            for message in batch {
                round.take(&message);
                if asks(&message) && !round.lacks_call() {
                    return Ok(Some(Question { id: message.id, is_answered }));
                }
                is_answered |= message.role == Role::Assistant;
            }
        }
    }
}

/// Returns whether a user says something in the message, beside results of tools.
fn asks(message: &Message) -> bool {
    message.role == Role::User
        && !message.is_hidden
        && message.parts.iter().any(|part| tool_of(part).is_none())
}
