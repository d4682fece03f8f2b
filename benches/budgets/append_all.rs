//! What do 10 000 messages in one append cost?
//!
//! Once they are committed, and readable and searchable by everyone, the same call goes on to index
//! them; the first row ends where another connection sees them, the second when the call returns.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use talktree::{Durability, Message};

use crate::data::{Length, Speaker};
use crate::floor::{self, Ready};
use crate::measure::{Rounds, alternate, timed};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, index};

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
    let row = Row::seconds("append_all of 10k: until indexed, floor too", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()));
    Ok(())
}

/// Returns when the messages could be read by others, and when the call returned.
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

/// The rows in one transaction, and the text of each in a full-text index if that is asked for.
fn floor_rows(bench: &Bench, messages: &[Message], is_indexed: bool) -> Result<Duration> {
    let conn = floor::open(&bench.stores.fresh("all-floor.db")?, Durability::Full)?;
    floor::create(&conn)?;
    conn.execute_batch(index::TABLE)?;
    let ready: Vec<Ready> = messages.iter().map(Ready::new).collect::<Result<_>>()?;
    let texts: Vec<String> = messages.iter().map(Message::text).collect();
    timed(|| {
        floor::run(&conn, "BEGIN IMMEDIATE")?;
        for (n, row) in ready.iter().enumerate() {
            floor::insert(&conn, n as i64 + 1, row)?;
        }
        floor::set_head(&conn, COUNT as i64, 0)?;
        if is_indexed {
            index::insert(&conn, &texts)?;
        }
        floor::run(&conn, "COMMIT")
    })
}
