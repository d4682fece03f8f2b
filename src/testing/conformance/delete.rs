//! Deletes: of messages, of branches, of everything.
//!
//! The children of a deleted message become those of its parent, and the head moves to the parent.

use super::probe::{Probe, assert_unknown, id, message, supported};
use crate::error::Result;
use crate::view::{ExpectedHead, Parent};

pub(super) fn deletes(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb db ea")?;
    let deleted = probe.delete("b")?;
    assert_eq!(deleted.messages, [id("b")]);
    assert_eq!((probe.raw("c")?, probe.raw("d")?), ("a c".into(), "a d".into()));
    assert_eq!(probe.children(Some("a"))?, "c d e");
    assert_eq!(provider.path_length(Some(&id("c")))?, 2);
    assert_eq!(provider.message(&id("c"))?.and_then(|message| message.parent), Some(id("a")));
    assert_unknown(provider.history(Some(&id("b"))));
    assert_unknown(probe.delete("b"));
    probe.delete("a")?;
    assert_eq!((probe.children(None)?, probe.raw("c")?), ("c d e".into(), "c".into()));
    // The id of a deleted message can be used again.
    assert!(
        provider.append(&Parent::Message(id("e")), &ExpectedHead::Any, &[message("b")])?[0].is_new
    );
    assert_eq!(probe.raw("b")?, "e b");
    probe.delete("c c d e b")?;
    assert_eq!((probe.children(None)?, provider.latest_leaf()?), (String::new(), None));
    Ok(())
}

pub(super) fn head_after_delete(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb")?;
    probe.delete("c")?;
    assert_eq!(probe.head()?, "a b");
    probe.draw("da")?;
    probe.provider.append(&Parent::Message(id("b")), &ExpectedHead::Any, &[message("e")])?;
    probe.delete("b")?;
    probe.delete("e")?;
    assert_eq!(probe.head()?, "a");
    probe.provider.append(&Parent::Head, &ExpectedHead::Any, &[message("f")])?;
    assert_eq!(probe.head()?, "a f");
    Ok(())
}

pub(super) fn clears(probe: &Probe) -> Result<()> {
    probe.draw("a- ba")?;
    probe.compact("s", "a", "b")?;
    probe.provider.clear()?;
    assert_eq!((probe.head()?, probe.children(None)?), (String::new(), String::new()));
    assert!(probe.provider.compactions()?.is_empty());
    assert_eq!(probe.provider.message(&id("a"))?, None);
    probe.draw("b- ab")?;
    assert_eq!(probe.history("a")?, "b a");
    Ok(())
}

pub(super) fn branches(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb da eb fe gd")?;
    let Some(deleted) = supported(probe.provider.delete_branch(&id("b")))? else { return Ok(()) };
    assert_eq!(deleted.messages, ["b", "c", "e", "f"].map(id));
    assert_eq!((probe.children(Some("a"))?, probe.raw("g")?), ("d".into(), "a d g".into()));
    assert_unknown(probe.provider.delete_branch(&id("c")));
    Ok(())
}
