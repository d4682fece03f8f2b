//! The work of an erasure grows with what it erases. It grew with the square: for each session all sessions were read for
//! its children, and for each copy in a chain of forks all copies of the same message.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::catalog::SessionChange;
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::storage::sqlite::connection::Config;
use crate::storage::sqlite::session::SqliteSession;
use crate::view::{ExpectedHead, Parent};

/// Returns how many steps of SQLite's virtual machine the dry run of an erasure takes, and the erasure.
fn steps(
    fill: impl Fn(&Arc<Database>, u32) -> Result<()>,
    erasure: &Erasure,
    count: u32,
) -> Result<[u64; 2]> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    fill(&database, count)?;
    let (dry, mut marked) =
        database.steps_of_write(|conn| dry_run(conn, erasure, Marked::default()))?;
    database.read(|conn| marked.name_what_is_left(conn))?;
    let steps = database.count_steps()?;
    let erased = database.erase(std::slice::from_ref(erasure), |_| {}, &mut |_| {})?;
    assert_eq!(marked.out.extent, erased.extent);
    Ok([dry, steps.load(Ordering::Relaxed)])
}

#[track_caller]
fn assert_linear(fill: impl Fn(&Arc<Database>, u32) -> Result<()>, erasure: &Erasure) {
    let [few, many] = [100, 400].map(|count| steps(&fill, erasure, count).unwrap());
    for (what, few, many) in [("dry run", few[0], many[0]), ("erasure", few[1], many[1])] {
        assert!(many < 6 * few, "{what}: {few} steps, and {many} for four times as much");
    }
}

fn details(owner: &str) -> SessionDetails {
    SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() }
}

fn say(database: &Arc<Database>, id: &str) -> Result<()> {
    let messages = ["a", "b", "c"].map(|id| Message::user("text").with_id(id));
    let session = SqliteSession::new(Arc::clone(database), id.into());
    session.append(&Parent::Head, &ExpectedHead::Any, &messages, None).map(drop)
}

fn fork(database: &Arc<Database>, from: &str, to: &str, details: &SessionDetails) -> Result<()> {
    let session = SqliteSession::new(Arc::clone(database), from.into());
    session.fork(&"c".into(), &to.into(), details).map(drop)
}

#[test]
fn many_sessions_of_an_owner() {
    let fill = |database: &Arc<Database>, count| {
        (0..count).try_for_each(|n| {
            let id = SessionId::from(n.to_string());
            database.create_session(&id, &details("ann"))?;
            // Half of them are in the trash before.
            if n % 2 == 0 { database.change_session(&id, &SessionChange::Delete) } else { Ok(()) }
        })
    };
    assert_linear(fill, &Erasure::owner("ann"));
}

#[test]
fn a_chain_of_forks() {
    let fill = |database: &Arc<Database>, count: u32| {
        database.create_session(&"0".into(), &details("ann"))?;
        say(database, "0")?;
        (1..count).try_for_each(|n| {
            fork(database, &(n - 1).to_string(), &n.to_string(), &SessionDetails::default())
        })
    };
    assert_linear(fill, &Erasure::owner("ann"));
    assert_linear(fill, &Erasure::session("0"));
    assert_linear(fill, &Erasure::session("0").with_forks());
}

#[test]
fn many_sessions_with_a_fork_of_another_owner() {
    let fill = |database: &Arc<Database>, count: u32| {
        (0..count).try_for_each(|n| {
            let (id, copy) = (n.to_string(), format!("copy {n}"));
            database.create_session(&id.as_str().into(), &details("ann"))?;
            say(database, &id)?;
            fork(database, &id, &copy, &details("bob"))
        })
    };
    assert_linear(fill, &Erasure::owner("ann").with_forks());
}
