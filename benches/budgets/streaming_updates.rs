//! What does it cost to stream a reply in 200 updates?

use talktree::{Durability, Message};

use crate::floor::{self, Ready};
use crate::measure::{Rounds, alternate, timed_each};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result};

const UPDATES: usize = 200;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let store = open(&bench.stores.fresh("update-ours.db")?, Durability::Normal)?;
    let chat = store.session("chat")?;
    let conn = floor::open(&bench.stores.fresh("update-floor.db")?, Durability::Normal)?;
    floor::create(&conn)?;
    let mut speaker = Speaker::new(15, Length::Short);
    let mut texts = vec![String::new()];
    for n in 0..UPDATES {
        texts.push(format!("{} {}", texts[n], speaker.text().split_at(20).0));
    }
    let first = Message::assistant("");
    chat.append(first.clone())?;
    floor::append(&conn, 1, &Ready::new(&first)?)?;
    let floor = || {
        let mut next = texts.iter().cycle().skip(1);
        timed_each(UPDATES as u32, || {
            let parts = serde_json::to_string(&Message::user(next.next().unwrap().as_str()).parts)?;
            floor::run(&conn, "BEGIN IMMEDIATE")?;
            conn.prepare_cached("UPDATE message SET parts = ?1 WHERE address = 1")?
                .execute([parts])?;
            floor::set_head(&conn, 1, 0)?;
            floor::run(&conn, "COMMIT")
        })
    };
    let ours = || {
        let mut next = texts.iter().cycle().skip(1);
        timed_each(UPDATES as u32, || {
            let text = next.next().unwrap().as_str();
            Ok(chat.update(Message::assistant(text).with_id(&first.id))?)
        })
    };
    let pair = alternate(Rounds { least: 9, ..Rounds::default() }, floor, ours)?;
    let row = Row::seconds("update of the newest message, each of 200", pair.ours.median());
    bench.table.add(row.floor(pair.floor.median()));
    Ok(())
}
