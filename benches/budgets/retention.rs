//! How long do writers wait while rules remove sessions, and what does it cost to check sessions that are kept?
//!
//! Two threads append while the rules run. The floor is their wait without the rules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use talktree::{Durability, Message, Retention, RetentionRule, SessionChange, Store};

use crate::measure::Times;
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, short};

/// How many messages each of many sessions has.
const MESSAGES: usize = 100;
/// How many messages one long session has.
const LONG: usize = 20_000;
const WRITERS: usize = 2;
/// How long the writers append alone.
const ALONE: Duration = Duration::from_millis(500);
/// The tag of the sessions that are removed.
const OLD: &str = "old";
/// The longest wait that rules may cause: short sessions are removed a few at a time, a long one in parts.
const LONGEST_WAIT: f64 = 0.05;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    // Of 200 000 messages 20 000 are removed.
    let (sessions, kept) = (bench.million / 5_000, bench.million / 5_000 * 9);
    for durability in [Durability::Normal, Durability::Full] {
        let store = open(&bench.stores.fresh("retention.db")?, durability)?;
        let alone = while_appending(&store, || {
            thread::sleep(ALONE);
            Ok(())
        })?;
        fill(&store, kept, MESSAGES, None)?;
        fill(&store, sessions, MESSAGES, Some(OLD))?;
        store.search("word").run()?; // indexes what is pending
        let times = while_appending(&store, || {
            let report = store.retention(tagged()).run()?;
            assert_eq!(report.sessions.len(), sessions);
            Ok(())
        })?;
        let work =
            format!("remove {sessions} of {} sessions, {durability:?}", short(sessions + kept));
        bench
            .table
            .add(Row::seconds(format!("{work}: each"), times.work.as_secs_f64() / sessions as f64));
        let row = Row::seconds(format!("{work}: median wait of an append"), times.waits.median());
        bench.table.add(row.floor(alone.waits.median()));
        let row = Row::seconds(format!("{work}: longest wait"), times.waits.quantile(1.0));
        bench.table.add(row.floor(alone.waits.quantile(1.0)).at_most(LONGEST_WAIT));

        fill(&store, 1, LONG, Some(OLD))?;
        store.search("word").run()?;
        let times = while_appending(&store, || {
            assert_eq!(store.retention(tagged()).run()?.sessions.len(), 1);
            Ok(())
        })?;
        let work = format!("remove a session of {} messages, {durability:?}", short(LONG));
        bench.table.add(Row::seconds(&work, times.work.as_secs_f64()));
        let row = Row::seconds(format!("{work}: longest wait"), times.waits.quantile(1.0));
        bench.table.add(row.floor(alone.waits.quantile(1.0)).at_most(LONGEST_WAIT));
    }
    look(bench)
}

/// Checks many sessions, of which one is discarded.
fn look(bench: &mut Bench) -> Result<()> {
    let sessions = bench.million / 10;
    let store = open(&bench.stores.fresh("retention.db")?, Durability::Normal)?;
    for number in 0..sessions {
        store.create_session_as(format!("session {number}"), "Deployment")?;
    }
    store.change_session(&"session 7".into(), &SessionChange::End("over".to_owned()))?;
    let retention = Retention::new().rule(RetentionRule::new("ended").ended());
    let began = Instant::now();
    assert_eq!(store.retention(retention).dry_run()?.sessions.len(), 1);
    let work = format!("look at {} sessions, of which a rule discards one", short(sessions));
    bench.table.add(Row::seconds(work, began.elapsed().as_secs_f64()));
    Ok(())
}

fn tagged() -> Retention {
    Retention::new().rule(RetentionRule::new("tagged").tag(OLD).remove())
}

/// Creates sessions of so many messages.
pub(crate) fn fill(
    store: &Store,
    sessions: usize,
    messages: usize,
    tag: Option<&str>,
) -> Result<()> {
    let mut speaker = Speaker::new(7, Length::Chat);
    for _ in 0..sessions {
        let chat = store.create_session("an old one")?;
        if let Some(tag) = tag {
            store.change_session(chat.id(), &SessionChange::Tag(tag.to_owned()))?;
        }
        chat.append_all(speaker.messages(messages))?;
    }
    Ok(())
}

pub(crate) struct Measured {
    pub(crate) work: Duration,
    pub(crate) waits: Times,
}

/// Runs some work while two threads append.
pub(crate) fn while_appending(
    store: &Store,
    work: impl FnOnce() -> Result<()>,
) -> Result<Measured> {
    let is_done = AtomicBool::new(false);
    let append = |writer: usize| -> Result<Vec<Duration>> {
        let (chat, mut waits) = (store.session(format!("writer {writer}"))?, Vec::new());
        while !is_done.load(Ordering::Relaxed) {
            let asked = Instant::now();
            chat.append(Message::user("Can we deploy on Friday?"))?;
            waits.push(asked.elapsed());
        }
        Ok(waits)
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let append = &append;
                scope.spawn(move || append(writer).map_err(|error| error.to_string()))
            })
            .collect();
        let began = Instant::now();
        let done = work();
        let work = began.elapsed();
        is_done.store(true, Ordering::Relaxed);
        let mut waits = Times::default();
        for writer in writers {
            writer
                .join()
                .map_err(|_| "a thread panicked")??
                .into_iter()
                .for_each(|wait| waits.push(wait));
        }
        done.map(|()| Measured { work, waits })
    })
}
