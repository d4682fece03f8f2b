//! Where a session of an export ends, if the record of the next session is damaged or missing.
//!
//! The sessions of an export follow each other: the record of a session, then its messages and its other records. If the
//! record of a session is lost, its messages would be imported into the session before it, which may be that of another
//! person. So each record has the number of its session, and a record with another number is left out. The number is made
//! from the id of the session, so a wrong digit in one record costs only that record.
//!
//! Former builds wrote no numbers. In their exports the head is the last record of a session, and the first message of a
//! session has no parent. So after one unreadable line a message without a parent begins another session: one with a parent
//! is the child of the lost message, or of one before it. The place of a deleted message counts as a message here. After
//! several unreadable lines any record may be of another session. If whole lines are missing without a trace, the end of one
//! session and the beginning of the next, it is not noticed.

use super::record::Kind;
use crate::export::number_of;
use crate::id::SessionId;

/// What was read of a session, to decide whether the next record is one of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Boundary {
    /// The number in the record of the session.
    number: Option<u64>,
    /// The number that is made from its id; it differs if one of the two is damaged.
    own_number: Option<u64>,
    has_messages: bool,
    has_head: bool,
    /// How many lines since the last record of the session could not be read.
    damaged: u64,
    /// Whether a record without a number was of another session: then all after it are, too.
    is_over: bool,
}

impl Boundary {
    /// Returns the boundary of a session whose record has this number.
    pub(super) fn of(number: Option<u64>, id: &SessionId) -> Self {
        Self { number, own_number: Some(number_of(id)), ..Self::default() }
    }

    /// Notes that a line could not be read.
    pub(super) fn pass_damaged(&mut self) {
        self.damaged += 1;
    }

    /// Returns whether a record is one of the session, and notes it if it is. `is_root` says whether it is a message, or the
    /// place of a deleted one, without a parent.
    pub(super) fn holds(
        &mut self,
        kind: Kind,
        number: Option<u64>,
        is_root: impl FnOnce() -> bool,
    ) -> bool {
        let is_message = matches!(kind, Kind::Message | Kind::Tombstone);
        let is_of_another = match number {
            Some(_) => ![self.number, self.own_number].contains(&number),
            None => {
                let may_be_of_another = match self.damaged {
                    0 => false,
                    1 => is_message && self.has_messages && is_root(),
                    _ => true,
                };
                self.is_over |= self.has_head || may_be_of_another;
                self.is_over
            }
        };
        if is_of_another {
            return false;
        }
        self.damaged = 0;
        self.has_messages |= is_message;
        self.has_head |= kind == Kind::Head;
        true
    }
}
