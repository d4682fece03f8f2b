//! The boundary: which range of a view is compacted.
//!
//! The head is the first messages of the view, up to its first summary. The tail is the last messages,
//! up to a number of tokens. The range lies in the middle between them. So a summary in the middle is
//! compacted together with the messages after it: the new summary updates it, and summaries do not
//! pile up.
//!
//! A range may begin and end only where the same tool calls wait for their results: then it holds
//! a call and all its results, or none of them. It does not end between a question and its answer:
//! whoever goes back to the question has it. Of all such ranges, the one with the most tokens of
//! messages is taken. If no call waits at the ends of the middle, that is the whole middle.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::{CompactionOptions, Item};
use crate::message::{asks, pairs_across};

/// How many pairs may have their call before a place and their result after it, for the place to be
/// considered as an end of the range. Agents call a few dozen tools at a time.
const MAX_OPEN_PAIRS: usize = 64;

/// Why nothing is compacted.
///
/// ```
/// use talktree::NothingToCompact;
///
/// let why = NothingToCompact::TooShort { messages: 4, least: 6 };
/// assert_eq!(why.to_string(), "the view has 4 messages; at least 6 are needed to compact any");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingToCompact {
    /// The view has no more messages than the head and the least tail.
    #[error("the view has {messages} messages; at least {least} are needed to compact any")]
    TooShort {
        /// How many messages and summaries the view has.
        messages: usize,
        /// How many are needed.
        least: usize,
    },
    /// Head and tail meet: the rest of the view is within the tokens to keep.
    #[error(
        "there are no messages {} the last {tail}, which have {tail_tokens} tokens",
        match head {
            0 => "before".to_owned(),
            head => format!("between the first {head} and"),
        }
    )]
    NothingBetween {
        /// How many messages at the start are protected.
        head: usize,
        /// How many messages at the end are protected.
        tail: usize,
        /// How many tokens the messages at the end have.
        tail_tokens: u64,
    },
    /// Everything between head and tail is compacted already.
    #[error("only summaries are between head and tail: {summaries}")]
    OnlySummaries {
        /// How many summaries.
        summaries: usize,
    },
    /// Each possible range between head and tail would part a tool call from its result, or a question from its answer.
    #[error(
        "none of the {messages} messages between head and tail can be compacted without parting a tool call from its result, or a question from its answer"
    )]
    PairsInTheWay {
        /// How many messages and summaries are between head and tail.
        messages: usize,
    },
    /// The summarizer, or the session's own [`CompactionPolicy`](crate::CompactionPolicy), declined.
    #[error("the summarizer or the compaction policy declined")]
    Declined,
}

/// Where the head and the tail of a view end and begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zones {
    /// Where the head ends; in a short view, after the end of the view.
    pub(super) head: usize,
    /// Where the tail begins; in a short view, before the end of the head.
    pub(super) tail: usize,
}

impl Zones {
    pub(super) fn of(view: &[Item<'_>], options: &CompactionOptions) -> Self {
        let first_summary = view.iter().take(options.protect_head).position(|item| item.is_summary);
        let head = first_summary.unwrap_or(options.protect_head);
        let (mut tail, mut tokens) = (view.len(), 0u64);
        for item in view.iter().rev() {
            tokens = tokens.saturating_add(item.tokens);
            if tokens > options.tail_tokens() && view.len() - tail >= options.min_tail {
                break;
            }
            tail -= 1;
        }
        Self { head, tail }
    }
}

/// Returns the range of the view to compact, or why there is none.
pub(crate) fn boundary(
    view: &[Item<'_>],
    options: &CompactionOptions,
) -> Result<Range<usize>, NothingToCompact> {
    let zones = Zones::of(view, options);
    let least = zones.head.saturating_add(options.min_tail).saturating_add(1);
    if view.len() < least {
        return Err(NothingToCompact::TooShort { messages: view.len(), least });
    }
    if zones.tail <= zones.head {
        let recent = &view[zones.tail..];
        return Err(NothingToCompact::NothingBetween {
            head: zones.head,
            tail: recent.len(),
            tail_tokens: super::tokens_of(recent),
        });
    }
    let middle = &view[zones.head..zones.tail];
    if middle.iter().all(|item| item.is_summary) {
        return Err(NothingToCompact::OnlySummaries { summaries: middle.len() });
    }
    let step = step_end(view, zones.head..zones.tail, options.max_step_tokens);
    weightiest(view, zones.head..zones.tail, step)
        .ok_or(NothingToCompact::PairsInTheWay { messages: middle.len() })
}

/// Returns where the part of the middle ends that is compacted at once: at least one message.
fn step_end(view: &[Item<'_>], middle: Range<usize>, max_tokens: u64) -> usize {
    let (mut tokens, mut has_message) = (0u64, false);
    for at in middle.clone() {
        tokens = tokens.saturating_add(view[at].tokens);
        if tokens > max_tokens && has_message {
            return at;
        }
        has_message |= !view[at].is_summary;
    }
    middle.end
}

/// The items between the start of the middle and a place. The greatest weight is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Weight {
    /// The tokens of messages. Summaries do not count: they are compacted already.
    tokens: u64,
    messages: usize,
    items: usize,
}

impl Weight {
    fn add(&mut self, item: &Item<'_>) {
        self.items += 1;
        if !item.is_summary {
            self.messages += 1;
            self.tokens = self.tokens.saturating_add(item.tokens);
        }
    }

    fn since(self, start: Self) -> Self {
        Self {
            tokens: self.tokens - start.tokens,
            messages: self.messages - start.messages,
            items: self.items - start.items,
        }
    }
}

/// The pairs with their call before a place and their result after it, while the place moves on.
struct Across {
    /// Calls and results, ordered by the calls.
    pairs: Vec<(usize, usize)>,
    /// Indexes into `pairs`, ordered by the results.
    by_result: Vec<usize>,
    opened: usize,
    closed: usize,
    open: BTreeSet<usize>,
}

impl Across {
    fn new(pairs: Vec<(usize, usize)>) -> Self {
        let mut by_result: Vec<usize> = (0..pairs.len()).collect();
        by_result.sort_unstable_by_key(|&pair| pairs[pair].1);
        Self { pairs, by_result, opened: 0, closed: 0, open: BTreeSet::new() }
    }

    /// Returns the pairs whose call is before the place and whose result is not.
    fn move_to(&mut self, place: usize) -> &BTreeSet<usize> {
        while self.pairs.get(self.opened).is_some_and(|(call, _)| *call < place) {
            self.open.insert(self.opened);
            self.opened += 1;
        }
        while let Some(pair) = self.by_result.get(self.closed)
            && self.pairs[*pair].1 < place
        {
            self.open.remove(pair);
            self.closed += 1;
        }
        &self.open
    }
}

/// Returns whether the message before a place is a question, and the one at it is not.
fn parts_answer(view: &[Item<'_>], place: usize) -> bool {
    let is_question = |at: usize| view.get(at).map(|item| !item.is_summary && asks(item.message));
    is_question(place - 1) == Some(true) && is_question(place) == Some(false)
}

/// Returns the range with the greatest weight that parts no pair and ends at `enough` or before; the
/// earliest of equal ones. If there is none, the range that ends first after `enough`.
///
/// A range parts no pair exactly if the same pairs are open at both of its ends.
fn weightiest(view: &[Item<'_>], middle: Range<usize>, enough: usize) -> Option<Range<usize>> {
    let mut across = Across::new(pairs_across(view.iter().map(|item| item.message)));
    // The first place for each set of open pairs.
    let mut firsts: HashMap<Vec<usize>, (usize, Weight)> = HashMap::new();
    let mut key = Vec::new();
    let mut weight = Weight::default();
    let mut best: Option<(Weight, Range<usize>)> = None;
    for place in middle.start..=middle.end {
        if place > enough && best.is_some() {
            break;
        }
        let open = across.move_to(place);
        let parts_answer = place > middle.start && parts_answer(view, place);
        if open.len() <= MAX_OPEN_PAIRS {
            key.clear();
            key.extend(open);
            if let Some(&(first, before)) = firsts.get(&key) {
                let held = weight.since(before);
                let is_most = best.as_ref().is_none_or(|(most, _)| held > *most);
                if held.messages > 0 && is_most && !parts_answer {
                    best = Some((held, first..place));
                }
            } else {
                firsts.insert(key.clone(), (place, weight));
            }
        }
        if let Some(item) = view.get(place) {
            weight.add(item);
        }
    }
    best.map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{drawn, items};
    use super::*;
    use crate::message::{Message, Part};

    /// Draws the range to compact in brackets, or returns why there is none.
    #[track_caller]
    fn compacted(view: &str, options: &CompactionOptions) -> String {
        let messages = drawn(view);
        match boundary(&items(&messages), options) {
            Err(why) => why.to_string(),
            Ok(range) => {
                let letters: Vec<char> = view.chars().collect();
                let text = |range: &[char]| range.iter().collect::<String>();
                let (before, after) = (&letters[..range.start], &letters[range.end..]);
                format!("{}[{}]{}", text(before), text(&letters[range.clone()]), text(after))
            }
        }
    }

    #[test]
    fn the_middle_between_head_and_tail_is_compacted() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (view, expected) in [
            ("uauaua", "uau[a]ua"),
            ("uauauauaua", "uau[auaua]ua"),
            // A summary ends the head and is compacted with the messages after it.
            ("uausuaua", "uau[sua]ua"),
            ("usauaua", "u[saua]ua"),
            ("suaua", "[sua]ua"),
            // So are several summaries, and messages before them if the head is shorter.
            ("uauasasua", "uau[asas]ua"),
            ("uausaua", "uau[sa]ua"),
        ] {
            assert_eq!(compacted(view, &options), expected, "{view}");
        }
    }

    #[test]
    fn calls_stay_with_their_results() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (view, expected) in [
            // `A` is a call, `1` its result: the range begins after the result.
            ("uuA1uuuu", "uuA1[uu]uu"),
            ("uuAB12uuuu", "uuAB12[uu]uu"),
            ("uuAuuu1uuuuuu", "uuAuuu1[uuuu]uu"),
            // The range ends before the call.
            ("uuuaaA1u", "uuu[aa]A1u"),
            ("uuuaaAuu1u", "uuu[aa]Auu1u"),
            ("uuuaaAB12u", "uuu[aa]AB12u"),
            ("uuuaaABu1u2u", "uuu[aa]ABu1u2u"),
            // Whole pairs are compacted.
            ("uuuA1uu", "uuu[A1]uu"),
            ("uuuAB2u1uu", "uuu[AB2u1]uu"),
            // A call or a result alone is no pair, and neither is a call with its result in one part.
            ("uuu1uuu", "uuu[1u]uu"),
            ("uuuAuuu", "uuu[Au]uu"),
            ("uuTTuuu", "uuT[Tu]uu"),
            // Between a call in the head and its late result, if that has the greater weight.
            ("uuAaaaaa1u", "uuA[aaaaa]1u"),
            ("uuAaaaaa1uuu", "uuA[aaaaa]1uuu"),
            // An id is used again.
            ("uuuA1uA1u", "uuu[A1]uA1u"),
        ] {
            assert_eq!(compacted(view, &options), expected, "{view}");
        }
    }

    #[test]
    fn a_question_stays_with_its_answer() {
        let options = CompactionOptions::default().keep_recent_tokens(0).protect_head(1);
        for (view, expected) in [
            // The tail begins with an answer.
            ("uauaua", "u[aua]ua"),
            ("uauuaa", "u[au]uaa"),
            ("uauA1a", "u[a]uA1a"),
            // In a long answer the question is compacted with a part of it.
            ("uauA1A1aa", "u[auA1A1]aa"),
        ] {
            assert_eq!(compacted(view, &options), expected, "{view}");
        }
    }

    #[test]
    fn a_late_result_does_not_keep_the_messages_around_it() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        // First the side with the greater weight, then the other: only the call and its result stay.
        assert_eq!(compacted("uuAuuuu1uuuuuuu", &options), "uuAuuuu1[uuuuu]uu");
        assert_eq!(compacted("uuAaaaa1suu", &options), "uuA[aaaa]1suu");
        assert_eq!(compacted("uuAs1suuuu", &options), "uuAs1[suu]uu");
    }

    #[test]
    fn a_range_that_is_too_long_for_one_prompt_is_compacted_in_steps() {
        // Each message has 5 tokens.
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (max, view, expected) in [
            (15, "uauauauaua", "uau[aua]uaua"),
            (19, "uauauauaua", "uau[aua]uaua"),
            (25, "uauauauaua", "uau[auaua]ua"),
            (15, "uausauaua", "uau[sa]uaua"),
            // A step has at least one message, whatever the limit, besides the summary.
            (0, "uauauauaua", "uau[a]uauaua"),
            (0, "uausauaua", "uau[sa]uaua"),
            // A pair that is longer than a step is compacted whole, without further messages.
            (5, "uuuA1uu", "uuu[A1]uu"),
            (5, "uuuA1uuuuuu", "uuu[A1]uuuuuu"),
            (5, "uuuAB12uuuuuu", "uuu[AB12]uuuuuu"),
            (5, "uuuAuuu1uuuuuu", "uuuA[u]uu1uuuuuu"),
        ] {
            assert_eq!(
                compacted(view, &options.clone().max_step_tokens(max)),
                expected,
                "{max}: {view}"
            );
        }
    }

    #[test]
    fn a_view_with_nothing_to_compact_says_why() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (view, why) in [
            ("", "the view has 0 messages; at least 6 are needed to compact any"),
            ("uauau", "the view has 5 messages; at least 6 are needed to compact any"),
            ("uausua", "only summaries are between head and tail: 1"),
            ("uaussua", "only summaries are between head and tail: 2"),
            (
                "uuA1uu",
                "none of the 1 messages between head and tail can be compacted without parting a tool call from its result, or a question from its answer",
            ),
            (
                "uuuA1u",
                "none of the 1 messages between head and tail can be compacted without parting a tool call from its result, or a question from its answer",
            ),
        ] {
            assert_eq!(compacted(view, &options), why, "{view}");
        }
        assert_eq!(
            compacted("uauauaua", &options.clone().keep_recent_tokens(1_000)),
            "there are no messages between the first 3 and the last 8, which have 40 tokens"
        );
        assert_eq!(
            compacted("uauauaua", &options.keep_recent_tokens(1_000).protect_head(0)),
            "there are no messages before the last 8, which have 40 tokens"
        );
    }

    #[test]
    fn the_tail_is_kept_by_its_tokens() {
        // Each message has 5 tokens.
        for (keep, min_tail, expected) in [
            (0, 2, "uau[auaua]ua"),
            (14, 2, "uau[auaua]ua"),
            (15, 2, "uau[aua]uaua"),
            (19, 2, "uau[aua]uaua"),
            (25, 2, "uau[a]uauaua"),
            (0, 1, "uau[auaua]ua"),
            (0, 0, "uau[auaua]ua"),
            (5, 4, "uau[aua]uaua"),
        ] {
            let options = CompactionOptions::default().keep_recent_tokens(keep).min_tail(min_tail);
            assert_eq!(compacted("uauauauaua", &options), expected, "{keep}, {min_tail}");
        }
    }

    #[test]
    fn limits_of_any_size_are_accepted() {
        let all = CompactionOptions::default().min_tail(usize::MAX).protect_head(usize::MAX);
        let why = compacted("uauauaua", &all);
        assert!(why.starts_with("the view has 8 messages"), "{why}");
        let none = CompactionOptions::default().protect_head(0).keep_recent_tokens(0);
        assert_eq!(compacted("uaua", &none), "[ua]ua");
    }

    #[test]
    fn a_range_does_not_end_where_very_many_calls_wait() {
        let part = |at: usize, role: char| {
            let call_id = at.to_string();
            Message::user(role).with_part(match role {
                'c' => Part::tool_call("t", call_id, json!({})),
                _ => Part::tool_result("t", call_id, json!("done")),
            })
        };
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (pairs, expected) in [
            (MAX_OPEN_PAIRS, Ok(MAX_OPEN_PAIRS..MAX_OPEN_PAIRS + 2)),
            (MAX_OPEN_PAIRS + 1, Err(NothingToCompact::PairsInTheWay { messages: 2 })),
        ] {
            let calls = (0..pairs).map(|at| part(at, 'c'));
            let between = [Message::user("u"), Message::user("u")];
            let results = (0..pairs).map(|at| part(at, 'r'));
            let messages: Vec<_> = calls.chain(between).chain(results).collect();
            let options = options.clone().protect_head(pairs).min_tail(pairs);
            assert_eq!(boundary(&items(&messages), &options), expected);
        }
    }
}
