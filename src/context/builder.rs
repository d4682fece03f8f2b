//! The builder of a context.

use std::fmt;
use std::sync::Arc;

use super::block::Block;
use super::labelled::LabelledBlock;
use super::{Backing, Context, Options, push};
use crate::error::Result;

/// Builds a [`Context`]. Only the order of its blocks matters, not that of the other calls.
///
/// ```
/// use talktree::{Block, Store};
///
/// let store = Store::open_in_memory()?;
/// let context = store
///     .context("assistant")
///     .cached_prompt()
///     .block("soul", Block::text("You are a helpful assistant."))
///     .block("memory", Block::stored())
///     .open()?;
/// let frozen = context.prompt()?;
/// context.set("memory", "Likes coffee.")?;
/// assert_eq!(context.prompt()?, frozen);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ContextBuilder {
    backing: Backing,
    blocks: Vec<(String, Block)>,
    pub(crate) options: Options,
}

impl ContextBuilder {
    pub(crate) fn over(backing: Backing) -> Self {
        Self { backing, blocks: Vec::new(), options: Options::default() }
    }

    /// Returns the builder over another backing.
    pub(crate) fn backed_by(self, backing: Backing) -> Self {
        Self { backing, ..self }
    }

    /// Adds a block under a label.
    ///
    /// ```
    /// use talktree::{Block, Error, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let twice = store.context("assistant").block("a", Block::stored()).block("a", Block::stored());
    /// assert!(matches!(twice.open(), Err(Error::BlockExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn block(mut self, label: impl Into<String>, block: Block) -> Self {
        self.blocks.push((label.into(), block));
        self
    }

    /// Freezes the prompt when it is first read: the same bytes, also after a restart, until it is refreshed,
    /// or the conversation is compacted or cleared.
    pub fn cached_prompt(mut self) -> Self {
        self.options.is_cached = true;
        self
    }

    /// Returns the context.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a label is blank, longer than 80 characters or more than
    /// one line; [`Error::BlockExists`](crate::Error::BlockExists) if one is given twice.
    pub fn open(self) -> Result<Context> {
        self.backing.conversation.id().check()?;
        let mut blocks = Vec::new();
        for (label, block) in self.blocks {
            push(&mut blocks, &Arc::new(LabelledBlock::new(&label, block)?))?;
        }
        Ok(Context::over(self.backing, blocks, self.options))
    }
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backing: _, blocks, options } = self;
        f.debug_struct("ContextBuilder")
            .field("blocks", blocks)
            .field("options", options)
            .finish_non_exhaustive()
    }
}
