//! The large store that is searched; it is kept between runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OpenFlags};
use talktree::{Durability, Message, Store};

use crate::Result;
use crate::corpus::Corpus;

/// Raised when the texts change, so that an old store is not used.
const VERSION: u32 = 3;
const PER_SESSION: usize = 200;
/// The seconds from one message to the next, and the time of the first: the start of 2020.
const SECONDS: i64 = 60;
const START: i64 = 1_577_836_800;

/// The session with a tenth of all messages.
pub(crate) const LARGE: &str = "large";

pub(crate) struct Sizes {
    pub(crate) file: u64,
    /// Of the index, without the texts.
    pub(crate) index: u64,
}

/// Returns the store with this many messages, all of them indexed, and its path.
pub(crate) fn open(corpus: &Corpus, messages: usize) -> Result<(Store, PathBuf)> {
    // Cargo names a folder of the build for the files of benchmarks.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finding");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("speed-{VERSION}-{messages}.db"));
    if path.exists() {
        match Store::open(&path) {
            Ok(store) => {
                store.search("anything").run()?;
                return Ok((store, path));
            }
            Err(error) => {
                println!("{} cannot be used and is written again: {error}", path.display())
            }
        }
    }
    remove(&path)?;
    let partial = folder.join(format!("speed-{VERSION}-{messages}.partial.db"));
    remove(&partial)?;
    fill(corpus, messages, &partial)?;
    std::fs::rename(&partial, &path)?;
    Ok((Store::open(&path)?, path))
}

fn remove(path: &Path) -> Result<()> {
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        match std::fs::remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn fill(corpus: &Corpus, messages: usize, path: &Path) -> Result<()> {
    let store = Store::options().durability(Durability::Normal).open(path)?;
    let began = Instant::now();
    add(&store, corpus, messages)?;
    let written = began.elapsed();
    let began = Instant::now();
    store.search("anything").run()?;
    println!(
        "{messages} messages written in {:.1} s, the rest indexed in {:.1} s",
        written.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Adds this many messages in chats of their own.
pub(crate) fn add(store: &Store, corpus: &Corpus, messages: usize) -> Result<()> {
    let large = messages / 10;
    let mut done = 0;
    // The large session is in the middle.
    while done < messages {
        let number = done / PER_SESSION;
        let is_large = done >= messages / 2 && done < messages / 2 + PER_SESSION;
        let (name, count) = match is_large {
            true => (LARGE.to_owned(), large),
            false => (format!("chat {number}"), PER_SESSION.min(messages - done)),
        };
        let session = store.session(name)?;
        let mut topic = corpus.topic(number);
        for from in (0..count).step_by(PER_SESSION) {
            // A long session changes its topic, too.
            if from > 0 {
                topic = corpus.topic(number + from);
            }
            let batch = (from..count.min(from + PER_SESSION)).map(|n| {
                let message = match n % 2 {
                    0 => Message::user(topic.text()),
                    _ => Message::assistant(topic.text()),
                };
                message.at(at(done + n))
            });
            session.append_all(batch)?;
        }
        done += count;
    }
    Ok(())
}

/// Returns the time of the n-th message.
pub(crate) fn at(n: usize) -> DateTime<Utc> {
    DateTime::from_timestamp(START + n as i64 * SECONDS, 0).unwrap_or_default()
}

pub(crate) fn sizes(path: &Path) -> Result<Sizes> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // By their prefix, so that a change of the index is measured, too.
    let mut statement = conn.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'search\\_%' ESCAPE '\\'",
    )?;
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<std::result::Result<_, _>>()?;
    let mut index = 0;
    for table in tables {
        let mut columns = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names: Vec<String> = columns
            .query_map([&table], |row| row.get(0))?
            .collect::<std::result::Result<_, _>>()?;
        let bytes: Vec<String> = names
            .iter()
            .map(|name| format!("coalesce(length(CAST({name:?} AS BLOB)), 0)"))
            .collect();
        let sql = format!("SELECT coalesce(sum({}), 0) FROM {table:?}", bytes.join(" + "));
        index += conn.query_row(&sql, [], |row| row.get::<_, u64>(0))?;
    }
    Ok(Sizes { file: std::fs::metadata(path)?.len(), index })
}

/// Appends messages one by one to a new store; returns the time of each append and the bytes of the index.
pub(crate) fn append_cost(corpus: &Corpus, count: usize) -> Result<(Vec<Duration>, u64)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("appends.db");
    let store = Store::options().durability(Durability::Normal).open(&path)?;
    let mut times = Vec::with_capacity(count);
    let mut topic = corpus.topic(0);
    let mut session = store.session("chat 0")?;
    for n in 0..count {
        if n % PER_SESSION == 0 {
            session = store.session(format!("chat {}", n / PER_SESSION))?;
            topic = corpus.topic(n / PER_SESSION);
        }
        let message = Message::user(topic.text());
        let began = Instant::now();
        session.append(message)?;
        times.push(began.elapsed());
    }
    store.search("anything").run()?;
    drop((session, store));
    Ok((times, sizes(&path)?.index))
}
