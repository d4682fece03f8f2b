//! What do transcripts of agents cost, compared with their rows in SQLite alone?
//!
//! The floor is the row of each entry with a unique index on its uuid, and an update of the row of its transcript. An append
//! of talktree also reads the entries for the summary and gives the transcript a new time; one that projects also writes the
//! session that shows the transcript.

use rusqlite::{Connection, params};
use serde_json::json;
use serde_json::value::RawValue;
use talktree::{Durability, Json, TranscriptKey};
use talktree_claude::SessionStore;

use crate::measure::{Rounds, alternate, repeat, timed};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result};

/// How many entries the transcript has that is loaded.
const ENTRIES: usize = 10_000;
/// How many sessions a project has.
const SESSIONS: usize = 1_000;

/// Measures appends of one entry and of fifty, a load, and a list of sessions.
pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let store = open(&bench.stores.fresh("transcripts.db")?, Durability::Normal)?;
    let transcripts = SessionStore::new(&store);
    let conn = floor(bench)?;
    let projecting = transcripts.projecting();
    let mut numbers = 0..;
    let mut batch =
        |count: usize| -> Vec<Json> { numbers.by_ref().take(count).map(entry).collect() };
    let mut next = 1;
    for (what, count, handle) in [
        ("a transcript", 1, &transcripts),
        ("a transcript", 50, &transcripts),
        ("a transcript and its session", 1, &projecting),
        ("a transcript and its session", 50, &projecting),
    ] {
        let key = TranscriptKey::new("-home-ann-shop", what);
        let batches: Vec<Vec<Json>> = (0..2_100).map(|_| batch(count)).collect();
        let (mut floor_batches, mut our_batches) = (batches.iter(), batches.iter());
        let pair = alternate(
            Rounds::default(),
            || {
                let batch = floor_batches.next().ok_or("too few batches")?;
                timed(|| append(&conn, &mut next, batch))
            },
            || {
                let batch = our_batches.next().ok_or("too few batches")?;
                timed(|| {
                    let appended = handle.append(&key, batch)?;
                    assert_eq!(appended.added, count as u64);
                    Ok(appended)
                })
            },
        )?;
        let work = format!("append {count} to {what}, Normal");
        bench.table.add(Row::seconds(work, pair.ours.median()).floor(pair.floor.median()));
    }

    let long = TranscriptKey::new("-home-ann-shop", "long");
    let entries = batch(ENTRIES);
    transcripts.append(&long, &entries)?;
    let conn = floor(bench)?;
    append(&conn, &mut 1, &entries)?;
    let pair = alternate(
        Rounds::default(),
        || {
            timed(|| {
                let mut statement =
                    conn.prepare_cached("SELECT entry FROM entry ORDER BY address")?;
                let mut rows = statement.query([])?;
                let mut found: Vec<Box<RawValue>> = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(serde_json::from_str(row.get_ref(0)?.as_str()?)?);
                }
                assert_eq!(found.len(), ENTRIES);
                Ok(found)
            })
        },
        || timed(|| Ok(transcripts.log().load(&long)?)),
    )?;
    bench.table.add(
        Row::seconds("load a transcript of 10k", pair.ours.median()).floor(pair.floor.median()),
    );

    for number in 0..SESSIONS {
        let key = TranscriptKey::new("-home-ann-list", format!("session {number}"));
        transcripts.append(&key, &batch(3))?;
    }
    let times = repeat(Rounds::default(), || {
        timed(|| {
            let infos = transcripts.infos("-home-ann-list")?;
            assert_eq!(infos.len(), SESSIONS);
            Ok(infos)
        })
    })?;
    bench.table.add(Row::seconds("list 1k sessions with their summaries", times.median()));
    Ok(())
}

/// Returns an entry of about 900 bytes, as the agent's command writes them.
fn entry(number: usize) -> Json {
    let text = "The login fails because the token has expired. ".repeat(10);
    let uuid = |number: usize| {
        format!("{:08x}-90c5-4dd7-a6f1-8f8b2f4f7a10", number.wrapping_mul(0x9E37_79B1) as u32)
    };
    Json::from(json!({
        "parentUuid": number.checked_sub(1).map(uuid), "isSidechain": false, "userType": "external",
        "cwd": "/home/ann/shop", "sessionId": "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10", "version": "2.1.0",
        "gitBranch": "main", "type": if number.is_multiple_of(2) { "user" } else { "assistant" }, "uuid": uuid(number),
        "timestamp": "2026-03-01T10:00:02.000Z", "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    }))
}

fn floor(bench: &Bench) -> Result<Connection> {
    let conn =
        crate::floor::open(&bench.stores.fresh("transcripts-floor.db")?, Durability::Normal)?;
    conn.execute_batch(
        "CREATE TABLE transcript (key INTEGER PRIMARY KEY, next INTEGER, written_at INTEGER);
         INSERT INTO transcript VALUES (1, 1, 0);
         CREATE TABLE entry (address INTEGER PRIMARY KEY, uuid TEXT, entry TEXT NOT NULL);
         CREATE UNIQUE INDEX entry_uuid ON entry (uuid);",
    )?;
    Ok(conn)
}

fn append(conn: &Connection, next: &mut i64, entries: &[Json]) -> Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    for entry in entries {
        // The floor is given the uuid; talktree has to find it in the entry.
        let text = entry.as_str();
        let at = text.find("\"uuid\":\"").ok_or("an entry without a uuid")? + 8;
        conn.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?.execute(params![
            *next,
            &text[at..at + 36],
            text
        ])?;
        *next += 1;
    }
    conn.prepare_cached("UPDATE transcript SET next = ?1, written_at = ?1 WHERE key = 1")?
        .execute([*next])?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}
