//! Lookup of sessions, messages and compactions by what the user typed: an id, a part of one, a name
//! a key that leads to it, or a label. What destroys them looks them up in [`whole`](crate::whole).
//!
//! A complete id is tried first, then names and prefixes. Suffixes are accepted because ids created
//! at the same time share a prefix. An ambiguous argument is an error, also if it is the name of one
//! session and a part of another's id. A part of a name comes last. Sessions that are not in the trash come before those in it.

use std::collections::BTreeSet;

use talktree::{
    BindingFilter, CompactionId, Error, ListedSession, Message, MessageId, Path, Session,
    SessionFilter, SessionId, SessionInfo, SessionState, Store,
};

use crate::failure::{Failure, Result};
use crate::last_list;
use crate::names::ShortIds;
use crate::suggestion::{command, verb};
use crate::text::{cut, one_line, quoted};

/// The maximum number of candidates in an error.
const MAX_CANDIDATES: usize = 8;

/// How many sessions are read at a time.
const PAGE: usize = 1_000;

/// The argument that means the head.
pub(crate) const HEAD: &str = "head";

/// The argument that means the session with the newest message.
pub(crate) const LAST: &str = "-";

/// The most columns of a name in a confirmation.
const MAX_NAME: usize = 40;

/// Returns the session with this id, place, part of an id, or name; if there is none, that to which this key leads, that with this
/// part of a name, or one in the trash.
pub(crate) fn session(store: &Store, given: &str) -> Result<Session> {
    // A complete id needs no list of all sessions.
    if let Some(session) = by_id(store, given)? {
        return Ok(session);
    }
    if let Some(id) = at_place(store, given)? {
        return Ok(store.session(id)?);
    }
    let present = store.sessions()?;
    let mut found = find(&present, given)?;
    if found.is_none() {
        found = bound(store, given)?;
    }
    if found.is_none() {
        found = of_name(&present, given)?;
    }
    if found.is_none() {
        found = in_list(&trash(store)?, given)?;
    }
    match found {
        Some(id) => Ok(store.session(id)?),
        None => Err(Failure::NotFound(format!(
            "no session has the id, name or key {}, an id that starts or ends with it, or it in its name; `{}` lists all",
            quoted(given),
            command("sessions")
        ))),
    }
}

/// Returns the session to which an outside key leads.
fn bound(store: &Store, key: &str) -> Result<Option<SessionId>> {
    let filter =
        BindingFilter { key: Some(key.to_owned()), is_open: true, ..BindingFilter::default() };
    Ok(store.bindings(&filter, None, 1)?.pop().map(|binding| binding.session))
}

/// Returns the session that `-` names, or `@1`, `@2`, .. of the list that was printed last.
fn at_place(store: &Store, given: &str) -> Result<Option<SessionId>> {
    if given == LAST {
        let newest = listed(store, &SessionFilter::default(), 1)?.pop();
        let newest = newest.map(|listed| listed.info.id);
        let none = || Failure::NotFound("the store holds no sessions".to_owned());
        return newest.ok_or_else(none).map(Some);
    }
    let Some(place) = given.strip_prefix('@').and_then(|place| place.parse::<usize>().ok()) else {
        return Ok(None);
    };
    let session = last_list::read().into_iter().nth(place.wrapping_sub(1));
    let session = session.map(|id| by_id(store, &id)).transpose()?.flatten();
    let id = session.map(|session| session.id().clone());
    id.map(Some).ok_or_else(|| {
        Failure::NotFound(format!(
            "the list that was printed last has no session {given} of this store; `{}` prints one",
            command("sessions")
        ))
    })
}

/// Returns the session in the trash with this id, part of an id, or name.
pub(crate) fn in_trash(store: &Store, given: &str) -> Result<Session> {
    let list = command("trash list");
    if let Some(session) = by_id(store, given)? {
        let is_there = session.info()?.is_some_and(|info| info.deleted_at.is_some());
        let why =
            || format!("session {:?} is not in the trash; `{list}` lists what is", session.id());
        return if is_there { Ok(session) } else { Err(Failure::NotFound(why())) };
    }
    match in_list(&trash(store)?, given)? {
        Some(id) => Ok(store.session(id)?),
        None => Err(Failure::NotFound(format!(
            "no session in the trash has the id or name {}, an id that starts or ends with it, or it in its name; `{list}` lists all",
            quoted(given),
        ))),
    }
}

/// Returns the session with this id, also one in the trash.
pub(crate) fn by_id(store: &Store, id: &str) -> Result<Option<Session>> {
    match store.session(id) {
        Ok(session) if session.info()?.is_some() => Ok(Some(session)),
        // What cannot be an id may be a name.
        _ => Ok(None),
    }
}

/// Returns the sessions in the trash.
pub(crate) fn trash(store: &Store) -> Result<Vec<SessionInfo>> {
    let filter = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    let listed = listed(store, &filter, usize::MAX)?;
    Ok(listed.into_iter().map(|listed| listed.info).collect())
}

/// Returns at most `limit` sessions that a filter shows.
pub(crate) fn listed(
    store: &Store,
    filter: &SessionFilter,
    limit: usize,
) -> Result<Vec<ListedSession>> {
    let (mut sessions, mut after) = (Vec::new(), None::<String>);
    while sessions.len() < limit {
        let page = store
            .list()
            .filter(filter.clone())
            .after(after.as_deref())
            .limit(PAGE.min(limit - sessions.len()))
            .run()?;
        sessions.extend(page.sessions);
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    Ok(sessions)
}

fn find(sessions: &[SessionInfo], given: &str) -> Result<Option<SessionId>> {
    let part = without_dots(given);
    let is_named = |info: &SessionInfo| info.name.as_deref() == Some(given);
    let starts = |info: &SessionInfo| !part.is_empty() && info.id.as_str().starts_with(part);
    let ends = |info: &SessionInfo| !part.is_empty() && info.id.as_str().ends_with(part);
    let any_named = sessions.iter().any(is_named);
    let any_start = sessions.iter().any(starts);
    // A suffix counts only if no prefix matches; but next to a name it makes the argument ambiguous,
    // as a prefix does.
    let fits = |info: &&SessionInfo| {
        is_named(info) || starts(info) || (ends(info) && (any_named || !any_start))
    };
    only(sessions.iter().filter(fits).collect(), given)
}

/// Returns the session with this text in its name, in any case.
fn of_name(sessions: &[SessionInfo], given: &str) -> Result<Option<SessionId>> {
    let part = given.to_lowercase();
    let has = |name: &String| !part.trim().is_empty() && name.to_lowercase().contains(&part);
    only(sessions.iter().filter(|info| info.name.as_ref().is_some_and(has)).collect(), given)
}

/// Returns the session with this part of an id, name or part of a name.
fn in_list(sessions: &[SessionInfo], given: &str) -> Result<Option<SessionId>> {
    let found = find(sessions, given)?;
    if found.is_some() { Ok(found) } else { of_name(sessions, given) }
}

fn only(found: Vec<&SessionInfo>, given: &str) -> Result<Option<SessionId>> {
    match found[..] {
        [info] => Ok(Some(info.id.clone())),
        [] => Ok(None),
        _ => Err(ambiguous("session", given, found.iter().map(|info| id_and_name(info)))),
    }
}

/// Returns whether a session has this name or this part of an id.
pub(crate) fn is_near(info: &SessionInfo, given: &str) -> bool {
    info.name.as_deref() == Some(given) || is_part(info.id.as_str(), given)
}

/// Returns whether an id starts or ends with a text.
pub(crate) fn is_part(id: &str, given: &str) -> bool {
    let part = without_dots(given);
    !part.is_empty() && (id.starts_with(part) || id.ends_with(part))
}

/// Returns the session's short id, with its name if it has one, for a confirmation.
pub(crate) fn title(store: &Store, session: &Session) -> Result<String> {
    let ids = ShortIds::of_sessions(store)?;
    let id = ids.of(session.id().as_str());
    Ok(match session.info()?.and_then(|info| info.name) {
        Some(name) => format!("{id} ({})", cut(&one_line(&name), MAX_NAME)),
        None => id.to_owned(),
    })
}

fn id_and_name(info: &SessionInfo) -> String {
    match &info.name {
        Some(name) => format!("{} ({})", info.id, one_line(name)),
        None => info.id.to_string(),
    }
}

/// Returns the message with this id, label or part of an id, or the head for `head`. The id
/// `compaction_..` finds the summary of a compaction.
pub(crate) fn message(session: &Session, given: &str) -> Result<MessageId> {
    let id = MessageId::from(given);
    if given.is_empty() {
        return Err(Failure::Usage("the message id is empty".to_owned()));
    }
    // Before labels and ids: in a script `head` must mean the head, even if an imported message has this id.
    if given == HEAD {
        let head = session.head()?;
        return head.ok_or_else(|| {
            Failure::NotFound(format!(
                "session {:?} has no head message: its head is before the first message",
                session.id()
            ))
        });
    }
    if session.message(&id)?.is_some() {
        return Ok(id);
    }
    if let Some(id) = session.labelled(given)? {
        return Ok(id);
    }
    let mut ids = BTreeSet::new();
    each_id(session, |id| {
        if is_part(id.as_str(), given) {
            ids.insert(id.clone());
        }
    })?;
    let summaries = session.compactions().unwrap_or_default().into_iter();
    ids.extend(summaries.map(|one| one.id.as_message()).filter(|id| is_part(id.as_str(), given)));
    let found = of_part(&ids, MessageId::as_str, without_dots(given));
    match found[..] {
        [id] => Ok(id.clone()),
        [_, ..] => Err(ambiguous("message", given, found)),
        [] => Err(Failure::NotFound(format!(
            "session {:?} has no message or label {} and no message id that starts or ends with it; `{}` shows the messages",
            session.id(),
            quoted(given),
            command(&verb("tree", &[session.id().as_str()], ""))
        ))),
    }
}

/// Returns the path to a message, or to the head.
pub(crate) fn path(session: &Session, at: Option<&str>, is_raw: bool) -> Result<Path> {
    let path = match at {
        Some(at) => session.at(&message(session, at)?),
        None => session.path(),
    };
    Ok(if is_raw { path.raw() } else { path })
}

/// Calls `with` once for the id of each message of a session.
pub(crate) fn each_id(session: &Session, mut with: impl FnMut(&MessageId)) -> Result<()> {
    let tree = session.tree()?;
    if let [only] = &tree.segments[..] {
        session.at(&only.last).row_stats()?.iter().for_each(|row| with(&row.id));
        return Ok(());
    }
    for segment in &tree.segments {
        // The landmarks already hold every id of the segment.
        if segment.landmarks.len() as u64 == segment.count {
            segment.landmarks.iter().for_each(|landmark| with(&landmark.id));
            continue;
        }
        let path = session.at(&segment.last).raw().iter_rev();
        for message in path.take(usize::try_from(segment.count).unwrap_or(usize::MAX)) {
            let Message { id, .. } = message?;
            with(&id);
        }
    }
    Ok(())
}

/// Returns the compaction with this id, the message id of its summary, or a part of either.
pub(crate) fn compaction(session: &Session, given: &str) -> Result<CompactionId> {
    let part = without_dots(given);
    let part = part.strip_prefix(talktree::CompactionId::PREFIX).unwrap_or(part);
    let ids: Vec<CompactionId> = match session.compactions() {
        // If one cannot be read, each is still found by its whole id: `verify` prints that of the damaged one.
        Err(Error::Corrupt { .. }) if is_compaction(session, part) => vec![part.into()],
        read => read?.into_iter().map(|compaction| compaction.id).collect(),
    };
    if let Some(id) = ids.iter().find(|id| id.as_str() == part) {
        return Ok(id.clone());
    }
    let found = of_part(&ids, CompactionId::as_str, part);
    match found[..] {
        [id] => Ok(id.clone()),
        [] => Err(Failure::NotFound(format!(
            "session {:?} has no compaction {}; `{}` lists all",
            session.id(),
            quoted(given),
            command(&verb("compact", &[session.id().as_str()], "--list"))
        ))),
        _ => Err(ambiguous("compaction", given, found)),
    }
}

/// Returns the ids that start with a text, or else those that end with it.
fn of_part<'a, T>(
    ids: impl IntoIterator<Item = &'a T> + Copy,
    text: fn(&T) -> &str,
    part: &str,
) -> Vec<&'a T> {
    let fitting = |fits: fn(&str, &str) -> bool| {
        let all = ids.into_iter().filter(|id| !part.is_empty() && fits(text(id), part));
        all.collect::<Vec<_>>()
    };
    let starts = fitting(|id, part| id.starts_with(part));
    if starts.is_empty() { fitting(|id, part| id.ends_with(part)) } else { starts }
}

/// Returns whether a session has a compaction with this id, readable or not.
pub(crate) fn is_compaction(session: &Session, id: &str) -> bool {
    !matches!(session.compaction(&id.into()), Err(Error::UnknownCompaction { .. }))
}

/// Returns the error for an argument that fits several things.
pub(crate) fn ambiguous<T: ToString>(
    what: &str,
    given: &str,
    found: impl IntoIterator<Item = T>,
) -> Failure {
    Failure::Usage(format!("{} matches more than one {what}:{}", quoted(given), some(found)))
}

/// Returns a line for each of the first candidates, and how many more there are.
pub(crate) fn some<T: ToString>(found: impl IntoIterator<Item = T>) -> String {
    let mut found = found.into_iter();
    let mut lines: String =
        found.by_ref().take(MAX_CANDIDATES).map(|one| format!("\n  {}", one.to_string())).collect();
    match found.count() {
        0 => {}
        more => lines += &format!("\n  and {more} more"),
    }
    lines
}

/// Removes the `…` that `tree` and other output prints in place of the rest of an id.
fn without_dots(given: &str) -> &str {
    given.trim_matches('…')
}
