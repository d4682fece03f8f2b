//! Estimates how many tokens a text or a message takes in a model's window.
//!
//! An estimate is not a tokenizer: it is fast, needs no tables, and is exact enough to decide when a
//! conversation must be compacted. The estimate of each message is stored in its row when the message
//! is written.
//!
//! A counter is the program's code and may fail: it panics, or its count is not a number of tokens. Then the estimate is
//! used, and the error handler of the session gets the failure. A [`Count`] says whether it is an estimate.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::callback::{Failed, caught};
use crate::error::{Error, Result};
use crate::message::{AuthorLine, Message, Part};

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

/// The name of talktree's own estimate.
pub(crate) const HEURISTIC: &str = "heuristic";
/// The greatest valid count.
const MAX_COUNT: f64 = u32::MAX as f64;

/// Counts the tokens of texts and messages: a model's own tokenizer, or an estimate.
///
/// A session's counter decides when its conversation is compacted and which range of it. Counts are
/// rounded up.
///
/// A counter may fail: by a panic, or by a count that is negative, not finite or over 4 294 967 295.
/// No verb fails with it. [`estimate_tokens`] is used instead, the message is counted
/// again with a later total, and the session's [`on_error`](crate::SessionBuilder::on_error) gets
/// [`Error::TokenCounter`], once until a count succeeds. A counter may call the library; a count inside a
/// count of the same thread fails.
///
/// ```
/// use talktree::{Message, TokenCounter};
///
/// struct Bytes;
///
/// impl TokenCounter for Bytes {
///     fn name(&self) -> &str {
///         "bytes"
///     }
///
///     fn count_text(&self, text: &str) -> f64 {
///         text.len() as f64 / 3.0
///     }
/// }
///
/// assert_eq!(Bytes.count(&Message::user("hello")), 4.0 + 2.0);
/// ```
pub trait TokenCounter: Send + Sync {
    /// Returns the name that is stored with the counts. It is read once, when a session is opened.
    ///
    /// Counters that count differently need different names: messages with a count of another name
    /// are counted again. `heuristic` is the name of talktree's own estimate.
    fn name(&self) -> &str;

    /// Returns the number of tokens of a text.
    fn count_text(&self, text: &str) -> f64;

    /// Returns the number of tokens of a message: by default 4 plus the counts of its parts and of the line that names its
    /// author ([`AuthorLine`]), each rounded up. If a count is invalid, the first such count is
    /// returned.
    fn count(&self, message: &Message) -> f64 {
        let invalid = Cell::new(None);
        let tokens = of_message_by(message, &|text| {
            let count = self.count_text(text);
            whole(count).unwrap_or_else(|| {
                invalid.set(invalid.get().or(Some(count)));
                0
            })
        });
        invalid.get().unwrap_or(tokens as f64)
    }
}

/// An error handler: gets each failure that no verb returns.
pub(crate) type Handler = Arc<dyn Fn(&Error) + Send + Sync>;

/// How many tokens a text or a message takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) tokens: u64,
    /// Whether it is the estimate, because the counter failed.
    pub(crate) is_estimate: bool,
}

/// A counter whose counts are valid, whatever the program's counter does.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    /// `None`: talktree's own estimate.
    counter: Option<Arc<CheckedCounter>>,
}

impl Counter {
    /// Returns a counter that a storage was given.
    pub(crate) fn new(counter: Arc<dyn TokenCounter>) -> Self {
        let name = Arc::from(counter.name());
        Self::checked(counter, name, Owner::Storage)
    }

    /// Returns a counter of the program; `handler` gets its failures.
    ///
    /// # Errors
    /// [`Error::TokenCounter`] if it panics when it is asked for its name.
    pub(crate) fn of_program(
        counter: Arc<dyn TokenCounter>,
        handler: Option<Handler>,
    ) -> Result<Self> {
        let name = caught(|| Arc::from(counter.name())).map_err(|failed| Error::TokenCounter {
            name: String::new(),
            why: failed.to_string(),
        })?;
        Ok(Self::checked(counter, name, Owner::Session(handler)))
    }

    fn checked(counter: Arc<dyn TokenCounter>, name: Arc<str>, owner: Owner) -> Self {
        let checked = CheckedCounter { counter, name, owner, is_failing: AtomicBool::new(false) };
        Self { counter: Some(Arc::new(checked)) }
    }

    /// Returns the program's counter without its panics: where it fails it returns NaN.
    pub(crate) fn of_the_program(&self) -> Option<Arc<dyn TokenCounter>> {
        self.counter.clone().map(|counter| counter as Arc<dyn TokenCounter>)
    }

    pub(crate) fn name(&self) -> &str {
        self.counter.as_ref().map_or(HEURISTIC, |counter| &counter.name)
    }

    pub(crate) fn text(&self, text: &str) -> Count {
        let estimate = |is_estimate| Count { tokens: estimate_tokens(text), is_estimate };
        match &self.counter {
            None => estimate(false),
            Some(counter) => match counter.ask(|counter| counter.count_text(text)) {
                Some(tokens) => Count { tokens, is_estimate: false },
                None => estimate(true),
            },
        }
    }

    pub(crate) fn message(&self, message: &Message) -> u64 {
        self.count(message).tokens
    }

    pub(crate) fn count(&self, message: &Message) -> Count {
        let Some(counter) = &self.counter else {
            return Count { tokens: of_message(message), is_estimate: false };
        };
        match counter.ask(|counter| counter.count(message)) {
            Some(tokens) => Count { tokens, is_estimate: false },
            None => Count { tokens: of_message(message), is_estimate: true },
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.name()).finish()
    }
}

/// A counter of the program whose counts are checked.
struct CheckedCounter {
    counter: Arc<dyn TokenCounter>,
    /// Read once: it is needed inside transactions, where no code of the program may run.
    name: Arc<str>,
    owner: Owner,
    /// Whether its last count failed. A counter that cannot be reached fails for every message: only the first failure is
    /// reported.
    is_failing: AtomicBool,
}

/// Who uses a counter.
enum Owner {
    /// A session, which reports failures to its handler.
    Session(Option<Handler>),
    /// A storage. The session that gave it the counter reports the failures.
    Storage,
}

thread_local! {
    /// Whether a counter runs in this thread.
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
}

/// Ends a count, also by a panic.
struct Counting;

impl Drop for Counting {
    fn drop(&mut self) {
        IS_COUNTING.set(false);
    }
}

impl CheckedCounter {
    /// Returns a valid count; `None` if the counter fails.
    fn ask(&self, count: impl FnOnce(&dyn TokenCounter) -> f64) -> Option<u64> {
        match self.try_ask(count) {
            Ok(tokens) => {
                self.is_failing.store(false, Ordering::Relaxed);
                Some(tokens)
            }
            Err(why) => {
                if !self.is_failing.swap(true, Ordering::Relaxed)
                    && let Owner::Session(Some(handler)) = &self.owner
                {
                    handler(&Error::TokenCounter { name: self.name.to_string(), why });
                }
                None
            }
        }
    }

    fn try_ask(&self, count: impl FnOnce(&dyn TokenCounter) -> f64) -> Result<u64, String> {
        let counted = match &self.owner {
            Owner::Storage => caught(|| count(self.counter.as_ref())),
            // A counter that counts by a verb that counts would not end.
            Owner::Session(_) if IS_COUNTING.replace(true) => {
                return Err("it was called inside a count".to_owned());
            }
            Owner::Session(_) => {
                let _counting = Counting;
                caught(|| count(self.counter.as_ref()))
            }
        };
        let tokens = counted.map_err(|failed: Failed| failed.to_string())?;
        whole(tokens).ok_or_else(|| {
            format!("it counted {tokens} tokens, and a count is a number from 0 to {MAX_COUNT}")
        })
    }
}

impl TokenCounter for CheckedCounter {
    fn name(&self) -> &str {
        &self.name
    }

    fn count_text(&self, text: &str) -> f64 {
        self.ask(|counter| counter.count_text(text)).map_or(f64::NAN, |tokens| tokens as f64)
    }

    fn count(&self, message: &Message) -> f64 {
        self.ask(|counter| counter.count(message)).map_or(f64::NAN, |tokens| tokens as f64)
    }
}

/// Returns a count rounded up; `None` if it is not a number of tokens.
fn whole(count: f64) -> Option<u64> {
    (0.0..=MAX_COUNT).contains(&count).then(|| count.ceil() as u64)
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

#[cfg(test)]
mod tests_of_counter {
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;

    use super::*;
    use crate::message::Part;

    /// Returns the same count for everything.
    struct Always(f64);

    impl TokenCounter for Always {
        fn name(&self) -> &str {
            "always"
        }

        fn count_text(&self, _: &str) -> f64 {
            self.0
        }

        fn count(&self, _: &Message) -> f64 {
            self.0
        }
    }

    #[test]
    fn counts_are_rounded_up_and_always_valid() {
        for (given, counted) in [
            (0.0, 0),
            (0.1, 1),
            (2.0, 2),
            (2.000_001, 3),
            (-0.0, 0),
            (f64::MIN_POSITIVE, 1),
            (f64::from(u32::MAX), u64::from(u32::MAX)),
        ] {
            let counter = Counter::new(Arc::new(Always(given)));
            assert_eq!(counter.text("x").tokens, counted, "{given}");
            let count = Count { tokens: counted, is_estimate: false };
            assert_eq!(counter.count(&Message::user("x")), count, "{given}");
        }
    }

    #[test]
    fn an_invalid_count_is_estimated_and_reported_once_until_a_count_succeeds() {
        for given in
            [-0.5, -7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 4_294_967_296.0, 1e300]
        {
            let heard = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&heard);
            let handler: Handler = Arc::new(move |error| {
                let text = error.to_string();
                assert!(text.starts_with(r#"the token counter "always" failed: it"#), "{text}");
                assert!(text.contains(&format!("counted {given} ")), "{text}");
                assert!(text.ends_with("from 0 to 4294967295"), "{text}");
                count.fetch_add(1, Ordering::Relaxed);
            });
            let counter = Counter::of_program(Arc::new(Always(given)), Some(handler)).unwrap();
            assert_eq!(
                counter.text("Hello world"),
                Count { tokens: 3, is_estimate: true },
                "{given}"
            );
            let estimate = Count { tokens: 7, is_estimate: true };
            assert_eq!(counter.count(&Message::user("Hello world")), estimate, "{given}");
            assert_eq!(heard.load(Ordering::Relaxed), 1, "{given}");
            // A storage is given the same counter, and fails with it.
            let stored = Counter::new(counter.of_the_program().unwrap());
            assert_eq!(stored.count(&Message::user("Hello world")), estimate, "{given}");
        }
    }

    /// Returns another name at each call.
    #[derive(Default)]
    struct Fickle(AtomicUsize);

    impl TokenCounter for Fickle {
        fn name(&self) -> &str {
            ["first", "second"][self.0.fetch_add(1, Ordering::Relaxed)]
        }

        fn count_text(&self, _: &str) -> f64 {
            0.0
        }
    }

    #[test]
    fn the_name_is_read_once() {
        let counter = Counter::new(Arc::new(Fickle::default()));
        assert_eq!((counter.name(), counter.clone().name()), ("first", "first"));
    }

    #[test]
    fn the_heuristic_counts_as_messages_do() {
        let message = Message::assistant("The quick brown fox")
            .with_part(Part::reasoning("one two three"))
            .with_part(Part::tool_call("t", "1", json!({"city": "Jena"})))
            .with_part(Part::tool_result("t", "1", json!("done")));
        let counter = Counter::default();
        assert_eq!(counter.message(&message), message.tokens());
        assert_eq!(counter.text("one two three").tokens, 4);
        assert_eq!(format!("{counter:?}"), r#"Counter("heuristic")"#);
    }
}
