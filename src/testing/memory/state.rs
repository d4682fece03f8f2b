//! The state of a catalog: its sessions, the texts of their contexts, the bindings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use chrono::{DateTime, Utc};

use super::session::MemorySession;
use super::usage::Used;
use crate::catalog::Binding;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::now;
use crate::outcome::{SessionDetails, SessionInfo};
use crate::storage::context::{BlockScope, EntryVersion, PromptSection};

/// A session of a catalog.
#[derive(Debug)]
pub(super) struct Kept {
    /// Tells it from others of the same id. Later sessions have greater ones.
    pub(super) key: i64,
    pub(super) info: SessionInfo,
    pub(super) session: Arc<MemorySession>,
    pub(super) frozen: Option<Vec<PromptSection>>,
    pub(super) usage: Vec<Used>,
}

impl Kept {
    /// Changes the details, and thaws the prompt if the owner is another one then.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(&mut SessionInfo) -> Result<()>,
    ) -> Result<()> {
        let owner = self.info.owner.clone();
        change(&mut self.info)?;
        if self.info.owner != owner {
            self.frozen = None;
        }
        Ok(())
    }
}

/// A text of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    /// Oldest first.
    pub(super) versions: Vec<EntryVersion>,
    pub(super) is_searchable: bool,
}

/// Whose a block is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// The session of this key.
    Session(i64),
    Owner(String),
    Shared,
}

/// The texts of a block by key.
pub(super) type Block = BTreeMap<String, Text>;

#[derive(Debug, Default)]
pub(super) struct State {
    /// In order of creation.
    pub(super) sessions: Vec<Kept>,
    pub(super) blocks: BTreeMap<(Whose, String), Block>,
    /// Oldest first.
    pub(super) bindings: Vec<Binding>,
    pub(super) last_binding: u64,
    /// The usage of removed sessions, each with the owner and the source of the session.
    pub(super) former: Vec<(Option<String>, Option<String>, Used)>,
    last_key: i64,
}

/// The state that handles share.
pub(super) type Shared = Arc<Mutex<State>>;

pub(super) fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn find(&self, id: &SessionId) -> Option<&Kept> {
        self.sessions.iter().find(|kept| kept.info.id == *id)
    }

    pub(super) fn find_mut(&mut self, id: &SessionId) -> Option<&mut Kept> {
        self.sessions.iter_mut().find(|kept| kept.info.id == *id)
    }

    /// Adds a session; its id must be free.
    pub(super) fn add(&mut self, session: MemorySession, info: SessionInfo) -> &mut Kept {
        self.last_key += 1;
        let (key, session) = (self.last_key, Arc::new(session));
        self.sessions.push(Kept { key, info, session, frozen: None, usage: Vec::new() });
        let last = self.sessions.len() - 1;
        &mut self.sessions[last]
    }

    /// Creates a session with these details.
    pub(super) fn create(&mut self, id: &SessionId, details: &SessionDetails) -> Result<&mut Kept> {
        id.check()?;
        details.check()?;
        if self.find(id).is_some() {
            return Err(Error::SessionExists { id: id.clone() });
        }
        let now = now();
        let mut info = SessionInfo::new(id.clone(), now);
        info.set(details, now)?;
        Ok(self.add(MemorySession::new(id.clone()), info))
    }

    /// Copies the current texts of a session's own blocks to another session.
    pub(super) fn copy_texts(&mut self, from: i64, to: i64) {
        let own = |((whose, label), block): (&(Whose, String), &Block)| {
            (*whose == Whose::Session(from)).then(|| (label.clone(), copied(block)))
        };
        let copies: Vec<_> = self.blocks.iter().filter_map(own).collect();
        for (label, block) in copies {
            self.blocks.insert((Whose::Session(to), label), block);
        }
    }
}

/// Returns the block without earlier versions and removed texts.
fn copied(block: &Block) -> Block {
    let current = |(key, text): (&String, &Text)| {
        let last = text.versions.last().filter(|last| last.content.is_some())?;
        Some((key.clone(), Text { versions: vec![last.clone()], ..text.clone() }))
    };
    block.iter().filter_map(current).collect()
}

/// Which session an id means: the first one that is found or created under it.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) shared: Shared,
    pub(super) id: SessionId,
    bound: OnceLock<i64>,
}

impl Handle {
    /// Returns a handle of the session as it is now.
    pub(super) fn new(shared: &Shared, id: SessionId) -> Arc<Self> {
        Arc::new(Self { shared: Arc::clone(shared), id, bound: OnceLock::new() })
    }

    /// Returns the session as a read sees it; `None` before its first write and after its removal.
    pub(super) fn find<'s>(&self, state: &'s State) -> Option<&'s Kept> {
        let kept = state.find(&self.id)?;
        (*self.bound.get_or_init(|| kept.key) == kept.key).then_some(kept)
    }

    /// Returns the session to write to; `None` before its first write.
    ///
    /// # Errors
    /// If it was removed, or is in the trash.
    pub(super) fn find_mut<'s>(&self, state: &'s mut State) -> Result<Option<&'s mut Kept>> {
        let id = || self.id.clone();
        if self.find(state).is_none() && self.bound.get().is_some() {
            return Err(Error::SessionRemoved { id: id() });
        }
        match state.find_mut(&self.id) {
            Some(kept) if kept.info.deleted_at.is_some() => Err(Error::SessionInTrash { id: id() }),
            found => Ok(found),
        }
    }

    /// Returns the session to write to, creating it before its first write.
    pub(super) fn find_or_create<'s>(&self, state: &'s mut State) -> Result<&'s mut Kept> {
        if self.find_mut(state)?.is_none() {
            let created = state.create(&self.id, &SessionDetails::default())?;
            let _ = self.bound.set(created.key);
        }
        self.find_mut(state)?.ok_or_else(|| Error::UnknownSession { id: self.id.clone() })
    }

    /// Returns whose the blocks of a scope are; nobody's before the session exists or has an owner.
    pub(super) fn whose(&self, state: &State, scope: BlockScope) -> Option<Whose> {
        match scope {
            BlockScope::Session => Some(Whose::Session(self.find(state)?.key)),
            BlockScope::Owner => Some(Whose::Owner(self.find(state)?.info.owner.clone()?)),
            BlockScope::Shared => Some(Whose::Shared),
        }
    }
}

/// Records a write.
pub(super) fn touch(info: &mut SessionInfo) {
    info.updated_at = info.updated_at.max(now());
}

/// Returns the time that lists show a session at.
pub(super) fn listed_at(info: &SessionInfo) -> DateTime<Utc> {
    info.last_message_at.unwrap_or(info.created_at)
}
