//! The names of the records that a session has imported. They are stored, so that a later import adds no record again that
//! was removed.
//!
//! Messages, elisions, compactions, labels and tags have names, and so have the start and the end of an import: an interrupted
//! import is completed, and a completed one does not move the head again.
//!
//! Invariant: only the name of a message ends in `#` and 16 hexadecimal digits. The names of a format are never changed: a
//! store keeps those of earlier imports.

use super::record::derive;
use crate::id::{CompactionId, MessageId};
use crate::outcome::{Label, MessageTag};
use crate::storage::context::Elision;

/// Returns the name of a message; `content` is the hash of its line.
pub(super) fn message(id: &MessageId, content: u64) -> String {
    format!("{id}#{content:016x}")
}

pub(super) fn elision(Elision { message, call, marker }: &Elision) -> String {
    format!("{}#elision", derive(&[message.as_str(), call, marker]))
}

pub(super) fn compaction(id: &CompactionId) -> String {
    format!("{id}#compaction")
}

pub(super) fn label(Label { name, id }: &Label) -> String {
    format!("{}#label", derive(&[name, id.as_str()]))
}

pub(super) fn tag(MessageTag { message, tag }: &MessageTag) -> String {
    format!("{}#tag", derive(&[message.as_str(), tag]))
}

/// Returns the names of the start and the end of an import; `mark` distinguishes its messages from those of another export.
pub(super) fn begun_and_ended(mark: u64) -> [String; 2] {
    [format!("{mark:x}#begun"), format!("{mark:x}#ended")]
}
