//! How many pages does it take to resume one of many chats that were written in turns?
//!
//! The floor is the obvious design: one table of messages in the order they were written, with an index on
//! (session, position). Cold means that SQLite's cache is empty; the system's is not.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use talktree::Durability;

use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::{Row, Unit};
use crate::{Bench, Result, floor, short};

/// Turns of a chat; each is a question and an answer.
const TURNS: usize = 30;
const ROUNDS: usize = 40;

const LAST_50: &str = "SELECT parent, id, role, parts, metadata, hidden, created_at
   FROM message
  WHERE session = ?1
  ORDER BY n DESC
  LIMIT 50";

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    for sessions in [1, bench.sessions] {
        let ours = bench.stores.fresh("cold-ours.db")?;
        let floor = bench.stores.fresh("cold-floor.db")?;
        build_ours(&ours, sessions)?;
        build_floor(&floor, sessions)?;
        let mut speaker = Speaker::new(13, Length::Short);
        let (mut seen_floor, mut seen_ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let session = speaker.below(sessions);
            seen_floor.push(read_floor(&floor, session)?);
            seen_ours.push(read_ours(&ours, session)?);
        }
        let work = format!("last 50 of one of {}, cold", short(sessions));
        for (unit, what, take) in [
            (Unit::Seconds, "time", (|seen| seen.0) as fn(&(f64, f64)) -> f64),
            (Unit::Count, "pages", |seen| seen.1),
        ] {
            let row = Row::new(format!("{work}: {what}"), unit, median(&seen_ours, take));
            bench.table.add(row.floor(median(&seen_floor, take)));
        }
    }
    Ok(())
}

fn median(seen: &[(f64, f64)], take: fn(&(f64, f64)) -> f64) -> f64 {
    let mut figures: Vec<f64> = seen.iter().map(take).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn build_ours(path: &Path, sessions: usize) -> Result<()> {
    let start = Instant::now();
    let store = open(path, Durability::Normal)?;
    let chats: Vec<_> =
        (0..sessions).map(|n| store.session(name(n))).collect::<std::result::Result<_, _>>()?;
    let mut speaker = Speaker::new(12, Length::Short);
    for _ in 0..TURNS {
        for chat in &chats {
            chat.append_all(speaker.messages(2))?;
        }
    }
    if sessions > 1 {
        let turns = sessions * TURNS;
        eprintln!("{turns} turns of {sessions} chats in {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn name(session: usize) -> String {
    format!("chat-{session}")
}

fn build_floor(path: &Path, sessions: usize) -> Result<()> {
    let conn = floor::open(path, Durability::Normal)?;
    conn.execute_batch(
        "CREATE TABLE message (
             key INTEGER PRIMARY KEY, session INTEGER, n INTEGER, parent INTEGER, id TEXT, role TEXT,
             parts TEXT, metadata TEXT, hidden INTEGER, created_at INTEGER);
         CREATE UNIQUE INDEX message_id ON message (session, id);
         CREATE INDEX place ON message (session, n);
         BEGIN",
    )?;
    let mut insert = conn.prepare(
        "INSERT INTO message (session, n, parent, id, role, parts, hidden, created_at)
         VALUES (?1, ?2, ?2 - 1, ?3, 'user', ?4, 0, 0)",
    )?;
    let mut speaker = Speaker::new(12, Length::Short);
    for turn in 0..TURNS {
        for session in 0..sessions {
            for (place, message) in speaker.messages(2).iter().enumerate() {
                let parts = serde_json::to_string(&message.parts)?;
                insert.execute((session, turn * 2 + place, message.id.as_str(), parts))?;
            }
        }
    }
    drop(insert);
    floor::run(&conn, "COMMIT")
}

fn read_ours(path: &Path, session: usize) -> Result<(f64, f64)> {
    let store = open(path, Durability::Normal)?;
    // The first read opens a connection and reads the schema.
    store.session("nobody")?.head()?;
    let chat = store.session(name(session))?;
    let (time, pages, count) = counted(|| Ok(chat.page().limit(50).run()?.messages.len()))?;
    assert_eq!(count, 50);
    Ok((time.as_secs_f64(), pages))
}

fn read_floor(path: &Path, session: usize) -> Result<(f64, f64)> {
    let conn: Connection = floor::open(path, Durability::Normal)?;
    floor::read(&conn, LAST_50, [-1])?;
    let (time, pages, count) = counted(|| Ok(floor::read(&conn, LAST_50, [session])?.len()))?;
    assert_eq!(count, 50);
    Ok((time.as_secs_f64(), pages))
}

/// Returns how long `work` took and how many pages it read.
fn counted<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, f64, T)> {
    let before = bytes_read()?;
    let start = Instant::now();
    let answer = work()?;
    let time = start.elapsed();
    Ok((time, ((bytes_read()? - before) / 4096.0).floor(), answer))
}

/// Returns how many bytes the process has read; SQLite reads each page as 4 096 bytes.
fn bytes_read() -> Result<f64> {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_else(|_| "rchar: 0".to_owned());
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).ok_or("no rchar")?;
    Ok(line.parse()?)
}
