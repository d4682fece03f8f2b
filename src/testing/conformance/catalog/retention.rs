//! The verbs of a catalog that retention uses: discarding unchanged sessions, sizes, owners.

use std::sync::Arc;

use super::{Probe, at, owned_by};
use crate::catalog::{SessionChange, SessionFilter, SessionState};
use crate::error::Result;
use crate::message::{Message, stored_bytes};
use crate::outcome::SessionDetails;
use crate::retention::{Retention, RetentionAction, RetentionRule};
use crate::store::RetentionRun;

pub(super) fn discards(probe: &Probe) -> Result<()> {
    for action in [RetentionAction::Trash, RetentionAction::Remove] {
        let ids = ["same", "longer", "named", "pinned", "gone", "again", "last"];
        for id in ids {
            probe.say(id, at(0))?;
        }
        let known = ids.map(|id| probe.info(id));
        let known = known.into_iter().collect::<Result<Vec<_>>>()?;
        probe.say("longer", at(1))?;
        probe.catalog.change(&"named".into(), &SessionChange::Name(Some("a name".to_owned())))?;
        probe.catalog.change(&"pinned".into(), &SessionChange::Pin(true))?;
        probe.catalog.remove(&"gone".into())?;
        probe.catalog.remove(&"again".into())?;
        probe.say("again", at(0))?;
        let done = probe.catalog.discard(&known, action)?;
        assert_eq!(done, [true, false, false, false, false, false, true], "{action:?}");
        let in_trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
        let mut left = probe.listed(&SessionFilter::default())?;
        left.sort();
        assert_eq!(left, ["again", "longer", "named", "pinned"], "{action:?}");
        let mut trash = probe.listed(&in_trash)?;
        trash.sort();
        let expected: &[&str] =
            if action == RetentionAction::Trash { &["last", "same"] } else { &[] };
        assert_eq!(trash, expected, "{action:?}");
        for id in left.into_iter().chain(trash) {
            probe.catalog.remove(&id.as_str().into())?;
        }
    }
    Ok(())
}

pub(super) fn sizes(probe: &Probe) -> Result<()> {
    assert_eq!(probe.catalog.bytes(&"nobody".into())?, 0);
    probe.create("s")?;
    assert_eq!(probe.catalog.bytes(&"s".into())?, 0);
    let (first, second) = (Message::user("one").with_id("1"), Message::user("größer").with_id("2"));
    probe.append("s", &first)?;
    probe.append("s", &second)?;
    let (first, second) = (stored_bytes(&first)?, stored_bytes(&second)?);
    assert_eq!(probe.catalog.bytes(&"s".into())?, first + second);
    // A tombstone has no size.
    probe.chat("s").delete(&["1".into()])?;
    assert_eq!(probe.catalog.bytes(&"s".into())?, second);
    Ok(())
}

pub(super) fn owners(probe: &Probe) -> Result<()> {
    assert_eq!(probe.catalog.owners(None, 9)?, []);
    for (id, owner) in [("a", "bob"), ("b", "ann"), ("c", "bob"), ("d", "Bob"), ("e", "zoë")] {
        probe.catalog.create(&id.into(), &owned_by(owner))?;
    }
    probe.create("nobody's")?;
    for (id, time) in [("a", 5), ("c", 9), ("c", 7), ("e", 1)] {
        probe.say(id, at(time))?;
    }
    probe.catalog.change(&"e".into(), &SessionChange::Delete)?;
    let listed = |after: Option<&str>, limit| -> Result<Vec<_>> {
        let owners = probe.catalog.owners(after, limit)?;
        Ok(owners
            .into_iter()
            .map(|of| (of.owner, of.sessions, of.messages, of.last_message_at))
            .collect())
    };
    let expected = [
        ("Bob".to_owned(), 1, 0, None),
        ("ann".to_owned(), 1, 0, None),
        ("bob".to_owned(), 2, 3, Some(at(7))),
    ];
    assert_eq!(listed(None, 9)?, expected);
    assert_eq!(listed(None, 1)?, expected[..1]);
    assert_eq!(listed(Some("Bob"), 1)?, expected[1..2]);
    assert_eq!(listed(Some("b"), 9)?, expected[2..]);
    assert_eq!(listed(Some("bob"), 9)?, []);
    assert_eq!(listed(None, 0)?, []);
    Ok(())
}

/// A retention works over any catalog.
pub(super) fn runs(probe: &Probe) -> Result<()> {
    for number in 0..30 {
        let owner = if number % 2 == 0 { "ann" } else { "bob" };
        let id = format!("s{number:02}");
        let details = SessionDetails { is_pinned: Some(number == 0), ..owned_by(owner) };
        probe.catalog.create(&id.as_str().into(), &details)?;
        probe.say(&id, at(number))?;
    }
    let rules = || {
        let of_ann = RetentionRule::new("of ann").owner("ann").keep_sessions(10);
        Retention::new().rule(of_ann).rule(RetentionRule::new("all").keep_messages(20).remove())
    };
    let run = || RetentionRun::over(Arc::clone(&probe.catalog), rules(), |_| {});
    let expected = run().dry_run()?;
    let ids = |rule: &str| -> Vec<&str> {
        let of_rule = expected.sessions.iter().filter(|session| session.rule == rule);
        of_rule.map(|session| session.id.as_str()).collect()
    };
    assert_eq!(ids("of ann"), ["s08", "s06", "s04", "s02"]);
    assert_eq!(ids("all"), ["s09", "s07", "s05", "s03", "s01"]);
    assert_eq!(probe.listed(&SessionFilter::default())?.len(), 30, "a dry run changes nothing");
    assert_eq!(run().run()?, expected);
    assert_eq!(probe.listed(&SessionFilter::default())?.len(), 21);
    let in_trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    assert_eq!(probe.listed(&in_trash)?, ["s08", "s06", "s04", "s02"]);
    assert_eq!(run().run()?.sessions, [], "a second run has nothing to do");
    Ok(())
}
