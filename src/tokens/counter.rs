//! Counters of the tokens that a message takes in a model's window.

use std::fmt;
use std::sync::Arc;

use super::{estimate_tokens, of_message, of_message_by};
use crate::message::Message;

/// The name of [`HeuristicCounter`].
pub(crate) const HEURISTIC: &str = "heuristic";
/// The greatest count; a greater one is read as this.
const MAX_COUNT: f64 = u32::MAX as f64;

/// Counts the tokens of texts and messages: a model's own tokenizer, or an estimate.
///
/// A session's counter decides when its conversation is compacted and which range of it. Counts are
/// rounded up; a negative or infinite count, or NaN, is read as 0.
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
    /// are counted again. `heuristic` is the name of [`HeuristicCounter`].
    fn name(&self) -> &str;

    /// Returns the number of tokens of a text.
    fn count_text(&self, text: &str) -> f64;

    /// Returns the number of tokens of a message: by default 4 plus the counts of its parts, each
    /// rounded up.
    fn count(&self, message: &Message) -> f64 {
        of_message_by(message, &|text| whole(self.count_text(text))) as f64
    }
}

/// Counts by [`estimate_tokens`] and [`Message::tokens`]: fast, without tables, and exact enough to
/// decide when a conversation must be compacted.
///
/// ```
/// use talktree::{HeuristicCounter, Message, TokenCounter};
///
/// assert_eq!(HeuristicCounter.count_text("Hello world"), 3.0);
/// assert_eq!(HeuristicCounter.count(&Message::user("Hello world")), 7.0);
/// assert_eq!(HeuristicCounter.name(), "heuristic");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeuristicCounter;

impl TokenCounter for HeuristicCounter {
    fn name(&self) -> &str {
        HEURISTIC
    }

    fn count_text(&self, text: &str) -> f64 {
        estimate_tokens(text) as f64
    }

    fn count(&self, message: &Message) -> f64 {
        of_message(message) as f64
    }
}

/// A [`TokenCounter`] whose counts are rounded to valid whole numbers.
#[derive(Clone)]
pub(crate) struct Counter {
    counter: Arc<dyn TokenCounter>,
    /// Read beforehand: it is needed inside transactions, where no code of a caller may run.
    name: Arc<str>,
}

impl Counter {
    pub(crate) fn new(counter: Arc<dyn TokenCounter>) -> Self {
        let name = Arc::from(counter.name());
        Self { counter, name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn text(&self, text: &str) -> u64 {
        whole(self.counter.count_text(text))
    }

    pub(crate) fn message(&self, message: &Message) -> u64 {
        whole(self.counter.count(message))
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new(Arc::new(HeuristicCounter))
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.name()).finish()
    }
}

/// Returns the count rounded up; 0 if it is negative or not finite.
fn whole(count: f64) -> u64 {
    if count.is_finite() { count.ceil().clamp(0.0, MAX_COUNT) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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
            (-0.5, 0),
            (-7.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (f64::NEG_INFINITY, 0),
            (f64::MIN_POSITIVE, 1),
            (1e300, u64::from(u32::MAX)),
        ] {
            let counter = Counter::new(Arc::new(Always(given)));
            assert_eq!(counter.text("x"), counted, "{given}");
            assert_eq!(counter.message(&Message::user("x")), counted, "{given}");
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
        assert_eq!(counter.text("one two three"), 4);
        assert_eq!(format!("{counter:?}"), r#"Counter("heuristic")"#);
    }
}
