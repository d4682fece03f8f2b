//! What a model may see.

use std::borrow::Cow;
use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use talktree::{
    ListedSession, Message, Record, Search, Session, SessionFilter, SessionInfo, Store,
};

use crate::answer::{Refused, Result, quoted};

/// What a model may see and do. The default shows all sessions, and writes nothing.
///
/// Whatever a model asks for, it sees no session outside it, and does not learn whether one exists. Sessions in the trash and hidden
/// messages are never shown.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The owner whose sessions are shown; all if there is none.
    pub owner: Option<String>,
    /// The programs or files whose sessions are shown; all if it is empty.
    pub sources: Vec<String>,
    /// Whether the tools that write are offered.
    pub can_write: bool,
    /// Takes out of each message and text what a model should not read, such as keys; `talktree_import::redact` does.
    pub redact: Option<fn(&mut Record)>,
}

/// A store as a model may see it.
pub(crate) struct View {
    pub(crate) store: Store,
    pub(crate) access: Access,
}

impl Access {
    /// Says what it shows.
    pub(crate) fn told(&self) -> String {
        let sources: Vec<String> = self.sources.iter().map(|source| quoted(source)).collect();
        let of = self.owner.as_ref().map(|owner| format!(" of {}", quoted(owner)));
        let from = (!sources.is_empty()).then(|| format!(" from {}", sources.join(" or ")));
        match of.unwrap_or_default() + &from.unwrap_or_default() {
            all if all.is_empty() => "You see all conversations of the store.".to_owned(),
            some => format!("You see only the conversations{some}."),
        }
    }

    fn shows(&self, info: &SessionInfo) -> bool {
        let is_shown = |source: &String| self.sources.contains(source);
        info.deleted_at.is_none()
            && (self.owner.is_none() || self.owner == info.owner)
            && (self.sources.is_empty() || info.source.as_ref().is_some_and(is_shown))
    }

    /// Returns each source that is shown, or that there is no such condition.
    pub(crate) fn each_source(&self) -> Vec<Option<String>> {
        match self.sources.is_empty() {
            true => vec![None],
            false => self.sources.iter().cloned().map(Some).collect(),
        }
    }
}

impl View {
    /// Returns the session of an id, or the newest of a name.
    pub(crate) fn session(&self, given: &str) -> Result<Session> {
        // What cannot be an id may be a name.
        if let Ok(session) = self.store.session(given)
            && session.info()?.is_some_and(|info| self.access.shows(&info))
        {
            return Ok(session);
        }
        let filter = SessionFilter { name: Some(given.to_owned()), ..SessionFilter::default() };
        let mut named = self.newest(&filter, 100)?.into_iter().map(|session| session.info);
        let found = named.find(|info| info.name.as_deref() == Some(given));
        let unknown = || format!("there is no session {}; `sessions` lists all", quoted(given));
        Ok(self.store.session(found.ok_or_else(|| Refused(unknown()))?.id)?)
    }

    /// Returns the sessions that a filter shows, the newest first: at least `limit` and one more, if there are so many.
    pub(crate) fn newest(
        &self,
        filter: &SessionFilter,
        limit: usize,
    ) -> Result<Vec<ListedSession>> {
        let mut found = Vec::new();
        for source in self.access.each_source() {
            let filter =
                SessionFilter { owner: self.access.owner.clone(), source, ..filter.clone() };
            found.extend(self.store.list().filter(filter).limit(limit + 1).run()?.sessions);
        }
        found.sort_by_key(|session| Reverse(last_at(&session.info)));
        Ok(found)
    }

    /// Returns a message as a model may read it.
    pub(crate) fn redacted<'m>(&self, message: &'m Message) -> Cow<'m, Message> {
        let Some(redact) = self.access.redact else { return Cow::Borrowed(message) };
        let mut record = Record::Message { below: None, message: message.clone(), name: None };
        redact(&mut record);
        match record {
            Record::Message { message, .. } => Cow::Owned(message),
            _ => Cow::Borrowed(message),
        }
    }

    /// Returns a text as a model may read it.
    pub(crate) fn redacted_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.access.redact {
            None => text.into(),
            Some(_) => self.redacted(&Message::user(text)).text().into(),
        }
    }

    /// Returns the start of a text as a model may read it. Where it was cut, the last word is left out: it may be the start of a key.
    pub(crate) fn redacted_start<'t>(&self, start: &'t str) -> Cow<'t, str> {
        let Some(cut) = start.strip_suffix('…').filter(|_| self.access.redact.is_some()) else {
            return self.redacted_text(start);
        };
        let words = cut.trim_end_matches(|c: char| !c.is_whitespace());
        self.redacted_text(words) + "…"
    }

    /// Narrows a search of the store.
    pub(crate) fn narrowed(&self, search: Search) -> Result<Search> {
        let search = self.access.owner.iter().fold(search, |search, owner| search.owner(owner));
        if self.access.sources.is_empty() {
            return Ok(search);
        }
        let sessions = self.store.sessions()?.into_iter();
        let shown = sessions.filter(|info| self.access.shows(info)).map(|info| info.id);
        Ok(search.sessions(shown))
    }
}

/// Returns the time by which a session is listed.
pub(crate) fn last_at(info: &SessionInfo) -> DateTime<Utc> {
    info.last_message_at.unwrap_or(info.created_at)
}
