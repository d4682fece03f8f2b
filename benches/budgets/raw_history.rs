//! What does it cost to read 10 000 messages, beside a bare scan of their rows?

use talktree::Durability;

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, floor};

const SCAN: &str = "SELECT parent, id, role, parts, metadata, hidden, created_at
   FROM message
  WHERE address BETWEEN ?1 AND ?2
  ORDER BY address";

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let path = bench.stores.fresh("raw.db")?;
    let store = open(&path, Durability::Normal)?;
    let chat = store.session("chat")?;
    chat.append_all(Speaker::new(4, Length::Chat).messages(10_000))?;
    let conn = floor::open(&path, Durability::Normal)?;
    let floor = || timed(|| floor::read(&conn, SCAN, [1_i64 << 32, (2_i64 << 32) - 1]));
    let pair = alternate(Rounds::default(), floor, || timed(|| Ok(chat.raw_history()?)))?;
    let row = Row::seconds("raw history of 10k", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()).within(1.1));
    let pair = alternate(Rounds::default(), floor, || timed(|| Ok(chat.history()?)))?;
    let row = Row::seconds("history of 10k without compactions", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()));
    Ok(())
}
