//! The context of the session, and shortcuts to what a turn needs of it.

use super::Session;
use crate::context::{BlockInfo, Context, Drift};
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;
use crate::outcome::Appended;
use crate::tools::{self, Tools};

impl Session {
    /// Returns the context: blocks, their prompt, documents, versions.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// chat.context().append("memory", "Likes coffee.")?;
    /// assert_eq!(chat.context().versions("memory", None)?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the context block of this label with its current content; as [`Context::block`].
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
    /// assert_eq!(chat.block("soul")?.unwrap().content, "Be brief.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::block`].
    pub fn block(&self, label: &str) -> Result<Option<BlockInfo>> {
        self.context.block(label)
    }

    /// Returns all context blocks with their current contents; as [`Context::blocks`].
    ///
    /// # Errors
    /// As [`Context::block`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        self.context.blocks()
    }

    /// Returns the system prompt; as [`Context::prompt`].
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
    /// assert!(chat.prompt()?.ends_with("\nBe brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::prompt`].
    pub fn prompt(&self) -> Result<String> {
        self.context.prompt().inspect(|prompt| self.note_prompt(prompt))
    }

    /// Renders the system prompt again; as [`Context::refresh_prompt`].
    ///
    /// # Errors
    /// As [`Context::refresh_prompt`].
    pub fn refresh_prompt(&self) -> Result<String> {
        self.context.refresh_prompt().inspect(|prompt| self.note_prompt(prompt))
    }

    /// Returns the blocks that differ from the frozen prompt; as [`Context::drift`].
    ///
    /// # Errors
    /// As [`Context::drift`].
    pub fn drift(&self) -> Result<Vec<Drift>> {
        self.context.drift()
    }

    /// Returns what to tell the model beside the frozen prompt; as [`Context::reminder`].
    ///
    /// # Errors
    /// As [`Context::reminder`].
    pub fn reminder(&self) -> Result<Option<String>> {
        self.context.reminder()
    }

    /// Returns the tools for the context; as [`Context::tools`], and [`Tools::answer`] runs the calls of a message.
    ///
    /// [`Tools`] has an example.
    pub fn tools(&self) -> Tools {
        self.context.tools().of(std::sync::Arc::new(self.clone()))
    }
}

impl tools::Conversation for Session {
    fn append_if_head(&self, head: Option<&MessageId>, message: Message) -> Result<Appended> {
        Self::append_if_head(self, head, message)
    }
}
