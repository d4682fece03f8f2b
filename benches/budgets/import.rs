//! How many messages per second can be imported?

use talktree::Durability;

use crate::measure::{Rounds, repeat, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::{Row, Unit};
use crate::{Bench, Result};

const COUNT: usize = 10_000;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let mut parent = None;
    let mut messages = Vec::with_capacity(COUNT);
    for message in Speaker::new(16, Length::Chat).messages(COUNT) {
        let id = message.id.clone();
        messages.push((parent.replace(id), message));
    }
    let times = repeat(Rounds::exactly(5), || {
        let store = open(&bench.stores.fresh("import.db")?, Durability::Full)?;
        let chat = store.session("chat")?;
        timed(|| Ok(chat.import_messages(messages.clone())?))
    })?;
    let speed = COUNT as f64 / times.median();
    bench.table.add(Row::new("import of 10k, messages per second", Unit::PerSecond, speed));
    Ok(())
}
