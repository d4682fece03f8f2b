//! Where the end of a conversation may begin.
//!
//! A stretch handed to a model must not begin between the call of a tool and its result: providers
//! refuse a result without its call. Messages are offered newest first; the cut says when enough
//! were taken, and gives back the longest stretch that fits and begins at a sound place.
//!
//! Invariant: the newest message is always taken.

use std::collections::HashMap;

use crate::message::{Message, Part};

/// How many messages back the call of a result is looked for. One that is further away, or was
/// never stored, does not hold the stretch open: real transcripts have results without a call.
const PAIR_REACH: usize = 64;

/// A stretch at the end of a conversation, as it grows.
pub(crate) struct Cut {
    max: u64,
    spent: u64,
    /// Results whose calls have not been met, and how many messages were taken before each.
    open_results: HashMap<String, usize>,
    /// Newest first.
    taken: Vec<Message>,
    /// Whether all that was taken is within the budget.
    taken_fits: bool,
    /// How many of the taken make the longest stretch that begins at a sound place.
    sound: usize,
}

impl Cut {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            max,
            spent: 0,
            open_results: HashMap::new(),
            taken: Vec::new(),
            taken_fits: true,
            sound: 0,
        }
    }

    /// Offers the next older message; `false` when no older one is needed.
    ///
    /// A summary right before the stretch is taken beyond the budget: without it all that it
    /// stands for would be lost.
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
        // Past the budget only to reach the call of a result that the newest messages hold.
        fits || self.sound == 0
    }

    /// Takes a summary. Calls whose results were met lie under it or before it: what came of them
    /// is told by it, and the stretch may begin here.
    fn take_summary(&mut self, message: Message) {
        self.open_results.clear();
        self.take(message);
    }

    fn take(&mut self, message: Message) {
        // Within a message parts stand oldest first, so a call closes results met before it.
        for part in message.parts.iter().rev() {
            let Part::Tool(tool) = part else { continue };
            if tool.input.is_some() {
                self.open_results.remove(&tool.call_id);
            } else if tool.output.is_some() || tool.error_text.is_some() {
                self.open_results.insert(tool.call_id.clone(), self.taken.len());
            }
        }
        self.taken.push(message);
        let count = self.taken.len();
        self.open_results.retain(|_, since| *since + PAIR_REACH > count);
        if self.open_results.is_empty() {
            self.sound = count;
        }
    }

    /// Returns the stretch, oldest first.
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

    /// Messages drawn as letters, oldest first: `c` calls a tool, `r` is its result, `s` a
    /// summary, `o` a result without a call, others plain. Returns what is left of them.
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
    fn a_stretch_fits_and_begins_at_a_sound_place() {
        for (drawn, max, stretch) in [
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
            assert_eq!(cut(drawn, max), stretch, "{drawn} cut at {max}");
        }
    }

    #[test]
    fn a_result_without_a_call_does_not_hold_the_stretch_open() {
        let drawn = format!("{}o{}", "u".repeat(200), "a".repeat(10));
        assert_eq!(cut(&drawn, 150).len(), 150);
    }

    #[test]
    fn nothing_offered_leaves_nothing() {
        assert!(Cut::new(5).finish().is_empty());
    }
}
