//! The boundary: what of a view is compacted.
//!
//! The head is the first messages of the view, up to its first summary; the tail is the last ones,
//! by their tokens. Between them lies what may be compacted. So a summary that stands there is compacted
//! with what came after it: summaries are brought up to date, not stacked.
//!
//! A compaction may begin and end only where the same tool calls wait for their results: then each call
//! is on the side of all its results. Of all such stretches the one is taken that holds the most
//! tokens of messages, which without calls across its ends is all that lies between.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::tool::pairs;
use super::{CompactionOptions, Item};

/// How many pairs of calls and results may lie across a place for it to be looked at as an end of a
/// compact. Agents call a few dozen tools at a time.
const MAX_OPEN_PAIRS: usize = 64;

/// Why nothing is compacted.
///
/// ```
/// use talktree::NothingToCompact;
///
/// let why = NothingToCompact::TooShort { messages: 4, least: 6 };
/// assert_eq!(why.to_string(), "the view has 4 messages; from 6 on there may be something to compact");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingToCompact {
    /// Head and the least tail take up the view.
    #[error("the view has {messages} messages; from {least} on there may be something to compact")]
    TooShort {
        /// How many messages and summaries the view has.
        messages: usize,
        /// How many it needs.
        least: usize,
    },
    /// Head and tail meet: what was said is within the tokens to keep.
    #[error(
        "nothing lies between the first {head} and the last {tail} messages, which hold {tail_tokens} tokens"
    )]
    NothingBetween {
        /// How many messages at the start are protected.
        head: usize,
        /// How many messages at the end are protected.
        tail: usize,
        /// How many tokens those at the end hold.
        tail_tokens: u64,
    },
    /// All that lies between head and tail is compacted already.
    #[error("between head and tail lie only summaries: {summaries}")]
    OnlySummaries {
        /// How many.
        summaries: usize,
    },
    /// Wherever a compaction between head and tail began and ended, it would part a tool call from its
    /// result.
    #[error(
        "none of the {messages} messages between head and tail can be compacted without parting a tool call from its result"
    )]
    PairsInTheWay {
        /// How many messages and summaries lie between head and tail.
        messages: usize,
    },
}

/// The parts of a view, by where they end and begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zones {
    /// Where the head ends; in a short view after the view's end.
    pub(super) head: usize,
    /// Where the tail begins; in a short view before the head's end.
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

/// Returns the stretch of the view to compact: places of the first item of it and of the first after.
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
            tail_tokens: super::item::tokens_of(recent),
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

/// Returns how far into the middle is compacted at once: at least one message of it.
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

/// What lies between the start of the middle and a place in it; greater is more worth compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Weight {
    /// The tokens of messages; summaries have been compacted already.
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

/// The pairs that lie across a place, as the place moves on.
struct Across {
    /// In the order of their calls.
    pairs: Vec<(usize, usize)>,
    /// The same by number, in the order of their results.
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

    /// Returns the pairs whose calls stand before the place and whose results do not.
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

/// Returns the stretch of the middle, up to `enough`, that holds the most and parts no pair; of
/// equals the earliest. Where there is none, the one that ends soonest behind that.
///
/// A stretch parts no pair just if the same pairs lie across its two ends.
fn weightiest(view: &[Item<'_>], middle: Range<usize>, enough: usize) -> Option<Range<usize>> {
    let mut across = Across::new(pairs(view));
    // The first place that certain pairs and no others lie across.
    let mut firsts: HashMap<Vec<usize>, (usize, Weight)> = HashMap::new();
    let mut key = Vec::new();
    let mut weight = Weight::default();
    let mut best: Option<(Weight, Range<usize>)> = None;
    for place in middle.start..=middle.end {
        if place > enough && best.is_some() {
            break;
        }
        let open = across.move_to(place);
        if open.len() <= MAX_OPEN_PAIRS {
            key.clear();
            key.extend(open);
            if let Some(&(first, before)) = firsts.get(&key) {
                let held = weight.since(before);
                let is_most = best.as_ref().is_none_or(|(most, _)| held > *most);
                if held.messages > 0 && is_most {
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
    best.map(|(_, stretch)| stretch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{drawn, items};
    use super::*;
    use crate::message::{Message, Part};

    /// A view drawn as in [`drawn`], compacted with no tokens kept: the stretch in brackets, or why not.
    #[track_caller]
    fn compacted(view: &str, options: &CompactionOptions) -> String {
        let messages = drawn(view);
        match boundary(&items(&messages), options) {
            Err(why) => why.to_string(),
            Ok(stretch) => {
                let letters: Vec<char> = view.chars().collect();
                let text = |range: &[char]| range.iter().collect::<String>();
                let (before, after) = (&letters[..stretch.start], &letters[stretch.end..]);
                format!("{}[{}]{}", text(before), text(&letters[stretch.clone()]), text(after))
            }
        }
    }

    #[test]
    fn what_lies_between_head_and_tail_is_compacted() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (view, expected) in [
            ("uauaua", "uau[a]ua"),
            ("uauauauaua", "uau[auaua]ua"),
            // A summary ends the head and is compacted with what came after it.
            ("uausuaua", "uau[sua]ua"),
            ("usauaua", "u[saua]ua"),
            ("suaua", "[sua]ua"),
            // All of them are, and what stands before them where the head is shorter.
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
            // `A` calls, `1` is its result; the start goes past results.
            ("uuA1uuuu", "uuA1[uu]uu"),
            ("uuAB12uuuu", "uuAB12[uu]uu"),
            ("uuAuuu1uuuuuu", "uuAuuu1[uuuu]uu"),
            // The end goes back to before the call.
            ("uuuuuA1u", "uuu[uu]A1u"),
            ("uuuuuAuu1u", "uuu[uu]Auu1u"),
            ("uuuuuAB12u", "uuu[uu]AB12u"),
            ("uuuuuABu1u2u", "uuu[uu]ABu1u2u"),
            // Whole pairs are compacted.
            ("uuuA1uu", "uuu[A1]uu"),
            ("uuuAB2u1uu", "uuu[AB2u1]uu"),
            // Halves without the other are no pair; a call and its result in one part are none.
            ("uuu1uuu", "uuu[1u]uu"),
            ("uuuAuuu", "uuu[Au]uu"),
            ("uuTTuuu", "uuT[Tu]uu"),
            // Between a call of the head and its late result, where that is more.
            ("uuAuuuuu1u", "uuA[uuuuu]1u"),
            ("uuAuuuuu1uuu", "uuA[uuuuu]1uuu"),
            // An id that is used again.
            ("uuuA1uA1u", "uuu[A1u]A1u"),
        ] {
            assert_eq!(compacted(view, &options), expected, "{view}");
        }
    }

    #[test]
    fn a_late_result_in_the_middle_does_not_keep_what_is_around_it() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        // First what is more, then the rest: nothing stays for ever but the call and its result.
        assert_eq!(compacted("uuAuuuu1uuuuuuu", &options), "uuAuuuu1[uuuuu]uu");
        assert_eq!(compacted("uuAuuuu1suu", &options), "uuA[uuuu]1suu");
        assert_eq!(compacted("uuAs1suuuu", &options), "uuAs1[suu]uu");
    }

    #[test]
    fn what_is_too_long_for_one_prompt_is_compacted_in_steps() {
        // Each message has 5 tokens.
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (max, view, expected) in [
            (15, "uauauauaua", "uau[aua]uaua"),
            (19, "uauauauaua", "uau[aua]uaua"),
            (25, "uauauauaua", "uau[auaua]ua"),
            (15, "uausauaua", "uau[sau]aua"),
            // At least one message, whatever the limit; a summary alone would be no step.
            (0, "uauauauaua", "uau[a]uauaua"),
            (0, "uausauaua", "uau[sa]uaua"),
            // A pair that is longer than a step is compacted whole, and no more with it.
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
    fn why_nothing_is_compacted_is_told() {
        let options = CompactionOptions::default().keep_recent_tokens(0);
        for (view, why) in [
            ("", "the view has 0 messages; from 6 on there may be something to compact"),
            ("uauau", "the view has 5 messages; from 6 on there may be something to compact"),
            ("uausua", "between head and tail lie only summaries: 1"),
            ("uaussua", "between head and tail lie only summaries: 2"),
            (
                "uuA1uu",
                "none of the 1 messages between head and tail can be compacted without parting a tool call from its result",
            ),
            (
                "uuuA1u",
                "none of the 1 messages between head and tail can be compacted without parting a tool call from its result",
            ),
        ] {
            assert_eq!(compacted(view, &options), why, "{view}");
        }
        assert_eq!(
            compacted("uauauaua", &options.keep_recent_tokens(1_000)),
            "nothing lies between the first 3 and the last 8 messages, which hold 40 tokens"
        );
    }

    #[test]
    fn the_tail_is_kept_by_its_tokens() {
        // Each message has 5 tokens.
        for (keep, min_tail, expected) in [
            (0, 2, "uau[auaua]ua"),
            (14, 2, "uau[auaua]ua"),
            (15, 2, "uau[auau]aua"),
            (19, 2, "uau[auau]aua"),
            (25, 2, "uau[au]auaua"),
            (0, 1, "uau[auauau]a"),
            (0, 0, "uau[auauau]a"),
            (5, 4, "uau[aua]uaua"),
        ] {
            let options = CompactionOptions::default().keep_recent_tokens(keep).min_tail(min_tail);
            assert_eq!(compacted("uauauauaua", &options), expected, "{keep}, {min_tail}");
        }
    }

    #[test]
    fn limits_of_any_size_are_taken() {
        let all = CompactionOptions::default().min_tail(usize::MAX).protect_head(usize::MAX);
        let why = compacted("uauauaua", &all);
        assert!(why.starts_with("the view has 8 messages"), "{why}");
        let none = CompactionOptions::default().protect_head(0).keep_recent_tokens(0);
        assert_eq!(compacted("uaua", &none), "[ua]ua");
    }

    #[test]
    fn places_that_very_many_pairs_lie_across_are_no_ends() {
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
