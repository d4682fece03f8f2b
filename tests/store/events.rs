//! Subscribers receive each committed change once, in order.

use std::sync::{Arc, Mutex, PoisonError};

use crate::common::letters;
use talktree::{
    BoxError, Change, CompactionOptions, Event, Message, Result, Session, Store, Subscription,
};

/// The received changes, in order.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Event>>>);

impl Ear {
    fn on(chat: &Session) -> (Self, Subscription) {
        let ear = Self::default();
        let subscription = chat.subscribe(ear.listener());
        (ear, subscription)
    }

    fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let received = Arc::clone(&self.0);
        move |event| received.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone())
    }

    /// Returns the changes received since the last call.
    fn received(&self) -> Vec<Change> {
        let events = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        events.into_iter().map(|event| event.change).collect()
    }
}

#[test]
fn each_change_is_sent_once() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let (ear, _subscription) = Ear::on(&chat);

    chat.append_all(letters("a b c"))?;
    assert_eq!(ear.received(), [Change::Append { ids: ["a", "b", "c"].map(Into::into).to_vec() }]);
    chat.update(Message::user("other").with_id("b"))?;
    assert_eq!(ear.received(), [Change::Update { id: "b".into() }]);
    chat.checkout(&"a".into())?;
    chat.undo_head()?;
    chat.redo_head()?;
    let head = |id: &str| Change::Head { id: Some(id.into()) };
    assert_eq!(ear.received(), [head("a"), head("c"), head("a")]);
    chat.checkout_start()?;
    assert_eq!(ear.received(), [Change::Head { id: None }]);
    let compaction = chat.add_compaction("summary", &"a".into(), &"b".into())?.id;
    chat.remove_compaction(&compaction)?;
    assert_eq!(
        ear.received(),
        [
            Change::Compact {
                id: compaction.clone(),
                messages: 2,
                tokens_before: chat.message(&"a".into())?.unwrap().tokens() * 2,
                tokens_after: Message::assistant("summary").tokens(),
            },
            Change::RemoveCompaction { id: compaction }
        ]
    );
    chat.import_message(Some(&"c".into()), Message::user("d").with_id("d"))?;
    assert_eq!(ear.received(), [Change::Import { messages: 1 }]);
    chat.delete([&"b".into()])?;
    chat.delete_branch(&"c".into())?;
    let gone = |ids: &[&str]| Change::Delete { ids: ids.iter().map(|id| (*id).into()).collect() };
    assert_eq!(ear.received(), [gone(&["b"]), gone(&["c", "d"])]);
    chat.clear()?;
    assert_eq!(ear.received(), [Change::Clear]);
    Ok(())
}

#[test]
fn a_no_op_sends_nothing() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters("a b"))?;
    chat.import_message(None, Message::user("i").with_id("i"))?;
    let (ear, _subscription) = Ear::on(&chat);

    chat.append_all(letters("a b"))?;
    chat.append_all([])?;
    chat.update(Message::user("a").with_id("a"))?;
    chat.import_message(None, Message::user("i").with_id("i"))?;
    chat.delete([])?;
    assert!(!chat.redo_head()?);
    assert!(chat.append_to(&"x".into(), Message::user("x")).is_err());
    assert!(chat.delete([&"a".into(), &"x".into()]).is_err());
    assert_eq!(ear.received(), []);
    Ok(())
}

#[test]
fn a_session_receives_its_own_changes_and_the_store_all() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (chat, other) = (store.session("s")?, store.session("other")?);
    let (ear, _subscription) = Ear::on(&chat);
    let all = Ear::default();
    let _all = store.subscribe(all.listener());

    other.append(Message::user("x"))?;
    store.session("s")?.append(Message::user("y"))?;
    store.remove(other.id())?;
    assert_eq!((ear.received().len(), all.received().len()), (1, 3));
    Ok(())
}

#[test]
fn a_fork_is_sent_under_its_own_id() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("a b"))?;
    let all = Ear::default();
    let _all = store.subscribe(all.listener());
    let (own, _own) = Ear::on(&chat);

    chat.fork(&"b".into(), "fork")?;
    assert_eq!((all.received(), own.received()), (vec![Change::Import { messages: 2 }], vec![]));
    Ok(())
}

#[test]
fn a_dropped_subscription_receives_nothing() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let (ear, subscription) = Ear::on(&chat);
    chat.append(Message::user("a"))?;
    drop(subscription);
    chat.append(Message::user("b"))?;
    assert_eq!(ear.received().len(), 1);
    Ok(())
}

#[test]
fn a_listener_can_read_write_and_subscribe() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let inner = chat.clone();
    let _subscription = chat.subscribe(move |event| {
        let Change::Append { ids } = &event.change else { return };
        let length = inner.path_length().unwrap_or_default();
        if length < 3 {
            assert!(inner.message(&ids[0]).is_ok_and(|message| message.is_some()));
            drop(inner.subscribe(|_| {}));
            let _ = inner.append(Message::assistant("echo"));
        }
    });
    chat.append(Message::user("hello"))?;
    assert_eq!(chat.path_length()?, 3);
    Ok(())
}

/// A panic of a listener made the committed append look failed, and the later listeners heard nothing.
#[test]
fn a_listener_that_panics_is_no_failure_of_the_change() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let _broken = chat.subscribe(|_| panic!("a broken listener"));
    let (ear, _subscription) = Ear::on(&chat);

    assert!(chat.append(Message::user("hello").with_id("a"))?.is_new);
    assert_eq!(ear.received(), [Change::Append { ids: vec!["a".into()] }]);
    assert!(chat.append(Message::user("again").with_id("b"))?.is_new);
    Ok(())
}

/// Nobody heard that events were left out, because the error handler was not called either.
#[test]
fn the_error_handler_hears_once_that_listeners_call_each_other_without_end() -> Result<()> {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&errors);
    let store = Store::open_in_memory()?;
    let chat = store.session_builder("s");
    let chat = chat.on_error(move |error| heard.lock().unwrap().push(error.to_string())).open()?;
    let again = chat.clone();
    let _subscription = chat.subscribe(move |_| {
        for _ in 0..2 {
            again.append(Message::user("again")).unwrap();
        }
    });
    for _ in 0..2 {
        chat.append(Message::user("hello"))?;
        let errors = std::mem::take(&mut *errors.lock().unwrap());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("8 callbacks call each other already"), "{errors:?}");
    }
    Ok(())
}

/// A listener was dropped under the lock of the subscriptions. If it owned one, that was a deadlock.
#[test]
fn a_listener_may_own_a_subscription() -> Result<()> {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || -> Result<()> {
        let chat = Store::open_in_memory()?.session("s")?;
        let inner = chat.subscribe(|_| {});
        let outer = chat.subscribe(move |_| drop(format!("{inner:?}")));
        chat.append(Message::user("a"))?;
        drop(outer);
        chat.append(Message::user("b"))?;
        let _ = sender.send(());
        Ok(())
    });
    assert!(done.recv_timeout(std::time::Duration::from_secs(10)).is_ok(), "deadlock");
    Ok(())
}

/// Returns the changes as JSON without ids.
fn told(changes: Vec<Change>) -> Vec<String> {
    let text = |change: Change| {
        let mut json = serde_json::to_value(change).unwrap();
        let fields = json.as_object_mut().unwrap();
        fields.retain(|name, _| !["id", "ids", "child"].contains(&name.as_str()));
        json.to_string()
    };
    changes.into_iter().map(text).collect()
}

/// A session whose window is at 10 messages of 69 tokens, with a threshold that no append reaches.
fn long_session(store: &Store, answer: fn() -> Answer) -> Result<Session> {
    let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(140);
    let builder = store.session_builder("s").compaction_options(options).compact_after(10_000);
    let chat = builder.summarizer(move |_: &str| answer()).open()?;
    let long = |n: u32| Message::user("word ".repeat(50)).with_id(n.to_string());
    chat.append_all((0..10).map(long))?;
    Ok(chat)
}

type Answer = std::result::Result<&'static str, BoxError>;

/// Of an explicit compaction, subscribers received only the end, without counts.
#[test]
fn every_compaction_sends_the_same_events_with_figures() -> Result<()> {
    let compacting = |tokens: u64| {
        format!(r#"{{"change":"window","phase":"compacting","threshold":10000,"tokens":{tokens}}}"#)
    };
    let idle = |tokens: u64| {
        format!(r#"{{"change":"window","phase":"idle","threshold":10000,"tokens":{tokens}}}"#)
    };
    let compact = r#"{"change":"compact","messages":7,"tokens_after":6,"tokens_before":483}"#;
    let whole = [compacting(690), compact.to_owned(), idle(213)];
    let store = Store::open_in_memory()?;
    let chat = long_session(&store, || Ok("short"))?;
    let (ear, _subscription) = Ear::on(&chat);

    let _ = chat.compact()?;
    assert_eq!(told(ear.received()), whole, "compact");
    let of_all = &chat.compactions()?[0].id.clone();
    chat.remove_compaction(of_all)?;
    assert_eq!(told(ear.received()), [r#"{"change":"remove_compaction"}"#.to_owned(), idle(690)]);

    chat.add_compaction("short", &"1".into(), &"7".into())?;
    assert_eq!(told(ear.received()), whole[1..], "by hand");
    chat.remove_compaction(&chat.compactions()?[0].id)?;
    ear.received();

    let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(140);
    let Ok(plan) = chat.plan_compaction(&options)? else { panic!("nothing") };
    chat.commit(plan, "short")?;
    assert_eq!(told(ear.received()), whole[1..], "plan and commit");
    chat.remove_compaction(&chat.compactions()?[0].id)?;
    ear.received();

    let _ = chat.at(&"9".into()).compact()?;
    assert_eq!(told(ear.received()), whole, "of a path");
    Ok(())
}

#[test]
fn a_compaction_that_fails_sends_the_same_events_whoever_started_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = long_session(&store, || Err("out of credit".into()))?;
    let (ear, _subscription) = Ear::on(&chat);
    assert!(chat.compact().is_err());
    let kinds = |changes: Vec<Change>| -> Vec<String> {
        let kind = |change: Change| serde_json::to_value(change).unwrap()["change"].to_string();
        changes.into_iter().map(kind).collect()
    };
    assert_eq!(kinds(ear.received()), [r#""window""#, r#""window""#, r#""compaction_failed""#]);
    chat.append_to(&"3".into(), Message::user("another way"))?;
    ear.received();
    assert!(chat.checkout_summarized(&"9".into()).is_err());
    assert_eq!(kinds(ear.received()), [r#""window""#, r#""window""#, r#""compaction_failed""#]);
    Ok(())
}

/// Only appends sent the size of the window.
#[test]
fn every_change_of_the_window_sends_its_size() -> Result<()> {
    type Work = fn(&Session) -> Result<()>;
    let works: [(&str, Work); 9] = [
        ("update", |chat| chat.update(Message::user("short").with_id("9")).map(drop)),
        ("upsert", |chat| chat.upsert(Message::user("short").with_id("9")).map(drop)),
        ("delete", |chat| chat.delete([&"9".into()]).map(drop)),
        ("delete branch", |chat| chat.delete_branch(&"5".into()).map(drop)),
        ("checkout", |chat| chat.checkout(&"4".into())),
        ("checkout before the start", |chat| chat.checkout_start()),
        ("clear", |chat| chat.clear()),
        ("compaction", |chat| chat.add_compaction("s", &"1".into(), &"2".into()).map(drop)),
        ("import", |chat| chat.import_message(Some(&"9".into()), Message::user("more")).map(drop)),
    ];
    for (name, work) in works {
        let store = Store::open_in_memory()?;
        let chat = long_session(&store, || Ok("short"))?;
        let (ear, _subscription) = Ear::on(&chat);
        work(&chat)?;
        let tokens = chat.visible_tokens()?;
        assert_ne!(tokens, 690, "{name}");
        let last = told(ear.received()).pop().unwrap();
        let expected =
            format!(r#"{{"change":"window","phase":"idle","threshold":10000,"tokens":{tokens}}}"#);
        assert_eq!(last, expected, "{name}");
    }
    Ok(())
}

#[test]
fn a_branch_summary_and_a_split_send_their_figures() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = long_session(&store, || Ok("short"))?;
    let all = Ear::default();
    let _all = store.subscribe(all.listener());
    chat.checkout_summarized(&"3".into())?;
    assert_eq!(
        told(all.received()),
        [
            r#"{"change":"window","phase":"compacting","threshold":10000,"tokens":690}"#,
            r#"{"change":"append"}"#,
            r#"{"change":"branch_summary","messages":6,"tokens_after":6,"tokens_before":414}"#,
            r#"{"change":"window","phase":"idle","threshold":10000,"tokens":282}"#,
        ]
    );
    let next = chat.compact_and_split("They talked.")?;
    let tokens = next.visible_tokens()?;
    assert_eq!(
        told(all.received()),
        [
            r#"{"change":"append"}"#.to_owned(),
            format!(
                r#"{{"change":"split","messages":5,"tokens_after":{tokens},"tokens_before":282}}"#
            ),
            format!(r#"{{"change":"window","phase":"idle","threshold":10000,"tokens":{tokens}}}"#),
        ]
    );
    Ok(())
}
