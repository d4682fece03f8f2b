//! Transactions and requests to stop, on the server of the tests; without one nothing of it runs.

use std::time::{Duration, Instant};

use super::Server;
use crate::error::{Error, Result};
use crate::sql::BackendError;

/// Connects to a new store.
fn server(max_idle: usize) -> Result<Option<Server>> {
    let Ok(url) = std::env::var("TALKTREE_TEST_POSTGRES") else { return Ok(None) };
    let url = format!("{url}schema=t{}", uuid::Uuid::now_v7().simple());
    Server::connect(&url, Duration::from_secs(30), max_idle).map(Some)
}

const NO_STOP: Option<fn() -> bool> = None;
const ADD: &str = "INSERT INTO setting (name, value) VALUES (?1, 'x')";
const HAS: &str = "SELECT 1 FROM setting WHERE name = ?1";

/// A task of tokio has a budget, and nothing is ready for one that has spent it until it returns to its runtime.
#[test]
fn a_call_from_a_task_whose_budget_is_spent_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for _ in 0..1_000 {
            let answer = super::runtime().unwrap().spawn(async { 1 });
            let until = Instant::now() + Duration::from_secs(10);
            assert!(super::wait(answer, Some(until)).is_some());
        }
    });
}

/// The server answers the commit of such a transaction by a rollback, without an error.
#[test]
fn a_write_in_which_a_statement_failed_is_no_success() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    let answer = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.run(ADD, "a")?;
        // `setting.value` must not be null.
        let _ = conn.run("UPDATE setting SET value = NULL", ());
        Ok(())
    });
    assert!(matches!(answer, Err(BackendError::Own(Error::Storage { .. }))), "{answer:?}");
    let is_there =
        server.read(None, |conn| conn.has(HAS, "a")).map_err(|error| error.into_error(0));
    assert!(!is_there?);
    Ok(())
}

#[test]
fn a_write_goes_on_after_a_statement_that_failed_in_a_savepoint() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    let written = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.run(ADD, "a")?;
        conn.command("SAVEPOINT here")?;
        let failed = conn.run("UPDATE setting SET value = NULL", ());
        assert!(failed.is_err());
        conn.command("ROLLBACK TO here")?;
        conn.run(ADD, "b")?;
        Ok(())
    });
    written.map_err(|error| error.into_error(0))?;
    for name in ["a", "b"] {
        assert!(server.read(None, |conn| conn.has(HAS, name)).is_ok_and(|has| has), "{name}");
    }
    Ok(())
}

/// A request to stop goes to the server by a connection of its own, and stops what the other one is doing when it arrives.
#[test]
fn a_late_request_to_stop_stops_nobody_else() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    for round in 0..30 {
        let short = server.read(Some(Box::new(|| true)), |conn| conn.has("SELECT 1", ()));
        assert!(short.as_ref().map_or_else(BackendError::is_interrupt, |has| *has), "{short:?}");
        let other = server.read(None, |conn| conn.has("SELECT 1 FROM pg_sleep(0.03)", ()));
        assert!(other.is_ok(), "round {round}: {other:?}");
    }
    Ok(())
}

#[test]
fn a_request_to_stop_ends_a_statement_at_once() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    let began = Instant::now();
    let answer =
        server.read(Some(Box::new(|| true)), |conn| conn.has("SELECT 1 FROM pg_sleep(20)", ()));
    assert!(answer.is_err_and(|error| error.is_interrupt()));
    assert!(began.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[test]
fn what_is_sent_and_asked_together_is_as_one_by_one() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    const ADD: &str = "INSERT INTO session (id, name, model, created_at, updated_at)
                       VALUES (?1, ?2, lower(?4), ?3, ?3) ON CONFLICT (id) DO NOTHING";
    const FIND: &str = "SELECT id, name, model, created_at FROM session WHERE id = ?1 ORDER BY key";
    type Row = (String, Option<String>, Option<String>, i64);
    let row = |id: &str, name: Option<&str>, at| -> Row {
        (id.to_owned(), name.map(str::to_owned), None, at)
    };
    let rows =
        [row("a", None, 1), row("b\0'{\"\\", Some("\u{1}B,"), 2), row("a", Some("again"), 3)];
    let written = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.run(ADD, ("first", None::<&str>, 0_i64, "X"))?;
        for (id, name, model, at) in &rows {
            conn.send(ADD, (id, name, *at, model))?;
        }
        let ids = [&*rows[1].0, "missing", "first", "a", "a"];
        ids.iter().try_for_each(|id| conn.ask_ahead(FIND, *id))?;
        ids.iter()
            .map(|id| conn.first::<Row>(FIND, *id))
            .collect::<crate::sql::BackendResult<Vec<_>>>()
    });
    let found = written.map_err(|error| error.into_error(0))?;
    let first = ("first".to_owned(), None, Some("x".to_owned()), 0);
    let [a, b, _] = rows;
    assert_eq!(found, [Some(b), None, Some(first), Some(a.clone()), Some(a)]);
    Ok(())
}

#[test]
fn the_error_is_that_of_the_statement_that_failed_first() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    let answer = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.send("INSERT INTO setting (name, value) VALUES (?1, NULL)", "a")?;
        conn.ask_ahead(HAS, "first")?;
        conn.has(HAS, "first")
    });
    let error = answer
        .map_err(|error| error.into_error(0))
        .map_or_else(|it| it.to_string(), |_| String::new());
    assert!(error.contains("null"), "{error}");
    Ok(())
}

/// Otherwise it would be answered by the next statement, or by none.
#[test]
fn a_row_that_is_refused_fails_the_write() -> Result<()> {
    let Some(server) = server(1)? else { return Ok(()) };
    let answer = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.run(ADD, "first")?;
        for name in ["a", "b"] {
            // `setting.value` must not be null.
            conn.send("INSERT INTO setting (name, value) VALUES (?1, NULL)", name)?;
        }
        Ok(())
    });
    assert!(answer.is_err_and(|error| !error.is_interrupt()));
    assert!(server.read(None, |conn| conn.has(HAS, "first")).is_ok_and(|has| !has));
    Ok(())
}
