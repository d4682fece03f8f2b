//! Messages made from a provider's response.

use serde_json::{Map, Value};
use talktree::{Extra, Json, Message, Part, Reasoning, Role, Text};

/// Returns an assistant message of these parts. Fields that are not null become its metadata.
pub(super) fn message(
    provider: &str,
    parts: Vec<Part>,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Message {
    let mut metadata = Map::from_iter([("provider".to_owned(), Value::from(provider))]);
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    metadata.extend(fields.map(|(field, value)| (field.to_owned(), value)));
    Message::new(Role::Assistant, parts).with_metadata(Value::Object(metadata))
}

/// Returns a text part; `None` if the text is empty.
pub(super) fn text(text: &Value) -> Option<Part> {
    text.as_str().filter(|text| !text.is_empty()).map(Part::text)
}

/// Returns a text part with these extra fields; `None` if the text is empty.
pub(super) fn text_with(text: &Value, extra: Extra) -> Option<Part> {
    let text = text.as_str().filter(|text| !text.is_empty())?;
    Some(Part::Text(Text { text: text.to_owned(), extra }))
}

/// Returns a field that is true.
pub(super) fn mark(field: &str) -> Extra {
    Extra::from([(field.to_owned(), Value::from(true).into())])
}

/// Returns the words with which the model refused.
pub(super) fn refusal(words: &Value) -> Option<Part> {
    text_with(words, mark("refusal"))
}

/// Returns a call with these extra fields.
pub(super) fn call(name: &str, id: &str, input: impl Into<Json>, extra: Extra) -> Part {
    let mut part = Part::tool_call(name, id, input);
    if let Part::Tool(tool) = &mut part {
        tool.extra = extra;
    }
    part
}

/// Marks a call of a custom tool, whose input is a text that only the tool can read.
pub(super) fn mark_custom(extra: &mut Extra) {
    extra.extend(mark("custom"));
}

/// Returns a reasoning part with these fields of `of`, if they are set.
pub(super) fn reasoning(text: &str, of: &Value, fields: &[&str]) -> Part {
    Part::Reasoning(Reasoning { text: text.to_owned(), extra: self::fields(of, fields) })
}

/// Returns these fields of a value, if they are set.
pub(super) fn fields(of: &Value, fields: &[&str]) -> Extra {
    let fields = fields.iter().filter(|field| !of[**field].is_null());
    let fields = fields.map(|field| ((*field).to_owned(), Json::from(of[*field].clone())));
    fields.collect()
}

/// Returns a part that keeps the value unchanged; `None` if it is not an object.
pub(super) fn other(value: &Value) -> Option<Part> {
    value.is_object().then(|| Part::Other(value.clone().into()))
}
