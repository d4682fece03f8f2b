//! Rows that talktree did not write.

use rusqlite::Connection;
use talktree::{Error, Message, Store};

use super::{Args, call};
use crate::fixture::Fixture;
use crate::verbs::{self, Verb};
use crate::{Report, Result};

/// What another program writes, and whether `verify` must find it.
const ROWS: &[(&str, bool)] = &[
    ("UPDATE session SET next = 0", true),
    ("UPDATE session SET next = -1", true),
    ("UPDATE session SET next = 3", true),
    ("UPDATE session SET next = 9223372036854775807", false),
    ("UPDATE session SET next = 4294967296", false),
    ("UPDATE session SET head = 0", true),
    ("UPDATE session SET head = -1", true),
    ("UPDATE session SET head = 9223372036854775807", true),
    ("UPDATE session SET head = NULL", false),
    ("UPDATE session SET head_position = 9223372036854775807", true),
    ("UPDATE session SET visible_tokens = -5", true),
    ("UPDATE session SET visible_tokens = 9223372036854775807, counter = 9", true),
    ("UPDATE session SET changes = 9223372036854775807", false),
    ("UPDATE session SET updated_at = 9223372036854775807", true),
    ("UPDATE session SET metadata = '{'", true),
    ("UPDATE session SET id = '' WHERE id = 'chat'", true),
    ("UPDATE session SET id = printf('%.2000c', 'x') WHERE id = 'chat'", true),
    ("INSERT INTO session (id, created_at, updated_at) VALUES ('', 1, 1)", true),
    ("UPDATE session SET deleted_at = 9223372036854775807 WHERE id = 'chat'", true),
    (
        "INSERT INTO binding (key, session, bound_at)
         SELECT 'k', key, 9223372036854775807 FROM session WHERE id = 'chat'",
        true,
    ),
    (
        "INSERT INTO usage (session, input, used_at)
         SELECT key, 9223372036854775807, 0 FROM session UNION ALL SELECT key, 9223372036854775807, 1 FROM session",
        true,
    ),
    (
        "INSERT INTO session (key, id, created_at, updated_at) VALUES (9223372036854775807, 'new', 0, 0)",
        true,
    ),
    ("INSERT INTO session (key, id, created_at, updated_at) VALUES (-1, 'old', 0, 0)", true),
    ("UPDATE message SET id = NULL WHERE id IN ('m7', 'p3')", true),
    ("UPDATE message SET id = 'm9' || char(0) WHERE id = 'm9'", false),
    ("UPDATE message SET id = '' WHERE id = 'm9'", true),
    ("UPDATE message SET extra = '{\"id\":\"evil\",\"role\":\"system\",\"parts\":3}' WHERE id = 'm10'", true),
    ("UPDATE message SET parts = '' WHERE id = 'm10'", true),
    ("UPDATE message SET parts = '{}' WHERE id = 'm10'", true),
    ("UPDATE message SET parts = CAST(x'ff' AS TEXT) WHERE id = 'm10'", true),
    ("UPDATE message SET role = CAST(x'ff' AS TEXT) WHERE id = 'm10'", true),
    ("UPDATE message SET parent = address WHERE id = 'm10'", true),
    ("UPDATE message SET parent = address + 1 WHERE id = 'm10'", true),
    ("UPDATE message SET parent = NULL WHERE id = 'm10'", false),
    ("UPDATE message SET parent = -1 WHERE id = 'm10'", true),
    ("UPDATE message SET tokens = 9223372036854775807", true),
    ("UPDATE message SET tokens = -1", true),
    ("UPDATE message SET hidden = 7 WHERE id = 'm10'", true),
    ("UPDATE message SET created_at = 9223372036854775807 WHERE id = 'm10'", true),
    ("UPDATE message SET origin = 9223372036854775807 WHERE id = 'm10'", false),
    ("DELETE FROM message WHERE id = 'm10'", true),
    ("UPDATE message SET address = address >> 32 << 32 WHERE id = 'p40'", true),
    ("DELETE FROM message WHERE id = 'm300'", true),
    ("UPDATE message SET address = 9223372036854775807 WHERE id = 'p40'", true),
    ("UPDATE compaction SET first = last + 1", true),
    ("UPDATE compaction SET first = -9223372036854775807, last = 9223372036854775807", true),
    ("UPDATE compaction SET nested = '{'", true),
    ("UPDATE compaction SET summary = CAST(x'ff' AS TEXT)", true),
    ("UPDATE compaction SET summary = ''", true),
    ("UPDATE compaction SET key = 9223372036854775807", false),
    ("UPDATE label SET address = 9223372036854775807", true),
    ("UPDATE OR IGNORE label SET name = ''", true),
    ("UPDATE head_log SET address = 0", true),
    ("UPDATE sqlite_sequence SET seq = 9223372036854775807", false),
    ("UPDATE sqlite_sequence SET seq = -5", false),
    ("UPDATE setting SET value = 'nonsense'", false),
    ("DELETE FROM setting", false),
    ("UPDATE session SET unindexed = -1", true),
    ("UPDATE session SET unindexed = 9223372036854775807", true),
    ("UPDATE OR IGNORE context_block SET label = ''", true),
    ("UPDATE context_block SET next = 0", true),
    ("UPDATE context_block SET next = 9223372036854775807", false),
    ("UPDATE context_entry SET address = block << 32 WHERE key = 'f7'", true),
    ("DELETE FROM token_counter", false),
    ("DELETE FROM session WHERE id = 'chat'", true),
];

/// Writes each of the rows, and random combinations of them.
pub(super) fn run(args: &Args, fixture: &Fixture, report: &mut Report) -> Result<()> {
    let mut figures = Figures::default();
    for (number, (row, is_damage)) in ROWS.iter().enumerate() {
        let store = written(&[row], fixture)?;
        if *is_damage && store.verify(|_| {})?.damages.is_empty() {
            report.failure(format!("verify does not find {row:?}"), "just torture neighbours");
        }
        // A verb may remove what the row did.
        for verb in verbs::all().skip(number % args.step).step_by(args.step) {
            try_verb(&written(&[row], fixture)?, verb, &[row], report, &mut figures);
        }
    }
    let mut dice = fastrand::Rng::with_seed(report.seed());
    for _ in 0..args.rounds {
        let rows: Vec<&str> =
            (0..dice.usize(2..5)).map(|_| ROWS[dice.usize(..ROWS.len())].0).collect();
        let store = written(&rows, fixture)?;
        for verb in verbs::all() {
            try_verb(&store, verb, &rows, report, &mut figures);
        }
    }
    report.fact("stores with foreign rows", ROWS.len() as u64 + args.rounds);
    report.fact("verbs that answered", figures.answered);
    report.fact("verbs that refused with a named error", figures.refused);
    Ok(())
}

#[derive(Default)]
struct Figures {
    answered: u64,
    refused: u64,
}

/// Writes foreign rows into a copy of the store while a handle is open, and returns that.
fn written(rows: &[&str], fixture: &Fixture) -> Result<Store> {
    let path = fixture.copy()?;
    let store = Store::open(&path)?;
    let foreign = Connection::open(&path)?;
    for row in rows {
        // A row may not fit the one before it.
        let _ = foreign.execute_batch(row);
    }
    Ok(store)
}

/// Calls a verb, and appends to each session.
fn try_verb(store: &Store, verb: &Verb, rows: &[&str], report: &mut Report, figures: &mut Figures) {
    let replay = format!("just torture neighbours --seed {}", report.seed());
    match call(store, verb) {
        Ok(Ok(_)) => figures.answered += 1,
        Ok(Err(error)) if is_named(&error) => figures.refused += 1,
        Ok(Err(error)) => {
            report.failure(format!("{} after {rows:?}: {error} ({error:?})", verb.name), &replay);
        }
        Err(panic) => report.failure(format!("{} after {rows:?}: {panic}", verb.name), &replay),
    }
    for session in ["chat", "new", "fork"] {
        if let Err(what) = append(store, session, verb.name) {
            report.failure(format!("{what}, session {session}, after {rows:?}"), &replay);
        }
    }
}

/// Appends a message; if that is acknowledged, it can be read.
fn append(store: &Store, session: &str, after: &str) -> std::result::Result<(), String> {
    let id = format!("after {after}");
    let append = || {
        let chat = store.session(session)?;
        chat.append_root(Message::user("hello").with_id(id.as_str()))?;
        chat.message(&id.as_str().into())
    };
    match append() {
        Ok(Some(message)) if message.text() == "hello" => Ok(()),
        Ok(_) => Err(format!("{id:?} was acknowledged and does not read as it was written")),
        Err(error) if is_named(&error) => Ok(()),
        Err(error) => Err(format!("an append fails with {error} ({error:?})")),
    }
}

/// Returns whether the error says what is wrong.
fn is_named(error: &Error) -> bool {
    !matches!(
        error,
        Error::Storage { .. } | Error::DiskFull | Error::Busy { .. } | Error::Io { .. }
    ) && !error.to_string().contains("Invalid column type Null at index")
}
