//! Former versions of what is stored.

use super::Context;
use super::drift::unified;
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::storage::context::EntryVersion;

impl Context {
    /// Returns the versions of a stored block, oldest first; the last is the present one.
    ///
    /// The last 1 000 are kept. With a `key`, those of a document of the block.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes tea.")?;
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let versions = context.versions("memory", None)?;
    /// assert_eq!(versions[0].content.as_deref(), Some("Likes tea."));
    /// assert!(context.diff("memory", None, 1, 2)?.contains("+Likes coffee."));
    /// context.restore("memory", None, 1)?;
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes tea.");
    /// assert_eq!(context.versions("memory", None)?.len(), 3);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block is not kept in the store; as every read.
    pub fn versions(&self, label: &str, key: Option<&str>) -> Result<Vec<EntryVersion>> {
        self.require(label)?.versions(self.places(), key.unwrap_or_default())
    }

    /// Returns the difference of two versions by lines, in unified form; empty if they read the same.
    ///
    /// [`versions`](Self::versions) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`]; as [`versions`](Self::versions).
    pub fn diff(&self, label: &str, key: Option<&str>, from: u64, to: u64) -> Result<String> {
        let block = self.require(label)?;
        let content = |number: u64| {
            let found = block.version(self.places(), key.unwrap_or_default(), number)?;
            Ok(found.content.unwrap_or_default())
        };
        Ok(unified(&content(from)?, &content(to)?))
    }

    /// Brings a version back, as a new one. Of a version that was a removal, the text is removed again.
    ///
    /// [`versions`](Self::versions) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], [`Error::BlockOverLimit`]; [`Error::BlockKeyed`] without a key where there are documents,
    /// [`Error::BlockCannot`] with one where there are none; as [`versions`](Self::versions) and as every write.
    pub fn restore(&self, label: &str, key: Option<&str>, version: u64) -> Result<()> {
        self.require(label)?.restore(self.places(), key.unwrap_or_default(), version)
    }
}
