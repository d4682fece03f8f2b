//! Raising the format of a store: from a file of each former version, killed at random moments.
//!
//! A migration is one transaction with the raise of the version, so a file is wholly of the old version or of the new
//! one. The next opening goes on. [`child`] is what the killed processes run.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::process::{Other, task};
use rusqlite::Connection;
use talktree::{Error, Result, Store};

/// The schemas of the former versions, from version 1.
const FORMER: [&str; 1] = [include_str!("fixtures/schema_1.sql")];

/// How many processes are killed for each former version.
const KILLS: u32 = 24;

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
fn create(path: &Path, version: usize, messages: u32) {
    let conn = Connection::open(path).unwrap();
    // Names of columns before and after version 2.
    let (hidden, nested) = if version < 2 { ("aside", "folds") } else { ("hidden", "nested") };
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN").unwrap();
    conn.execute_batch(FORMER[version - 1]).unwrap();
    conn.execute_batch(&format!(
        "INSERT INTO session (id, next, head, created_at, updated_at)
         VALUES ('s', {messages} + 1, 4294967296 + {messages}, 0, 0);
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {messages})
         INSERT INTO message (address, parent, id, role, parts, tokens, {hidden}, created_at)
         SELECT 4294967296 + n, iif(n = 1, NULL, 4294967295 + n), 'm' || n, iif(n % 2, 'user', 'assistant'),
                '[{{\"type\":\"text\",\"text\":\"message ' || n || ' of the long conversation\"}}]', 9, n % 10 = 0, n
           FROM n;
         INSERT INTO compaction
                (session, id, first, last, first_id, last_id, count, before, after, {nested}, summary, created_at)
         VALUES (1, 'x', 4294967297, 4294967298, 'm1', 'm2', 2, 18, 5, NULL, 'inner', 0),
                (1, 'y', 4294967297, 4294967301, 'm1', 'm5', 5, 45, 5, '[\"x\"]', 'outer', 0);
         INSERT INTO search_pending SELECT address FROM message;
         INSERT INTO setting VALUES ('index_version', '1');
         PRAGMA application_id = 0x74616c6b;
         PRAGMA user_version = {version};
         COMMIT;"
    ))
    .unwrap();
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
    for former in 1..=FORMER.len() {
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
        let longest = began.elapsed().max(Duration::from_millis(2));
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
                found if found == former as u32 => {
                    old += 1;
                    assert!(matches!(read, Err(Error::OlderStore { .. })), "{read:?}");
                }
                found => {
                    new += 1;
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
