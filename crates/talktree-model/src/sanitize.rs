//! Repairs the pairs of tool calls and results in a view.

use std::borrow::Cow;

use serde_json::Value;
use talktree::{CompactionId, Message, Pairing, Part};
use talktree_text::foreign::name;

use crate::content::read;
use crate::pairs::paired;
use crate::turns::{is_step_start, is_white_space};

/// Returns the view with every tool call followed by its result, as providers require.
///
/// A result without an earlier call is removed, and so is a call whose input has not come. A call
/// without a result gets one that says so, and that names the next summary after the call if there
/// is one: the summary may have replaced the result. If an id is used again, a result belongs to the
/// nearest earlier call that waits. Hidden messages are removed, and so are messages that say
/// nothing. Returns the input, borrowed, if nothing needs fixing.
///
/// ```
/// use serde_json::json;
/// use talktree_model::sanitize;
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
    let shown = || view.iter().enumerate().filter(|(_, message)| !message.is_hidden);
    let (pairs, waiting) = paired(shown());
    let is_stray = |pairing: &Pairing<_>| {
        matches!(pairing, Pairing::Started | Pairing::Repeats(_) | Pairing::Stray)
    };
    if waiting.is_empty() && !pairs.values().any(is_stray) && !view.iter().any(is_silent) {
        return Cow::Borrowed(view);
    }
    let mut sane = Vec::with_capacity(view.len());
    for (at, message) in shown() {
        let mut message = message.clone();
        let mut place = 0;
        message.parts.retain_mut(|part| {
            let here = (at, place);
            place += 1;
            if waiting.contains(&here)
                && let Part::Tool(mut tool) = read(part).into_owned()
            {
                tool.output = Some(Value::from(stub(&view[at + 1..])).into());
                tool.state = Some("output-available".to_owned());
                *part = Part::Tool(tool);
            }
            !pairs.get(&here).is_some_and(is_stray)
        });
        if !is_silent(&message) {
            sane.push(message);
        }
    }
    Cow::Owned(sane)
}

/// Returns the text that replaces a missing result. A summary before the call cannot have replaced it.
fn stub(after: &[Message]) -> String {
    match after.iter().find(|message| is_summary(message)) {
        Some(summary) => {
            let id = name(summary.id.as_str());
            format!("[the result is not here; the summary below may contain it: {id}]")
        }
        None => "[the result is not here]".to_owned(),
    }
}

fn is_summary(message: &Message) -> bool {
    CompactionId::from_message(&message.id).is_some()
}

/// Returns whether nothing of the message is sent to a model.
fn is_silent(message: &Message) -> bool {
    message.is_hidden
        || message.parts.iter().all(|part| match read(part).as_ref() {
            Part::Text(text) => is_white_space(&text.text),
            part => is_step_start(part),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Draws a message as a word: `c1` is a call, `r1` a result, `b1` both, `i1` neither, `s` a
    /// summary, `e` blank text, `p` the start of a step, `x` a hidden message; others are text. `+`
    /// joins the parts of one message.
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

    /// Draws a message back. A call that got a stub is `C`, with `v` if the stub names a summary.
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
            // An id is used again.
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
    fn a_view_without_faults_is_borrowed() {
        let view: Vec<_> = "u s1 c1+c2 r2 r1 b3 a".split(' ').map(message).collect();
        assert!(matches!(sanitize(&view), Cow::Borrowed(_)));
        assert_eq!(drawn(&view[1]), "s");
    }

    #[test]
    fn the_summary_is_named() {
        let view = [message("c1"), message("s7")];
        let sane = sanitize(&view);
        let Part::Tool(tool) = &sane[0].parts[0] else { panic!("{:?}", sane[0]) };
        let expected = "[the result is not here; the summary below may contain it: compaction_7]";
        assert_eq!(tool.output.as_ref().unwrap().value(), expected);
    }
}
