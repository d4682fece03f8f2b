//! What becomes of the context of a session when something becomes of the session.

use talktree::{Block, Document, Error, Message, Result, Session, SessionChange, SessionDetails};

use super::{Probe, ResumeRequest, at, owned_by};

/// A block of each scope.
const LABELS: [&str; 3] = ["own", "owner", "shared"];

fn open(probe: &Probe, id: &str) -> Result<Session> {
    let of_owner = Block::knowledge().per_owner();
    let shared = Block::knowledge().across_sessions();
    let builder = probe.store.session_builder(id).block("own", Block::knowledge());
    builder.block("owner", of_owner).block("shared", shared).cached_prompt().open()
}

fn put(chat: &Session, label: &str) -> Result<()> {
    chat.context().set_document(label, &Document::new("k", "text")).map(drop)
}

fn remove(chat: &Session, label: &str) -> Result<bool> {
    chat.context().remove_document(label, "k")
}

fn has(chat: &Session, label: &str) -> Result<bool> {
    let is_there = chat.context().load(label, "k")?.is_some();
    assert_eq!(chat.context().search(label, "text", 9)?.len(), usize::from(is_there));
    Ok(is_there)
}

fn is_frozen(chat: &Session) -> Result<bool> {
    Ok(chat.context().frozen_prompt()?.is_some())
}

#[test]
fn the_context_of_a_session_goes_with_it() -> Result<()> {
    let probe = Probe::new()?;
    probe.create_as(&"s".into(), &owned_by("ann"))?;
    let old = open(&probe, "s")?;
    LABELS.iter().try_for_each(|label| put(&old, label))?;
    old.prompt()?;
    probe.store.remove(&"s".into())?;
    assert_eq!(LABELS.map(|label| has(&old, label).unwrap()), [false, false, true]);
    assert!(!is_frozen(&old)?);
    for answer in [put(&old, "own"), put(&old, "owner"), old.prompt().map(drop)] {
        assert!(matches!(answer, Err(Error::SessionRemoved { .. })), "{answer:?}");
    }
    // Another session of the owner has the owner's texts, and a new one of the id has no others.
    for id in ["s", "other"] {
        probe.create_as(&id.into(), &owned_by("ann"))?;
        let new = open(&probe, id)?;
        assert_eq!(LABELS.map(|label| has(&new, label).unwrap()), [false, true, true]);
        assert!(!is_frozen(&new)?);
    }
    // A change of the owner changes whose texts are read.
    let change = |owner: Option<&str>| {
        probe.store.change_session(&"s".into(), &SessionChange::Owner(owner.map(str::to_owned)))
    };
    change(Some("bob"))?;
    let chat = open(&probe, "s")?;
    assert!(!has(&chat, "owner")?);
    put(&chat, "owner")?;
    change(None)?;
    assert!(!has(&chat, "owner")?);
    for answer in [put(&chat, "owner"), remove(&chat, "owner").map(drop)] {
        assert!(matches!(answer, Err(Error::NoOwner { .. })), "{answer:?}");
    }
    probe.is_sound()
}

#[test]
fn the_context_of_a_session_in_the_trash_refuses_writes() -> Result<()> {
    let probe = Probe::new()?;
    probe.create_as(&"s".into(), &owned_by("ann"))?;
    let chat = open(&probe, "s")?;
    LABELS.iter().try_for_each(|label| put(&chat, label))?;
    chat.prompt()?;
    probe.store.change_session(&"s".into(), &SessionChange::Delete)?;
    for answer in [
        put(&chat, "own"),
        put(&chat, "owner"),
        remove(&chat, "own").map(drop),
        remove(&chat, "owner").map(drop),
        chat.refresh_prompt().map(drop),
        chat.context().thaw_prompt(),
    ] {
        assert!(matches!(answer, Err(Error::SessionInTrash { .. })), "{answer:?}");
    }
    assert_eq!(LABELS.map(|label| has(&chat, label).unwrap()), [true; 3], "it can still be read");
    assert!(is_frozen(&chat)?);
    probe.store.change_session(&"s".into(), &SessionChange::Restore)?;
    assert!(remove(&chat, "own")?);
    probe.is_sound()
}

#[test]
fn another_owner_removes_the_frozen_prompt() -> Result<()> {
    let probe = Probe::new()?;
    let request = ResumeRequest::new("key");
    let id = probe.resumed(&request)?.session;
    let chat = open(&probe, id.as_str())?;
    let change = |owner: Option<&str>| {
        probe.store.change_session(&id, &SessionChange::Owner(owner.map(str::to_owned)))
    };
    chat.prompt()?;
    change(None)?;
    probe.resumed(&request)?;
    assert!(is_frozen(&chat)?, "it has no owner, as before");
    probe.resumed(&ResumeRequest { owner: Some("ann".to_owned()), ..request })?;
    assert!(!is_frozen(&chat)?, "resumed with an owner");
    chat.prompt()?;
    change(Some("ann"))?;
    chat.set_details(&owned_by("ann"))?;
    chat.set_details(&SessionDetails::named("a name"))?;
    assert!(is_frozen(&chat)?, "the owner is the same");
    change(Some("bob"))?;
    assert!(!is_frozen(&chat)?, "another owner");
    chat.prompt()?;
    chat.set_details(&owned_by("ann"))?;
    assert!(!is_frozen(&chat)?, "another owner in the details");
    chat.prompt()?;
    change(None)?;
    assert!(!is_frozen(&chat)?, "no owner");
    probe.is_sound()
}

#[test]
fn what_is_made_from_a_session_has_its_owner_and_copies_of_its_texts() -> Result<()> {
    let probe = Probe::new()?;
    probe.create_as(&"s".into(), &owned_by("ann"))?;
    let chat = open(&probe, "s")?;
    chat.append(Message::user("hello").with_id("m").at(at(0)))?;
    LABELS.iter().try_for_each(|label| put(&chat, label))?;
    chat.prompt()?;
    for copy in [chat.fork(&"m".into(), "Fork")?, chat.compact_and_split("They greeted.")?] {
        assert_eq!(probe.info(copy.id().as_str())?.owner.as_deref(), Some("ann"));
        assert_eq!(LABELS.map(|label| has(&copy, label).unwrap()), [true; 3]);
        assert!(!is_frozen(&copy)?);
        // Its own texts are copies; those of the owner are the same.
        assert!(remove(&copy, "own")?);
        assert!(has(&chat, "own")?);
        assert!(remove(&copy, "owner")?);
        assert!(!has(&chat, "owner")?);
        put(&chat, "owner")?;
    }
    probe.is_sound()
}
