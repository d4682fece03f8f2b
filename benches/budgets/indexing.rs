//! What does it cost to index 10 000 pending messages, beside a bare insert of the same text?
//!
//! The library indexes pending messages a few at a time after appends, and all before a search. Here all messages are
//! made pending, and a search indexes them.

use std::time::Duration;

use rusqlite::Connection;
use talktree::{Durability, Message};

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, floor};

const COUNT: usize = 10_000;
pub(crate) const TABLE: &str = "CREATE VIRTUAL TABLE search USING fts5 (
    text, tools, content = '',
    tokenize = \"porter unicode61 remove_diacritics 2 categories 'L* N* Co So'\");";

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let texts = texts();
    let numbered: Vec<_> = (1..).zip(texts.iter().cloned()).collect();
    let floor = || {
        let conn = floor::open(&bench.stores.fresh("index-floor.db")?, Durability::Normal)?;
        conn.execute_batch(TABLE)?;
        timed(|| {
            floor::run(&conn, "BEGIN IMMEDIATE")?;
            insert(&conn, &numbered)?;
            floor::run(&conn, "COMMIT")
        })
    };
    let pair = alternate(Rounds::exactly(7), floor, || catch_up(bench, &texts))?;
    let row = Row::seconds("catch-up indexing of 10k", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()).within(1.3));
    Ok(())
}

/// Inserts texts into the index, each with its number.
pub(crate) fn insert(conn: &Connection, texts: &[(usize, String)]) -> Result<()> {
    let mut insert =
        conn.prepare_cached("INSERT INTO search (rowid, text, tools) VALUES (?1, ?2, '')")?;
    for (n, text) in texts {
        insert.execute((n, text))?;
    }
    Ok(())
}

/// Returns ASCII texts: talktree indexes them unchanged.
fn texts() -> Vec<String> {
    let mut speaker = Speaker::new(10, Length::Chat);
    std::iter::repeat_with(|| speaker.text()).filter(|text| text.is_ascii()).take(COUNT).collect()
}

fn catch_up(bench: &Bench, texts: &[String]) -> Result<Duration> {
    let path = bench.stores.fresh("index-ours.db")?;
    let store = open(&path, Durability::Normal)?;
    store.session("chat")?.append_all(texts.iter().map(Message::user))?;
    // Make all messages pending again.
    let conn = floor::open(&path, Durability::Normal)?;
    conn.execute_batch(
        "INSERT INTO search (search) VALUES ('delete-all');
         UPDATE session SET unindexed = 1;",
    )?;
    let time = timed(|| Ok(store.search("nothing-of-the-kind").run()?))?;
    let left: usize =
        conn.query_row("SELECT count(unindexed) FROM session", [], |row| row.get(0))?;
    if left > 0 {
        return Err("messages are pending after a search".into());
    }
    Ok(time)
}
