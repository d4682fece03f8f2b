//! The message that a provider's response becomes.

use serde_json::{Map, Value};

use crate::message::{Extra, Json, Message, Part, Reasoning, Role};

/// Returns the model's message: these parts, and what the response tells beside them as metadata.
pub(super) fn message(
    provider: &str,
    parts: Vec<Part>,
    told: impl IntoIterator<Item = (&'static str, Value)>,
) -> Message {
    let mut metadata = Map::from_iter([("provider".to_owned(), Value::from(provider))]);
    let told = told.into_iter().filter(|(_, value)| !value.is_null());
    metadata.extend(told.map(|(field, value)| (field.to_owned(), value)));
    Message::new(Role::Assistant, parts).with_metadata(Value::Object(metadata))
}

/// Returns a part of text, unless it is empty.
pub(super) fn text(text: &Value) -> Option<Part> {
    text.as_str().filter(|text| !text.is_empty()).map(Part::text)
}

/// Returns a part of reasoning with these further fields of `of`, where they are set.
pub(super) fn reasoning(text: &str, of: &Value, fields: &[&str]) -> Part {
    let fields = fields.iter().filter(|field| !of[**field].is_null());
    let fields = fields.map(|field| ((*field).to_owned(), Json::from(of[*field].clone())));
    Part::Reasoning(Reasoning { text: text.to_owned(), extra: Extra::from_iter(fields) })
}

/// Returns a part that keeps what has no shape of its own; a value that is no object is none.
pub(super) fn other(value: &Value) -> Option<Part> {
    value.is_object().then(|| Part::Other(value.clone().into()))
}
