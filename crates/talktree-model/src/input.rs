//! The inputs of tool calls, as providers require them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};
use talktree::Json;

/// The longest name of a tool that all providers accept.
const MAX_NAME: usize = 64;

/// A decimal number of this many digits is not changed by a double, as long as it is in range.
const MAX_DIGITS: usize = 15;

/// The deepest nesting that is read, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// Returns a JSON string's text, or the JSON as text.
pub(super) fn plain(json: &Json) -> String {
    let text = json.as_str().starts_with('"').then(|| json.value());
    text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(|| json.to_string())
}

/// Returns an input as an object, which providers require. Any other value becomes its field
/// `input`.
pub(super) fn arguments(input: &Json) -> Map<String, Value> {
    match exact(input) {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        Value::String(text) => match Json::parse(&text).map(|inner| exact(&inner)) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::from_iter([("input".to_owned(), Value::String(text))]),
        },
        other => Map::from_iter([("input".to_owned(), other)]),
    }
}

/// Returns the value. A number that a `Value` would round becomes a string of its digits.
pub(super) fn exact(json: &Json) -> Value {
    if !may_be_rounded(json.as_str()) {
        return json.value();
    }
    let mended = json.to_valid_unicode();
    exact_value(&mended, MAX_DEPTH).unwrap_or_else(|| Value::String(mended.into_owned()))
}

/// Returns whether the text may hold a number of more digits than a double has, or one out of its range.
fn may_be_rounded(json: &str) -> bool {
    let mut digits = 0;
    json.bytes().any(|byte| {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' => {}
            // An exponent may be out of range with few digits.
            b'e' | b'E' if digits > 0 => return true,
            _ => digits = 0,
        }
        digits > MAX_DIGITS
    })
}

fn exact_value(json: &str, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    match json.as_bytes().first()? {
        b'{' => {
            let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
            let fields = fields.into_iter();
            let fields =
                fields.map(|(name, raw)| Some((name.into(), exact_value(raw.get(), depth)?)));
            fields.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.into_iter().map(|raw| exact_value(raw.get(), depth)).collect()
        }
        b'-' | b'0'..=b'9' => Some(number(json)),
        _ => serde_json::from_str(json).ok(),
    }
}

/// Returns the number, or its digits as a string if it would be rounded.
fn number(digits: &str) -> Value {
    let significant = digits.bytes().filter(u8::is_ascii_digit).count();
    match serde_json::from_str::<Number>(digits) {
        Ok(number) if !number.is_f64() || significant <= MAX_DIGITS => Value::Number(number),
        _ => Value::from(digits),
    }
}

/// Returns [`arguments`] as JSON text, with the input's own spelling and order of fields.
pub(super) fn arguments_text(input: &Json) -> String {
    let is_object = |json: &Json| json.as_str().starts_with('{');
    if is_object(input) {
        return input.to_valid_unicode().into_owned();
    }
    if let Value::String(text) = input.value()
        && let Ok(inner) = Json::parse(&text)
        && is_object(&inner)
    {
        return inner.to_valid_unicode().into_owned();
    }
    match input.value() {
        Value::Null => "{}".to_owned(),
        Value::String(text) => json!({"input": text}).to_string(),
        _ => format!("{{\"input\":{}}}", input.to_valid_unicode()),
    }
}

/// Returns the JSON of an API's argument text; if it is not JSON, the text as a string.
pub(super) fn arguments_of(text: &str) -> Json {
    match text.trim() {
        "" => Json::from(json!({})),
        _ => Json::parse(text).unwrap_or_else(|_| Json::from(Value::from(text))),
    }
}

/// Returns the name of a tool, with `_` for each character that some provider refuses.
pub(super) fn tool_name(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name = name.chars().map(|letter| if fits(letter) { letter } else { '_' });
    let name: String = name.take(MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object() {
        for (input, as_text) in [
            (json!({"a": 1}), r#"{"a":1}"#),
            (json!(null), "{}"),
            (json!("{\"a\": 1}"), r#"{"a":1}"#),
            (json!("{\"a\": "), r#"{"input":"{\"a\": "}"#),
            (json!([1]), r#"{"input":[1]}"#),
        ] {
            let input = Json::from(input);
            assert_eq!(Value::from(arguments(&input)).to_string(), as_text);
            assert_eq!(super::arguments_text(&input).replace(' ', ""), as_text.replace(' ', ""));
        }
    }

    #[test]
    fn arguments_keep_their_spelling() {
        let input = Json::parse(r#"{"b": 1.50, "a": "\ud800"}"#).unwrap();
        assert_eq!(super::arguments_text(&input), r#"{"b": 1.50, "a": "\ufffd"}"#);
    }
}
