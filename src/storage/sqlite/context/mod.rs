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

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::catalog;
use super::connection::Database;
use super::error::{BackendError, BackendResult};
use super::handle::{Handle, Named};
use super::row::session::SessionRow;
use super::session::SqliteSession;
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::search::{Found, Matched, SearchRequest};
use crate::storage::catalog::SessionStorage;
use crate::storage::context::{
    BlockScope, ContextStore, ContextTexts, ContextWrite, Elision, Entry, EntryInfo, EntryVersion,
    NewEntry, PromptSection, Spool, StoredLabel,
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

/// Returns whose the blocks of a scope are; nobody's before the session exists or has an owner.
fn whose(
    conn: &Connection,
    scope: BlockScope,
    session: impl FnOnce() -> BackendResult<Option<SessionRow>>,
) -> BackendResult<Option<Whose>> {
    match scope {
        BlockScope::Shared => Ok(Some(Whose::SHARED)),
        BlockScope::Session => Ok(session()?.map(|session| Whose::session(session.key))),
        BlockScope::Owner => {
            let Some(session) = session()? else { return Ok(None) };
            let owner = owner_of(conn, session.key)?;
            Ok(owner.map(|owner| Whose { session: NO_SESSION, owner }))
        }
    }
}

impl SqliteContext {
    fn block(
        &self,
        conn: &Connection,
        scope: BlockScope,
        label: &str,
    ) -> BackendResult<Option<i64>> {
        match whose(conn, scope, || self.handle.find(conn))? {
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
}

/// A write of a context, inside its transaction.
struct Writing<'c> {
    conn: &'c Connection,
    name: &'c Named<'c>,
    /// How long a text may be.
    max: usize,
    /// The first error of SQLite: the transaction ends with it, whatever becomes of it on the way.
    failed: Cell<Option<BackendError>>,
}

impl Writing<'_> {
    /// Returns the public error of a step.
    fn public<T>(&self, answer: BackendResult<T>) -> Result<T> {
        answer.map_err(|error| {
            if let BackendError::Sqlite(_) = error {
                let first = self.failed.take().unwrap_or_else(|| error.again());
                self.failed.set(Some(first));
            }
            error.into_error(0)
        })
    }

    fn block(&self, scope: BlockScope, label: &str) -> BackendResult<Option<i64>> {
        match whose(self.conn, scope, || self.name.find(self.conn))? {
            Some(whose) => block::find(self.conn, &whose, label),
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
        let block = self.block(scope, label);
        self.public(block.and_then(|block| match block {
            Some(block) => work(self.conn, block),
            None => Ok(T::default()),
        }))
    }

    /// Returns whose the blocks of a scope are that are to be written; nobody's before the session exists.
    fn whose(&self, scope: BlockScope) -> BackendResult<Option<Whose>> {
        let whose = whose(self.conn, scope, || self.name.find(self.conn))?;
        if whose.is_none() && scope == BlockScope::Owner {
            let session = SessionId::clone(self.name);
            return Err(BackendError::Own(Error::NoOwner { session }));
        }
        Ok(whose)
    }

    /// Records a write of a session's own texts, creating the session if it does not exist.
    fn touch(&self, scope: BlockScope) -> BackendResult<()> {
        match scope {
            BlockScope::Session => {
                catalog::touch(self.conn, self.name.find_or_create(self.conn)?.key)
            }
            _ => Ok(()),
        }
    }

    fn put_text(
        &self,
        scope: BlockScope,
        label: &str,
        new: &NewEntry<'_>,
        is_searchable: bool,
    ) -> BackendResult<()> {
        let conn = self.conn;
        entry::check(label, new, self.max)?;
        let block = match self.whose(scope)? {
            Some(whose) => block::find(conn, &whose, label)?,
            None => None,
        };
        let present = block.map(|block| entry::find(conn, block, new.key)).transpose()?.flatten();
        if let Some(stored) = &present
            && entry::is_stored(conn, stored, new)?
        {
            return entry::set_searchable(conn, stored, is_searchable);
        }
        self.touch(scope)?;
        if let Some(stored) = present {
            return entry::replace(conn, &stored, new, is_searchable);
        }
        let Some(whose) = self.whose(scope)? else { return Ok(()) };
        let block = block::find_or_create(conn, &whose, label)?;
        entry::insert(conn, block, new, is_searchable)
    }

    fn remove_text(&self, scope: BlockScope, label: &str, key: &str) -> BackendResult<bool> {
        let Some(whose) = self.whose(scope)? else { return Ok(false) };
        let Some(block) = block::find(self.conn, &whose, label)? else { return Ok(false) };
        let stored = entry::find(self.conn, block, key)?;
        let Some(stored) = stored.filter(entry::EntryRow::is_present) else { return Ok(false) };
        self.touch(scope)?;
        entry::remove(self.conn, &stored)?;
        Ok(true)
    }

    fn freeze(&self, sections: Option<&[PromptSection]>) -> BackendResult<()> {
        match sections {
            Some(sections) => {
                let text = frozen_prompt::to_text(sections, self.max)?;
                let session = self.name.find_or_create(self.conn)?;
                frozen_prompt::set(self.conn, session.key, &text)
            }
            None => match self.name.find(self.conn)? {
                Some(session) => frozen_prompt::thaw(self.conn, session.key),
                None => Ok(()),
            },
        }
    }
}

impl ContextTexts for Writing<'_> {
    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        self.read(scope, label, |conn, block| entry::read(conn, block, key))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>> {
        self.read(scope, label, entry::documents)
    }

    fn count(&self, scope: BlockScope, label: &str) -> Result<u64> {
        self.read(scope, label, entry::count)
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

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        let session = self.name.find(self.conn);
        self.public(session.and_then(|session| match session {
            Some(session) => frozen_prompt::read(self.conn, session.key),
            None => Ok(None),
        }))
    }
}

impl ContextWrite for Writing<'_> {
    fn put(
        &mut self,
        scope: BlockScope,
        label: &str,
        new: &NewEntry<'_>,
        is_searchable: bool,
    ) -> Result<()> {
        self.public(self.put_text(scope, label, new, is_searchable))
    }

    fn remove(&mut self, scope: BlockScope, label: &str, key: &str) -> Result<bool> {
        self.public(self.remove_text(scope, label, key))
    }

    fn set_frozen(&mut self, sections: Option<&[PromptSection]>) -> Result<()> {
        self.public(self.freeze(sections))
    }
}

impl ContextTexts for SqliteContext {
    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        self.read(scope, label, |conn, block| entry::read(conn, block, key))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<EntryInfo>> {
        self.read(scope, label, entry::documents)
    }

    fn count(&self, scope: BlockScope, label: &str) -> Result<u64> {
        self.read(scope, label, entry::count)
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

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => frozen_prompt::read(conn, session.key),
            None => Ok(None),
        })
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

    fn spool(&self) -> Option<Box<dyn Spool>> {
        Some(self.database.spool())
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
        self.database.read(|conn| match whose(conn, scope, || self.handle.find(conn))? {
            Some(whose) => block::labels(conn, &whose),
            None => Ok(Vec::new()),
        })
    }

    fn check(&self, label: &str, new: &NewEntry<'_>) -> Result<()> {
        let checked = entry::check(label, new, self.database.config.max_message_bytes);
        checked.map_err(|error| error.into_error(0))
    }

    fn write(&self, work: &mut dyn FnMut(&mut dyn ContextWrite) -> Result<()>) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            let mut writing = Writing { conn, name, max, failed: Cell::default() };
            let answer = work(&mut writing);
            match writing.failed.take() {
                Some(error) => Err(error),
                None => Ok(answer?),
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
        let watch = self.database.interrupt_signal().watch();
        self.database.read_long(|conn| match self.block(conn, scope, label)? {
            Some(block) => search::search(conn, block, (query, limit), &watch),
            None => Ok((Vec::new(), Matched::All)),
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
