//! Rules of retention: a dry run says what a run discards, no pinned session is touched, and a run that is stopped half way
//! leaves a store that another run finishes.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::Scratch;
use crate::common::random::cases;
use crate::tables::Tables;
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use talktree::{
    Change, Error, Message, Result, Retention, RetentionAction, RetentionReport, RetentionRule,
    SessionChange, SessionDetails, SessionFilter, SessionId, SessionInfo, SessionState, Store,
};

const DAY: Duration = Duration::from_secs(86_400);

/// The present of these tests.
fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(18_000)
}

fn ago(days: i64) -> DateTime<Utc> {
    now() - TimeDelta::days(days)
}

/// A session to store.
#[derive(Debug, Clone)]
struct Plan {
    owner: Option<&'static str>,
    source: Option<&'static str>,
    is_tagged: bool,
    is_ended: bool,
    is_pinned: bool,
    is_in_trash: bool,
    created: i64,
    messages: u64,
    last: i64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let owner = prop_oneof![Just(None), Just(Some("ann")), Just(Some("bob"))];
    let source = prop_oneof![Just(None), Just(Some("mail"))];
    let flags =
        (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    // A negative number of days is in the future.
    (owner, source, flags, -3..20_i64, 0..6_u64, 0..20_i64).prop_map(
        |(
            owner,
            source,
            (is_tagged, is_ended, is_pinned, is_in_trash),
            created,
            messages,
            last,
        )| Plan {
            owner,
            source,
            is_tagged,
            is_ended,
            is_pinned,
            is_in_trash,
            created,
            messages,
            last,
        },
    )
}

fn rule(at: usize) -> impl Strategy<Value = RetentionRule> {
    let days = || prop::option::weighted(0.3, (0..15_u32).prop_map(|days| days * DAY));
    let total = prop::option::weighted(0.4, (0..3_u8, 0..12_u64, any::<bool>()));
    (days(), days(), any::<[bool; 5]>(), prop::option::weighted(0.3, 0..5_u64), total).prop_map(
        move |(age, idle, [of_ann, of_mail, is_tagged, is_ended, removes], messages, total)| {
            let mut rule = RetentionRule::new(format!("rule {at}"));
            if let Some(age) = age {
                rule = rule.older_than(age);
            }
            if let Some(idle) = idle {
                rule = rule.idle_for(idle);
            }
            rule = if of_ann { rule.owner("ann") } else { rule };
            rule = if of_mail { rule.source("mail") } else { rule };
            rule = if is_tagged { rule.tag("work") } else { rule };
            rule = if is_ended { rule.ended() } else { rule };
            rule = if removes { rule.remove() } else { rule };
            if let Some(messages) = messages {
                rule = rule.more_messages_than(messages);
            }
            match total {
                Some((kind, max, is_per_owner)) => {
                    rule = match kind {
                        0 => rule.keep_sessions(max),
                        1 => rule.keep_messages(max),
                        _ => rule.keep_bytes(max * 30),
                    };
                    if is_per_owner { rule.per_owner() } else { rule }
                }
                // So that it has a condition in any case.
                None => rule.more_messages_than(messages.unwrap_or(0)),
            }
        },
    )
}

fn store(plans: &[Plan]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    for (number, plan) in plans.iter().enumerate() {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let details = SessionDetails {
            owner: text(plan.owner),
            source: text(plan.source),
            tags: if plan.is_tagged { vec!["work".to_owned()] } else { Vec::new() },
            end_reason: plan.is_ended.then(|| "over".to_owned()),
            is_pinned: Some(plan.is_pinned),
            created_at: Some(ago(plan.created)),
            ..SessionDetails::default()
        };
        let chat = store.create_session_as(format!("s{number}"), details)?;
        for message in 0..plan.messages {
            chat.append(Message::user(format!("text {message}")).at(ago(plan.last)))?;
        }
        if plan.is_in_trash {
            store.change_session(chat.id(), &SessionChange::Delete)?;
        }
    }
    Ok(store)
}

fn all(store: &Store) -> Result<BTreeMap<SessionId, SessionInfo>> {
    let mut all = BTreeMap::new();
    for state in [SessionState::Present, SessionState::Trash] {
        let filter = SessionFilter { state, ..SessionFilter::default() };
        let page = store.list().filter(filter.clone()).limit(1_000).run()?;
        all.extend(page.sessions.into_iter().map(|listed| (listed.info.id.clone(), listed.info)));
    }
    Ok(all)
}

fn ids(report: &RetentionReport, action: RetentionAction) -> BTreeSet<SessionId> {
    let sessions = report.sessions.iter().filter(|session| session.action == action);
    sessions.map(|session| session.id.clone()).collect()
}

/// Checks a run against its dry run, and against what is stored afterwards.
fn run_as_expected(store: &Store, retention: &Retention) -> Result<()> {
    let before = all(store)?;
    let expected = store.retention(retention.clone()).as_of(now()).dry_run()?;
    assert_eq!(all(store)?, before, "a dry run changes nothing");
    let report = store.retention(retention.clone()).as_of(now()).run()?;
    assert_eq!(report, expected);

    let after = all(store)?;
    let removed: BTreeSet<_> =
        before.keys().filter(|id| !after.contains_key(*id)).cloned().collect();
    let is_moved = |id: &&SessionId| {
        let is_in_trash = |all: &BTreeMap<SessionId, SessionInfo>| {
            all.get(*id).is_some_and(|info| info.deleted_at.is_some())
        };
        is_in_trash(&after) && !is_in_trash(&before)
    };
    let trashed: BTreeSet<_> = before.keys().filter(is_moved).cloned().collect();
    assert_eq!(removed, ids(&report, RetentionAction::Remove));
    assert_eq!(trashed, ids(&report, RetentionAction::Trash));
    for (id, info) in before.iter().filter(|(_, info)| info.is_pinned) {
        assert_eq!(after.get(id), Some(info), "a pinned session is never touched");
    }
    for rule in &report.rules {
        let of_rule: Vec<_> =
            report.sessions.iter().filter(|session| session.rule == rule.rule).collect();
        let sums = (
            of_rule.len() as u64,
            of_rule.iter().map(|session| session.messages).sum::<u64>(),
            of_rule.iter().map(|session| session.bytes).sum::<u64>(),
        );
        assert_eq!((rule.sessions, rule.messages, rule.bytes), sums);
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    // What is left meets no rule.
    let again = store.retention(retention.clone()).as_of(now()).run()?;
    assert_eq!(again.sessions, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), ..ProptestConfig::default() })]

    #[test]
    fn a_run_discards_what_a_dry_run_lists(
        plans in prop::collection::vec(plan(), 0..14),
        rules in (rule(0), rule(1), rule(2)),
        count in 1..4_usize,
        term in prop::option::of(0..2_u32),
    ) {
        let store = store(&plans)?;
        let rules = [rules.0, rules.1, rules.2];
        let mut retention = rules.into_iter().take(count).fold(Retention::new(), Retention::rule);
        if let Some(term) = term {
            retention = retention.empty_trash_after(term * DAY);
        }
        run_as_expected(&store, &retention.allow_all())?;
    }
}

fn talk(store: &Store, id: &str, days: i64) -> Result<()> {
    store.session(id)?.append(Message::user(format!("text of {id}")).at(ago(days))).map(drop)
}

fn idle(days: u32) -> Retention {
    Retention::new().rule(RetentionRule::new("idle").idle_for(days * DAY))
}

fn discarded(report: &RetentionReport) -> Vec<&str> {
    report.sessions.iter().map(|session| session.id.as_str()).collect()
}

#[test]
fn a_rule_that_all_sessions_meet_is_refused_unless_allowed() -> Result<()> {
    let store = Store::open_in_memory()?;
    let run = |retention: Retention| store.retention(retention).as_of(now()).run();
    assert_eq!(run(idle(7))?.sessions, [], "an empty store has nothing to confirm");
    for number in 0..600 {
        talk(&store, &format!("s{number}"), 8)?;
    }
    store.change_session(&"s7".into(), &SessionChange::Pin(true))?;
    // Each rule is looked at, not only the first.
    let rules = idle(9).rule(RetentionRule::new("wrong").more_messages_than(0));
    for (retention, name) in [(idle(7), "idle"), (rules, "wrong")] {
        let refused = store.retention(retention.clone()).as_of(now()).dry_run();
        assert!(matches!(refused, Err(Error::RuleMeetsAll { .. })), "{refused:?}");
        match run(retention) {
            Err(Error::RuleMeetsAll { rule, sessions: 599 }) => assert_eq!(rule, name),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.sessions()?.len(), 600);
    // One that it does not meet is enough.
    talk(&store, "s600", 1)?;
    assert_eq!(store.retention(idle(7)).as_of(now()).dry_run()?.sessions.len(), 599);
    store.remove(&"s600".into())?;
    assert_eq!(run(idle(7).allow_all())?.sessions.len(), 599);
    assert_eq!(store.sessions()?.len(), 1);
    Ok(())
}

#[test]
fn a_clock_that_was_set_back_discards_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    talk(&store, "old", 8)?;
    talk(&store, "new", 0)?;
    store.change_session(&"old".into(), &SessionChange::Delete)?;
    let all = || {
        let zero = RetentionRule::new("zero").idle_for(Duration::ZERO);
        Retention::new().rule(zero).empty_trash_after(Duration::ZERO).allow_all()
    };
    // Before any of it happened.
    let report = store.retention(all()).as_of(ago(100)).run()?;
    assert_eq!(report.sessions, []);
    // The session came into the trash at the time of the system, which is after that of these tests.
    let report = store.retention(all()).as_of(now()).run()?;
    assert_eq!(discarded(&report), ["new"]);
    let report = store.retention(all()).as_of(Utc::now()).run()?;
    assert_eq!((discarded(&report), report.rules[1].rule.as_str()), (vec!["new", "old"], "trash"));
    Ok(())
}

#[test]
fn sessions_leave_the_trash_after_its_term() -> Result<()> {
    let store = Store::open_in_memory()?;
    for id in ["a", "b", "c"] {
        talk(&store, id, 5)?;
    }
    store.change_session(&"a".into(), &SessionChange::Pin(true))?;
    for id in ["a", "b"] {
        store.change_session(&id.into(), &SessionChange::Delete)?;
    }
    let term = || store.retention(Retention::new().empty_trash_after(30 * DAY));
    let in_days = |days| Utc::now() + TimeDelta::days(days);
    assert_eq!(term().run()?.sessions, []);
    assert_eq!(term().as_of(in_days(29)).run()?.sessions, []);
    assert_eq!(discarded(&term().as_of(in_days(31)).run()?), ["b"]);
    assert_eq!(all(&store)?.len(), 2);
    Ok(())
}

#[test]
fn a_removal_is_an_event_and_the_trash_is_none() -> Result<()> {
    let store = Store::open_in_memory()?;
    for (id, days) in [("a", 1), ("b", 2), ("c", 3)] {
        talk(&store, id, days)?;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    let _listener = store.subscribe(move |event| {
        if matches!(event.change, Change::Remove) {
            events.lock().unwrap().push(event.session.to_string());
        }
    });
    let trash = RetentionRule::new("trash it").keep_sessions(2);
    let remove = RetentionRule::new("remove it").keep_sessions(1).remove();
    let retention = Retention::new().rule(trash).rule(remove);
    store.retention(retention.clone()).dry_run()?;
    assert_eq!(*seen.lock().unwrap(), [""; 0]);
    assert_eq!(discarded(&store.retention(retention).run()?), ["b", "c"]);
    assert_eq!(*seen.lock().unwrap(), ["b"]);
    Ok(())
}

/// A session that is written to between the list and its turn.
#[test]
fn a_session_that_changes_meanwhile_is_left_alone() -> Result<()> {
    let store = Store::open_in_memory()?;
    for number in 0..600 {
        talk(&store, &format!("s{number:03}"), 8)?;
    }
    talk(&store, "newest", 0)?;
    let mut pages = 0;
    let run = store.retention(idle(7)).as_of(now()).progress(|_| {
        // Sessions of one time are listed by the order of their creation, newest first: this one is on the second page.
        talk(&store, "s003", 0).unwrap();
        pages += 1;
    });
    let report = run.run()?;
    assert!(pages > 1, "the page was read before the session changed");
    assert_eq!(report.sessions.len(), 599);
    assert!(store.session("s003")?.append(Message::user("still here")).is_ok());
    Ok(())
}

/// A run that is dropped by a panic, or interrupted, after each page.
#[test]
fn a_run_that_is_stopped_half_way_is_finished_by_another() -> Result<()> {
    for removes in [false, true] {
        let scratch = Scratch::new()?;
        let store = &scratch.store;
        for number in 0..1_200 {
            talk(store, &format!("s{number}"), 8)?;
        }
        talk(store, "newest", 0)?;
        let rule = RetentionRule::new("idle").idle_for(7 * DAY);
        let rule = if removes { rule.remove() } else { rule };
        let retention = Retention::new().rule(rule);
        let run = || store.retention(retention.clone()).as_of(now());

        let panics = run().progress(|_| panic!("half way"));
        assert!(catch_unwind(AssertUnwindSafe(|| panics.run())).is_err());
        let left = store.sessions()?.len();
        assert!((2..1_201).contains(&left), "{left}");
        assert_eq!(store.verify(|_| {})?.damages, []);

        let handle = store.interrupt_handle();
        let stopped = run().progress(|_| handle.interrupt()).run();
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        let further = store.sessions()?.len();
        assert!((2..left).contains(&further), "{further}");
        assert_eq!(store.verify(|_| {})?.damages, []);

        assert_eq!(run().run()?.sessions.len(), further - 1);
        assert_eq!(store.sessions()?.len(), 1);
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn writers_append_while_sessions_are_removed() -> Result<()> {
    let scratch = Scratch::new()?;
    let store = &scratch.store;
    for number in 0..300 {
        talk(store, &format!("old {number}"), 8)?;
    }
    let (is_done, appended) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| -> Result<_> {
        for writer in 0..3 {
            let (is_done, appended) = (&is_done, &appended);
            scope.spawn(move || {
                let chat = store.session(format!("writer {writer}")).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    chat.append(Message::user("hello")).unwrap();
                    appended.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while appended.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        let rule = RetentionRule::new("old").idle_for(7 * DAY).remove();
        let report = store.retention(Retention::new().rule(rule)).as_of(now()).run();
        is_done.store(true, Ordering::Relaxed);
        report
    })?;
    assert_eq!(report.sessions.len(), 300);
    let left: u64 = store.sessions()?.iter().map(|info| info.messages).sum();
    assert_eq!(left, appended.load(Ordering::Relaxed));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_read_only_store_can_be_asked_what_a_run_would_discard() -> Result<()> {
    let scratch = Scratch::new()?;
    talk(&scratch.store, "old", 8)?;
    talk(&scratch.store, "new", 0)?;
    let reader = Store::open_read_only(scratch.folder.path().join("talk.db"))?;
    let run = || reader.retention(idle(7)).as_of(now());
    assert_eq!(discarded(&run().dry_run()?), ["old"]);
    assert!(matches!(run().run(), Err(Error::ReadOnly)));
    Ok(())
}

/// A session that moves to the front of the list, past the page that comes next, used to be overlooked.
#[test]
fn a_session_that_is_written_to_is_one_that_no_rule_meets() -> Result<()> {
    let scratch = Scratch::new()?;
    let store = &scratch.store;
    let chat = store.session("busy")?;
    chat.append(Message::user("hello").at(ago(9)))?;
    for number in 0..2_000 {
        let details = SessionDetails { tags: vec!["old".to_owned()], ..SessionDetails::default() };
        store.create_session_as(format!("s{number}"), details)?;
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                chat.append(Message::user("hello")).unwrap();
            }
        });
        let tagged = Retention::new().rule(RetentionRule::new("tagged").tag("old"));
        let report = store.retention(tagged).dry_run();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(report?.sessions.len(), 2_000);
        Ok(())
    })
}

/// Returns whether a file of the store has a text.
fn has_bytes(scratch: &Scratch, text: &str) -> bool {
    if let Some(rows) = Tables::of(&scratch.folder.path().join("talk.db")).rows() {
        return rows.contains(text);
    }
    let files = std::fs::read_dir(scratch.folder.path()).unwrap();
    files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn an_erased_session_leaves_no_byte() -> Result<()> {
    let scratch = Scratch::new()?;
    let store = &scratch.store;
    let secret = |n: usize| format!("the vault opens with {n}-7-1-9-4-{n}");
    for number in 0..6 {
        store.session(format!("s{number}"))?.append(Message::user(secret(number)).at(ago(8)))?;
    }
    store.session("newest")?.append(Message::user("hello"))?;
    // One in the trash meets the rule, too, before the term of the trash does.
    store.change_session(&"s0".into(), &SessionChange::Delete)?;
    store.change_session(&"s1".into(), &SessionChange::Pin(true))?;
    let copy = store.session("s2")?.fork(&store.session("s2")?.head()?.unwrap(), "Copy")?;
    let rule = RetentionRule::new("erased").idle_for(7 * DAY).erase();
    let retention = Retention::new().rule(rule).empty_trash_after(Duration::ZERO);
    let run = || store.retention(retention.clone()).as_of(Utc::now());
    store.change_session(copy.id(), &SessionChange::Pin(true))?;

    // Stopped before the erasure: the sessions are as they were.
    let handle = store.interrupt_handle();
    let stopped = run().progress(|_| handle.interrupt()).run();
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(all(store)?.values().filter(|info| info.deleted_at.is_some()).count(), 1);
    assert_eq!(store.verify(|_| {})?.damages, []);

    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let events = Arc::clone(&seen);
    let _listener = store.subscribe(move |event| {
        if matches!(event.change, Change::Remove) {
            events.lock().unwrap().insert(event.session.to_string());
        }
    });
    let expected = run().dry_run()?;
    let report = run().run()?;
    assert_eq!(report, expected);
    let erased: BTreeSet<_> = discarded(&report).into_iter().map(str::to_owned).collect();
    assert_eq!(erased, ["s0", "s2", "s3", "s4", "s5"].map(str::to_owned).into());
    assert_eq!(*seen.lock().unwrap(), erased);
    assert_eq!(report.copies_left[0].session, *copy.id());
    for number in [0, 3, 4, 5] {
        assert!(!has_bytes(&scratch, &secret(number)), "{number}");
    }
    assert!(has_bytes(&scratch, &secret(1)) && has_bytes(&scratch, &secret(2)));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

/// All sessions that met the rule were put into the trash and named in one erasure: whoever finished it erased them all,
/// those that were restored and pinned since included.
#[test]
fn a_run_that_is_stopped_while_it_erases_leaves_the_other_sessions() -> Result<()> {
    let scratch = Scratch::new()?;
    let store = &scratch.store;
    for number in 0..100 {
        talk(store, &format!("s{number:03}"), 8)?;
    }
    talk(store, "newest", 0)?;
    let rule = RetentionRule::new("erased").idle_for(7 * DAY).erase();
    let retention = Retention::new().rule(rule);
    let handle = store.interrupt_handle();
    let mut report = RetentionReport::default();
    let run = store.retention(retention.clone()).as_of(now()).progress(|at| {
        // The sessions were read before, all on one page.
        if (40..100).contains(&at.done) {
            handle.interrupt();
        }
    });
    assert!(matches!(run.run_into(&mut report), Err(Error::Interrupted)));
    let left = all(store)?;
    let others: Vec<_> = left.values().collect();
    assert!((40..=61).contains(&others.len()), "{}", others.len());
    assert_eq!(report.sessions.len() + left.len(), 101);
    assert_eq!(report.rules[0].sessions, report.sessions.len() as u64);
    assert!(report.sessions.iter().all(|session| !left.contains_key(&session.id)));
    let pinned = &others[1].id;
    store.change_session(pinned, &SessionChange::Pin(true))?;
    assert!(store.finish_erasure()?);
    assert_eq!(all(store)?.len(), others.len());
    let report = store.retention(retention).as_of(now()).run()?;
    assert_eq!(report.sessions.len(), others.len() - 2);
    assert!(all(store)?.contains_key(pinned));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

/// A session that a rule had put into the trash was erased by a later rule on the next run.
#[test]
fn the_first_rule_that_a_session_meets_decides_in_the_trash_too() -> Result<()> {
    let store = Store::open_in_memory()?;
    for (id, days) in [("old", 50), ("older", 100), ("newest", 0)] {
        talk(&store, id, days)?;
    }
    let rule = |name: &str, days| RetentionRule::new(name).idle_for(days * DAY);
    let first = Retention::new().rule(rule("stale", 42)).rule(rule("erased", 38).erase());
    for (retention, expected) in [
        (first.clone(), &["old", "older"][..]),
        (first, &[]),
        // A total that may have put it there.
        (Retention::new().rule(rule("some", 30).keep_sessions(5)).rule(rule("e", 38).erase()), &[]),
        (Retention::new().rule(rule("erased", 90).erase()).rule(rule("stale", 42)), &["older"]),
    ] {
        let expected_report = store.retention(retention.clone()).as_of(now()).dry_run()?;
        let report = store.retention(retention).as_of(now()).run()?;
        assert_eq!(report, expected_report);
        assert_eq!(discarded(&report), expected);
    }
    Ok(())
}

#[test]
fn copies_in_sessions_that_a_run_removes_are_not_left() -> Result<()> {
    let store = Store::open_in_memory()?;
    talk(&store, "old", 8)?;
    talk(&store, "newest", 0)?;
    let chat = store.session("old")?;
    for id in ["removed", "kept"] {
        let fork = chat.fork_as(&id.into(), &chat.head()?.unwrap(), id)?;
        fork.append(Message::user("hello").at(ago(1)))?;
    }
    store.change_session(&"removed".into(), &SessionChange::Tag("t".into()))?;
    let erased = RetentionRule::new("erased").idle_for(7 * DAY).erase();
    let rules = Retention::new().rule(RetentionRule::new("removed").tag("t").remove()).rule(erased);
    let expected = store.retention(rules.clone()).as_of(now()).dry_run()?;
    let left: Vec<_> = expected.copies_left.iter().map(|copies| copies.session.as_str()).collect();
    assert_eq!(left, ["kept"]);
    assert_eq!(store.retention(rules).as_of(now()).run()?, expected);
    Ok(())
}

#[test]
fn a_session_that_changes_before_its_erasure_stays() -> Result<()> {
    let scratch = Scratch::new()?;
    let store = &scratch.store;
    for number in 0..40 {
        talk(store, &format!("s{number:03}"), 8)?;
    }
    talk(store, "newest", 0)?;
    let copy = store.session("s001")?;
    let fork = copy.fork_as(&"fork".into(), &copy.head()?.unwrap(), "Fork")?;
    let rule = RetentionRule::new("erased").idle_for(7 * DAY).erase();
    let mut calls = 0;
    let run = store.retention(Retention::new().rule(rule)).as_of(now()).progress(|_| {
        if calls == 0 {
            store.change_session(&"s007".into(), &SessionChange::Pin(true)).unwrap();
        }
        calls += 1;
    });
    let report = run.run()?;
    // The fork has lost its parent meanwhile.
    assert_eq!(report.sessions.len(), 40);
    assert_eq!((report.rules[0].sessions, report.rules[0].messages), (40, 40));
    assert!(!all(store)?.contains_key(fork.id()));
    assert!(store.session("s007")?.append(Message::user("still here")).is_ok());
    assert_eq!(store.sessions()?.len(), 2);
    Ok(())
}

#[test]
fn rules_and_refusals_count_one_and_many() -> Result<()> {
    let rule = RetentionRule::new("r").more_messages_than(1).more_bytes_than(1);
    let text = "of more than 1 message, of more than 1 byte, but the newest with 2 messages in all: removed";
    assert_eq!(rule.keep_messages(2).remove().to_string(), text);
    let store = Store::open_in_memory()?;
    for count in 1..=2 {
        store.create_session("a talk")?.append_all([Message::user("hi"), Message::user("ho")])?;
        let rule = RetentionRule::new("r").more_messages_than(1);
        let refused = store.retention(Retention::new().rule(rule)).run().unwrap_err().to_string();
        let all = [
            "the only session that is not pinned meets",
            "all 2 sessions that are not pinned meet",
        ];
        let text = format!(
            "{} retention rule \"r\"; check the rule and the clock, or allow it",
            all[count - 1]
        );
        assert_eq!(refused, text);
    }
    Ok(())
}
