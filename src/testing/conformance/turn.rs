//! Another answer to a question, and another question: the verbs of [`Session`] that a chat offers beside each message.

use std::sync::Arc;

use super::probe::{Probe, assert_unknown, id, supported};
use crate::error::Result;
use crate::id::CompactionId;
use crate::message::Message;
use crate::session::Session;
use crate::view::{ExpectedHead, Parent};

/// Appends messages of these roles: `u` a user, `a` a model.
fn say(probe: &Probe, conversation: &str) -> Result<()> {
    for word in conversation.split(' ') {
        let role = if word.starts_with('u') { "user" } else { "assistant" };
        let message = Message::new(role, vec![word.into()]).with_id(word);
        probe.provider.append(&Parent::Head, &ExpectedHead::Any, &[message])?;
    }
    Ok(())
}

pub(super) fn retries(probe: &Probe) -> Result<()> {
    let chat = Session::of(Arc::clone(&probe.provider));
    assert_eq!((chat.retry()?.question, chat.head()?), (None, None));
    say(probe, "u1 a1 u2 a2")?;
    let Some(retried) = supported(chat.retry())? else { return Ok(()) };
    assert_eq!((retried.question, retried.is_moved), (Some(id("u2")), true));
    assert_eq!(probe.head()?, "u1 a1 u2");
    let again = chat.retry()?;
    assert_eq!((again.question, again.is_moved), (Some(id("u2")), false));
    say(probe, "a3")?;
    assert_eq!(
        (probe.head()?, probe.children(Some("u2"))?),
        ("u1 a1 u2 a3".into(), "a2 a3".into())
    );
    // The question is inside a summary: it is not visible on the path to the question.
    probe.compact("s", "a1", "a3")?;
    assert!(chat.retry()?.is_moved);
    assert_eq!((probe.head()?, probe.history("u2")?), ("u1 a1 u2".into(), "u1 a1 u2".into()));
    Ok(())
}

pub(super) fn edits(probe: &Probe) -> Result<()> {
    let chat = Session::of(Arc::clone(&probe.provider));
    say(probe, "u1 a1 u2 a2")?;
    let edit = |of: &str, new: &str| chat.edit(&id(of), Message::user(new).with_id(new));
    assert!(edit("u2", "u3")?.is_new);
    assert_eq!((probe.head()?, probe.children(Some("a1"))?), ("u1 a1 u3".into(), "u2 u3".into()));
    assert!(edit("u1", "u4")?.is_new);
    assert_eq!((probe.head()?, probe.children(None)?), ("u4".into(), "u1 u4".into()));
    assert!(!edit("u1", "u3")?.is_new);
    assert_eq!(probe.head()?, "u4");

    assert_unknown(edit("x", "u5"));
    probe.compact("s", "u1", "a1")?;
    assert_unknown(chat.edit(&CompactionId::from("s").as_message(), Message::user("u5")));
    assert_eq!((probe.head()?, probe.children(None)?), ("u4".into(), "u1 u4".into()));
    // The place of a deleted message is kept as long as something is below it.
    probe.delete("a1")?;
    assert!(edit("u2", "u6")?.is_new);
    assert_eq!((probe.head()?, probe.children(Some("u1"))?), ("u1 u6".into(), "u2 u3 u6".into()));
    Ok(())
}
