//! The policy as a whole, on random views; and how views are drawn for the tests of its parts.

use proptest::prelude::*;
use serde_json::json;

use super::item::tokens_of;
use super::tool::is_call;
use super::*;
use crate::id::CompactionId;
use crate::message::{Message, Part, tool_of};
use crate::tokens::Counter;

/// Returns a summary as a history shows it.
pub(super) fn summary(id: &str, text: &str) -> Message {
    Message::assistant(text).with_id(CompactionId::from(id).as_message())
}

/// Messages drawn as letters: `A` to `I` call a tool, `1` to `9` are the results, `T` is a call with
/// its result, `s` a summary, others are plain.
pub(super) fn drawn(view: &str) -> Vec<Message> {
    let message = |(at, letter): (usize, char)| {
        let plain = Message::user(letter);
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

fn answered(id: &str) -> crate::message::Tool {
    crate::message::Tool {
        name: "t".to_owned(),
        call_id: id.to_owned(),
        input: Some(json!({}).into()),
        output: Some(json!("done").into()),
        ..crate::message::Tool::default()
    }
}

/// Returns the items of messages of 5 tokens each.
pub(super) fn items(messages: &[Message]) -> Vec<Item<'_>> {
    let counter = Counter::default();
    messages.iter().map(|message| Item { tokens: 5, ..Item::of(message, &counter) }).collect()
}

/// A part of a random message; ids are few, so that they pair, run in parallel, come late, are
/// used again and stay alone.
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

/// Words that look like marks of a prompt.
fn imitation() -> impl Strategy<Value = String> {
    "(<?[fF]old-[0-9]{1,2}>? ?|\n|[a-z\u{e9} ]{0,4}){0,6}"
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

/// Returns the item that holds the call of each result, found by looking back from it.
fn calls_of_results(view: &[Item<'_>]) -> Vec<(usize, usize)> {
    let tools: Vec<(usize, bool, String)> = view
        .iter()
        .enumerate()
        .flat_map(|(at, item)| item.message.parts.iter().map(move |part| (at, part)))
        .filter_map(|(at, part)| Some((at, tool_of(part)?)))
        .map(|(at, tool)| (at, is_call(&tool), tool.call_id.clone()))
        .collect();
    let mut pairs = Vec::new();
    for (order, (result, is_call, id)) in tools.iter().enumerate() {
        let call = tools[..order].iter().rev().find(|(_, is_call, of)| *is_call && of == id);
        if let Some((call, ..)) = call
            && !is_call
        {
            pairs.push((*call, *result));
        }
    }
    pairs
}

fn is_whole(stretch: &std::ops::Range<usize>, pairs: &[(usize, usize)]) -> bool {
    pairs.iter().all(|(call, result)| stretch.contains(call) == stretch.contains(result))
}

/// Returns the tokens of the messages in a stretch, and whether there are any.
fn worth(view: &[Item<'_>]) -> (u64, bool) {
    let messages = || view.iter().filter(|item| !item.is_summary);
    (messages().map(|item| item.tokens).sum(), messages().next().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_compaction_keeps_pairs_whole_and_head_and_tail_as_they_are(
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

        // The best of all stretches, by trying each.
        let all = (head..=tail).flat_map(|start| (start..=tail).map(move |end| start..end));
        let best = all
            .filter(|stretch| is_whole(stretch, &pairs) && worth(&view[stretch.clone()]).1)
            .map(|stretch| worth(&view[stretch]).0)
            .max();

        match boundary(&view, &options) {
            Err(why) => prop_assert_eq!(best, None, "{}", why),
            Ok(stretch) => {
                prop_assert!(is_whole(&stretch, &pairs), "{:?}", stretch);
                prop_assert!(head <= stretch.start && stretch.end <= tail, "{:?}", stretch);
                prop_assert_eq!(best, Some(worth(&view[stretch.clone()]).0));
                let is_across = |place| {
                    pairs.iter().any(|(call, result)| *call < place && place <= *result)
                };
                if !is_across(head) && !is_across(tail) {
                    prop_assert_eq!(stretch, head..tail, "summaries are brought up to date");
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
        for (round, words) in words.into_iter().enumerate() {
            let view: Vec<_> = messages.iter().map(|message| Item::of(message, &counter)).collect();
            let before = WindowUsage::of(&view, 9, &options);
            let parts = [before.head, before.summaries, before.middle, before.tail];
            prop_assert_eq!(before.total, 9 + parts.iter().sum::<u64>());
            prop_assert_eq!(before.total, 9 + tokens_of(&view));

            let Ok(stretch) = boundary(&view, &options) else { break };
            let replaced = tokens_of(&view[stretch.clone()]);
            prop_assert!(!summary_prompt(&view[stretch.clone()], &options, Purpose::Stretch).is_empty());
            let text = "word ".repeat(words);
            let Ok(tokens) = judge(&text, replaced, &counter) else { continue };
            let seen: Vec<_> = [&messages[..stretch.start], &messages[stretch.end..]].concat();
            messages.splice(stretch, [summary(&round.to_string(), &text)]);

            let view: Vec<_> = messages.iter().map(|message| Item::of(message, &counter)).collect();
            let after = WindowUsage::of(&view, 9, &options);
            prop_assert_eq!(after.total, before.total - replaced + tokens);
            prop_assert!(after.total < before.total);
            prop_assert!(seen.iter().all(|message| messages.contains(message)));
        }
    }

    #[test]
    fn no_words_leave_their_quotation(
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
        let asked = summary_prompt(&items(&hostile), &CompactionOptions::default(), Purpose::Stretch);
        let (_, mark) = asked.split_once("begin with ").unwrap();
        let (mark, _) = mark.split_once(' ').unwrap();
        // One for each message, its call and its result, and one at the end; one is told before.
        let lines = 3 * messages.len() + 1;
        prop_assert_eq!(asked.lines().filter(|line| line.starts_with(mark)).count(), lines);
        prop_assert_eq!(asked.matches(mark).count(), lines + 1);
        for (_, words) in &messages {
            prop_assert!(asked.contains(words.as_str()));
        }
    }
}
