//! Reads values from valid JSON text without parsing the rest.
//!
//! A *token* is the text of one value. A string is decoded to its UTF-8 bytes, in which a lone surrogate is the three bytes
//! that UTF-8 would give it (WTF-8): so different strings have different bytes, and bytes sort as code points do.

use std::borrow::Cow;

use crate::message::canonical;

/// Returns the members of an object, name and value as tokens; of another value none.
pub(crate) fn members(token: &str) -> Members<'_> {
    Members { parts: Parts::of(token, b'{') }
}

/// Returns the items of an array as tokens; of another value none.
pub(crate) fn items(token: &str) -> Items<'_> {
    Items { parts: Parts::of(token, b'[') }
}

/// Returns whether a token is an object.
pub(crate) fn is_object(token: &str) -> bool {
    token.starts_with('{')
}

/// Returns the values of these members of an object. Of a name that occurs twice, the last one counts.
pub(crate) fn fields<'a, const N: usize>(token: &'a str, names: [&str; N]) -> [Option<&'a str>; N] {
    let mut found = [None; N];
    for (name, value) in members(token) {
        if let Some(at) = names.iter().position(|wanted| is_string(name, wanted)) {
            found[at] = Some(value);
        }
    }
    found
}

/// Returns whether a token is this string, which has no character that JSON escapes.
pub(crate) fn is_string(token: &str, text: &str) -> bool {
    let inner = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        None => false,
        Some(inner) if inner.contains('\\') => {
            decode(token).is_some_and(|bytes| *bytes == *text.as_bytes())
        }
        Some(inner) => inner == text,
    }
}

/// Returns the bytes of a string; `None` for another value.
pub(crate) fn decode(token: &str) -> Option<Cow<'_, [u8]>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    let Some(first) = inner.find('\\') else { return Some(Cow::Borrowed(inner.as_bytes())) };
    let bytes = inner.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    text.extend_from_slice(&bytes[..first]);
    let mut at = first;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            text.push(byte);
            at += 1;
            continue;
        }
        let escape = bytes.get(at + 1).copied().unwrap_or(b'\\');
        at += 2;
        match escape {
            b'b' => text.push(0x08),
            b'f' => text.push(0x0C),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'u' => {
                let high = unit(bytes, at);
                at += 4;
                let is_high = (0xD800..0xDC00).contains(&high);
                let low = (is_high && bytes.get(at..at + 2) == Some(b"\\u"))
                    .then(|| unit(bytes, at + 2))
                    .filter(|low| (0xDC00..0xE000).contains(low));
                match low {
                    Some(low) => {
                        at += 6;
                        push(&mut text, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
                    }
                    None => push(&mut text, high),
                }
            }
            other => text.push(other),
        }
    }
    Some(Cow::Owned(text))
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
        Some(b'{') => members(token).next().is_some(),
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
    one == other
        || match (decode(one), decode(other)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => canonical(one) == canonical(other),
            _ => false,
        }
}

/// Returns a value on one line, without the white space between its tokens.
pub(crate) fn on_one_line(token: &str) -> Cow<'_, str> {
    if !token.contains(['\n', '\r', '\t', ' ']) {
        return Cow::Borrowed(token);
    }
    let bytes = token.as_bytes();
    let (mut line, mut at) = (String::with_capacity(token.len()), 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => end_of_string(bytes, at),
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ => at + bytes[at..].iter().take_while(|b| is_plain(**b)).count(),
        };
        line.push_str(&token[at..end]);
        at = end;
    }
    Cow::Owned(line)
}

fn is_plain(byte: u8) -> bool {
    byte != b'"' && !byte.is_ascii_whitespace()
}

/// The members of an object.
pub(crate) struct Members<'a> {
    parts: Parts<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.parts.next()?, self.parts.next()?))
    }
}

/// The items of an array.
pub(crate) struct Items<'a> {
    parts: Parts<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        self.parts.next()
    }
}

/// The values directly in an object or array; those of an object are its names, each followed by its value.
struct Parts<'a> {
    token: &'a str,
    at: usize,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str, open: u8) -> Self {
        let at = if token.as_bytes().first() == Some(&open) { 1 } else { token.len() };
        Self { token, at }
    }

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.token.as_bytes();
        let is_between = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        self.at += bytes.get(self.at..)?.iter().take_while(is_between).count();
        if matches!(bytes.get(self.at)?, b'}' | b']') {
            return None;
        }
        let start = self.at;
        self.at = end_of_value(bytes, start);
        self.token.get(start..self.at)
    }
}

/// Returns the place after the value that starts here. Not recursive, because values may be nested deeply.
fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns the place after the string that starts here.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the four hexadecimal digits at this place.
fn unit(bytes: &[u8], at: usize) -> u32 {
    let digits = bytes.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}

fn push(text: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(letter) => text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => text.extend([0xE0 | (code >> 12) as u8, 0x80 | (code >> 6 & 0x3F) as u8, {
            0x80 | (code & 0x3F) as u8
        }]),
    }
}

/// Calls `part` with each stretch of sound text and the lone surrogate after it.
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
        let object = r#" {"a" : [1, {"b": "]}"}], "\u0062": "x", "a":2 }"#.trim();
        assert_eq!(fields(object, ["a", "b", "c"]), [Some("2"), Some("\"x\""), None]);
        assert_eq!(members(object).count(), 3);
        assert_eq!(members("[1]").count() + items("{}").count() + items("5").count(), 0);
        assert_eq!(
            items("[ 1 ,[2,3], \"\\\"]\" ]").collect::<Vec<_>>(),
            ["1", "[2,3]", "\"\\\"]\""]
        );
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

    #[test]
    fn a_value_fits_on_one_line() {
        let spread = "{\n  \"a b\": [1,\t2],\r\n \"c\\\"\\n \": null }";
        assert_eq!(on_one_line(spread), "{\"a b\":[1,2],\"c\\\"\\n \":null}");
        assert!(matches!(on_one_line("[1,2]"), Cow::Borrowed(_)));
    }
}
