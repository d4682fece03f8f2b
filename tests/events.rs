//! Subscribers receive each committed change once, in order.

mod common;

use std::sync::{Arc, Mutex, PoisonError};

use common::letters;
use talktree::{Change, Event, Message, Result, Session, Store, Subscription};

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
        [Change::Compact { id: compaction.clone() }, Change::RemoveCompaction { id: compaction }]
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
