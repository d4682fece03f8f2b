//! What does a search cost?

use talktree::Durability;

use crate::measure::{Rounds, alternate, repeat, timed};
use crate::messages::{CHINESE, RARE, common_word, usual_words};
use crate::stores::{fill_small, open};
use crate::table::Row;
use crate::{Bench, Result, short};

/// Searches one session of a large store; the floor is the same session alone in a store.
pub(crate) fn session(bench: &mut Bench) -> Result<()> {
    let sized = bench.stores.sized(bench.million)?;
    let there = sized.store.session("small")?;
    let store = open(&bench.stores.fresh("small.db")?, Durability::Normal)?;
    let alone = fill_small(&store)?;
    for (name, words) in [("a common word", common_word()), ("two words", usual_words())] {
        let hits = alone.search(words.as_str()).run()?.hits.len();
        if hits == 0 {
            eprintln!("search: nothing found for {words:?}; does this build have search?");
            return Ok(());
        }
        assert_eq!(there.search(words.as_str()).run()?.hits.len(), hits, "{words}");
        let pair = alternate(
            Rounds::default(),
            || timed(|| Ok(alone.search(words.as_str()).run()?)),
            || timed(|| Ok(there.search(words.as_str()).run()?)),
        )?;
        let work = format!("search a session of 1k in {}: {name}", short(sized.size));
        let row = Row::seconds(work, pair.ours.median());
        bench.table.add(row.floor(pair.floor.median()).within(2.0));
    }
    Ok(())
}

/// Searches the whole store.
pub(crate) fn store(bench: &mut Bench) -> Result<()> {
    for size in [bench.million / 10, bench.million] {
        let sized = bench.stores.sized(size)?;
        for (name, words) in [
            ("a rare word", RARE.to_owned()),
            ("two words", usual_words()),
            ("a common word", common_word()),
            ("two Chinese characters", CHINESE.to_owned()),
        ] {
            if sized.store.search(words.as_str()).run()?.hits.is_empty() {
                return Ok(());
            }
            let rounds = Rounds { most: 200, ..Rounds::default() };
            let times =
                repeat(rounds, || timed(|| Ok(sized.store.search(words.as_str()).run()?)))?;
            for (quantile, share) in [("p50", 0.5), ("p95", 0.95)] {
                let work = format!("search {}: {name}, {quantile}", short(size));
                bench.table.add(Row::seconds(work, times.quantile(share)));
            }
        }
    }
    Ok(())
}
