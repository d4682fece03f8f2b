//! Cuts long texts and tool outputs of older messages.
//!
//! A cut value keeps its shape, so that a model can still read it: of a text the beginning stays, of
//! a list the first items, of an object all fields, with the longest values cut. Each cut is marked
//! with how much is missing.

use std::borrow::Cow;

use serde_json::{Map, Value};
use talktree::CompactionId;
use talktree::{Json, Message, Part, Role, Tool};

use crate::content::read;
use crate::input::exact;

/// Replaces a value that has no room at all.
const CUT: &str = "[cut]";

/// The least room in which a value is shortened; with less it is replaced by [`CUT`].
const MIN_ROOM: usize = 48;

/// Which messages [`truncate`] cuts, and to what length.
///
/// ```
/// use talktree_model::TruncateOptions;
///
/// let options = TruncateOptions { max_output_chars: 2_000, step: 10, ..Default::default() };
/// assert_eq!((options.keep_whole, options.max_text_chars), (4, 10_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncateOptions {
    /// How many of the newest messages are not cut; 4 by default.
    pub keep_whole: usize,
    /// The most characters of an older text; 10 000 by default.
    pub max_text_chars: usize,
    /// The most characters of the output of an older tool; 500 by default.
    pub max_output_chars: usize,
    /// By how many messages at once the border between cut and whole messages moves; 1 by default.
    ///
    /// A provider's prompt cache is valid up to the first change. With a step of `k`, only every
    /// `k`-th new message changes older ones, and up to `k - 1` more messages stay whole.
    pub step: usize,
}

impl Default for TruncateOptions {
    fn default() -> Self {
        Self { keep_whole: 4, max_text_chars: 10_000, max_output_chars: 500, step: 1 }
    }
}

/// Returns the view with long texts and tool outputs of older messages cut.
///
/// Cut values keep their shape, and each cut is marked. Texts and the outputs and errors of tools are
/// cut; summaries, system messages, reasoning, tool inputs and files are not. With a limit below 48,
/// longer values are replaced by a mark. Returns the input, borrowed, if nothing is cut.
///
/// ```
/// use talktree::Message;
/// use talktree_model::{TruncateOptions, truncate};
///
/// let view = [Message::user("abc ".repeat(50)), Message::assistant("Yes?")];
/// let options = TruncateOptions { keep_whole: 1, max_text_chars: 60, ..Default::default() };
/// let cut = truncate(&view, &options);
/// assert!(cut[0].text().starts_with("abc abc "));
/// assert!(cut[0].text().ends_with("[162 characters cut]"));
/// assert_eq!(cut[0].text().chars().count(), 60);
/// ```
#[must_use]
pub fn truncate<'a>(view: &'a [Message], options: &TruncateOptions) -> Cow<'a, [Message]> {
    let border = view.len().saturating_sub(options.keep_whole);
    let border = border - border % options.step.max(1);
    let mut cut = Cow::Borrowed(view);
    for (at, message) in view[..border].iter().enumerate() {
        if is_kept(message) {
            continue;
        }
        for (place, part) in message.parts.iter().enumerate() {
            if let Some(part) = shortened(part, options) {
                cut.to_mut()[at].parts[place] = part;
            }
        }
    }
    cut
}

fn is_kept(message: &Message) -> bool {
    matches!(&message.role, Role::System)
        || message.role.as_str() == "developer"
        || CompactionId::from_message(&message.id).is_some()
}

/// Returns the shortened part; `None` if it is short enough.
fn shortened(part: &Part, options: &TruncateOptions) -> Option<Part> {
    match read(part).as_ref() {
        Part::Text(text) => {
            let mut text = text.clone();
            text.text = shorten_text(&text.text, options.max_text_chars)?;
            Some(Part::Text(text))
        }
        Part::Tool(tool) => shortened_tool(tool, options.max_output_chars).map(Part::Tool),
        _ => None,
    }
}

fn shortened_tool(tool: &Tool, max: usize) -> Option<Tool> {
    let output = tool.output.as_ref().and_then(|output| shorten_output(output, max));
    let result = tool.extra.get("result").and_then(|output| shorten_output(output, max));
    let error = tool.error_text.as_ref().and_then(|error| shorten_text(error, max));
    if output.is_none() && result.is_none() && error.is_none() {
        return None;
    }
    let mut tool = tool.clone();
    tool.output = output.or(tool.output);
    tool.error_text = error.or(tool.error_text);
    if let Some(result) = result {
        tool.extra.insert("result".to_owned(), result);
    }
    Some(tool)
}

fn shorten_output(output: &Json, max: usize) -> Option<Json> {
    // No value is longer than its JSON text, which needs no parsing.
    if output.as_str().len() <= max {
        return None;
    }
    match exact(output) {
        Value::String(text) => shorten_text(&text, max).map(|text| Value::from(text).into()),
        value => (width(&value) > max).then(|| shorten(value, max).into()),
    }
}

fn shorten_text(text: &str, max: usize) -> Option<String> {
    // No text has more characters than bytes, and bytes need no counting.
    let is_long = text.len() > max && text.chars().count() > max;
    is_long.then(|| beginning(text, max, |_| 1))
}

/// Returns the beginning of a text that is longer than `max`, with a mark of how much is missing.
fn beginning(text: &str, max: usize, width: impl Fn(char) -> usize) -> String {
    if max < MIN_ROOM {
        return CUT.to_owned();
    }
    let count = text.chars().count();
    let room = max - format!("… [{count} characters cut]").chars().count();
    let mut spent = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            spent += width(*c);
            spent <= room
        })
        .collect();
    let missing = count - kept.chars().count();
    format!("{kept}… [{missing} characters cut]")
}

/// Returns the value shortened to `max` characters of compact JSON, or [`CUT`].
fn shorten(value: Value, max: usize) -> Value {
    if width(&value) <= max {
        return value;
    }
    if max < MIN_ROOM {
        return match value {
            // The mark would not be shorter.
            Value::Null | Value::Bool(_) => value,
            _ => CUT.into(),
        };
    }
    match value {
        // Two for the quotes.
        Value::String(text) => beginning(&text, max - 2, char_width).into(),
        Value::Array(items) => shorten_array(items, max),
        Value::Object(fields) => shorten_object(fields, max),
        Value::Number(_) => CUT.into(),
        value => value,
    }
}

fn shorten_array(items: Vec<Value>, max: usize) -> Value {
    let count = items.len();
    let note = |missing: usize| Value::from(format!("… [{missing} more items cut]"));
    // Brackets, the note and the comma before it.
    let room = max.saturating_sub(3 + width(&note(count)));
    let (mut kept, mut spent) = (Vec::new(), 0);
    for item in items {
        let left = room.saturating_sub(spent);
        // The first item is shortened if it is too long, so that one item stays.
        let item = if kept.is_empty() { shorten(item, left) } else { item };
        let taken = width(&item) + usize::from(!kept.is_empty());
        if taken > left {
            break;
        }
        spent += taken;
        kept.push(item);
    }
    if kept.len() < count {
        let missing = count - kept.len();
        kept.push(note(missing));
    }
    kept.into()
}

fn shorten_object(mut fields: Map<String, Value>, max: usize) -> Value {
    // The least cost of a field: its name in quotes, a colon, a comma and the mark.
    let name = |name: &str| text_width(name) + 2;
    let least: usize = fields.keys().map(|field| name(field) + CUT.len() + 2).sum();
    if least + 2 > max {
        fields = first_fields(fields, max, name);
    }
    let names: usize = fields.keys().map(|field| name(field)).sum();
    let mut widths: Vec<usize> = fields.values().map(width).collect();
    let most = level(&mut widths, max.saturating_sub(names + 2));
    let fields = fields.into_iter().map(|(field, value)| (field, shorten(value, most)));
    Value::Object(fields.collect())
}

/// Returns the first fields that have room, and a note of how many are missing.
fn first_fields(
    fields: Map<String, Value>,
    max: usize,
    name: impl Fn(&str) -> usize,
) -> Map<String, Value> {
    let count = fields.len();
    let note = |missing: usize| Value::from(format!("[{missing} more fields cut]"));
    let mut room = max.saturating_sub(2 + name("…") + width(&note(count)));
    let mut kept = Map::new();
    for (field, value) in fields {
        let least = name(&field) + CUT.len() + 2;
        if least > room {
            break;
        }
        room -= least;
        // There is only room for the mark.
        kept.insert(field, shorten(value, CUT.len() + 2));
    }
    let missing = count - kept.len();
    kept.insert("…".to_owned(), note(missing));
    kept
}

/// Returns the length to which the longest must be cut so that all together fit into the room.
fn level(widths: &mut [usize], room: usize) -> usize {
    widths.sort_unstable();
    let mut left = room;
    for (at, width) in widths.iter().enumerate() {
        let share = left / (widths.len() - at);
        if *width > share {
            return share;
        }
        left -= width;
    }
    usize::MAX
}

/// Returns the number of characters of a value as compact JSON.
fn width(value: &Value) -> usize {
    match value {
        Value::String(text) => text_width(text),
        Value::Array(items) => items.iter().map(width).sum::<usize>() + 1 + items.len().max(1),
        Value::Object(fields) => {
            let fields_width: usize =
                fields.iter().map(|(name, value)| text_width(name) + 1 + width(value)).sum();
            fields_width + 1 + fields.len().max(1)
        }
        other => other.to_string().len(),
    }
}

/// Returns the number of characters of a text as a JSON string.
fn text_width(text: &str) -> usize {
    2 + text.chars().map(char_width).sum::<usize>()
}

fn char_width(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{C}' => 2,
        '\0'..='\u{1F}' => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn options(keep_whole: usize, max: usize, step: usize) -> TruncateOptions {
        TruncateOptions { keep_whole, max_text_chars: max, max_output_chars: max, step }
    }

    fn result(output: Value) -> Message {
        Message::new("tool", vec![Part::tool_result("t", "1", output)])
    }

    /// Returns the output after it is cut.
    #[track_caller]
    fn cut(output: Value, max: usize) -> Value {
        let view = [result(output)];
        let cut = truncate(&view, &options(0, max, 1));
        let Part::Tool(tool) = &cut[0].parts[0] else { panic!("{cut:?}") };
        tool.output.as_ref().unwrap().value()
    }

    #[test]
    fn shapes_are_kept() {
        let long = "x".repeat(200);
        assert_eq!(cut(json!(long), 60), format!("{}… [162 characters cut]", "x".repeat(38)));
        assert_eq!(cut(json!("short"), 60), "short");
        let items: Vec<u32> = (1000..1100).collect();
        let expected = json!([1000, 1001, 1002, 1003, 1004, 1005, "… [94 more items cut]"]);
        assert_eq!(cut(json!(items), 60), expected);
        // The longest values are cut, the short ones stay.
        let output = json!({"code": 0, "err": "e".repeat(50), "out": long, "log": long});
        let found = cut(output, 250);
        assert_eq!((&found["code"], &found["err"]), (&json!(0), &json!("e".repeat(50))));
        assert_eq!(found["out"].as_str().unwrap().len(), found["log"].as_str().unwrap().len());
        assert!(found["out"].as_str().unwrap().ends_with("characters cut]"), "{found}");
        let nested = json!([{"text": long}]);
        assert!(cut(nested, 100)[0]["text"].as_str().unwrap().starts_with("xxx"));
        let many: Map<String, Value> = (0..100).map(|n| (format!("f{n:02}"), json!(n))).collect();
        let found = cut(many.into(), 100);
        assert_eq!(found["f00"], 0);
        assert!(found["…"].as_str().unwrap().ends_with("more fields cut]"), "{found}");
        assert_eq!(cut(json!([long]), 10), CUT);
    }

    #[test]
    fn the_newest_messages_and_parts_of_some_kinds_stay_whole() {
        let long = "y".repeat(100);
        let view = [
            Message::system(long.as_str()),
            Message::assistant(long.as_str()).with_id("compaction_1"),
            Message::new("assistant", vec![Part::reasoning(long.as_str())]),
            Message::new("assistant", vec![Part::tool_call("t", "1", json!({"a": long}))]),
            Message::user(long.as_str()),
        ];
        assert!(matches!(truncate(&view, &options(1, 50, 1)), Cow::Borrowed(_)));
        let cut = truncate(&view, &options(0, 50, 1));
        assert_eq!(cut[..4], view[..4]);
        assert_eq!(cut[4].text(), format!("{}… [72 characters cut]", "y".repeat(28)));
    }

    #[test]
    fn errors_and_older_shapes_are_cut_too() {
        let message: Message = serde_json::from_value(json!({"role": "assistant", "parts": [
            {"type": "tool-t", "toolCallId": "1", "errorText": "e".repeat(90)},
            {"type": "tool-t", "toolCallId": "2", "input": {}, "result": "r".repeat(90)},
            {"type": "text", "text": "t".repeat(90)},
        ]}))
        .unwrap();
        let cut = truncate(std::slice::from_ref(&message), &options(0, 60, 1)).into_owned();
        let text = serde_json::to_string(&cut[0]).unwrap();
        assert_eq!(text.matches("characters cut]").count(), 3, "{text}");
    }

    #[test]
    fn the_border_moves_by_steps() {
        let long = "z".repeat(100);
        let message = || Message::user(long.as_str());
        let cut = |count: usize| {
            let view: Vec<_> = (0..count).map(|_| message()).collect();
            let cut = truncate(&view, &options(4, 50, 5));
            cut.iter().filter(|message| message.text() != long).count()
        };
        let borders: Vec<_> = (0..20).map(cut).collect();
        assert_eq!(borders, [0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10, 10, 10, 10, 15]);
    }

    fn json_values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\\n\u{1}é語]{0,120}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::btree_map("[a-z\n]{0,60}", inner, 0..12)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_output_is_within_the_limit_and_of_its_kind(
            output in json_values(),
            max in 7_usize..400,
        ) {
            prop_assert_eq!(width(&output), output.to_string().chars().count());
            let found = cut(output.clone(), max);
            let length = |value: &Value| match value {
                Value::String(text) => text.chars().count(),
                value => value.to_string().chars().count(),
            };
            prop_assert!(length(&found) <= max, "{} of {max}: {found}", length(&found));
            if length(&output) <= max {
                prop_assert_eq!(&found, &output);
            }
            if max >= MIN_ROOM {
                prop_assert_eq!(found.is_array(), output.is_array());
                prop_assert_eq!(found.is_object(), output.is_object());
            }
            prop_assert_eq!(cut(found.clone(), max), found);
        }
    }
}
