//! Searches that are stopped: by a signal, or because their budget is spent.

use super::*;
use crate::search::Matched;

/// Three sessions of 200 messages each, every second one of a person.
fn foxes(database: &Arc<Database>) -> Result<()> {
    for name in ["a", "b", "c"] {
        append(&session(database, name), (0..200).map(|n| format!("a red fox{n} and a fox")))?;
    }
    Ok(())
}

#[test]
fn a_raised_signal_stops_a_search() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    append(&session(&database, "s"), (0..2_000).map(|n| format!("fox {n}")))?;
    let signal = database.watch();
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

/// A search that is stopped at any moment says that it is not complete, and finds only true matches.
///
/// A search that was stopped while it looked up a prefix said that the prefix has too many words.
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
                    assert_eq!(found.notices, complete.notices, "{text} {checks}");
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
        Index::Messages.clear(conn)?;
        conn.command("UPDATE session SET unindexed = 1")
    })?;
    let reader = Database::open_read_only(&path, Config::default())?;
    let request = SearchRequest { limit: 10_000, ..SearchRequest::new("fox", Scope::Store) };
    let range = (Address::from_raw(i64::MIN), Address::from_raw(i64::MAX));
    let mut sizes = Vec::new();
    for _ in 0..30 {
        let size: i64 = reader.read(|conn| {
            // Indexing ends with the check after half of these.
            let budget = TimeBudget::of_checks(3);
            let watch = reader.watch().within(Some(budget));
            super::super::super::index::prepare(conn, range, &watch)?;
            let sql = "SELECT count(*) FROM temp.pending_index_docsize";
            conn.temporary()?.one(sql, ())
        })?;
        sizes.push(size);
    }
    assert!(sizes.is_sorted() && sizes[0] < 5_000 && sizes[29] == 5_000, "{sizes:?}");
    let found = reader.search(&request)?;
    assert_eq!((found.hits.len(), found.is_partial), (5_000, false));
    Ok(())
}

/// The steps were taken without a limit of time.
#[test]
fn steps_that_are_stopped_keep_what_was_found_before() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    repaired(&database)?;
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
    for (text, _) in REPAIRED {
        let request = SearchRequest::new(text, Scope::Store);
        let complete = database.search(&request)?;
        let true_ids: Vec<_> = all(text)?.hits.into_iter().map(|hit| hit.id).collect();
        let is_relaxed = complete.matched == Matched::Relaxed;
        assert!(!complete.is_partial && (is_relaxed || !complete.steps.is_empty()), "{text}");
        let (mut partial, mut last) = (0, true);
        for checks in (0..40).chain((2..14).map(|power| 24 << power)) {
            let found = database.search_within(&request, Some(TimeBudget::of_checks(checks)))?;
            last = found.is_partial;
            if found.is_partial {
                partial += 1;
                assert!(found.hits.iter().all(|hit| true_ids.contains(&hit.id)), "{text} {checks}");
                // Whatever a step found is named.
                let named: u64 = found.steps.iter().map(|taken| taken.hits).max().unwrap_or(0);
                let is_named = named > 0 || found.matched == Matched::Relaxed;
                assert!(is_named || found.hits.is_empty(), "{text} {found:?}");
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
