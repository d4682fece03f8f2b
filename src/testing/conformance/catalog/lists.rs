//! Lists: filters, order, pages.

use std::cmp::Reverse;
use std::collections::HashSet;

use chrono::{TimeDelta, Utc};

use super::{Probe, at};
use crate::catalog::{BindingFilter, SessionChange, SessionFilter, SessionState};
use crate::error::Result;
use crate::message::{Author, Message, now};
use crate::outcome::SessionDetails;
use crate::search::{Scope, SearchRequest};

pub(super) fn empty(probe: &Probe) -> Result<()> {
    let page = probe.catalog.list(&SessionFilter::default(), None, 9)?;
    assert_eq!((page.sessions.len(), page.after), (0, None));
    assert_eq!(probe.catalog.info(&"s".into())?, None);
    assert_eq!(probe.catalog.bindings(&BindingFilter::default(), None, 9)?, []);
    assert_eq!(probe.catalog.unbind("key")?, None);
    let request = SearchRequest::new("text", Scope::Store);
    assert_eq!(probe.catalog.search(&request)?.hits, []);
    assert_eq!(probe.catalog.search_sessions(&request)?.sessions, []);
    probe.chat("s").history(None)?;
    assert_eq!(probe.catalog.info(&"s".into())?, None, "reading creates no session");
    Ok(())
}

pub(super) fn order(probe: &Probe) -> Result<()> {
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
    probe.catalog.create(&"imported".into(), &details)?;
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
    let head = probe.chat("new").head()?.into_iter().collect::<Vec<_>>();
    probe.chat("new").delete(&head)?;
    probe.catalog.change(&"between".into(), &SessionChange::Name(Some("a name".to_owned())))?;
    assert_eq!(probe.listed(&all)?, ["imported", "empty", "old", "new", "between"]);
    assert_eq!((probe.info("new")?.messages, probe.info("old")?.messages), (1, 2));
    let nothing = probe.catalog.list(&all, None, 0)?;
    assert_eq!((nothing.sessions.len(), nothing.after), (0, None), "a limit of 0 lists nothing");
    Ok(())
}

/// A storage may index a time less often than it changes; then its lists have to look further.
pub(super) fn close_times(probe: &Probe) -> Result<()> {
    const SESSIONS: u64 = 12;
    let filter = SessionFilter::owned_by("ann");
    for number in 0..SESSIONS {
        probe.catalog.create(&number.to_string().into(), &super::owned_by("ann"))?;
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
    Ok(())
}

pub(super) fn filters(probe: &Probe) -> Result<()> {
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
        probe.catalog.create(&id.as_str().into(), &details)?;
        if is(0) {
            probe.say(&id, at(i64::from(number) * 1_000))?;
        }
        let change = |change| probe.catalog.change(&id.as_str().into(), &change);
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
            let shown: Vec<_> = infos.iter().filter(|info| filter.shows(info)).cloned().collect();
            for size in [1, 4, 100] {
                assert_eq!(probe.listed_by(&filter, size)?, shown, "{filter:?} by {size}");
            }
        }
    }
    Ok(())
}

pub(super) fn by_author(probe: &Probe) -> Result<()> {
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
    Ok(())
}

pub(super) fn pages(probe: &Probe) -> Result<()> {
    const SESSIONS: usize = 40;
    for is_in_trash in [false, true] {
        let id = |number: usize| format!("{is_in_trash} {number}");
        let state = if is_in_trash { SessionState::Trash } else { SessionState::Present };
        let owner = Some(is_in_trash.to_string());
        let filter = SessionFilter { owner: owner.clone(), state, ..SessionFilter::default() };
        for number in 0..SESSIONS {
            let details = SessionDetails { owner: owner.clone(), ..SessionDetails::default() };
            probe.catalog.create(&id(number).into(), &details)?;
            // Four at a time have the same time.
            probe.say(&id(number), at(number as i64 / 4 * 10))?;
            if is_in_trash {
                probe.catalog.change(&id(number).into(), &SessionChange::Delete)?;
            }
        }
        let (mut seen, mut moved, mut after) = (Vec::new(), HashSet::new(), None);
        for turn in 0.. {
            let page = probe.catalog.list(&filter, after, 7)?;
            seen.extend(page.sessions.iter().map(|listed| listed.info.id.to_string()));
            if page.after.is_none() {
                break;
            }
            after = page.after.map(|place| place.to_string().parse()).transpose()?;
            if !is_in_trash {
                // One that was shown, one that was not yet, and a new one.
                for number in [SESSIONS - 1 - turn, turn * 2] {
                    probe.say(&id(number), now())?;
                    moved.insert(id(number));
                }
                probe.catalog.create(&format!("new {turn}").into(), &super::owned_by("false"))?;
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
    Ok(())
}

pub(super) fn previews(probe: &Probe) -> Result<()> {
    let preview = |id: &str| -> Result<Option<String>> {
        let page = probe.catalog.list(&SessionFilter::default(), None, 99)?;
        let listed = page.sessions.into_iter().find(|listed| listed.info.id == *id);
        Ok(listed.and_then(|listed| listed.preview))
    };
    probe.create("empty")?;
    probe.append("s", &Message::assistant("Good morning!"))?;
    assert_eq!((preview("empty")?, preview("s")?), (None, None));
    probe.append("s", &Message::user("\n  Can we deploy?\nOn Friday?").with_id("q"))?;
    probe.append("s", &Message::user("Please."))?;
    assert_eq!(preview("s")?.as_deref(), Some("Can we deploy?"));
    probe.chat("s").delete(&["q".into()])?;
    assert_eq!(preview("s")?.as_deref(), Some("Please."));
    probe.append("long", &Message::user("重".repeat(500)))?;
    assert_eq!(preview("long")?.map(|text| text.chars().count()), Some(120));
    Ok(())
}
