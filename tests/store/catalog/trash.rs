//! The trash, and sessions that were removed.

use talktree::{Error, Result, Search, SessionChange, SessionDetails, SessionFilter, SessionState};

use super::{Probe, at, owned_by};

fn trash() -> SessionFilter {
    SessionFilter { state: SessionState::Trash, ..SessionFilter::default() }
}

#[test]
fn a_session_in_the_trash_is_left_out_of_lists_and_searches() -> Result<()> {
    let probe = Probe::new()?;
    let details = SessionDetails { tags: vec!["work".to_owned()], ..owned_by("ann") };
    let details =
        SessionDetails { is_pinned: Some(true), source: Some("mail".to_owned()), ..details };
    for id in ["gone", "here"] {
        probe.create_as(&id.into(), &details)?;
        probe.say(id, at(0))?;
    }
    let found = |search: Search| -> Result<[Vec<String>; 2]> {
        let hits = search.clone().run()?.hits;
        let mut hits: Vec<_> = hits.into_iter().map(|hit| hit.session.to_string()).collect();
        let sessions = search.run_by_session()?.hits;
        let mut sessions: Vec<_> =
            sessions.into_iter().map(|hit| hit.session.to_string()).collect();
        hits.sort();
        sessions.sort();
        Ok([hits, sessions])
    };
    let of = |search: Search, owner: Option<&str>| match owner {
        Some(owner) => search.owner(owner),
        None => search,
    };
    let all_of = || probe.store.search("text");
    for is_gone in [false, true, false] {
        let change = if is_gone { SessionChange::Delete } else { SessionChange::Restore };
        probe.store.change_session(&"gone".into(), &change)?;
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
        let gone = probe.chat("gone")?;
        for owner in [None, Some("ann")] {
            for search in [all_of(), all_of().sessions(["gone", "here"])] {
                assert_eq!(found(of(search, owner))?, [all, all]);
            }
            for search in [all_of().session("gone"), gone.search("text").on_path()] {
                assert_eq!(found(of(search, owner))?, [own, own]);
            }
        }
        assert_eq!(found(all_of().owner("bob"))?, [[""; 0], [""; 0]]);
        let is_in_trash = probe.info("gone")?.deleted_at.is_some();
        assert_eq!((is_in_trash, probe.listed(&trash())?.len()), (is_gone, usize::from(is_gone)));
    }
    probe.is_sound()
}

#[test]
fn the_trash_is_a_list() -> Result<()> {
    let probe = Probe::new()?;
    for number in 0..20 {
        let id = number.to_string();
        probe.create_as(
            &id.as_str().into(),
            &owned_by(if number % 2 == 0 { "ann" } else { "bob" }),
        )?;
        probe.say(&id, at(number * 7 % 20))?;
        if number < 10 {
            probe.store.change_session(&id.as_str().into(), &SessionChange::Delete)?;
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
    let mut page = probe.store.list().filter(trash()).limit(4).run()?;
    while !page.sessions.is_empty() {
        for listed in &page.sessions {
            probe.store.remove(&listed.info.id)?;
        }
        page = probe.store.list().filter(trash()).after(page.after.as_deref()).limit(4).run()?;
        if page.after.is_none() && page.sessions.is_empty() {
            break;
        }
    }
    assert_eq!(probe.listed(&trash())?, [""; 0]);
    assert_eq!(probe.listed(&SessionFilter::default())?.len(), 10);
    probe.is_sound()
}

#[test]
fn a_removed_session_leaves_the_catalog() -> Result<()> {
    let probe = Probe::new()?;
    for is_in_trash in [false, true] {
        let details = SessionDetails { tags: vec!["work".to_owned()], ..owned_by("ann") };
        probe.create_as(&"s".into(), &details)?;
        probe.say("s", at(0))?;
        let old = probe.chat("s")?;
        assert_eq!(old.history()?.len(), 1);
        if is_in_trash {
            probe.store.change_session(&"s".into(), &SessionChange::Delete)?;
        }
        probe.store.remove(&"s".into())?;
        assert_eq!(probe.bot.get(&"s".into())?, None);
        let tagged = SessionFilter { tag: Some("work".to_owned()), ..SessionFilter::default() };
        for filter in [SessionFilter::default(), trash(), SessionFilter::owned_by("ann"), tagged] {
            assert_eq!(probe.listed(&filter)?, [""; 0]);
        }
        assert_eq!(probe.store.search("text").run()?.hits, []);
        let answer = old.set_details(&SessionDetails::named("again"));
        assert!(matches!(answer, Err(Error::SessionRemoved { .. })), "{answer:?}");
        assert_eq!((old.history()?.len(), old.info()?), (0, None));
        // A new session of the id has nothing of the old one.
        probe.create("s")?;
        let info = probe.info("s")?;
        assert_eq!((info.messages, info.owner, info.tags), (0, None, Vec::new()));
        probe.store.remove(&"s".into())?;
    }
    probe.is_sound()
}
