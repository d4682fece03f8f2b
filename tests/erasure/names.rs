//! What is told of a message besides, a name that was made from it or a fork point, goes with it.

use talktree::{Erasure, Error, Message, Result, Session, SessionChange, Store};

fn name(session: &Session) -> Result<Option<String>> {
    Ok(session.info()?.unwrap().name)
}

/// A fork was named after a text that only its copy of the message had. When that copy was deleted, no message had the text any
/// more, and an erasure of the message with its copies did not find the name.
#[test]
fn a_name_made_from_a_deleted_copy_is_not_left_by_an_erasure() -> Result<()> {
    for is_secret_in_fork in [true, false] {
        let store = Store::open_in_memory()?;
        let chat = store.session("s")?;
        let id = chat.append(Message::user("My pin is 7194"))?.id;
        let fork = chat.fork(&id, "Fork")?;
        let (secret, other) = if is_secret_in_fork { (&fork, &chat) } else { (&chat, &fork) };
        other.update(Message::user("hello").with_id(id.clone()))?;
        for (session, name) in [(secret, "My pin is 7194"), (other, "hello")] {
            store.rename(session.id(), name)?;
        }
        fork.delete([&id])?;

        let _ = store.erase(&Erasure::messages(chat.id(), [&id]).with_forks())?;
        assert_eq!((name(&chat)?, name(&fork)?), (None, None));
        assert_eq!((chat.raw_history()?, fork.raw_history()?), (vec![], vec![]));
    }
    Ok(())
}

#[test]
fn a_name_goes_with_the_message_that_it_was_made_from() -> Result<()> {
    type Change = fn(&Session, &Message) -> Result<Option<&'static str>>;
    let changes: [(&str, Change); 6] = [
        ("delete", |chat, first| chat.delete([&first.id]).map(|_| None)),
        ("delete a branch", |chat, first| chat.delete_branch(&first.id).map(|_| None)),
        ("clear", |chat, _| chat.clear().map(|()| None)),
        ("erase", |chat, first| chat.erase([&first.id]).map(|_| None)),
        ("update", |chat, first| {
            let new = Message::user("Where is it?\nThe key").with_id(first.id.clone());
            chat.update(new).map(|_| Some("Where is it?"))
        }),
        ("update to no text of a user", |chat, first| {
            chat.update(Message::assistant("Hm.").with_id(first.id.clone())).map(|_| None)
        }),
    ];
    for (what, change) in changes {
        let store = Store::open_in_memory()?;
        let chat = store.session("s")?;
        let first = Message::user("My pin is 7194\nKeep it.").with_id("first");
        chat.append_all([first.clone(), Message::user("Thanks").with_id("last")])?;
        store.rename(chat.id(), "My pin is 7194")?;
        let copy = chat.fork(&"last".into(), "My pin is 7194")?;
        let named = chat.fork(&"last".into(), "Keys")?;
        let next = chat.compact_and_split_as(&"next".into(), "In brief.")?;
        let last = next.compact_and_split_as(&"last".into(), "In brief.")?;
        store.change_session(next.id(), &SessionChange::Delete)?;
        store.rename(chat.id(), "Bank")?;

        let left = change(&chat, &first)?.map(str::to_owned);
        store.change_session(next.id(), &SessionChange::Restore)?;
        assert_eq!((name(&next)?, name(&last)?), (left.clone(), left), "{what}");
        assert_eq!(name(&chat)?.as_deref(), Some("Bank"), "{what}");
        // These have the message themselves.
        assert_eq!(name(&copy)?.as_deref(), Some("My pin is 7194"), "{what}");
        assert_eq!(name(&named)?.as_deref(), Some("Keys"), "{what}");
    }
    Ok::<(), Error>(())
}

/// A fork is listed with the message that it was made at. When that was deleted in the session, an erasure of the copy left its
/// id there.
#[test]
fn a_fork_point_goes_with_the_message() -> Result<()> {
    let point = |session: &Session| Ok::<_, Error>(session.info()?.unwrap().fork_point);
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let id = chat.append(Message::user("hello"))?.id;
    let [fork, cleared] = [chat.fork(&id, "Fork")?, chat.fork(&id, "Cleared")?];
    let third = fork.fork(&id, "Third")?;
    let next = chat.compact_and_split_as(&"next".into(), "In brief.")?;
    for session in [&fork, &cleared, &third, &next] {
        assert_eq!(point(session)?.as_ref(), Some(&id));
    }
    chat.delete([&id])?;
    cleared.clear()?;
    assert_eq!((point(&next)?, point(&cleared)?), (None, None));
    assert_eq!((point(&fork)?.as_ref(), point(&third)?.as_ref()), (Some(&id), Some(&id)));

    let _ = store.erase(&Erasure::messages(third.id(), [&id]).with_forks())?;
    assert_eq!((point(&fork)?, point(&third)?), (None, None));
    Ok(())
}
