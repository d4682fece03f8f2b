//! Blocks: where the text of a context block comes from, and what can be done with it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use talktree_text::foreign;

use super::provider::{ReadProvider, SearchProvider, SkillProvider, WriteProvider};
use crate::callback;
use crate::error::{self, BoxError, Error};
use crate::id::shorten;
use crate::storage::context::{BlockScope, Document};

/// One block of what a model should know: its source and its settings.
///
/// ```
/// use talktree::Block;
///
/// let soul = Block::text("You are a helpful assistant.");
/// let memory = Block::stored().describe("Learned facts about the user").max_tokens(1_100).remind();
/// let today = Block::from_fn(|| Ok(std::env::var("TODAY")?));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Block {
    pub(crate) source: Source,
    pub(crate) description: Option<String>,
    pub(crate) max_tokens: Option<u64>,
    /// Whether the model is told when the block differs from the frozen prompt.
    pub(crate) is_reminding: bool,
    /// Whose its stored texts are.
    pub(crate) scope: BlockScope,
    /// Whether writes are refused though the source could be written.
    pub(crate) is_read_only: bool,
}

/// Where the content of a block comes from.
#[derive(Clone)]
pub(crate) enum Source {
    Text(Arc<str>),
    Read(Arc<dyn ReadProvider>),
    Write(Arc<dyn WriteProvider>),
    Skills(Arc<dyn SkillProvider>),
    Search(Arc<dyn SearchProvider>),
    /// A text in the store.
    Stored,
    /// Documents in the store, loaded by key.
    StoredSkills,
    /// Documents in the store, searched.
    Knowledge,
    /// The messages of the session, searched.
    History,
}

impl Source {
    pub(crate) fn is_writable(&self) -> bool {
        match self {
            Self::Text(_) | Self::Read(_) | Self::History => false,
            Self::Write(_) | Self::Stored | Self::StoredSkills | Self::Knowledge => true,
            // A provider that panics when it is asked is read-only.
            Self::Skills(provider) => callback::call(|| provider.is_writable()).unwrap_or(false),
            Self::Search(provider) => callback::call(|| provider.is_writable()).unwrap_or(false),
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        matches!(self, Self::Stored | Self::StoredSkills | Self::Knowledge)
    }

    /// Returns whether the block may be of an owner or of all sessions.
    pub(crate) fn has_scope(&self) -> bool {
        self.is_stored() || matches!(self, Self::History)
    }

    pub(crate) fn is_skill(&self) -> bool {
        matches!(self, Self::Skills(_) | Self::StoredSkills)
    }

    pub(crate) fn is_searchable(&self) -> bool {
        matches!(self, Self::Search(_) | Self::Knowledge | Self::History)
    }

    /// Returns whether it holds documents: a write needs a key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.is_skill() || self.is_searchable()
    }

    /// Returns the provider of the program's own.
    pub(super) fn provider(&self) -> Option<&dyn ReadProvider> {
        match self {
            Self::Read(provider) => Some(provider.as_ref()),
            Self::Write(provider) => Some(provider.as_ref()),
            Self::Skills(provider) => Some(provider.as_ref()),
            Self::Search(provider) => Some(provider.as_ref()),
            _ => None,
        }
    }

    /// Writes a document to a provider of documents.
    pub(super) fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        match self {
            Self::Skills(provider) => provider.set_keyed(document),
            Self::Search(provider) => provider.set_keyed(document),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(text) => return write!(f, "Text({:?})", shorten(text)),
            Self::Read(_) => "Read",
            Self::Write(_) => "Write",
            Self::Skills(_) => "Skills",
            Self::Search(_) => "Search",
            Self::Stored => "Stored",
            Self::StoredSkills => "StoredSkills",
            Self::Knowledge => "Knowledge",
            Self::History => "History",
        })
    }
}

struct FromFn<F>(F);

impl<F: Fn() -> Result<String, BoxError> + Send + Sync> ReadProvider for FromFn<F> {
    fn get(&self) -> Result<String, BoxError> {
        (self.0)()
    }
}

impl Block {
    /// Returns a block of a fixed text.
    ///
    /// ```
    /// let soul = talktree::Block::text("You are a helpful assistant.");
    /// ```
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Source::Text(text.into().into()))
    }

    /// Returns a block whose text is the result of a closure, called at each read.
    ///
    /// ```
    /// let user = talktree::Block::from_fn(|| Ok(std::env::var("USER")?));
    /// ```
    pub fn from_fn(make: impl Fn() -> Result<String, BoxError> + Send + Sync + 'static) -> Self {
        Self::read(FromFn(make))
    }

    /// Returns a block whose text is kept in the store, for this session alone.
    ///
    /// ```
    /// let memory = talktree::Block::stored().max_tokens(1_100);
    /// ```
    pub fn stored() -> Self {
        Self::of(Source::Stored)
    }

    /// Returns a block whose text is kept in the store, shared by all sessions that have the label.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let open = |id| store.session_builder(id).block("house rules", Block::shared()).open();
    /// open("monday")?.context().set("house rules", "Be brief.")?;
    /// assert_eq!(open("tuesday")?.block("house rules")?.unwrap().content, "Be brief.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn shared() -> Self {
        Self::stored().across_sessions()
    }

    /// Returns a read-only block over a provider.
    ///
    /// [`ReadProvider`] has an example.
    pub fn read(provider: impl ReadProvider + 'static) -> Self {
        Self::of(Source::Read(Arc::new(provider)))
    }

    /// Returns a writable block over a provider.
    ///
    /// [`WriteProvider`] has an example.
    pub fn write(provider: impl WriteProvider + 'static) -> Self {
        Self::of(Source::Write(Arc::new(provider)))
    }

    /// Returns a block of documents, over a provider, that the model loads by key when it needs them. The crate
    /// `talktree-skills` has one over a folder.
    ///
    /// [`SkillProvider`] has an example.
    pub fn skills(provider: impl SkillProvider + 'static) -> Self {
        Self::of(Source::Skills(Arc::new(provider)))
    }

    /// Returns a block of documents in the store that the model writes and loads by key.
    ///
    /// ```
    /// let skills = talktree::Block::stored_skills().describe("How to do things here");
    /// ```
    pub fn stored_skills() -> Self {
        Self::of(Source::StoredSkills)
    }

    /// Returns a block, over a provider, that the model searches.
    ///
    /// [`SearchProvider`] has an example.
    pub fn searchable(provider: impl SearchProvider + 'static) -> Self {
        Self::of(Source::Search(Arc::new(provider)))
    }

    /// Returns a block of documents in the store that the model writes and searches.
    ///
    /// ```
    /// let knowledge = talktree::Block::knowledge().describe("What the user has told");
    /// ```
    pub fn knowledge() -> Self {
        Self::of(Source::Knowledge)
    }

    /// Returns a block in which the model searches the session's own messages; with [`per_owner`](Self::per_owner) those of
    /// all sessions of its owner, with [`across_sessions`](Self::across_sessions) those of all sessions of the store.
    ///
    /// ```
    /// let history = talktree::Block::history().describe("All that was said");
    /// ```
    pub fn history() -> Self {
        Self::of(Source::History)
    }

    pub(crate) fn of(source: Source) -> Self {
        Self {
            source,
            description: None,
            max_tokens: None,
            is_reminding: false,
            scope: BlockScope::Session,
            is_read_only: false,
        }
    }

    /// Sets the description that the prompt shows beside the label. Each run of white space becomes one space.
    ///
    /// ```
    /// let memory = talktree::Block::stored().describe("Learned facts about the user");
    /// ```
    pub fn describe(self, description: impl AsRef<str>) -> Self {
        // The header shows it in one line.
        let description = foreign::line(description.as_ref());
        Self { description: Some(description).filter(|text| !text.is_empty()), ..self }
    }

    /// Sets a limit in estimated tokens; longer writes are refused. In a block of documents it is the limit of each
    /// document.
    ///
    /// ```
    /// let memory = talktree::Block::stored().max_tokens(1_100);
    /// ```
    pub fn max_tokens(self, tokens: u64) -> Self {
        Self { max_tokens: Some(tokens), ..self }
    }

    /// Includes the block in [`Context::reminder`](crate::Context::reminder) while it differs from the frozen prompt.
    ///
    /// ```
    /// let memory = talktree::Block::stored().remind();
    /// ```
    pub fn remind(self) -> Self {
        Self { is_reminding: true, ..self }
    }

    /// Shares the texts of the block among all sessions that have the label: one knowledge for a whole bot. Only a block
    /// that is kept in the store can be shared; with any other the context refuses to open.
    ///
    /// ```
    /// use talktree::{Block, Error, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let knowledge = Block::knowledge().across_sessions();
    /// let monday = store.session_builder("monday").block("knowledge", knowledge).open()?;
    ///
    /// let soul = Block::text("Be brief.").across_sessions();
    /// let refused = store.session_builder("monday").block("soul", soul).open();
    /// assert!(matches!(refused, Err(Error::BlockCannot { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn across_sessions(self) -> Self {
        Self { scope: BlockScope::Shared, ..self }
    }

    /// Shares the texts of the block among all sessions of one owner that have the label: what a bot knows about a person,
    /// in every chat with them. Only a block that is kept in the store can be shared; with any other the context refuses to
    /// open.
    ///
    /// The owner is that of the session at each read and write: in a session without one the block is empty, and a write is
    /// [`Error::NoOwner`]. A fork has the same owner. The texts stay when a session is removed.
    ///
    /// ```
    /// use talktree::{Block, Error, SessionDetails, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let open = |id| store.session_builder(id).block("memory", Block::stored().per_owner()).open();
    /// let (monday, tuesday) = (open("monday")?, open("tuesday")?);
    /// let refused = monday.context().set("memory", "Likes coffee.");
    /// assert!(matches!(refused, Err(Error::NoOwner { .. })));
    ///
    /// for chat in [&monday, &tuesday] {
    ///     let owner = Some("user:42".to_owned());
    ///     chat.set_details(&SessionDetails { owner, ..SessionDetails::default() })?;
    /// }
    /// monday.context().set("memory", "Likes coffee.")?;
    /// assert_eq!(tuesday.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn per_owner(self) -> Self {
        Self { scope: BlockScope::Owner, ..self }
    }

    /// Returns whether all sessions share the texts of the block.
    ///
    /// ```
    /// assert!(talktree::Block::shared().is_shared());
    /// ```
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.scope == BlockScope::Shared
    }

    /// Returns whether the sessions of one owner share the texts of the block.
    ///
    /// ```
    /// assert!(talktree::Block::stored().per_owner().is_per_owner());
    /// ```
    #[must_use]
    pub fn is_per_owner(&self) -> bool {
        self.scope == BlockScope::Owner
    }

    /// Makes the block read-only: neither a tool nor a call through this context writes it. The program can still write
    /// it through another context.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let knowledge = || Block::knowledge().across_sessions();
    /// let editor = store.session_builder("editor").block("faq", knowledge()).open()?.context().clone();
    /// editor.set_document("faq", &Document::new("hours", "We open at nine."))?;
    ///
    /// let chat = store.session_builder("s").block("faq", knowledge().read_only()).open()?;
    /// assert_eq!(chat.context().search("faq", "open", 5)?.len(), 1);
    /// assert!(chat.context().remove_document("faq", "hours").is_err());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    pub(crate) fn info(&self, label: &str, content: String) -> BlockInfo {
        BlockInfo {
            label: label.to_owned(),
            description: self.description.clone(),
            tokens: crate::tokens::estimate_tokens(&content),
            content,
            max_tokens: self.max_tokens,
            is_writable: self.is_writable(),
            is_skill: self.source.is_skill(),
            is_searchable: self.source.is_searchable(),
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.source.is_writable() && !self.is_read_only
    }

    pub(crate) fn check_tokens(&self, label: &str, tokens: u64) -> error::Result<()> {
        match self.max_tokens {
            Some(max) if tokens > max => {
                Err(Error::BlockOverLimit { label: label.to_owned(), tokens, max })
            }
            _ => Ok(()),
        }
    }
}

/// A block with its current content.
///
/// ```
/// use talktree::BlockInfo;
///
/// let mut memory = BlockInfo::default();
/// memory.label = "memory".to_owned();
/// (memory.tokens, memory.max_tokens) = (495, Some(1_100));
/// assert_eq!(memory.usage(), "45% (495/1100 tokens)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct BlockInfo {
    /// The label of the block.
    pub label: String,
    /// The description.
    pub description: Option<String>,
    /// The text that the prompt shows.
    pub content: String,
    /// The size of the content, in estimated tokens.
    pub tokens: u64,
    /// The limit of the content, in estimated tokens.
    pub max_tokens: Option<u64>,
    /// Whether it can be written.
    pub is_writable: bool,
    /// Whether documents are loaded from it by key.
    pub is_skill: bool,
    /// Whether it can be searched.
    pub is_searchable: bool,
}

impl BlockInfo {
    /// Returns how full the block is: `45% (495/1100 tokens)`, or `495 tokens` without a limit.
    ///
    /// ```
    /// let mut note = talktree::BlockInfo::default();
    /// note.tokens = 12;
    /// assert_eq!(note.usage(), "12 tokens");
    /// ```
    #[must_use]
    pub fn usage(&self) -> String {
        match self.max_tokens {
            Some(max) => {
                let tokens = self.tokens;
                format!("{}% ({tokens}/{max} tokens)", percent(tokens, max))
            }
            None => format!("{} tokens", self.tokens),
        }
    }

    /// Returns whether it holds documents: a write needs a key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.is_skill || self.is_searchable
    }
}

/// Returns a share in per cent, half rounded up; 100 if the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 100;
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    u64::try_from((part * 200 + whole) / (whole * 2)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Both;

    impl ReadProvider for Both {
        fn get(&self) -> Result<String, BoxError> {
            Ok(String::new())
        }
    }

    impl WriteProvider for Both {
        fn set(&self, _: &str) -> Result<(), BoxError> {
            Ok(())
        }
    }

    impl SkillProvider for Both {
        fn load(&self, _: &str) -> Result<Option<String>, BoxError> {
            Ok(None)
        }

        fn is_writable(&self) -> bool {
            true
        }
    }

    impl SearchProvider for Both {
        fn search(&self, _: &str, _: usize) -> Result<Vec<Document>, BoxError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_blocks_kind_follows_from_what_is_behind_it() {
        // What is behind it, then: writable, skill, searchable.
        let cases = [
            (Block::text("x"), [false, false, false]),
            (Block::from_fn(|| Ok("x".to_owned())), [false, false, false]),
            (Block::stored(), [true, false, false]),
            (Block::shared(), [true, false, false]),
            (Block::write(Both), [true, false, false]),
            (Block::skills(Both), [true, true, false]),
            (Block::searchable(Both), [false, false, true]),
            (Block::stored_skills(), [true, true, false]),
            (Block::knowledge(), [true, false, true]),
            (Block::history(), [false, false, true]),
        ];
        for (block, kind) in cases {
            let info = block.info("label", "text".to_owned());
            assert_eq!([info.is_writable, info.is_skill, info.is_searchable], kind, "{block:?}");
        }
    }

    #[test]
    fn a_provider_is_what_was_given() -> Result<(), BoxError> {
        let Source::Write(provider) = Block::write(Both).source else {
            panic!("it is written to");
        };
        provider.set("text")
    }

    #[test]
    fn a_block_reminds_only_if_it_is_told_to() {
        assert!(!Block::stored().is_reminding);
        assert!(Block::stored().remind().max_tokens(5).describe("d").is_reminding);
    }

    #[test]
    fn a_closure_may_fail() -> Result<(), BoxError> {
        let Source::Read(provider) = Block::from_fn(|| Ok("1".parse::<u8>()?.to_string())).source
        else {
            panic!("a closure is read");
        };
        assert_eq!(provider.get()?, "1");
        let Source::Read(provider) = Block::from_fn(|| Ok("x".parse::<u8>()?.to_string())).source
        else {
            panic!("a closure is read");
        };
        assert_eq!(provider.get().unwrap_err().to_string(), "invalid digit found in string");
        Ok(())
    }

    #[test]
    fn a_content_over_the_limit_is_refused_with_both_figures() {
        let block = Block::stored().max_tokens(10);
        assert!(block.check_tokens("memory", 10).is_ok());
        let error = block.check_tokens("memory", 11).unwrap_err();
        let text = "context block \"memory\" holds 11 tokens, over its limit of 10";
        assert_eq!(error.to_string(), text);
        assert!(Block::stored().check_tokens("memory", u64::MAX).is_ok());
    }

    #[test]
    fn per_cents_round_half_up() {
        let cases = [
            ((495, 1100), 45),
            ((1, 200), 1),
            ((1, 201), 0),
            ((3, 200), 2),
            ((0, 10), 0),
            ((0, 0), 100),
            ((30, 10), 300),
            ((u64::MAX, u64::MAX), 100),
        ];
        for ((part, whole), percents) in cases {
            assert_eq!(percent(part, whole), percents, "{part} of {whole}");
        }
    }

    #[test]
    fn a_description_is_one_line() {
        let describe = |text| Block::stored().describe(text).description;
        assert_eq!(describe("a\r\n  b\u{2028}c").as_deref(), Some("a b c"));
        assert_eq!(describe(" \n "), None);
    }

    #[test]
    fn a_block_is_read_as_json() {
        let info = Block::stored().describe("d").max_tokens(9).info("memory", "text".to_owned());
        let json = serde_json::json!({
            "label": "memory", "description": "d", "content": "text", "tokens": 2, "max_tokens": 9,
            "is_writable": true, "is_skill": false, "is_searchable": false,
        });
        assert_eq!(serde_json::to_value(info).ok(), Some(json));
    }
}
