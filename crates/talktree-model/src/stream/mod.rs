//! Streamed answers: joins the events of a provider's stream to the response that it would have sent without streaming.
//!
//! A stream is a body of server-sent events. [`Stream`] takes it line by line, returns the new text of the answer, and at the
//! end the response, which [`append_answer`](crate::append_answer) and
//! [`from_response`](crate::from_response) read. It does no I/O: the program reads the lines from its HTTP client.
//!
//! Invariant: the pieces of text, joined, are the [text](talktree::Message::text) of the answer.

mod anthropic;
mod events;
mod openai_chat;
mod openai_responses;

use std::fmt;

use serde_json::Value;
use talktree::{Error, Result};
use talktree_text::foreign::short_line;

use crate::response::{MAX_CHARS, error_of};

use events::{Event, Events, is_end};

/// The maximum size of a streamed body, in bytes: 256 MiB. Comments count, too.
///
/// ```
/// assert_eq!(talktree_model::MAX_STREAM_BYTES, 256 << 20);
/// ```
pub const MAX_STREAM_BYTES: usize = 256 << 20;

/// A streamed answer of a provider.
///
/// Events of types that talktree does not know are ignored. The response has what the events say: text, calls of tools with
/// their inputs, reasoning with its signature, usage. An input that is not complete JSON, because the answer was cut off,
/// stays a text. If the provider answers with a plain JSON body instead of a stream, that is the response.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_model::{Stream, append_answer};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
///
/// let body = r#"data: {"id":"1","choices":[{"delta":{"role":"assistant","content":"It is"}}]}
///
/// data: {"id":"1","choices":[{"delta":{"content":" 4."},"finish_reason":"stop"}]}
///
/// data: [DONE]
///
/// "#;
/// let mut shown = String::new();
/// let mut stream = Stream::openai_chat();
/// for line in body.lines() {
///     if let Some(piece) = stream.line(line)? {
///         shown.push_str(&piece);
///     }
/// }
/// let answer = append_answer(&chat, stream.finish()?)?;
/// assert_eq!((shown.as_str(), answer.text().as_str()), ("It is 4.", "It is 4."));
/// # Ok::<(), talktree::Error>(())
/// ```
pub struct Stream {
    events: Events,
    assembly: Box<dyn Assembly>,
    pieces: Pieces,
    bytes: usize,
    failure: Option<String>,
}

/// An answer that is being put together.
trait Assembly: Send + Sync {
    /// Adds an event. The error is the reason why there will be no answer.
    fn add(&mut self, event: Value, pieces: &mut Pieces) -> std::result::Result<(), String>;

    /// Takes the mark at the end of some streams.
    fn end(&mut self) {}

    /// Returns whether the provider marked the answer as complete.
    fn is_complete(&self) -> bool;

    /// Returns whether the answer is complete except perhaps for the usage.
    fn is_whole(&self) -> bool {
        self.is_complete()
    }

    /// Returns the response.
    fn response(&self) -> Value;
}

/// The text of the answer so far.
#[derive(Default)]
struct Pieces {
    text: String,
    part: Option<(u64, u64)>,
}

impl Pieces {
    /// Adds text of a part. Parts are on lines of their own, as in the text of a message; texts side by side are one part.
    fn add(&mut self, part: (u64, u64), text: &str) {
        if text.is_empty() {
            return;
        }
        if self.part.is_some_and(|last| last != part) {
            self.text.push('\n');
        }
        self.part = Some(part);
        self.text.push_str(text);
    }
}

impl Stream {
    /// Returns an empty stream of the Anthropic messages API.
    ///
    /// ```
    /// use talktree_model::Stream;
    ///
    /// let mut stream = Stream::anthropic();
    /// for line in [
    ///     r#"data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":9}}}"#,
    ///     "",
    ///     r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    ///     "",
    ///     r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"4"}}"#,
    ///     "",
    ///     r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
    ///     "",
    /// ] {
    ///     stream.line(line)?;
    /// }
    /// assert_eq!(stream.text(), "4");
    /// assert_eq!(stream.finish()?["content"][0]["text"], "4");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn anthropic() -> Self {
        Self::of(anthropic::Answer::default())
    }

    /// Returns an empty stream of OpenAI's chat completions API, or of a server that speaks it. Of several choices the
    /// first is read. [`Stream`] has an example.
    #[must_use]
    pub fn openai_chat() -> Self {
        Self::of(openai_chat::Answer::default())
    }

    /// Returns an empty stream of OpenAI's responses API.
    ///
    /// ```
    /// use talktree_model::Stream;
    ///
    /// let mut stream = Stream::openai_responses();
    /// for line in [
    ///     r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"4"}"#,
    ///     "",
    ///     r#"data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"4"}]}]}}"#,
    ///     "",
    /// ] {
    ///     stream.line(line)?;
    /// }
    /// assert_eq!(stream.text(), "4");
    /// assert_eq!(stream.finish()?["status"], "completed");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn openai_responses() -> Self {
        Self::of(openai_responses::Answer::default())
    }

    fn of(assembly: impl Assembly + 'static) -> Self {
        Self {
            events: Events::default(),
            assembly: Box::new(assembly),
            pieces: Pieces::default(),
            bytes: 0,
            failure: None,
        }
    }

    /// Takes the next line of the body, with or without its line break; returns the new text of the answer, if the line
    /// brings any.
    ///
    /// Lines after the end of the answer are ignored.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] if the provider reports an error, an event is no JSON object, or the body is over
    /// [`MAX_STREAM_BYTES`]. There is no answer then: later calls return the same error.
    pub fn line(&mut self, line: &str) -> Result<Option<String>> {
        let start = self.pieces.text.len();
        if self.failure.is_none() && !self.is_complete() {
            self.failure = self.take(line).err();
        }
        match &self.failure {
            Some(why) => Err(no_answer(why)),
            None => {
                let piece = &self.pieces.text[start..];
                Ok((!piece.is_empty()).then(|| piece.to_owned()))
            }
        }
    }

    /// Returns the text of the answer so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.pieces.text
    }

    /// Returns whether the provider marked the answer as complete. Nothing more needs to be read then, even if the
    /// connection stays open.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.assembly.is_complete()
    }

    /// Returns the response, after the last line; called again, it returns the same.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] if the body ended before the answer was complete; as [`line`](Self::line).
    pub fn finish(&mut self) -> Result<Value> {
        // A body may end without the empty line that ends an event. If the event is cut, so is the answer.
        if self.failure.is_none()
            && let Some(event) = self.events.last()
            && serde_json::from_str::<Value>(&event.data).is_ok()
        {
            self.failure = self.add(event).err();
        }
        if let Some(why) = &self.failure {
            return Err(no_answer(why));
        }
        if let Some(body) = self.events.plain_body() {
            return match serde_json::from_str::<Value>(body) {
                Ok(response) => match error_of(&response) {
                    Some(why) => Err(no_answer(&why)),
                    None => Ok(response),
                },
                Err(_) => Err(no_answer(&unreadable("the body has no events", body))),
            };
        }
        if self.assembly.is_whole() {
            return Ok(self.assembly.response());
        }
        Err(no_answer("the stream ended before the answer was complete"))
    }

    fn take(&mut self, text: &str) -> std::result::Result<(), String> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_STREAM_BYTES {
            return Err(format!("the stream is over the limit of {MAX_STREAM_BYTES} bytes"));
        }
        // An empty line ends an event; a line with a break is still one line, and a text with several is many.
        let lines = text.lines();
        for line in lines.chain(text.is_empty().then_some("")) {
            if let Some(event) = self.events.line(line) {
                self.add(event)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, event: Event) -> std::result::Result<(), String> {
        if self.is_complete() {
            return Ok(());
        }
        if is_end(&event.data) {
            self.assembly.end();
            return Ok(());
        }
        let Event { name, data } = event;
        let is_error = name == "error";
        let value = match serde_json::from_str::<Value>(&data) {
            Ok(value @ Value::Object(_)) => value,
            _ if is_error => return Err(data),
            _ => return Err(unreadable("an event of the stream is no JSON object", &data)),
        };
        if let Some(why) = error_of(&value) {
            return Err(why);
        }
        if is_error || value["type"] == "error" {
            return Err(value["message"].as_str().map_or(data, str::to_owned));
        }
        self.assembly.add(value, &mut self.pieces)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("bytes", &self.bytes)
            .field("is_complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}

fn no_answer(why: &str) -> Error {
    Error::NoAnswer { why: short_line(why, MAX_CHARS) }
}

/// Returns why something cannot be read, with its size: it may be a part of an answer, and errors get into logs.
fn unreadable(why: &str, text: &str) -> String {
    format!("{why}; it has {} bytes", text.trim_end().len())
}

/// Appends a text to a string; anything else is replaced by it.
fn append(to: &mut Value, text: &str) {
    match to {
        Value::String(known) => known.push_str(text),
        other => *other = Value::from(text),
    }
}

/// Returns the object with this number in a list of a value, which are made if they are missing; `None` if the number is
/// not the next one.
fn at<'v>(value: &'v mut Value, list: &str, number: u64) -> Option<&'v mut Value> {
    let list = value.as_object_mut()?.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let list = list.as_array_mut()?;
    let number = usize::try_from(number).ok()?;
    if number == list.len() {
        list.push(Value::Object(serde_json::Map::new()));
    }
    list.get_mut(number)
}
