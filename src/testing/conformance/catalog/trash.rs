//! The trash, and sessions that were removed.

use super::{Probe, at, owned_by};
use crate::catalog::{SessionChange, SessionFilter, SessionState};
use crate::error::{Error, Result};
use crate::outcome::SessionDetails;
use crate::search::{Scope, SearchRequest};
use crate::testing::conformance::probe::supported;
use crate::testing::conformance::removal;

fn trash() -> SessionFilter {
    SessionFilter { state: SessionState::Trash, ..SessionFilter::default() }
}

pub(super) fn left_out(probe: &Probe) -> Result<()> {
    let details = SessionDetails { tags: vec!["work".to_owned()], ..owned_by("ann") };
    let details =
        SessionDetails { is_pinned: Some(true), source: Some("mail".to_owned()), ..details };
    for id in ["gone", "here"] {
        probe.catalog.create(&id.into(), &details)?;
        probe.say(id, at(0))?;
    }
    let found = |scope: Scope, owner: Option<&str>| -> Result<[Vec<String>; 2]> {
        let request =
            SearchRequest { owner: owner.map(str::to_owned), ..SearchRequest::new("text", scope) };
        let mut hits: Vec<_> = probe.catalog.search(&request)?.hits;
        hits.sort_by(|one, other| one.session.cmp(&other.session));
        let mut sessions = probe.catalog.search_sessions(&request)?.sessions;
        sessions.sort_by(|one, other| one.session.cmp(&other.session));
        Ok([
            hits.into_iter().map(|hit| hit.session.to_string()).collect(),
            sessions.into_iter().map(|hit| hit.session.to_string()).collect(),
        ])
    };
    let both = || Scope::Sessions(vec!["gone".into(), "here".into()]);
    for is_gone in [false, true, false] {
        let change = if is_gone { SessionChange::Delete } else { SessionChange::Restore };
        probe.catalog.change(&"gone".into(), &change)?;
        let all: &[&str] = if is_gone { &["here"] } else { &["gone", "here"] };
        let own: &[&str] = if is_gone { &[] } else { &["gone"] };
        let text = || SessionFilter::default();
        for filter in [
            text(),
            SessionFilter::owned_by("ann"),
            SessionFilter { tag: Some("work".to_owned()), ..text() },
            SessionFilter { source: Some("mail".to_owned()), ..text() },
            SessionFilter { is_pinned: Some(true), ..text() },
            SessionFilter { state: SessionState::Open, ..text() },
        ] {
            let mut listed = probe.listed(&filter)?;
            listed.sort();
            assert_eq!(listed, all, "{filter:?}");
        }
        for owner in [None, Some("ann")] {
            for scope in [Scope::Store, both()] {
                assert_eq!(found(scope, owner)?, [all, all]);
            }
            for scope in [Scope::session("gone"), Scope::Path("gone".into(), None)] {
                assert_eq!(found(scope, owner)?, [own, own]);
            }
        }
        assert_eq!(found(Scope::Store, Some("bob"))?, [[""; 0], [""; 0]]);
        let is_in_trash = probe.info("gone")?.deleted_at.is_some();
        assert_eq!((is_in_trash, probe.listed(&trash())?.len()), (is_gone, usize::from(is_gone)));
    }
    // A copy in a fork is found although the message that it was copied from is in the trash.
    let leaf = probe.chat("gone").head()?.into_iter().next();
    if let Some(leaf) = leaf
        && supported(probe.chat("gone").fork(&leaf, &"fork".into(), &SessionDetails::default()))?
            .is_some()
    {
        probe.catalog.change(&"gone".into(), &SessionChange::Delete)?;
        assert_eq!(found(Scope::Store, None)?[0], ["fork", "here"]);
        assert_eq!(
            found(Scope::Store, Some("ann"))?[0],
            ["fork", "here"],
            "a fork has the same owner"
        );
    }
    Ok(())
}

pub(super) fn refuses(probe: &Probe) -> Result<()> {
    for (number, (verb, write)) in removal::WRITES.iter().enumerate() {
        let id = format!("session {number}");
        let chat = probe.chat(&id);
        removal::fill(&*chat)?;
        probe.catalog.change(&id.as_str().into(), &SessionChange::Delete)?;
        for chat in [&chat, &probe.chat(&id)] {
            match write(&**chat) {
                Err(Error::SessionInTrash { id: refused }) => assert_eq!(refused, *id),
                Err(Error::Unsupported { .. }) => {}
                other => panic!("{verb} should be Error::SessionInTrash, not {other:?}"),
            }
            removal::is_filled(&**chat)?;
        }
        let before = probe.info(&id)?;
        for change in [
            SessionChange::Name(None),
            SessionChange::Owner(Some("ann".to_owned())),
            SessionChange::Tag("work".to_owned()),
            SessionChange::Pin(true),
            SessionChange::End("over".to_owned()),
        ] {
            let answer = probe.catalog.change(&id.as_str().into(), &change);
            assert!(matches!(answer, Err(Error::SessionInTrash { .. })), "{change:?}: {answer:?}");
        }
        assert_eq!(probe.info(&id)?, before);
        // Deleting it again changes nothing.
        probe.catalog.change(&id.as_str().into(), &SessionChange::Delete)?;
        assert_eq!(probe.info(&id)?.deleted_at, before.deleted_at);
        probe.catalog.change(&id.as_str().into(), &SessionChange::Restore)?;
        probe.catalog.change(&id.as_str().into(), &SessionChange::Restore)?;
        probe.say(&id, at(0))?;
        assert_eq!(probe.info(&id)?.messages, 3);
    }
    let taken = probe.catalog.create(&"session 0".into(), &SessionDetails::default());
    assert!(matches!(taken, Err(Error::SessionExists { .. })), "{taken:?}");
    Ok(())
}

pub(super) fn list(probe: &Probe) -> Result<()> {
    for number in 0..20 {
        let id = number.to_string();
        probe
            .catalog
            .create(&id.as_str().into(), &owned_by(if number % 2 == 0 { "ann" } else { "bob" }))?;
        probe.say(&id, at(number * 7 % 20))?;
        if number < 10 {
            probe.catalog.change(&id.as_str().into(), &SessionChange::Delete)?;
        }
    }
    let mut expected: Vec<i64> = (0..10).collect();
    expected.sort_by_key(|number| std::cmp::Reverse(number * 7 % 20));
    let names = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
    assert_eq!(probe.listed(&trash())?, names(&expected));
    expected.retain(|number| number % 2 == 0);
    let of_ann = SessionFilter { owner: Some("ann".to_owned()), ..trash() };
    assert_eq!(probe.listed(&of_ann)?, names(&expected));
    // The trash is emptied page by page.
    let mut page = probe.catalog.list(&trash(), None, 4)?;
    while !page.sessions.is_empty() {
        for listed in &page.sessions {
            probe.catalog.remove(&listed.info.id)?;
        }
        page = probe.catalog.list(&trash(), page.after, 4)?;
        if page.after.is_none() && page.sessions.is_empty() {
            break;
        }
    }
    assert_eq!(probe.listed(&trash())?, [""; 0]);
    assert_eq!(probe.listed(&SessionFilter::default())?.len(), 10);
    Ok(())
}

pub(super) fn removed(probe: &Probe) -> Result<()> {
    for is_in_trash in [false, true] {
        let details = SessionDetails { tags: vec!["work".to_owned()], ..owned_by("ann") };
        probe.catalog.create(&"s".into(), &details)?;
        probe.say("s", at(0))?;
        let old = probe.chat("s");
        assert_eq!(old.path_length(None)?, 1);
        if is_in_trash {
            probe.catalog.change(&"s".into(), &SessionChange::Delete)?;
        }
        probe.catalog.remove(&"s".into())?;
        assert_eq!(probe.catalog.info(&"s".into())?, None);
        let tagged = SessionFilter { tag: Some("work".to_owned()), ..SessionFilter::default() };
        for filter in [SessionFilter::default(), trash(), SessionFilter::owned_by("ann"), tagged] {
            assert_eq!(probe.listed(&filter)?, [""; 0]);
        }
        assert_eq!(probe.catalog.search(&SearchRequest::new("text", Scope::Store))?.hits, []);
        let answer = old.set_details(&SessionDetails::named("again"));
        assert!(matches!(answer, Err(Error::SessionRemoved { .. })), "{answer:?}");
        assert_eq!((old.path_length(None)?, old.info()?), (0, None));
        // A new session of the id has nothing of the old one.
        probe.create("s")?;
        let info = probe.info("s")?;
        assert_eq!((info.messages, info.owner, info.tags), (0, None, Vec::new()));
        probe.catalog.remove(&"s".into())?;
    }
    Ok(())
}
