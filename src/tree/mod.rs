//! The shape of a conversation, as pure logic: no I/O, no SQL, no clock.
//!
//! The [`Address`] of a message is its session and its number in the order of appends. A [`Run`] is a sequence of
//! messages at consecutive addresses in which each message is the parent of the next. A path is a short list of runs.
//! [`Walk`] follows it from a leaf back to the root and plans a history: runs of messages, with summaries in place of
//! compacted ranges. [`Cut`] chooses where a range of a history may begin. [`Tree`] is the outline of a whole session.
//!
//! A range given to a model must not begin between a tool call and its result: providers refuse a
//! result without its call. Messages are offered newest first. The cut says when it needs no more,
//! and returns the longest range within the budget that holds the call of each of its results. A result whose call is not
//! there at all is no reason to return less.
//!
//! Invariant: a parent's address is smaller than its child's, so every walk ends.

mod outline;
mod walk;

use crate::message::{Message, NewestFirst};

pub(crate) use outline::CompactionMark;
pub(crate) use outline::{BoundedRun, SegmentMap, line, outermost, preview};
pub use outline::{DrawOptions, Landmark, PieceKind, Segment, Tree, TreeLine};
pub(crate) use walk::{Plan, PlanPart, Run, Span, TreeSource, Walk};

/// The maximum number of messages of a session. Numbers are never reused, so deleted messages count.
pub(crate) const MAX_MESSAGES: u64 = u32::MAX as u64 - 1;

/// The maximum number of sessions of a store: the upper half of an address holds no more.
pub(crate) const MAX_SESSIONS: i64 = i32::MAX as i64;

/// The address of a message: the key of its session, and its number in the session's order of appends.
///
/// Invariant: the number is at least 1, so the address before a session's first message is never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(i64);

impl Address {
    /// Returns the address of the `n`-th append to the session of this key.
    pub(crate) const fn new(session: i64, n: u32) -> Self {
        Self((session << 32) | n as i64)
    }

    pub(crate) const fn from_raw(raw: i64) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> i64 {
        self.0
    }

    pub(crate) const fn session(self) -> i64 {
        self.0 >> 32
    }

    /// Returns the number of the message in its session's order of appends, from 1.
    pub(crate) const fn n(self) -> u32 {
        self.0 as u32
    }

    /// Returns the previous address, which no message has if this is the first of its session.
    pub(crate) const fn before(self) -> Self {
        Self(self.0 - 1)
    }

    /// Returns the next address.
    pub(crate) const fn after(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the first and last address of the session.
    pub(crate) const fn range_of(session: i64) -> (Self, Self) {
        (Self::new(session, 1), Self::new(session, u32::MAX))
    }
}

/// The end of a conversation, while it is read.
pub(crate) struct Cut {
    max: u64,
    spent: u64,
    pairs: NewestFirst,
    /// Newest first, each with whether it is a summary.
    taken: Vec<(Message, bool)>,
    /// How many of them fit the budget.
    fitting: usize,
    is_over: bool,
}

impl Cut {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            max,
            spent: 0,
            pairs: NewestFirst::default(),
            taken: Vec::new(),
            fitting: 0,
            is_over: false,
        }
    }

    /// Offers the next older message; `false` when no older one is needed.
    ///
    /// A summary right before the range is taken even beyond the budget: without it, all that it
    /// replaces would be lost. Beyond the budget, messages are taken only to find the calls of results among those that fit.
    pub(crate) fn offer(&mut self, message: Message, cost: u64, is_summary: bool) -> bool {
        self.spent = self.spent.saturating_add(cost);
        let fits = self.spent <= self.max || self.taken.is_empty();
        if !fits && !self.is_over {
            self.is_over = true;
            if is_summary {
                self.take(message, true);
                self.fitting = self.taken.len();
                return false;
            }
        }
        if self.is_over && !self.pairs.lacks_call() {
            return false;
        }
        self.take(message, is_summary);
        if !self.is_over {
            self.fitting = self.taken.len();
        }
        !self.is_over || self.pairs.lacks_call()
    }

    fn take(&mut self, message: Message, is_summary: bool) {
        take(&mut self.pairs, &message, is_summary);
        self.taken.push((message, is_summary));
    }

    /// Returns the range, oldest first: the longest that fits and lacks no call; otherwise the shortest that lacks none.
    ///
    /// A result whose call was not found, because it is deleted or hidden, does not count.
    pub(crate) fn finish(self) -> Vec<Message> {
        let strays = self.pairs.into_strays();
        let mut pairs = NewestFirst::default();
        let mut length = None;
        for (count, (message, is_summary)) in (1..).zip(&self.taken) {
            take(&mut pairs, message, *is_summary);
            if (count <= self.fitting || length.is_none()) && !pairs.lacks_call_besides(&strays) {
                length = Some(count);
            }
        }
        let mut range: Vec<_> = self.taken.into_iter().map(|(message, _)| message).collect();
        range.truncate(length.unwrap_or(1));
        range.reverse();
        range
    }
}

/// Calls whose results were taken lie in the range of a summary or before it. The summary says
/// what came of them, so the range may begin there.
fn take(pairs: &mut NewestFirst, message: &Message, is_summary: bool) {
    if is_summary {
        pairs.clear();
    }
    pairs.take(message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_its_session_and_number() {
        let address = Address::new(7, u32::MAX);
        assert_eq!((address.session(), address.n()), (7, u32::MAX));
        assert!(address < Address::new(8, 1));
    }
}

#[cfg(test)]
mod cut_tests {
    use serde_json::json;

    use super::*;
    use crate::message::Part;

    /// Draws messages as letters, oldest first: `c` calls a tool, `r` is its result, `s` is a
    /// summary, `o` a result without a call; others are plain. Returns the letters of the range.
    #[track_caller]
    fn cut(drawn: &str, max: u64) -> String {
        let mut cut = Cut::new(max);
        for letter in drawn.chars().rev() {
            let message = Message::user(letter.to_string());
            let message = match letter {
                'c' => message.with_part(Part::tool_call("t", "1", json!({}))),
                'r' => message.with_part(Part::tool_result("t", "1", json!("done"))),
                'o' => message.with_part(Part::tool_result("t", "2", json!("done"))),
                _ => message,
            };
            if !cut.offer(message, 1, letter == 's') {
                break;
            }
        }
        cut.finish().iter().map(Message::text).collect()
    }

    #[test]
    fn a_range_fits_and_holds_the_calls_of_its_results() {
        for (drawn, max, range) in [
            ("uaua", 2, "ua"),
            ("uaua", 9, "uaua"),
            ("uaua", 0, "a"),
            ("ucra", 2, "a"),
            ("ucra", 3, "cra"),
            ("ucr", 1, "cr"),
            ("uaxcyr", 1, "cyr"),
            ("sua", 2, "sua"),
            ("xsua", 2, "sua"),
            ("sxua", 2, "ua"),
            ("oua", 2, "ua"),
            ("uoua", 9, "uoua"),
            ("uouau", 4, "ouau"),
            ("uouau", 3, "uau"),
            ("uo", 1, "o"),
            ("uocrau", 4, "crau"),
            ("uocrau", 3, "au"),
            ("ucroau", 3, "oau"),
            ("ucroau", 4, "oau"),
            ("ucroau", 5, "croau"),
            ("sra", 9, "sra"),
            ("sra", 2, "sra"),
            ("xsra", 9, "xsra"),
            ("xsra", 3, "sra"),
            ("sra", 1, "a"),
        ] {
            assert_eq!(cut(drawn, max), range, "{drawn} cut at {max}");
        }
    }

    #[test]
    fn a_result_without_a_call_is_waited_for_within_reach_only() {
        let drawn = format!("{}o{}", "u".repeat(200), "a".repeat(10));
        for max in [9, 10, 11, 12, 80, 150] {
            assert_eq!(cut(&drawn, max as u64).len(), max);
        }
    }

    #[test]
    fn nothing_offered_leaves_nothing() {
        assert!(Cut::new(5).finish().is_empty());
    }
}
