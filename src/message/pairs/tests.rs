//! Each rule of pairing by its name, on conversations drawn as words.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::message::Part;

/// A message drawn as a word: `c1` is a call, `r1` a result, `b1` both, `i1` a call without input,
/// `d1` a denial, `q1` both with another input; others are text. `+` joins parts of one message.
fn message(word: &str) -> Message {
    let mut message = Message::new("assistant", Vec::new());
    for part in word.split('+') {
        let (kind, id) = part.split_at(1);
        let fields = match kind {
            "c" => json!({"input": {}}),
            "r" => json!({"output": 1}),
            "b" => json!({"input": {}, "output": 1}),
            "q" => json!({"input": {"q": 1}, "output": 1}),
            "i" => json!({}),
            "d" => json!({"state": "output-denied"}),
            _ => {
                message.parts.push(Part::text(part));
                continue;
            }
        };
        let mut whole = json!({"type": "tool-t", "toolCallId": id});
        for (field, value) in fields.as_object().unwrap() {
            whole[field] = value.clone();
        }
        message.parts.push(serde_json::from_value(whole).unwrap());
    }
    message
}

fn messages(drawn: &str) -> Vec<Message> {
    drawn.split_whitespace().map(message).collect()
}

/// Returns what becomes of each result: the place of its call as `message.part`, with `again` if
/// it repeats the call; then the calls that wait.
fn pairings(messages: &[Message]) -> (Vec<String>, Vec<String>) {
    let mut matcher = ToolPairs::default();
    let mut results = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (place, part) in message.parts.iter().enumerate() {
            let Some(tool) = part.tool() else { continue };
            match matcher.take(at, &tool, (at, place)) {
                Pairing::Started | Pairing::Call | Pairing::Complete => {}
                Pairing::Answers((at, place)) => results.push(format!("{at}.{place}")),
                Pairing::Repeats((at, place)) => results.push(format!("{at}.{place} again")),
                Pairing::Stray => results.push("stray".to_owned()),
            }
        }
    }
    let mut waiting: Vec<_> = matcher.waiting().collect();
    waiting.sort_unstable();
    assert_eq!(matcher.is_waiting(), !waiting.is_empty());
    let waiting = waiting.into_iter().map(|(at, place)| format!("{at}.{place}"));
    (results, waiting.collect())
}

#[test]
fn each_rule_pairs_results_with_calls() {
    for (rule, drawn, results, waiting) in [
        ("a result belongs to its call, however far", "c1 u u u u r1", "0.0", ""),
        ("a call without a result waits", "c1 u", "", "0.0"),
        ("a result without a call is stray", "u r1", "stray", ""),
        ("a result before its call is stray", "r1 c1", "stray", "1.0"),
        ("a denial is a result", "c1 d1", "0.0", ""),
        ("results come in any order", "c1+c2 r2 r1", "0.1, 0.0", ""),
        ("an id is used again", "c1 r1 c1 r1", "0.0, 2.0", ""),
        ("the nearest call that waits is answered", "c1 c1 r1", "1.0", "0.0"),
        ("the next result goes to the call before", "c1 c1 r1 r1", "1.0, 0.0", ""),
        ("calls of one message are answered in order", "c1+c1 r1 r1", "0.0, 0.1", ""),
        ("only those that wait are", "c1+r1+c1 r1", "0.0, 0.2", ""),
        ("another result repeats the nearest call", "c1 r1 r1", "0.0, 0.0 again", ""),
        ("of several answered calls, the newest", "c1 r1 c1 r1 r1", "0.0, 2.0, 2.0 again", ""),
        ("both is complete", "b1", "", ""),
        ("both does not wait", "b1 r1", "0.0 again", ""),
        ("both answers the call that it repeats", "c1 b1", "0.0", ""),
        ("however far, and once", "c1 u u b1 b1 r1", "0.0, 4.0 again", ""),
        ("the nearest that it repeats", "c1 c1 b1", "1.0", "0.0"),
        ("of one message, both are two calls", "c1+b1", "", "0.0"),
        ("both of another input answers no other call", "c1 q1", "", "0.0"),
        ("it leaves an earlier call waiting", "c1 q1 r1", "0.0", ""),
        ("both of another id answers no other call", "c1 b2", "", "0.0"),
        ("a call without input does not wait", "i1", "", ""),
        ("it has no result", "i1 r1", "0.0 again", ""),
        ("it leaves an earlier call waiting", "c1 i1 r1", "0.0", ""),
    ] {
        let found = pairings(&messages(drawn));
        assert_eq!(
            (found.0.join(", "), found.1.join(", ")),
            (results.into(), waiting.into()),
            "{rule}"
        );
    }
}

#[test]
fn pairs_across_messages_are_listed_once() {
    for (drawn, pairs) in [
        ("c1+c2 r2+r9 r1+r1 c1+r1 r1+r2 b3 c4", &[(0, 1), (0, 2), (0, 4), (3, 4)][..]),
        ("c1+r1 b2", &[]),
        ("c1 c1 r1 r1", &[(0, 3), (1, 2)]),
        ("c1+c2 b2 u b1", &[(0, 1), (0, 3)]),
        ("b1 r1 i2 r2", &[(0, 1), (2, 3)]),
    ] {
        assert_eq!(pairs_across(&messages(drawn)), pairs, "{drawn}");
    }
}

#[test]
fn cleared_calls_are_forgotten() {
    let mut matcher = ToolPairs::default();
    let (call, result) = (message("c1"), message("r1"));
    let [call, result] = [&call, &result].map(|message| message.parts[0].tool().unwrap());
    matcher.take(0, &call, ());
    matcher.clear();
    assert!(!matcher.is_waiting());
    assert_eq!(matcher.take(1, &result, ()), Pairing::Stray);
}

/// Returns whether a call is still lacking, after the messages were taken newest first.
fn lacks_call(messages: &[Message]) -> bool {
    let mut matcher = NewestFirst::default();
    messages.iter().rev().for_each(|message| matcher.take(message));
    matcher.lacks_call()
}

#[test]
fn each_rule_finds_calls_from_the_end() {
    for (rule, drawn, expected) in [
        ("a result lacks its call", "u r1 u", true),
        ("its call is found", "c1 r1 u", false),
        ("a call of another id is not it", "c2 r1", true),
        ("a later call is not it", "r1 c1", true),
        ("in one message, too", "r1+c1", true),
        ("a call and its result stand in one message", "c1+r1", false),
        ("a denial is a result", "d1", true),
        ("a call is found for all results of its id", "c1 r1 r1", false),
        ("both is a call", "b1 r1", false),
        ("both has its result", "b1", false),
        ("a call without input is a call", "i1 r1", false),
    ] {
        assert_eq!(lacks_call(&messages(drawn)), expected, "{rule}");
    }
}

#[test]
fn a_call_is_looked_for_within_reach() {
    let drawn = |between: usize| messages(&format!("c1 {} r1", "u ".repeat(between)));
    let after_call = |between| lacks_call(&drawn(between)[1..]);
    assert!(after_call(NewestFirst::REACH - 2));
    assert!(!after_call(NewestFirst::REACH - 1));
}

#[test]
fn a_cleared_result_lacks_nothing() {
    let mut matcher = NewestFirst::default();
    matcher.take(&message("r1"));
    matcher.clear();
    assert!(!matcher.lacks_call());
}

proptest! {
    #[test]
    fn both_directions_agree(
        words in prop::collection::vec(
            prop::collection::vec("[crbidq][12]|u", 1..4).prop_map(|parts| parts.join("+")),
            0..NewestFirst::REACH,
        ),
    ) {
        let messages = messages(&words.join(" "));
        for start in 0..messages.len() {
            let planned = &messages[start..];
            let has_stray = pairings(planned).0.iter().any(|result| result == "stray");
            prop_assert_eq!(lacks_call(planned), has_stray, "from {} of {:?}", start, words);
        }
    }
}
