//! What people call sessions and messages: an id, the beginning of one, or a name.
//!
//! A whole id comes first, then names and beginnings; an end is good, too, because ids that were made
//! at one time begin alike. What fits several is never guessed: a name that is also a part of another
//! session's id is not enough.

use std::collections::BTreeSet;

use talktree::{CompactionId, Message, MessageId, Session, SessionId, SessionInfo, Store};

use crate::clean::one_line;
use crate::failure::{Failure, Result};

/// The most candidates that an error lists.
const MAX_CANDIDATES: usize = 8;

/// What stands for the message that the head stands at.
pub(crate) const HEAD: &str = "head";

/// The shortest an id is shown, where it is longer.
const MIN_SHOWN: usize = 8;

/// Returns the session that is meant.
pub(crate) fn session(store: &Store, given: &str) -> Result<Session> {
    // A whole id is found without a look at the others.
    if let Ok(session) = store.session(given)
        && session.info()?.is_some()
    {
        return Ok(session);
    }
    Ok(store.session(session_id(&store.sessions()?, given)?)?)
}

fn session_id(sessions: &[SessionInfo], given: &str) -> Result<SessionId> {
    let part = without_dots(given);
    let is_named = |info: &SessionInfo| info.name.as_deref() == Some(given);
    let starts = |info: &SessionInfo| !part.is_empty() && info.id.as_str().starts_with(part);
    let ends = |info: &SessionInfo| !part.is_empty() && info.id.as_str().ends_with(part);
    let any_named = sessions.iter().any(is_named);
    let any_start = sessions.iter().any(starts);
    // An end counts where no beginning does, but says against a name as much as a beginning.
    let fits = |info: &&SessionInfo| {
        is_named(info) || starts(info) || (ends(info) && (any_named || !any_start))
    };
    let found: Vec<&SessionInfo> = sessions.iter().filter(fits).collect();
    match found[..] {
        [info] => Ok(info.id.clone()),
        [] => Err(Failure::NotFound(format!(
            "no session has the id or name {given:?}, and none an id with that beginning or end; `talktree sessions` lists them"
        ))),
        _ => Err(ambiguous("session", given, found.iter().map(|info| described(info)))),
    }
}

/// Returns what people know the session by: its id, and its name if it has one.
pub(crate) fn title(session: &Session) -> Result<String> {
    let info = session.info()?;
    Ok(info.map_or_else(|| session.id().to_string(), |info| described(&info)))
}

fn described(info: &SessionInfo) -> String {
    match &info.name {
        Some(name) => format!("{} ({})", info.id, one_line(name)),
        None => info.id.to_string(),
    }
}

/// Returns the message that is meant: `head`, by id, by label, or by the beginning or the end of its
/// id. A summary's id stands for the summary.
pub(crate) fn message(session: &Session, given: &str) -> Result<MessageId> {
    let id = MessageId::from(given);
    if given.is_empty() {
        return Err(Failure::Usage("a message id is empty".to_owned()));
    }
    // Before labels and ids: what a script calls the head must not depend on what was imported.
    if given == HEAD {
        let head = session.head()?;
        return head.ok_or_else(|| {
            Failure::NotFound("the head stands before the first message".to_owned())
        });
    }
    if session.message(&id)?.is_some() {
        return Ok(id);
    }
    if let Some(id) = session.labelled(given)? {
        return Ok(id);
    }
    let part = without_dots(given);
    let mut starts = BTreeSet::new();
    let mut ends = BTreeSet::new();
    each_id(session, |id| {
        if id.as_str().starts_with(part) {
            starts.insert(id.clone());
        } else if id.as_str().ends_with(part) {
            ends.insert(id.clone());
        }
    })?;
    let found = if starts.is_empty() { ends } else { starts };
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (Some(first), Some(second)) => {
            Err(ambiguous("message", given, [first, second].into_iter().chain(found)))
        }
        (None, _) => Err(Failure::NotFound(format!(
            "session {:?} has no message or label {given:?}, and no id with that beginning or end; `talktree tree {}` shows them",
            session.id(),
            session.id()
        ))),
    }
}

/// Calls `with` for the id of every message of a session, once each.
fn each_id(session: &Session, mut with: impl FnMut(&MessageId)) -> Result<()> {
    let tree = session.tree()?;
    if let [only] = &tree.segments[..] {
        session.at(&only.last).row_stats()?.iter().for_each(|row| with(&row.id));
        return Ok(());
    }
    for segment in &tree.segments {
        // What the landmarks show need not be read again.
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

/// Returns the compaction that is meant: by its id, its id as a message, or the beginning of it.
pub(crate) fn compaction(session: &Session, given: &str) -> Result<CompactionId> {
    let part = without_dots(given);
    let part = part.strip_prefix(talktree::COMPACTION_PREFIX).unwrap_or(part);
    let ids: Vec<CompactionId> =
        session.compactions()?.into_iter().map(|compaction| compaction.id).collect();
    if let Some(id) = ids.iter().find(|id| id.as_str() == part) {
        return Ok(id.clone());
    }
    let starts = |id: &&CompactionId| !part.is_empty() && id.as_str().starts_with(part);
    let ends = |id: &&CompactionId| !part.is_empty() && id.as_str().ends_with(part);
    let mut found: Vec<&CompactionId> = ids.iter().filter(starts).collect();
    if found.is_empty() {
        found = ids.iter().filter(ends).collect();
    }
    match found[..] {
        [id] => Ok(id.clone()),
        [] => Err(Failure::NotFound(format!(
            "session {:?} has no summary {given:?}; `talktree compact {} --list` lists them",
            session.id(),
            session.id()
        ))),
        _ => Err(ambiguous("summary", given, found)),
    }
}

fn ambiguous<T: ToString>(what: &str, given: &str, found: impl IntoIterator<Item = T>) -> Failure {
    let mut found = found.into_iter();
    let shown: Vec<String> =
        found.by_ref().take(MAX_CANDIDATES).map(|one| one.to_string()).collect();
    let more = match found.count() {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Failure::Usage(format!(
        "{given:?} may be more than one {what}:\n  {}{more}",
        shown.join("\n  ")
    ))
}

/// Drawings shorten ids with dots at the end that was left out; what is pasted may hold them.
fn without_dots(given: &str) -> &str {
    given.trim_matches('…')
}

/// The beginnings of ids that tell them from each other.
pub(crate) struct ShortIds(Vec<String>);

impl ShortIds {
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Returns the shortest beginning, of eight characters or more, that no other id has.
    pub(crate) fn of<'a>(&self, id: &'a str) -> &'a str {
        let Ok(at) = self.0.binary_search_by(|other| other.as_str().cmp(id)) else { return id };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let others = neighbours.into_iter().flatten().filter_map(|at| self.0.get(at));
        let common =
            others.map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count());
        let mut len = (common.max().unwrap_or(0) + 1).max(MIN_SHOWN);
        while len < id.len() && !id.is_char_boundary(len) {
            len += 1;
        }
        // What is nearly whole is shown whole.
        if len + 8 >= id.len() { id } else { &id[..len] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_to_what_tells_them_apart() {
        let ids = [
            "7f3a0c12-1111-4222-8333-444455556666",
            "7f3a0c12-2222-4222-8333-444455556666",
            "telegram:4711",
        ];
        let short = ShortIds::new(ids);
        assert_eq!(ids.map(|id| short.of(id)), ["7f3a0c12-1", "7f3a0c12-2", "telegram:4711"]);
        assert_eq!(ShortIds::new([ids[0]]).of(ids[0]), "7f3a0c12");
    }
}
