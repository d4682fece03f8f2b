//! The statements of a search, and whether the index stays in step: tested below the public API.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::connection::{Config, Database};
use super::super::search_filter;
use super::super::session::SqliteSession;
use super::super::time_budget::TimeBudget;
use super::candidates::{ALL, EACH, HAS_COPIES, MATCHING, PASSING, WHICH};
use super::{extent, hits, leaves, listing, pending, range};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::search::{Scope, SearchRequest};
use crate::storage::SessionProvider;
use crate::tree::Address;
use crate::view::{ExpectedHead, Parent};

fn session(database: &Arc<Database>, id: &str) -> SqliteSession {
    SqliteSession::new(Arc::clone(database), SessionId::from(id))
}

fn count(database: &Database, text: &str) -> Result<usize> {
    let request = SearchRequest { limit: 100_000, ..SearchRequest::new(text, Scope::Store) };
    Ok(database.search(&request)?.hits.len())
}

fn append(session: &SqliteSession, texts: impl IntoIterator<Item = String>) -> Result<()> {
    let messages: Vec<_> = texts.into_iter().map(Message::user).collect();
    session.append(&Parent::Head, &ExpectedHead::Any, &messages).map(|_| ())
}

fn pending(database: &Database) -> Result<i64> {
    database.read(|conn| {
        Ok(conn.query_row("SELECT count(*) FROM session JOIN message ON address BETWEEN (key << 32) + unindexed AND (key << 32) + 4294967295", [], |row| row.get(0))?)
    })
}

/// FTS5's own comparison of index and content; nothing else notices a missing entry. And whether filters pass what they should.
fn check_index(database: &Database) -> Result<()> {
    database.write(|conn| {
        conn.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)", [])?;
        assert!(search_filter::is_sound(conn)?);
        Ok(())
    })
}

#[test]
fn no_statement_scans_the_messages() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let chat = session(&database, "s");
    append(&chat, (0..50).map(|n| format!("text {n}")))?;
    let others = [
        listing::NEWEST,
        listing::LAST,
        hits::AT,
        hits::COPIES,
        pending::IS_PENDING,
        pending::FILL,
        pending::NTH_PENDING,
        range::NAMES,
        HAS_COPIES,
        extent::NEWEST_SESSIONS,
        EACH,
        WHICH,
        search_filter::OF_TIMES,
        search_filter::LAST_OF,
    ];
    let indexed = [ALL, MATCHING, PASSING].concat();
    for is_analyzed in [false, true] {
        database.write(|conn| {
            if is_analyzed {
                conn.execute_batch("ANALYZE")?;
            }
            let all = (Address::from_raw(0), Address::from_raw(i64::MAX));
            pending::prepare(conn, all, &database.interrupt_signal().watch())?;
            conn.execute_batch(pending::CREATE)?;
            for sql in others.iter().chain(&indexed) {
                let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let count = statement.parameter_count();
                let values = vec![rusqlite::types::Value::Null; count];
                let lines: Vec<String> = statement
                    .query_map(rusqlite::params_from_iter(values), |row| row.get(3))?
                    .collect::<std::result::Result<_, _>>()?;
                let plan = lines.join("\n");
                for scan in
                    ["SCAN message", "SCAN other", "SCAN copy", "SCAN last", "SCAN search_filter"]
                {
                    let is_the_copies = sql == &hits::COPIES && scan == "SCAN copy";
                    assert!(is_the_copies || !plan.contains(scan), "{sql}\n{plan}");
                }
                let may_sort = sql == &hits::COPIES;
                let is_sorted = plan.contains("TEMP B-TREE FOR ORDER BY");
                assert!(may_sort || !is_sorted, "{sql}\n{plan}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn an_index_of_another_version_is_rebuilt_chunk_by_chunk() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    {
        let database = Arc::new(Database::open(&path, Config::default())?);
        append(&session(&database, "s"), (0..3_000).map(|n| format!("fox {n}")))?;
        assert_eq!(count(&database, "fox")?, 3_000);
        database.write(|conn| {
            conn.execute("UPDATE setting SET value = '0' WHERE name = 'index_version'", [])?;
            conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
            Ok(())
        })?;
    }
    let database = Database::open(&path, Config::default())?;
    let reader = Database::open_read_only(&path, Config::default())?;
    assert_eq!(count(&reader, "fox")?, 3_000);
    check_index(&database)?;
    assert_eq!(count(&database, "fox")?, 3_000);
    check_index(&database)?;
    assert_eq!(pending(&database)?, 0);
    Ok(())
}

#[test]
fn the_copies_of_a_fork_are_indexed_by_the_next_search() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let chat = session(&database, "s");
    append(&chat, (0..2_000).map(|n| format!("fox {n}")))?;
    assert_eq!((count(&database, "fox")?, pending(&database)?), (2_000, 0));

    let last = chat.latest_leaf()?.expect("a message").id;
    chat.fork(&last, &"fork".into(), &SessionDetails::default())?;
    assert_eq!(pending(&database)?, 2_000);
    let scope = Scope::session("fork");
    let request = SearchRequest { limit: 3_000, ..SearchRequest::new("fox", scope) };
    assert_eq!((database.search(&request)?.hits.len(), pending(&database)?), (2_000, 0));
    check_index(&database)
}

#[test]
fn a_search_finds_what_is_pending_while_another_writes() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    let config = Config { busy_timeout: Duration::from_secs(5), ..Config::default() };
    let database = Arc::new(Database::open(&path, config.clone())?);
    append(&session(&database, "s"), ["fox".to_owned(), "den".to_owned()])?;
    let other = Database::open(&path, config)?;
    other.write(|conn| {
        conn.execute("UPDATE session SET name = 'held'", [])?;
        assert_eq!(count(&database, "fox")?, 1);
        assert_eq!(count(&database, "fox OR den")?, 2);
        Ok(())
    })?;
    assert_eq!(count(&other, "fox")?, 1);
    check_index(&other)
}

#[test]
fn a_raised_signal_stops_a_search() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    append(&session(&database, "s"), (0..2_000).map(|n| format!("fox {n}")))?;
    let signal = database.interrupt_signal();
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let thread = {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                signal.raise();
            }
        })
    };
    let answers: Vec<_> = (0..20).map(|_| count(&database, "fox")).collect();
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    let is_joined = thread.join().is_ok();
    assert!(is_joined && answers.iter().any(|answer| matches!(answer, Err(Error::Interrupted))));
    assert_eq!(count(&database, "fox")?, 2_000);
    Ok(())
}

#[test]
fn pages_of_conversations_come_from_one_order_while_some_are_pending() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    let database = Arc::new(Database::open(&path, Config::default())?);
    for number in 0..600 {
        if number == 300 {
            count(&database, "fox")?;
        }
        append(&session(&database, &format!("s{number}")), (0..6).map(|n| format!("fox {n}")))?;
        // So that these appends do not trigger indexing.
        database.deferred.appended.store(0, std::sync::atomic::Ordering::Relaxed);
    }
    assert_eq!(pending(&database)?, 1_800);
    let reader = Database::open_read_only(&path, Config::default())?;
    let ids = |offset, limit| -> Result<Vec<SessionId>> {
        let request = SearchRequest { limit, offset, ..SearchRequest::new("fox", Scope::Store) };
        let found = reader.search_sessions(&request)?.sessions;
        Ok(found.into_iter().map(|found| found.session).collect())
    };
    let whole = ids(0, 240)?;
    for offset in [0, 60, 200, 210, 220] {
        assert_eq!(ids(offset, 10)?, whole[offset..offset + 10], "{offset}");
    }
    Ok(())
}

/// One write to a session; the ids are those of three messages.
#[derive(Debug, Clone)]
enum Change {
    Append(usize, usize, usize),
    Update(usize, usize, usize),
    Delete(usize, usize),
    DeleteBranch(usize, usize),
    Clear(usize),
    Fork(usize, usize, usize),
    Remove(usize),
    Search,
}

fn change() -> impl Strategy<Value = Change> {
    let (s, m, w) = (0..3_usize, 0..12_usize, 0..4_usize);
    prop_oneof![
        6 => (s.clone(), m.clone(), w.clone()).prop_map(|(s, m, w)| Change::Append(s, m, w)),
        4 => (s.clone(), m.clone(), w).prop_map(|(s, m, w)| Change::Update(s, m, w)),
        3 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::Delete(s, m)),
        1 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::DeleteBranch(s, m)),
        1 => s.clone().prop_map(Change::Clear),
        1 => (s.clone(), m, s.clone()).prop_map(|(s, m, t)| Change::Fork(s, m, t)),
        1 => s.prop_map(Change::Remove),
        3 => Just(Change::Search),
    ]
}

const WORDS: [&str; 4] = ["fox", "red fox", "北京", "owl"];

fn apply(database: &Arc<Database>, change: &Change) -> Result<()> {
    let chat = |number: usize| session(database, ["a", "b", "c"][number]);
    let id = |number: usize| crate::id::MessageId::from(format!("m{number}"));
    let message = |m: usize, w: usize| Message::user(WORDS[w]).with_id(id(m));
    match *change {
        Change::Append(s, m, w) => {
            chat(s).append(&Parent::Head, &ExpectedHead::Any, &[message(m, w)]).map(|_| ())
        }
        Change::Update(s, m, w) => chat(s).update(&message(m, w)).map(|_| ()),
        Change::Delete(s, m) => chat(s).delete(&[id(m)]).map(|_| ()),
        Change::DeleteBranch(s, m) => chat(s).delete_branch(&id(m)).map(|_| ()),
        Change::Clear(s) => chat(s).clear(),
        Change::Fork(s, m, t) => {
            let target = SessionId::from(format!("fork {t}"));
            chat(s).fork(&id(m), &target, &crate::outcome::SessionDetails::default()).map(|_| ())
        }
        Change::Remove(s) => database.remove(chat(s).id()),
        Change::Search => count(database, "fox").map(|_| ()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_changes_keep_the_index_in_step(changes in prop::collection::vec(change(), 1..60)) {
        let database = Arc::new(Database::open_in_memory(Config::default()).map_err(fail)?);
        for change in &changes {
            match apply(&database, change) {
                Ok(()) => {}
                Err(error) if error.is_unknown() => {}
                Err(Error::SessionExists { .. }) => {}
                Err(error) => return Err(fail(error)),
            }
        }
        check_index(&database).map_err(fail)?;
        count(&database, "fox").map_err(fail)?;
        check_index(&database).map_err(fail)?;
    }
}

fn fail(error: Error) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Three sessions of 200 messages each, every second one of a person.
fn foxes(database: &Arc<Database>) -> Result<()> {
    for name in ["a", "b", "c"] {
        append(&session(database, name), (0..200).map(|n| format!("a red fox{n} and a fox")))?;
    }
    Ok(())
}

/// A search that is stopped at any moment says that it is not complete, and finds only true matches.
#[test]
fn a_search_that_is_stopped_is_marked_and_finds_only_true_matches() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    foxes(&database)?;
    for text in [
        "fox",
        "fox1*",
        "red fox -fox7",
        "what is the fox?",
        "role:user",
        "role:user -fox7",
        "fox role:user after:2000",
    ] {
        for scope in [Scope::Store, Scope::session("b"), Scope::Path("b".into(), None)] {
            let request = SearchRequest { limit: 30, ..SearchRequest::new(text, scope.clone()) };
            let all = SearchRequest { limit: 1_000, ..request.clone() };
            let all: Vec<_> = database.search(&all)?.hits.into_iter().map(|hit| hit.id).collect();
            let complete = database.search(&request)?;
            assert!(!complete.is_partial && !complete.hits.is_empty(), "{text} {scope:?}");
            let (mut partial, mut with_hits, mut last) = (0, 0, false);
            for checks in (0..12).chain((4..14).map(|power| 3 << power)) {
                let found =
                    database.search_within(&request, Some(TimeBudget::of_checks(checks)))?;
                last = found.is_partial;
                if found.is_partial {
                    partial += 1;
                    with_hits += u32::from(!found.hits.is_empty());
                    assert!(found.hits.iter().all(|hit| all.contains(&hit.id)), "{text} {checks}");
                } else {
                    assert_eq!(found, complete, "{text} {scope:?} {checks}");
                }
            }
            assert!(
                partial > 0 && with_hits > 0 && !last,
                "{text} {scope:?} {partial} {with_hits}"
            );
        }
    }
    Ok(())
}

/// What a budget does not reach is indexed by the next search of the same reader.
#[test]
fn pending_messages_that_a_budget_does_not_reach_are_left_for_the_next_search() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = folder.path().join("store.db");
    let writer = Arc::new(Database::open(&path, Config::default())?);
    append(&session(&writer, "s"), (0..5_000).map(|n| format!("fox {n}")))?;
    writer.write(|conn| {
        conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
        conn.execute("UPDATE session SET unindexed = 1", [])?;
        Ok(())
    })?;
    let reader = Database::open_read_only(&path, Config::default())?;
    let request = SearchRequest { limit: 10_000, ..SearchRequest::new("fox", Scope::Store) };
    let range = (Address::from_raw(i64::MIN), Address::from_raw(i64::MAX));
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let size: i64 = reader.read(|conn| {
            // Indexing ends with the check after half of these.
            let budget = TimeBudget::of_checks(3);
            let watch = reader.interrupt_signal().watch().within(Some(budget));
            pending::prepare(conn, range, &watch)?;
            let sql = "SELECT count(*) FROM temp.pending_index_docsize";
            Ok(conn.query_row(sql, [], |row| row.get(0))?)
        })?;
        sizes.push(size);
    }
    assert_eq!(sizes, [4_096, 5_000, 5_000]);
    let found = reader.search(&request)?;
    assert_eq!((found.hits.len(), found.is_partial), (5_000, false));
    Ok(())
}

/// Filters drop most matches by the entries of their stretch; what passes is the same.
#[test]
fn filters_pass_what_the_rows_say_in_sessions_of_any_times() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let roles = ["user", "assistant", "system", "tool", "editor", "critic"];
    // One session after the other in time; then some in no order, at the limits of time among them.
    let mut all = Vec::new();
    for number in 0..12_i64 {
        let messages: Vec<Message> = (0..700)
            .map(|n: i64| {
                let micros = match number {
                    0..9 => (number * 1_000 + n) * 3_600_000_000,
                    9 => (n * 7_919 % 9_000) * 3_600_000_000,
                    10 => -n * 86_400_000_000,
                    _ => 4_102_444_800_000_000 + n * 31_536_000_000_000,
                };
                let time = chrono::DateTime::from_timestamp_micros(micros).expect("a time");
                let role = roles[usize::try_from(n * n + number).unwrap_or(0) % roles.len()];
                Message { role: role.into(), ..Message::user(format!("fox {n}")) }.at(time)
            })
            .collect();
        for batch in messages.chunks(300) {
            session(&database, &format!("s{number}"))
                .append(&Parent::Head, &ExpectedHead::Any, batch)
                .map(|_| ())?;
        }
        all.extend(messages);
    }
    check_index_after_search(&database)?;
    for text in [
        "fox role:user after:1970-03-01 before:1970-03-09",
        "fox after:1970-01-01T07:00:00Z before:1970-01-01T09:00:00Z",
        "fox role:editor before:1970-02-01",
        "fox role:critic role:tool",
        "fox before:1969-01-01",
        "fox after:2200-01-01",
        "fox role:nobody",
    ] {
        let request = SearchRequest { limit: 100_000, ..SearchRequest::new(text, Scope::Store) };
        let filters = request.query().filters;
        let expected = all.iter().filter(|message| {
            (filters.roles.is_empty()
                || filters.roles.iter().any(|role| role == message.role.as_str()))
                && filters.after.is_none_or(|after| message.created_at >= after)
                && filters.before.is_none_or(|before| message.created_at < before)
        });
        let expected: std::collections::BTreeSet<_> = expected.map(|it| it.id.clone()).collect();
        let hits = database.search(&request)?.hits;
        let found: std::collections::BTreeSet<_> = hits.into_iter().map(|hit| hit.id).collect();
        assert_eq!(found.len(), expected.len(), "{text}");
        assert_eq!(found, expected, "{text}");
        assert!(text.ends_with("nobody") || !found.is_empty(), "{text}");
    }
    Ok(())
}

fn check_index_after_search(database: &Database) -> Result<()> {
    count(database, "fox")?;
    check_index(database)
}

/// A question looked at the newest messages with each of its words only: none was of the time that it asked for.
#[test]
fn a_question_finds_old_messages_if_its_filters_leave_out_the_new_ones() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let words: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
    let text = words.join(" ");
    let at = |time: &str| time.parse().expect("a time");
    for (name, count, time) in
        [("old", 5, "2020-06-01T00:00:00Z"), ("new", 900, "2021-06-01T00:00:00Z")]
    {
        let messages: Vec<Message> =
            (0..count).map(|_| Message::user(text.as_str()).at(at(time))).collect();
        session(&database, name).append(&Parent::Head, &ExpectedHead::Any, &messages)?;
    }
    let question = format!("what is {text} before:2021");
    let request = SearchRequest::new(&question, Scope::Store);
    assert_eq!(database.search(&request)?.hits.len(), 5);
    Ok(())
}

/// Only the newest thousand were ranked.
#[test]
fn of_a_few_thousand_messages_with_a_word_the_best_is_first_however_old_it_is() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let best = Message::user("fox");
    let chat = session(&database, "s");
    chat.append(&Parent::Head, &ExpectedHead::Any, std::slice::from_ref(&best)).map(|_| ())?;
    append(&chat, (0..2_000).map(|n| format!("a story {n} of a fox and of many other things")))?;
    for scope in [Scope::Store, Scope::session("s")] {
        let found = database.search(&SearchRequest::new("fox", scope))?;
        assert_eq!(found.hits[0].id, best.id);
    }
    Ok(())
}

/// Queries that nothing matches as they are written, with what they should find.
const CLIMBS: [(&str, &str); 5] = [
    ("compac", "a compaction of history"),
    ("seesion manager", "the session manager"),
    ("session store", "sessionstore opens"),
    ("hardlink", "a hard link"),
    ("compaction manager", "a compaction of history"),
];

fn climbs(database: &Arc<Database>) -> Result<()> {
    let texts = CLIMBS[..4].iter().map(|(_, text)| (*text).to_owned());
    append(&session(database, "s"), texts)
}

/// A word was split only if the vocabulary had its parts, which has no words of pending messages.
#[test]
fn steps_find_what_is_pending() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = folder.path().join("store.db");
    let writer = Arc::new(Database::open(&path, Config::default())?);
    climbs(&writer)?;
    let reader = Database::open_read_only(&path, Config::default())?;
    let answer = |database: &Database, query: &str| -> Result<(Vec<String>, Vec<String>)> {
        let found = database.search(&SearchRequest::new(query, Scope::Store))?;
        let texts = found.hits.into_iter().map(|hit| hit.snippet.text).collect();
        Ok((texts, found.steps.iter().map(ToString::to_string).collect()))
    };
    for (query, text) in CLIMBS {
        assert_eq!(pending(&reader)?, 4);
        let found = answer(&reader, query)?;
        assert!(found.0.iter().any(|hit| hit == text) && !found.1.is_empty(), "{query} {found:?}");
    }
    for (query, _) in CLIMBS {
        assert_eq!(answer(&reader, query)?, answer(&writer, query)?, "{query}");
    }
    assert_eq!(pending(&writer)?, 0);
    Ok(())
}

/// The steps were taken without a limit of time.
#[test]
fn steps_that_are_stopped_keep_what_was_found_before() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    climbs(&database)?;
    let chat = session(&database, "s");
    // To look through these words takes more checks than the rest of a search.
    let letter = |n: u8| char::from(b'a' + n % 26);
    append(&chat, (0..200).map(|n| format!("sword{}{}", letter(n), letter(n / 26))))?;
    let request = SearchRequest::new("seesion manager", Scope::Store);
    let found = database.search_within(&request, Some(TimeBudget::of_checks(120)))?;
    assert!(found.is_partial && found.hits.is_empty(), "{found:?}");
    let all = |text: &str| -> Result<_> {
        let request = SearchRequest { limit: 1_000, ..SearchRequest::new(text, Scope::Store) };
        database.search(&request)
    };
    for (text, _) in CLIMBS {
        let request = SearchRequest::new(text, Scope::Store);
        let complete = database.search(&request)?;
        let true_ids: Vec<_> = all(text)?.hits.into_iter().map(|hit| hit.id).collect();
        assert!(!complete.is_partial && !complete.steps.is_empty(), "{text}");
        let (mut partial, mut last) = (0, true);
        for checks in (0..40).chain((2..14).map(|power| 24 << power)) {
            let found = database.search_within(&request, Some(TimeBudget::of_checks(checks)))?;
            last = found.is_partial;
            if found.is_partial {
                partial += 1;
                assert!(found.hits.iter().all(|hit| true_ids.contains(&hit.id)), "{text} {checks}");
                // Whatever a step found is named.
                let named: u64 = found.steps.iter().map(|taken| taken.hits).max().unwrap_or(0);
                assert!(named >= u64::from(!found.hits.is_empty()), "{text} {found:?}");
            } else {
                assert_eq!(found, complete, "{text} {checks}");
            }
        }
        assert!(partial > 1 && !last, "{text} {partial} {last}");
    }
    // A budget that is over after the words as they are written keeps their hits.
    let request = SearchRequest::new("session manager", Scope::Store);
    let complete = database.search(&request)?;
    let mut cut = 0;
    for checks in 0..200 {
        let found = database.search_within(&request, Some(TimeBudget::of_checks(checks)))?;
        if found.is_partial && !found.hits.is_empty() {
            assert_eq!(found.hits[0].id, complete.hits[0].id, "{checks}");
            cut += 1;
        }
    }
    assert!(cut > 0);
    Ok(())
}

/// If indexing had taken its share of the budget, one search in a hundred failed: SQLite looked at the budget while the
/// transaction began.
#[test]
fn a_spent_budget_is_never_an_error() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    foxes(&database)?;
    let request = SearchRequest::new("fox", Scope::Store);
    for _ in 0..600 {
        let found = database.search_within(&request, Some(TimeBudget::of_checks(0)))?;
        assert!(found.is_partial);
    }
    Ok(())
}

/// The leaves are read as FTS5 writes them: in several segments, some of them merged in part, with long lists.
#[test]
fn the_words_of_a_prefix_are_those_that_the_index_lists() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let chat = session(&database, "s");
    for round in 0..12_u32 {
        let text =
            |n: u32| format!("con{} é{} common {}", n * round, n % 7 * round, n.pow(round % 4));
        append(&chat, (0..200).map(text))?;
        count(&database, "common")?;
        if round % 4 == 3 {
            database.write(|conn| {
                conn.execute("INSERT INTO search (search, rank) VALUES ('merge', -7)", [])?;
                Ok(())
            })?;
        }
    }
    let watch = database.interrupt_signal().watch();
    database.read(|conn| {
        conn.execute_batch("CREATE VIRTUAL TABLE temp.listed USING fts5vocab (main, search, row)")?;
        for prefix in ["c", "con", "con1", "con19", "common", "comp", "é", "e", "1", "20", "", "zz"]
        {
            let sql = "SELECT term FROM temp.listed WHERE term >= ?1 AND term < ?1 || ?2";
            let mut statement = conn.prepare(sql)?;
            let listed: Vec<String> = statement
                .query_map([prefix, "\u{10FFFF}"], |row| row.get(0))?
                .collect::<std::result::Result<_, _>>()?;
            assert_eq!(leaves::words(conn, prefix, 100_000, &watch)?, Some(listed), "{prefix}");
        }
        Ok(())
    })
}
