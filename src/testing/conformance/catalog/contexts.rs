//! What becomes of the context of a session when something becomes of the session.

use super::{Probe, at, owned_by};
use crate::catalog::{ResumeRequest, SessionChange};
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::storage::context::{BlockScope, ContextStore, NewEntry, PromptSection};
use crate::testing::conformance::probe::supported;

fn put(context: &dyn ContextStore, scope: BlockScope) -> Result<()> {
    context.put(scope, "memory", &[NewEntry::new("k", "text")], true).map(drop)
}

fn has(context: &dyn ContextStore, scope: BlockScope) -> Result<bool> {
    let is_there = context.entry(scope, "memory", "k")?.is_some();
    assert_eq!(context.search(scope, "memory", "text", 9)?.0.len(), usize::from(is_there));
    assert_eq!(context.labels(scope)?.len(), usize::from(is_there));
    Ok(is_there)
}

fn section() -> Vec<PromptSection> {
    vec![PromptSection::new("memory".to_owned(), "MEMORY".to_owned(), "text".to_owned())]
}

pub(super) fn removed(probe: &Probe) -> Result<()> {
    probe.catalog.create(&"s".into(), &owned_by("ann"))?;
    let Some(old) = probe.open("s").context else { return Ok(()) };
    for scope in BlockScope::ALL {
        put(&*old, scope)?;
    }
    old.set_frozen(Some(&section()))?;
    let bound = old.of(&"s".into());
    probe.catalog.remove(&"s".into())?;
    for old in [&old, &bound] {
        assert_eq!(
            (has(&**old, BlockScope::Session)?, has(&**old, BlockScope::Owner)?),
            (false, false)
        );
        assert!(has(&**old, BlockScope::Shared)?);
        assert_eq!(old.frozen()?, None);
        for answer in [
            put(&**old, BlockScope::Session),
            put(&**old, BlockScope::Owner),
            old.set_frozen(Some(&section())),
        ] {
            assert!(matches!(answer, Err(Error::SessionRemoved { .. })), "{answer:?}");
        }
    }
    // Another session of the owner has the owner's texts, and a new one of the id has no others.
    for id in ["s", "other"] {
        probe.catalog.create(&id.into(), &owned_by("ann"))?;
        let Some(new) = probe.open(id).context else { continue };
        let is_there = BlockScope::ALL.map(|scope| has(&*new, scope));
        let [session, owner, shared] = is_there;
        assert_eq!((session?, owner?, shared?, new.frozen()?), (false, true, true, None));
    }
    // A change of the owner changes whose texts are read.
    probe.catalog.change(&"s".into(), &SessionChange::Owner(Some("bob".to_owned())))?;
    if let Some(context) = probe.open("s").context {
        assert!(!has(&*context, BlockScope::Owner)?);
        put(&*context, BlockScope::Owner)?;
        probe.catalog.change(&"s".into(), &SessionChange::Owner(None))?;
        assert!(!has(&*context, BlockScope::Owner)?);
        let answer = put(&*context, BlockScope::Owner);
        assert!(matches!(answer, Err(Error::NoOwner { .. })), "{answer:?}");
    }
    Ok(())
}

pub(super) fn in_trash(probe: &Probe) -> Result<()> {
    probe.catalog.create(&"s".into(), &owned_by("ann"))?;
    let Some(context) = probe.open("s").context else { return Ok(()) };
    for scope in BlockScope::ALL {
        put(&*context, scope)?;
    }
    context.set_frozen(Some(&section()))?;
    probe.catalog.change(&"s".into(), &SessionChange::Delete)?;
    for answer in [
        put(&*context, BlockScope::Session),
        put(&*context, BlockScope::Owner),
        context.remove(BlockScope::Session, "memory", "k").map(drop),
        context.remove(BlockScope::Owner, "memory", "k").map(drop),
        context.set_frozen(Some(&section())),
        context.set_frozen(None),
    ] {
        assert!(matches!(answer, Err(Error::SessionInTrash { .. })), "{answer:?}");
    }
    for scope in BlockScope::ALL {
        assert!(has(&*context, scope)?, "it can still be read");
    }
    assert_eq!(context.frozen()?, Some(section()));
    probe.catalog.change(&"s".into(), &SessionChange::Restore)?;
    assert!(context.remove(BlockScope::Session, "memory", "k")?);
    Ok(())
}

pub(super) fn thawed(probe: &Probe) -> Result<()> {
    let storage = probe.open("s");
    let Some(context) = storage.context else { return Ok(()) };
    probe.append("s", &Message::user("a long message").with_id("m"))?;
    put(&*context, BlockScope::Session)?;
    context.set_frozen(Some(&section()))?;
    probe.say("s", at(0))?;
    assert_eq!(context.frozen()?, Some(section()));
    storage.session.add_compaction(&Compaction::new("short", "m".into(), "m".into()))?;
    assert_eq!(context.frozen()?, None);
    context.set_frozen(Some(&section()))?;
    storage.session.clear()?;
    assert_eq!(context.frozen()?, None);
    assert!(has(&*context, BlockScope::Session)?, "its texts stay");
    Ok(())
}

pub(super) fn thawed_for_owner(probe: &Probe) -> Result<()> {
    let request = ResumeRequest::new("key");
    let id = probe.catalog.resume(&request)?.session;
    let storage = probe.open(id.as_str());
    let Some(context) = storage.context else { return Ok(()) };
    let change = |owner: Option<&str>| {
        probe.catalog.change(&id, &SessionChange::Owner(owner.map(str::to_owned)))
    };
    context.set_frozen(Some(&section()))?;
    change(None)?;
    probe.catalog.resume(&request)?;
    assert_eq!(context.frozen()?, Some(section()), "it has no owner, as before");
    probe.catalog.resume(&ResumeRequest { owner: Some("ann".to_owned()), ..request })?;
    assert_eq!(context.frozen()?, None, "resumed with an owner");
    context.set_frozen(Some(&section()))?;
    change(Some("ann"))?;
    storage.session.set_details(&owned_by("ann"))?;
    storage.session.set_details(&SessionDetails::named("a name"))?;
    assert_eq!(context.frozen()?, Some(section()), "the owner is the same");
    change(Some("bob"))?;
    assert_eq!(context.frozen()?, None, "another owner");
    context.set_frozen(Some(&section()))?;
    storage.session.set_details(&owned_by("ann"))?;
    assert_eq!(context.frozen()?, None, "another owner in the details");
    context.set_frozen(Some(&section()))?;
    change(None)?;
    assert_eq!(context.frozen()?, None, "no owner");
    Ok(())
}

pub(super) fn copied(probe: &Probe) -> Result<()> {
    probe.catalog.create(&"s".into(), &owned_by("ann"))?;
    let storage = probe.open("s");
    probe.append("s", &Message::user("hello").with_id("m"))?;
    if let Some(context) = &storage.context {
        for scope in BlockScope::ALL {
            put(&**context, scope)?;
        }
        context.put(BlockScope::Session, "gone", &[NewEntry::new("k", "text")], true)?;
        context.remove(BlockScope::Session, "gone", "k")?;
        context.set_frozen(Some(&section()))?;
    }
    let (fork, details) = ("fork".into(), SessionDetails::default());
    let forked = supported(storage.session.fork(&"m".into(), &fork, &details))?;
    let opening = Message::assistant("They greeted.");
    let split = supported(storage.session.split(&"next".into(), &opening, "full"))?;
    for made in [forked, split].into_iter().flatten() {
        let id = made.id().as_str();
        assert_eq!(probe.info(id)?.owner.as_deref(), Some("ann"));
        assert_eq!(made.info()?, probe.catalog.info(&id.into())?);
        let (Some(context), Some(copy)) = (&storage.context, probe.open(id).context) else {
            continue;
        };
        for scope in BlockScope::ALL {
            assert!(has(&*copy, scope)?, "{id} has the texts of {scope:?}");
        }
        assert_eq!(copy.frozen()?, None);
        // Its own texts are copies; those of the owner are the same.
        assert!(copy.remove(BlockScope::Session, "memory", "k")?);
        assert!(has(&**context, BlockScope::Session)?);
        assert!(copy.remove(BlockScope::Owner, "memory", "k")?);
        assert!(!has(&**context, BlockScope::Owner)?);
        put(&**context, BlockScope::Owner)?;
    }
    Ok(())
}
