//! Transactions, what begins them, requests to stop, and migrations, on the server of the tests; without one nothing of it runs.

use super::*;

const MORE: &[Migration] = &[
    Migration {
        tables: "ALTER TABLE message ADD COLUMN IF NOT EXISTS more TEXT",
        indexes: &["CREATE INDEX CONCURRENTLY IF NOT EXISTS more ON {schema}.message (more)"],
    },
    Migration { tables: "CREATE TABLE IF NOT EXISTS most (more TEXT)", indexes: &[] },
];

const NO_STOP: Option<fn() -> bool> = None;
const ADD: &str = "INSERT INTO setting (name, value) VALUES (?1, 'x')";
const HAS: &str = "SELECT 1 FROM setting WHERE name = ?1";
const COUNT: &str = "SELECT count(*) FROM setting WHERE value = 'x'";

/// Connects to a new store, with more parameters.
fn server(more: &str) -> Option<Server> {
    let url = std::env::var("TALKTREE_TEST_POSTGRES").ok()?;
    let url = format!("{url}schema=s{}{more}", uuid::Uuid::now_v7().simple());
    Some(Server::connect(&url, Duration::from_secs(30), 1).unwrap())
}

/// A task of tokio has a budget, and nothing is ready for one that has spent it until it returns to its runtime.
#[test]
fn a_call_from_a_task_whose_budget_is_spent_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for _ in 0..1_000 {
            let answer = super::super::runtime().unwrap().spawn(async { 1 });
            let until = Instant::now() + Duration::from_secs(10);
            assert!(super::super::wait(answer, Some(until)).is_some());
        }
    });
}

/// The server answers the commit of such a transaction by a rollback, without an error.
#[test]
fn a_write_in_which_a_statement_failed_is_no_success() -> Result<()> {
    let Some(server) = server("") else { return Ok(()) };
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
    let Some(server) = server("") else { return Ok(()) };
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
    let Some(server) = server("") else { return Ok(()) };
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
    let Some(server) = server("") else { return Ok(()) };
    let began = Instant::now();
    let answer =
        server.read(Some(Box::new(|| true)), |conn| conn.has("SELECT 1 FROM pg_sleep(20)", ()));
    assert!(answer.is_err_and(|error| error.is_interrupt()));
    assert!(began.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[test]
fn what_is_sent_and_asked_together_is_as_one_by_one() -> Result<()> {
    let Some(server) = server("") else { return Ok(()) };
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
        ids.iter().map(|id| conn.first::<Row>(FIND, *id)).collect::<BackendResult<Vec<_>>>()
    });
    let found = written.map_err(|error| error.into_error(0))?;
    let first = ("first".to_owned(), None, Some("x".to_owned()), 0);
    let [a, b, _] = rows;
    assert_eq!(found, [Some(b), None, Some(first), Some(a.clone()), Some(a)]);
    Ok(())
}

#[test]
fn the_error_is_that_of_the_statement_that_failed_first() -> Result<()> {
    let Some(server) = server("") else { return Ok(()) };
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
    let Some(server) = server("") else { return Ok(()) };
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

#[test]
fn a_long_answer_that_was_not_waited_for_holds_nothing_up() -> Result<()> {
    let Some(server) = server("") else { return Ok(()) };
    let written = server.write(Duration::from_secs(5), NO_STOP, |conn| {
        conn.run(ADD, "first")?;
        conn.send("UPDATE setting SET value = value RETURNING repeat('x', 1000000)", ())?;
        conn.ask_ahead(HAS, "first")?;
        conn.has(HAS, "first")
    });
    assert!(written.map_err(|error| error.into_error(0))?);
    Ok(())
}

#[test]
fn limits_of_a_role_or_a_database_do_not_count() {
    let limits = ["statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"];
    let limits = limits.map(|limit| format!("-c%20{limit}%3D50")).join("%20");
    let Some(server) = server(&format!("&options={limits}")) else { return };
    let sleep = |conn: &sql::Connection<'_>| {
        thread::sleep(Duration::from_millis(100));
        conn.has("SELECT 1 FROM pg_sleep(0.1)", ())
    };
    let never = || -> IsStopped { Box::new(|| false) };
    for is_stopped in [None, Some(never())] {
        assert!(server.read(is_stopped, sleep).unwrap());
    }
    for is_stopped in [None, Some(|| false)] {
        assert!(server.write(Duration::from_secs(1), is_stopped, sleep).unwrap());
    }
    let snapshot = server.snapshot(never()).unwrap();
    thread::sleep(Duration::from_millis(100));
    assert!(snapshot.read(None, sleep).unwrap());
    // What it does outside of a transaction.
    server.unlimited().unwrap().batch("SELECT pg_sleep(0.1)").unwrap();
    server.vacuum(|| Ok(false)).unwrap();
}

#[test]
fn a_snapshot_is_stopped_in_the_middle_of_a_read_and_before_one() {
    let Some(server) = server("") else { return };
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = std::sync::Arc::clone(&is_over);
    let snapshot =
        server.snapshot(Box::new(move || stop.load(std::sync::atomic::Ordering::Relaxed))).unwrap();
    let began = Instant::now();
    let stopped = snapshot.read(None, |conn| {
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        conn.has("SELECT 1 FROM pg_sleep(20)", ())
    });
    assert!(stopped.unwrap_err().is_interrupt() && began.elapsed() < Duration::from_secs(10));
    assert!(snapshot.read(None, |_| Ok(())).unwrap_err().is_interrupt());
}

#[test]
fn another_store_under_the_same_name_is_neither_read_nor_written() {
    let (Some(one), Some(other)) = (server(""), server("")) else { return };
    let add = |conn: &sql::Connection<'_>| {
        // A verb may go on after an error.
        let _ = conn.command("SAVEPOINT here");
        let _ = conn.run(ADD, "a");
        let _ = conn.command("ROLLBACK TO here");
        conn.run(ADD, "b").or(Ok(0))
    };
    let refusals = || {
        [
            one.write(Duration::from_secs(1), NO_STOP, add).map(drop),
            one.write(Duration::from_secs(1), NO_STOP, |conn| conn.run(ADD, "c")).map(drop),
            one.read(None, |conn| conn.has(COUNT, ())).map(drop),
            one.read(Some(Box::new(|| false)), |conn| conn.has(COUNT, ())).map(drop),
            one.snapshot(Box::new(|| false)).map(drop),
        ]
    };
    let (its, others) = (&one.address.schema, &other.address.schema);
    let conn = one.connection().unwrap();
    conn.batch(&format!("ALTER SCHEMA {its} RENAME TO was_{}", &its[1..its.len() - 1])).unwrap();
    let gone = refusals();
    conn.batch(&format!("ALTER SCHEMA {others} RENAME TO {its}")).unwrap();
    for answer in gone.into_iter().chain(refusals()) {
        let is_known = match &answer {
            Err(BackendError::Own(Error::StoreMoved { .. })) => true,
            // The error of the verb that went on was not given back.
            Err(BackendError::Own(Error::Storage { source })) => {
                source.to_string().contains("rolls the transaction back")
            }
            _ => false,
        };
        assert!(is_known, "{answer:?}");
    }
    conn.batch(&format!("ALTER SCHEMA {its} RENAME TO {others}")).unwrap();
    assert_eq!(other.read(None, |conn| conn.one::<i64>(COUNT, ())).unwrap(), 0);
}

#[test]
fn a_process_that_was_forked_connects_anew() {
    let Some(server) = server("") else { return };
    let process = || {
        let pid = |conn: &sql::Connection<'_>| {
            conn.one::<i64>("SELECT CAST(pg_backend_pid() AS BIGINT)", ())
        };
        server.read(None, pid).unwrap()
    };
    let before = process();
    assert_eq!(process(), before);
    server.idle.lock().unwrap()[0].process += 1;
    assert_ne!(process(), before);
}

#[test]
fn temporary_tables_that_another_program_left_are_not_those_of_the_store() {
    let Some(server) = server("") else { return };
    let conn = server.connection().unwrap();
    conn.batch("CREATE TEMP TABLE setting (name TEXT, value TEXT)").unwrap();
    server.keep(conn);
    server.write(Duration::from_secs(1), NO_STOP, |conn| conn.run(ADD, "a")).unwrap();
    assert_eq!(server.read(None, |conn| conn.one::<i64>(COUNT, ())).unwrap(), 1);
    assert_eq!(server.open(MIGRATIONS).unwrap(), server.id);
}

#[test]
fn a_database_that_is_not_in_utf_8_is_refused() {
    let Some(server) = server("") else { return };
    let url = std::env::var("TALKTREE_TEST_POSTGRES").unwrap();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = format!("d{}", uuid::Uuid::now_v7().simple());
        let conn = server.connection().unwrap();
        conn.batch(&format!(
            "CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        ))
        .unwrap();
        let there = url.replace("/postgres?", &format!("/{name}?"));
        let error = Server::connect(&there, Duration::from_secs(30), 1).map(drop).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidValue { given, .. } if given == encoding),
            "{error}"
        );
        conn.batch(&format!("DROP DATABASE {name} (FORCE)")).unwrap();
    }
}

#[test]
fn hosts_that_bring_a_newer_version_at_once_migrate_once_while_others_write() {
    let Ok(url) = std::env::var("TALKTREE_TEST_POSTGRES") else { return };
    let url = format!("{url}schema=m{}", uuid::Uuid::now_v7().simple());
    let connect = || Server::connect(&url, Duration::from_secs(30), 4);
    let old = connect().unwrap();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let hosts: Vec<_> =
            (0..6).map(|_| scope.spawn(|| connect().map(|new| new.open(MORE)))).collect();
        let opened = hosts.into_iter().map(|host| host.join().unwrap());
        // One of them may be late, and finds the new version.
        opened.filter_map(Result::ok).map(Result::unwrap).collect()
    });
    assert!(!ids.is_empty() && ids.iter().all(|id| id == old.id()), "{ids:?}");
    assert_eq!(old.open(MORE).unwrap(), old.id());
    let error = connect().map(drop).unwrap_err();
    assert!(matches!(error, Error::NewerStore { found: 3, supported: 1 }), "{error}");
    let is_valid = "SELECT indisvalid
                      FROM pg_index
                     WHERE indexrelid = to_regclass('more')
                       AND to_regclass('most') IS NOT NULL";
    let is_valid: Option<bool> = old.read(None, |conn| conn.first(is_valid, ())).unwrap();
    assert_eq!(is_valid, Some(true));
}

/// Returns what `read` returns on a server of whose sequence `made` each row takes a number, and how many rows were read.
fn counted<T>(
    server: &Server,
    read: impl Fn(&sql::Connection<'_>) -> BackendResult<T>,
) -> Result<(T, i64)> {
    let written = server.write(Duration::from_secs(30), NO_STOP, |conn| {
        conn.command("CREATE TEMPORARY SEQUENCE made")?;
        let answer = read(conn)?;
        let made = conn.one("SELECT last_value FROM made", ())?;
        conn.command("DROP SEQUENCE made")?;
        Ok((answer, made))
    });
    written.map_err(|error| error.into_error(0))
}

const LONG: &str = "SELECT number, repeat('x', CAST(?1 AS INT)), nextval('made')
   FROM generate_series(1, 10000) AS number";

/// The server sent all rows before the first was read.
#[test]
fn who_stops_early_has_read_few_rows_and_few_bytes() -> Result<()> {
    let Some(server) = server("") else { return Ok(()) };
    for (bytes, wanted, most) in
        [(1_i64, 1, 16), (1, 17, 1_016), (1 << 18, 1, 16), (1 << 18, 40, 44)]
    {
        let ((), made) = counted(&server, |conn| {
            let mut count = 0;
            conn.each(LONG, bytes, |_| {
                count += 1;
                Ok(count < wanted)
            })
        })?;
        assert!(made <= most, "{made} rows of {bytes} bytes were read for {wanted}");
    }
    Ok(())
}

#[test]
fn other_statements_run_while_an_answer_is_read() -> Result<()> {
    let Some(url) = std::env::var("TALKTREE_TEST_POSTGRES").ok() else { return Ok(()) };
    const NUMBERS: &str = "SELECT number FROM generate_series(1, CAST(?1 AS INT)) AS number";
    for prepare in ["", "prepare=yes&"] {
        let url = format!("{url}{prepare}schema=t{}", uuid::Uuid::now_v7().simple());
        let server = Server::connect(&url, Duration::from_secs(30), 1)?;
        let written = server.write(Duration::from_secs(30), NO_STOP, |conn| {
            let (mut outer, mut inner) = (0, 0);
            conn.each(NUMBERS, 2_000_i64, |row| {
                outer += row.get::<i64>(0)?;
                conn.send(ADD, &*outer.to_string())?;
                if outer == 1 {
                    conn.each(NUMBERS, 1_999_i64, |row| {
                        inner += row.get::<i64>(0)?;
                        conn.ask_ahead(HAS, "1")?;
                        assert!(conn.has(HAS, "1")?);
                        Ok(true)
                    })?;
                }
                Ok(true)
            })?;
            let stored: i64 = conn.one("SELECT count(*) FROM setting WHERE value = 'x'", ())?;
            let open: i64 = conn.one("SELECT count(*) FROM pg_cursors WHERE name <> ''", ())?;
            Ok((outer, inner, stored, open))
        });
        let found = written.map_err(|error| error.into_error(0))?;
        assert_eq!(found, (2_001_000, 1_999_000, 2_000, 0));
    }
    Ok(())
}
