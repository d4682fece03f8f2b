//! A reply that is streamed into an unfinished message.

use std::time::{Duration, Instant};

use talktree::{Error, Message, MessageId, Result, Session};

use crate::{Stream, from_response};

/// How long a streamed text is in memory alone: what a crash may lose.
const SAVED_AFTER: Duration = Duration::from_secs(1);
/// How many bytes of it are.
const SAVED_BYTES: usize = 4 << 10;

/// Begins a reply into which an answer is streamed.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_model::{Stream, stream};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// let body = r#"data: {"id":"1","choices":[{"delta":{"role":"assistant","content":"It is"}}]}
///
/// data: {"id":"1","choices":[{"delta":{"content":" 4."},"finish_reason":"stop"}]}
///
/// data: [DONE]
/// "#;
/// let mut reply = stream(&chat, Stream::openai_chat())?; // has an id, and is stored as unfinished
/// for line in body.lines() {
///     reply.push(line)?; // saved now and then
///     println!("{}", reply.text());
/// }
/// let answer = reply.finish()?;
/// assert_eq!(chat.history()?[1].text(), answer.text());
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`Session::begin`].
pub fn stream(chat: &Session, stream: Stream) -> Result<Reply> {
    let id = chat.begin(Message::assistant(""))?.id;
    Ok(Reply {
        chat: chat.clone(),
        stream,
        id,
        saved_at: Instant::now(),
        saved: 0,
        is_finished: false,
    })
}

/// A reply that is streamed: from [`stream()`], which has an example.
///
/// It is stored as an unfinished message from the start, and saved once a second or every 4 KiB, when a line brings text. If it
/// is dropped, or the process dies, it stays unfinished: [`Session::unfinished`] offers it.
#[derive(Debug)]
pub struct Reply {
    chat: Session,
    stream: Stream,
    id: MessageId,
    saved_at: Instant,
    /// How many bytes of the text are stored.
    saved: usize,
    is_finished: bool,
}

impl Reply {
    /// Returns the id of the message.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Takes the next line of the body; returns the new text, as [`Stream::line`] does.
    ///
    /// # Errors
    /// As [`Stream::line`] and [`Session::save`]. What came before is saved, and the reply stays unfinished.
    /// [`Error::Finished`] after [`finish`](Self::finish).
    pub fn push(&mut self, line: &str) -> Result<Option<String>> {
        if self.is_finished {
            let (session, id) = (self.chat.id().clone(), self.id.clone());
            return Err(Error::Finished { session, id });
        }
        let piece = self.stream.line(line);
        let is_due = piece.is_err()
            || self.stream.text().len() >= self.saved + SAVED_BYTES
            || self.saved_at.elapsed() >= SAVED_AFTER;
        if is_due {
            self.save()?;
        }
        piece
    }

    /// Returns the text so far.
    #[must_use]
    pub fn text(&self) -> &str {
        self.stream.text()
    }

    /// Returns whether the answer is complete, and nothing more needs to be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.stream.is_complete()
    }

    /// Stores the whole answer with its usage, in one transaction, and returns it.
    ///
    /// # Errors
    /// As [`Stream::finish`] and [`Session::finish`]. The reply stays unfinished then, with the text so far saved if that is
    /// possible, and this can be called again.
    pub fn finish(&mut self) -> Result<Message> {
        let answer = self.stream.finish().and_then(|response| from_response(&response));
        let finished = answer.and_then(|answer| {
            let answer = answer.with_id(self.id.clone());
            self.chat.finish(answer.clone())?;
            Ok(answer)
        });
        match &finished {
            Ok(_) => self.is_finished = true,
            Err(_) => self.save()?,
        }
        finished
    }

    /// Deletes the reply.
    ///
    /// # Errors
    /// As [`Session::discard`].
    pub fn discard(self) -> Result<()> {
        self.chat.discard(&self.id)
    }

    fn save(&mut self) -> Result<()> {
        self.saved_at = Instant::now();
        let text = self.stream.text();
        if text.len() > self.saved {
            self.chat.save(Message::assistant(text).with_id(self.id.clone()))?;
            self.saved = text.len();
        }
        Ok(())
    }
}
