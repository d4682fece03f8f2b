//! What a command destroys, named by whole ids, and the calls that destroy it.
//!
//! A command may be given again: by a script, or after it was killed. What it has destroyed is gone then, and the start of an id, a
//! name, a label or `head` would lead to something else. So a command that cannot be undone takes whole ids. A session may be
//! named by its name if `--name` says so. What comes near is answered with the command to type.
//!
//! Invariant: what destroys takes a [`Whole`], which only the lookups of this file make. `clippy.toml` forbids the other ways.
#![expect(clippy::disallowed_methods, reason = "what is destroyed here was named by its whole id")]

use std::ops::Deref;

use talktree::{
    CompactionId, Deleted, Erasure, Error, MessageId, Session, SessionChange, SessionId,
    SessionInfo, Store,
};

use crate::failure::{Failure, Result};
use crate::lookup::{self, HEAD};
use crate::suggestion::{command, option, verb};
use crate::text::quoted;

/// What was named by its whole id.
pub(crate) struct Whole<T>(T);

impl<T> Deref for Whole<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A command line, to be typed again with a whole id.
pub(crate) struct Line<'a> {
    pub(crate) verb: &'a str,
    /// The session comes first.
    pub(crate) arguments: Vec<&'a str>,
    /// Without `--yes`, so that it is asked again.
    pub(crate) options: String,
}

impl Line<'_> {
    /// Returns the command with another argument.
    pub(crate) fn with(&self, at: usize, argument: &str) -> String {
        let mut arguments = self.arguments.clone();
        arguments[at] = argument;
        command(&verb(self.verb, &arguments, &self.options))
    }
}

/// Returns the session that a command line names: the one with this id, or with `is_name` the only one of this name; also one
/// in the trash.
pub(crate) fn session(store: &Store, line: &Line<'_>, is_name: bool) -> Result<Whole<Session>> {
    let given = line.arguments[0];
    if !is_name && let Some(session) = lookup::by_id(store, given)? {
        return Ok(Whole(session));
    }
    let mut all = store.sessions()?;
    all.extend(lookup::trash(store)?);
    let fits = |info: &&SessionInfo| match is_name {
        true => info.name.as_deref() == Some(given),
        false => lookup::is_near(info, given),
    };
    let found: Vec<&SessionId> = all.iter().filter(fits).map(|info| &info.id).collect();
    let typed = found.iter().map(|id| line.with(0, id.as_str()));
    match found[..] {
        [id] if is_name => Ok(Whole(store.session(id.clone())?)),
        [_, _, ..] if is_name => Err(lookup::ambiguous("session", given, typed)),
        _ => {
            let by = if is_name { "name" } else { "id" };
            let what = format!("no session has the {by} {}", quoted(given));
            Err(unknown(&what, typed, "sessions"))
        }
    }
}

/// Returns the message with this id; `typed` is the command for one that comes near.
pub(crate) fn message(
    session: &Session,
    given: &str,
    typed: impl Fn(&str) -> String,
) -> Result<Whole<MessageId>> {
    let id = MessageId::from(given);
    let head = if given == HEAD { session.head()? } else { None };
    // `head` always means the head, also if a message has this id.
    if head.as_ref().is_none_or(|head| *head == id) && session.message(&id)?.is_some() {
        return Ok(Whole(id));
    }
    let mut near: Vec<MessageId> = head.into_iter().collect();
    near.extend(session.labelled(given)?);
    lookup::each_id(session, |id| {
        if lookup::is_part(id.as_str(), given) {
            near.push(id.clone());
        }
    })?;
    let what = format!("session {:?} has no message with the id {}", session.id(), quoted(given));
    let list = verb("tree", &[session.id().as_str()], "");
    Err(unknown(&what, near.iter().map(|id| typed(id.as_str())), &list))
}

/// Returns the compaction with this id, or with this message id of its summary.
pub(crate) fn compaction(session: &Session, given: &str) -> Result<Whole<CompactionId>> {
    let id = given.strip_prefix(talktree::CompactionId::PREFIX).unwrap_or(given);
    if lookup::is_compaction(session, id) {
        return Ok(Whole(id.into()));
    }
    let all = session.compactions()?;
    let near = all.iter().map(|one| one.id.as_str()).filter(|one| lookup::is_part(one, id));
    let typed = |id| command(&verb("compact", &[session.id().as_str()], &option("remove", id)));
    let what = format!("session {:?} has no compaction {}", session.id(), quoted(given));
    let list = verb("compact", &[session.id().as_str()], "--list");
    Err(unknown(&what, near.map(typed), &list))
}

/// Returns the error for what is not there, with the commands for what comes near, or with the one that lists all.
fn unknown(what: &str, near: impl Iterator<Item = String>, list: &str) -> Failure {
    Failure::NotFound(match &*lookup::some(near) {
        "" => format!("{what}; `{}` lists all", command(list)),
        near => {
            format!("{what}; this command takes whole ids. If you mean another one, type:{near}")
        }
    })
}

/// Returns the erasure of messages, of branches, or without any of a whole session.
pub(crate) fn erasure(
    session: &Whole<Session>,
    messages: &[Whole<MessageId>],
    is_branch: bool,
) -> Erasure {
    match (messages, is_branch) {
        ([], _) => Erasure::session(session.id()),
        (_, false) => Erasure::messages(session.id(), messages.iter().map(Deref::deref)),
        (_, true) => messages
            .iter()
            .map(|id| Erasure::branch(session.id(), id))
            .fold(Erasure::default(), Erasure::and),
    }
}

/// Returns the messages of a path from one to another.
pub(crate) fn range(
    session: &Session,
    first: &Whole<MessageId>,
    last: &Whole<MessageId>,
) -> Result<Vec<Whole<MessageId>>> {
    let rows = session.at(last).raw().row_stats()?;
    match rows.iter().position(|row| row.id == **first) {
        Some(start) => Ok(rows.into_iter().skip(start).map(|row| Whole(row.id)).collect()),
        None => {
            let (first, last) = ((**first).clone(), (**last).clone());
            Err(Error::NotAncestor { first, last }.into())
        }
    }
}

/// Removes a session for good.
pub(crate) fn remove(store: &Store, session: &Whole<Session>) -> Result<()> {
    Ok(store.remove(session.id())?)
}

/// Puts a session into the trash. `restore` undoes it, but the same command, given again, would go on with another session.
pub(crate) fn put_into_trash(store: &Store, session: &Whole<Session>) -> Result<()> {
    Ok(store.change_session(session.id(), &SessionChange::Delete)?)
}

/// Deletes messages.
pub(crate) fn delete(session: &Whole<Session>, ids: &[Whole<MessageId>]) -> Result<Deleted> {
    Ok(session.delete(ids.iter().map(Deref::deref))?)
}

/// Deletes a message and all messages below it.
pub(crate) fn delete_branch(session: &Whole<Session>, id: &Whole<MessageId>) -> Result<Deleted> {
    Ok(session.delete_branch(id)?)
}

/// Removes a compaction.
pub(crate) fn remove_compaction(session: &Whole<Session>, id: &Whole<CompactionId>) -> Result<()> {
    session.remove_compaction(id)?;
    Ok(())
}
