//! How long does it take to open a large store?

use talktree::{Durability, Store};

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::table::Row;
use crate::{Bench, Result, floor, short};

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let path = bench.stores.close(bench.million)?;
    let floor = || {
        let start = std::time::Instant::now();
        let conn = floor::open(&path, Durability::Full)?;
        conn.query_row("SELECT count(*) FROM session", [], |_| Ok(()))?;
        Ok(start.elapsed())
    };
    let mut kept = None;
    let pair = alternate(Rounds::exactly(50), floor, || {
        drop(kept.take());
        timed(|| {
            kept = Some(Store::open(&path)?);
            Ok(())
        })
    })?;
    let row = Row::seconds(format!("open a store of {}", short(bench.million)), pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()).at_most(1e-3));
    drop(kept.take());
    let pair = alternate(Rounds::exactly(50), floor, || {
        drop(kept.take());
        timed(|| {
            let store = Store::open(&path)?;
            let read = store.session("long")?.page().limit(50).run()?;
            kept = Some(store);
            Ok(read)
        })
    })?;
    let row = Row::seconds("  and read the last 50 of a chat", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()));
    last_50(bench)
}

/// Opens a store and reads the end of its only chat: beside a bare table of the same messages, and beside SQLite on the same
/// file, which shows what it takes to read the schema.
fn last_50(bench: &mut Bench) -> Result<()> {
    const COUNT: usize = 10_000;
    let ours = bench.stores.fresh("last-ours.db")?;
    let bare = bench.stores.fresh("last-floor.db")?;
    let messages = Speaker::new(14, Length::Chat).messages(COUNT);
    let conn = floor::open(&bare, Durability::Full)?;
    floor::create(&conn)?;
    floor::run(&conn, "BEGIN")?;
    for (n, message) in messages.iter().enumerate() {
        floor::insert(&conn, n as i64 + 1, &floor::Ready::new(message)?)?;
    }
    floor::set_head(&conn, COUNT as i64, 0)?;
    floor::run(&conn, "COMMIT")?;
    drop(conn);
    Store::open(&ours)?.session("chat")?.append_all(messages)?;
    for (file, name, budget) in
        [(&bare, "", Some(1.5)), (&ours, "; floor: SQLite on the same file", None)]
    {
        let (mut kept, mut kept_bare) = (None, None);
        let floor = || {
            drop(kept_bare.take());
            timed(|| {
                let conn = floor::open(file, Durability::Full)?;
                let read = floor::read(&conn, LAST_50, [])?;
                kept_bare = Some(conn);
                Ok(read)
            })
        };
        let pair = alternate(Rounds::exactly(50), floor, || {
            drop(kept.take());
            timed(|| {
                let store = Store::open(&ours)?;
                let read = store.session("chat")?.page().limit(50).run()?;
                kept = Some(store);
                Ok(read)
            })
        })?;
        let work = format!("open a store of 10k and read the last 50{name}");
        let row = Row::seconds(work, pair.ours.median()).floor(pair.floor.median());
        bench.table.add(match budget {
            Some(budget) => row.within(budget),
            None => row,
        });
    }
    Ok(())
}

const LAST_50: &str = "SELECT parent, id, role, parts, metadata, hidden, created_at
   FROM message
  WHERE address <= (SELECT head FROM session WHERE key = 1)
  ORDER BY address DESC
  LIMIT 50";
