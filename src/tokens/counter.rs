//! Counters: how many tokens a message takes in a model's window.

use std::fmt;
use std::sync::Arc;

use super::{estimate_tokens, of_message, of_message_by};
use crate::message::Message;

/// The name of talktree's own estimate.
pub(crate) const HEURISTIC: &str = "heuristic";
/// The most tokens that one count can be; more is read as this many.
const MAX_COUNT: f64 = u32::MAX as f64;

/// What counts the tokens of texts and messages: a model's own tokenizer, or an estimate.
///
/// One counter decides both when a conversation is compacted and what of it. A count is rounded up;
/// one that is negative or not finite counts as 0.
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
    /// Returns the name that the counts are kept under; it is asked for when a session is opened.
    /// Counters that count differently need different names: counts of another name are made anew.
    /// `heuristic` is talktree's own.
    fn name(&self) -> &str;

    /// Returns the number of tokens of a text.
    fn count_text(&self, text: &str) -> f64;

    /// Returns the number of tokens of a message; if it is not written, 4 and those of its parts,
    /// each rounded up by itself.
    fn count(&self, message: &Message) -> f64 {
        of_message_by(message, &|text| whole(self.count_text(text))) as f64
    }
}

/// The estimate of [`estimate_tokens`] and [`Message::tokens`]: quick, without tables, and near
/// enough to decide when a conversation must be compacted.
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

/// A counter whose counts are whole numbers, whatever the one inside answers.
#[derive(Clone)]
pub(crate) struct Counter {
    counter: Arc<dyn TokenCounter>,
    /// Asked for beforehand: it is needed while a transaction is open, where no caller's code runs.
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

    /// Answers the same to everything.
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
    fn counts_are_rounded_up_and_never_odd() {
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

    /// Says another name whenever it is asked.
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
    fn the_name_is_asked_for_beforehand() {
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
