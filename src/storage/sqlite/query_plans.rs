//! The query plans of the hot statements: each uses the index made for it and none scans all messages, before ANALYZE
//! and after.
//!
//! SQLite uses a partial index only if a query repeats its condition literally, and ANALYZE may make it prefer
//! another index.

use super::catalog::{self, binding, list, removal};
use super::connection::{Config, Database};
use super::context::{elision, entry};
use super::session::SqliteSession;
use super::{
    append, children, compaction, delete, erase, fork, head, inbox, index, message, owner_data,
    path, plan_reader, tokens, usage,
};
use crate::catalog::{ResumeRequest, SessionChange};
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::inbox::InboxItem;
use crate::message::{Message, Part};
use crate::outcome::SessionDetails;
use crate::storage::context::{BlockScope, Document};
use crate::view::{ExpectedHead, Parent};

/// Statements on large tables, and the index of each.
const HOT: &[(&str, &str)] = &[
    (message::BY_ID, "INDEX message_id (session=? AND id=?)"),
    (path::BREAKS_BEFORE, "COVERING INDEX run (address>? AND address<?)"),
    (path::SPANS_BEFORE, "INDEX compaction_end (last>? AND last<?)"),
    (path::SPAN_BELOW, "INDEX compaction_end (last>? AND last<?)"),
    (compaction::COVERING, "INDEX compaction_end (last>? AND last<?)"),
    (tokens::SUMS, RANGE),
    (tokens::UNCOUNTED, RANGE),
    (plan_reader::FORWARD, RANGE),
    (plan_reader::BACKWARD, RANGE),
    (fork::COPY, RANGE),
    (fork::FOLLOW, "SEARCH message USING INDEX copy (origin>? AND origin<?)"),
    (fork::FOLLOW, "SEARCH present USING INDEX message_id (session=? AND id=?)"),
    (index::PENDING_PARTS, RANGE),
    (index::FIRST_PENDING, "SCAN session USING INDEX session_unindexed"),
    (usage::NEAREST_AUTHOR, "INDEX message_author (address>? AND address<?)"),
    (removal::BYTES, RANGE),
    (path::TOMBSTONES, "COVERING INDEX unshown (address>? AND address<?)"),
    (path::HIDDEN, "COVERING INDEX unshown (address>? AND address<?)"),
    (children::TOMBSTONES, "COVERING INDEX unshown (address>? AND address<?)"),
    (children::HIDDEN, "COVERING INDEX unshown (address>? AND address<?)"),
    (children::BREAKS, "COVERING INDEX run (address>? AND address<?)"),
    (append::UNFINISHED, "INDEX unshown (address>? AND address<?)"),
    (path::LAST_VISIBLE, "SEARCH message USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    (path::LAST_VISIBLE, "SEARCH other USING COVERING INDEX unshown (address=?"),
    (delete::HAS_CHILDREN, "COVERING INDEX branch (parent=?)"),
    (children::BRANCHES, "COVERING INDEX branch (parent=? AND rowid>? AND rowid<?)"),
    (children::ROOTS, "COVERING INDEX branch (parent=? AND rowid>? AND rowid<?)"),
    (children::DELETED_BRANCHES, "INDEX unshown (address>? AND address<?)"),
    (erase::COPIES, "COVERING INDEX copy (origin=?)"),
    (elision::MESSAGES_WITH, "PRIMARY KEY (address>? AND address<?)"),
    (elision::HAS_ANY, "PRIMARY KEY (address>? AND address<?)"),
    (list::ALL, "INDEX session_listed (listed_at<?)"),
    (list::OF_SOURCE, "INDEX session_listed (listed_at<?)"),
    (list::OF_MODEL, "INDEX session_listed (listed_at<?)"),
    (list::PINNED, "INDEX session_listed (listed_at<?)"),
    (list::OWNED, "INDEX session_owner (owner=? AND listed_at<?)"),
    (list::FORKED, "INDEX session_parent (parent_session=? AND listed_at<?)"),
    (list::CREATED, "INDEX session_created (created_at=? AND listed_at<?)"),
    (list::IN_TRASH, "INDEX session_deleted (listed_at<?)"),
    (list::FIRST_OF_USER, RANGE),
    (list::IS_WRITTEN_IN, "INDEX message_author (address>? AND address<?)"),
    (catalog::OWNERS, "INDEX session_owner (owner>?)"),
    (message::MENTIONS, "SEARCH child USING INDEX session_parent (parent_session=?)"),
    (owner_data::LEDGER, "INDEX usage_owner (owner=? AND used_at>?)"),
    (binding::OPEN, "INDEX binding_open (key=?)"),
    (binding::OF_SESSION, "INDEX binding_session (session=? AND rowid<?)"),
    (binding::OPEN_OF_SESSION, "INDEX binding_session (session=?)"),
    (entry::FIND, "INDEX context_key (block=? AND key=?)"),
    (entry::DOCUMENTS, "INDEX context_key (block=? AND key>?)"),
    (entry::SEARCHABLE, RANGE),
    (inbox::NEXT, "INDEX inbox_turn (source=? AND key=?)"),
    (inbox::COUNT, "COVERING INDEX inbox_turn (source=? AND key>?)"),
    (inbox::FIND, "(source=? AND id=?)"),
    (inbox::FORGET, "COVERING INDEX inbox_turn (source=? AND key=?)"),
    (erase::ITEMS_OF_OWNER, "INDEX inbox_turn (source=? AND key>?)"),
];

const RANGE: &str = "INTEGER PRIMARY KEY (rowid>? AND rowid<?)";

/// Two sessions with every kind of row: runs, branches, tombstones, hidden messages, compactions.
fn filled() -> Result<Database> {
    let database = std::sync::Arc::new(Database::open_in_memory(Config::default())?);
    for name in ["one", "two"] {
        let session = SqliteSession::new(std::sync::Arc::clone(&database), name.into());
        for n in 0..400 {
            let message = |n: u32| Message::user(format!("text {n}")).with_id(n.to_string());
            let parent = if n % 50 == 7 {
                Parent::Message((n - 5).to_string().into())
            } else {
                Parent::Head
            };
            let message = if n % 40 == 3 { message(n).hidden() } else { message(n) };
            session.append(&parent, &ExpectedHead::Any, &[message], None)?;
        }
        for n in (10..400).step_by(45) {
            session.delete(&[n.to_string().into()])?;
        }
        for n in (20..300).step_by(50) {
            let (first, last) = (n.to_string().into(), (n + 3).to_string().into());
            session.add_compaction(&Compaction::new("summary", first, last))?;
        }
        session.write_short(|conn, name| head::label(conn, name, "here", Some(&"5".into())))?;
        let context = database.context(&name.into());
        for n in 0..100 {
            let key = n.to_string();
            context.write(|texts| {
                texts.put(BlockScope::Session, "documents", &Document::new(&key, "text"), true)
            })?;
        }
        let result = Part::tool_result("look", "call", serde_json::json!("text"));
        session.append(
            &Parent::Head,
            &ExpectedHead::Any,
            &[Message::assistant("").with_part(result).with_id("r")],
            None,
        )?;
        context.elide(&[("r".into(), "call".into())], "gone")?;
        session.fork(&"30".into(), &format!("fork of {name}").into(), &Default::default())?;
    }
    for number in 0..60 {
        let some = |name: &str| Some(format!("{name} {}", number % 3));
        let details = SessionDetails {
            owner: some("owner"),
            source: some("source"),
            model: some("model"),
            tags: some("tag").into_iter().collect(),
            is_pinned: Some(number % 20 == 0),
            ..SessionDetails::default()
        };
        let request =
            ResumeRequest { details, ..ResumeRequest::new(format!("key {}", number % 9)) };
        let resumed = database.resume(&request)?;
        database.change_session(&resumed.session, &SessionChange::End("over".to_owned()))?;
        if number % 10 == 0 {
            database.change_session(&resumed.session, &SessionChange::Delete)?;
        }
    }
    for number in 0..600 {
        let source = format!("source {}", number % 3);
        let item = InboxItem::new(number.to_string(), format!("key {}", number % 20), "body")
            .owner(format!("owner {}", number % 7));
        database.receive(&source, &[item], Some(number))?;
        if number % 2 == 0 {
            database.end_item(&source, &number.to_string())?;
        }
    }
    std::sync::Arc::into_inner(database).ok_or(Error::Unsupported { what: "a shared database" })
}

/// Returns whether a statement is planned before ANALYZE and after; a server counts the rows by itself.
fn are_analyzed(database: &Database) -> Result<&'static [bool]> {
    Ok(if database.read(|conn| Ok(conn.is_far()))? { &[true] } else { &[false, true] })
}

/// Returns the parts of a server's plan that read a whole table, or a whole index.
pub(super) fn whole_reads(plan: &[String]) -> Vec<&str> {
    let parts = plan.iter().map(String::as_str);
    let with_next = parts.clone().zip(parts.skip(1).chain([""]));
    let whole = with_next.filter(|(part, next)| {
        let is_of_index = part.contains("Index") && part.contains("Scan");
        part.contains("Seq Scan on") || is_of_index && !next.contains("Index Cond")
    });
    whole.map(|(part, _)| part.trim()).collect()
}

#[test]
fn hot_statements_use_the_indexes_made_for_them() -> Result<()> {
    let database = filled()?;
    for is_analyzed in [false, true] {
        if is_analyzed {
            database.write(|conn| conn.script("ANALYZE"))?;
        }
        for (sql, index) in HOT {
            let details = database.read(|conn| conn.plan(sql))?;
            let whole = details.join("\n");
            assert!(whole.contains(index), "{sql}\nanalyzed {is_analyzed}: {whole}");
            assert!(!whole.contains("TEMP B-TREE"), "{sql}\nanalyzed {is_analyzed}: {whole}");
            // Inboxes are few, and so are sessions with pending messages, and those that continue one.
            let is_small = |scan: &str| {
                ["SCAN inbox_source", "SCAN CONSTANT ROW", "SCAN continued"]
                    .iter()
                    .any(|small| scan.starts_with(small))
                    || scan.ends_with("INDEX session_unindexed")
            };
            let scan =
                details.iter().find(|detail| detail.starts_with("SCAN") && !is_small(detail));
            assert_eq!(scan, None, "{sql}\nanalyzed {is_analyzed}");
        }
    }
    Ok(())
}

/// A server that had counted the rows read all messages of a long session for its breaks, of which there is one.
#[test]
fn the_first_message_of_a_long_session_is_found_at_once() -> Result<()> {
    let database = std::sync::Arc::new(Database::open_in_memory(Config::default())?);
    let append = |name: &str, count: usize| {
        let session = SqliteSession::new(std::sync::Arc::clone(&database), name.into());
        let messages: Vec<Message> = (0..count).map(|n| Message::user(n.to_string())).collect();
        session.append(&Parent::Head, &ExpectedHead::Any, &messages, None)
    };
    (0..200).try_for_each(|n| append(&n.to_string(), 1).map(drop))?;
    append("long", 5_000)?;
    database.write(|conn| conn.command("ANALYZE message"))?;
    let (first, last) = crate::tree::Address::range_of(201);
    for sql in [path::BREAKS_BEFORE, children::BREAKS] {
        let (steps, found) = database.steps_of_write(|conn| match sql {
            path::BREAKS_BEFORE => conn.rows::<crate::tree::Address>(sql, (last, first, 64_i64)),
            _ => conn.rows(sql, (first, last)),
        })?;
        assert_eq!(found.len(), 1, "{sql}");
        assert!(steps < 400, "{steps} steps of {sql}");
    }
    Ok(())
}

#[test]
fn the_keys_of_an_inbox_are_read_from_its_index() -> Result<()> {
    let database = filled()?;
    for is_analyzed in are_analyzed(&database)? {
        if *is_analyzed {
            database.write(|conn| conn.script("ANALYZE inbox_item"))?;
        }
        let (is_far, plan) = database.read(|conn| Ok((conn.is_far(), conn.plan(inbox::KEYS)?)))?;
        let whole = plan.join("\n");
        // The keys are sorted, not the items.
        let (part, sort, of_keys) = match is_far {
            true => ("using inbox_turn on inbox_item", "Sort Key: ", "Sort Key: (min("),
            false => (
                "COVERING INDEX inbox_turn (source=? AND key>?)",
                "TEMP B-TREE",
                "TEMP B-TREE FOR ORDER BY",
            ),
        };
        assert!(whole.contains(part), "analyzed {is_analyzed}: {whole}");
        assert_eq!(whole.matches(sort).count(), 1, "analyzed {is_analyzed}: {whole}");
        assert!(whole.contains(of_keys), "analyzed {is_analyzed}: {whole}");
    }
    Ok(())
}

#[test]
fn a_linear_append_does_not_write_the_indexes_of_the_tree() -> Result<()> {
    let database = std::sync::Arc::new(Database::open_in_memory(Config::default())?);
    let session = SqliteSession::new(std::sync::Arc::clone(&database), "s".into());
    let messages: Vec<Message> = (0..1_000).map(|n| Message::user(n.to_string())).collect();
    session.append(&Parent::Head, &ExpectedHead::Any, &messages, None)?;
    for index in ["run", "branch"] {
        let entries: u64 = database.write(|conn| {
            conn.command("ANALYZE message")?;
            let counted = match conn.is_far() {
                true => "SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = to_regclass(CAST(?1 AS TEXT))",
                false => "SELECT CAST(stat AS INTEGER) FROM sqlite_stat1 WHERE idx = ?1",
            };
            conn.one(counted, index)
        })?;
        assert_eq!(entries, 1, "{index} holds the breaks only");
    }
    Ok(())
}
