//! JSON kept as the text it came as.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical;
use crate::error::{Error, Result};

/// One JSON value, kept as the text it came as and read only when it is asked for.
///
/// So that what a Rust string or number cannot hold (lone surrogates, numbers of any length, deep
/// nesting) comes back unchanged. Two are equal if they mean the same, whatever their spelling.
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
    /// Returns the JSON of this text, which must be one valid value.
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
    /// [`Error::Json`] with line and column if it is not.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|source| Error::Json { what: "JSON", source })
    }

    /// Returns the text as it came.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the value.
    ///
    /// A lone surrogate reads as U+FFFD. What is nested deeper than 128 or is a number beyond
    /// `f64` reads as the text itself.
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
            let mended = replace_lone_surrogates(self.as_str());
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

    /// Returns the value in one spelling: no white space, the fields of objects by name.
    ///
    /// Two texts of one value are spelled the same, so the spelling can be hashed or compared. A
    /// value with lone surrogates or more than 128 levels keeps its spelling and the order of its
    /// fields, and loses its white space.
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

    /// Returns a copy of text that is known to be JSON.
    pub(super) fn keep(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    fn exact_value(&self) -> Option<Value> {
        serde_json::from_str(self.as_str()).ok()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // Printing a `Value` and taking the print as JSON cannot fail: its maps have text keys.
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

/// Returns valid JSON with each `\uXXXX` escape of a surrogate without its partner as `\ufffd`.
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

/// Returns the UTF-16 unit that the `\uXXXX` at this place stands for.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let hex = escape.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
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
