//! Reading foreign JSON without changing it.
//!
//! A record's fields are kept as text and parsed one by one. So JSON that a Rust value cannot hold (lone surrogates,
//! long numbers, deep nesting) stays unchanged.

use std::fmt;

use super::ids::derive;
use crate::message::{Extra, Json, Part};
use chrono::{DateTime, NaiveDateTime, Utc};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The fields of one JSON object, in order.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns the object's fields; `None` for any other value.
    pub fn of(json: &Json) -> Option<Self> {
        // The parser's error would quote a long text.
        if json.as_str().starts_with('{') { Self::parse(json.as_str()).ok() } else { None }
    }

    /// Returns a field; one that is null counts as missing.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let found = self.0.iter().rev().find(|(field, _)| field == name);
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text)
    }

    pub fn id(&self, name: &str) -> Option<String> {
        self.get(name).and_then(id)
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|json| json.as_str() == "true")
    }

    pub fn is_false(&self, name: &str) -> bool {
        self.get(name).is_some_and(|json| json.as_str() == "false")
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        let json = self.get(name)?.as_str();
        if json.starts_with(['"', '{', '[']) { None } else { serde_json::from_str(json).ok() }
    }

    pub fn object(&self, name: &str) -> Option<Self> {
        self.get(name).and_then(Self::of)
    }

    /// Returns the fields of an object; none if it is missing.
    pub fn inner(&self, name: &str) -> Self {
        self.object(name).unwrap_or_default()
    }

    pub fn list(&self, name: &str) -> Option<Vec<Json>> {
        self.get(name).and_then(list)
    }

    /// Returns the objects of a list; none if it is missing.
    pub fn objects(&self, name: &str) -> Vec<Self> {
        self.list(name).unwrap_or_default().iter().filter_map(Self::of).collect()
    }

    /// Returns a time: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970.
    pub fn time(&self, name: &str) -> Option<DateTime<Utc>> {
        self.get(name).and_then(time)
    }

    /// Returns the fields except these.
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(field, _)| !names.contains(&field.as_str()));
        self
    }

    /// Returns a copy of the fields except these.
    pub fn except(&self, names: &[&str]) -> Self {
        let others = self.0.iter().filter(|(field, _)| !names.contains(&field.as_str()));
        Self(others.cloned().collect())
    }

    /// Returns those of the fields that a rule keeps.
    pub fn only(mut self, is_kept: impl Fn(&str, &Json) -> bool) -> Self {
        self.0.retain(|(field, value)| is_kept(field, value));
        self
    }

    /// Returns the fields with one more, if it has a value.
    pub fn with(mut self, name: &str, value: Option<impl Into<Json>>) -> Self {
        if let Some(value) = value {
            self.0.push((name.to_owned(), value.into()));
        }
        self
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields as one object; `None` if there are none.
    pub fn into_json(self) -> Option<Json> {
        if self.is_empty() {
            return None;
        }
        let object: Extra = self.0.into_iter().collect();
        serde_json::to_string(&object).ok().and_then(|text| Json::parse(&text).ok())
    }
}

impl FromIterator<(String, Json)> for Fields {
    fn from_iter<T: IntoIterator<Item = (String, Json)>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl IntoIterator for Fields {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                // As many as a record usually has.
                let mut fields = Vec::with_capacity(16);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Adds fields to an object; of two with the same name the last one stays.
pub fn add(object: &mut Option<Json>, more: Fields) {
    if !more.is_empty() {
        let known = object.as_ref().and_then(Fields::of).unwrap_or_default();
        *object = known.into_iter().chain(more).collect::<Fields>().into_json();
    }
}

/// Returns a JSON string's text, with U+FFFD for a lone surrogate; `None` for any other value.
pub fn text(json: &Json) -> Option<String> {
    if !json.as_str().starts_with('"') {
        return None;
    }
    exact(json).or_else(|| json.value().as_str().map(str::to_owned))
}

/// Returns a text that names something. One that no Rust string can hold is replaced by a name derived from it.
pub fn id(json: &Json) -> Option<String> {
    let text = text(json)?;
    let is_exact = !text.contains('\u{FFFD}') || exact(json).is_some();
    Some(if is_exact { text } else { derive(&["id", &json.canonical()]).to_string() })
}

/// Returns the text of a JSON string, if a Rust string can hold it.
fn exact(json: &Json) -> Option<String> {
    serde_json::from_str(json.as_str()).ok()
}

pub fn list(json: &Json) -> Option<Vec<Json>> {
    if json.as_str().starts_with('[') { serde_json::from_str(json.as_str()).ok() } else { None }
}

fn time(json: &Json) -> Option<DateTime<Utc>> {
    if let Some(text) = text(json) {
        let zoned = DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc());
        let naive =
            || NaiveDateTime::parse_from_str(&text.replace('T', " "), "%Y-%m-%d %H:%M:%S%.f");
        // Years of more than four digits, which RFC 3339 does not have, but an export of such a time does.
        let far = || text.parse::<DateTime<Utc>>().ok();
        return zoned.ok().or_else(|| naive().ok().map(|time| time.and_utc())).or_else(far);
    }
    let number: f64 = serde_json::from_str(json.as_str()).ok()?;
    // Seconds until the year 5138; what is smaller, since 1973.
    let seconds = match number.abs() {
        size if size < 1e11 => number,
        size if size < 1e14 => number / 1e3,
        size if size < 1e17 => number / 1e6,
        _ => number / 1e9,
    };
    DateTime::from_timestamp_micros((seconds * 1e6).round() as i64)
}

/// Returns a text part of a JSON string, as it came if a Rust string cannot hold it.
pub fn text_part(json: &Json) -> Part {
    let is_text = json.as_str().starts_with('"');
    if let Some(text) = exact(json).filter(|_| is_text) {
        return Part::text(text);
    }
    let part = match is_text {
        true => format!(r#"{{"type":"text","text":{json}}}"#),
        false => format!(r#"{{"type":"data-value","data":{json}}}"#),
    };
    serde_json::from_str(&part).unwrap_or_else(|_| Part::Other(json.clone()))
}

/// Returns a text part of a JSON string with more fields.
pub fn text_part_with(json: &Json, extra: Fields) -> Part {
    let mut part = text_part(json);
    if let Part::Text(text) = &mut part {
        text.extra = extra.into_iter().collect();
    }
    part
}

/// Returns a part that keeps a value as it is, under a type of the `data-` kind.
pub fn data_part(kind: &str, json: &Json) -> Part {
    let kind = Json::from(serde_json::Value::String(format!("data-{kind}")));
    let part = format!(r#"{{"type":{kind},"data":{json}}}"#);
    Json::parse(&part).map_or_else(|_| Part::Other(json.clone()), Part::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_spellings_that_occur() {
        let fields = Fields::parse(
            r#"{"a":"2026-01-02T03:04:05.5Z","b":1767323045.5,"c":1767323045500,
                "d":"2026-01-02 03:04:05.5","e":"soon","f":null,
                "g":1767323045500000,"h":1767323045500000000}"#,
        )
        .unwrap();
        for name in ["a", "b", "c", "d", "g", "h"] {
            let time = fields.time(name).unwrap();
            assert_eq!(time.to_rfc3339(), "2026-01-02T03:04:05.500+00:00", "{name}");
        }
        assert_eq!((fields.time("e"), fields.time("f")), (None, None));
    }

    #[test]
    fn a_lone_surrogate_goes_through_unchanged() {
        let json = Json::parse(r#""a\ud800""#).unwrap();
        let part = text_part(&json);
        assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"type":"text","text":"a\ud800"}"#);
        assert_eq!(text(&json).as_deref(), Some("a\u{FFFD}"));
    }

    #[test]
    fn ids_that_differ_in_a_lone_surrogate_are_two() {
        let id = |id: &str| Fields::parse(&format!(r#"{{"id":"{id}"}}"#)).unwrap().id("id");
        assert_eq!(id("a\u{FFFD}").as_deref(), Some("a\u{FFFD}"));
        assert_ne!(id(r"a\ud800"), id(r"a\ud801"));
        assert_eq!(id(r"a\ud800"), id(r"a\ud800"));
    }
}
