//! Custom token counters: each handle's figures are those of its own counter, whatever counted before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use talktree::{
    CountedAppend, Error, ExpectedHead, MAX_ID_BYTES, Message, Parent, Result, Role, Session,
    Store, TokenCounter,
};

/// Counts 10 tokens for each message, and how often it is called.
#[derive(Clone, Default)]
struct Flat(Arc<AtomicUsize>);

impl TokenCounter for Flat {
    fn name(&self) -> &str {
        "flat"
    }

    fn count_text(&self, _: &str) -> f64 {
        1.0
    }

    fn count(&self, _: &Message) -> f64 {
        self.0.fetch_add(1, Ordering::SeqCst);
        10.0
    }
}

/// A counter with any name.
struct Named(String);

impl TokenCounter for Named {
    fn name(&self) -> &str {
        &self.0
    }

    fn count_text(&self, _: &str) -> f64 {
        1.0
    }
}

#[test]
fn the_name_of_a_counter_is_neither_empty_nor_too_long() -> Result<()> {
    let store = Store::open_in_memory()?;
    let open = |name: String| store.session_builder("s").token_counter(Named(name)).open();
    open("x".repeat(MAX_ID_BYTES))?;
    for name in [String::new(), "x".repeat(MAX_ID_BYTES + 1)] {
        assert!(matches!(open(name), Err(Error::InvalidName { .. })));
    }
    Ok(())
}

fn heuristic(chat: &Session) -> Result<u64> {
    Ok(chat.history()?.iter().map(Message::tokens).sum())
}

#[test]
fn another_counter_counts_a_long_conversation_once_message_by_message() -> Result<()> {
    let store = Store::open_in_memory()?;
    let plain = store.session("s")?;
    // One long run, then two replies to each question: runs of two messages.
    plain.append_all((0..1_200).map(|n| Message::user(format!("message {n}"))))?;
    for n in 0..300 {
        let question = plain.append(Message::user(format!("question {n}")))?.id;
        plain.append_to(&question, Message::assistant("first try"))?;
        plain.append_to(&question, Message::assistant("second try, and longer"))?;
    }
    assert_eq!(plain.visible_tokens()?, heuristic(&plain)?);

    let flat = Flat::default();
    let chat = store.session_builder("s").token_counter(flat.clone()).open()?;
    assert_eq!(chat.visible_tokens()?, 1_800 * 10);
    assert_eq!(flat.0.load(Ordering::SeqCst), 1_800);
    assert_eq!(chat.visible_tokens()?, 1_800 * 10);
    assert_eq!(flat.0.load(Ordering::SeqCst), 1_800, "the figure is stored");
    assert_eq!(plain.visible_tokens()?, heuristic(&plain)?);
    Ok(())
}

#[test]
fn an_append_of_a_known_message_does_not_return_the_figure_of_another_counter() -> Result<()> {
    let store = Store::open_in_memory()?;
    let hello = Message::user("Hello world");
    let append = |chat: &Session| -> Result<CountedAppend> {
        chat.provider().append_counted(
            &Parent::Head,
            &ExpectedHead::Any,
            std::slice::from_ref(&hello),
        )
    };
    let plain = store.session("s")?;
    assert_eq!(append(&plain)?.visible_tokens, Some(7));
    assert_eq!(append(&plain)?.visible_tokens, Some(7), "a retry");

    let chat = store.session_builder("s").token_counter(Flat::default()).open()?;
    let counted = append(&chat)?;
    assert!(!counted.appended[0].is_new);
    assert_eq!(counted.visible_tokens, None);
    assert_eq!(chat.visible_tokens()?, 10);
    assert_eq!(append(&chat)?.visible_tokens, Some(10));
    assert_eq!(append(&plain)?.visible_tokens, None);
    Ok(())
}

/// Counts by role; the first call changes the message.
struct ByRole {
    plain: Session,
    change: Mutex<Option<Message>>,
}

impl TokenCounter for ByRole {
    fn name(&self) -> &str {
        "by role"
    }

    fn count_text(&self, _: &str) -> f64 {
        1.0
    }

    fn count(&self, message: &Message) -> f64 {
        if let Some(changed) = self.change.lock().unwrap().take() {
            self.plain.update(changed).unwrap();
        }
        if message.role == Role::User { 10.0 } else { 20.0 }
    }
}

#[test]
fn a_message_that_changes_while_it_is_counted_is_counted_again() -> Result<()> {
    let hello = || Message::user("hello").with_id("a");
    let with_role = Message::assistant("hello").with_id("a");
    for (changed, tokens) in [(with_role, 20), (hello().with_metadata(json!({"x": 1})), 10)] {
        let store = Store::open_in_memory()?;
        let plain = store.session("s")?;
        plain.append(hello())?;
        let counter = ByRole { plain, change: Mutex::new(Some(changed.clone())) };
        let chat = store.session_builder("s").token_counter(counter).open()?;
        assert_eq!(chat.visible_tokens()?, tokens);
        assert_eq!(chat.history()?[0].role, changed.role);
    }
    Ok(())
}
