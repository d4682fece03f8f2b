//! Counters of the tokens that a message takes in a model's window.
//!
//! A counter is the program's code and may fail: it panics, or its count is not a number of tokens. Then the estimate is
//! used, and the error handler of the session gets the failure. A [`Count`] says whether it is an estimate.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{estimate_tokens, of_message, of_message_by};
use crate::callback::{Failed, caught};
use crate::error::{Error, Result};
use crate::message::Message;

/// The name of [`HeuristicCounter`].
pub(crate) const HEURISTIC: &str = "heuristic";
/// The greatest valid count.
const MAX_COUNT: f64 = u32::MAX as f64;

/// Counts the tokens of texts and messages: a model's own tokenizer, or an estimate.
///
/// A session's counter decides when its conversation is compacted and which range of it. Counts are
/// rounded up.
///
/// A counter may fail: by a panic, or by a count that is negative, not finite or over 4 294 967 295.
/// No verb fails with it. The estimate of [`HeuristicCounter`] is used instead, the message is counted
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
    /// are counted again. `heuristic` is the name of [`HeuristicCounter`].
    fn name(&self) -> &str;

    /// Returns the number of tokens of a text.
    fn count_text(&self, text: &str) -> f64;

    /// Returns the number of tokens of a message: by default 4 plus the counts of its parts and of the line that names its
    /// author ([`AuthorLine`](crate::AuthorLine)), each rounded up. If a count is invalid, the first such count is
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
