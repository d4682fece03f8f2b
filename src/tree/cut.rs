//! Where the recent part of a conversation begins.
//!
//! A range given to a model must not begin between a tool call and its result: providers refuse a
//! result without its call. Messages are offered newest first. The cut says when it needs no more,
//! and returns the longest range within the budget that holds the call of each of its results.
//!
//! Invariant: the newest message is always taken.

use crate::message::{Message, NewestFirst};

/// The end of a conversation, while it is read.
pub(crate) struct Cut {
    max: u64,
    spent: u64,
    pairs: NewestFirst,
    /// Newest first.
    taken: Vec<Message>,
    /// Whether `taken` is within the budget.
    taken_fits: bool,
    /// How many messages of `taken` the range holds so far: the longest that lacks no call.
    sound: usize,
}

impl Cut {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            max,
            spent: 0,
            pairs: NewestFirst::default(),
            taken: Vec::new(),
            taken_fits: true,
            sound: 0,
        }
    }

    /// Offers the next older message; `false` when no older one is needed.
    ///
    /// A summary right before the range is taken even beyond the budget: without it, all that it
    /// replaces would be lost.
    pub(crate) fn offer(&mut self, message: Message, cost: u64, is_summary: bool) -> bool {
        self.spent = self.spent.saturating_add(cost);
        let fits = self.spent <= self.max || self.taken.is_empty();
        if !fits && self.sound > 0 {
            if is_summary && self.taken_fits {
                self.take_summary(message);
            }
            return false;
        }
        self.taken_fits = fits;
        match is_summary {
            true => self.take_summary(message),
            false => self.take(message),
        }
        // Beyond the budget, messages are taken only to reach the call of a result among the newest.
        fits || self.sound == 0
    }

    /// Calls whose results were taken lie in the range of the summary or before it. The summary says
    /// what came of them, so the range may begin here.
    fn take_summary(&mut self, message: Message) {
        self.pairs.clear();
        self.take(message);
    }

    fn take(&mut self, message: Message) {
        self.pairs.take(&message);
        self.taken.push(message);
        if !self.pairs.lacks_call() {
            self.sound = self.taken.len();
        }
    }

    /// Returns the range, oldest first.
    pub(crate) fn finish(mut self) -> Vec<Message> {
        self.taken.truncate(self.sound.max(1));
        self.taken.reverse();
        self.taken
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(cut(&drawn, 150).len(), 150);
    }

    #[test]
    fn nothing_offered_leaves_nothing() {
        assert!(Cut::new(5).finish().is_empty());
    }
}
