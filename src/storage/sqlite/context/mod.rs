//! The context of a session: the texts of its blocks, its frozen prompt, its elisions.
//!
//! A *block* is a label of one session, or of all sessions under session key 0. The addresses of its texts begin with
//! the block's key, as those of messages do with their session's. So all texts of one block are one range of rowids,
//! in the index too, and a search in one block does not read the others.
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

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::catalog;
use super::connection::Database;
use super::error::BackendResult;
use super::handle::{Handle, Named};
use super::session::SqliteSession;
use crate::error::Result;
use crate::id::{MessageId, SessionId};
use crate::search::{Found, Matched, SearchRequest};
use crate::storage::SessionProvider;
use crate::storage::context::{
    ContextStore, Elision, Entry, EntryInfo, EntryVersion, NewEntry, Owner, Put, Section,
    StoredLabel,
};

/// The session key of shared texts; no session has it.
const SHARED: i64 = 0;

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
    /// Returns the session key of an owner's texts; none before the session exists.
    fn key(&self, conn: &Connection, owner: Owner) -> BackendResult<Option<i64>> {
        match owner {
            Owner::Shared => Ok(Some(SHARED)),
            Owner::Session => Ok(self.handle.find(conn)?.map(|session| session.key)),
        }
    }

    /// Returns the block to write to; none before it was written to.
    fn block_to_write(
        conn: &Connection,
        name: &Named<'_>,
        owner: Owner,
        label: &str,
    ) -> BackendResult<Option<i64>> {
        let key = match owner {
            Owner::Shared => Some(SHARED),
            Owner::Session => name.find(conn)?.map(|session| session.key),
        };
        key.map_or(Ok(None), |session| block::find(conn, session, label))
    }

    /// Records a write and returns the session key to write under, creating the session if it does not exist.
    fn key_to_write(conn: &Connection, name: &Named<'_>, owner: Owner) -> BackendResult<i64> {
        match owner {
            Owner::Shared => Ok(SHARED),
            Owner::Session => {
                let key = name.find_or_create(conn)?.key;
                catalog::touch(conn, key)?;
                Ok(key)
            }
        }
    }

    fn block(&self, conn: &Connection, owner: Owner, label: &str) -> BackendResult<Option<i64>> {
        match self.key(conn, owner)? {
            Some(session) => block::find(conn, session, label),
            None => Ok(None),
        }
    }

    /// Reads from a block; a missing block reads as empty.
    fn read<T: Default>(
        &self,
        owner: Owner,
        label: &str,
        work: impl FnOnce(&Connection, i64) -> BackendResult<T>,
    ) -> Result<T> {
        self.database.read(|conn| match self.block(conn, owner, label)? {
            Some(block) => work(conn, block),
            None => Ok(T::default()),
        })
    }
}

/// Where and how a text is put.
#[derive(Clone, Copy)]
struct Target<'a> {
    owner: Owner,
    label: &'a str,
    is_searchable: bool,
}

impl SqliteContext {
    /// Returns the version that a reader sees; 0 for no text.
    fn version_of(
        conn: &Connection,
        name: &Named<'_>,
        Target { owner, label, .. }: Target<'_>,
        key: &str,
    ) -> BackendResult<u64> {
        let Some(block) = Self::block_to_write(conn, name, owner, label)? else { return Ok(0) };
        Ok(entry::find(conn, block, key)?.map_or(0, |stored| stored.living_version()))
    }

    fn put_one(
        &self,
        conn: &Connection,
        name: &Named<'_>,
        Target { owner, label, is_searchable }: Target<'_>,
        new: &NewEntry<'_>,
        expected: Option<u64>,
    ) -> BackendResult<Put> {
        entry::check(label, new, self.database.config.max_message_bytes)?;
        let block = Self::block_to_write(conn, name, owner, label)?;
        let present = block.map(|block| entry::find(conn, block, new.key)).transpose()?;
        let present = present.flatten();
        let found = present.as_ref().map_or(0, entry::EntryRow::living_version);
        if expected.is_some_and(|expected| expected != found) {
            return Ok(Put::Moved { found });
        }
        if let Some(stored) = &present
            && entry::is_stored(conn, stored, new)?
        {
            entry::set_searchable(conn, stored, is_searchable)?;
            return Ok(Put::Unchanged { version: found });
        }
        let session = Self::key_to_write(conn, name, owner)?;
        let version = match present {
            Some(stored) => entry::replace(conn, &stored, new, is_searchable)?,
            None => {
                let block = block::find_or_create(conn, session, label)?;
                entry::insert(conn, block, new, is_searchable)?
            }
        };
        Ok(Put::Stored { version })
    }
}

impl ContextStore for SqliteContext {
    fn session(&self) -> &SessionId {
        self.handle.id()
    }

    fn busy_timeout(&self) -> Duration {
        self.database.config.busy_timeout
    }

    fn snapshot(&self) -> Result<(Arc<dyn SessionProvider>, Arc<dyn ContextStore>)> {
        let database = self.database.snapshot()?;
        let session = SqliteSession::of_handle(&database, &self.handle);
        Ok((Arc::new(session), database.context_of(&self.handle)))
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

    fn labels(&self, owner: Owner) -> Result<Vec<StoredLabel>> {
        self.database.read(|conn| match self.key(conn, owner)? {
            Some(session) => block::labels(conn, session),
            None => Ok(Vec::new()),
        })
    }

    fn check(&self, label: &str, new: &NewEntry<'_>) -> Result<()> {
        let checked = entry::check(label, new, self.database.config.max_message_bytes);
        checked.map_err(|error| error.into_error(0))
    }

    fn entry(&self, owner: Owner, label: &str, key: &str) -> Result<Option<Entry>> {
        self.read(owner, label, |conn, block| entry::read(conn, block, key))
    }

    fn documents(&self, owner: Owner, label: &str) -> Result<Vec<EntryInfo>> {
        self.read(owner, label, entry::documents)
    }

    fn count(&self, owner: Owner, label: &str) -> Result<u64> {
        self.read(owner, label, entry::count)
    }

    fn put(
        &self,
        owner: Owner,
        label: &str,
        new: &NewEntry<'_>,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put> {
        let target = Target { owner, label, is_searchable };
        self.handle
            .write(&self.database, |conn, name| self.put_one(conn, name, target, new, expected))
    }

    fn put_all(
        &self,
        owner: Owner,
        label: &str,
        all: &[(NewEntry<'_>, Option<u64>)],
        is_searchable: bool,
    ) -> Result<bool> {
        let target = Target { owner, label, is_searchable };
        self.handle.write(&self.database, |conn, name| {
            // All are checked before one is written, because what is written is committed.
            for (new, expected) in all {
                if let Some(expected) = expected
                    && Self::version_of(conn, name, target, new.key)? != *expected
                {
                    return Ok(false);
                }
            }
            all.iter()
                .try_for_each(|(new, _)| self.put_one(conn, name, target, new, None).map(drop))?;
            Ok(true)
        })
    }

    fn remove(&self, owner: Owner, label: &str, key: &str) -> Result<bool> {
        self.handle.write(&self.database, |conn, name| {
            let block = Self::block_to_write(conn, name, owner, label)?;
            let Some(block) = block else { return Ok(false) };
            let stored =
                entry::find(conn, block, key)?.filter(|stored| stored.living_version() > 0);
            let Some(stored) = stored else { return Ok(false) };
            Self::key_to_write(conn, name, owner)?;
            entry::remove(conn, &stored)?;
            Ok(true)
        })
    }

    fn versions(&self, owner: Owner, label: &str, key: &str) -> Result<Vec<EntryVersion>> {
        self.read(owner, label, |conn, block| entry::versions(conn, block, key))
    }

    fn version(
        &self,
        owner: Owner,
        label: &str,
        key: &str,
        number: u64,
    ) -> Result<Option<EntryVersion>> {
        self.read(owner, label, |conn, block| entry::version(conn, block, key, number))
    }

    fn search(
        &self,
        owner: Owner,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Matched)> {
        let watch = self.database.interrupt_signal().watch();
        self.database.read_long(|conn| match self.block(conn, owner, label)? {
            Some(block) => search::search(conn, block, (query, limit), &watch),
            None => Ok((Vec::new(), Matched::All)),
        })
    }

    fn frozen(&self) -> Result<Option<Vec<Section>>> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => frozen_prompt::read(conn, session.key),
            None => Ok(None),
        })
    }

    fn freeze(&self, sections: &[Section]) -> Result<Vec<Section>> {
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

    fn refreeze(&self, sections: &[Section]) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            let text = frozen_prompt::to_text(sections, max)?;
            let session = name.find_or_create(conn)?;
            frozen_prompt::set(conn, session.key, &text)
        })
    }

    fn thaw(&self) -> Result<()> {
        self.handle.write(&self.database, |conn, name| match name.find(conn)? {
            Some(session) => frozen_prompt::thaw(conn, session.key),
            None => Ok(()),
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
