//! The context of a session in memory.

use std::sync::{Arc, Mutex, MutexGuard};

use super::session::words_of;
use super::state::{Block, Handle, State, Text, Whose, lock, touch};
use super::stored;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::now;
use crate::outcome::SessionDetails;
use crate::search::{Found, Matched, Query, SearchRequest};
use crate::storage::context::{
    BlockScope, ContextStore, ContextTexts, ContextWrite, Entry, EntryInfo, EntryVersion, NewEntry,
    PromptSection, StoredLabel, check,
};

/// The context of a session in memory: texts, their versions, a frozen prompt.
///
/// [`MemoryCatalog`](super::MemoryCatalog) has sessions with such contexts. This one is for a conversation that is kept
/// elsewhere.
///
/// ```
/// use talktree::testing::{MemoryContext, MemorySession};
/// use talktree::{Block, Session};
///
/// let context = MemoryContext::owned_by("s".into(), "user:42")?;
/// let chat = Session::builder(MemorySession::new("s".into()))
///     .context_store(context)
///     .block("memory", Block::stored().per_owner())
///     .open()?;
/// chat.context().set("memory", "Likes coffee.")?;
/// assert_eq!(chat.block("memory")?.unwrap().content, "Likes coffee.");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryContext {
    handle: Arc<Handle>,
}

impl MemoryContext {
    /// Returns an empty context of a session without an owner.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self { handle: Handle::new(&Arc::new(Mutex::default()), session) }
    }

    /// Returns an empty context of a session of this owner.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if a name is empty or too long.
    pub fn owned_by(session: SessionId, owner: impl Into<String>) -> Result<Self> {
        let context = Self::new(session);
        let details = SessionDetails { owner: Some(owner.into()), ..SessionDetails::default() };
        lock(&context.handle.shared).create(&context.handle.id, &details)?;
        Ok(context)
    }

    pub(super) fn over(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Reads a block; one that does not exist reads as empty.
    fn read<T: Default>(
        &self,
        scope: BlockScope,
        label: &str,
        work: impl FnOnce(&Block) -> T,
    ) -> T {
        read(&self.handle, &lock(&self.handle.shared), scope, label, work)
    }
}

/// Reads a block; one that does not exist reads as empty.
fn read<T: Default>(
    handle: &Handle,
    state: &State,
    scope: BlockScope,
    label: &str,
    work: impl FnOnce(&Block) -> T,
) -> T {
    let whose = handle.whose(state, scope);
    let block = whose.and_then(|whose| state.blocks.get(&(whose, label.to_owned())));
    block.map(work).unwrap_or_default()
}

fn frozen(handle: &Handle, state: &State) -> Option<Vec<PromptSection>> {
    handle.find(state)?.frozen.clone()
}

/// A write of a context, with the state locked.
struct Writing<'s> {
    handle: &'s Handle,
    state: MutexGuard<'s, State>,
}

impl Writing<'_> {
    /// Returns whose the blocks of a scope are that are to be written; `None` before the session exists.
    fn whose(&mut self, scope: BlockScope) -> Result<Option<Whose>> {
        if scope != BlockScope::Shared {
            self.handle.find_mut(&mut self.state)?;
        }
        match (self.handle.whose(&self.state, scope), scope) {
            (None, BlockScope::Owner) => Err(Error::NoOwner { session: self.handle.id.clone() }),
            (whose, _) => Ok(whose),
        }
    }
}

impl ContextTexts for Writing<'_> {
    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        Ok(read(self.handle, &self.state, scope, label, |block| stored::entry(block, key)))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>> {
        Ok(read(self.handle, &self.state, scope, label, stored::documents))
    }

    fn versions(&self, scope: BlockScope, label: &str, key: &str) -> Result<Vec<EntryVersion>> {
        Ok(read(self.handle, &self.state, scope, label, |block| stored::versions(block, key)))
    }

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        Ok(frozen(self.handle, &self.state))
    }
}

impl ContextWrite for Writing<'_> {
    fn put(
        &mut self,
        scope: BlockScope,
        label: &str,
        entry: &NewEntry<'_>,
        is_searchable: bool,
    ) -> Result<()> {
        check(label, entry)?;
        self.whose(scope)?;
        if scope == BlockScope::Session {
            touch(&mut self.handle.find_or_create(&mut self.state)?.info);
        }
        if let Some(whose) = self.whose(scope)? {
            let block = self.state.blocks.entry((whose, label.to_owned())).or_default();
            stored::put(block, entry, is_searchable);
        }
        Ok(())
    }

    fn remove(&mut self, scope: BlockScope, label: &str, key: &str) -> Result<bool> {
        let Some(whose) = self.whose(scope)? else { return Ok(false) };
        let block = self.state.blocks.get_mut(&(whose, label.to_owned()));
        Ok(block.is_some_and(|block| stored::remove(block, key)))
    }

    fn set_frozen(&mut self, sections: Option<&[PromptSection]>) -> Result<()> {
        let sections = sections.map(<[_]>::to_vec);
        let kept = match sections {
            Some(_) => Some(self.handle.find_or_create(&mut self.state)?),
            None => self.handle.find_mut(&mut self.state)?,
        };
        if let Some(kept) = kept {
            kept.frozen = sections;
        }
        Ok(())
    }
}

impl ContextTexts for MemoryContext {
    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        Ok(self.read(scope, label, |block| stored::entry(block, key)))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>> {
        Ok(self.read(scope, label, stored::documents))
    }

    fn versions(&self, scope: BlockScope, label: &str, key: &str) -> Result<Vec<EntryVersion>> {
        Ok(self.read(scope, label, |block| stored::versions(block, key)))
    }

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        Ok(frozen(&self.handle, &lock(&self.handle.shared)))
    }
}

impl ContextStore for MemoryContext {
    fn session(&self) -> &SessionId {
        &self.handle.id
    }

    fn of(&self, session: &SessionId) -> Arc<dyn ContextStore> {
        let handle = Handle::new(&self.handle.shared, session.clone());
        // Binds it to the session as it is now.
        handle.find(&lock(&self.handle.shared));
        Arc::new(Self { handle })
    }

    fn labels(&self, scope: BlockScope) -> Result<Vec<StoredLabel>> {
        let state = lock(&self.handle.shared);
        let Some(whose) = self.handle.whose(&state, scope) else { return Ok(Vec::new()) };
        let own = state.blocks.iter().filter(|((other, _), _)| *other == whose);
        let labels = own.map(|((_, label), block)| {
            let present = |text: &&Text| text.present().is_some();
            let documents = block.iter().filter(|(key, _)| !key.is_empty());
            let document = documents.map(|(_, text)| text).find(present);
            StoredLabel {
                has_text: block.get("").and_then(Text::present).is_some(),
                has_documents: document.is_some(),
                is_searchable: document.is_some_and(|text| text.is_searchable),
                ..StoredLabel::new(label.clone())
            }
        });
        Ok(labels.filter(|label| label.has_text || label.has_documents).collect())
    }

    fn write(&self, work: &mut dyn FnMut(&mut dyn ContextWrite) -> Result<()>) -> Result<()> {
        let state = lock(&self.handle.shared);
        let (blocks, frozen) = (state.blocks.clone(), frozen(&self.handle, &state));
        let mut writing = Writing { handle: &self.handle, state };
        work(&mut writing).inspect_err(|_| {
            writing.state.blocks = blocks;
            // A session that it created stays.
            if let Ok(Some(kept)) = self.handle.find_mut(&mut writing.state) {
                kept.frozen = frozen;
            }
        })
    }

    fn search(
        &self,
        scope: BlockScope,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)> {
        let words = words_of(Query::parse(query));
        if words.is_empty() {
            return Ok((Vec::new(), Matched::All));
        }
        let found = |is_enough: fn(usize, usize) -> bool| {
            self.read(scope, label, |block| {
                let mut found: Vec<_> = block
                    .keys()
                    .filter(|key| block[*key].is_searchable)
                    .filter_map(|key| stored::entry(block, key))
                    .map(|entry| (stored::matches(&entry, &words), entry))
                    .filter(|(count, _)| is_enough(*count, words.len()))
                    .collect();
                found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
                found.into_iter().take(limit).map(|(_, entry)| entry).collect::<Vec<_>>()
            })
        };
        let all = found(|count, words| count == words);
        if !all.is_empty() {
            return Ok((all, Matched::All));
        }
        let any = found(|count, _| count > 0);
        let matched = if any.is_empty() { Matched::All } else { Matched::Relaxed };
        Ok((any, matched))
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<Found> {
        super::catalog::search(&self.handle.shared, request)
    }
}

impl Text {
    /// Returns the current version, unless it is a removal.
    pub(super) fn present(&self) -> Option<&EntryVersion> {
        self.versions.last().filter(|last| last.content.is_some())
    }

    /// Adds a version.
    pub(super) fn push(&mut self, content: Option<String>) -> &mut EntryVersion {
        let number = self.versions.last().map_or(1, |last| last.version + 1);
        self.versions.push(EntryVersion::new(number, content, now()));
        let last = self.versions.len() - 1;
        &mut self.versions[last]
    }
}
