//! Estimates how many tokens a text or a message takes in a model's window.
//!
//! An estimate is not a tokenizer: it is fast, needs no tables, and is exact enough to decide when a
//! conversation must be compacted. The estimate of each message is stored in its row when the message
//! is written.

mod counter;

use crate::message::{AuthorLine, Message, Part};

pub(crate) use counter::{Count, Counter, HEURISTIC, Handler};
pub use counter::{HeuristicCounter, TokenCounter};

/// The version of the estimate. Raise it with every change of a count: messages that another version counted are counted
/// again.
pub(crate) const ESTIMATE_VERSION: i64 = 1;

/// The tokens of a message without its parts.
const PER_MESSAGE: u64 = 4;

/// Returns the estimated number of tokens of a text.
///
/// The estimate is a quarter of the UTF-16 length or 1.3 times the number of words, whichever is
/// greater, rounded up. Words are separated by white space as JavaScript defines it.
///
/// ```
/// use talktree::estimate_tokens;
///
/// assert_eq!(estimate_tokens("Hello world"), 3);
/// assert_eq!(estimate_tokens("用户喜欢咖啡"), 2);
/// assert_eq!(estimate_tokens(""), 0);
/// ```
#[must_use]
pub fn estimate_tokens(text: &str) -> u64 {
    let (units, words) = if text.is_ascii() { of_ascii(text.as_bytes()) } else { of_chars(text) };
    // 1.3 is not exact in floating point. Other programs with this rule compute it the same way.
    (units as f64 / 4.0).max(words as f64 * 1.3).ceil() as u64
}

/// Returns the UTF-16 length and the number of words.
fn of_chars(text: &str) -> (u64, u64) {
    let (mut units, mut words, mut in_word) = (0, 0, false);
    for c in text.chars() {
        units += c.len_utf16() as u64;
        let is_space = is_js_space(c);
        words += u64::from(!is_space && !in_word);
        in_word = !is_space;
    }
    (units, words)
}

/// The same for ASCII, many times faster: without branches, so that the loop can be vectorized.
fn of_ascii(text: &[u8]) -> (u64, u64) {
    let is_space = |byte: u8| byte == b' ' || byte.wrapping_sub(b'\t') < 5;
    let begins = |(before, byte): (&u8, &u8)| u64::from(is_space(*before) & !is_space(*byte));
    let first = text.first().map_or(0, |byte| u64::from(!is_space(*byte)));
    let words = first + text.iter().zip(text.iter().skip(1)).map(begins).sum::<u64>();
    (text.len() as u64, words)
}

/// White space as JavaScript's `\s` defines it: Unicode's, with U+FEFF and without U+0085.
fn is_js_space(c: char) -> bool {
    c == '\u{FEFF}' || (c.is_whitespace() && c != '\u{85}')
}

/// Returns the estimate of a message: 4 plus the estimates of its parts and of the line that names its author, each rounded up.
pub(crate) fn of_message(message: &Message) -> u64 {
    of_message_by(message, &estimate_tokens)
}

/// The same with another way to count the texts.
pub(crate) fn of_message_by(message: &Message, count: &impl Fn(&str) -> u64) -> u64 {
    let parts = message.parts.iter().map(|part| of_part(part, count)).sum::<u64>();
    // Counted even if a request does not show the line, so that a request that shows it does not exceed the window.
    PER_MESSAGE + parts + AuthorLine::NameAndTime.of(message).map_or(0, |line| count(&line))
}

fn of_part(part: &Part, count: &impl Fn(&str) -> u64) -> u64 {
    match part {
        Part::Text(text) => count(&text.text),
        Part::Reasoning(reasoning) => count(&reasoning.text),
        Part::Tool(tool) => {
            let output = tool.output.as_ref().filter(|json| !json.is_null());
            let output = output.or_else(|| tool.extra.get("result"));
            tool.input.iter().chain(output).map(|json| of_json(&json.value(), count)).sum()
        }
        Part::File(file) => {
            let text = ["text", "result"].iter().find_map(|field| file.extra.get(*field));
            text.map_or(0, |json| of_json(&json.value(), count))
        }
        Part::Other(json) => of_unknown(&json.value(), count),
    }
}

fn of_unknown(part: &serde_json::Value, count: &impl Fn(&str) -> u64) -> u64 {
    let kind = part["type"].as_str().unwrap_or_default();
    let first_of = |fields: [&str; 2]| {
        let value = fields.iter().map(|field| &part[*field]).find(|value| !value.is_null());
        value.map_or(0, |value| of_json(value, count))
    };
    match kind {
        "text" | "reasoning" => first_of(["text", "reasoning"]),
        _ if kind.starts_with("tool-") || kind == "dynamic-tool" => {
            of_json(&part["input"], count) + first_of(["output", "result"])
        }
        _ => first_of(["text", "result"]),
    }
}

/// A string counts without quotes, null counts 0, any other value counts as compact JSON.
fn of_json(value: &serde_json::Value, count: &impl Fn(&str) -> u64) -> u64 {
    match value {
        serde_json::Value::Null => 0,
        serde_json::Value::String(text) => count(text),
        other => count(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_estimated_by_its_length_or_its_words() {
        let cases = [
            ("Hello world", 3),
            ("The quick brown fox jumps over the lazy dog", 12),
            ("one two three", 4),
            (&"x".repeat(401), 101),
            (&"word ".repeat(50), 65),
            ("用户喜欢咖啡", 2),
            ("", 0),
            ("a\u{A0}b\u{3000}c\u{FEFF}d", 6),
        ];
        for (text, tokens) in cases {
            assert_eq!(estimate_tokens(text), tokens, "{text:?}");
        }
    }

    /// Two rules under one version would be added up in one file.
    #[test]
    fn the_counts_of_a_version_stay_as_they_are() {
        let counts = |text: &str| [estimate_tokens(text), of_message(&Message::user(text))];
        let cases = [
            ("", [0, 4]),
            ("Hello, world!", [4, 8]),
            ("The quick brown fox jumps over the lazy dog.", [12, 16]),
            ("fn main() { println!(\"{}\", 6 * 7); }", [11, 15]),
            ("Größere Übungen — naïve façade…", [8, 12]),
            ("用户喜欢在早上喝咖啡", [3, 7]),
            ("🙂🙂🙂", [2, 6]),
        ];
        let found = cases.map(|(text, _)| (text, counts(text)));
        assert_eq!((ESTIMATE_VERSION, found), (1, cases), "a changed rule needs a new version");
    }

    #[test]
    fn bytes_and_characters_give_the_same_count() {
        let every =
            (0..128).map(char::from).flat_map(|a| ["", " ", "x"].map(|b| format!("{a}{b}")));
        for text in every.chain(["", " a", "a  b\tc\r\n", "\u{1F}\u{B}x"].map(str::to_owned)) {
            assert_eq!(of_ascii(text.as_bytes()), of_chars(&text), "{text:?}");
        }
    }

    #[test]
    fn a_message_costs_four_and_each_part_rounded_up() {
        let message: Message = serde_json::from_value(serde_json::json!({
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "Hello world"},
                {"type": "reasoning", "reasoning": "one two three"},
                {"type": "tool-calc", "toolCallId": "c", "input": {"e": 1}, "output": "x"},
                {"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "input": null, "result": "one two three"},
                {"type": "data-x", "result": "Hello world"},
                {"type": "step-start"}
            ]
        }))
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(of_message(&message), 4 + 3 + 4 + (2 + 2) + 4 + 3);
    }
}
