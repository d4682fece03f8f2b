//! Taking blocks over: from a system prompt or a document, into one, and what the store holds already.

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
    /// Returns the blocks that are one text as one Markdown document: a heading for each, its description, its content.
    /// Documents of skills and knowledge are not in it.
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

    /// Writes the blocks that a text holds, and returns their labels in its order.
    ///
    /// The text is a document as [`to_markdown`](Self::to_markdown) makes it, a prompt as [`prompt`](Self::prompt) renders
    /// it, or any system prompt: what stands under no heading becomes the block `system`. A label without a block gets a
    /// stored one. All of it is checked before anything is written.
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
    /// [`Error::InvalidName`] if a heading cannot be a label, [`Error::BlockExists`] if one comes twice; as
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
                if self.stands(block, &passage.content)? {
                    continue;
                }
                block.check_plain()?;
                block.block.check_tokens(label, estimate_tokens(&passage.content))?;
            }
            if block.is_none_or(|block| block.block.source.is_stored()) {
                let entry = NewEntry { content: &passage.content, ..NewEntry::default() };
                self.places().store()?.check(label, &entry)?;
            }
        }
        for passage in &passages {
            if self.find(&passage.label).is_none() {
                let described = passage.description.as_deref().unwrap_or_default();
                self.add(&passage.label, Block::stored().describe(described))?;
            }
            let block = self.require(&passage.label)?;
            if !self.stands(&block, &passage.content)? {
                block.set(self.places(), &passage.content)?;
            }
        }
        Ok(passages.into_iter().map(|passage| passage.label).collect())
    }

    /// Returns whether a block that cannot be written, or not as a whole, reads so already.
    fn stands(&self, block: &LabelledBlock, content: &str) -> Result<bool> {
        Ok(block.check_plain().is_err() && block.content(self.places())? == content)
    }

    /// Returns the label of the block that a prompt shows so, in upper case.
    fn label_like(&self, shown: &str) -> Option<String> {
        let blocks = self.all();
        let found = blocks.iter().find(|block| block.label.to_uppercase() == shown);
        found.map(|block| block.label.clone())
    }
}
