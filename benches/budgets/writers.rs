//! What do many threads of one process get done that append at the same time?
//!
//! The floor is SQLite alone: one connection behind a mutex. Each thread appends to a session of its own until the time
//! is up. The time of an append is the time of all divided by their count; a wait is what one thread saw.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use talktree::{Durability, Message};

use crate::floor::{self, Ready};
use crate::measure::Times;
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result};

/// The numbers of threads.
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// How long the threads of one row append.
const TIME: Duration = Duration::from_millis(700);
/// How many times the median the longest wait of the most threads may be.
const LONGEST_WAIT: f64 = 50.0;
/// How much longer an append of 16 threads may take that waits for the disk than one that does not.
const FULL_TO_NORMAL: f64 = 1.2;

/// What a number of threads got done.
struct Done {
    /// Seconds for each append.
    each: f64,
    waits: Times,
}

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let mut sixteen = Vec::new();
    for durability in [Durability::Normal, Durability::Full] {
        for count in THREADS {
            let floor = bare(bench, durability, count)?;
            let ours = appends(bench, durability, count)?;
            let work = format!("append by {count} threads, {durability:?}");
            let table = &mut bench.table;
            table.add(Row::seconds(&work, ours.each).floor(floor.each));
            let row = Row::seconds(format!("{work}: median wait"), ours.waits.median());
            table.add(row.floor(floor.waits.median()));
            let row = Row::seconds(format!("{work}: longest wait"), ours.waits.quantile(1.0));
            table.add(row.floor(floor.waits.quantile(1.0)));
            if count == 16 {
                sixteen.push(ours.each);
            }
            if count == 64 {
                let work = format!("{work}: longest wait; floor: its median");
                let row = Row::seconds(work, ours.waits.quantile(1.0));
                table.add(row.floor(ours.waits.median()).within(LONGEST_WAIT));
            }
        }
    }
    if let [normal, full] = sixteen[..] {
        let row = Row::seconds("append by 16 threads, Full; floor: Normal", full);
        bench.table.add(row.floor(normal).within(FULL_TO_NORMAL));
    }
    Ok(())
}

/// Appends to talktree.
fn appends(bench: &Bench, durability: Durability, count: usize) -> Result<Done> {
    let store = open(&bench.stores.fresh("writers-ours.db")?, durability)?;
    in_threads(count, |thread| {
        let chat = store.session(format!("chat {thread}"))?;
        chat.append(Message::user("hello"))?;
        Ok(move |text: &str| {
            chat.append(Message::user(text))?;
            Ok(())
        })
    })
}

/// Appends to SQLite behind a mutex.
fn bare(bench: &Bench, durability: Durability, count: usize) -> Result<Done> {
    let conn = floor::open(&bench.stores.fresh("writers-floor.db")?, durability)?;
    floor::create(&conn)?;
    let shared = Mutex::new((conn, 0));
    in_threads(count, |_| {
        Ok(|text: &str| {
            let ready = Ready::new(&Message::user(text))?;
            let mut shared = shared.lock().map_err(|_| "a thread panicked")?;
            shared.1 += 1;
            floor::append(&shared.0, shared.1, &ready)
        })
    })
}

/// Runs in each thread what `prepare` returns, until the time is up.
fn in_threads<A: FnMut(&str) -> Result<()>>(
    count: usize,
    prepare: impl Fn(usize) -> Result<A> + Sync,
) -> Result<Done> {
    let start = Barrier::new(count);
    let all = Mutex::new((Times::default(), Duration::ZERO, 0_u32));
    let work = |thread: usize| -> Result<()> {
        let mut speaker = Speaker::new(thread as u64, Length::Chat);
        let texts: Vec<String> = (0..64).map(|_| speaker.message().text()).collect();
        let append = prepare(thread);
        start.wait();
        let (mut append, began) = (append?, Instant::now());
        let mut waits = Vec::new();
        for text in texts.iter().cycle() {
            let asked = Instant::now();
            append(text)?;
            waits.push(asked.elapsed());
            if began.elapsed() >= TIME {
                break;
            }
        }
        let time = began.elapsed();
        let mut all = all.lock().map_err(|_| "a thread panicked")?;
        all.1 = all.1.max(time);
        all.2 += waits.len() as u32;
        waits.into_iter().for_each(|wait| all.0.push(wait));
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|at| {
                scope.spawn({
                    let work = &work;
                    move || work(at).map_err(|error| error.to_string())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| "a thread panicked")?
                .map_err(Box::<dyn std::error::Error>::from)
        })
    })?;
    let (waits, time, appended) = all.into_inner().map_err(|_| "a thread panicked")?;
    Ok(Done { each: time.as_secs_f64() / f64::from(appended), waits })
}
