//! Clocks that go backwards or stand still, and the earliest and latest times: the order stays that of the appends.

use chrono::{DateTime, Days, Utc};
use talktree::{Budget, Message, Session, Store};
use talktree_import::export::export_jsonl;

use super::Args;
use crate::{Report, Result};

/// Appends messages whose times are out of order and reads them in every way.
pub(super) fn run(args: &Args, report: &mut Report) -> Result<()> {
    let mut dice = fastrand::Rng::with_seed(report.seed());
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("talk.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    let mut time = Utc::now();
    let ends: [DateTime<Utc>; 2] =
        ["0001-01-01T00:00:00Z".parse()?, "9999-12-31T23:59:59.999999Z".parse()?];
    let mut messages = Vec::new();
    for n in 0..args.times {
        let at = match dice.u8(..6) {
            0 => {
                // The clock was set back by a day.
                time = time.checked_sub_days(Days::new(1)).unwrap_or(time);
                time
            }
            1 => ends[0],
            2 => ends[1],
            3 => time,
            _ => {
                time += std::time::Duration::from_millis(dice.u64(..5_000));
                time
            }
        };
        messages.push(Message::user(format!("said {n}")).with_id(format!("m{n}")).at(at));
    }
    let names: Vec<String> = messages.iter().map(|message| message.id.to_string()).collect();
    // Half of them in one call, half one by one.
    let half = messages.len() / 2;
    chat.append_all(messages.drain(..half))?;
    for message in messages {
        chat.append(message)?;
    }
    let mut orders = check(&chat, &names, report)?;
    drop((chat, store));
    let store = Store::open(&path)?;
    orders += check(&store.session("s")?, &names, report)?;
    let mut exported = Vec::new();
    export_jsonl(&store, &mut exported)?;
    let file = folder.path().join("talk.jsonl");
    std::fs::write(&file, &exported)?;
    let imported = Store::open_in_memory()?;
    talktree_import::import(&imported, &file, &talktree_import::ImportOptions::default(), |_| {})?;
    orders += check(&imported.session("s")?, &names, report)?;
    report.fact("messages with times out of order", names.len());
    report.fact("orders compared", orders);
    Ok(())
}

/// Compares the order in every way of reading; returns how many were compared.
fn check(chat: &Session, names: &[String], report: &mut Report) -> Result<usize> {
    let mut paged = Vec::new();
    let mut page = chat.page().limit(100).run()?;
    loop {
        paged.extend(page.messages.into_iter().rev());
        match page.before {
            Some(before) => page = chat.page().limit(100).before(&before).run()?,
            None => break,
        }
    }
    paged.reverse();
    let mut backwards = chat.iter_rev().collect::<talktree::Result<Vec<Message>>>()?;
    backwards.reverse();
    let ways = [
        ("history", chat.history()?),
        ("raw_history", chat.raw_history()?),
        ("iter", chat.iter().collect::<talktree::Result<_>>()?),
        ("iter_rev", backwards),
        ("all_messages", chat.all_messages().collect::<talktree::Result<_>>()?),
        ("recent", chat.recent(Budget::messages(names.len() as u64))?.messages),
        ("page", paged),
    ];
    for (way, messages) in &ways {
        if !messages.iter().map(|message| message.id.as_str()).eq(names.iter().map(String::as_str))
        {
            let replay =
                format!("just torture --seed {} extremes --times {}", report.seed(), names.len());
            report.failure(format!("{way} returns another order than that of the appends"), replay);
        }
    }
    let latest = chat.latest_leaf()?.map(|message| message.id.to_string());
    if latest.as_ref() != names.last() {
        report.failure(format!("the latest leaf is {latest:?}"), "just torture extremes");
    }
    Ok(ways.len() + 1)
}
