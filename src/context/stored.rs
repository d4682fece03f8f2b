//! What the store keeps of blocks: labels and versions.

use super::Context;
use super::block::{Block, Source};
#[expect(unused_imports, reason = "the documents link to it")]
use crate::error::Error;
use crate::error::Result;
use crate::storage::context::{BlockScope, EntryVersion, StoredLabel};

impl Context {
    /// Returns the labels under which the store keeps texts of this session, of its owner or of all sessions, each with a
    /// block that reads them, whether or not the context has one.
    ///
    /// Descriptions and limits are not stored, so these blocks have none. If there are texts of several under a label, only
    /// the block of the narrowest is returned: the session before its owner, the owner before all.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let other = store.context("assistant").open()?; // without blocks
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
        let store = self.store();
        let mut stored: Vec<(String, Block)> = Vec::new();
        for scope in BlockScope::ALL {
            let mut labels = store.labels(scope)?;
            labels.retain(|found| stored.iter().all(|(label, _)| *label != found.label));
            stored.extend(labels.into_iter().map(|found| {
                let block = block_of(&found, scope);
                (found.label, block)
            }));
        }
        Ok(stored)
    }

    /// Returns the labels under which the store keeps texts of this scope, sorted.
    ///
    /// ```
    /// use talktree::{Block, BlockScope, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("rules", Block::stored().across_sessions()).open()?;
    /// context.set("rules", "Be brief.")?;
    /// assert!(context.stored_labels(BlockScope::Session)?.is_empty());
    /// assert_eq!(context.stored_labels(BlockScope::Shared)?[0].label, "rules");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn stored_labels(&self, scope: BlockScope) -> Result<Vec<StoredLabel>> {
        self.store().labels(scope)
    }

    /// Returns the versions of a stored block or, with a `key`, of a document of the block, oldest first; the last one is
    /// the current version.
    ///
    /// The newest 1 000 versions are kept.
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
        self.require(label)?.versions(self.backing(), key.unwrap_or_default())
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
        self.require(label)?.version(self.backing(), key.unwrap_or_default(), version)
    }

    /// Restores a version by writing it as a new one. If the version was a removal, the text is removed again.
    ///
    /// [`versions`](Self::versions) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], [`Error::BlockOverLimit`]; [`Error::BlockKeyed`] if a block of documents is given no key,
    /// [`Error::BlockCannot`] if a block of one text is given a key; as [`versions`](Self::versions) and as every write.
    pub fn restore(&self, label: &str, key: Option<&str>, version: u64) -> Result<()> {
        self.require(label)?.restore(self.backing(), key.unwrap_or_default(), version)
    }
}

fn block_of(found: &StoredLabel, scope: BlockScope) -> Block {
    let block = Block::of(match found {
        StoredLabel { has_text: true, .. } => Source::Stored,
        StoredLabel { is_searchable: true, .. } => Source::Knowledge,
        _ => Source::StoredSkills,
    });
    Block { scope, ..block }
}
