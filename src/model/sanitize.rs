//! Pairs of calls and results in a view.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::content::read;
use super::turns::{is_blank, is_step_start};
use crate::id::CompactionId;
use crate::message::{Message, Part, has_outcome, input_of};

/// Returns the view with every call of a tool paired with its result, as providers demand.
///
/// A result whose call is not before it goes, and so does a call whose input has not come yet. A call
/// whose result is not behind it is given one that says so, and that points to the next summary
/// behind the call, if there is one: the result may lie under it. Where an id is used again, a result
/// belongs to the nearest call of it that waits. Messages that say nothing then go, and hidden. A
/// view in which nothing is wrong is lent back.
///
/// ```
/// use serde_json::json;
/// use talktree::model::sanitize;
/// use talktree::{Message, Part, Role};
///
/// let call = Message::new(Role::Assistant, vec![Part::tool_call("weather", "1", json!({}))]);
/// let lost = Message::new(Role::Tool, vec![Part::tool_result("weather", "2", json!("warm"))]);
/// let view = [call, lost, Message::user("Well?")];
///
/// let sane = sanitize(&view);
/// assert_eq!(sane.len(), 2);
/// let Part::Tool(tool) = &sane[0].parts[0] else { unreachable!() };
/// assert_eq!(tool.output.as_ref().unwrap().value(), "[the result is not here]");
/// assert!(matches!(sanitize(&sane), std::borrow::Cow::Borrowed(_)));
/// ```
#[must_use]
pub fn sanitize(view: &[Message]) -> Cow<'_, [Message]> {
    let faults = Faults::of(view);
    if faults.stubs.is_empty() && faults.strays.is_empty() && !view.iter().any(is_unsaid) {
        return Cow::Borrowed(view);
    }
    let mut sane = Vec::with_capacity(view.len());
    for (at, message) in view.iter().enumerate().filter(|(_, message)| !message.is_hidden) {
        let mut message = message.clone();
        let mut place = 0;
        message.parts.retain_mut(|part| {
            let here = (at, place);
            place += 1;
            if let Some(stub) = faults.stubs.get(&here)
                && let Part::Tool(mut tool) = read(part).into_owned()
            {
                tool.output = Some(Value::from(stub.as_str()).into());
                tool.state = Some("output-available".to_owned());
                *part = Part::Tool(tool);
            }
            !faults.strays.contains(&here)
        });
        if !is_unsaid(&message) {
            sane.push(message);
        }
    }
    Cow::Owned(sane)
}

/// A part: the place of its message in the view, and its own in the message.
type Spot = (usize, usize);

/// What is wrong with the pairs of a view.
struct Faults {
    /// What the results of calls without one say.
    stubs: BTreeMap<Spot, String>,
    /// Results without a call, and calls without an input.
    strays: BTreeSet<Spot>,
}

impl Faults {
    fn of(view: &[Message]) -> Self {
        let mut open: HashMap<String, Vec<Spot>> = HashMap::new();
        let mut strays = BTreeSet::new();
        for (at, message) in view.iter().enumerate().filter(|(_, message)| !message.is_hidden) {
            for (place, part) in message.parts.iter().enumerate() {
                let part = read(part);
                let Part::Tool(tool) = part.as_ref() else { continue };
                match (input_of(tool).is_some(), has_outcome(tool)) {
                    (true, true) => {}
                    (true, false) => {
                        open.entry(tool.call_id.clone()).or_default().push((at, place));
                    }
                    (false, true) => {
                        let answered = open.get_mut(&tool.call_id).and_then(take_nearest);
                        if answered.is_none() {
                            strays.insert((at, place));
                        }
                    }
                    (false, false) => {
                        strays.insert((at, place));
                    }
                }
            }
        }
        let mut stubs = BTreeMap::new();
        if open.values().any(|spots| !spots.is_empty()) {
            let summaries: Vec<usize> =
                (0..view.len()).filter(|at| is_summary(&view[*at])).collect();
            let spots = open.into_values().flatten();
            stubs.extend(spots.map(|spot| (spot, stub(view, &summaries, spot))));
        }
        Self { stubs, strays }
    }
}

/// Takes the call that a result answers out of those of one id: the first of the newest message.
fn take_nearest(open: &mut Vec<Spot>) -> Option<Spot> {
    let (newest, _) = *open.last()?;
    let first = open.partition_point(|(at, _)| *at < newest);
    Some(open.remove(first))
}

/// Returns what is said in the place of a result that is not there.
fn stub(view: &[Message], summaries: &[usize], (at, _): Spot) -> String {
    // A result comes after its call: it cannot lie under a summary before it.
    match summaries.get(summaries.partition_point(|summary| *summary <= at)) {
        Some(&summary) => {
            let id = &view[summary].id;
            format!("[the result is not here; the summary below may tell it: {id}]")
        }
        None => "[the result is not here]".to_owned(),
    }
}

fn is_summary(message: &Message) -> bool {
    CompactionId::from_message(&message.id).is_some()
}

/// Returns whether a model would be told nothing by the message.
fn is_unsaid(message: &Message) -> bool {
    message.is_hidden
        || message.parts.iter().all(|part| match read(part).as_ref() {
            Part::Text(text) => is_blank(&text.text),
            Part::Other(json) => is_step_start(json),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Messages drawn as words: `c1` calls, `r1` is a result, `b1` both, `i1` neither, `s` a summary,
    /// `e` empty, `p` the start of a step, `x` an hidden, others say their word; `+` joins parts of one
    /// message.
    fn message(word: &str) -> Message {
        let mut message = Message::new("assistant", Vec::new());
        for part in word.split('+') {
            let id = &part[1..];
            match &part[..1] {
                "c" => message.parts.push(Part::tool_call("t", id, json!({}))),
                "r" => message.parts.push(Part::tool_result("t", id, json!("done"))),
                "b" => {
                    let mut both = Part::tool_call("t", id, json!({}));
                    if let Part::Tool(tool) = &mut both {
                        tool.error_text = Some("failed".to_owned());
                    }
                    message.parts.push(both);
                }
                "i" => message.parts.push(read(json!({
                    "type": "tool-t", "toolCallId": id, "state": "input-streaming",
                }))),
                "p" => message.parts.push(read(json!({"type": "step-start"}))),
                "s" => message = Message::assistant("sum").with_id(format!("compaction_{id}")),
                "e" => message.parts.push(Part::text("  ")),
                "x" => message = Message::assistant("x").hidden(),
                _ => message.parts.push(Part::text(part)),
            }
        }
        message
    }

    fn read(part: Value) -> Part {
        serde_json::from_value(part).unwrap()
    }

    /// Draws a message back; a call that was given a result is `C`, with `v` if it names a summary.
    fn drawn(message: &Message) -> String {
        let word = |part: &Part| match part {
            Part::Tool(tool) if tool.input.is_none() => format!("r{}", tool.call_id),
            Part::Tool(tool) if tool.error_text.is_some() => format!("b{}", tool.call_id),
            Part::Tool(tool) => match tool.output.as_ref().map(|output| output.to_string()) {
                None => format!("c{}", tool.call_id),
                Some(stub) if stub.contains("below") => format!("C{}v", tool.call_id),
                Some(_) => format!("C{}", tool.call_id),
            },
            Part::Text(text) if text.text == "sum" => "s".to_owned(),
            Part::Text(text) => text.text.clone(),
            _ => "?".to_owned(),
        };
        message.parts.iter().map(word).collect::<Vec<_>>().join("+")
    }

    #[test]
    fn pairs_are_made_whole() {
        for (view, sane) in [
            ("u c1 r1 a", "u c1 r1 a"),
            ("u c1+c2 r2 u r1", "u c1+c2 r2 u r1"),
            ("u c1 u", "u C1 u"),
            ("r1 u", "u"),
            ("r1 c1", "C1"),
            ("s1 c1 u", "s C1 u"),
            ("c1 s1 r2 u", "C1v s u"),
            ("s1 c1 s2", "s C1v s"),
            // Ids are used again: the nearest call is answered, in its own order.
            ("c1 u c1 r1", "C1 u c1 r1"),
            ("c1 u c1 r1 r1", "c1 u c1 r1 r1"),
            ("c1 r1 u c1 r1", "c1 r1 u c1 r1"),
            ("c1+c1 r1", "c1+C1 r1"),
            ("c1+i2 r1", "c1 r1"),
            ("i1 u", "u"),
            ("i1 r1 u", "u"),
            ("p+c1 p+r1 p+r1 u", "?+c1 ?+r1 u"),
            ("c1 r1 r1 u", "c1 r1 u"),
            ("b1 r1", "b1"),
            ("a+c1 e u", "a+C1 u"),
            ("c1 x r1", "c1 r1"),
            ("e", ""),
            ("", ""),
        ] {
            let view: Vec<_> = view.split_whitespace().map(message).collect();
            let words: Vec<_> = sanitize(&view).iter().map(drawn).collect();
            assert_eq!(words.join(" "), sane);
        }
    }

    #[test]
    fn a_view_without_faults_is_lent_back() {
        let view: Vec<_> = "u s1 c1+c2 r2 r1 b3 a".split(' ').map(message).collect();
        assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
        assert_eq!(drawn(&view[1]), "s");
    }

    #[test]
    fn the_summary_is_named() {
        let view = [message("c1"), message("s7")];
        let sane = sanitize(&view);
        let Part::Tool(tool) = &sane[0].parts[0] else { panic!("{:?}", sane[0]) };
        let told = "[the result is not here; the summary below may tell it: compaction_7]";
        assert_eq!(tool.output.as_ref().unwrap().value(), told);
    }
}
