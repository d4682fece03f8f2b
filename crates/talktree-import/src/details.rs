//! The name and times of a session, derived from its messages where the source has none.

use chrono::{DateTime, Utc};
use talktree::{Message, Result, Role, Session, SessionDetails, SessionInfo};

use crate::draft::name;
use crate::fields::Fields;
use crate::noted::Past;

/// The longest name that is made of what a person wrote, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The details that are derived from messages.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The first line that a person wrote ..
    line: Option<String>,
    /// .. or that a program wrote in their name, in tags.
    tagged_line: Option<String>,
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
}

impl Derived {
    pub(crate) fn add(&mut self, message: &Message) {
        let time = message.created_at;
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.newest = Some(self.newest.map_or(time, |newest| newest.max(time)));
        if self.line.is_some() || message.is_hidden || message.role != Role::User {
            return;
        }
        let Some(line) = name(&message.text()) else { return };
        let line = match line.char_indices().nth(MAX_NAME_CHARS) {
            None => line,
            // At the end of a word, if it has words.
            Some((end, _)) => {
                let cut = &line[..end];
                cut.rsplit_once(' ').map_or(cut, |(words, _)| words.trim_end()).to_owned()
            }
        };
        let about = message.metadata.as_ref().and_then(Fields::of).unwrap_or_default();
        // Agents write tagged notes in the name of the user.
        match line.starts_with('<') || about.is_true("isMeta") || about.has("kind") {
            true => drop(self.tagged_line.get_or_insert(line)),
            false => self.line = Some(line),
        }
    }

    /// Returns the details with the name and the time of creation that they lack.
    pub(crate) fn complete(&self, details: SessionDetails) -> SessionDetails {
        let line = self.line.as_ref().or(self.tagged_line.as_ref());
        SessionDetails {
            name: details.name.or_else(|| line.cloned()),
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
