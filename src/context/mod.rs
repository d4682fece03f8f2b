//! Context: what a model should know beside the conversation.
//!
//! A [`Context`] holds [`Block`]s under labels, in the order they were given. The source of a block decides what the block
//! can do: be read, be written, give documents by key (skills), be searched. All blocks, rendered one below the other, are
//! the *prompt*. A frozen prompt stays the same, byte for byte, until it is refreshed, so that a provider's cache of it
//! stays valid; *drift* lists the blocks that have changed since. The tools for a model are in [`tools`](crate::tools).
//!
//! `labelled` reads and writes a block under its label. Most of the other files do no I/O: they take texts and return texts.
//!
//! Invariant: the content of a block is read from its source at every call; nothing is cached.

mod backing;
mod block;
mod builder;
mod call_lock;
mod document_key;
mod documents;
mod drift;
mod frozen_prompt;
mod import;
mod label;
mod labelled;
mod markdown;
mod provider;
mod slug;
mod stored;
mod system_prompt;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::error::{Error, Result};
use crate::storage::context::BlockScope;
use crate::storage::sqlite::SqliteContext;

pub use block::{Block, BlockInfo};
pub use builder::ContextBuilder;
pub use drift::{Drift, DriftKind};
pub use provider::{Document, ReadProvider, SearchProvider, SkillProvider, WriteProvider};

pub(crate) use backing::Backing;
use labelled::LabelledBlock;

/// The most blocks of one context: every prompt shows each of them.
const MAX_BLOCKS: usize = 1_000;

/// What a model should know: blocks under labels, the prompt they make, and tools to work with them.
///
/// A cheap handle: clones share the blocks.
///
/// ```
/// use talktree::{Block, Store};
///
/// let store = Store::open_in_memory()?;
/// let context = store
///     .context("assistant")
///     .block("soul", Block::text("You are a helpful assistant."))
///     .block("memory", Block::stored().describe("Learned facts").max_tokens(1_100))
///     .open()?;
/// context.set("memory", "Likes coffee.")?;
///
/// assert_eq!(context.block("memory")?.unwrap().usage(), "0% (4/1100 tokens)");
/// assert!(context.prompt()?.contains("MEMORY (Learned facts) [0% — 4/1100 tokens] [writable]"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

/// A handle of a context that ends when all others are dropped.
#[derive(Clone)]
pub(crate) struct WeakContext(Weak<Shared>);

impl WeakContext {
    pub(crate) fn upgrade(&self) -> Option<Context> {
        self.0.upgrade().map(|shared| Context { shared })
    }
}

struct Shared {
    blocks: RwLock<Vec<Arc<LabelledBlock>>>,
    /// How often a block was added or removed.
    revision: AtomicU64,
    backing: Backing,
    options: Options,
}

/// What the builder sets besides blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Whether the prompt stays frozen until it is refreshed.
    is_cached: bool,
    pub(crate) tools: ToolOptions,
}

/// What `tools` offers beyond the blocks; kept here because a context is what they are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ToolOptions {
    /// Offers the search of past sessions: those of the session's owner, or of all.
    pub(crate) sessions: Option<BlockScope>,
    /// Offers what looks into the session's own history.
    pub(crate) has_history: bool,
    /// The longest answer, in estimated tokens, if not the default.
    pub(crate) max_answer_tokens: Option<u64>,
}

impl Context {
    /// Returns a context without blocks.
    pub(crate) fn empty(backing: Backing) -> Self {
        Self::over(backing, Vec::new(), Options::default())
    }

    fn over(backing: Backing, blocks: Vec<Arc<LabelledBlock>>, options: Options) -> Self {
        let (blocks, revision) = (RwLock::new(blocks), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { blocks, revision, backing, options }) }
    }

    /// Returns a context of the same blocks for another session, as for a fork.
    pub(crate) fn moved_to(&self, backing: Backing) -> Self {
        Self::over(backing, self.all(), self.shared.options)
    }

    /// Returns a handle that does not keep the blocks.
    pub(crate) fn downgrade(&self) -> WeakContext {
        WeakContext(Arc::downgrade(&self.shared))
    }

    /// Returns the block of this label with its current content; `None` if there is none.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes coffee.");
    /// assert_eq!(context.block("Memory")?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Provider`] if its provider fails; as every read.
    pub fn block(&self, label: &str) -> Result<Option<BlockInfo>> {
        self.find(label).map(|block| block.info(self.backing())).transpose()
    }

    /// Returns all blocks with their current contents, in the order they were given.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store
    ///     .context("assistant")
    ///     .block("soul", Block::text("Be brief."))
    ///     .block("memory", Block::stored())
    ///     .open()?;
    /// for block in context.blocks()? {
    ///     println!("{}: {} tokens", block.label, block.tokens);
    /// }
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        self.all().iter().map(|block| block.info(self.backing())).collect()
    }

    /// Replaces the content of a block. A stored block gets a new version.
    ///
    /// ```
    /// use talktree::{Block, Error, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let memory = Block::stored().max_tokens(5);
    /// let context = store.context("assistant").block("memory", memory).open()?;
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let refused = context.set("memory", "Likes coffee, and very much so.").unwrap_err();
    /// assert_eq!(refused.to_string(), r#"context block "memory" holds 8 tokens, over its limit of 5"#);
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownBlock`], [`Error::BlockReadOnly`], [`Error::BlockKeyed`], [`Error::BlockOverLimit`],
    /// [`Error::Provider`]; as every write. After an error the block is unchanged.
    pub fn set(&self, label: &str, content: &str) -> Result<BlockInfo> {
        self.require(label)?.set(self.backing(), content)
    }

    /// Adds a text to the end of a block, on a new line unless the text begins with a line break.
    ///
    /// Several threads and processes may append to a stored block at once; no text is lost.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.append("memory", "Likes coffee.")?;
    /// let memory = context.append("memory", "Lives in Bern.")?;
    /// assert_eq!(memory.content, "Likes coffee.\nLives in Bern.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn append(&self, label: &str, text: &str) -> Result<BlockInfo> {
        self.require(label)?.append(self.backing(), text)
    }

    /// Removes the stored text of a block; `false` if there is none. Its versions stay, for
    /// [`restore`](Self::restore).
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("memory", Block::stored()).open()?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert!(context.remove_text("memory")?);
    /// assert!(!context.remove_text("memory")?);
    ///
    /// context.restore("memory", None, 1)?;
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownBlock`], [`Error::BlockReadOnly`], [`Error::BlockKeyed`];
    /// [`Error::BlockCannot`] if the text is not in the store; as every write.
    pub fn remove_text(&self, label: &str) -> Result<bool> {
        self.require(label)?.remove_text(self.backing())
    }

    /// Adds a block after the others. A frozen prompt shows it from the next refresh on.
    ///
    /// ```
    /// use talktree::{Block, Error, Store};
    ///
    /// let context = Store::open_in_memory()?.context("assistant").open()?;
    /// context.add("task", Block::text("Book a table."))?;
    /// assert!(matches!(context.add("task", Block::stored()), Err(Error::BlockExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockExists`] if the label is taken, [`Error::InvalidValue`] if it cannot be a label.
    pub fn add(&self, label: &str, block: Block) -> Result<()> {
        let block = LabelledBlock::new(label, block)?;
        let block = Arc::new(block);
        let mut blocks = self.shared.blocks.write().unwrap_or_else(PoisonError::into_inner);
        // A block that is refused is dropped after the lock: its provider may use the context.
        let pushed = push(&mut blocks, &block);
        self.shared.revision.fetch_add(1, Ordering::Release);
        pushed
    }

    /// Removes a block; `false` if there is none. Its texts stay in the store.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("task", Block::text("Book a table.")).open()?;
    /// assert!(context.remove("task"));
    /// assert_eq!(context.prompt()?, "");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn remove(&self, label: &str) -> bool {
        let mut blocks = self.shared.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let at = blocks.iter().position(|block| block.label == label);
        let removed = at.map(|at| blocks.remove(at));
        // Dropped outside the lock: its provider may use the context.
        drop(blocks);
        self.shared.revision.fetch_add(1, Ordering::Release);
        removed.is_some()
    }

    /// Returns what each block can do, with empty contents: no provider is called.
    pub(crate) fn kinds(&self) -> Vec<BlockInfo> {
        self.all().iter().map(|block| block.kind()).collect()
    }

    /// Returns a number that grows whenever a block is added or removed: while it is the same, so are the tools.
    pub(crate) fn revision(&self) -> u64 {
        self.shared.revision.load(Ordering::Acquire)
    }

    pub(crate) fn tool_options(&self) -> ToolOptions {
        self.shared.options.tools
    }

    pub(crate) fn all(&self) -> Vec<Arc<LabelledBlock>> {
        self.shared.blocks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, label: &str) -> Option<Arc<LabelledBlock>> {
        let blocks = self.shared.blocks.read().unwrap_or_else(PoisonError::into_inner);
        blocks.iter().find(|block| block.label == label).cloned()
    }

    pub(crate) fn require(&self, label: &str) -> Result<Arc<LabelledBlock>> {
        self.find(label).ok_or_else(|| Error::UnknownBlock { label: label.to_owned() })
    }

    pub(crate) fn store(&self) -> &SqliteContext {
        &self.shared.backing.store
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.shared.backing
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = self.all();
        let labels = blocks.iter().map(|block| &block.label);
        f.debug_struct("Context")
            .field("blocks", &labels.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn push(blocks: &mut Vec<Arc<LabelledBlock>>, block: &Arc<LabelledBlock>) -> Result<()> {
    if blocks.iter().any(|known| known.label == block.label) {
        return Err(Error::BlockExists { label: block.label.clone() });
    }
    if blocks.len() >= MAX_BLOCKS {
        return Err(Error::TooManyBlocks { max: MAX_BLOCKS });
    }
    blocks.push(Arc::clone(block));
    Ok(())
}
