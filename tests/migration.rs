//! Raising the format of a store: from a file of each former version, killed at random moments.
//!
//! A migration raises the version in its own transaction, so a file is wholly of the old version or of the new one. The next
//! opening completes it. [`child`] is what the killed processes run.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::process::{Other, task};
use rusqlite::Connection;
use talktree::{Error, Message, Result, Store, Usage};

/// A former version of the format.
struct Former {
    schema: &'static str,
    /// The rows of a store with `{messages}` messages.
    content: &'static str,
}

/// From version 1.
const FORMER: [Former; 5] = [
    Former {
        schema: include_str!("fixtures/schema_1.sql"),
        content: include_str!("fixtures/content_1.sql"),
    },
    Former {
        schema: include_str!("fixtures/schema_2.sql"),
        content: include_str!("fixtures/content_2.sql"),
    },
    Former {
        schema: include_str!("fixtures/schema_3.sql"),
        content: include_str!("fixtures/content_3.sql"),
    },
    Former {
        schema: include_str!("fixtures/schema_4.sql"),
        content: include_str!("fixtures/content_4.sql"),
    },
    Former {
        schema: include_str!("fixtures/schema_5.sql"),
        content: include_str!("fixtures/content_5.sql"),
    },
];

/// How many processes are killed for each former version.
const KILLS: u32 = 12;

/// How many messages the killed migrations have before them.
const MESSAGES: u32 = 20_000;

/// Opens the store, which migrates it.
#[test]
fn child() -> Result<()> {
    let Some((_, store)) = task() else { return Ok(()) };
    common::process::say("open");
    Store::open(store).map(drop)
}

/// Creates a store of a former version with so many messages: a path with hidden messages and two nested compactions.
fn create(path: &Path, former: &Former, messages: u32) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN").unwrap();
    conn.execute_batch(former.schema).unwrap();
    conn.execute_batch(&former.content.replace("{messages}", &messages.to_string())).unwrap();
    conn.execute_batch("COMMIT").unwrap();
}

fn random() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as u32
}

/// Returns the version of a file, which only another program reads without migrating it.
fn version(path: &Path) -> u32 {
    let conn = Connection::open(path).unwrap();
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn current() -> Result<u32> {
    let folder = common::folder()?;
    drop(Store::open(folder.path().join("new.db"))?);
    Ok(version(&folder.path().join("new.db")))
}

/// Checks that nothing was lost.
fn check(path: &Path, messages: u32) -> Result<()> {
    let store = Store::open(path)?;
    let chat = store.session("s")?;
    let last = format!("m{messages}");
    assert_eq!(chat.at(&last.as_str().into()).raw().path_length()?, u64::from(messages));
    assert_eq!(chat.message(&"m10".into())?.map(|message| message.is_hidden), Some(true));
    assert_eq!(chat.compaction(&"y".into())?.nested, [talktree::CompactionId::from("x")]);
    assert_eq!(store.search("\"message 4711 of\"").run()?.hits.len(), 1);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn there_is_a_file_of_each_former_version() -> Result<()> {
    assert_eq!(current()?, FORMER.len() as u32 + 1);
    Ok(())
}

#[test]
fn a_migration_that_is_killed_leaves_the_old_version_or_the_new_one() -> Result<()> {
    for (former, number) in FORMER.iter().zip(1..) {
        let folder = common::folder()?;
        let template = folder.path().join("template.db");
        create(&template, former, MESSAGES);
        // How long one takes that is not killed.
        let whole = folder.path().join("whole.db");
        std::fs::copy(&template, &whole).unwrap();
        let mut other = Other::start("migrate", &whole)?;
        other.hear();
        let began = Instant::now();
        other.wait();
        let mut longest = began.elapsed().max(Duration::from_millis(2));
        let (mut old, mut new) = (0, 0);
        for kill in 0..KILLS {
            let path = folder.path().join("killed.db");
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(folder.path().join(format!("killed.db{suffix}")));
            }
            std::fs::copy(&template, &path).unwrap();
            // A second crash may follow the first.
            for _ in 0..=kill % 3 {
                let mut other = Other::start("migrate", &path)?;
                other.hear();
                std::thread::sleep(longest * (random() % 1_000) / 1_000);
                other.kill();
            }
            let read = Store::open_read_only(&path).map(drop);
            match version(&path) {
                found if found == number => {
                    old += 1;
                    longest = longest * 5 / 4;
                    assert!(matches!(read, Err(Error::OlderStore { .. })), "{read:?}");
                }
                found => {
                    new += 1;
                    // On a busy machine the one that was not killed may have taken longer than the others do.
                    longest = longest * 3 / 4;
                    assert_eq!(found, current()?);
                    read?;
                }
            }
            // Verifying takes most of the time.
            if kill % 8 == 0 {
                check(&path, MESSAGES)?;
            } else {
                assert_eq!(
                    Store::open(&path)?.session("s")?.all_messages().count(),
                    MESSAGES as usize
                );
            }
        }
        assert!(old + new == KILLS && old > 0, "{old} old, {new} new");
    }
    Ok(())
}

/// The index is made of the messages, so damage in it must not keep a store from being opened.
#[test]
fn a_damaged_search_index_is_made_again_by_the_migration() -> Result<()> {
    for (former, number) in FORMER.iter().zip(1..) {
        for damage in [
            "UPDATE search_data SET block = x'ffffffff' WHERE id = 10",
            "UPDATE search_data SET block = zeroblob(length(block)) WHERE id > 10",
            "DELETE FROM search_data WHERE id > 10",
            "DELETE FROM search_data",
        ] {
            let folder = common::folder()?;
            let path = folder.path().join("bot.db");
            create(&path, former, 5_000);
            Connection::open(&path).unwrap().execute_batch(damage).unwrap();
            let case = format!("version {number}: {damage}");
            let store = Store::open(&path).unwrap_or_else(|error| panic!("{case}: {error}"));
            if store.verify(|_| {})?.damages.is_empty() {
                drop(store);
                check(&path, 5_000)?;
                continue;
            }
            // What the migration does not touch, it does not find; `verify` does, and the remedy helps.
            store.rebuild_search()?;
            drop(store);
            check(&path, 5_000)?;
        }
    }
    Ok(())
}

/// Imports of Pi and Claude Code kept the usage of answers before there was a ledger.
#[test]
fn usage_of_a_former_version_is_added_on_demand() -> Result<()> {
    const METADATA: &str = r#"UPDATE message
        SET metadata = CASE address % 8
            WHEN 0 THEN '{"usage":{"input":12,"output":30,"cacheRead":100,"cost":{"total":0.25}}}'
            WHEN 2 THEN '{"message":{"id":"a' || (address / 4) || '","usage":{"output_tokens":' || (address % 100) || '}}}'
            ELSE '{"n":"usage"}'
            END
      WHERE role = 'assistant' AND address < 4294967296 + 4800"#;
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    create(&path, &FORMER[2], 5_000);
    let conn = Connection::open(&path).unwrap();
    conn.execute(METADATA, []).unwrap();

    let store = Store::open(&path)?;
    let answers: Vec<Message> = store.session("s")?.all_messages().collect::<Result<_>>()?;
    // What cannot be read has no usage, and a copy in a fork is not counted again.
    conn.execute("UPDATE message SET metadata = '{\"usage\":' WHERE id = 'm4000'", []).unwrap();
    conn.execute("UPDATE message SET origin = address + 1 WHERE id = 'm3992'", []).unwrap();
    drop(conn);
    let left_out = |message: &&Message| message.id != "m4000" && message.id != "m3992";
    let answers: Vec<&Message> = answers.iter().filter(left_out).collect();
    let used: Vec<Usage> = answers.into_iter().filter_map(Usage::of).collect();
    assert_eq!(used.len(), 1_197);
    let expected: u64 = used.iter().map(|usage| usage.output).sum();
    assert_eq!(store.usage().total()?.answers, 0);
    store.recount_usage()?;
    let total = store.usage().total()?;
    assert_eq!((total.answers, total.output), (used.len() as u64, expected));
    assert_eq!(store.session("s")?.path().usage()?, total);

    // What the ledger has stays.
    let usage = Usage { output: 1_000_000, ..Usage::default() };
    store.session("s")?.add_usage(Some(&"m8".into()), &usage)?;
    store.recount_usage()?;
    assert_eq!(store.usage().total()?.output, expected - 30 + 1_000_000);
    Ok(())
}

/// Pages that former versions have written keep what was deleted from them.
#[test]
fn the_first_erasure_in_a_migrated_store_writes_its_file_again() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("bot.db");
    create(&path, &FORMER[2], 5_000);
    let former = Connection::open(&path).unwrap();
    former
        .execute_batch(
            "PRAGMA secure_delete = OFF;
             CREATE TABLE deleted (text TEXT);
             INSERT INTO deleted VALUES ('mk7qdeletedx ' || hex(zeroblob(9000)));
             DROP TABLE deleted;
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
    drop(former);
    let has_mark = || {
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(12).any(|window| window == b"mk7qdeletedx")
    };
    assert!(has_mark());

    let store = Store::options().erasure_rewrites_up_to(0).open(&path)?;
    let chat = store.session("s")?;
    assert!(chat.erase([&"m4711".into()])?.is_rewritten);
    assert!(!chat.erase([&"m4712".into()])?.is_rewritten);
    assert_eq!(store.verify(|_| {})?.damages, []);
    drop((chat, store));
    assert!(!has_mark());
    Ok(())
}
