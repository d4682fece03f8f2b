//! The tables of a store as another program reads and writes them: in its file, or in its schema, where the tests run on a server.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use talktree::{Erased, ErasureProof, Error, Store};

use crate::common::server::programs;

/// Where the tables of a store are.
pub enum Tables {
    File(PathBuf),
    Schema(String),
}

impl Tables {
    /// Returns those of the store at a path.
    pub fn of(path: &Path) -> Self {
        if !is_on_server() {
            return Self::File(path.to_owned());
        }
        // As the library names it.
        let path = std::path::absolute(path).unwrap();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
        Self::Schema(format!("t{hash:016x}"))
    }

    /// Runs statements; returns how many rows the last one changed.
    #[track_caller]
    pub fn run(&self, sql: &str) -> usize {
        match self {
            Self::File(path) => {
                let file = rusqlite::Connection::open(path).unwrap();
                file.execute_batch(sql).unwrap();
                usize::try_from(file.changes()).unwrap()
            }
            // `UPDATE 3`, `INSERT 0 1`
            Self::Schema(schema) => {
                let tags = answer(schema, sql);
                let last = tags.lines().last().unwrap_or_default();
                last.rsplit(' ').next().unwrap_or_default().parse().unwrap_or_default()
            }
        }
    }

    /// Returns the one value that a query asks for, as text.
    #[track_caller]
    pub fn value(&self, sql: &str) -> String {
        match self {
            Self::File(path) => {
                let file = rusqlite::Connection::open(path).unwrap();
                let sql = format!("SELECT CAST(({sql}) AS TEXT)");
                file.query_row(&sql, [], |row| row.get(0)).unwrap()
            }
            Self::Schema(schema) => answer(schema, sql).trim_end().to_owned(),
        }
    }

    /// Returns how many transactions the write-ahead log of a file holds; of a server, how many have written its messages and sessions.
    #[track_caller]
    pub fn commits(&self) -> usize {
        let Self::File(path) = self else {
            let by = "SELECT CAST(xmin AS TEXT) FROM message UNION SELECT CAST(xmin AS TEXT) FROM session";
            return self.value(&format!("SELECT count(*) FROM ({by}) AS it")).parse().unwrap();
        };
        let log = std::fs::read(path.with_extension("db-wal")).unwrap();
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let frame = 24 + number(8) as usize;
        // The header of a frame says how large the database is after it; 0 if it is not the last of its commit.
        (32..log.len() - 23).step_by(frame).filter(|at| number(at + 4) > 0).count()
    }

    /// Returns another program, which locks the store against every write.
    #[track_caller]
    pub fn locker(&self) -> Locker {
        match self {
            Self::File(path) => Locker::File(rusqlite::Connection::open(path).unwrap()),
            Self::Schema(schema) => {
                let mut psql = psql(schema).arg("-q").spawn().unwrap();
                let answers = BufReader::new(psql.stdout.take().unwrap());
                Locker::Schema(psql, answers)
            }
        }
    }

    /// Lets every change of a kind fail, such as `UPDATE OF metadata ON message`, until its table is allowed to change again.
    #[track_caller]
    pub fn refuse(&self, change: &str) {
        self.run(&match self {
            Self::File(_) => {
                format!("CREATE TRIGGER refuse BEFORE {change} BEGIN SELECT RAISE(ABORT, 'no'); END")
            }
            Self::Schema(_) => format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
                 CREATE TRIGGER refuse BEFORE {change} FOR EACH ROW EXECUTE FUNCTION refuse()"
            ),
        });
    }

    #[track_caller]
    pub fn allow(&self, table: &str) {
        self.run(&match self {
            Self::File(_) => "DROP TRIGGER refuse".to_owned(),
            Self::Schema(_) => format!("DROP TRIGGER refuse ON {table}"),
        });
    }

    /// Makes a number the last key that a table has given.
    #[track_caller]
    pub fn set_last_key(&self, table: &str, key: i64) {
        match self {
            Self::File(_) => {
                self.run(&format!(
                    "DELETE FROM sqlite_sequence WHERE name = '{table}';
                     INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {key})"
                ));
            }
            Self::Schema(_) => {
                self.value(&format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', 'key'), {key})"
                ));
            }
        }
    }

    /// Replaces the entry of a message in the index by one with a word, or with none.
    #[track_caller]
    pub fn index(&self, address: i64, word: Option<&str>) {
        let (key, columns) = match self {
            Self::File(_) => ("rowid", "text, tools"),
            Self::Schema(_) => ("address", "part, terms"),
        };
        self.run(&format!("DELETE FROM search WHERE {key} = {address}"));
        if let Some(word) = word {
            let entry = match self {
                Self::File(_) => format!("'{word}', ''"),
                Self::Schema(_) => format!("0, 't{word}:2'"),
            };
            self.run(&format!("INSERT INTO search ({key}, {columns}) VALUES ({address}, {entry})"));
        }
    }

    /// Makes the tables those of another version.
    #[track_caller]
    pub fn set_version(&self, version: u32) {
        self.run(&match self {
            Self::File(_) => format!("PRAGMA user_version = {version}"),
            Self::Schema(_) => {
                format!("UPDATE setting SET value = '{version}' WHERE name = 'schema_version'")
            }
        });
    }

    /// Returns the bytes of the file, which nobody has open, or all rows.
    #[track_caller]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::File(path) => std::fs::read(path).unwrap(),
            Self::Schema(_) => self.rows().unwrap_or_default().into_bytes(),
        }
    }

    /// Returns whether this process has the store open. A server lists a closed connection for a moment.
    #[track_caller]
    pub fn is_open(&self) -> bool {
        let count =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_schema()";
        match self {
            Self::File(path) => Store::is_open_file(path),
            Self::Schema(_) => (0..20).all(|_| {
                std::thread::sleep(Duration::from_millis(50));
                self.value(count) != "0"
            }),
        }
    }

    /// Returns all rows of all tables of a server as text, a line each; `None` of a file.
    #[track_caller]
    pub fn rows(&self) -> Option<String> {
        let Self::Schema(schema) = self else { return None };
        let each = "SELECT format('SELECT it FROM %I AS it', tablename) FROM pg_tables WHERE schemaname = current_schema() \\gexec";
        Some(answer(schema, each))
    }
}

/// Returns whether stores at a path are on a server.
pub fn is_on_server() -> bool {
    cfg!(talktree_on_postgres) && std::env::var_os("TALKTREE_TEST_POSTGRES").is_some()
}

/// Proves an erasure, which is complete. A server has no proof.
#[track_caller]
pub fn prove(erased: &Erased) -> Option<ErasureProof> {
    assert!(erased.is_complete());
    match erased.prove() {
        Err(Error::Unsupported { .. }) if is_on_server() => None,
        proof => {
            let proof = proof.unwrap();
            assert_eq!(proof.found, 0, "{proof:?}");
            Some(proof)
        }
    }
}

/// A program that holds the lock of every write: that of a file, or of the table of sessions, whose row a write locks first.
#[derive(Debug)]
pub enum Locker {
    File(rusqlite::Connection),
    Schema(Child, BufReader<ChildStdout>),
}

impl Locker {
    /// Waits for the lock.
    #[track_caller]
    pub fn lock(&mut self) {
        self.run("BEGIN IMMEDIATE", "BEGIN; LOCK TABLE session IN EXCLUSIVE MODE");
    }

    #[track_caller]
    pub fn unlock(&mut self) {
        self.run("COMMIT", "COMMIT");
    }

    #[track_caller]
    fn run(&mut self, on_file: &str, on_server: &str) {
        match self {
            Self::File(file) => file.execute_batch(on_file).unwrap(),
            Self::Schema(psql, answers) => {
                let input = psql.stdin.as_mut().unwrap();
                writeln!(input, "{on_server}; SELECT 'done';").unwrap();
                let mut line = String::new();
                answers.read_line(&mut line).unwrap();
                assert_eq!(line, "done\n");
            }
        }
    }
}

/// The program ends with its input, and its lock with it.
impl Drop for Locker {
    fn drop(&mut self) {
        if let Self::Schema(psql, _) = self {
            drop(psql.stdin.take());
            psql.wait().unwrap();
        }
    }
}

#[track_caller]
fn answer(schema: &str, sql: &str) -> String {
    let mut psql = psql(schema).spawn().unwrap();
    psql.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn psql(schema: &str) -> Command {
    let url = std::env::var("TALKTREE_TEST_POSTGRES").unwrap();
    let mut psql = Command::new(programs().unwrap_or_default().join("psql"));
    psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", url.trim_end_matches(['&', '?'])]);
    psql.env("PGOPTIONS", format!("-c search_path={schema} -c client_min_messages=warning"));
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    psql
}
