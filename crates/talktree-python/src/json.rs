//! JSON between Python and the library: as text, in one go.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use talktree::{Error, Json, Message, MessageId, Result};

/// Returns the JSON of a value.
pub(crate) fn text(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|source| Error::Json { what: "a result", source })
}

pub(crate) fn parse<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|source| Error::Json { what, source })
}

pub(crate) fn message(text: &str) -> Result<Message> {
    parse("a message", text)
}

pub(crate) fn messages(text: &str) -> Result<Vec<Message>> {
    parse("a list of messages", text)
}

/// Returns a value for a part of the library that parses JSON. A lone surrogate becomes U+FFFD.
pub(crate) fn value(text: &str) -> Result<Value> {
    Ok(Json::parse(text)?.value())
}

/// Returns a time that Python wrote in ISO 8601.
pub(crate) fn time(text: &str) -> Result<DateTime<Utc>> {
    text.parse().map_err(|error: chrono::ParseError| Error::InvalidValue {
        what: "time",
        given: text.chars().take(80).collect(),
        why: error.to_string(),
    })
}

pub(crate) fn maybe_time(text: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    text.map(time).transpose()
}

pub(crate) fn ids(ids: &[String]) -> Vec<MessageId> {
    ids.iter().map(|id| MessageId::from(id.as_str())).collect()
}
