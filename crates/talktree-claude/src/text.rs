//! Reads values from valid JSON text without parsing the rest.
//!
//! A *token* is the text of one value. A string is decoded to its UTF-8 bytes, in which a lone surrogate is the three bytes
//! that UTF-8 would give it (WTF-8): so different strings have different bytes, and bytes sort as code points do.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use talktree::Json;

/// A decoded string.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, [u8]>);

impl Borrow<[u8]> for Text<'_> {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// The members of an object. Of a name that occurs twice, the last value counts.
#[derive(Default)]
pub(crate) struct Members<'a>(Vec<(Text<'a>, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                // As many as an entry usually has.
                let mut members = Vec::with_capacity(16);
                while let Some((name, value)) = map.next_entry::<_, &RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Members<'a> {
    /// Reads an object; another value has no members.
    pub(crate) fn of(token: &'a str) -> Self {
        serde_json::from_str(token).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let mut members = self.0.iter().rev();
        members.find(|(known, _)| *known.0 == *name.as_bytes()).map(|(_, token)| *token)
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.get(name).and_then(decode)
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns whether a member is this string.
    pub(crate) fn is(&self, name: &str, text: &str) -> bool {
        self.text(name).is_some_and(|bytes| *bytes == *text.as_bytes())
    }
}

/// An object of which members are replaced, added and removed; the others keep their text.
#[derive(Debug)]
pub(crate) struct Object<'a>(BTreeMap<Text<'a>, Cow<'a, str>>);

impl<'a> Object<'a> {
    /// Reads an object; another value has no members.
    pub(crate) fn of(token: &'a str) -> Self {
        let members = Members::of(token).0.into_iter();
        Self(members.map(|(name, value)| (name, Cow::Borrowed(value))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name.as_bytes()).map(|token| &**token)
    }

    pub(crate) fn set(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) {
        self.0.insert(Text(Cow::Borrowed(name.as_bytes())), value.into());
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name.as_bytes());
    }

    pub(crate) fn to_text(&self) -> String {
        let members = self.0.iter().map(|(name, value)| format!("{}:{value}", encode(&name.0)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// Returns the items of an array as tokens; of another value none.
pub(crate) fn items(token: &str) -> impl Iterator<Item = &str> {
    let items: Vec<&RawValue> = serde_json::from_str(token).unwrap_or_default();
    items.into_iter().map(RawValue::get)
}

/// Returns whether a token is a string with a character.
pub(crate) fn is_text(token: &&str) -> bool {
    token.starts_with('"') && token.len() > 2
}

/// Returns the bytes of a string; `None` for another value.
pub(crate) fn decode(token: &str) -> Option<Cow<'_, [u8]>> {
    serde_json::from_str::<Text<'_>>(token).ok().map(|text| text.0)
}

/// Returns a string's text, with U+FFFD for each lone surrogate; `None` for another value.
pub(crate) fn decode_lossy(token: &str) -> Option<String> {
    decode(token).map(|bytes| lossy(&bytes))
}

/// Returns the text of decoded bytes, with U+FFFD for each lone surrogate.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    each_part(bytes, |sound, surrogate| {
        text.push_str(sound);
        if surrogate.is_some() {
            text.push('\u{FFFD}');
        }
    });
    text
}

/// Returns the token of a string; lone surrogates are escaped.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut token = String::with_capacity(bytes.len() + 2);
    token.push('"');
    each_part(bytes, |sound, surrogate| {
        let quoted = serde_json::Value::from(sound).to_string();
        token.push_str(&quoted[1..quoted.len() - 1]);
        if let Some(surrogate) = surrogate {
            token.push_str(&format!("\\u{surrogate:04x}"));
        }
    });
    token.push('"');
    token
}

/// Returns the code points of decoded bytes with the places after them.
pub(crate) fn code_points(bytes: &[u8]) -> impl Iterator<Item = (u32, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = u32::from(*bytes.get(at)?);
        let (width, lead) = match first {
            0..0x80 => (1, first),
            0x80..0xE0 => (2, first & 0x1F),
            0xE0..0xF0 => (3, first & 0x0F),
            _ => (4, first & 0x07),
        };
        let end = (at + width).min(bytes.len());
        let code = bytes[at + 1..end].iter().fold(lead, |code, b| code << 6 | u32::from(b & 0x3F));
        at = end;
        Some((code, at))
    })
}

/// Returns what Python calls the truth of a value: whether it is not null, false, zero or empty.
pub(crate) fn is_truthy(token: Option<&str>) -> bool {
    let Some(token) = token else { return false };
    match token.as_bytes().first() {
        None | Some(b'n' | b'f') => false,
        Some(b't') => true,
        Some(b'"') => token.len() > 2,
        Some(b'{') => !Members::of(token).0.is_empty(),
        Some(b'[') => items(token).next().is_some(),
        Some(_) if token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
            token.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
        }
        Some(_) => token.parse() != Ok(0.0),
    }
}

/// Returns whether two values mean the same; no value is null.
pub(crate) fn is_same(one: Option<&str>, other: Option<&str>) -> bool {
    let (one, other) = (one.unwrap_or("null"), other.unwrap_or("null"));
    match (decode(one), decode(other)) {
        (Some(one), Some(other)) => one == other,
        _ => Json::parse(one).ok() == Json::parse(other).ok(),
    }
}

/// Calls `part` with each part of sound text and the lone surrogate after it.
fn each_part(mut bytes: &[u8], mut part: impl FnMut(&str, Option<u32>)) {
    loop {
        let end = match std::str::from_utf8(bytes) {
            Ok(sound) => return part(sound, None),
            Err(error) => error.valid_up_to(),
        };
        let (sound, rest) = bytes.split_at(end);
        let surrogate = code_points(rest).next().map(|(code, _)| code);
        part(std::str::from_utf8(sound).unwrap_or_default(), surrogate);
        bytes = rest.get(3..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_members_counts_and_names_may_be_escaped() {
        let object = r#"{"a" : [1, {"b": "]}"}], "\u0062": "x", "a":2 }"#;
        let object = Members::of(object);
        assert_eq!(["a", "b", "c"].map(|name| object.get(name)), [Some("2"), Some("\"x\""), None]);
        assert_eq!(Members::of("[1]").0.len() + items("{}").count() + items("5").count(), 0);
        assert_eq!(
            items("[ 1 ,[2,3], \"\\\"]\" ]").collect::<Vec<_>>(),
            ["1", "[2,3]", "\"\\\"]\""]
        );
    }

    #[test]
    fn members_are_replaced_added_and_removed() {
        let mut object = Object::of(r#"{"a": 1, "\ud800": [1, 2], "\u0061": 3, "b": null}"#);
        assert_eq!(
            (object.get("a"), object.get("b"), object.get("c")),
            (Some("3"), Some("null"), None)
        );
        object.set("c", "{}");
        object.set("b", "4".to_owned());
        object.remove("a");
        object.remove("nothing");
        assert_eq!(object.to_text(), r#"{"b":4,"c":{},"\ud800":[1, 2]}"#);
        assert_eq!(Object::of("[1]").to_text(), "{}");
    }

    #[test]
    fn strings_are_decoded_and_encoded() {
        for (token, lossy, again) in [
            (r#""plain""#, "plain", r#""plain""#),
            (r#""\ud83d\ude00""#, "😀", r#""😀""#),
            (r#""a\ud83db""#, "a\u{FFFD}b", r#""a\ud83db""#),
            (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}", r#""\ude00\ud83d""#),
            (r#""\u0000\n\"\\\/""#, "\0\n\"\\/", r#""\u0000\n\"\\/""#),
        ] {
            assert_eq!(decode_lossy(token).as_deref(), Some(lossy));
            assert_eq!(encode(&decode(token).unwrap()), again);
        }
        assert_eq!(decode("5"), None);
    }

    #[test]
    fn surrogates_sort_as_code_points() {
        let decoded = |token| decode(token).unwrap().into_owned();
        assert!(decoded(r#""\ud800""#) < decoded(r#""\uffff""#));
        assert!(decoded(r#""\uffff""#) < decoded(r#""\ud83d\ude00""#));
    }

    #[test]
    fn truth_is_that_of_python() {
        for token in ["null", "false", "0", "-0", "0.0", "1e-400", "\"\"", "{ }", "[ ]"] {
            assert!(!is_truthy(Some(token)), "{token}");
        }
        for token in ["true", "10", "-1", "0.1", "1e999", "\"0\"", "[0]", "{\"\":0}"] {
            assert!(is_truthy(Some(token)), "{token}");
        }
    }

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        assert!(is_same(None, Some("null")) && is_same(Some(r#""a""#), Some(r#""\u0061""#)));
        assert!(is_same(Some("[1, 2]"), Some("[1,2]")));
        assert!(!is_same(Some("1"), Some("\"1\"")) && !is_same(None, Some("false")));
    }
}
