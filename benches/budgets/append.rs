//! What does an append of one message cost until it is committed and searchable?
//!
//! The row "all in all" is the mean, with the work for the search index that some appends do. Its floor adds the time in
//! which FTS5 indexes the same texts in one transaction. In the row after it the floor, too, indexes in steps in which no
//! append waits long: it shows what that costs with FTS5 alone, which writes small segments and has to merge them.

use std::time::{Duration, Instant};

use talktree::Durability;

use crate::floor::{self, Ready};
use crate::measure::{Pair, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::{Row, Table};
use crate::{Bench, Result, indexing};

/// How much longer than the floor the longest wait may be: the time that an append may spend on the index.
const INDEX_WAIT: Duration = Duration::from_millis(2);

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    for (durability, count, budget) in
        [(Durability::Full, 1_500, 1.3), (Durability::Normal, 20_480, 1.6)]
    {
        let pair = appends(bench, durability, count)?;
        let index = bulk_index(bench, count)?;
        let in_steps = appends_with_steps(bench, durability, count)?;
        print(
            &mut bench.table,
            &format!("append, {durability:?}"),
            &pair,
            [index, in_steps],
            budget,
        );
    }
    Ok(())
}

/// Appends the same messages to talktree and to the floor, alternately.
fn appends(bench: &Bench, durability: Durability, count: usize) -> Result<Pair> {
    let store = open(&bench.stores.fresh("append-ours.db")?, durability)?;
    let chat = store.session("chat")?;
    let conn = floor::open(&bench.stores.fresh("append-floor.db")?, durability)?;
    floor::create(&conn)?;
    let mut speaker = Speaker::new(2, Length::Chat);
    let mut pair = Pair::default();
    chat.append(speaker.message())?;
    for n in 1..=count {
        let message = speaker.message();
        let ready = Ready::new(&message)?;
        let floor = || timed(|| floor::append(&conn, n as i64, &ready));
        if n % 2 == 0 {
            pair.floor.push(floor()?);
        }
        let start = Instant::now();
        chat.append(message)?;
        pair.ours.push(start.elapsed());
        if n % 2 == 1 {
            pair.floor.push(floor()?);
        }
    }
    Ok(pair)
}

/// Returns what it takes to index the same texts in one transaction, per text.
fn bulk_index(bench: &Bench, count: usize) -> Result<Duration> {
    let mut speaker = Speaker::new(2, Length::Chat);
    let texts: Vec<_> = (1..=count).map(|n| (n, speaker.message().text())).collect();
    let conn = floor::open(&bench.stores.fresh("append-index.db")?, Durability::Normal)?;
    conn.execute_batch(indexing::TABLE)?;
    let time = timed(|| {
        floor::run(&conn, "BEGIN IMMEDIATE")?;
        indexing::insert(&conn, &texts)?;
        floor::run(&conn, "COMMIT")
    })?;
    Ok(time / count as u32)
}

/// How many messages a step of the floor indexes, and how many pages it merges: about as many as those of talktree.
const MESSAGES_PER_STEP: usize = 64;
const MERGE: &str = "INSERT INTO search (search, rank) VALUES ('merge', 100)";
/// As in talktree's schema.
const FEW_MERGES: &str = "INSERT INTO search (search, rank)
 VALUES ('pgsz', 490), ('hashsize', 2097152), ('automerge', 0), ('usermerge', 8), ('crisismerge', 64)";

/// Returns the mean time of a bare append if some of them index what was appended before.
fn appends_with_steps(bench: &Bench, durability: Durability, count: usize) -> Result<Duration> {
    let conn = floor::open(&bench.stores.fresh("append-steps.db")?, durability)?;
    floor::create(&conn)?;
    conn.execute_batch(indexing::TABLE)?;
    floor::run(&conn, FEW_MERGES)?;
    let mut speaker = Speaker::new(2, Length::Chat);
    let (mut texts, mut time) = (Vec::new(), Duration::ZERO);
    for n in 1..=count {
        let message = speaker.message();
        texts.push((n, message.text()));
        let ready = Ready::new(&message)?;
        time += timed(|| {
            floor::append(&conn, n as i64, &ready)?;
            if texts.len() == MESSAGES_PER_STEP {
                floor::run(&conn, "BEGIN IMMEDIATE")?;
                indexing::insert(&conn, &texts)?;
                floor::run(&conn, "COMMIT")?;
                floor::run(&conn, MERGE)?;
                texts.clear();
            }
            Ok(())
        })?;
    }
    Ok(time / count as u32)
}

fn print(
    table: &mut Table,
    work: &str,
    pair: &Pair,
    [index, in_steps]: [Duration; 2],
    budget: f64,
) {
    let Pair { floor, ours } = pair;
    table.add(Row::seconds(work, ours.median()).floor(floor.median()).within(budget));
    let bulk = floor.mean() + index.as_secs_f64();
    let row = Row::seconds(format!("{work}: all in all; floor indexes, too"), ours.mean());
    table.add(row.floor(bulk).within(1.5));
    let row = Row::seconds(format!("{work}: all in all; floor indexes in steps"), ours.mean());
    table.add(row.floor(in_steps.as_secs_f64()));
    let row = Row::seconds(format!("{work}: p99"), ours.quantile(0.99));
    table.add(row.floor(floor.quantile(0.99)));
    let longest = floor.quantile(0.999);
    let row = Row::seconds(format!("{work}: p99.9"), ours.quantile(0.999));
    table.add(row.floor(longest).at_most(longest + INDEX_WAIT.as_secs_f64()));
}
