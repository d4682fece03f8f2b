//! How long does it take to open a large store?

use talktree::{Durability, Store};

use crate::measure::{Rounds, alternate, timed};
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
    bench.table.add(row.floor(pair.floor.median()).at_most(5e-3));
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
    Ok(())
}
