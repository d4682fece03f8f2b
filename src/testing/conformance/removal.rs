//! Removed sessions: their providers read as empty and do not write.

use std::slice::from_ref;

use super::probe::{drawn, id, message};
use crate::compaction::{Compaction, Seen};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::{ImportRecord, SessionDetails};
use crate::storage::SessionProvider;
use crate::view::{ExpectedHead, Parent};

/// A verb that writes.
pub(super) type Write = fn(&dyn SessionProvider) -> Result<()>;

pub(super) const WRITES: &[(&str, Write)] = &[
    ("append", |old| append(old, &Parent::Head)),
    ("append to a message", |old| append(old, &Parent::Message(id("a")))),
    ("append of a root", |old| append(old, &Parent::Root)),
    ("append beside a message", |old| append(old, &Parent::SiblingOf(id("a")))),
    ("upsert", |old| old.upsert(&message("z")).map(drop)),
    ("update", |old| old.update(&message("a")).map(drop)),
    ("delete", |old| old.delete(&[id("a")]).map(drop)),
    ("delete_branch", |old| old.delete_branch(&id("a")).map(drop)),
    ("clear", |old| old.clear()),
    ("add_compaction", |old| old.add_compaction(&compaction()).map(drop)),
    ("commit_compaction", |old| {
        old.commit_compaction(&compaction(), &id("b"), &Seen::of(&[message("a")])).map(drop)
    }),
    ("remove_compaction", |old| old.remove_compaction(&"s".into())),
    ("set_details", |old| old.set_details(&SessionDetails::named("again"))),
    ("checkout", |old| old.checkout(Some(&id("a")))),
    ("checkout from a place", |old| {
        old.checkout_if_head(&ExpectedHead::At(Some(id("b"))), Some(&id("a")))
    }),
    ("checkout of the start", |old| old.checkout(None)),
    ("undo_head", |old| old.undo_head().map(drop)),
    ("redo_head", |old| old.redo_head().map(drop)),
    ("label", |old| old.label("l", Some(&id("a")))),
    ("removing a label", |old| old.label("l", None)),
    ("import", |old| {
        let record = ImportRecord { record: "z".to_owned(), parent: None, message: message("z") };
        old.import(&[record]).map(drop)
    }),
    ("fork", |old| {
        let fork = SessionId::from(format!("fork of {}", old.id()));
        old.fork(&id("a"), &fork, &SessionDetails::default()).map(drop)
    }),
    ("split", |old| {
        let next = SessionId::from(format!("next of {}", old.id()));
        old.split(&next, &message("z"), "over").map(drop)
    }),
];

fn append(old: &dyn SessionProvider, parent: &Parent) -> Result<()> {
    old.append(parent, &ExpectedHead::Any, &[message("z")]).map(drop)
}

fn compaction() -> Compaction {
    Compaction::new("a summary", id("a"), id("a"))
}

pub(super) fn fill(provider: &dyn SessionProvider) -> Result<()> {
    for letter in ["a", "b"] {
        provider.append(&Parent::Head, &ExpectedHead::Any, from_ref(&message(letter)))?;
    }
    is_filled(provider)
}

pub(super) fn is_filled(provider: &dyn SessionProvider) -> Result<()> {
    assert_eq!(drawn(&provider.history(None)?), "a b");
    Ok(())
}

/// Checks that the provider refuses a write and reads as empty.
pub(super) fn refused(old: &dyn SessionProvider, write: Write) -> Result<()> {
    match write(old) {
        Err(Error::SessionRemoved { id }) => assert_eq!(id, *old.id()),
        Err(Error::Unsupported { .. }) => {}
        other => panic!("the write should be Error::SessionRemoved, not {other:?}"),
    }
    assert_eq!(drawn(&old.history(None)?), "", "a removed session reads as empty");
    assert_eq!(old.message(&id("a"))?, None, "a removed session reads as empty");
    Ok(())
}
