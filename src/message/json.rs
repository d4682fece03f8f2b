//! JSON that keeps its text.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// A JSON value that keeps its text and is parsed only on demand.
///
/// So what a Rust string or number cannot hold comes back unchanged: lone surrogates, numbers of any
/// length, deep nesting. Two values are equal if they mean the same, even if their texts differ.
///
/// ```
/// use serde_json::json;
/// use talktree::Json;
///
/// let json = Json::parse(r#"{"city": "Jena", "mark": "\ud800"}"#)?;
/// assert_eq!(json.value()["city"], "Jena");
/// assert_eq!(json.value()["mark"], "\u{FFFD}");
/// assert_eq!(json.as_str(), r#"{"city": "Jena", "mark": "\ud800"}"#);
/// assert_eq!(Json::from(json!([1, 2])), Json::parse("[1,2]")?);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Returns the JSON value of a text.
    ///
    /// ```
    /// use talktree::Json;
    ///
    /// assert_eq!(Json::parse("[1, 2]")?.as_str(), "[1, 2]");
    /// let error = Json::parse("[1, 2").unwrap_err();
    /// assert!(error.to_string().contains("line 1 column"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Json`] with line and column if the text is not one valid JSON value.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|source| Error::Json { what: "JSON", source })
    }

    /// Returns the text, unchanged.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the text with U+FFFD in place of each lone surrogate, which most readers of JSON refuse.
    ///
    /// ```
    /// use talktree::Json;
    ///
    /// assert_eq!(Json::parse(r#"["\ud800"]"#)?.to_valid_unicode(), r#"["\ufffd"]"#);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn to_valid_unicode(&self) -> Cow<'_, str> {
        replace_lone_surrogates(self.as_str())
    }

    /// Returns the value.
    ///
    /// A lone surrogate becomes U+FFFD. A value that is nested deeper than 128 levels, or holds a number
    /// beyond `f64`, is returned as its text.
    ///
    /// ```
    /// use talktree::Json;
    ///
    /// assert_eq!(Json::parse(r#"{"c": 21}"#)?.value()["c"], 21);
    /// assert_eq!(Json::parse("1e999")?.value(), "1e999"); // beyond `f64`
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn value(&self) -> Value {
        self.exact_value().unwrap_or_else(|| {
            let mended = self.to_valid_unicode();
            serde_json::from_str(&mended).unwrap_or_else(|_| Value::String(mended.into_owned()))
        })
    }

    /// Returns whether the value is `null`.
    ///
    /// ```
    /// use talktree::Json;
    ///
    /// assert!(Json::parse(" null ")?.is_null());
    /// assert!(!Json::parse("0")?.is_null());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Returns the canonical text of the value: without white space, object fields sorted by name.
    ///
    /// Equal values have equal canonical texts, which can be hashed or compared. A value with lone
    /// surrogates or more than 128 levels keeps its spelling and field order, and only loses its white
    /// space.
    ///
    /// ```
    /// use talktree::Json;
    ///
    /// assert_eq!(Json::parse(r#"{ "b": [1, 2.50], "a": null }"#)?.canonical(), r#"{"a":null,"b":[1,2.5]}"#);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical(self.as_str())
    }

    /// Copies text that is known to be JSON.
    pub(super) fn keep(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    fn exact_value(&self) -> Option<Value> {
        serde_json::from_str(self.as_str()).ok()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // The text of a `Value` is always valid JSON, so the default is never used.
        Self(RawValue::from_string(value.to_string()).unwrap_or_default())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
            || matches!((self.exact_value(), other.exact_value()), (Some(a), Some(b)) if a == b)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// Returns the JSON with the `\uXXXX` escape of each unpaired surrogate replaced by `\ufffd`.
pub(crate) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut mended: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let width = match escaped_unit(bytes, at) {
            None => 2,
            Some(0xD800..=0xDBFF)
                if matches!(escaped_unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            Some(0xD800..=0xDFFF) => {
                let text = mended.get_or_insert_with(|| String::with_capacity(json.len()));
                text.push_str(&json[copied..at]);
                text.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            Some(_) => 6,
        };
        at += width;
    }
    match mended {
        None => Cow::Borrowed(json),
        Some(mut text) => {
            text.push_str(&json[copied..]);
            Cow::Owned(text)
        }
    }
}

/// Returns the UTF-16 unit of a `\uXXXX` escape at this place.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let hex = escape.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

/// Returns JSON without white space and with sorted fields, so that equal values have equal texts.
///
/// JSON that a [`Value`] cannot hold (lone surrogates, more than 128 levels) keeps its spelling and the order of its
/// fields, but loses its white space.
fn canonical(json: &str) -> String {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => {
            let mut text = String::with_capacity(json.len());
            write(&value, &mut text);
            text
        }
        Err(_) => without_space(json),
    }
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            // Sorted here, because a feature of serde_json decides whether a map is sorted, and any crate can enable
            // it.
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write(value, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn without_space(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let keeps = |letter: &char| {
        if is_escaped {
            is_escaped = false;
        } else if in_string && *letter == '\\' {
            is_escaped = true;
        } else if *letter == '"' {
            in_string = !in_string;
        }
        in_string || !letter.is_ascii_whitespace()
    };
    json.chars().filter(keeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (given, mended) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        ] {
            assert_eq!(replace_lone_surrogates(given), mended);
        }
    }
}

#[cfg(test)]
mod canonical_tests {
    use super::*;

    #[test]
    fn equal_values_have_one_spelling() {
        for (json, spelled) in [
            (
                r#"{ "b" : [1, 2.50], "a": {"d":null,"c":"x y"} }"#,
                r#"{"a":{"c":"x y","d":null},"b":[1,2.5]}"#,
            ),
            (r#"{"b": "\ud800 \" x", "a" : 1}"#, r#"{"b":"\ud800 \" x","a":1}"#),
            (r#""\u0041""#, r#""A""#),
        ] {
            assert_eq!(canonical(json), spelled);
        }
    }
}
