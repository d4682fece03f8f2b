//! Which writes share a commit, in which order, and what each is told. A first write holds its turn until the others
//! wait in a known order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::connection::{Config, Database};
use super::MAX_MEMBERS;
use crate::error::{Error, Result};
use crate::sql::{BackendResult, Connection};

/// A store with a table of numbers, each with the id that it got.
struct Numbers {
    database: Database,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Numbers {
    fn new(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.db");
        let mut database = Database::open(&path, config).unwrap();
        database.writers.max_time = Duration::MAX;
        let create = "CREATE TABLE number (id INTEGER PRIMARY KEY AUTOINCREMENT, value INTEGER)";
        database.write(|conn| Ok(conn.sqlite()?.execute_batch(create)?)).unwrap();
        Self { database, path, _folder: folder }
    }

    /// Returns the committed numbers in the order in which they were inserted.
    fn committed(&self) -> Vec<i64> {
        let read = |conn: &Connection| -> BackendResult<Vec<i64>> {
            let mut statement = conn.sqlite()?.prepare("SELECT value FROM number ORDER BY id")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.database.read(read).unwrap()
    }

    /// Lets a short write hold the turn until `count` more writes wait in the order of their numbers, from 1. Returns
    /// what each write returned, the first one first.
    fn in_line<T: Send + Default>(
        &self,
        count: usize,
        write: impl Fn(usize) -> Result<T> + Sync,
    ) -> Vec<thread::Result<Result<T>>> {
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let held = self.database.write_short(|conn| {
                    insert(conn, 0)?;
                    self.until_waiting(count);
                    Ok(T::default())
                });
                Ok(held)
            });
            let others: Vec<_> = (1..=count)
                .map(|number| {
                    // The first write has the turn before others ask for it.
                    self.until_asked(number - 1);
                    let write = &write;
                    let other =
                        scope.spawn(move || catch_unwind(AssertUnwindSafe(|| write(number))));
                    // With the last one in the queue, the first goes on.
                    if number < count {
                        self.until_waiting(number);
                    }
                    other
                })
                .collect();
            std::iter::once(first).chain(others).map(|write| write.join().unwrap()).collect()
        })
    }

    fn until_waiting(&self, count: usize) {
        while self.database.writers.waiting() < count {
            thread::yield_now();
        }
    }

    fn until_asked(&self, before: usize) {
        while before == 0 && self.database.writers.is_idle() {
            thread::yield_now();
        }
    }
}

/// Inserts a number and checks what SQLite says about it.
fn insert(conn: &Connection, number: usize) -> BackendResult<i64> {
    let count =
        conn.sqlite()?.execute("INSERT INTO number (value) VALUES (?1)", [number as i64])?;
    assert_eq!((count, conn.sqlite()?.changes()), (1, 1));
    let id = conn.sqlite()?.last_insert_rowid();
    let value: i64 =
        conn.sqlite()?
            .query_row("SELECT value FROM number WHERE id = ?1", [id], |row| row.get(0))?;
    assert_eq!(value, number as i64);
    Ok(id)
}

fn refused() -> Error {
    Error::Unsupported { what: "this number" }
}

#[test]
fn short_writes_that_wait_share_a_commit_in_the_order_in_which_they_came() {
    let numbers = Numbers::new(Config::default());
    let told = AtomicUsize::new(0);
    let answers = numbers.in_line(6, |number| {
        let answer = numbers.database.write_short(|conn| {
            // Nobody is told of a commit, and no reader sees it, before the last one has written.
            assert_eq!((told.load(Ordering::SeqCst), numbers.committed()), (0, vec![]));
            insert(conn, number)
        });
        told.fetch_add(1, Ordering::SeqCst);
        answer
    });
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_ok()));
    assert_eq!(numbers.committed(), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_write_that_fails_or_panics_is_rolled_back_alone() {
    let numbers = Numbers::new(Config::default());
    let answers = numbers.in_line(6, |number| {
        numbers.database.write_short(|conn| {
            let id = insert(conn, number)?;
            match number {
                2 | 6 => Err(refused().into()),
                4 => panic!("number {number}"),
                _ => Ok(id),
            }
        })
    });
    let told: Vec<String> = answers
        .into_iter()
        .map(|answer| match answer {
            Ok(Ok(_)) => "ok".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.downcast_ref::<String>().unwrap().clone(),
        })
        .collect();
    let refused = refused().to_string();
    assert_eq!(told, ["ok", "ok", &refused, "ok", "number 4", "ok", &refused]);
    assert_eq!(numbers.committed(), [0, 1, 3, 5]);
}

#[test]
fn the_next_write_begins_a_transaction_if_the_first_one_fails() {
    let numbers = Numbers::new(Config::default());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            numbers.database.write_short(|conn| -> BackendResult<()> {
                insert(conn, 0)?;
                numbers.until_waiting(1);
                Err(refused().into())
            })
        });
        numbers.until_asked(0);
        numbers.database.write_short(|conn| insert(conn, 1)).unwrap();
        assert!(matches!(first.join().unwrap(), Err(Error::Unsupported { .. })));
    });
    assert_eq!(numbers.committed(), [1]);
}

#[test]
fn a_long_write_shares_no_commit_and_keeps_its_place() {
    let numbers = Numbers::new(Config::default());
    let answers = numbers.in_line(4, |number| match number {
        2 => numbers.database.write(|conn| {
            assert_eq!(numbers.committed(), [0, 1]);
            // Nothing short is done beside it, or it would wait for the long one.
            assert_eq!(numbers.database.write_step(|conn| insert(conn, 9)).unwrap(), None);
            insert(conn, 2)
        }),
        _ => numbers.database.write_short(|conn| {
            assert_eq!(numbers.committed(), [0, 1, 2][..[0, 0, 0, 3, 3][number]]);
            insert(conn, number)
        }),
    });
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_ok()));
    assert_eq!(numbers.committed(), [0, 1, 2, 3, 4]);
}

#[test]
fn one_commit_holds_a_limited_number_of_writes() {
    let numbers = Numbers::new(Config { is_synchronous: false, ..Config::default() });
    let count = MAX_MEMBERS + 10;
    let most = Mutex::new(0);
    let answers = numbers.in_line(count, |number| {
        numbers.database.write_short(|conn| {
            let before = number - numbers.committed().len();
            let mut most = most.lock().unwrap();
            *most = before.max(*most);
            insert(conn, number)
        })
    });
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_ok()));
    assert_eq!(numbers.committed(), (0..=count as i64).collect::<Vec<_>>());
    let most = most.into_inner().unwrap();
    assert!((1..MAX_MEMBERS).contains(&most), "{most} writes were in the transaction of another");
}

#[test]
fn nobody_joins_a_transaction_that_is_too_old() {
    let mut numbers = Numbers::new(Config::default());
    numbers.database.writers.max_time = Duration::ZERO;
    let answers = numbers.in_line(3, |number| {
        numbers.database.write_short(|conn| {
            assert_eq!(numbers.committed().len(), number);
            insert(conn, number)
        })
    });
    assert!(answers.into_iter().all(|answer| answer.unwrap().is_ok()));
}

#[test]
fn a_commit_that_fails_is_an_error_of_every_write_in_it() {
    let numbers = Numbers::new(Config::default());
    let elsewhere = numbers.path.with_extension("moved");
    let answers = numbers.in_line(3, |number| {
        numbers.database.write_short(|conn| {
            if number == 2 {
                std::fs::rename(&numbers.path, &elsewhere).unwrap();
                return Err(refused().into());
            }
            insert(conn, number)
        })
    });
    for answer in answers {
        let answer = answer.unwrap();
        assert!(matches!(answer, Err(Error::StoreMoved { .. })), "{answer:?}");
    }
    std::fs::rename(&elsewhere, &numbers.path).unwrap();
    assert_eq!(numbers.committed(), [0; 0]);
    numbers.database.write_short(|conn| insert(conn, 4)).unwrap();
    assert_eq!(numbers.committed(), [4]);
}

#[test]
fn a_failed_system_call_below_one_write_fails_all_of_its_transaction() {
    let numbers = Numbers::new(Config::default());
    let answers = numbers.in_line(4, |number| {
        numbers.database.write_short(|conn| match number {
            2 => {
                let failed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_READ);
                Err(rusqlite::Error::SqliteFailure(failed, None).into())
            }
            _ => insert(conn, number),
        })
    });
    let are_stored: Vec<bool> = answers.into_iter().map(|answer| answer.unwrap().is_ok()).collect();
    assert_eq!(are_stored, [false, false, false, true, true]);
    assert_eq!(numbers.committed(), [3, 4]);
}
