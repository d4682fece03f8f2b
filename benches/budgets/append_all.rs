//! What do 10 000 messages in one append cost?
//!
//! The call first commits the messages, so that everyone can read and search them, and then indexes them. The first row
//! ends when another connection sees the messages, the second when the call returns.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use talktree::{Durability, Message};

use crate::floor::{self, Ready};
use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, indexing};

const COUNT: usize = 10_000;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let messages = Speaker::new(3, Length::Chat).messages(COUNT);
    let pair = alternate(
        Rounds::exactly(11),
        || floor_rows(bench, &messages, false),
        || Ok(ours(bench, &messages)?.0),
    )?;
    let row = Row::seconds("append_all of 10k: until committed", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()).within(1.5));
    let pair = alternate(
        Rounds::exactly(7),
        || floor_rows(bench, &messages, true),
        || Ok(ours(bench, &messages)?.1),
    )?;
    let row =
        Row::seconds("append_all of 10k: until indexed; floor indexes too", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()));
    Ok(())
}

/// Returns the time until another connection could read the messages, and the time until the call returned.
fn ours(bench: &Bench, messages: &[Message]) -> Result<(Duration, Duration)> {
    let path = bench.stores.fresh("all-ours.db")?;
    let store = open(&path, Durability::Full)?;
    let chat = store.session("chat")?;
    let other = floor::open(&path, Durability::Full)?;
    let messages = messages.to_vec();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| when_seen(other));
        chat.append_all(messages)?;
        let returned = start.elapsed();
        let seen = seen.join().map_err(|_| "the reader panicked")??;
        Ok((seen - start, returned))
    })
}

fn when_seen(other: Connection) -> rusqlite::Result<Instant> {
    let mut look = other.prepare("SELECT EXISTS (SELECT 1 FROM session WHERE next > 1)")?;
    while !look.query_row([], |row| row.get(0))? {
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(Instant::now())
}

/// Inserts the rows in one transaction, and each text into a full-text index if `is_indexed`.
fn floor_rows(bench: &Bench, messages: &[Message], is_indexed: bool) -> Result<Duration> {
    let conn = floor::open(&bench.stores.fresh("all-floor.db")?, Durability::Full)?;
    floor::create(&conn)?;
    conn.execute_batch(indexing::TABLE)?;
    let ready: Vec<Ready> = messages.iter().map(Ready::new).collect::<Result<_>>()?;
    let texts: Vec<_> = (1..).zip(messages.iter().map(Message::text)).collect();
    timed(|| {
        floor::run(&conn, "BEGIN IMMEDIATE")?;
        for (n, row) in ready.iter().enumerate() {
            floor::insert(&conn, n as i64 + 1, row)?;
        }
        floor::set_head(&conn, COUNT as i64, 0)?;
        if is_indexed {
            indexing::insert(&conn, &texts)?;
        }
        floor::run(&conn, "COMMIT")
    })
}
