//! The frozen prompt: rendered once, kept until it is refreshed.

use super::Context;
use super::drift::{Drift, drifts};
use super::system_prompt::{section, text};
use crate::error::{Error, Result};
use crate::storage::context::Section;

impl Context {
    /// Returns the prompt: all blocks, one below the other.
    ///
    /// With [`cached_prompt`](super::ContextBuilder::cached_prompt) it is frozen by the first call: every later one
    /// returns the same bytes, in other processes and after a restart too, until [`refresh_prompt`](Self::refresh_prompt),
    /// a compaction or a clear. Empty blocks that can only be read are left out.
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
    /// [`Error::Provider`] if what is behind a block fails; as every write.
    pub fn prompt(&self) -> Result<String> {
        if !self.shared.options.is_cached {
            return Ok(text(&self.sections()?));
        }
        let store = self.places().store()?;
        match store.frozen()? {
            Some(frozen) => Ok(text(&frozen)),
            None => {
                let sections = self.sections()?;
                match store.freeze(&sections) {
                    // Nothing can be kept; what is rendered is as good as frozen for who only reads.
                    Err(Error::ReadOnly) => Ok(text(&sections)),
                    frozen => Ok(text(&frozen?)),
                }
            }
        }
    }

    /// Returns the prompt as [`prompt`](Self::prompt) would, and freezes nothing.
    pub(crate) fn current_prompt(&self) -> Result<String> {
        match self.shared.options.is_cached {
            true => match self.places().store()?.frozen()? {
                Some(frozen) => Ok(text(&frozen)),
                None => Ok(text(&self.sections()?)),
            },
            false => Ok(text(&self.sections()?)),
        }
    }

    /// Renders the prompt anew, freezes it if it is kept frozen, and returns it.
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
    /// As [`prompt`](Self::prompt); what was frozen then stays.
    pub fn refresh_prompt(&self) -> Result<String> {
        let sections = self.sections()?;
        if self.shared.options.is_cached {
            self.places().store()?.refreeze(&sections)?;
        }
        Ok(text(&sections))
    }

    /// Forgets the frozen prompt, so that the next call of [`prompt`](Self::prompt) renders it anew.
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
        self.places().store()?.thaw()
    }

    /// Returns the prompt that is frozen, `None` if none is; nothing is rendered.
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
        let Some(store) = &self.places().store else { return Ok(None) };
        Ok(store.frozen()?.map(|sections| text(&sections)))
    }

    /// Returns the blocks that differ from the frozen prompt, with both texts; none if no prompt is frozen.
    ///
    /// [`Drift`] has an example.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub fn drift(&self) -> Result<Vec<Drift>> {
        let Some(store) = &self.places().store else { return Ok(Vec::new()) };
        let Some(frozen) = store.frozen()? else { return Ok(Vec::new()) };
        Ok(drifts(frozen, self.sections()?))
    }

    /// Returns what to tell a model beside the frozen prompt: the blocks marked by
    /// [`remind`](super::Block::remind) that read otherwise by now. `None` if there is nothing to tell.
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
        let Some(store) = &self.places().store else { return Ok(None) };
        let Some(frozen) = store.frozen()? else { return Ok(None) };
        let mut texts = Vec::new();
        for block in self.all().iter().filter(|block| block.block.is_reminding) {
            let was = frozen.iter().find(|section| section.label == block.label);
            let was = was.map(|section| section.content.as_str()).unwrap_or_default();
            let (label, now) = (&block.label, block.content(self.places())?);
            match now.as_str() {
                now if now == was => {}
                "" => texts.push(format!(
                    "{label} has changed since the prompt was written. It is empty now."
                )),
                now => texts.push(format!(
                    "{label} has changed since the prompt was written. It now reads:\n{now}"
                )),
            }
        }
        Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()))
    }

    /// Renders the blocks that are shown.
    fn sections(&self) -> Result<Vec<Section>> {
        let blocks = self.blocks()?;
        Ok(blocks.iter().filter_map(section).collect())
    }
}
