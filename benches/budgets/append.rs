//! What does an append of one message cost until it is committed and searchable?

use std::time::Instant;

use talktree::Durability;

use crate::floor::{self, Ready};
use crate::measure::{Pair, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::{Row, Table};
use crate::{Bench, Result};

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    for (durability, count, budget) in
        [(Durability::Full, 1_500, 1.3), (Durability::Normal, 20_480, 2.0)]
    {
        let pair = appends(bench, durability, count)?;
        print(&mut bench.table, &format!("append, {durability:?}"), &pair, budget);
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

fn print(table: &mut Table, work: &str, pair: &Pair, budget: f64) {
    let Pair { floor, ours } = pair;
    table.add(Row::seconds(work, ours.median()).floor(floor.median()).within(budget));
    table.add(Row::seconds(format!("{work}: mean per append"), ours.mean()).floor(floor.mean()));
    for (name, share) in [("p99", 0.99), ("p99.9", 0.999)] {
        let row = Row::seconds(format!("{work}: {name}"), ours.quantile(share));
        table.add(row.floor(floor.quantile(share)));
    }
}
