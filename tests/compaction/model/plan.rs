//! Checks a plan against the view it was made from.

use std::ops::Range;

use talktree::{
    CompactionId, CompactionOptions, CompactionPlan, Message, MessageId, NothingToCompact, Part,
    Role, Tool, WindowUsage,
};

use crate::model::count::Count;

/// Returns the positions of a plan's range in its view.
pub(super) fn range_of(view: &[Message], plan: &CompactionPlan) -> Range<usize> {
    let place = |id: &MessageId| view.iter().position(|item| item.id == *id).unwrap();
    place(plan.first())..place(plan.last()) + 1
}

fn is_summary(message: &Message) -> bool {
    CompactionId::from_message(&message.id).is_some()
}

/// Returns the positions of calls and of their results in other messages, found by looking through all calls for each part.
///
/// A result belongs to the first call that waits in the nearest message that has one, else to the nearest call. A part that is
/// both belongs to a call that it repeats, if one waits.
fn pairs(view: &[Message]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    // All calls so far, each with its message and whether it waits.
    let mut calls: Vec<(usize, &Tool, bool)> = Vec::new();
    for (at, message) in view.iter().enumerate() {
        for part in &message.parts {
            let Part::Tool(tool) = part else { continue };
            let (is_call, is_result) = (tool.input.is_some(), tool.output.is_some());
            let waits = |(from, of, waits): &(usize, &Tool, bool)| {
                let repeats = *from < at && of.name == tool.name && of.input == tool.input;
                *waits && of.call_id == tool.call_id && (!is_call || repeats)
            };
            let nearest =
                calls.iter().filter(|call| is_result && waits(call)).map(|(from, ..)| *from).max();
            let answered = nearest
                .and_then(|nearest| calls.iter().position(|call| call.0 == nearest && waits(call)));
            if let Some(answered) = answered {
                calls[answered].2 = false;
                pairs.push((calls[answered].0, at));
            } else if is_call {
                calls.push((at, tool, !is_result));
            } else if let Some((from, ..)) =
                calls.iter().rev().find(|(_, of, _)| of.call_id == tool.call_id)
            {
                pairs.push((*from, at));
            }
        }
    }
    pairs.retain(|(call, result)| call < result);
    pairs
}

/// Returns where the head ends and where the tail begins.
///
/// The options have no getters, so their `Debug` text is parsed.
fn zones(view: &[Message], options: &CompactionOptions, count: Count) -> (usize, usize) {
    let drawn = format!("{options:?}");
    let field = |name: &str| -> u64 {
        let (_, rest) = drawn.split_once(&format!("{name}: ")).unwrap();
        let rest = rest.trim_start_matches("Some(");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let first_summary = view.iter().position(is_summary).unwrap_or(view.len());
    let head = first_summary.min(field("protect_head") as usize);
    let fits = |start: &usize| count.all(&view[*start..]) <= field("keep_recent_tokens");
    let tail = (0..=view.len()).find(fits).unwrap_or(view.len());
    let min_tail = field("min_tail").max(1) as usize;
    (head, tail.min(view.len().saturating_sub(min_tail)))
}

/// Checks everything in a plan against the view it was made from.
pub(super) fn check_plan(
    view: &[Message],
    plan: &std::result::Result<CompactionPlan, NothingToCompact>,
    options: &CompactionOptions,
    count: Count,
) {
    let pairs = pairs(view);
    let is_question = |at: usize| view.get(at).map(|message| message.role == Role::User);
    // A range does not end between a question and its answer.
    let is_end = |place: usize| {
        place == 0 || !(is_question(place - 1) == Some(true) && is_question(place) == Some(false))
    };
    let is_whole = |range: &Range<usize>| {
        let holds = |at: &usize| range.contains(at);
        pairs.iter().all(|(call, result)| holds(call) == holds(result)) && is_end(range.end)
    };
    let (head, tail) = zones(view, options, count);
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => {
            for start in head..tail {
                for end in start + 1..=tail {
                    let has_messages = !view[start..end].iter().all(is_summary);
                    assert!(!has_messages || !is_whole(&(start..end)), "{start}..{end}: {why}");
                }
            }
            return;
        }
    };
    let range = range_of(view, plan);
    let compacted = &view[range.clone()];
    assert!(is_whole(&range), "{range:?} separates a call from its result: {pairs:?}");
    assert!(head <= range.start && range.end <= tail, "{range:?} in {head}..{tail}");
    let is_across = |place| pairs.iter().any(|(call, result)| *call < place && place <= *result);
    let is_in_one_step =
        count.all(compacted) <= 90_000 && format!("{options:?}").contains("100000");
    if is_in_one_step && !is_across(head) && !is_across(tail) && is_end(tail) {
        // So the oldest visible summary after the head is always included.
        assert_eq!(range, head..tail);
    }
    let summaries: Vec<CompactionId> =
        compacted.iter().filter_map(|item| CompactionId::from_message(&item.id)).collect();
    assert_eq!(plan.messages(), compacted.len() - summaries.len());
    assert!(plan.messages() > 0);
    assert_eq!(plan.summaries(), summaries);
    assert_eq!(plan.tokens(), count.all(compacted));
    assert_eq!(plan.target_tokens(), options.target_tokens(plan.tokens()));
    check_usage(&plan.usage(), view, options, count);
    let kept = count.all(view) - plan.tokens();
    assert_eq!(plan.expected_total(), kept + plan.tokens().min(plan.target_tokens()));
    for (at, item) in view.iter().enumerate() {
        let text = item.text();
        let (mark, _) = text.split_once('>').unwrap();
        let is_quoted = plan.prompt().contains(&format!("{mark}>"));
        assert_eq!(is_quoted, range.contains(&at), "{mark}> in {}", plan.prompt());
    }
}

/// Checks the usage. No session of this test has blocks, so the prompt is empty.
pub(super) fn check_usage(
    usage: &WindowUsage,
    view: &[Message],
    options: &CompactionOptions,
    count: Count,
) {
    let (head, tail) = zones(view, options, count);
    let sum = |range: Range<usize>| {
        let range = range.start.min(view.len())..range.end.min(view.len());
        count.all(view[range].iter().filter(|item| !is_summary(item)))
    };
    let expected = [
        0,
        sum(0..head),
        count.all(view.iter().filter(|item| is_summary(item))),
        sum(head..tail.max(head)),
        sum(tail.max(head)..view.len()),
    ];
    let found = [usage.prompt, usage.head, usage.summaries, usage.middle, usage.tail];
    assert_eq!(found, expected, "{usage}");
    assert_eq!(usage.total, expected.iter().sum::<u64>());
}
