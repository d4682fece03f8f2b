//! Lists: filters, order, pages.

use std::cmp::Reverse;
use std::collections::HashSet;

use chrono::{TimeDelta, Utc};

use talktree::{
    Author, Message, Result, SessionChange, SessionDetails, SessionFilter, SessionInfo,
    SessionState,
};

use super::{Probe, at, now, owned_by};

#[test]
fn a_list_shows_the_session_with_the_newest_message_first() -> Result<()> {
    let probe = Probe::new()?;
    let all = SessionFilter::default();
    for (id, time) in [("old", 0), ("new", 5_000_000), ("between", 2_000_000)] {
        probe.say(id, at(time))?;
    }
    // Without messages, a session counts from its creation, which is the present.
    let before = now();
    probe.create("empty")?;
    assert_eq!(probe.listed(&all)?, ["empty", "new", "between", "old"]);
    let created_at = Some(at(1_000_000));
    let details = SessionDetails { created_at, ..SessionDetails::default() };
    probe.create_as(&"imported".into(), &details)?;
    assert_eq!(probe.listed(&all)?, ["empty", "new", "between", "imported", "old"]);

    probe.say("old", at(3_000_000))?;
    assert_eq!(probe.listed(&all)?, ["empty", "new", "old", "between", "imported"]);
    // The message that was appended last counts, even if its time is before that of the others.
    probe.say("new", at(2_500_000))?;
    assert_eq!(probe.listed(&all)?, ["empty", "old", "new", "between", "imported"]);
    // A time in the future counts as now.
    probe.say("imported", Utc::now() + TimeDelta::days(1_000))?;
    assert_eq!(probe.listed(&all)?[0], "imported");
    let last = probe.info("imported")?.last_message_at;
    assert!(last.is_some_and(|last| before <= last && last <= now()), "{last:?}");
    // A delete changes no time, and neither does a change of the details.
    let head = probe.chat("new")?.head()?.into_iter().collect::<Vec<_>>();
    probe.chat("new")?.delete(&head)?;
    probe
        .store
        .change_session(&"between".into(), &SessionChange::Name(Some("a name".to_owned())))?;
    assert_eq!(probe.listed(&all)?, ["imported", "empty", "old", "new", "between"]);
    assert_eq!((probe.info("new")?.messages, probe.info("old")?.messages), (1, 2));
    let nothing = probe.store.list().filter(all.clone()).limit(0).run()?;
    assert_eq!((nothing.sessions.len(), nothing.after), (0, None), "a limit of 0 lists nothing");
    probe.is_sound()
}

/// A storage may index a time less often than it changes; then its lists have to look further.
#[test]
fn messages_a_moment_apart_are_listed_in_the_order_of_their_times() -> Result<()> {
    let probe = Probe::new()?;
    const SESSIONS: u64 = 12;
    let filter = SessionFilter::owned_by("ann");
    for number in 0..SESSIONS {
        probe.create_as(&number.to_string().into(), &owned_by("ann"))?;
    }
    // A sequence of numbers without a pattern, the same in every run.
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..60 {
        let (id, time) = (random(SESSIONS).to_string(), random(400_000) as i64 / 50 * 50);
        probe.say(&id, at(time))?;
        let size = 1 + random(5) as usize;
        for filter in [&filter, &SessionFilter::default()] {
            let listed = probe.listed_by(filter, size)?;
            let times: Vec<_> =
                listed.iter().map(|info| info.last_message_at.unwrap_or(info.created_at)).collect();
            assert!(times.is_sorted_by_key(|time| Reverse(*time)), "round {round}: {times:?}");
            let ids: HashSet<_> = listed.iter().map(|info| &info.id).collect();
            assert_eq!((ids.len(), listed.len()), (SESSIONS as usize, SESSIONS as usize));
        }
    }
    probe.is_sound()
}

#[test]
fn each_filter_shows_the_sessions_that_it_says() -> Result<()> {
    let probe = Probe::new()?;
    let text = |name: &str| Some(name.to_owned());
    let mut infos = Vec::new();
    for number in 0..48_u32 {
        let id = number.to_string();
        let is = |bit: u32| number >> bit & 1 == 1;
        let details = SessionDetails {
            owner: text(if is(0) { "ann" } else { "bob" }).filter(|_| number % 5 > 0),
            source: text(if is(1) { "telegram" } else { "mail" }).filter(|_| number % 7 > 0),
            model: text(if is(2) { "large" } else { "small" }).filter(|_| number % 3 > 0),
            name: text(if is(3) { "ÄRGER im Büro" } else { "Deployment" }).filter(|_| is(1)),
            tags: [("work", is(2)), ("home", is(4))]
                .iter()
                .filter(|(_, is_tagged)| *is_tagged)
                .map(|(tag, _)| (*tag).to_owned())
                .collect(),
            is_pinned: Some(number % 6 == 1),
            created_at: Some(at(i64::from(number) * 1_000)),
            ..SessionDetails::default()
        };
        probe.create_as(&id.as_str().into(), &details)?;
        if is(0) {
            probe.say(&id, at(i64::from(number) * 1_000))?;
        }
        let change = |change| probe.store.change_session(&id.as_str().into(), &change);
        if number % 8 == 3 {
            change(SessionChange::End("done".to_owned()))?;
        }
        if number % 9 == 4 {
            change(SessionChange::Delete)?;
        }
        infos.push(probe.info(&id)?);
    }
    infos.sort_by_key(|info| Reverse(info.last_message_at.unwrap_or(info.created_at)));
    let all = SessionFilter::default;
    let edge = infos[20].last_message_at.unwrap_or(infos[20].created_at);
    let moment = TimeDelta::microseconds(1);
    let mut filters = vec![
        all(),
        SessionFilter { owner: text("ann"), ..all() },
        SessionFilter { owner: text("nobody"), ..all() },
        SessionFilter { source: text("mail"), ..all() },
        SessionFilter { model: text("large"), ..all() },
        SessionFilter { tag: text("home"), ..all() },
        SessionFilter { tag: text("nothing"), ..all() },
        SessionFilter { name: text("ärger"), ..all() },
        SessionFilter { name: text("DEPLOY"), ..all() },
        SessionFilter { name: text("%"), ..all() },
        SessionFilter { name: text(""), ..all() },
        SessionFilter { is_pinned: Some(true), ..all() },
        SessionFilter { is_pinned: Some(false), ..all() },
        SessionFilter { owner: text("ann"), source: text("telegram"), tag: text("work"), ..all() },
        SessionFilter { owner: text("bob"), model: text("small"), is_pinned: Some(true), ..all() },
        SessionFilter { source: text("mail"), model: text("small"), name: text("o"), ..all() },
    ];
    for limit in [edge - moment, edge, edge + moment] {
        filters.push(SessionFilter { since: Some(limit), ..all() });
        filters.push(SessionFilter { until: Some(limit), ..all() });
        filters.push(SessionFilter { since: Some(limit), owner: text("ann"), ..all() });
        filters.push(SessionFilter { until: Some(limit), tag: text("work"), ..all() });
        let (since, until) = (Some(limit - TimeDelta::microseconds(5_000)), Some(limit));
        filters.push(SessionFilter { since, until, ..all() });
        filters.push(SessionFilter { since: until, until: since, ..all() });
    }
    let states =
        [SessionState::Present, SessionState::Open, SessionState::Ended, SessionState::Trash];
    for filter in filters {
        for state in states {
            let filter = SessionFilter { state, ..filter.clone() };
            let shown: Vec<_> = infos.iter().filter(|info| shows(&filter, info)).cloned().collect();
            for size in [1, 4, 100] {
                assert_eq!(probe.listed_by(&filter, size)?, shown, "{filter:?} by {size}");
            }
        }
    }
    probe.is_sound()
}

#[test]
fn a_list_by_author_shows_the_sessions_in_which_the_author_wrote() -> Result<()> {
    let probe = Probe::new()?;
    for (id, author) in [("a", "ann"), ("b", "bob"), ("c", "ann")] {
        probe.append(id, &Message::user("hello").from(&Author::new(author)))?;
    }
    for (author, sessions) in [("ann", &["a", "c"][..]), ("bob", &["b"]), ("eve", &[])] {
        let filter = SessionFilter { author: Some(author.to_owned()), ..SessionFilter::default() };
        let mut found: Vec<_> =
            probe.listed_by(&filter, 1)?.into_iter().map(|info| info.id.to_string()).collect();
        found.sort();
        assert_eq!(found, sessions, "{author}");
    }
    probe.is_sound()
}

#[test]
fn pages_show_every_session_once_while_others_append() -> Result<()> {
    let probe = Probe::new()?;
    const SESSIONS: usize = 40;
    for is_in_trash in [false, true] {
        let id = |number: usize| format!("{is_in_trash} {number}");
        let state = if is_in_trash { SessionState::Trash } else { SessionState::Present };
        let owner = Some(is_in_trash.to_string());
        let filter = SessionFilter { owner: owner.clone(), state, ..SessionFilter::default() };
        for number in 0..SESSIONS {
            let details = SessionDetails { owner: owner.clone(), ..SessionDetails::default() };
            probe.create_as(&id(number).into(), &details)?;
            // Four at a time have the same time.
            probe.say(&id(number), at(number as i64 / 4 * 10))?;
            if is_in_trash {
                probe.store.change_session(&id(number).into(), &SessionChange::Delete)?;
            }
        }
        let (mut seen, mut moved, mut after) = (Vec::new(), HashSet::new(), None::<String>);
        for turn in 0.. {
            let page =
                probe.store.list().filter(filter.clone()).after(after.as_deref()).limit(7).run()?;
            seen.extend(page.sessions.iter().map(|listed| listed.info.id.to_string()));
            if page.after.is_none() {
                break;
            }
            after = page.after;
            if !is_in_trash {
                // One that was shown, one that was not yet, and a new one.
                for number in [SESSIONS - 1 - turn, turn * 2] {
                    probe.say(&id(number), now())?;
                    moved.insert(id(number));
                }
                probe.create_as(&format!("new {turn}").into(), &owned_by("false"))?;
            }
        }
        let once: HashSet<_> = seen.iter().cloned().collect();
        assert_eq!(once.len(), seen.len(), "a session is shown twice");
        for number in 0..SESSIONS {
            let is_there = once.contains(&id(number)) || moved.contains(&id(number));
            assert!(is_there, "session {number} did not move and is missing");
        }
        assert!(once.iter().all(|id| !id.starts_with("new")), "new sessions are on earlier pages");
    }
    probe.is_sound()
}

#[test]
fn a_listed_session_has_the_first_line_of_a_user() -> Result<()> {
    let probe = Probe::new()?;
    let preview = |id: &str| -> Result<Option<String>> {
        let page = probe.store.list().limit(99).run()?;
        let listed = page.sessions.into_iter().find(|listed| listed.info.id == *id);
        Ok(listed.and_then(|listed| listed.preview))
    };
    probe.create("empty")?;
    probe.append("s", &Message::assistant("Good morning!"))?;
    assert_eq!((preview("empty")?, preview("s")?), (None, None));
    probe.append("s", &Message::user("\n  Can we deploy?\nOn Friday?").with_id("q"))?;
    probe.append("s", &Message::user("Please."))?;
    assert_eq!(preview("s")?.as_deref(), Some("Can we deploy?"));
    probe.chat("s")?.delete([&"q".into()])?;
    assert_eq!(preview("s")?.as_deref(), Some("Please."));
    probe.append("long", &Message::user("重".repeat(500)))?;
    assert_eq!(preview("long")?.map(|text| text.chars().count()), Some(120));
    probe.is_sound()
}

#[test]
fn owners_are_listed_by_name() -> Result<()> {
    let probe = Probe::new()?;
    assert_eq!(probe.store.owners(None, 9)?, []);
    for (id, owner) in [("a", "bob"), ("b", "ann"), ("c", "bob"), ("d", "Bob"), ("e", "zoë")] {
        probe.create_as(&id.into(), &owned_by(owner))?;
    }
    probe.create("nobody's")?;
    for (id, time) in [("a", 5), ("c", 9), ("c", 7), ("e", 1)] {
        probe.say(id, at(time))?;
    }
    probe.store.change_session(&"e".into(), &SessionChange::Delete)?;
    let listed = |after: Option<&str>, limit| -> Result<Vec<_>> {
        let owners = probe.store.owners(after, limit)?;
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
    probe.is_sound()
}

fn shows(filter: &SessionFilter, info: &SessionInfo) -> bool {
    let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
    let at = info.last_message_at.unwrap_or(info.created_at);
    let name = info.name.as_deref().unwrap_or_default().to_lowercase();
    let (is_deleted, is_ended) = (info.deleted_at.is_some(), info.ended_at.is_some());
    is(&filter.owner, &info.owner)
        && is(&filter.source, &info.source)
        && is(&filter.model, &info.model)
        && filter.tag.as_ref().is_none_or(|tag| info.tags.contains(tag))
        && filter.since.is_none_or(|since| at >= since)
        && filter.until.is_none_or(|until| at < until)
        && filter.name.as_ref().is_none_or(|text| name.contains(&text.to_lowercase()))
        && filter.is_pinned.is_none_or(|is_pinned| is_pinned == info.is_pinned)
        && match filter.state {
            SessionState::Present => !is_deleted,
            SessionState::Open => !is_deleted && !is_ended,
            SessionState::Ended => !is_deleted && is_ended,
            SessionState::Trash => is_deleted,
        }
}
