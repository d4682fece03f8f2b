//! The same random operations on SQLite and on PostgreSQL end in equal content and in equal searches.
//!
//! Each store is compared with the model at every step, too; see [`model`](crate::model).

use crate::common::content::{content, found};
use crate::common::{Scratch, random};
use crate::model::{Op, World, any_op, knotty_op};
use proptest::prelude::*;
use talktree::{Result, Store};

const QUERIES: [&str; 12] = [
    "text",
    "fox",
    "foxes dens",
    "\"fox den\"",
    "北京",
    "red OR owl",
    "fox -den",
    "conf*",
    "deploy-2",
    "role:user den",
    "fox nowhere",
    "7",
];

/// Returns the hits of all searches: of the store, of each session, and on each session's path.
fn searches(store: &Store) -> Result<Vec<String>> {
    let mut ids: Vec<_> = store.sessions()?.into_iter().map(|info| info.id).collect();
    ids.sort();
    let mut all = Vec::new();
    for query in QUERIES {
        all.push(format!("{query}: {}", found(store.search(query))?));
        for id in &ids {
            let chat = store.session(id)?;
            all.push(format!("{query} in {id}: {}", found(chat.search(query))?));
            all.push(format!("{query} on {id}: {}", found(chat.search(query).on_path())?));
        }
    }
    Ok(all)
}

fn check(ops: &[Op]) -> Result<()> {
    let Some(server) = Scratch::on_server()? else { return Ok(()) };
    let (mut file, mut server) = (World::over(Scratch::in_file()?)?, World::over(server)?);
    for op in ops {
        file.run(op)?;
        server.run(op)?;
    }
    let (file, server) = (&file.scratch.store, &server.scratch.store);
    assert_eq!(content(file)?, content(server)?);
    for (file, server) in searches(file)?.into_iter().zip(searches(server)?) {
        assert_eq!(file, server);
    }
    assert_eq!(server.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn any_operations_end_equal_on_both_engines() -> std::result::Result<(), String> {
    let ops = prop::collection::vec(any_op(), 20..80);
    random::check_all(random::cases(48), &ops, |ops| check(&ops))
}

#[test]
fn branches_compactions_and_deletions_end_equal_on_both_engines() -> std::result::Result<(), String>
{
    let ops = prop::collection::vec(knotty_op(), 20..60);
    random::check_all(random::cases(32), &ops, |ops| check(&ops))
}
