//! The whole policy on random views, and the drawing of views for the tests of its parts.

use proptest::prelude::*;
use serde_json::json;

use super::tokens_of;
use super::*;
use crate::id::CompactionId;
use crate::message::{Message, Part, Role, Tool};
use crate::tokens::Counter;

/// Returns a summary as a history shows it.
pub(super) fn summary(id: &str, text: &str) -> Message {
    Message::assistant(text).with_id(CompactionId::from(id).as_message())
}

/// Draws messages as letters: `A` to `I` are tool calls, `1` to `9` their results, `T` is a call with
/// its result, `s` a summary; others are plain.
pub(super) fn drawn(view: &str) -> Vec<Message> {
    let message = |(at, letter): (usize, char)| {
        let plain = match letter {
            'u' => Message::user(letter),
            _ => Message::assistant(letter),
        };
        let id = |first: u8| (letter as u8 - first).to_string();
        match letter {
            'A'..='I' => plain.with_part(Part::tool_call("t", id(b'A'), json!({}))),
            '1'..='9' => plain.with_part(Part::tool_result("t", id(b'1'), json!("done"))),
            'T' => plain.with_part(Part::Tool(answered("t"))),
            's' => summary(&at.to_string(), "so far"),
            _ => plain,
        }
    };
    view.chars().enumerate().map(message).collect()
}

fn answered(id: &str) -> Tool {
    Tool {
        name: "t".to_owned(),
        call_id: id.to_owned(),
        input: Some(json!({}).into()),
        output: Some(json!("done").into()),
        ..Tool::default()
    }
}

/// Returns the items of messages of 5 tokens each.
pub(super) fn items(messages: &[Message]) -> Vec<Item<'_>> {
    let counter = Counter::default();
    messages.iter().map(|message| Item { tokens: 5, ..Item::of(message, &counter) }).collect()
}

/// Few ids, so that calls and results pair, overlap, come late, are repeated and stay alone.
fn part() -> impl Strategy<Value = Part> {
    let id = || (0..6u8).prop_map(|id| id.to_string());
    prop_oneof![
        3 => (0..40usize).prop_map(|words| "word ".repeat(words).as_str().into()),
        2 => id().prop_map(|id| Part::tool_call("t", id, json!({"n": 1}))),
        2 => id().prop_map(|id| Part::tool_result("t", id, json!({"done": "yes"}))),
        1 => id().prop_map(|id| Part::Tool(answered(&id))),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let parts = || prop::collection::vec(part(), 0..4);
    prop_oneof![
        5 => Just(Message::user("plain and short")),
        5 => parts().prop_map(|parts| Message::new("assistant", parts)),
        1 => (0..9u8).prop_map(|words| summary("s", &"word ".repeat(words.into()))),
    ]
}

/// Text that looks like the marks of a prompt.
fn imitation() -> impl Strategy<Value = String> {
    "(<?[qQ]uote-[0-9]{1,2}>? ?|\n|[a-z\u{e9} ]{0,4}){0,6}"
}

fn options() -> impl Strategy<Value = CompactionOptions> {
    (0..5usize, 0..120u64, 0..5usize).prop_map(|(head, keep, min_tail)| {
        CompactionOptions::default()
            .protect_head(head)
            .keep_recent_tokens(keep)
            .min_tail(min_tail)
            .min_summary_tokens(1)
    })
}

/// Returns the item that holds the call of each result, found by looking back from the result.
///
/// Calls and results of one id nest like brackets. A result without its bracket belongs to the
/// nearest call.
fn calls_of_results(view: &[Item<'_>]) -> Vec<(usize, usize)> {
    let tools: Vec<(usize, &Tool)> = view
        .iter()
        .enumerate()
        .flat_map(|(at, item)| item.message.parts.iter().map(move |part| (at, part)))
        .filter_map(|(at, part)| match part {
            Part::Tool(tool) => Some((at, tool)),
            _ => None,
        })
        .collect();
    let mut pairs = Vec::new();
    for (order, (result, tool)) in tools.iter().enumerate() {
        if tool.input.is_some() {
            continue;
        }
        let before = || tools[..order].iter().rev().filter(|(_, of)| of.call_id == tool.call_id);
        let mut nested = 0;
        let own = before().find(|(_, of)| {
            let is_half = of.input.is_none() || of.output.is_none();
            match of.input.is_some() {
                false => nested += 1,
                true if nested > 0 && is_half => nested -= 1,
                true => return is_half,
            }
            false
        });
        let call = own.or_else(|| before().find(|(_, of)| of.input.is_some()));
        pairs.extend(call.map(|(call, _)| (*call, *result)));
    }
    pairs
}

fn is_whole(range: &std::ops::Range<usize>, pairs: &[(usize, usize)]) -> bool {
    pairs.iter().all(|(call, result)| range.contains(call) == range.contains(result))
}

/// Returns the tokens of the messages in a range, and whether it has messages.
fn worth(view: &[Item<'_>]) -> (u64, bool) {
    let messages = || view.iter().filter(|item| !item.is_summary);
    (messages().map(|item| item.tokens).sum(), messages().next().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_compaction_parts_no_pair_and_keeps_head_and_tail(
        messages in prop::collection::vec(message(), 0..32),
        options in options(),
    ) {
        let counter = Counter::default();
        let view: Vec<_> = messages.iter().map(|message| Item::of(message, &counter)).collect();
        let pairs = calls_of_results(&view);
        let first_summary = view.iter().position(|item| item.is_summary).unwrap_or(view.len());
        let head = options.protect_head.min(first_summary);
        let tail = (0..=view.len())
            .find(|&start| tokens_of(&view[start..]) <= options.tail_tokens())
            .unwrap_or(view.len())
            .min(view.len().saturating_sub(options.min_tail));

        let parts_answer = |place: usize| {
            let is_question = |at: usize| !view[at].is_summary && view[at].message.role == Role::User;
            (1..view.len()).contains(&place) && is_question(place - 1) && !is_question(place)
        };
        // The best of all possible ranges.
        let all = (head..=tail).flat_map(|start| (start..=tail).map(move |end| start..end));
        let best = all
            .filter(|range| is_whole(range, &pairs) && !parts_answer(range.end))
            .filter(|range| worth(&view[range.clone()]).1)
            .map(|range| worth(&view[range]).0)
            .max();

        match boundary(&view, &options) {
            Err(why) => prop_assert_eq!(best, None, "{}", why),
            Ok(range) => {
                prop_assert!(is_whole(&range, &pairs), "{:?}", range);
                prop_assert!(head <= range.start && range.end <= tail, "{:?}", range);
                prop_assert_eq!(best, Some(worth(&view[range.clone()]).0));
                let is_across = |place| {
                    pairs.iter().any(|(call, result)| *call < place && place <= *result)
                };
                if !is_across(head) && !is_across(tail) && !parts_answer(tail) {
                    prop_assert_eq!(range, head..tail, "a summary in the middle is compacted, too");
                }
            }
        }
    }

    #[test]
    fn compacting_makes_a_view_shorter_until_there_is_nothing_to_compact(
        mut messages in prop::collection::vec(message(), 0..32),
        options in options(),
        words in prop::collection::vec(0..60usize, 8),
    ) {
        let counter = Counter::default();
        let overhead = Overhead { prompt: 7, tools: 2 };
        for (round, words) in words.into_iter().enumerate() {
            let view: Vec<_> = messages.iter().map(|message| Item::of(message, &counter)).collect();
            let before = WindowUsage::of(&view, overhead, &options);
            let parts = [before.head, before.summaries, before.middle, before.tail];
            prop_assert_eq!(before.total, 9 + parts.iter().sum::<u64>());
            prop_assert_eq!(before.total, 9 + tokens_of(&view));

            let Ok(range) = boundary(&view, &options) else { break };
            let replaced = tokens_of(&view[range.clone()]);
            prop_assert!(!summary_prompt(&view[range.clone()], &options, Purpose::Range).is_empty());
            let text = "word ".repeat(words);
            let Ok(tokens) = judge(&text, replaced, &counter) else { continue };
            let seen: Vec<_> = [&messages[..range.start], &messages[range.end..]].concat();
            messages.splice(range, [summary(&round.to_string(), &text)]);

            let view: Vec<_> = messages.iter().map(|message| Item::of(message, &counter)).collect();
            let after = WindowUsage::of(&view, overhead, &options);
            prop_assert_eq!(after.total, before.total - replaced + tokens);
            prop_assert!(after.total < before.total);
            prop_assert!(seen.iter().all(|message| messages.contains(message)));
        }
    }

    #[test]
    fn no_text_leaves_its_quotation(
        messages in prop::collection::vec((imitation(), imitation()), 1..8),
    ) {
        let quoting = |(name, words): &(String, String)| {
            Message::new(name.as_str(), vec![
                words.as_str().into(),
                Part::tool_call(name, "c", json!({"in": words})),
                Part::tool_result(name, "c", json!(words)),
            ])
        };
        let hostile: Vec<_> = messages.iter().map(quoting).collect();
        let asked = summary_prompt(&items(&hostile), &CompactionOptions::default(), Purpose::Range);
        let (_, mark) = asked.split_once("begin with ").unwrap();
        let (mark, _) = mark.split_once(' ').unwrap();
        // One for each message, its call and its result, and one at the end. The opening names the mark
        // once more.
        let lines = 3 * messages.len() + 1;
        prop_assert_eq!(asked.lines().filter(|line| line.starts_with(mark)).count(), lines);
        prop_assert_eq!(asked.matches(mark).count(), lines + 1);
        for (_, words) in &messages {
            prop_assert!(asked.contains(words.as_str()));
        }
    }
}

#[test]
fn a_summary_has_a_fifth_of_the_tokens_but_at_least_a_hundred() {
    let options = CompactionOptions::default();
    for (replaced, target) in
        [(0, 100), (1, 100), (504, 100), (505, 101), (509, 101), (510, 102), (100_003, 20_000)]
    {
        assert_eq!(options.target_tokens(replaced), target, "{replaced}");
    }
}

#[test]
fn a_share_is_limited_to_valid_ones() {
    for (share, target) in
        [(2.0, 1_000), (f64::INFINITY, 1_000), (-1.0, 5), (f64::NAN, 5), (0.5, 500)]
    {
        let options = CompactionOptions::default().target_share(share).min_summary_tokens(5);
        assert_eq!(options.target_tokens(1_000), target, "{share}");
    }
}
