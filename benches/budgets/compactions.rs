//! What do summaries cost the reader, one after the other?

use talktree::{Durability, Session};

use crate::compacted::SUMMARY;
use crate::data::{Length, Speaker};
use crate::measure::{Rounds, repeat, timed_each};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result};

/// Messages between two summaries.
const STEP: usize = 20;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let store = open(&bench.stores.fresh("compactions.db")?, Durability::Normal)?;
    for count in [0, 1, 20, 1_000] {
        let chat = store.session(format!("nested-{count}"))?;
        let first = say(&chat, 20)?;
        for _ in 0..count {
            let head = chat.head()?.ok_or("an empty chat")?;
            chat.add_compaction(SUMMARY, &first, &head)?;
            say(&chat, STEP)?;
        }
        let times = repeat(Rounds::default(), || timed_each(10, || Ok(chat.history()?)))?;
        let shown = chat.history()?.len();
        let work = format!("history under {count} compactions, {shown} visible");
        bench.table.add(Row::seconds(work, times.median()));
    }
    side_by_side(bench, &store.session("side by side")?)
}

/// Returns the first of the messages said.
fn say(chat: &Session, count: usize) -> Result<talktree::MessageId> {
    let said = chat.append_all(Speaker::new(14, Length::Short).messages(count))?;
    Ok(said[0].id.clone())
}

fn side_by_side(bench: &mut Bench, chat: &Session) -> Result<()> {
    for _ in 0..1_000 {
        let first = say(chat, STEP)?;
        let last = chat.head()?.ok_or("an empty chat")?;
        chat.add_compaction(SUMMARY, &first, &last)?;
    }
    let times = repeat(Rounds::default(), || timed_each(1, || Ok(chat.history()?)))?;
    bench.table.add(Row::seconds("history of 1 000 summaries side by side", times.median()));
    Ok(())
}
