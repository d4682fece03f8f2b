//! What do a list of sessions and a resume of a binding cost among 100 000 sessions?

use std::time::Duration;

use talktree::{Durability, Message, SessionDetails, SessionFilter, SessionId, SessionManager};

use crate::measure::{Rounds, repeat, timed};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, short};

/// How many sessions a page shows.
const PAGE: usize = 20;
const OWNERS: usize = 1_000;

/// Measures pages of all sessions and of one owner's, and resumes of keys.
pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let count = bench.million / 10;
    let store = open(&bench.stores.fresh("catalog.db")?, Durability::Normal)?;
    let bot = SessionManager::builder(&store).build()?;
    fill(&bot, count)?;
    let mut number = 0;
    for (name, owner) in [("all", None), ("one owner's", Some(owner(7)))] {
        // In a small store an owner has less than a page.
        let expected = if owner.is_some() { PAGE.min(count / OWNERS) } else { PAGE };
        let filter = SessionFilter { owner, ..SessionFilter::default() };
        let times = repeat(Rounds::default(), || {
            timed(|| {
                let page = store.list().filter(filter.clone()).limit(PAGE).run()?;
                assert_eq!(page.sessions.len(), expected);
                Ok(page)
            })
        })?;
        let work = format!("list {PAGE} of {} sessions: {name}", short(count));
        bench.table.add(Row::seconds(work, times.median()).at_most(1e-3));
    }
    let times = repeat(Rounds::default(), || {
        number = (number + 7_919) % count;
        let expire_after = Duration::from_secs(1 << 30);
        let request = bot.resume(key(number)).expire_after(expire_after);
        timed(|| {
            let resumed = request.run()?;
            assert!(!resumed.is_new);
            Ok(resumed)
        })
    })?;
    let work = format!("resume one of {} keys", short(count));
    bench.table.add(Row::seconds(work, times.median()).at_most(2e-4));
    Ok(())
}

fn owner(number: usize) -> String {
    format!("user:{}", number % OWNERS)
}

fn key(number: usize) -> String {
    format!("telegram:{number}")
}

/// Creates sessions of four messages, each bound to a key.
fn fill(bot: &SessionManager, count: usize) -> Result<()> {
    for number in 0..count {
        let details =
            SessionDetails { owner: Some(owner(number)), ..SessionDetails::named("Deployment") };
        let new_id = SessionId::from(format!("session {number}"));
        let chat = bot.resume(key(number)).new_id(new_id).details(details).open()?;
        let messages = [
            Message::user("Can we deploy on Friday?"),
            Message::assistant("Yes, after the backup."),
            Message::user("And on Monday?"),
            Message::assistant("Then, too."),
        ];
        chat.append_all(messages)?;
    }
    Ok(())
}
