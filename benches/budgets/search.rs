//! What does a search cost?

use std::path::Path;

use talktree::{Durability, Store};

use crate::measure::{Rounds, alternate, repeat, timed};
use crate::memory;
use crate::messages::{CHINESE, RARE, common_word, usual_words, word};
use crate::stores::{fill_small, open};
use crate::table::{Row, Unit};
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

/// How long a search of any kind may take in 95 of 100 cases, and how much memory.
const P95: f64 = 0.050;
const MEMORY: f64 = (64 << 20) as f64;

/// Searches the whole store, its conversations, and a session with nearly all messages, with each kind of query.
pub(crate) fn store(bench: &mut Bench) -> Result<()> {
    for size in [bench.million / 10, bench.million] {
        let sized = bench.stores.sized(size)?;
        let search = |words: &str| sized.store.search(words);
        if search(RARE).run()?.hits.is_empty() {
            return Ok(());
        }
        for (name, words) in kinds() {
            let words = words.as_str();
            let p95 = |run: &dyn Fn() -> Result<()>| -> Result<f64> {
                let rounds = Rounds { most: 200, ..Rounds::default() };
                Ok(repeat(rounds, || timed(run))?.quantile(0.95))
            };
            let times = [
                ("the store", p95(&|| Ok(search(words).run().map(drop)?))?),
                ("conversations", p95(&|| Ok(search(words).run_by_session().map(drop)?))?),
                ("a session", p95(&|| Ok(search(words).session("long").run().map(drop)?))?),
            ];
            for (scope, time) in times {
                let work = format!("search {scope}, {}: {name}, p95", short(size));
                bench.table.add(Row::seconds(work, time).at_most(P95));
            }
        }
        if Path::new("/proc/self/clear_refs").exists() {
            let work = format!("memory of these searches, {}", short(size));
            let most = memory::ask("search", &sized.path)?;
            bench.table.add(Row::new(work, Unit::Bytes, most).at_most(MEMORY));
        }
    }
    Ok(())
}

/// Runs each kind of query in each scope.
pub(crate) fn each_kind(store: &Store) -> Result<()> {
    for (_, words) in kinds() {
        store.search(words.as_str()).run()?;
        store.search(words.as_str()).run_by_session()?;
        store.search(words.as_str()).session("long").run()?;
    }
    Ok(())
}

/// Each kind of query with an example.
fn kinds() -> [(&'static str, String); 10] {
    let words = |numbers: &[usize]| numbers.iter().map(|n| word(*n)).collect::<Vec<_>>().join(" ");
    [
        ("a rare word", RARE.to_owned()),
        ("a common word", common_word()),
        ("two words", usual_words()),
        ("five words", words(&[12, 16, 20, 24, 30])),
        ("two Chinese characters", CHINESE.to_owned()),
        ("a phrase", format!("\"{}\"", words(&[1, 2]))),
        ("a three-letter prefix", "del*".to_owned()),
        ("the most common words", words(&[0, 1, 2])),
        // Ten days: one message in seven of 100 000, one in seventy of a million.
        (
            "a common word, role and dates",
            format!("{} role:user after:40d before:30d", common_word()),
        ),
        ("a question", format!("what about {}?", words(&[40, 12, 200, 3_000, 9_000]))),
    ]
}
