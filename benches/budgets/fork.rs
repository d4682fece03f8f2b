//! What does a fork cost beside a bare copy of the same rows into the same indexes?

use rusqlite::Connection;
use talktree::{Durability, Session, Store};

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, floor};

const COUNT: usize = 10_000;

const COPY: &str = "INSERT INTO message
        (address, parent, id, role, parts, metadata, extra, tokens, hidden, origin, created_at)
 SELECT address + ?1, parent + ?1, id, role, parts, metadata, extra, tokens, hidden, address, created_at
   FROM message
  WHERE address BETWEEN ?2 AND ?3";

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    // Two equal stores, so that both sides grow at the same rate.
    let (_kept, chat) = build(bench, "fork-ours.db")?;
    drop(build(bench, "fork-floor.db")?);
    let conn = floor::open(&bench.stores.dir().join("fork-floor.db"), Durability::Normal)?;
    let head = chat.head()?.ok_or("an empty chat")?;
    let mut copies = 0;
    let floor = || {
        copies += 1;
        copy(&conn, copies)
    };
    let ours = || timed(|| Ok(chat.fork(&head, "fork")?));
    let pair = alternate(Rounds::exactly(15), floor, ours)?;
    let row = Row::seconds("fork at 10k", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()).within(1.2));
    Ok(())
}

fn build(bench: &Bench, name: &str) -> Result<(Store, Session)> {
    let store = open(&bench.stores.fresh(name)?, Durability::Normal)?;
    let chat = store.session("chat")?;
    chat.append_all(Speaker::new(8, Length::Chat).messages(COUNT))?;
    Ok((store, chat))
}

fn copy(conn: &Connection, number: i64) -> Result<std::time::Duration> {
    timed(|| {
        floor::run(conn, "BEGIN IMMEDIATE")?;
        let range = [number << 32, 1 << 32, (2 << 32) - 1];
        let count = conn.prepare_cached(COPY)?.execute(range)?;
        assert_eq!(count, COUNT);
        floor::run(conn, "COMMIT")
    })
}
