//! Compactions and hidden messages: what a model sees.
//!
//! A summary replaces its range on the paths that contain the last message of the range, and nowhere else. The messages
//! of the range remain: they can be read raw, deleted, or made visible again.

use super::probe::{Probe, assert_unknown, drawn, id, ids, message, supported};
use crate::error::{Error, Result};
use crate::id::CompactionId;
use crate::message::Json;
use crate::view::{ExpectedHead, Parent};

pub(super) fn summaries(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb dc xb")?;
    probe.compact("s", "b", "c")?;
    for (leaf, shown) in [("d", "a [s] d"), ("c", "a [s]"), ("b", "a b"), ("x", "a b x")] {
        assert_eq!(probe.history(leaf)?, shown, "the history at {leaf}");
    }
    assert_eq!(probe.raw("d")?, "a b c d");
    assert_eq!(provider.path_length(Some(&id("d")))?, 4);
    let first = provider.history(Some(&id("d")))?;
    assert_eq!(first, provider.history(Some(&id("d")))?, "two reads of one state are equal");
    let stored = provider.compactions()?;
    assert_eq!((stored[0].count, stored[0].summary.as_str()), (2, "summary s"));
    assert_eq!((&stored[0].first, &stored[0].last), (&id("b"), &id("c")));
    assert_eq!(stored[0].details, Some(Json::from(serde_json::json!({"of": "s"}))));
    assert_eq!(first[1], stored[0].to_message(Some(id("a"))));
    assert_eq!(provider.summary(&"s".into())?.as_ref(), Some(&first[1]));
    assert_eq!(drawn(&provider.expand_raw(&"s".into())?), "b c");
    // A known id is a no-op.
    probe.compact("s", "a", "a")?;
    assert_eq!(provider.compactions()?, stored);
    Ok(())
}

pub(super) fn summary_ends(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed xb")?;
    for (first, last) in [("c", "b"), ("x", "e"), ("c", "x")] {
        let answer = probe.compact("s", first, last);
        assert!(matches!(answer, Err(Error::NotAncestor { .. })), "{first}..{last}: {answer:?}");
    }
    probe.compact("s", "b", "d")?;
    match probe.compact("t", "c", "e") {
        Err(Error::InsideSummary { compaction, id: given }) => {
            assert_eq!((compaction, given), ("s".into(), id("c")));
        }
        answer => panic!("an end inside a summary should be Error::InsideSummary, not {answer:?}"),
    }
    assert_eq!(probe.history("e")?, "a [s] e");
    // On a path without the summary its messages are items.
    probe.compact("u", "a", "c")?;
    assert_eq!((probe.history("c")?, probe.history("e")?), ("[u]".into(), "a [s] e".into()));
    assert_eq!(probe.history("x")?, "a b x");
    Ok(())
}

pub(super) fn nesting(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.compact("s", "b", "c")?;
    probe.compact("t", "b", "d")?;
    assert_eq!(probe.history("e")?, "a [t] e");
    assert_eq!(probe.history("c")?, "a [s]");
    probe.compact("u", "a", "d")?;
    assert_eq!(probe.history("e")?, "[u] e");
    probe.compact("v", "a", "d")?;
    assert_eq!(probe.history("e")?, "[v] e");
    let made: Vec<CompactionId> =
        probe.provider.compactions()?.into_iter().map(|compaction| compaction.id).collect();
    assert_eq!(ids(&made), "s t u v");
    assert_eq!(drawn(&probe.provider.expand_raw(&"v".into())?), "a b c d");
    // Each expansion shows one level.
    for (over, below) in [("v", "[u]"), ("u", "a [t]"), ("t", "[s] d"), ("s", "b c")] {
        if let Some(shown) = supported(probe.provider.expand(&over.into()))? {
            assert_eq!(drawn(&shown), below, "under {over}");
        }
    }
    let compactions = |at: usize| {
        ids(&probe.provider.compactions().map(|all| all[at].nested.clone()).unwrap_or_default())
    };
    assert_eq!(
        (compactions(0), compactions(1), compactions(2), compactions(3)),
        ("".into(), "s".into(), "t".into(), "u".into())
    );
    Ok(())
}

pub(super) fn places(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb xc dc")?;
    probe.compact("s", "b", "c")?;
    let summary = CompactionId::from("s").as_message();
    let nobody = CompactionId::from("nobody").as_message();
    assert_unknown(provider.history(Some(&nobody)));
    assert_unknown(provider.branches(Some(&nobody)));
    assert_unknown(provider.is_on_path(&nobody, None));
    let to_nobody = Parent::Message(nobody.clone());
    assert_unknown(provider.append(&to_nobody, &ExpectedHead::Any, &[message("n")]));
    for is_deleted in [false, true] {
        if is_deleted {
            probe.delete("c")?;
        }
        assert_eq!(drawn(&provider.history(Some(&summary))?), "a [s]");
        assert_eq!(drawn(&provider.branches(Some(&summary))?), "x d");
        assert!(provider.is_on_path(&summary, None)?);
        assert!(provider.is_on_path(&id("a"), Some(&summary))?);
        assert!(!provider.is_on_path(&id("d"), Some(&summary))?);
        if supported(provider.checkout(Some(&summary)))?.is_some() {
            assert_eq!(drawn(&provider.history(None)?), "a [s]");
            provider.checkout(Some(&id("d")))?;
        }
    }
    assert_unknown(provider.delete(std::slice::from_ref(&summary)));
    assert_unknown(provider.update(&message("c").with_id(summary.clone())));
    let after = Parent::Message(summary);
    provider.append(&after, &ExpectedHead::Any, &[message("e"), message("f")])?;
    assert_eq!((probe.history("f")?, probe.raw("f")?), ("a [s] e f".into(), "a b e f".into()));
    Ok(())
}

pub(super) fn heads(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb dc")?;
    probe.compact("s", "b", "c")?;
    if supported(provider.checkout(Some(&id("c"))))?.is_none() {
        return Ok(());
    }
    assert_eq!(provider.head()?, Some(id("c")));
    probe.delete("c")?;
    let summary = CompactionId::from("s").as_message();
    assert_eq!(provider.head()?.as_ref(), Some(&summary));
    let before = provider.history(None)?;
    assert_eq!(provider.history(Some(&summary))?, before);
    let (head, expected) = (Parent::Message(summary.clone()), ExpectedHead::At(Some(summary)));
    provider.append(&head, &expected, &[message("n")])?;
    assert_eq!(probe.history("n")?, "a [s] n");
    Ok(())
}

pub(super) fn hidden(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    provider.append(
        &Parent::Head,
        &ExpectedHead::Any,
        &[message("a"), message("b").hidden(), message("c")],
    )?;
    assert_eq!((probe.history("c")?, probe.raw("c")?), ("a c".into(), "a b c".into()));
    assert_eq!(provider.history(None)?[1].parent, Some(id("b")));
    assert_eq!(provider.path_length(None)?, 3);
    assert!(provider.message(&id("b"))?.is_some_and(|message| message.is_hidden));
    let answer = probe.compact("s", "b", "b");
    assert!(matches!(answer, Err(Error::NothingVisible { .. })), "{answer:?}");
    probe.compact("s", "b", "c")?;
    assert_eq!(probe.history("c")?, "a [s]");
    Ok(())
}

pub(super) fn deletes_under_summaries(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.compact("s", "b", "c")?;
    probe.compact("t", "a", "d")?;
    let deleted = probe.delete("b")?;
    assert_eq!(ids(&deleted.covered_by), "s t");
    assert_eq!((probe.history("e")?, probe.history("c")?), ("[t] e".into(), "a [s]".into()));
    let deleted = probe.delete("c")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.covered_by)),
        ("s".into(), "t".into())
    );
    // Its last message is a tombstone, which is removed with its last descendant.
    assert_eq!(ids(&probe.delete("d")?.covered_by), "t");
    assert_eq!(probe.history("e")?, "[t] e");
    assert_eq!(ids(&probe.delete("e")?.compactions_gone), "t");
    assert_eq!((probe.history("a")?, probe.provider.compactions()?.len()), ("a".into(), 0));
    probe.draw("fa gf hg")?;
    probe.compact("u", "a", "f")?;
    probe.compact("v", "a", "h")?;
    let deleted = probe.delete("h")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.compactions_back)),
        ("v".into(), "u".into())
    );
    assert_eq!(probe.history("g")?, "[u] g");
    Ok(())
}

pub(super) fn removals(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc")?;
    probe.compact("s", "a", "b")?;
    probe.compact("t", "a", "c")?;
    if supported(probe.provider.remove_compaction(&"t".into()))?.is_none() {
        return Ok(());
    }
    assert_eq!(probe.history("d")?, "[s] c d");
    let answer = probe.provider.remove_compaction(&"t".into());
    assert!(matches!(answer, Err(Error::UnknownCompaction { .. })), "{answer:?}");
    probe.provider.remove_compaction(&"s".into())?;
    assert_eq!(probe.history("d")?, "a b c d");
    Ok(())
}
