//! Creating and changing sessions.

use talktree::{
    BindingFilter, Error, Json, Result, SessionChange, SessionDetails, SessionFilter, SessionState,
};

use super::{Probe, at, now, owned_by};

#[test]
fn a_session_is_created_once_with_its_details() -> Result<()> {
    let probe = Probe::new()?;
    let text = |text: &str| Some(text.to_owned());
    let before = now();
    let details = SessionDetails {
        name: text("Deployment"),
        owner: text("ann"),
        source: text("telegram"),
        model: text("large"),
        metadata: Some(Json::from(serde_json::json!({"a": [1, null]}))),
        tags: vec!["work".to_owned(), "home".to_owned(), "work".to_owned()],
        is_pinned: Some(true),
        parent_session: Some("parent".into()),
        ..SessionDetails::default()
    };
    probe.create_as(&"s".into(), &details)?;
    let info = probe.info("s")?;
    assert_eq!((&info.name, &info.owner), (&details.name, &details.owner));
    assert_eq!((&info.source, &info.model), (&details.source, &details.model));
    assert_eq!(
        (&info.metadata, &info.parent_session),
        (&details.metadata, &details.parent_session)
    );
    assert_eq!((info.tags, info.is_pinned), (vec!["home".to_owned(), "work".to_owned()], true));
    assert_eq!((info.messages, info.last_message_at), (0, None));
    assert!(before <= info.created_at && info.created_at <= now());
    for again in [details, SessionDetails::default()] {
        let answer = probe.create_as(&"s".into(), &again);
        assert!(matches!(answer, Err(Error::SessionExists { .. })), "{answer:?}");
    }
    let (created_at, updated_at) = (at(0), at(9));
    let old = SessionDetails {
        created_at: Some(created_at),
        updated_at: Some(updated_at),
        end_reason: text("over"),
        ..SessionDetails::default()
    };
    probe.create_as(&"old".into(), &old)?;
    let info = probe.info("old")?;
    assert_eq!((info.created_at, info.updated_at), (created_at, updated_at));
    assert_eq!((info.end_reason, info.ended_at), (text("over"), Some(updated_at)));
    probe.say("s", now())?;
    assert_eq!(probe.info("s")?.messages, 1);
    assert_eq!(probe.chat("s")?.info()?, Some(probe.info("s")?), "both tell the same");
    probe.is_sound()
}

#[test]
fn changes_are_read_back() -> Result<()> {
    let probe = Probe::new()?;
    use SessionChange::{End, Metadata, Name, Owner, Pin, Reopen, Tag, Untag};
    let text = |text: &str| text.to_owned();
    probe.say("s", at(0))?;
    probe.say("other", at(0))?;
    let (before, other) = (probe.info("s")?, probe.info("other")?);
    let change = |change: SessionChange| -> Result<_> {
        probe.store.change_session(&"s".into(), &change)?;
        probe.info("s")
    };
    assert_eq!(change(Name(Some(text("Deployment"))))?.name, Some(text("Deployment")));
    assert_eq!(change(Name(None))?.name, None);
    assert_eq!(change(Owner(Some(text("ann"))))?.owner, Some(text("ann")));
    assert_eq!(change(Owner(None))?.owner, None);
    let json = Json::from(serde_json::json!({"a": 1}));
    assert_eq!(change(Metadata(Some(json.clone())))?.metadata, Some(json));
    assert_eq!(change(Metadata(None))?.metadata, None);
    for _ in 0..2 {
        assert_eq!(change(Tag(text("work")))?.tags, ["work"]);
    }
    assert_eq!(change(Tag(text("home")))?.tags, ["home", "work"]);
    for _ in 0..2 {
        assert_eq!(change(Untag(text("home")))?.tags, ["work"]);
    }
    change(Untag(text("work")))?;
    for is_pinned in [true, true, false, false] {
        assert_eq!(change(Pin(is_pinned))?.is_pinned, is_pinned);
    }
    let ended = change(End(text("done")))?;
    assert_eq!(ended.end_reason, Some(text("done")));
    assert!(ended.ended_at.is_some_and(|at| before.updated_at <= at && at <= now()));
    let again = change(End(text("over")))?;
    assert_eq!((again.end_reason, again.ended_at), (Some(text("over")), ended.ended_at));
    probe.say("s", at(0))?;
    for _ in 0..2 {
        let open = change(Reopen)?;
        assert_eq!((open.end_reason, open.ended_at), (None, None));
    }
    let mut after = probe.info("s")?;
    assert!(after.updated_at >= before.updated_at);
    let (updated_at, messages) = (before.updated_at, before.messages);
    (after.updated_at, after.messages) = (updated_at, messages);
    assert_eq!(after, before, "all changes were taken back");
    assert_eq!(probe.info("other")?, other);
    probe.is_sound()
}

#[test]
fn a_session_has_a_hundred_tags_at_most() -> Result<()> {
    let probe = Probe::new()?;
    let id = "s".into();
    let tag = |number: u32| SessionChange::Tag(format!("tag {number:03}"));
    probe.create("s")?;
    for number in 0..100 {
        probe.store.change_session(&id, &tag(number))?;
    }
    for answer in [
        probe.store.change_session(&id, &tag(100)),
        probe.chat("s")?.set_details(&SessionDetails {
            tags: vec!["another".to_owned()],
            ..SessionDetails::default()
        }),
        probe.create_as(
            &"too many".into(),
            &SessionDetails {
                tags: (0..101).map(|number| number.to_string()).collect(),
                ..SessionDetails::default()
            },
        ),
    ] {
        assert!(matches!(answer, Err(Error::InvalidValue { what: "tag", .. })), "{answer:?}");
    }
    assert_eq!(probe.bot.get(&"too many".into())?, None);
    probe.store.change_session(&id, &tag(99))?;
    assert_eq!(probe.info("s")?.tags.len(), 100);
    probe.store.change_session(&id, &SessionChange::Untag("tag 050".to_owned()))?;
    probe.store.change_session(&id, &tag(100))?;
    let tags = probe.info("s")?.tags;
    assert!(tags.len() == 100 && tags.is_sorted(), "{tags:?}");
    probe.is_sound()
}

/// A storage may have an index for each of these lists.
#[test]
fn a_changed_detail_moves_a_session_to_other_lists() -> Result<()> {
    let probe = Probe::new()?;
    let text = |text: &str| Some(text.to_owned());
    let all = SessionFilter::default;
    probe.say("s", at(0))?;
    let is_listed = |filter: &SessionFilter| -> Result<bool> {
        Ok(probe.listed(filter)?.contains(&"s".to_owned()))
    };
    let cases = [
        (
            SessionFilter { owner: text("ann"), ..all() },
            SessionChange::Owner(text("ann")),
            SessionChange::Owner(None),
        ),
        (
            SessionFilter { name: text("plan"), ..all() },
            SessionChange::Name(text("A plan")),
            SessionChange::Name(None),
        ),
        (
            SessionFilter { tag: text("work"), ..all() },
            SessionChange::Tag("work".to_owned()),
            SessionChange::Untag("work".to_owned()),
        ),
        (
            SessionFilter { is_pinned: Some(true), ..all() },
            SessionChange::Pin(true),
            SessionChange::Pin(false),
        ),
        (
            SessionFilter { state: SessionState::Ended, ..all() },
            SessionChange::End("over".to_owned()),
            SessionChange::Reopen,
        ),
        (
            SessionFilter { state: SessionState::Trash, ..all() },
            SessionChange::Delete,
            SessionChange::Restore,
        ),
    ];
    for (filter, there, back) in &cases {
        assert!(!is_listed(filter)?, "before {there:?}");
        probe.store.change_session(&"s".into(), there)?;
        assert!(is_listed(filter)?, "after {there:?}");
        probe.store.change_session(&"s".into(), back)?;
        assert!(!is_listed(filter)?, "after {back:?}");
    }
    let (model, source) = (text("large"), text("mail"));
    let details =
        SessionDetails { model: model.clone(), source: source.clone(), ..owned_by("bob") };
    probe.chat("s")?.set_details(&details)?;
    for filter in [
        SessionFilter { model, ..all() },
        SessionFilter { source, ..all() },
        SessionFilter::owned_by("bob"),
    ] {
        assert!(is_listed(&filter)?, "{filter:?}");
    }
    probe.is_sound()
}

#[test]
fn an_unknown_session_is_an_error() -> Result<()> {
    let probe = Probe::new()?;
    let id = "nobody".into();
    for answer in [
        probe.store.change_session(&id, &SessionChange::Pin(true)),
        probe.store.change_session(&id, &SessionChange::Restore),
        probe.store.remove(&id),
    ] {
        match answer {
            Err(Error::UnknownSession { id: unknown }) => assert_eq!(unknown, id),
            other => panic!("it should be Error::UnknownSession, not {other:?}"),
        }
    }
    assert_eq!(probe.bot.get(&id)?, None);
    let filter = BindingFilter { session: Some(id), ..BindingFilter::default() };
    assert_eq!(probe.store.bindings(&filter, None, 9)?, []);
    probe.is_sound()
}
