//! The context of a session: the texts of its blocks, its frozen prompt, its elisions.
//!
//! A *block* is a label of one session, or under session key 0 of all sessions of an owner, or of all sessions. The
//! addresses of its texts begin with the block's key, as those of messages do with their session's. So all texts of one
//! block are one range of rowids, in the index too, and a search in one block does not read the others.
//!
//! Invariant: a searchable text that was not removed is in the index; its index entry is deleted before its row
//! changes. What is made from stored texts is stored by the [`write`](SqliteContext::write) that read them, so neither a newer
//! version nor another owner can come in between.

pub(super) mod elision;
pub(super) mod entry;
pub(super) mod search;
#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::append::check_size;
use super::catalog;
use super::connection::Database;
use super::row::session::{self as session_row, SessionRow};
use super::session::{Handle, Named};
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::message::now;
use crate::search::Matched;
use crate::sql::{BackendError, BackendResult, Connection, corrupt};
use crate::storage::context::{
    BlockScope, Document, Elision, PromptSection, StoredLabel, StoredText,
};
pub(crate) use entry::Texts;

/// The session key of texts that are not of one session; no session has it.
const NO_SESSION: i64 = 0;

/// Whose blocks are, as their rows say: of a session, of an owner, or of all sessions.
struct ScopeKey {
    session: i64,
    /// Empty unless they are of an owner.
    owner: String,
}

impl ScopeKey {
    const SHARED: Self = Self { session: NO_SESSION, owner: String::new() };

    fn session(key: i64) -> Self {
        Self { session: key, owner: String::new() }
    }
}

pub(super) const OWNER: &str = "SELECT owner FROM session WHERE key = ?1";

/// The storage of one session's context, and of the texts that it shares with others.
///
/// A session that was never written to reads as empty, and the first write of a text of its own or of a frozen prompt creates
/// it. The texts of [`BlockScope::Owner`] are those of the owner that the session has when the verb runs. Without an owner they
/// read as empty, and a write is [`Error::NoOwner`].
#[derive(Clone)]
pub(crate) struct SqliteContext {
    database: Arc<Database>,
    handle: Arc<Handle>,
}

impl Database {
    /// Returns the context of a session, which need not exist yet.
    #[cfg(test)]
    pub(crate) fn context(self: &Arc<Self>, id: &SessionId) -> SqliteContext {
        self.context_of(&Arc::new(Handle::new(id.clone())))
    }

    /// Returns the context of the session that a handle is bound to.
    pub(super) fn context_of(self: &Arc<Self>, handle: &Arc<Handle>) -> SqliteContext {
        SqliteContext { database: Arc::clone(self), handle: Arc::clone(handle) }
    }
}

/// Returns whose the blocks of a scope are; nobody's before the session exists or has an owner.
fn scope_key(
    conn: &Connection,
    scope: BlockScope,
    session: impl FnOnce() -> BackendResult<Option<SessionRow>>,
) -> BackendResult<Option<ScopeKey>> {
    match scope {
        BlockScope::Shared => Ok(Some(ScopeKey::SHARED)),
        BlockScope::Session => Ok(session()?.map(|session| ScopeKey::session(session.key))),
        BlockScope::Owner => {
            let Some(session) = session()? else { return Ok(None) };
            let owner: Option<Option<String>> = conn.first(OWNER, session.key)?;
            // Blocks of an owner with an empty name, which only other programs write, would be those of all sessions.
            let owner = owner.flatten().filter(|owner| !owner.is_empty());
            Ok(owner.map(|owner| ScopeKey { session: NO_SESSION, owner }))
        }
    }
}

/// A context, as one read or one write sees it.
pub(crate) struct Reading<'c> {
    conn: &'c Connection<'c>,
    session: &'c dyn Fn() -> BackendResult<Option<SessionRow>>,
}

/// A write of a context, inside its transaction.
pub(crate) struct Writing<'c> {
    reading: Reading<'c>,
    name: &'c Named<'c>,
    /// How long a text may be.
    max: usize,
}

impl<'c> Deref for Writing<'c> {
    type Target = Reading<'c>;

    fn deref(&self) -> &Reading<'c> {
        &self.reading
    }
}

impl Reading<'_> {
    /// Returns the texts of a block.
    pub(crate) fn texts(&self, scope: BlockScope, label: &str) -> BackendResult<Texts<'_>> {
        let scope_key = scope_key(self.conn, scope, self.session)?;
        texts(self.conn, scope_key.as_ref(), label)
    }

    /// Returns the frozen prompt, if there is one.
    pub(crate) fn frozen(&self) -> BackendResult<Option<Vec<PromptSection>>> {
        match (self.session)()? {
            Some(session) => frozen(self.conn, session.key),
            None => Ok(None),
        }
    }

    /// Returns when the prompt was frozen, if it is.
    pub(crate) fn frozen_at(&self) -> BackendResult<Option<DateTime<Utc>>> {
        let Some(session) = (self.session)()? else { return Ok(None) };
        self.conn.first("SELECT frozen_at FROM frozen_prompt WHERE session = ?1", session.key)
    }
}

fn texts<'c>(
    conn: &'c Connection<'c>,
    scope_key: Option<&ScopeKey>,
    label: &str,
) -> BackendResult<Texts<'c>> {
    let block =
        scope_key.map(|scope_key| entry::block(conn, scope_key, label)).transpose()?.flatten();
    Ok(Texts { conn, block })
}

/// Returns the versions of a text of a session or an owner, oldest first.
pub(super) fn versions(
    conn: &Connection,
    session: i64,
    owner: &str,
    label: &str,
    key: &str,
) -> BackendResult<Vec<StoredText>> {
    let scope_key = ScopeKey { session, owner: owner.to_owned() };
    texts(conn, Some(&scope_key), label)?.versions(key)
}

impl Writing<'_> {
    /// Returns whose the blocks of a scope are that are to be written; nobody's before the session exists.
    fn scope_key(&self, scope: BlockScope) -> BackendResult<Option<ScopeKey>> {
        let scope_key = scope_key(self.conn, scope, self.session)?;
        if scope_key.is_none() && scope == BlockScope::Owner {
            let session = SessionId::clone(self.name);
            return Err(BackendError::Own(Error::NoOwner { session }));
        }
        Ok(scope_key)
    }

    /// Records a write of texts. The session is created before the first one of its own; that of an owner's texts keeps its owner.
    fn touch(&self, scope: BlockScope) -> BackendResult<()> {
        match scope {
            BlockScope::Session => {
                catalog::touch(self.conn, self.name.find_or_create(self.conn)?.key)
            }
            BlockScope::Owner => match (self.session)()? {
                Some(session) => session_row::claim(self.conn, session.key),
                None => Ok(()),
            },
            BlockScope::Shared => Ok(()),
        }
    }

    /// Puts a text.
    ///
    /// A text that differs from the stored one in content, title or description is a new version; the same text is none,
    /// but `is_searchable` counts: it says whether [`search`](SqliteContext::search) finds the text. At least the newest
    /// thousand versions are kept.
    pub(crate) fn put(
        &self,
        scope: BlockScope,
        label: &str,
        new: &Document,
        is_searchable: bool,
    ) -> BackendResult<()> {
        let conn = self.conn;
        entry::check(label, new, self.max)?;
        let block = texts(conn, self.scope_key(scope)?.as_ref(), label)?.block;
        let stored = entry::find(conn, block, &new.key, Some(new))?;
        if let Some(stored) = &stored
            && entry::keep(conn, stored, is_searchable)?
        {
            return Ok(());
        }
        self.touch(scope)?;
        match (stored, block) {
            (Some(stored), _) => entry::replace(conn, &stored, Some(new), is_searchable),
            (None, Some(block)) => entry::insert(conn, block, new, is_searchable),
            (None, None) => {
                let Some(scope_key) = self.scope_key(scope)? else { return Ok(()) };
                let block = entry::create_block(conn, &scope_key, label)?;
                entry::insert(conn, block, new, is_searchable)
            }
        }
    }

    /// Removes a text; returns whether there was one. The removal is a version, and the versions before are kept.
    pub(crate) fn remove(&self, scope: BlockScope, label: &str, key: &str) -> BackendResult<bool> {
        let block = texts(self.conn, self.scope_key(scope)?.as_ref(), label)?.block;
        let stored = entry::find(self.conn, block, key, None)?;
        let Some(stored) = stored.filter(|stored| stored.is_present) else { return Ok(false) };
        self.touch(scope)?;
        entry::replace(self.conn, &stored, None, false)?;
        Ok(true)
    }

    /// Freezes these sections, replacing a prompt that is frozen.
    pub(crate) fn freeze(&self, sections: &[PromptSection]) -> BackendResult<()> {
        let text = serde_json::to_string(sections)
            .map_err(|source| Error::Json { what: "a frozen prompt", source })?;
        check_size("a frozen prompt", text.len(), self.max)?;
        let session = self.name.find_or_create(self.conn)?;
        session_row::claim(self.conn, session.key)?;
        self.conn.run(
            "INSERT INTO frozen_prompt (session, sections, frozen_at)
                 VALUES (?1, ?2, ?3)
                 ON CONFLICT (session)
                 DO UPDATE SET sections = excluded.sections, frozen_at = excluded.frozen_at",
            (session.key, text, now().timestamp_micros()),
        )?;
        Ok(())
    }

    /// Removes the frozen prompt.
    pub(crate) fn thaw(&self) -> BackendResult<()> {
        let Some(session) = self.name.find(self.conn)? else { return Ok(()) };
        session_row::claim(self.conn, session.key)?;
        thaw(self.conn, session.key)
    }
}

pub(super) fn frozen(conn: &Connection, session: i64) -> BackendResult<Option<Vec<PromptSection>>> {
    let text: Option<String> = conn.first(FROZEN, session)?;
    let parse = |text: String| {
        serde_json::from_str(&text).map_err(|error| {
            corrupt(format!("the frozen prompt of session key {session}: {error}"))
        })
    };
    text.map(parse).transpose()
}

pub(super) const FROZEN: &str = "SELECT sections FROM frozen_prompt WHERE session = ?1";

/// Thaws the prompt if this owner is another one than the session's, whose texts it holds. Called before the change.
pub(super) fn thaw_for_owner(
    conn: &Connection,
    session: i64,
    owner: Option<&str>,
) -> BackendResult<()> {
    conn.run(
        "DELETE FROM frozen_prompt
          WHERE session = ?1
            AND EXISTS (SELECT 1 FROM session WHERE key = ?1 AND owner IS DISTINCT FROM ?2)",
        (session, owner),
    )?;
    Ok(())
}

pub(super) fn thaw(conn: &Connection, session: i64) -> BackendResult<()> {
    conn.run("DELETE FROM frozen_prompt WHERE session = ?1", session)?;
    Ok(())
}

impl SqliteContext {
    /// Returns how long a write waits for other writers.
    pub(crate) fn busy_timeout(&self) -> Duration {
        self.database.config.busy_timeout
    }

    /// Runs a read, which sees one state.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Reading<'_>) -> BackendResult<T>) -> Result<T> {
        self.database.read(|conn| work(&Reading { conn, session: &|| self.handle.find(conn) }))
    }

    /// Runs a write, all of it or nothing; no other write comes in between. `work` calls no code of the program.
    pub(crate) fn write<T>(&self, work: impl Fn(&Writing<'_>) -> BackendResult<T>) -> Result<T> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            let reading = Reading { conn, session: &|| name.find(conn) };
            work(&Writing { reading, name, max })
        })
    }

    /// Returns the labels that have at least one text, sorted.
    pub(crate) fn labels(&self, scope: BlockScope) -> Result<Vec<StoredLabel>> {
        self.database.read(|conn| match scope_key(conn, scope, || self.handle.find(conn))? {
            Some(scope_key) => entry::labels(conn, &scope_key),
            None => Ok(Vec::new()),
        })
    }

    /// Searches a label's searchable texts, best first: for all words and, if no text has them all, for any of them.
    ///
    /// Keys, titles and descriptions are searched too. Filters on messages are ignored. A query without a word finds nothing.
    pub(crate) fn search(
        &self,
        scope: BlockScope,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Document>, Matched)> {
        let watch = self.database.watch();
        self.database.read_long(|conn| {
            let reading = Reading { conn, session: &|| self.handle.find(conn) };
            match reading.texts(scope, label)?.block {
                Some(block) => search::search(conn, block, (query, limit), &watch),
                None => Ok((Vec::new(), Matched::All)),
            }
        })
    }

    /// Returns whether a marker replaces the output of a tool call of a message.
    pub(crate) fn is_elided(&self, message: &MessageId, call: &str) -> Result<bool> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => elision::is_there(conn, session.key, message, call),
            None => Ok(false),
        })
    }

    /// Returns all elisions.
    pub(crate) fn elisions(&self) -> Result<Vec<Elision>> {
        self.database.read(|conn| match self.handle.find(conn)? {
            Some(session) => elision::all(conn, session.key),
            None => Ok(Vec::new()),
        })
    }

    /// Replaces the outputs of tool calls, each given with its message, by a marker: all of them or none. An earlier
    /// marker is replaced. Histories show the marker; the stored messages do not change.
    pub(crate) fn elide(&self, results: &[(MessageId, String)], marker: &str) -> Result<()> {
        let max = self.database.config.max_message_bytes;
        self.handle.write(&self.database, |conn, name| {
            results.iter().try_for_each(|(message, call)| {
                elision::add(conn, name, message, call, marker, max)
            })
        })
    }
}
