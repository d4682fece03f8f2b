//! Where a session of an export ends, if the record of the next one is damaged or missing.
//!
//! The records of a session and their own follow each other, so without the record of a session its messages would come under
//! the one before it: under another person. Each record therefore has the number of its session, and one of another number is
//! left out. The number is made from the id of the session, so a wrong digit in one record costs no other one.
//!
//! Former builds wrote no numbers. In their exports the head is the last record of a session. After one unreadable line a
//! message without a parent begins another session: one with a parent is the child of the message that was lost, or of one
//! before it. After several, any message may be of another session. If such an export lost the end of one session and the
//! beginning of the next without a trace, nothing tells.

use super::record::Kind;
use crate::export::number_of;
use crate::id::SessionId;

/// The records of one session, as they are read.
#[derive(Debug, Clone, Default)]
pub(super) struct Boundary {
    /// The number in the record of the session.
    number: Option<u64>,
    /// The number that its id gives.
    own_number: Option<u64>,
    has_messages: bool,
    has_head: bool,
    /// How many lines before the next record of the session could not be read.
    damaged: u64,
    /// Whether a record without a number was of another session; then those after it are, too.
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

    /// Returns whether a record is one of the session. `is_root` says whether it is a message without a parent.
    pub(super) fn holds(
        &mut self,
        kind: Kind,
        number: Option<u64>,
        is_root: impl FnOnce() -> bool,
    ) -> bool {
        let is_of_another = match number {
            Some(_) => ![self.number, self.own_number].contains(&number),
            None => {
                let is_perhaps = match self.damaged {
                    0 => false,
                    1 => kind == Kind::Message && self.has_messages && is_root(),
                    _ => true,
                };
                self.is_over |= self.has_head || is_perhaps;
                self.is_over
            }
        };
        if is_of_another {
            return false;
        }
        self.damaged = 0;
        self.has_messages |= kind == Kind::Message;
        self.has_head |= kind == Kind::Head;
        true
    }
}
