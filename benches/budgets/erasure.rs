//! How long do writers wait while something is erased, and while the file is rewritten for it?
//!
//! Two threads append meanwhile. One transaction marks what is named, and deletes messages of a session that stays; the messages
//! of a whole session are deleted in batches. A file over the limit is rewritten only if an erased text is found in it.

use talktree::{Erasure, MessageId, SessionId, Store};

use crate::retention::{fill, while_appending};
use crate::table::Row;
use crate::{Bench, Result, short};

/// How many messages are in the store, in sessions of so many.
const MESSAGES: usize = 100_000;
const OF_SESSION: usize = 20_000;
/// How many messages of a session that stays are erased.
const SOME: usize = 1_000;
/// The longest wait that an erasure may cause that does not rewrite the file.
const LONGEST_WAIT: f64 = 0.3;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    for (rewritten_up_to, file) in [(0, "a searched file"), (u64::MAX, "a rewritten file")] {
        let options = Store::options().erasure_rewrites_up_to(rewritten_up_to);
        let store = options.open(bench.stores.fresh("erasure.db")?)?;
        fill(&store, MESSAGES / OF_SESSION, OF_SESSION, None)?;
        store.search("word").run()?; // indexes what is pending
        let ids: Vec<SessionId> = store.sessions()?.into_iter().map(|session| session.id).collect();
        let stays = store.session(&ids[1])?;
        let some: Vec<MessageId> =
            stays.raw_history()?.into_iter().take(SOME).map(|message| message.id).collect();
        for (what, erasure) in [
            (format!("a session of {} messages", short(OF_SESSION)), Erasure::session(&ids[0])),
            (format!("{} messages", short(SOME)), Erasure::messages(stays.id(), &some)),
        ] {
            let times = while_appending(&store, || {
                assert!(store.erase(&erasure)?.is_complete());
                Ok(())
            })?;
            let work = format!("erase {what} in {file}");
            bench.table.add(Row::seconds(&work, times.work.as_secs_f64()));
            let row = Row::seconds(format!("{work}: longest wait"), times.waits.quantile(1.0));
            bench.table.add(match rewritten_up_to {
                0 => row.at_most(LONGEST_WAIT),
                _ => row,
            });
        }
    }
    Ok(())
}
