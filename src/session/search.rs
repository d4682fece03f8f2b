//! Searching one conversation.

use std::sync::Arc;

use super::Session;
use crate::id::MessageId;
use crate::search::{Scope, Search, SearchRequest};

impl Session {
    /// Returns a builder of a search in all branches of this session.
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
    pub fn search(&self, text: impl Into<String>) -> Search {
        self.search_in(SearchRequest::new(text, Scope::session(self.id().clone())))
    }

    /// Returns a search of the path to `leaf`, or to the head if `None`.
    pub(super) fn search_within(&self, text: String, leaf: Option<&MessageId>) -> Search {
        self.search_in(SearchRequest::new(text, Scope::Path(self.id().clone(), leaf.cloned())))
    }

    fn search_in(&self, request: SearchRequest) -> Search {
        let target = Arc::clone(self.storage.database());
        Search::new(target, request)
    }
}
