//! Searching one conversation.

use chrono::{DateTime, Utc};

use super::Session;
use crate::error::Result;
use crate::id::MessageId;
use crate::search::{Found, Scope, SearchRequest};

impl Session {
    /// Returns a builder of a search within this session.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("Which colour shall the door have?"))?;
    /// let found = chat.search("colour door").run()?;
    /// assert_eq!(found.hits[0].snippet.to_string(), "Which **colour** shall the **door** have?");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn search(&self, text: impl Into<String>) -> SessionSearch<'_> {
        let request = SearchRequest::new(text, Scope::Session(self.id().clone()));
        SessionSearch { session: self, request }
    }
}

/// A search within one session.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("Which colour?"))?.id;
/// let red = chat.append(Message::assistant("A red colour."))?.id;
/// chat.append_to(&question, Message::assistant("A cyan colour."))?;
///
/// assert_eq!(chat.search("colour").run()?.hits.len(), 3);
/// assert_eq!(chat.search("colour").on_path().run()?.hits.len(), 2);
/// assert_eq!(chat.search("red").on_path_to(&red).run()?.hits[0].id, red);
/// assert_eq!(chat.search("colour").limit(2).offset(2).run()?.hits.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a search is run by `run`"]
pub struct SessionSearch<'a> {
    session: &'a Session,
    request: SearchRequest,
}

impl SessionSearch<'_> {
    /// Searches the path to the head only.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// assert!(chat.search("red").on_path().run()?.hits.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn on_path(mut self) -> Self {
        self.request.scope = Scope::Path(self.session.id().clone(), None);
        self
    }

    /// Searches the path to this message only.
    pub fn on_path_to(mut self, leaf: &MessageId) -> Self {
        self.request.scope = Scope::Path(self.session.id().clone(), Some(leaf.clone()));
        self
    }

    /// Answers with this many hits at the most; 20 if it is not called.
    pub fn limit(mut self, limit: usize) -> Self {
        self.request.limit = limit;
        self
    }

    /// Leaves out this many of the best hits, for the pages after the first.
    pub fn offset(mut self, offset: usize) -> Self {
        self.request.offset = offset;
        self
    }

    /// Takes the question as asked at this time: `last week` is the week before it. The clock's time if it is not
    /// called.
    pub fn now(mut self, now: DateTime<Utc>) -> Self {
        self.request.now = Some(now);
        self
    }

    /// Returns what is found, best first.
    ///
    /// # Errors
    /// As every read; no text of a query is an error.
    pub fn run(self) -> Result<Found> {
        self.session.provider.search(&self.request)
    }
}
