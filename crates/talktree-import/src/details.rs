//! The name and times of a session, derived from its messages where the source has none.

use chrono::{DateTime, Utc};
use talktree::{Message, Result, Session, SessionDetails, SessionInfo};

use crate::record_names::Past;
use crate::title::Title;

/// The details that are derived from messages.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The title, and the place of its message in the source.
    title: Option<(u32, Title)>,
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
}

impl Derived {
    /// Takes a message of this place in the source. They may come in another order, parents first.
    pub(crate) fn add(&mut self, place: u32, message: &Message) {
        let time = message.created_at;
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.newest = Some(self.newest.map_or(time, |newest| newest.max(time)));
        let rank = |(place, title): &(u32, Title)| (!title.is_final(), *place);
        let rank_of_known = self.title.as_ref().map(rank);
        if rank_of_known.is_some_and(|known| known <= (false, place)) {
            return;
        }
        let mut title = Title::default();
        title.add(message);
        let found = (place, title);
        if found.1.line().is_some() && rank_of_known.is_none_or(|known| rank(&found) < known) {
            self.title = Some(found);
        }
    }

    /// Returns the place of the message that the title was made from.
    pub(crate) fn place_of_title(&self) -> Option<u32> {
        self.title.as_ref().map(|(place, _)| *place)
    }

    /// Forgets the title and returns it: its message was deleted or erased since an earlier import.
    pub(crate) fn forget_title(&mut self) -> Option<String> {
        self.title.take()?.1.line().map(str::to_owned)
    }

    /// Returns the details with the name and the time of creation that they lack.
    pub(crate) fn complete(&self, details: SessionDetails) -> SessionDetails {
        SessionDetails {
            name: details.name.or_else(|| self.title.as_ref()?.1.line().map(str::to_owned)),
            created_at: details.created_at.or(self.oldest),
            ..details
        }
    }

    /// Returns the time of the last write: that of the newest message, or of a later write to the session.
    pub(crate) fn last_write(
        &self,
        before: Option<&SessionInfo>,
        has_added: bool,
    ) -> Option<DateTime<Utc>> {
        let newest = self.newest.filter(|_| has_added);
        before.map(|info| info.updated_at).into_iter().chain(newest).max()
    }
}

/// Sets the details that the session does not have yet; a name given since the last import stays.
///
/// Comes after every other write to the session, so that the time of the last write is that of its messages.
pub(crate) fn set_missing_details(
    session: &Session,
    details: SessionDetails,
    derived: &Derived,
    before: Option<&SessionInfo>,
    past: Past,
    has_added: bool,
) -> Result<()> {
    let updated_at = derived.last_write(before, has_added);
    let details = derived.complete(details);
    let created_at = details.created_at.filter(|_| past.is_new);
    let missing = match before {
        None => details,
        Some(info) => SessionDetails { created_at, ..details.missing_in(info) },
    };
    match before.is_some() && !has_added && missing == SessionDetails::default() {
        true => Ok(()),
        false => session.set_details(&SessionDetails { updated_at, ..missing }),
    }
}
