//! Former versions of what is stored.

use super::Context;
use super::block::{Block, Source};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::storage::context::{EntryVersion, Owner, StoredLabel};

impl Context {
    /// Returns the labels under which the store holds something of this session or of all, each with a block that reads
    /// it, whether or not the context has one.
    ///
    /// What is not stored, as a description or a limit, such a block does not have. Of a label that is of the session and
    /// of all, the session's is returned.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let other = store.context("assistant").open()?; // knows of no block
    /// for (label, block) in other.stored()? {
    ///     other.add(&label, block)?;
    /// }
    /// assert_eq!(other.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn stored(&self) -> Result<Vec<(String, Block)>> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let own = store.labels(Owner::Session)?;
        let mut shared = store.labels(Owner::Shared)?;
        shared.retain(|label| own.iter().all(|other| other.label != label.label));
        let shared = shared.into_iter().map(|found| {
            let block = block_of(&found).across_sessions();
            (found.label, block)
        });
        let own = own.into_iter().map(|found| {
            let block = block_of(&found);
            (found.label, block)
        });
        Ok(own.chain(shared).collect())
    }

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

    /// Returns one version of a stored block or, with a `key`, of a document of the block. The other versions are not
    /// read.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes tea.")?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert_eq!(context.version("memory", None, 1)?.content.as_deref(), Some("Likes tea."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownVersion`]; as [`versions`](Self::versions).
    pub fn version(&self, label: &str, key: Option<&str>, version: u64) -> Result<EntryVersion> {
        self.require(label)?.version(self.places(), key.unwrap_or_default(), version)
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

fn block_of(found: &StoredLabel) -> Block {
    Block::of(match found {
        StoredLabel { has_text: true, .. } => Source::Stored,
        StoredLabel { is_searchable: true, .. } => Source::Knowledge,
        _ => Source::StoredSkills,
    })
}
