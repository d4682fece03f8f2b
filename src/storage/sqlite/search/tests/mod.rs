//! Searches below the public API: their statements, what they find, and what their tests share.

mod index;
mod stopped;

use std::sync::Arc;
use std::time::Duration;

use super::super::connection::{Config, Database};
use super::super::index::{
    CREATE_PENDING, FIND, FIRST_PENDING, Index, NEXT_PENDING, PENDING_PARTS,
};
use super::super::interrupt::TimeBudget;
use super::super::query_plans::whole_reads;
use super::super::session::SqliteSession;
use super::rows::{HAS_COPIES, LAST, NEWEST, OTHERS, ROW};
use super::{hits, range};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::search::{Scope, SearchRequest, SearchTarget};
use crate::tree::Address;
use crate::view::{ExpectedHead, Parent};

fn session(database: &Arc<Database>, id: &str) -> SqliteSession {
    SqliteSession::new(Arc::clone(database), SessionId::from(id))
}

fn count(database: &Database, text: &str) -> Result<usize> {
    let request = SearchRequest { limit: 100_000, ..SearchRequest::new(text, Scope::Store) };
    Ok(database.search(&request)?.hits.len())
}

fn append(session: &SqliteSession, texts: impl IntoIterator<Item = String>) -> Result<()> {
    let messages: Vec<_> = texts.into_iter().map(Message::user).collect();
    session.append(&Parent::Head, &ExpectedHead::Any, &messages, None).map(|_| ())
}

fn pending(database: &Database) -> Result<i64> {
    let pending = "SELECT count(*)
           FROM session JOIN message ON address BETWEEN (key << 32) + unindexed AND (key << 32) + 4294967295";
    database.read(|conn| conn.one(pending, ()))
}

/// Cuts every text again, and compares its terms with those of the index; nothing else notices a missing entry.
fn check_index(database: &Database) -> Result<()> {
    let damages = database.write(super::super::verify::index_damages)?;
    assert!(damages.is_empty(), "{damages:?}");
    Ok(())
}

#[test]
fn no_statement_scans_the_messages() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let chat = session(&database, "s");
    append(&chat, (0..50).map(|n| format!("text {n}")))?;
    let others = [
        NEWEST,
        LAST,
        hits::AT,
        hits::COPIES,
        NEXT_PENDING,
        FIRST_PENDING,
        PENDING_PARTS,
        range::NAMES,
        range::KEYS,
        range::MESSAGES,
        HAS_COPIES,
        ROW,
        OTHERS,
    ];
    for is_analyzed in [false, true] {
        database.write(|conn| {
            if is_analyzed {
                conn.script("ANALYZE message; ANALYZE session")?;
            }
            conn.temporary()?.script(CREATE_PENDING)?;
            // A server is asked for words by other statements.
            let of_words = FIND.into_iter().filter(|_| !conn.is_far());
            for sql in others.into_iter().chain(of_words) {
                let (lines, is_the_copies) = (conn.plan(sql)?, sql == hits::COPIES);
                let plan = lines.join("\n");
                if conn.is_far() {
                    let mut reads = whole_reads(&lines);
                    // The first entry of the index of copies says whether there are any.
                    reads.retain(|read| read.contains(" on message") && !read.contains(" copy "));
                    assert_eq!(reads, [""; 0], "{sql}\n{plan}");
                    continue;
                }
                for scan in ["SCAN message", "SCAN other", "SCAN copy", "SCAN last"] {
                    assert!(
                        is_the_copies && scan == "SCAN copy" || !plan.contains(scan),
                        "{sql}\n{plan}"
                    );
                }
                let is_sorted = plan.contains("TEMP B-TREE FOR ORDER BY");
                assert!(is_the_copies || !is_sorted, "{sql}\n{plan}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Filters are labels of the index; what passes is what the rows say.
#[test]
fn filters_pass_what_the_rows_say_in_sessions_of_any_times() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let roles = ["user", "assistant", "system", "tool", "editor", "critic"];
    // One session after the other in time; then some in no order, at the limits of time among them.
    let mut all = Vec::new();
    for number in 0..12_i64 {
        let messages: Vec<Message> = (0..700)
            .map(|n: i64| {
                let micros = match number {
                    0..9 => (number * 1_000 + n) * 3_600_000_000,
                    9 => (n * 7_919 % 9_000) * 3_600_000_000,
                    10 => -n * 86_400_000_000,
                    _ => 4_102_444_800_000_000 + n * 31_536_000_000_000,
                };
                let time = chrono::DateTime::from_timestamp_micros(micros).expect("a time");
                let role = roles[usize::try_from(n * n + number).unwrap_or(0) % roles.len()];
                Message { role: role.into(), ..Message::user(format!("fox {n}")) }.at(time)
            })
            .collect();
        for batch in messages.chunks(300) {
            session(&database, &format!("s{number}"))
                .append(&Parent::Head, &ExpectedHead::Any, batch, None)
                .map(|_| ())?;
        }
        all.extend(messages);
    }
    check_index_after_search(&database)?;
    for text in [
        "fox role:user after:1970-03-01 before:1970-03-09",
        "fox after:1970-01-01T07:00:00Z before:1970-01-01T09:00:00Z",
        "fox role:editor before:1970-02-01",
        "fox role:critic role:tool",
        "fox before:1969-01-01",
        "fox after:2200-01-01",
        "fox role:nobody",
    ] {
        let request = SearchRequest { limit: 100_000, ..SearchRequest::new(text, Scope::Store) };
        let filters = request.query().filters;
        let expected = all.iter().filter(|message| {
            (filters.roles.is_empty()
                || filters.roles.iter().any(|role| role == message.role.as_str()))
                && filters.after.is_none_or(|after| message.created_at >= after)
                && filters.before.is_none_or(|before| message.created_at < before)
        });
        let expected: std::collections::BTreeSet<_> = expected.map(|it| it.id.clone()).collect();
        let hits = database.search(&request)?.hits;
        let found: std::collections::BTreeSet<_> = hits.into_iter().map(|hit| hit.id).collect();
        assert_eq!(found.len(), expected.len(), "{text}");
        assert_eq!(found, expected, "{text}");
        assert!(text.ends_with("nobody") || !found.is_empty(), "{text}");
    }
    Ok(())
}

fn check_index_after_search(database: &Database) -> Result<()> {
    count(database, "fox")?;
    check_index(database)
}

/// A question looked at the newest messages with each of its words only: none was of the time that it asked for.
#[test]
fn a_question_finds_old_messages_if_its_filters_leave_out_the_new_ones() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let words: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
    let text = words.join(" ");
    let at = |time: &str| time.parse().expect("a time");
    for (name, count, time) in
        [("old", 5, "2020-06-01T00:00:00Z"), ("new", 900, "2021-06-01T00:00:00Z")]
    {
        let messages: Vec<Message> =
            (0..count).map(|_| Message::user(text.as_str()).at(at(time))).collect();
        session(&database, name).append(&Parent::Head, &ExpectedHead::Any, &messages, None)?;
    }
    let question = format!("what is {text} before:2021");
    let request = SearchRequest::new(&question, Scope::Store);
    assert_eq!(database.search(&request)?.hits.len(), 5);
    Ok(())
}

/// Only the newest thousand were ranked.
#[test]
fn of_a_few_thousand_messages_with_a_word_the_best_is_first_however_old_it_is() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let best = Message::user("fox");
    let chat = session(&database, "s");
    chat.append(&Parent::Head, &ExpectedHead::Any, std::slice::from_ref(&best), None)
        .map(|_| ())?;
    append(&chat, (0..2_000).map(|n| format!("a story {n} of a fox and of many other things")))?;
    for scope in [Scope::Store, Scope::session("s")] {
        let found = database.search(&SearchRequest::new("fox", scope))?;
        assert_eq!(found.hits[0].id, best.id);
    }
    Ok(())
}

/// Queries that nothing matches as they are written, with what they should find.
const REPAIRED: [(&str, &str); 5] = [
    ("compac", "a compaction of history"),
    ("seesion manager", "the session manager"),
    ("session store", "sessionstore opens"),
    ("hardlink", "a hard link"),
    ("compaction manager", "a compaction of history"),
];

fn repaired(database: &Arc<Database>) -> Result<()> {
    let texts = REPAIRED[..4].iter().map(|(_, text)| (*text).to_owned());
    append(&session(database, "s"), texts)
}

/// A word was split only if the table of terms had its parts, which has none of pending messages.
#[test]
fn steps_find_what_is_pending() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = folder.path().join("store.db");
    let writer = Arc::new(Database::open(&path, Config::default())?);
    writer.deferred.suspend();
    repaired(&writer)?;
    let reader = Database::open_read_only(&path, Config::default())?;
    let answer = |database: &Database, query: &str| -> Result<(Vec<String>, Vec<String>)> {
        let found = database.search(&SearchRequest::new(query, Scope::Store))?;
        let texts = found.hits.into_iter().map(|hit| hit.snippet.text).collect();
        Ok((texts, found.steps.iter().map(ToString::to_string).collect()))
    };
    for (query, text) in REPAIRED {
        assert_eq!(pending(&reader)?, 4);
        let found = answer(&reader, query)?;
        assert!(found.0.iter().any(|hit| hit == text), "{query} {found:?}");
    }
    for (query, _) in REPAIRED {
        assert_eq!(answer(&reader, query)?, answer(&writer, query)?, "{query}");
    }
    assert_eq!(pending(&writer)?, 0);
    Ok(())
}
