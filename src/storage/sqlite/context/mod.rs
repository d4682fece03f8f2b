//! The context of a session: the texts of its blocks, its frozen prompt, its elisions.
//!
//! A *block* is a label of one session, or under session key 0 of all sessions of an owner, or of all sessions. The
//! addresses of its texts begin with the block's key, as those of messages do with their session's. So all texts of one
//! block are one range of rowids, in the index too, and a search in one block does not read the others.
//!
//! Invariant: a searchable text that was not removed is in the index; its index entry is deleted before its row
//! changes.

pub(super) mod block;
pub(super) mod elision;
pub(super) mod entry;
pub(super) mod frozen_prompt;
pub(super) mod lifecycle;
pub(super) mod search;
#[cfg(test)]
mod tests;
pub(super) mod texts;

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::catalog;
use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::handle::{Handle, Named};
use super::session::SqliteSession;
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::search::{Found, Matched, SearchRequest};
use crate::storage::catalog::SessionStorage;
use crate::storage::context::{
    BlockScope, ContextStore, Elision, Entry, EntryInfo, EntryVersion, NewEntry, PromptSection,
    StoredLabel,
};

/// The session key of texts that are not of one session; no session has it.
const NO_SESSION: i64 = 0;

/// Whose blocks are, as their rows say: of a session, of an owner, or of all sessions.
struct Whose {
    session: i64,
    /// Empty unless they are of an owner.
    owner: String,
}

impl Whose {
    const SHARED: Self = Self { session: NO_SESSION, owner: String::new() };

    fn session(key: i64) -> Self {
        Self { session: key, owner: String::new() }
    }
}

/// Returns the owner of a session.
fn owner_of(conn: &Connection, session: i64) -> BackendResult<Option<String>> {
    let owner: Option<Option<String>> =
        conn.prepare_cached(OWNER)?.query_row([session], |row| row.get(0)).optional()?;
    // Blocks of an owner with an empty name, which only other programs write, would be those of all sessions.
    Ok(owner.flatten().filter(|owner| !owner.is_empty()))
}

pub(super) const OWNER: &str = "SELECT owner FROM session WHERE key = ?1";

pub(crate) struct SqliteContext {
    database: Arc<Database>,
    handle: Arc<Handle>,
}

impl Database {
    /// Returns the context of a session, which need not exist yet.
    #[cfg(test)]
    pub(crate) fn context(self: &Arc<Self>, id: &SessionId) -> Arc<dyn ContextStore> {
        self.context_of(&Arc::new(Handle::new(id.clone())))
    }

    /// Returns the context of the session that a handle is bound to.
    pub(super) fn context_of(self: &Arc<Self>, handle: &Arc<Handle>) -> Arc<dyn ContextStore> {
        Arc::new(SqliteContext { database: Arc::clone(self), handle: Arc::clone(handle) })
    }
}

impl SqliteContext {
    /// Returns whose the blocks of a scope are; nobody's before the session exists or has an owner.
    fn whose(&self, conn: &Connection, scope: BlockScope) -> BackendResult<Option<Whose>> {
        let key = || -> BackendResult<_> { Ok(self.handle.find(conn)?.map(|found| found.key)) };
        Self::resolve(conn, scope, key)
    }

    /// Returns whose the blocks of a scope are that are to be written, as [`whose`](Self::whose) does.
    fn whose_to_write(
        conn: &Connection,
        name: &Named<'_>,
        scope: BlockScope,
    ) -> BackendResult<Option<Whose>> {
        let key = || -> BackendResult<_> { Ok(name.find(conn)?.map(|found| found.key)) };
        let whose = Self::resolve(conn, scope, key)?;
        if whose.is_none() && scope == BlockScope::Owner {
            let session = SessionId::clone(name);
            return Err(BackendError::Own(Error::NoOwner { session }));
        }
        Ok(whose)
    }

    fn resolve(
        conn: &Connection,
        scope: BlockScope,
        session: impl FnOnce() -> BackendResult<Option<i64>>,
    ) -> BackendResult<Option<Whose>> {
        match scope {
            BlockScope::Shared => Ok(Some(Whose::SHARED)),
            BlockScope::Session => Ok(session()?.map(Whose::session)),
            BlockScope::Owner => {
                let Some(key) = session()? else { return Ok(None) };
                let owner = owner_of(conn, key)?;
                Ok(owner.map(|owner| Whose { session: NO_SESSION, owner }))
            }
        }
    }

    /// Returns the block to write to; none before it was written to.
    fn block_to_write(
        conn: &Connection,
        name: &Named<'_>,
        scope: BlockScope,
        label: &str,
    ) -> BackendResult<Option<i64>> {
        let whose = Self::whose_to_write(conn, name, scope)?;
        whose.map_or(Ok(None), |whose| block::find(conn, &whose, label))
    }

    /// Records a write of a session's own texts, creating the session if it does not exist.
    fn touch(conn: &Connection, name: &Named<'_>, scope: BlockScope) -> BackendResult<()> {
        if scope != BlockScope::Session {
            return Ok(());
        }
        let key = name.find_or_create(conn)?.key;
        catalog::touch(conn, key)
    }

    fn block(
        &self,
        conn: &Connection,
        scope: BlockScope,
        label: &str,
    ) -> BackendResult<Option<i64>> {
        match self.whose(conn, scope)? {
            Some(whose) => block::find(conn, &whose, label),
            None => Ok(None),
        }
    }

    /// Reads from a block; a missing block reads as empty.
    fn read<T: Default>(
        &self,
        scope: BlockScope,
        label: &str,
        work: impl FnOnce(&Connection, i64) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| match self.block(conn, scope, label)? {
            Some(block) => work(conn, block),
            None => Ok(T::default()),
        })
    }

    /// Returns the version that a reader sees; 0 for no text.
    fn version_of(conn: &Connection, block: Option<i64>, key: &str) -> BackendResult<u64> {
        let Some(block) = block else { return Ok(0) };
        Ok(entry::find(conn, block, key)?.map_or(0, |stored| stored.living_version()))
    }

    fn put_one(
        conn: &Connection,
        name: &Named<'_>,
        (scope, label): (BlockScope, &str),
        new: &NewEntry<'_>,
        is_searchable: bool,
    ) -> BackendResult<()> {
        let block = Self::block_to_write(conn, name, scope, label)?;
        let present = block.map(|block| entry::find(conn, block, new.key)).transpose()?.flatten();
        if let Some(stored) = &present
            && entry::is_stored(conn, stored, new)?
        {
            return entry::set_searchable(conn, stored, is_searchable);
        }
        Self::touch(conn, name, scope)?;
        if let Some(stored) = present {
            return entry::replace(conn, &stored, new, is_searchable);
        }
        let Some(whose) = Self::whose_to_write(conn, name, scope)? else { return Ok(()) };
        let block = block::find_or_create(conn, &whose, label)?;
        entry::insert(conn, block, new, is_searchable)
    }
}

impl ContextStore for SqliteContext {
    fn session(&self) -> &SessionId {
        self.handle.id()
    }

    fn busy_timeout(&self) -> Duration {
        self.database.config.busy_timeout
    }

    fn snapshot(&self) -> Result<Option<SessionStorage>> {
        let database = self.database.snapshot()?;
        let session = Arc::new(SqliteSession::of_handle(&database, &self.handle));
        Ok(Some(SessionStorage { session, context: Some(database.context_of(&self.handle)) }))
    }

    fn of(&self, session: &SessionId) -> Arc<dyn ContextStore> {
        let handle = Arc::new(Handle::new(session.clone()));
        // Binds it to the session as it is now. If this read fails, so will the next, which binds it.
        let _ = self.database.read(|conn| handle.find(conn));
        self.database.context_of(&handle)
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<Found> {
        self.database.search(request)
    }

    fn labels(&self, scope: BlockScope) -> Result<Vec<StoredLabel>> {
        self.database.read(|conn| match self.whose(conn, scope)? {
            Some(whose) => block::labels(conn, &whose),
            None => Ok(Vec::new()),
        })
    }

    fn check(&self, label: &str, new: &NewEntry<'_>) -> Result<()> {
        let checked = entry::check(label, new, self.database.config.max_message_bytes);
        checked.map_err(|error| error.into_error(0))
    }

    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        self.read(scope, label, |conn, block| entry::read(conn, block, key))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>> {
        self.read(scope, label, entry::documents)
    }

    fn count(&self, scope: BlockScope, label: &str) -> Result<u64> {
        self.read(scope, label, entry::count)
    }

    fn put(
        &self,
        scope: BlockScope,
        label: &str,
        entries: &[NewEntry<'_>],
        is_searchable: bool,
    ) -> Result<bool> {
        self.handle.write(&self.database, |conn, name| {
            for new in entries {
                entry::check(label, new, self.database.config.max_message_bytes)?;
            }
            let block = Self::block_to_write(conn, name, scope, label)?;
            // All are checked before one is written, because what is written is committed.
            for new in entries {
                if let Some(expected) = new.expected
                    && Self::version_of(conn, block, new.key)? != expected
                {
                    return Ok(false);
                }
            }
            for new in entries {
                Self::put_one(conn, name, (scope, label), new, is_searchable)?;
            }
            Ok(true)
        })
    }

    fn remove(&self, scope: BlockScope, label: &str, key: &str) -> Result<bool> {
        self.handle.write(&self.database, |conn, name| {
            let block = Self::block_to_write(conn, name, scope, label)?;
            let Some(block) = block else { return Ok(false) };
            let stored =
                entry::find(conn, block, key)?.filter(|stored| stored.living_version() > 0);
            let Some(stored) = stored else { return Ok(false) };
            Self::touch(conn, name, scope)?;
            entry::remove(conn, &stored)?;
            Ok(true)
        })
    }

    fn versions(&self, scope: BlockScope, label: &str, key: &str) -> Result<Vec<EntryVersion>> {
        self.read(scope, label, |conn, block| entry::versions(conn, block, key))
    }

    fn version(
        &self,
        scope: BlockScope,
        label: &str,
        key: &str,
        number: u64,
    ) -> Result<Option<EntryVersion>> {
        self.read(scope, label, |conn, block| entry::version(conn, block, key, number))
    }

    fn search(
        &self,
        scope: BlockScope,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)> {
        let watch = self.database.interrupt_signal().watch();
        self.database.read_long(|conn| match self.block(conn, scope, label)? {
            Some(block) => search::search(conn, block, (query, limit), &watch),
            None => Ok((Vec::new(), Matched::All)),
        })
    }

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => frozen_prompt::read(conn, session.key),
            None => Ok(None),
        })
    }

    fn freeze(&self, sections: &[PromptSection]) -> Result<Vec<PromptSection>> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            let text = frozen_prompt::to_text(sections, max)?;
            let session = name.find_or_create(conn)?;
            if let Some(frozen) = frozen_prompt::read(conn, session.key)? {
                return Ok(frozen);
            }
            frozen_prompt::set(conn, session.key, &text)?;
            Ok(sections.to_vec())
        })
    }

    fn set_frozen(&self, sections: Option<&[PromptSection]>) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| match sections {
            Some(sections) => {
                let text = frozen_prompt::to_text(sections, max)?;
                frozen_prompt::set(conn, name.find_or_create(conn)?.key, &text)
            }
            None => match name.find(conn)? {
                Some(session) => frozen_prompt::thaw(conn, session.key),
                None => Ok(()),
            },
        })
    }

    fn is_elided(&self, message: &MessageId, call: &str) -> Result<bool> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => elision::is_there(conn, session.key, message, call),
            None => Ok(false),
        })
    }

    fn elisions(&self) -> Result<Vec<Elision>> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => elision::all(conn, session.key),
            None => Ok(Vec::new()),
        })
    }

    fn elide(&self, results: &[(MessageId, String)], marker: &str) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            results.iter().try_for_each(|(message, call)| {
                elision::add(conn, name, message, call, marker, max)
            })
        })
    }
}
