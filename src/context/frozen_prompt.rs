//! The frozen prompt: rendered once and stored until it is refreshed.

use std::sync::Arc;

use talktree_text::foreign::{guarded, name};

use super::Context;
use super::drift::{Drift, drifts};
use super::labelled::LabelledBlock;
use super::system_prompt::{section, text};
use crate::error::{Error, Result};
use crate::storage::context::PromptSection;

/// The text after the label in a reminder. A line of a block with this text begins with `> `.
const CHANGED: &str = " has changed since the prompt was written.";

/// What becomes of a prompt that is frozen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frozen {
    Kept,
    Replaced,
}

impl Context {
    /// Returns the prompt: all blocks, one below the other.
    ///
    /// With [`cached_prompt`](super::ContextBuilder::cached_prompt) the first call freezes it: every later call returns
    /// the same bytes, also in other processes and after a restart, until [`refresh_prompt`](Self::refresh_prompt), a
    /// compaction, a clear or a change of the session's owner. Empty read-only blocks are left out.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("soul", Block::text("Be brief.")).open()?;
    /// assert!(context.prompt()?.ends_with("\nBe brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Provider`] if the provider of a block fails; as every write.
    pub fn prompt(&self) -> Result<String> {
        if !self.shared.options.is_cached {
            return Ok(text(&self.sections()?));
        }
        if let Some(frozen) = self.backing().store.read(|texts| texts.frozen())? {
            return Ok(text(&frozen));
        }
        match self.freeze(Frozen::Kept) {
            // A read-only store cannot keep it; a reader gets what would have been frozen.
            Err(Error::ReadOnly) => Ok(text(&self.sections()?)),
            frozen => frozen,
        }
    }

    /// Returns what [`prompt`](Self::prompt) would return, without freezing it.
    pub(crate) fn current_prompt(&self) -> Result<String> {
        match self.shared.options.is_cached {
            true => match self.backing().store.read(|texts| texts.frozen())? {
                Some(frozen) => Ok(text(&frozen)),
                None => Ok(text(&self.sections()?)),
            },
            false => Ok(text(&self.sections()?)),
        }
    }

    /// Renders the prompt again and returns it. With [`cached_prompt`](super::ContextBuilder::cached_prompt) it replaces
    /// the frozen one.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).cached_prompt().open()?;
    /// context.prompt()?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert!(!context.prompt()?.contains("coffee"));
    /// assert!(context.refresh_prompt()?.contains("coffee"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt). After an error the frozen prompt is unchanged.
    pub fn refresh_prompt(&self) -> Result<String> {
        match self.shared.options.is_cached {
            true => self.freeze(Frozen::Replaced),
            false => Ok(text(&self.sections()?)),
        }
    }

    /// Removes the frozen prompt, so that the next call of [`prompt`](Self::prompt) renders it again.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("soul", Block::text("Be brief.")).cached_prompt().open()?;
    /// context.prompt()?;
    /// context.thaw_prompt()?;
    /// assert_eq!(context.frozen_prompt()?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn thaw_prompt(&self) -> Result<()> {
        self.backing().store.write(|texts| texts.set_frozen(None))
    }

    /// Returns the frozen prompt; `None` if none is frozen. Nothing is rendered.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("soul", Block::text("Be brief.")).cached_prompt().open()?;
    /// assert_eq!(context.frozen_prompt()?, None);
    /// let prompt = context.prompt()?;
    /// assert_eq!(context.frozen_prompt()?, Some(prompt));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn frozen_prompt(&self) -> Result<Option<String>> {
        let store = &self.backing().store;
        Ok(store.read(|texts| texts.frozen())?.map(|sections| text(&sections)))
    }

    /// Returns the blocks that differ from the frozen prompt, with both texts; none if no prompt is frozen.
    ///
    /// [`Drift`] has an example.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub fn drift(&self) -> Result<Vec<Drift>> {
        let store = &self.backing().store;
        let Some(frozen) = store.read(|texts| texts.frozen())? else { return Ok(Vec::new()) };
        Ok(drifts(frozen, self.sections()?))
    }

    /// Returns what to tell a model beside the frozen prompt: the current text of each block with
    /// [`remind`](super::Block::remind) that differs from it. `None` if none does.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let memory = Block::stored().remind();
    /// let context = store.context("assistant").block("memory", memory).cached_prompt().open()?;
    /// context.prompt()?;
    /// assert_eq!(context.reminder()?, None);
    /// context.set("memory", "Likes coffee.")?;
    /// assert!(context.reminder()?.unwrap().ends_with("\nLikes coffee."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn reminder(&self) -> Result<Option<String>> {
        let store = &self.backing().store;
        let Some(frozen) = store.read(|texts| texts.frozen())? else { return Ok(None) };
        let mut texts = Vec::new();
        for block in self.all().iter().filter(|block| block.block.is_reminding) {
            let was = frozen.iter().find(|section| section.label == block.label);
            let was = was.map(|section| section.content.as_str()).unwrap_or_default();
            let (label, now) = (name(&block.label), block.content(self.backing())?);
            match now.as_str() {
                now if now == was => {}
                "" => texts.push(format!("{label}{CHANGED} It is empty now.")),
                now => {
                    let now = guarded(now, |line| line.contains(CHANGED));
                    texts.push(format!("{label}{CHANGED} It now reads:\n{now}"));
                }
            }
        }
        Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()))
    }

    /// Freezes the prompt and returns it. Stored texts are read by the write that freezes them: until then the session may
    /// get another owner, or a text be erased.
    fn freeze(&self, before: Frozen) -> Result<String> {
        let blocks = self.all();
        // Read before: no code of the program runs inside a write.
        let read = |block: &Arc<LabelledBlock>| match block.block.source.is_stored() {
            true => Ok(None),
            false => block.content(self.backing()).map(Some),
        };
        let contents = blocks.iter().map(read).collect::<Result<Vec<_>>>()?;
        self.backing().store.write(|texts| {
            if before == Frozen::Kept
                && let Some(known) = texts.frozen()?
            {
                return Ok(text(&known));
            }
            let mut sections = Vec::new();
            for (block, content) in blocks.iter().zip(&contents) {
                let content = match content {
                    Some(content) => content.clone(),
                    None => block.stored_content(texts)?,
                };
                sections.extend(section(&block.block.info(&block.label, content)));
            }
            texts.set_frozen(Some(&sections))?;
            Ok(text(&sections))
        })
    }

    fn sections(&self) -> Result<Vec<PromptSection>> {
        let blocks = self.blocks()?;
        Ok(blocks.iter().filter_map(section).collect())
    }
}
