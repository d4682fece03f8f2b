//! Custom token counters: each handle's figures are those of its own counter, whatever counted before.
//!
//! A counter may fail. One that returned NaN once was stored as 0 under its name forever, so automatic compaction was off
//! without an error. One that panicked lost the append.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::Scratch;
use crate::tables::Tables;
use serde_json::json;
use talktree::{
    BoxError, CompactionOptions, Error, MAX_ID_BYTES, Message, Result, Role, Session,
    SessionBuilder, Store, TokenCounter,
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
        assert!(matches!(open(name), Err(Error::InvalidValue { .. })));
    }
    Ok(())
}

fn heuristic(chat: &Session) -> Result<u64> {
    Ok(chat.history()?.iter().map(Message::tokens).sum())
}

/// As a store that another version of talktree wrote, whose estimate counts by another rule: -6 is its seventh version.
#[test]
fn what_another_version_of_the_estimate_counted_is_counted_again() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    chat.append_all(["one", "two words", "three of them"].map(Message::user))?;
    let tokens = chat.visible_tokens()?;
    assert_eq!(tokens, heuristic(&chat)?);
    Tables::of(&scratch.folder.path().join("talk.db")).run(
        "UPDATE message SET tokens = 50, counter = -6;
         UPDATE session SET visible_tokens = 150, counter = -6;",
    );
    drop(chat);
    scratch.reopen()?;
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    let chat = scratch.store.session("s")?;
    chat.append(Message::user("four"))?;
    assert_eq!(chat.visible_tokens()?, tokens + 6);
    assert_eq!(chat.visible_tokens()?, heuristic(&chat)?);
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
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

/// Counts letters, or answers as it is set to.
#[derive(Clone, Default)]
struct Fragile(Arc<Mutex<Option<Answer>>>);

#[derive(Debug, Clone, Copy)]
enum Answer {
    Gives(f64),
    Panics,
}

impl Fragile {
    const BAD: [Answer; 6] = [
        Answer::Gives(f64::NAN),
        Answer::Gives(f64::INFINITY),
        Answer::Gives(f64::NEG_INFINITY),
        Answer::Gives(-1.0),
        Answer::Gives(1e300),
        Answer::Panics,
    ];

    fn answer(&self, answer: Option<Answer>) {
        *self.0.lock().unwrap() = answer;
    }
}

impl TokenCounter for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn count_text(&self, text: &str) -> f64 {
        let answer = *self.0.lock().unwrap();
        match answer {
            None => text.len() as f64,
            Some(Answer::Gives(count)) => count,
            Some(Answer::Panics) => panic!("no tokens"),
        }
    }
}

/// The errors that the handler got.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn on(&self, builder: SessionBuilder) -> SessionBuilder {
        let heard = Arc::clone(&self.0);
        builder.on_error(move |error| heard.lock().unwrap().push(error.to_string()))
    }

    fn all(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Returns what the history has by a counter that works.
fn counted(chat: &Session) -> Result<u64> {
    Ok(chat.history()?.iter().map(|message| Fragile::default().count(message) as u64).sum())
}

fn said(id: usize) -> Message {
    Message::user(format!("{id} and some words more")).with_id(id.to_string())
}

#[test]
fn a_count_that_fails_is_estimated_and_reported_and_counted_again_later() -> Result<()> {
    for bad in Fragile::BAD {
        let scratch = Scratch::new()?;
        let (counter, heard) = (Fragile::default(), Heard::default());
        let builder = scratch.store.session_builder("s").token_counter(counter.clone());
        let chat = heard.on(builder).open()?;
        chat.append(said(0))?;
        counter.answer(Some(bad));
        assert!(chat.append(said(1))?.is_new, "{bad:?}");
        assert_eq!(heard.all().len(), 1, "{bad:?}");
        // The first by the counter, the second by the estimate.
        let expected = Fragile::default().count(&said(0)) as u64;
        counter.answer(None);
        let answer = chat.append(said(2));
        counter.answer(Some(bad));
        answer?;
        assert_eq!(chat.visible_tokens()?, 2 * expected + said(1).tokens(), "{bad:?}");
        assert!(heard.all()[0].contains("fragile"), "{bad:?}");

        counter.answer(None);
        assert_eq!(chat.visible_tokens()?, counted(&chat)?, "{bad:?}: counted again");
        assert_eq!(chat.visible_tokens()?, 3 * expected);
        assert_eq!((heard.all(), chat.path_length()?), (vec![], 3));
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn no_verb_fails_with_its_counter() -> Result<()> {
    for bad in Fragile::BAD {
        let scratch = Scratch::new()?;
        let (counter, heard) = (Fragile::default(), Heard::default());
        scratch.store.session("s")?.append_all((0..20).map(said))?;
        let builder = scratch.store.session_builder("s").token_counter(counter.clone());
        let chat = heard.on(builder).open()?;
        counter.answer(Some(bad));
        assert_eq!(chat.visible_tokens()?, heuristic(&chat)?, "{bad:?}");
        chat.append(said(20))?;
        chat.append_all((21..30).map(said))?;
        chat.update(Message::user("other").with_id("29"))?;
        chat.upsert(Message::user("another").with_id("29"))?;
        chat.upsert(said(30))?;
        let below = |id: usize| (Some((id - 1).to_string().into()), said(id));
        chat.import_messages([below(31), below(32)])?;
        assert_eq!(chat.window_usage()?.total, heuristic(&chat)?, "{bad:?}");
        assert!(!chat.recent(talktree::Budget::Tokens(40))?.messages.is_empty());
        let options = CompactionOptions::default().protect_head(0).keep_recent_tokens(0);
        let Ok(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
        let tokens = plan.tokens();
        let compacted = chat.commit(plan, "short")?;
        assert_eq!((compacted.tokens_before, compacted.tokens_after), (tokens, 6), "{bad:?}");
        chat.add_compaction("shorter", &"0".into(), &"32".into())?;
        assert_eq!(chat.visible_tokens()?, heuristic(&chat)?, "{bad:?}");
        let next = chat.compact_and_split("all of it")?;
        assert_eq!(next.visible_tokens()?, heuristic(&next)?, "{bad:?}");
        assert!(!heard.all().is_empty(), "{bad:?}");
        counter.answer(None);
        for chat in [&chat, &next] {
            chat.append(said(40))?;
            assert_eq!(chat.visible_tokens()?, counted(chat)?, "{bad:?}");
        }
        assert_eq!(scratch.store.verify(|_| {})?.damages, [], "{bad:?}");
    }
    Ok(())
}

#[test]
fn a_counter_that_never_works_leaves_automatic_compaction_on() -> Result<()> {
    for bad in Fragile::BAD {
        let store = Store::open_in_memory()?;
        let (counter, heard) = (Fragile::default(), Heard::default());
        counter.answer(Some(bad));
        let chat = store
            .session_builder("s")
            .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("short") })
            .compact_after(200)
            .token_counter(counter);
        let chat = heard.on(chat).open()?;
        for id in 0..100 {
            chat.append(said(id))?;
            assert!(heuristic(&chat)? <= 200, "{bad:?}: {}", heuristic(&chat)?);
        }
        assert!(!heard.all().is_empty(), "{bad:?}");
    }
    Ok(())
}

/// The default sum hid the NaN of a part.
#[test]
fn a_part_that_cannot_be_counted_makes_the_count_of_its_message_invalid() {
    let counter = Fragile::default();
    counter.answer(Some(Answer::Gives(f64::NAN)));
    assert!(counter.count(&Message::user("hello")).is_nan());
    counter.answer(Some(Answer::Gives(-100.0)));
    assert_eq!(counter.count(&Message::user("hello")), -100.0);
}

/// Stores that an earlier build wrote hold zeros under the name of a counter.
#[test]
fn recount_tokens_makes_a_counter_count_its_messages_again() -> Result<()> {
    let scratch = Scratch::new()?;
    let open = || scratch.store.session_builder("s").token_counter(Fragile::default()).open();
    open()?.append_all((0..5).map(said))?;
    let path = scratch.folder.path().join("talk.db");
    let damage = "UPDATE message SET tokens = 0; UPDATE session SET visible_tokens = 0";
    Tables::of(&path).run(damage);
    assert_eq!(open()?.visible_tokens()?, 0);

    scratch.store.recount_tokens()?;
    assert_eq!(open()?.visible_tokens()?, counted(&open()?)?);
    assert_eq!(scratch.store.session("s")?.visible_tokens()?, heuristic(&open()?)?);
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}

/// The name was read twice, and only the first one was checked.
#[test]
fn the_name_of_a_counter_is_read_once() -> Result<()> {
    #[derive(Default)]
    struct Fickle(AtomicUsize);
    impl TokenCounter for Fickle {
        fn name(&self) -> &str {
            if self.0.fetch_add(1, Ordering::SeqCst) == 0 { "first" } else { "" }
        }
        fn count_text(&self, _: &str) -> f64 {
            1.0
        }
    }
    let scratch = Scratch::new()?;
    let chat = scratch.store.session_builder("s").token_counter(Fickle::default()).open()?;
    chat.append(said(0))?;
    let path = scratch.folder.path().join("talk.db");
    assert_eq!(Tables::of(&path).value("SELECT name FROM token_counter"), "first");
    Ok(())
}
