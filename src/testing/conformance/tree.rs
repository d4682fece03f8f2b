//! The tree: parents, paths, branches and leaves.
//!
//! A session starts empty. An append with a known id is a no-op. An unknown id is an error, and nothing is changed.

use super::probe::{Probe, assert_unknown, drawn, id, message, supported};
use crate::error::{Error, Result};
use crate::message::Message;
use crate::search::Scope;
use crate::view::{ExpectedHead, Parent};

pub(super) fn empty(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    assert!(provider.history(None)?.is_empty());
    assert!(provider.raw_history(None)?.is_empty());
    assert_eq!(provider.latest_leaf()?, None);
    assert!(provider.branches(None)?.is_empty());
    assert_eq!(provider.path_length(None)?, 0);
    assert_eq!(provider.message(&id("a"))?, None);
    assert!(provider.compactions()?.is_empty());
    assert_eq!(provider.head()?, None);
    assert_eq!(probe.found("text", Scope::session(provider.id().clone()))?, "");
    assert_unknown(provider.history(Some(&id("a"))));
    assert_unknown(provider.update(&message("a")));
    assert_unknown(probe.delete("a"));
    assert!(provider.append(&Parent::Head, &ExpectedHead::Any, &[])?.is_empty());
    provider.clear()
}

pub(super) fn places(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    provider.append(
        &Parent::Head,
        &ExpectedHead::Any,
        &[message("a"), message("b"), message("c")],
    )?;
    assert_eq!(probe.head()?, "a b c");
    provider.append(
        &Parent::Message(id("a")),
        &ExpectedHead::Any,
        &[message("d"), message("e")],
    )?;
    assert_eq!(probe.head()?, "a d e");
    provider.append(&Parent::Head, &ExpectedHead::Any, &[message("f")])?;
    provider.append(&Parent::Root, &ExpectedHead::Any, &[message("r")])?;
    assert_eq!(probe.head()?, "r");
    assert_eq!((probe.raw("f")?, probe.raw("c")?), ("a d e f".into(), "a b c".into()));
    assert_eq!((probe.children(None)?, probe.children(Some("a"))?), ("a r".into(), "b d".into()));
    assert_eq!(probe.children(Some("f"))?, "");
    assert_eq!(provider.path_length(Some(&id("f")))?, 4);
    assert_eq!(provider.path_length(None)?, 1);
    assert_eq!(provider.latest_leaf()?.map(|message| message.id), Some(id("r")));
    let parents = provider.branches(Some(&id("a")))?;
    assert!(parents.iter().all(|child| child.parent == Some(id("a"))));
    match provider.append(&Parent::Head, &ExpectedHead::At(Some(id("f"))), &[message("g")]) {
        Err(Error::HeadMoved { found, .. }) => assert_eq!(found, Some(id("r"))),
        answer => panic!("a head elsewhere should be Error::HeadMoved, not {answer:?}"),
    }
    provider.append(&Parent::Head, &ExpectedHead::At(Some(id("r"))), &[message("g")])?;
    assert_eq!(probe.head()?, "r g");
    // A retry after a lost answer is a no-op.
    assert!(
        !provider.append(&Parent::Head, &ExpectedHead::At(Some(id("r"))), &[message("g")])?[0]
            .is_new
    );
    assert_eq!(probe.head()?, "r g");
    Ok(())
}

pub(super) fn known_ids(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba ca")?;
    let again = provider.append(&Parent::Head, &ExpectedHead::Any, &[message("b")])?;
    assert!(!again[0].is_new && !again[0].differs && again[0].id == id("b"));
    let other = Message::user("something else").with_id("b");
    assert!(provider.append(&Parent::Root, &ExpectedHead::Any, &[other])?[0].differs);
    assert_eq!((probe.head()?, probe.raw("b")?), ("a c".into(), "a b".into()));
    assert_eq!(provider.raw_history(Some(&id("b")))?[1].text(), "text of b");
    let answers = provider.append(
        &Parent::Root,
        &ExpectedHead::Any,
        &[message("a"), message("b"), message("d")],
    )?;
    let are_new: Vec<bool> = answers.iter().map(|answer| answer.is_new).collect();
    assert_eq!((are_new, probe.head()?), (vec![false, false, true], "a b d".into()));
    Ok(())
}

pub(super) fn unknown_ids(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba")?;
    let x = id("x");
    assert_unknown(provider.append(
        &Parent::Message(x.clone()),
        &ExpectedHead::Any,
        &[message("c")],
    ));
    assert_unknown(provider.history(Some(&x)));
    assert_unknown(provider.raw_history(Some(&x)));
    assert_unknown(provider.branches(Some(&x)));
    assert_unknown(provider.path_length(Some(&x)));
    assert_unknown(provider.update(&message("x")));
    assert_unknown(probe.delete("b x"));
    assert_unknown(probe.compact("s", "x", "b"));
    assert_unknown(probe.compact("s", "a", "x"));
    if let Some(answer) = supported(provider.is_on_path(&id("a"), None))? {
        assert!(answer);
    }
    assert_eq!((provider.message(&x)?, probe.head()?), (None, "a b".into()));
    assert!(provider.compactions()?.is_empty());
    Ok(())
}

pub(super) fn branch_pages(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba ca da eb fb ga r-")?;
    // The children of a deleted message are among those of its parent, in order of creation.
    probe.delete("b")?;
    let page = |of: Option<&str>, after: Option<&str>, limit: usize| -> Result<String> {
        let (of, after) = (of.map(id), after.map(id));
        Ok(drawn(&provider.branches_page(of.as_ref(), after.as_ref(), limit)?))
    };
    for (of, after, limit, expected) in [
        (Some("a"), None, 9, "c d e f g"),
        (Some("a"), None, 2, "c d"),
        (Some("a"), Some("d"), 2, "e f"),
        (Some("a"), Some("e"), 9, "f g"),
        (Some("a"), Some("f"), 1, "g"),
        (Some("a"), Some("g"), 1, ""),
        (Some("a"), None, 0, ""),
        (None, None, 1, "a"),
        (None, Some("a"), 9, "r"),
    ] {
        assert_eq!(page(of, after, limit)?, expected, "{limit} of {of:?} after {after:?}");
    }
    assert_eq!(
        provider.branches_page(Some(&id("a")), None, 9)?,
        provider.branches(Some(&id("a")))?
    );
    assert_unknown(page(Some("x"), None, 1));
    assert_unknown(page(Some("a"), Some("x"), 1));
    Ok(())
}

pub(super) fn leaves(probe: &Probe) -> Result<()> {
    probe.draw("a- ba ca db r-")?;
    let Some(leaves) = supported(probe.provider.leaves())? else { return Ok(()) };
    assert_eq!(leaves, [id("c"), id("d"), id("r")]);
    Ok(())
}

pub(super) fn threads(probe: &Probe) -> Result<()> {
    const THREADS: usize = 4;
    const EACH: usize = 25;
    let write = |thread: usize| -> Result<()> {
        for n in 0..EACH {
            let message = Message::user("x").with_id(format!("{thread}-{n}"));
            probe.provider.append(&Parent::Head, &ExpectedHead::Any, &[message])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || write(at))).collect();
        for writer in writers {
            writer.join().unwrap_or_else(|_| panic!("a writing thread panicked"))?;
        }
        Ok(())
    })?;
    assert_eq!(probe.provider.path_length(None)?, (THREADS * EACH) as u64);
    Ok(())
}
