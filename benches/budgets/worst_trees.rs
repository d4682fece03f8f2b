//! Are the worst trees read as fast as by the best recursive query?

use rusqlite::Connection;
use talktree::{Durability, Message, MessageId, Session};

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, floor};

const DEPTH: usize = 10_000;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let path = bench.stores.fresh("worst.db")?;
    let store = open(&path, Durability::Normal)?;
    let conn = floor::open(&path, Durability::Normal)?;
    let mut speaker = Speaker::new(9, Length::Short);
    for (name, grow) in [
        ("a reply regenerated every turn", regenerated as fn(&Session, &mut Speaker) -> _),
        ("two branches written in turn", |chat, speaker| in_turn(chat, speaker, 2)),
        ("ten branches written in turn", |chat, speaker| in_turn(chat, speaker, 10)),
    ] {
        let chat = store.session(name)?;
        let leaf: MessageId = grow(&chat, &mut speaker)?;
        let address = address(&conn, &leaf)?;
        let best = best_query(&conn, address)?;
        let pair = alternate(
            Rounds::default(),
            || timed(|| by_parent(&conn, best, address)),
            || timed(|| Ok(chat.at(&leaf).raw_history()?)),
        )?;
        let row = Row::seconds(format!("{name}, 10k deep"), pair.ours.median());
        let row = row.floor(pair.floor.median());
        bench.table.add(if name.starts_with("ten") { row } else { row.within(1.0) });
    }
    Ok(())
}

fn address(conn: &Connection, id: &MessageId) -> Result<i64> {
    Ok(conn
        .query_row("SELECT address FROM message WHERE id = ?1", [id.as_str()], |row| row.get(0))?)
}

/// Returns the faster of the two queries.
fn best_query(conn: &Connection, leaf: i64) -> Result<&'static str> {
    let queries = [floor::PATH_BY_PARENT, floor::PATH_BY_PARENT_THEN_FETCH];
    let pair = alternate(
        Rounds::exactly(7),
        || timed(|| by_parent(conn, queries[0], leaf)),
        || timed(|| by_parent(conn, queries[1], leaf)),
    )?;
    Ok(queries[usize::from(pair.ours.median() < pair.floor.median())])
}

fn by_parent(conn: &Connection, query: &str, leaf: i64) -> Result<Vec<floor::Plain>> {
    let mut path = floor::read(conn, query, [leaf])?;
    if query == floor::PATH_BY_PARENT {
        path.reverse();
    }
    assert_eq!(path.len(), DEPTH);
    Ok(path)
}

/// Builds a path on which every other message is the second of two replies.
fn regenerated(chat: &Session, speaker: &mut Speaker) -> Result<MessageId> {
    let mut at = chat.append(Message::user(speaker.text()))?.id;
    for depth in 1..DEPTH {
        if depth % 2 == 1 {
            chat.append_to(&at, Message::assistant(speaker.text()))?;
        }
        at = chat.append_to(&at, speaker.message())?.id;
    }
    Ok(at)
}

/// Builds branches from one root that are appended to in turn.
fn in_turn(chat: &Session, speaker: &mut Speaker, branches: usize) -> Result<MessageId> {
    let root = chat.append(speaker.message())?.id;
    let mut tips = vec![root; branches];
    for _ in 1..DEPTH {
        for tip in &mut tips {
            *tip = chat.append_to(tip, speaker.message())?.id;
        }
    }
    Ok(tips.swap_remove(0))
}
