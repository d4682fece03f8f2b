//! Building a session with what its model should know.

use std::fmt;
use std::sync::Arc;

use super::Session;
use crate::context::{Block, ContextBuilder, Places};
use crate::error::Result;
use crate::event::Events;
use crate::storage::SessionProvider;
use crate::storage::context::ContextStore;

/// A session to be: with context blocks, a frozen prompt, tools. The order of calls does not matter, but for that of
/// blocks.
///
/// ```
/// use talktree::{Block, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store
///     .session_builder("telegram:4711")
///     .context("soul", Block::text("You are a helpful assistant."))
///     .context("memory", Block::stored().describe("Learned facts about the user").max_tokens(1_100))
///     .cached_prompt()
///     .open()?;
///
/// let system = chat.prompt()?; // the same bytes until `refresh_prompt`
/// let input = serde_json::json!({"label": "memory", "content": "Likes coffee."});
/// assert_eq!(chat.tools().call("set_context", &input)?, r#"Written to "memory": 0% (4/1100 tokens)"#);
/// assert_eq!(chat.block("memory")?.unwrap().content, "Likes coffee.");
/// assert_eq!(chat.prompt()?, system);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct SessionBuilder {
    provider: Arc<dyn SessionProvider>,
    events: Events,
    context: ContextBuilder,
}

impl SessionBuilder {
    pub(crate) fn over(
        provider: Arc<dyn SessionProvider>,
        events: Events,
        store: Option<Arc<dyn ContextStore>>,
    ) -> Self {
        let places = Places { store, conversation: Some(Arc::clone(&provider)) };
        Self { provider, events, context: ContextBuilder::over(places) }
    }

    /// Adds a context block under a label.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").context("soul", Block::text("Be brief.")).open()?;
    /// assert_eq!(chat.blocks()?[0].label, "soul");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn context(self, label: impl Into<String>, block: Block) -> Self {
        self.with(|context| context.block(label, block))
    }

    /// Keeps the prompt frozen; as [`ContextBuilder::cached_prompt`].
    pub fn cached_prompt(self) -> Self {
        self.with(ContextBuilder::cached_prompt)
    }

    /// Offers tools that look into the conversation; as [`ContextBuilder::history_tools`].
    pub fn history_tools(self) -> Self {
        self.with(ContextBuilder::history_tools)
    }

    /// Offers a tool that searches all sessions; as [`ContextBuilder::session_search`].
    pub fn session_search(self) -> Self {
        self.with(ContextBuilder::session_search)
    }

    /// Cuts the answers of tools to this size; as [`ContextBuilder::max_answer_tokens`].
    pub fn max_answer_tokens(self, tokens: u64) -> Self {
        self.with(|context| context.max_answer_tokens(tokens))
    }

    fn with(self, change: impl FnOnce(ContextBuilder) -> ContextBuilder) -> Self {
        Self { context: change(self.context), ..self }
    }

    /// Returns the session; it comes into being with its first write.
    ///
    /// # Errors
    /// [`Error::InvalidName`](crate::Error::InvalidName) if the id is empty or too long; as [`ContextBuilder::open`].
    pub fn open(self) -> Result<Session> {
        self.provider.id().check()?;
        Ok(Session { provider: self.provider, events: self.events, context: self.context.open()? })
    }
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("id", self.provider.id())
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
