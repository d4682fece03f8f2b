//! Context: what a model should know beside the conversation.
//!
//! A [`Context`] holds [`Block`]s under labels, in the order they were given. The source of a block decides what the block
//! can do: be read, be written, give documents by key (skills), be searched. All blocks, rendered one below the other, are
//! the *prompt*. A frozen prompt stays the same, byte for byte, until it is refreshed, so that a provider's cache of it
//! stays valid; *drift* lists the blocks that have changed since. The tools for a model are in [`tools`](crate::tools).
//!
//! Invariant: the content of a block is read from its source at every call; nothing is cached.

mod block;
mod documents;
mod key;
mod markdown;
mod prompt;
mod provider;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::search::{Scope, SearchRequest, SearchResults, SearchTarget};
use crate::storage::context::{BlockScope, Document};
use crate::storage::sqlite::{SqliteContext, SqliteSession};

pub use block::{Block, BlockInfo};
pub use prompt::Drift;
pub use provider::{ReadProvider, SearchProvider, SkillProvider, WriteProvider};

use block::Source;
use provider::LabelledBlock;

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
/// let chat = store
///     .session_builder("s")
///     .block("soul", Block::text("You are a helpful assistant."))
///     .block("memory", Block::stored().describe("Learned facts").max_tokens(1_100))
///     .open()?;
/// let context = chat.context();
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

/// The store that keeps the texts of blocks, and the conversation they belong to.
#[derive(Clone)]
pub(crate) struct Backing {
    pub(crate) store: SqliteContext,
    pub(crate) conversation: Arc<SqliteSession>,
}

impl Backing {
    pub(crate) fn of(conversation: Arc<SqliteSession>) -> Self {
        Self { store: conversation.context(), conversation }
    }

    /// Searches the messages of past sessions: of the session's owner, or of all. A session without an owner finds its own
    /// messages only.
    pub(crate) fn search_sessions(
        &self,
        scope: BlockScope,
        query: &str,
        limit: usize,
    ) -> Result<SearchResults> {
        let mut request = self.request(query, Scope::Store, limit)?;
        if scope == BlockScope::Owner {
            request.owner = self.conversation.info()?.and_then(|info| info.owner);
        }
        if scope == BlockScope::Shared || request.owner.is_some() {
            return self.conversation.database().search(&request);
        }
        request.scope = Scope::session(self.conversation.id().clone());
        self.conversation.database().search(&request)
    }

    /// Returns what a model searches: what is not hidden from it, without the question that it is answering.
    pub(crate) fn request(&self, query: &str, scope: Scope, limit: usize) -> Result<SearchRequest> {
        let (id, question) = (self.conversation.id(), self.conversation.open_question()?);
        Ok(SearchRequest {
            omits_hidden: true,
            omits: question.map(|question| (id.clone(), question)),
            limit,
            timeout: Some(SEARCH_TIMEOUT),
            ..SearchRequest::new(query, scope)
        })
    }
}

/// How long a model's search for messages takes at most. A model waits for the answer, and so does whoever waits for the model.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

/// What a write keeps of the text before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing.
    Nothing,
    /// Title and description of a document, unless the new one has others.
    About,
    /// These and the text: the new one is added to it, on a new line.
    All,
}

fn joined(content: &str, text: &str) -> String {
    match content.is_empty() || text.starts_with('\n') {
        true => format!("{content}{text}"),
        false => format!("{content}\n{text}"),
    }
}

/// What the builder of a session sets besides blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Whether the prompt stays frozen until it is refreshed.
    pub(crate) is_cached: bool,
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

    /// Returns a context of these blocks.
    pub(crate) fn open(
        backing: Backing,
        blocks: Vec<(String, Block)>,
        options: Options,
    ) -> Result<Self> {
        backing.conversation.id().check()?;
        let mut labelled = Vec::new();
        for (label, block) in blocks {
            push(&mut labelled, &Arc::new(LabelledBlock::new(&label, block)?))?;
        }
        Ok(Self::over(backing, labelled, options))
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
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
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
    /// let chat = store
    ///     .session_builder("s")
    ///     .block("soul", Block::text("Be brief."))
    ///     .block("memory", Block::stored())
    ///     .open()?;
    /// let context = chat.context();
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
    /// let chat = store.session_builder("s").block("memory", memory).open()?;
    /// let context = chat.context();
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
        self.write(label, content, Keep::Nothing)
    }

    /// Adds a text to the end of a block, on a new line unless the text begins with a line break.
    ///
    /// Several threads and processes may append to a stored block at once; no text is lost.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
    /// context.append("memory", "Likes coffee.")?;
    /// let memory = context.append("memory", "Lives in Bern.")?;
    /// assert_eq!(memory.content, "Likes coffee.\nLives in Bern.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn append(&self, label: &str, text: &str) -> Result<BlockInfo> {
        self.write(label, text, Keep::All)
    }

    pub(crate) fn write(&self, label: &str, text: &str, keep: Keep) -> Result<BlockInfo> {
        let block = self.require(label)?;
        block.check_plain()?;
        let mut new = Document::new("", text);
        if let Source::Write(provider) = &block.block.source {
            let _guard = block.lock_writes(self.store())?;
            if keep == Keep::All {
                new.content = joined(&block.content(self.backing())?, text);
            }
            block.check_tokens(&new.content)?;
            block.ask(self.store(), || provider.set(&new.content))?;
        } else {
            new = self.store().write(|writing| {
                let mut new = new.clone();
                documents::put(&block, writing, &mut new, keep).map(|()| new)
            })?;
        }
        Ok(block.block.info(label, new.content))
    }

    /// Removes the stored text of a block; `false` if there is none. Its versions stay, for
    /// [`restore`](Self::restore).
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
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
        let block = self.require(label)?;
        block.check_plain()?;
        match &block.block.source {
            Source::Write(_) => Err(block.cannot("be removed: its text is not in the store")),
            _ => self.store().write(|writing| writing.remove(block.block.scope, label, "")),
        }
    }

    /// Adds a block after the others. A frozen prompt shows it from the next refresh on.
    ///
    /// ```
    /// use talktree::{Block, Error, Store};
    ///
    /// let chat = Store::open_in_memory()?.session_builder("s").open()?;
    /// let context = chat.context();
    /// context.add("task", Block::text("Book a table."))?;
    /// assert!(matches!(context.add("task", Block::stored()), Err(Error::BlockExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockExists`] if the label is taken, [`Error::InvalidValue`] if it cannot be a label.
    pub fn add(&self, label: &str, block: Block) -> Result<()> {
        self.push(&Arc::new(LabelledBlock::new(label, block)?))
    }

    /// A block that is refused is dropped by the caller, outside the lock: its provider may use the context.
    fn push(&self, block: &Arc<LabelledBlock>) -> Result<()> {
        let mut blocks = self.shared.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let pushed = push(&mut blocks, block);
        self.shared.revision.fetch_add(1, Ordering::Release);
        pushed
    }

    /// Removes a block; `false` if there is none. Its texts stay in the store.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("task", Block::text("Book a table.")).open()?;
    /// let context = chat.context();
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
