//! Import of blocks from Markdown or a system prompt, and export to Markdown.

use super::block::Block;
use super::label::check_label;
use super::labelled::LabelledBlock;
use super::markdown::{self, Passage};
use super::system_prompt;
use super::{Context, MAX_BLOCKS};
use crate::error::{Error, Result};
use crate::storage::context::NewEntry;
use crate::tokens::estimate_tokens;

impl Context {
    /// Returns all blocks of one text as a Markdown document: for each a heading, the description, the content. Documents
    /// of skills and knowledge are left out.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert_eq!(context.to_markdown()?, "# memory\n\nLikes coffee.\n");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn to_markdown(&self) -> Result<String> {
        let texts = self.blocks()?.into_iter().filter(|block| !block.is_keyed());
        let passages = texts.map(|block| Passage {
            label: block.label,
            description: block.description,
            content: block.content,
        });
        Ok(markdown::write(&passages.collect::<Vec<_>>()))
    }

    /// Writes the blocks that a text describes, and returns their labels in its order.
    ///
    /// The text is a document from [`to_markdown`](Self::to_markdown), a prompt from [`prompt`](Self::prompt), or any
    /// system prompt: text above the first heading becomes the block `system`. A label without a block gets a stored one.
    /// The whole text is checked before anything is written.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let context = Store::open_in_memory()?.context("assistant").open()?;
    /// let labels = context.import("You are a helpful assistant.\n\n# memory\n\nLikes coffee.\n")?;
    /// assert_eq!(labels, ["system", "memory"]);
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if a heading cannot be a label, [`Error::BlockExists`] if two are the same; as
    /// [`set`](Self::set).
    pub fn import(&self, text: &str) -> Result<Vec<String>> {
        let passages = match system_prompt::read(text, |label| self.label_like(label)) {
            Some(passages) => passages,
            None => markdown::read(text)?,
        };
        let is_new = |passage: &&Passage| self.find(&passage.label).is_none();
        if self.all().len() + passages.iter().filter(is_new).count() > MAX_BLOCKS {
            return Err(Error::TooManyBlocks { max: MAX_BLOCKS });
        }
        for (at, passage) in passages.iter().enumerate() {
            let label = &passage.label;
            if passages[..at].iter().any(|other| other.label == *label) {
                return Err(Error::BlockExists { label: label.clone() });
            }
            check_label(label)?;
            let block = self.find(label);
            if let Some(block) = &block {
                if self.is_written(block, &passage.content)? {
                    continue;
                }
                block.check_plain()?;
                block.block.check_tokens(label, estimate_tokens(&passage.content))?;
            }
            if block.is_none_or(|block| block.block.source.is_stored()) {
                let entry = NewEntry::new("", &passage.content);
                self.backing().store.check(label, &entry)?;
            }
        }
        for passage in &passages {
            if self.find(&passage.label).is_none() {
                let described = passage.description.as_deref().unwrap_or_default();
                self.add(&passage.label, Block::stored().describe(described))?;
            }
            let block = self.require(&passage.label)?;
            if !self.is_written(&block, &passage.content)? {
                block.set(self.backing(), &passage.content)?;
            }
        }
        Ok(passages.into_iter().map(|passage| passage.label).collect())
    }

    /// Returns whether the block needs no write: it cannot be written as a whole, but has this content already.
    fn is_written(&self, block: &LabelledBlock, content: &str) -> Result<bool> {
        Ok(block.check_plain().is_err() && block.content(self.backing())? == content)
    }

    /// Returns the label that a prompt shows as `shown`, in upper case.
    fn label_like(&self, shown: &str) -> Option<String> {
        let blocks = self.all();
        let found = blocks.iter().find(|block| system_prompt::label(&block.label) == shown);
        found.map(|block| block.label.clone())
    }
}
