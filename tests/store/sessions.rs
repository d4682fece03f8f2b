//! What a session carries besides its messages, and what becomes of the handles of a removed one.
//!
//! A session's name, model and times were set by several transactions, so a crash in between left a session without
//! them, and the time of the last write could not be set at all: imported conversations of years looked like written today.
//!
//! A program that removed a session while another part of it held a handle got the session back with the handle's next
//! append: a conversation that a person had deleted.

use crate::common::{self, Scratch};
use chrono::{DateTime, Utc};
use serde_json::json;
use talktree::{
    Block, Change, Error, Json, Message, MessageId, Result, Session, SessionDetails, SessionFilter,
    Store,
};

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Details in which nothing is missing.
fn everything() -> SessionDetails {
    SessionDetails {
        name: Some("Deployment".into()),
        parent_session: Some("p".into()),
        fork_point: Some("m1".into()),
        model: Some("large".into()),
        source: Some("telegram".into()),
        metadata: Some(Json::from(json!({"tags": ["work"]}))),
        end_reason: Some("over".into()),
        owner: Some("user:42".into()),
        tags: vec!["home".into(), "work".into()],
        is_pinned: Some(true),
        ended_at: Some(time("2024-02-03T11:00:00Z")),
        created_at: Some(time("2024-02-03T10:00:00Z")),
        updated_at: Some(time("2024-02-03T11:30:00Z")),
    }
}

/// The figure was looked up by the id, so an old handle had that of another conversation.
#[test]
fn the_handle_of_a_removed_session_counts_no_tokens_of_the_next() -> Result<()> {
    let store = Store::open_in_memory()?;
    let old = store.session("s")?;
    old.append(Message::user("Hello world"))?;
    assert_eq!(old.visible_tokens()?, 7);
    store.remove(old.id())?;
    store.session("s")?.append(Message::user("Hello world, and all who live in it"))?;
    assert_eq!((old.history()?.len(), old.visible_tokens()?), (0, 0));
    Ok(())
}

#[test]
fn a_session_is_created_with_all_details() -> Result<()> {
    let store = Store::open_in_memory()?;
    let info = store.create_session_as("s", everything())?.info()?.unwrap();
    assert_eq!(
        serde_json::to_value(&info).unwrap(),
        json!({
            "id": "s", "name": "Deployment", "parent_session": "p", "fork_point": "m1",
            "model": "large", "source": "telegram", "metadata": {"tags": ["work"]},
            "end_reason": "over", "owner": "user:42", "tags": ["home", "work"], "messages": 0, "last_message_at": null,
            "created_at": "2024-02-03T10:00:00Z", "updated_at": "2024-02-03T11:30:00Z",
            "ended_at": "2024-02-03T11:00:00Z", "is_pinned": true, "deleted_at": null,
        })
    );
    Ok(())
}

#[test]
fn a_session_is_created_whole_or_not_at_all() -> Result<()> {
    let store = Store::options().max_message_bytes(20).open_in_memory()?;
    let large =
        SessionDetails { metadata: Some(Json::from(json!("x".repeat(50)))), ..everything() };
    assert!(matches!(store.create_session_as("s", large), Err(Error::TooLarge { .. })));
    let nameless = SessionDetails { name: Some(String::new()), ..everything() };
    assert!(matches!(store.create_session_as("s", nameless), Err(Error::InvalidValue { .. })));
    let no_parent = SessionDetails { parent_session: Some("".into()), ..everything() };
    assert!(matches!(store.create_session_as("s", no_parent), Err(Error::InvalidValue { .. })));
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn creating_a_session_twice_changes_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.create_session_as("s", everything())?;
    let again = store.create_session_as("s", "Another");
    assert!(matches!(again, Err(Error::SessionExists { id }) if id == "s"));
    assert_eq!(store.session("s")?.info()?.unwrap().name.as_deref(), Some("Deployment"));
    Ok(())
}

#[test]
fn the_time_of_the_last_write_is_set_until_the_next_write() -> Result<()> {
    let store = Store::open_in_memory()?;
    let begun = Utc::now();
    let chat = store.create_session_as("old", everything())?;
    store.create_session_as("new", "New")?;
    let order = || -> Result<Vec<_>> {
        Ok(store.sessions()?.into_iter().map(|session| session.id.to_string()).collect())
    };
    assert_eq!(order()?, ["new", "old"]);
    chat.append(Message::user("hello"))?;
    assert!(chat.info()?.unwrap().updated_at >= begun);
    assert_eq!(order()?, ["old", "new"]);
    Ok(())
}

type Write = Box<dyn Fn(&Session) -> Result<()>>;

/// Every verb that writes, by name.
fn writes() -> Vec<(&'static str, Write)> {
    fn verb(write: impl Fn(&Session) -> Result<()> + 'static) -> Write {
        Box::new(write)
    }
    let a = || MessageId::from("a");
    let other = || Message::user("other").with_id("other");
    vec![
        ("append", verb(move |chat| chat.append(other()).map(drop))),
        ("append again", verb(|chat| chat.append(Message::user("a").with_id("a")).map(drop))),
        ("append_to", verb(move |chat| chat.append_to(&a(), other()).map(drop))),
        ("append_root", verb(move |chat| chat.append_root(other()).map(drop))),
        ("append_if_head", verb(move |chat| chat.append_if_head(None, other()).map(drop))),
        ("append_all", verb(move |chat| chat.append_all([other()]).map(drop))),
        ("upsert", verb(move |chat| chat.upsert(other()).map(drop))),
        ("update", verb(|chat| chat.update(Message::user("b").with_id("a")).map(drop))),
        ("import", verb(move |chat| chat.import_message(None, other()).map(drop))),
        (
            "import several",
            verb(move |chat| chat.import_messages([(Some(a()), other())]).map(drop)),
        ),
        ("delete", verb(move |chat| chat.delete([&a()]).map(drop))),
        ("delete_branch", verb(move |chat| chat.delete_branch(&a()).map(drop))),
        ("clear", verb(|chat| chat.clear())),
        ("checkout", verb(move |chat| chat.checkout(&a()))),
        ("checkout_start", verb(|chat| chat.checkout_start())),
        ("undo_head", verb(|chat| chat.undo_head().map(drop))),
        ("redo_head", verb(|chat| chat.redo_head().map(drop))),
        ("label", verb(move |chat| chat.label("l", &a()))),
        ("unlabel", verb(|chat| chat.unlabel("l"))),
        ("add_compaction", verb(move |chat| chat.add_compaction("s", &a(), &a()).map(drop))),
        ("remove_compaction", verb(|chat| chat.remove_compaction(&"c".into()))),
        ("fork", verb(move |chat| chat.fork(&a(), "Fork").map(drop))),
        ("split", verb(|chat| chat.compact_and_split("They greeted.").map(drop))),
        ("set_details", verb(|chat| chat.set_details(&SessionDetails::named("again")))),
        ("a block", verb(|chat| chat.context().append("memory", "Likes tea.").map(drop))),
        ("refresh_prompt", verb(|chat| chat.refresh_prompt().map(drop))),
    ]
}

fn open(store: &Store) -> Result<Session> {
    store.session_builder("s").block("memory", Block::stored()).cached_prompt().open()
}

#[test]
fn a_removed_session_does_not_come_back() -> Result<()> {
    for (name, write) in writes() {
        let store = Store::open_in_memory()?;
        let chat = open(&store)?;
        chat.append(Message::user("a").with_id("a"))?;
        store.remove(chat.id())?;
        let refused = write(&chat);
        assert!(
            matches!(&refused, Err(Error::SessionRemoved { id }) if id == chat.id()),
            "{name}: {refused:?}"
        );
        assert!(store.sessions()?.is_empty(), "{name}");
        assert!(chat.history()?.is_empty(), "{name}");
        assert_eq!(chat.info()?, None, "{name}");
    }
    Ok(())
}

#[test]
fn a_new_handle_of_a_removed_session_starts_afresh_and_the_old_one_stays_out_of_it() -> Result<()> {
    for (name, write) in writes() {
        let store = Store::open_in_memory()?;
        let old = open(&store)?;
        old.append(Message::user("a").with_id("a"))?;
        store.remove(old.id())?;
        let new = open(&store)?;
        new.append(Message::user("new").with_id("a"))?;
        let refused = write(&old);
        assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{name}: {refused:?}");
        assert_eq!(store.sessions()?.len(), 1, "{name}");
        assert!(old.history()?.is_empty(), "{name}");
        assert_eq!(old.message(&"a".into())?, None, "{name}");
        assert_eq!(new.history()?.len(), 1, "{name}");
        assert_eq!(new.history()?[0].text(), "new", "{name}");
        assert!(store.verify(|_| {})?.damages.is_empty(), "{name}");
    }
    Ok(())
}

#[test]
fn a_handle_has_seen_what_it_read_or_what_its_clone_wrote() -> Result<()> {
    let store = Store::open_in_memory()?;
    let writer = store.session("s")?;
    type See = fn(&Session) -> Result<()>;
    let sees: [See; 4] = [
        |chat| chat.history().map(drop),
        |chat| chat.info().map(drop),
        |chat| chat.iter().try_for_each(|message| message.map(drop)),
        |chat| chat.clone().append(Message::user("hi")).map(drop),
    ];
    for see in sees {
        let writer = match writer.append(Message::user("hello")) {
            Ok(_) => writer.clone(),
            Err(_) => {
                let again = store.session("s")?;
                again.append(Message::user("hello"))?;
                again
            }
        };
        let (seen, unseen) = (store.session("s")?, store.session("s")?);
        see(&seen)?;
        store.remove(writer.id())?;
        assert!(matches!(seen.append(Message::user("x")), Err(Error::SessionRemoved { .. })));
        // It never saw the session that was removed, so this is its first write.
        unseen.append(Message::user("x"))?;
        store.remove(unseen.id())?;
    }
    Ok(())
}

#[test]
fn a_session_that_was_never_committed_is_not_seen() -> Result<()> {
    let store = Store::options().max_message_bytes(100).open_in_memory()?;
    let chat = open(&store)?;
    let large = Message::user("x".repeat(200));
    assert!(chat.append_all([Message::user("a"), large]).is_err());
    assert!(store.sessions()?.is_empty());
    chat.append(Message::user("a"))?;
    assert_eq!(chat.history()?.len(), 1);
    Ok(())
}

#[test]
fn a_session_removed_by_another_process_does_not_come_back() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    chat.append(Message::user("hello"))?;
    let fork = chat.fork(&chat.head()?.unwrap(), "Fork")?;
    // A second store of the same file has connections of its own, as another process does.
    let other = common::open(&scratch.folder)?;
    for id in [chat.id(), fork.id()] {
        other.remove(id)?;
    }
    for handle in [chat, fork] {
        let refused = handle.append(Message::user("x"));
        assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
    }
    assert!(other.sessions()?.is_empty());
    Ok(())
}

#[test]
fn a_refused_write_tells_no_listener() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = open(&store)?;
    chat.append(Message::user("a").with_id("a"))?;
    store.remove(chat.id())?;
    let (sender, changes) = std::sync::mpsc::channel::<Change>();
    let _subscription = chat.subscribe(move |event| {
        let _ = sender.send(event.change.clone());
    });
    for (_, write) in writes() {
        assert!(write(&chat).is_err());
    }
    assert!(changes.try_recv().is_err());
    Ok(())
}

/// Most of them were stored, and found nothing: an empty text usually is a mistake of the caller.
#[test]
fn an_empty_owner_source_model_or_tag_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    let empty = || Some(String::new());
    let base = SessionDetails::default;
    for details in [
        SessionDetails { owner: empty(), ..base() },
        SessionDetails { source: empty(), ..base() },
        SessionDetails { model: empty(), ..base() },
        SessionDetails { end_reason: empty(), ..base() },
        SessionDetails { tags: vec![String::new()], ..base() },
    ] {
        let refused = store.create_session(details.clone());
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{details:?}");
        let refused = store.session("s")?.set_details(&details);
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{details:?}");
    }
    for filter in [
        SessionFilter { owner: empty(), ..SessionFilter::default() },
        SessionFilter { source: empty(), ..SessionFilter::default() },
        SessionFilter { model: empty(), ..SessionFilter::default() },
        SessionFilter { tag: empty(), ..SessionFilter::default() },
    ] {
        let refused = store.list().filter(filter.clone()).run();
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{filter:?}");
    }
    assert!(matches!(store.usage().owner("").run(), Err(Error::InvalidValue { .. })));
    assert!(matches!(store.usage().source("").total(), Err(Error::InvalidValue { .. })));
    assert!(store.sessions()?.is_empty());
    Ok(())
}
