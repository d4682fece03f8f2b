//! Answers: a provider's response, and the results of the calls in it.

use std::borrow::Borrow;

use serde_json::Value;

use super::Session;
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::model::from_response;
use crate::outcome::Appended;
use crate::tools;

impl Session {
    /// Appends the answer of a provider's response to the head, and returns it.
    ///
    /// The response is that of the Anthropic messages API, of OpenAI's chat completions or responses API, or of a server
    /// that speaks one of them. The message keeps the numbers of tokens that came with it:
    /// [`Usage::of`](crate::Usage::of) reads them. [`model::from_response`](from_response) only reads the message, for a
    /// program that appends it itself, by [`append_if_head`](Self::append_if_head) for example.
    ///
    /// Each call appends another message, because not every server gives its responses ids that differ.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Message, Store, Usage};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let response = json!({
    ///     "type": "message", "role": "assistant", "model": "large", "stop_reason": "end_turn",
    ///     "content": [{"type": "text", "text": "4"}],
    ///     "usage": {"input_tokens": 12, "output_tokens": 3},
    /// });
    /// let answer = chat.append_answer(response)?;
    /// assert_eq!(answer.text(), "4");
    /// assert_eq!(Usage::of(&answer).unwrap().output, 3);
    /// assert_eq!(chat.head()?, Some(answer.id));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoAnswer`](crate::Error::NoAnswer) if the response is an error of the provider or of another form; as
    /// [`append`](Self::append).
    pub fn append_answer(&self, response: impl Borrow<Value>) -> Result<Message> {
        let answer = from_response(response.borrow())?;
        self.append(answer.clone())?;
        Ok(answer)
    }
}

impl tools::Conversation for Session {
    fn append_if_head(&self, head: Option<&MessageId>, message: Message) -> Result<Appended> {
        Self::append_if_head(self, head, message)
    }
}
