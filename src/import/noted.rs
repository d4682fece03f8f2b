//! What a session remembers of its imports beside its messages.
//!
//! A store notes each record that it takes in, so that a message that was deleted since does not
//! come back. Compactions and labels are noted the same way, and so is how far an import came. Such
//! a note is a record of a message that stands already: the note is all that is stored.
//!
//! Invariant: no note has the name of a message's record, which ends in `#` and 16 hexadecimal
//! digits.

use super::draft::{Node, derive};
use super::work::Work;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::ImportRecord;

/// That the session came to be by an import; noted together with its first messages.
const BEGUN: &str = "#begun";
/// That this import was completed.
const ENDED: &str = "#ended";

/// What was done before, by this import or another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    /// Whether the session is this import's own: nothing was there, or an import that was cut off.
    pub(super) is_new: bool,
    /// Whether the head, labels and compactions of this very file are still to be set.
    pub(super) is_open: bool,
}

pub(super) fn compaction_note(id: &CompactionId) -> String {
    format!("{id}#compaction")
}

pub(super) fn label_note(name: &str, target: &MessageId) -> String {
    format!("{}#label", derive(&[name, target.as_str()]))
}

impl Work<'_> {
    /// Returns how far imports came in a session that may stand, and has it noted with the first
    /// messages that this one begins.
    pub(super) fn begin(&mut self, stands: bool) -> Result<Past> {
        self.has_past = stands;
        let (begun, ended) = self.names();
        let is_new = !stands || (self.is_noted(BEGUN)? && !self.is_noted(ENDED)?);
        let is_begun = stands && self.is_noted(&begun)?;
        let is_open = is_new || (is_begun && !self.is_noted(&ended)?);
        if !is_begun {
            self.opening.push(begun);
        }
        if !self.has_messages {
            self.opening.push(BEGUN.to_owned());
        }
        Ok(Past { is_new, is_open })
    }

    /// Returns the notes to store with these messages.
    pub(super) fn opening(&self, messages: &[ImportRecord]) -> Result<Vec<ImportRecord>> {
        if self.opening.is_empty() {
            return Ok(Vec::new());
        }
        let standing = match self.has_messages {
            true => self.session.latest_leaf()?.map(|leaf| leaf.id),
            false => messages.first().map(|first| first.message.id.clone()),
        };
        let note = |id: &MessageId| -> Vec<ImportRecord> {
            self.opening.iter().map(|note| record_note(note.clone(), id)).collect()
        };
        Ok(standing.as_ref().map(note).unwrap_or_default())
    }

    /// Stores what was noted, and that the import is complete.
    pub(super) fn end(&mut self) -> Result<()> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend([self.names().1, ENDED.to_owned()]);
        let Some(leaf) = self.session.latest_leaf()? else { return Ok(()) };
        let notes: Vec<_> = notes.into_iter().map(|note| record_note(note, &leaf.id)).collect();
        match self.session.import_messages(&notes) {
            // Deleted in this moment; then less is remembered, and nothing is wrong.
            Err(Error::UnknownMessage { .. }) => Ok(()),
            stored => stored.map(drop),
        }
    }

    /// Returns whether an import noted this before; in a new session none did.
    pub(super) fn is_remembered(&self, note: &str) -> Result<bool> {
        Ok(self.has_past && self.is_noted(note)?)
    }

    pub(super) fn is_noted(&self, note: &str) -> Result<bool> {
        // A record that is known is passed over before its parent is looked for, and no message can
        // have this id: so the answer is an error, and nothing is stored, if it is not.
        let asked = record_note(note.to_owned(), &CompactionId::from("none").as_message());
        let asked = ImportRecord { message: Message::new("", Vec::new()), ..asked };
        match self.session.import_messages(&[asked]) {
            // A store that is read-only is asked by a dry run only.
            Err(Error::UnknownMessage { .. } | Error::ReadOnly) => Ok(false),
            known => known.map(|_| true),
        }
    }

    /// Returns the names under which the beginning and the end of importing these nodes are noted.
    fn names(&self) -> (String, String) {
        let mix = |hash: u64, node: &Node| hash.rotate_left(5) ^ node.mark;
        let file = self.nodes.iter().fold(self.nodes.len() as u64, mix);
        (format!("{file:x}{BEGUN}"), format!("{file:x}{ENDED}"))
    }
}

/// Returns a record that stores a note and no message: the message stands, or its parent does not.
fn record_note(record: String, standing: &MessageId) -> ImportRecord {
    let message = Message::new("", Vec::new()).with_id(standing.clone());
    ImportRecord { record, parent: Some(standing.clone()), message }
}
