//! The head and labels.

use super::probe::{Probe, assert_unknown, id, message, supported};
use crate::error::{Error, Result};
use crate::id::CompactionId;
use crate::view::{ExpectedHead, Parent};

pub(super) fn heads(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba ca")?;
    if supported(provider.checkout(Some(&id("b"))))?.is_none() {
        return Ok(());
    }
    assert_eq!((provider.head()?, probe.head()?), (Some(id("b")), "a b".into()));
    assert_unknown(provider.checkout(Some(&id("x"))));
    provider.append(&Parent::Head, &ExpectedHead::Any, &[message("d")])?;
    assert_eq!(probe.head()?, "a b d");
    if supported(provider.undo_head())? == Some(true) {
        assert_eq!(probe.head()?, "a c");
        assert!(provider.redo_head()?);
        assert_eq!((probe.head()?, provider.redo_head()?), ("a b d".into(), false));
        let log = provider.head_log()?;
        assert_eq!(log.iter().filter(|entry| entry.is_present).count(), 1);
    }
    provider.checkout(None)?;
    assert_eq!((provider.head()?, probe.head()?), (None, String::new()));
    provider.append(&Parent::Head, &ExpectedHead::Any, &[message("r")])?;
    assert_eq!(probe.children(None)?, "a r");
    Ok(())
}

pub(super) fn moves_if(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    let to = |expected: Option<&str>, target: Option<&str>| {
        let (expected, target) = (ExpectedHead::At(expected.map(id)), target.map(id));
        provider.checkout_if_head(&expected, target.as_ref())
    };
    let elsewhere = |answer: Result<()>, at: Option<&str>| match answer {
        Err(Error::HeadMoved { found, .. }) => assert_eq!(found, at.map(id)),
        answer => panic!("a head elsewhere should be Error::HeadMoved, not {answer:?}"),
    };
    elsewhere(to(Some("a"), None), None);
    probe.draw("a- ba ca")?;
    if supported(to(Some("c"), Some("b")))?.is_none() {
        return Ok(());
    }
    assert_eq!(probe.head()?, "a b");
    elsewhere(to(Some("c"), Some("a")), Some("b"));
    elsewhere(to(None, Some("a")), Some("b"));
    assert_unknown(to(Some("b"), Some("x")));
    assert_eq!(probe.head()?, "a b");
    to(Some("b"), None)?;
    to(None, Some("c"))?;
    assert_eq!(probe.head()?, "a c");
    // The id of a summary names the place of its last message.
    probe.compact("s", "a", "c")?;
    let summary = CompactionId::from("s").as_message();
    provider.checkout_if_head(&ExpectedHead::At(Some(summary)), Some(&id("b")))?;
    assert_eq!(probe.head()?, "a b");
    Ok(())
}

pub(super) fn labels(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb")?;
    if supported(provider.label("y", Some(&id("a"))))?.is_none() {
        return Ok(());
    }
    provider.label("x", Some(&id("b")))?;
    provider.label("y", Some(&id("c")))?;
    assert_unknown(provider.label("z", Some(&id("x"))));
    let taken = provider.label("b", Some(&id("c")));
    assert!(
        matches!(taken, Err(Error::InvalidValue { .. })),
        "a label was given the id of a message: {taken:?}"
    );
    let all = || -> Result<String> {
        let labels = provider.labels()?;
        let names: Vec<_> =
            labels.iter().map(|label| format!("{}={}", label.name, label.id)).collect();
        Ok(names.join(" "))
    };
    assert_eq!(all()?, "x=b y=c");
    assert_eq!((provider.labelled("x")?, provider.labelled("z")?), (Some(id("b")), None));
    probe.delete("b")?;
    assert_eq!(all()?, "y=c");
    assert_eq!(provider.labelled("x")?, None);
    provider.label("y", None)?;
    provider.label("y", None)?;
    assert_eq!(all()?, "");
    Ok(())
}
