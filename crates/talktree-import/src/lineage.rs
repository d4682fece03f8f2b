//! Conversations that were copied to go on in another session, with the ids and times of their messages.
//!
//! The copy is a fork of its origin, whichever of the two is imported first: then the store counts and finds the messages of
//! both once. Which is the copy is said by the source: each copied entry names its origin, or the origin its continuation, or a
//! background process wrote the copy. If nothing says so, the two stay apart, with a note.

use chrono::{DateTime, Utc};
use talktree::records::fields::{self, Fields};
use talktree::{MessageId, Record, Result, SessionDetails, SessionFilter, SessionId, SessionInfo};
use talktree_claude::entries::{CONTINUED_IN, SESSION_KIND};

use crate::draft::Draft;
use crate::report::ImportReport;
use crate::write::Writer;

/// How many sessions that began at one time are compared.
const MAX_COMPARED: usize = 64;

/// One of two sessions with the same first message.
struct Side {
    id: SessionId,
    is_of_background: bool,
    continued_in: Option<String>,
}

impl Side {
    fn new(id: &SessionId, metadata: Option<&talktree::Json>) -> Self {
        let about = metadata.and_then(Fields::of).unwrap_or_default();
        let is_of_background = about.text(SESSION_KIND).as_deref() == Some("bg");
        Self { id: id.clone(), is_of_background, continued_in: about.text(CONTINUED_IN) }
    }

    /// Returns whether it is the copy of another one, as far as the two say so.
    fn is_copy_of(&self, other: &Self) -> bool {
        match (&self.continued_in, &other.continued_in) {
            (_, Some(next)) if *next == *self.id.as_str() => true,
            (Some(next), _) if *next == *other.id.as_str() => false,
            _ => self.is_of_background && !other.is_of_background,
        }
    }
}

impl Writer<'_> {
    /// Finds the session that a conversation is a copy of, and those that are copies of it, and makes them forks.
    pub(crate) fn find_copies(
        &mut self,
        draft: &mut Draft,
        report: &mut ImportReport,
    ) -> Result<()> {
        let (Some(first), Some(began)) = (draft.first.clone(), draft.details.created_at) else {
            return Ok(());
        };
        if draft.details.parent_session.is_some() || self.options.session.is_some() {
            return Ok(());
        }
        self.flush_if_alike(began, &first, report)?;
        let own = Side::new(&draft.session, draft.details.metadata.as_ref());
        if let Some(next) = &own.continued_in {
            self.note_continuation(&draft.session, next)?;
        }
        let mut origins = Vec::new();
        for other in self.began_alike(&draft.session, &first, began)? {
            let side = Side::new(&other.id, other.metadata.as_ref());
            if other.parent_session.is_some() {
                // What it is a copy of is known.
            } else if own.is_copy_of(&side) {
                origins.push(other.id);
            } else if side.is_copy_of(&own) {
                self.make_fork(&other.id, draft)?;
            } else {
                let why = format!(
                    "its first message is that of session {:?}, too; nothing says which is the copy, \
                     so both have it",
                    other.id
                );
                report.remark(draft.line, why);
            }
        }
        if let Some(origin) = origins.into_iter().min() {
            draft.details.fork_point = self.last_shared(&origin, draft)?;
            draft.details.parent_session = Some(origin);
        }
        Ok(())
    }

    /// Notes in which session one of the store was continued since it was imported.
    fn note_continuation(&self, session: &SessionId, next: &str) -> Result<()> {
        let Some(info) = self.store.session(session)?.info()?.filter(|_| !self.is_dry) else {
            return Ok(());
        };
        if Side::new(session, info.metadata.as_ref()).continued_in.is_none() {
            let (id, mut metadata) = (info.id, info.metadata);
            let next = Fields::default().with(CONTINUED_IN, Some(serde_json::Value::from(next)));
            fields::add(&mut metadata, next);
            let details = SessionDetails { metadata, ..SessionDetails::default() };
            self.store.import([Ok(Record::Session { id, details })])?;
        }
        Ok(())
    }

    /// Returns the other sessions that began at this time with this message.
    fn began_alike(
        &self,
        own: &SessionId,
        first: &MessageId,
        began: DateTime<Utc>,
    ) -> Result<Vec<SessionInfo>> {
        let filter = SessionFilter { created_at: Some(began), ..SessionFilter::default() };
        let page = self.store.list().filter(filter).limit(MAX_COMPARED).run()?;
        let mut alike = Vec::new();
        for info in page.sessions.into_iter().map(|listed| listed.info) {
            if info.id != *own && self.store.session(&info.id)?.message(first)?.is_some() {
                alike.push(info);
            }
        }
        Ok(alike)
    }

    /// Makes a session of the store a fork of a conversation.
    fn make_fork(&self, copy: &SessionId, draft: &Draft) -> Result<()> {
        let (parent_session, fork_point) =
            (Some(draft.session.clone()), self.last_shared(copy, draft)?);
        if !self.is_dry {
            let details =
                SessionDetails { parent_session, fork_point, ..SessionDetails::default() };
            let record = Record::Session { id: copy.clone(), details };
            self.store.import([Ok(record)])?;
        }
        Ok(())
    }

    /// Returns the last message of a conversation that a session of the store has, too.
    fn last_shared(&self, session: &SessionId, draft: &Draft) -> Result<Option<MessageId>> {
        let session = self.store.session(session)?;
        for node in draft.nodes.iter().rev() {
            if session.message(&node.id)?.is_some_and(|message| !message.is_hidden) {
                return Ok(Some(node.id.clone()));
            }
        }
        Ok(None)
    }
}
