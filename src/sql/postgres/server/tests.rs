//! What begins a connection and a transaction, and migrations, on the server of the tests; without one nothing of it runs.

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
const COUNT: &str = "SELECT count(*) FROM setting WHERE value = 'x'";

/// Connects to a new store, with more parameters.
fn server(more: &str) -> Option<Server> {
    let url = std::env::var("TALKTREE_TEST_POSTGRES").ok()?;
    let url = format!("{url}schema=s{}{more}", uuid::Uuid::now_v7().simple());
    Some(Server::connect(&url, Duration::from_secs(30), 1).unwrap())
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
    server.vacuum().unwrap();
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
