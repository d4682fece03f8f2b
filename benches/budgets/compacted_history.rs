//! Does a history cost what is visible, however long the conversation is?

use talktree::Durability;

use crate::measure::{Rounds, alternate, repeat, timed_each};
use crate::messages::{Length, Speaker};
use crate::stores::{Sized, open};
use crate::table::Row;
use crate::{Bench, Result, short};

pub(crate) const SUMMARY: &str =
    "They talked about a great many things, and agreed on most of them.";

/// Runs `work` while all but the 20 newest messages of the long session are compacted.
pub(crate) fn with_compacted<T>(sized: &Sized, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let compacted = sized.long.add_compaction(SUMMARY, &sized.first, &sized.before_last_20)?.id;
    let answer = work();
    sized.long.remove_compaction(&compacted)?;
    answer
}

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let sized = bench.stores.sized(bench.million)?;
    let store = open(&bench.stores.fresh("alone.db")?, Durability::Normal)?;
    let alone = store.session("alone")?;
    let shown = sized.long.page().limit(20).run()?.messages;
    alone.append_all(Speaker::new(5, Length::Short).messages(1))?;
    alone.append_all(shown)?;
    let pair = with_compacted(&sized, || {
        assert_eq!(sized.long.history()?.len(), 21);
        assert_eq!(alone.history()?.len(), 21);
        alternate(
            Rounds::default(),
            || timed_each(10, || Ok(alone.history()?)),
            || timed_each(10, || Ok(sized.long.history()?)),
        )
    })?;
    let work = format!("history of {}, 20 visible; floor: only those 20", short(sized.size));
    bench.table.add(Row::seconds(work, pair.ours.median()).floor(pair.floor.median()).within(1.3));
    Ok(())
}

pub(crate) fn flat(bench: &mut Bench) -> Result<()> {
    let mut size = 10_000;
    let small = bench.stores.sized(1_000)?;
    while size <= bench.million {
        let large = bench.stores.sized(size)?;
        let pair = with_compacted(&small, || {
            with_compacted(&large, || {
                alternate(
                    Rounds::default(),
                    || timed_each(10, || Ok(small.long.history()?)),
                    || timed_each(10, || Ok(large.long.history()?)),
                )
            })
        })?;
        let work = format!("history of {}, 20 visible; floor: at 1k", short(size));
        let row = Row::seconds(work, pair.ours.median());
        bench.table.add(row.floor(pair.floor.median()).within(1.3));
        size *= 10;
    }
    let large = bench.stores.sized(bench.million)?;
    let times = repeat(Rounds::exactly(3), || {
        let start = std::time::Instant::now();
        let compacted = large.long.add_compaction(SUMMARY, &large.first, &large.before_last_20)?.id;
        let time = start.elapsed();
        large.long.remove_compaction(&compacted)?;
        Ok(time)
    })?;
    let work = format!("add_compaction over {}", short(large.size));
    bench.table.add(Row::seconds(work, times.median()));
    Ok(())
}
