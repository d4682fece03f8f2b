//! The record names that a session keeps of its imports besides those of messages.
//!
//! A store keeps the name of each record that it imports, so that a message that was deleted since
//! does not come back. Compactions and labels are recorded the same way, and so are the start and
//! end of an import; see [`ImportRecord::mark`].
//!
//! Invariant: none of these names is that of a message's record, which ends in `#` and 16
//! hexadecimal digits.

use talktree::{CompactionId, Error, ImportRecord, MessageId, MessageTag, Result};

use crate::draft::{Node, derive};
use crate::exact::Elision;
use crate::work::Work;

/// The session was created by an import; stored with its first messages.
const BEGUN: &str = "#begun";
/// This import was completed.
const ENDED: &str = "#ended";

/// The state left by earlier imports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// Whether this import owns the session: it is new, or an interrupted import created it.
    pub(crate) is_new: bool,
    /// Whether the head, labels and compactions of this file must still be set.
    pub(crate) is_open: bool,
}

pub(crate) fn compaction_record(id: &CompactionId) -> String {
    format!("{id}#compaction")
}

pub(crate) fn label_record(name: &str, target: &MessageId) -> String {
    format!("{}#label", derive(&[name, target.as_str()]))
}

pub(crate) fn elision_record(Elision { message, call, marker }: &Elision) -> String {
    format!("{}#elision", derive(&[message.as_str(), call, marker]))
}

pub(crate) fn tag_record(MessageTag { message, tag, .. }: &MessageTag) -> String {
    format!("{}#tag", derive(&[message.as_str(), tag]))
}

impl Work<'_> {
    /// Returns the state of earlier imports into the session, if it exists, and prepares the names
    /// to store with the first messages.
    pub(crate) fn begin(&mut self, is_there: bool) -> Result<Past> {
        self.has_past = is_there;
        let (begun, ended) = self.names();
        let is_empty_or_begun = !self.has_messages || self.session.is_imported(BEGUN)?;
        let is_new = !is_there || (is_empty_or_begun && !self.session.is_imported(ENDED)?);
        // One that was stored as a whole has only the second name.
        let is_ended = is_there && self.session.is_imported(&ended)?;
        let is_begun = is_ended || (is_there && self.session.is_imported(&begun)?);
        let is_open = is_new || (is_begun && !is_ended);
        self.is_new = is_new;
        if !is_begun {
            self.opening.push(begun);
        }
        if !self.has_messages {
            self.opening.push(BEGUN.to_owned());
        }
        Ok(Past { is_new, is_open })
    }

    /// Returns the names to store with these messages.
    pub(crate) fn opening(&self, messages: &[ImportRecord]) -> Result<Vec<ImportRecord>> {
        if self.opening.is_empty() {
            return Ok(Vec::new());
        }
        let at = match self.has_messages {
            true => self.session.latest_leaf()?.map(|leaf| leaf.id),
            false => messages.first().map(|first| first.message.id.clone()),
        };
        let Some(at) = at else { return Ok(Vec::new()) };
        Ok(self.opening.iter().map(|name| ImportRecord::mark(name.as_str(), at.clone())).collect())
    }

    /// Stores the remaining names, and that the import is complete.
    pub(crate) fn end(&mut self) -> Result<()> {
        let mut names = std::mem::take(&mut self.record_names);
        names.push(self.ended());
        names.extend(self.is_new.then(|| ENDED.to_owned()));
        let Some(leaf) = self.session.latest_leaf()? else { return Ok(()) };
        let marks = names.into_iter().map(|name| ImportRecord::mark(name, leaf.id.clone()));
        let marks: Vec<_> = marks.collect();
        match self.session.import_messages(&marks) {
            // Deleted meanwhile: fewer names are kept, which does no harm.
            Err(Error::UnknownMessage { .. }) => Ok(()),
            stored => stored.map(drop),
        }
    }

    /// Returns whether an earlier import stored this name; `false` in a new session.
    pub(crate) fn is_remembered(&self, record: &str) -> Result<bool> {
        Ok(self.has_past && self.session.is_imported(record)?)
    }

    /// Returns the name for the end of the import of these nodes.
    pub(crate) fn ended(&self) -> String {
        self.names().1
    }

    /// Returns the names for the start and the end of the import of these nodes.
    fn names(&self) -> (String, String) {
        let mix = |hash: u64, node: &Node| hash.rotate_left(5) ^ node.fingerprint;
        let file = self.nodes.iter().fold(self.nodes.len() as u64, mix);
        (format!("{file:x}{BEGUN}"), format!("{file:x}{ENDED}"))
    }
}
