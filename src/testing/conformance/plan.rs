//! Plans: commits, the visible tokens, expected heads and splits.

use super::probe::{Probe, id, message, supported};
use crate::compaction::{Compaction, Seen, Stale};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Message;
use crate::view::{ExpectedHead, Parent};

pub(super) fn stale(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb dc ed xb")?;
    provider.append(&Parent::Message(id("e")), &ExpectedHead::Any, &[message("f")])?;
    let seen_at = |first: usize, last: usize| -> Result<Seen> {
        Ok(Seen::of(&provider.history(Some(&id("f")))?[first..=last]))
    };
    let commit = |name: &str, first: &str, last: &str, seen: &Seen| {
        let summary = Compaction::new(format!("summary {name}"), first.into(), last.into());
        provider.commit_compaction(&Compaction { id: name.into(), ..summary }, &id("f"), seen)
    };
    let [inner, outer, gone] = [seen_at(1, 2)?, seen_at(1, 3)?, seen_at(4, 4)?];
    assert!(commit("s", "b", "c", &inner)?, "a summary on the path to the head is visible");
    assert_eq!(probe.history("f")?, "a [s] d e f");
    let refused = |answer: Result<bool>, expected: Stale| match answer {
        Err(Error::Stale { why }) => assert_eq!(why, expected),
        other => panic!("a stale plan should be {expected:?}, not {other:?}"),
    };
    refused(commit("t", "b", "d", &outer), Stale::Compacted { by: "s".into() });
    let over = seen_at(1, 2)?;
    provider.update(&Message::user("other words").with_id("d"))?;
    refused(commit("t", "compaction_s", "d", &over), Stale::Updated { id: id("d") });
    probe.delete("e")?;
    refused(commit("t", "e", "e", &gone), Stale::Deleted { id: id("e") });
    commit("t", "compaction_s", "d", &seen_at(1, 2)?)?;
    assert_eq!((probe.history("f")?, probe.raw("f")?), ("a [t] f".into(), "a b c d f".into()));
    Ok(())
}

pub(super) fn counted(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    let counts = |what: &str| -> Result<()> {
        if let Some(tokens) = provider.visible_tokens()? {
            let shown: u64 = provider.history(None)?.iter().map(Message::tokens).sum();
            assert_eq!(tokens, shown, "the tokens of the history {what}");
        }
        Ok(())
    };
    counts("of nothing")?;
    probe.draw("a- ba cb dc")?;
    counts("after appends")?;
    let counted = provider.append_counted(&Parent::Head, &ExpectedHead::Any, &[message("e")])?;
    assert!(counted.appended[0].is_new);
    assert!(
        counted.visible_tokens.is_none() || counted.visible_tokens == provider.visible_tokens()?
    );
    probe.compact("s", "b", "c")?;
    counts("under a summary")?;
    provider.update(&Message::user("very many other words").with_id("e"))?;
    counts("after an update")?;
    probe.delete("e")?;
    counts("after a delete")?;
    provider.append(&Parent::Message(id("a")), &ExpectedHead::Any, &[message("x")])?;
    counts("on another branch")
}

pub(super) fn leaving(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb")?;
    let leave = |from: &str, letter: &str| {
        let expected = ExpectedHead::At(Some(id(from)));
        probe.provider.append(&Parent::Message(id("a")), &expected, &[message(letter)])
    };
    match leave("b", "x") {
        Err(Error::HeadMoved { found, .. }) => assert_eq!(found, Some(id("c"))),
        other => panic!("another head should be HeadMoved, not {other:?}"),
    }
    leave("c", "y")?;
    assert_eq!(probe.head()?, "a y");
    assert!(!leave("c", "y")?[0].is_new, "a retry finds its own message");
    Ok(())
}

pub(super) fn splits(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba")?;
    let child = SessionId::from(format!("{}, child", provider.id()));
    let opening = message("s");
    let Some(next) = supported(provider.split(&child, &opening, "compaction"))? else {
        return Ok(());
    };
    assert_eq!(next.history(None)?, std::slice::from_ref(&opening));
    let info = next.info()?.ok_or(Error::UnknownSession { id: child.clone() })?;
    assert_eq!(
        (info.parent_session, info.fork_point),
        (Some(provider.id().clone()), Some(id("b")))
    );
    let reason = provider.info()?.and_then(|info| info.end_reason);
    assert_eq!((reason.as_deref(), probe.head()?.as_str()), (Some("compaction"), "a b"));
    let again = provider.split(&child, &opening, "compaction");
    assert!(matches!(again.err(), Some(Error::SessionExists { .. })));
    let other = SessionId::from(format!("{}, other child", provider.id()));
    let again = provider.split(&other, &opening, "compaction");
    assert!(matches!(again.err(), Some(Error::InvalidValue { .. })), "it has one continuation");
    Ok(())
}
