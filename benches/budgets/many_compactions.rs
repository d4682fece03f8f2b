//! What do many compactions on one path cost the reader?

use talktree::{Durability, Session};

use crate::compacted_history::SUMMARY;
use crate::measure::{Rounds, repeat, timed_each};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result};

/// Messages between two compactions.
const STEP: usize = 20;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let store = open(&bench.stores.fresh("compactions.db")?, Durability::Normal)?;
    for count in [0, 1, 20, 1_000] {
        let chat = store.session(format!("nested-{count}"))?;
        let first = append(&chat, 20)?;
        for _ in 0..count {
            let head = chat.head()?.ok_or("an empty chat")?;
            chat.add_compaction(SUMMARY, &first, &head)?;
            append(&chat, STEP)?;
        }
        let times = repeat(Rounds::default(), || timed_each(10, || Ok(chat.history()?)))?;
        let shown = chat.history()?.len();
        let work = format!("history with {count} nested compactions, {shown} visible");
        bench.table.add(Row::seconds(work, times.median()));
    }
    side_by_side(bench, &store.session("side by side")?)
}

/// Appends messages; returns the id of the first.
fn append(chat: &Session, count: usize) -> Result<talktree::MessageId> {
    let appended = chat.append_all(Speaker::new(14, Length::Short).messages(count))?;
    Ok(appended[0].id.clone())
}

fn side_by_side(bench: &mut Bench, chat: &Session) -> Result<()> {
    for _ in 0..1_000 {
        let first = append(chat, STEP)?;
        let last = chat.head()?.ok_or("an empty chat")?;
        chat.add_compaction(SUMMARY, &first, &last)?;
    }
    let times = repeat(Rounds::default(), || timed_each(1, || Ok(chat.history()?)))?;
    bench.table.add(Row::seconds("history with 1 000 adjacent compactions", times.median()));
    Ok(())
}
