//! The query plans of the hot statements: each uses the index made for it and none scans all messages, before ANALYZE
//! and after.
//!
//! SQLite uses a partial index only if a query repeats its condition literally, and ANALYZE may make it prefer
//! another index.

use super::catalog::{binding, discard, list, owners};
use super::connection::{Config, Database};
use super::context::{self, elision, entry, search};
use super::error::BackendResult;
use super::session::SqliteSession;
use super::{
    ancestry, children, compaction, delete, erase, fork, inbox, index, label, mention, message,
    message_tag, outline, owner_data, path, plan_reader, row, tokens, transcript, tree_source,
    unfinished, usage,
};
use crate::catalog::{ResumeRequest, SessionChange};
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::inbox::InboxItem;
use crate::message::{Json, Message, Part};
use crate::outcome::SessionDetails;
use crate::storage::context::{BlockScope, Document};
use crate::transcript::{Derived, TranscriptKey};
use crate::view::{ExpectedHead, Parent};

/// Each hot statement, and what its query plan contains.
const HOT: &[(&str, &str, &[&str])] = &[
    ("a message by id", message::BY_ID, &["INDEX message_id (session=? AND id=?)"]),
    ("a message by address", message::AT, &["INTEGER PRIMARY KEY (rowid=?)"]),
    ("id and parent", message::ID_AND_PARENT, &["INTEGER PRIMARY KEY (rowid=?)"]),
    ("a run", tree_source::BREAKS_BEFORE, &["COVERING INDEX run (address>? AND address<?)"]),
    ("a compaction's end", tree_source::SPAN_BEFORE, &["INDEX compaction_end (last>? AND last<?)"]),
    (
        "a compaction inside another",
        tree_source::SPAN_BELOW,
        &["INDEX compaction_end (last>? AND last<?)"],
    ),
    (
        "the tokens of a range",
        tokens::visible::SUMS,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    (
        "rows of another counter",
        tokens::visible::UNCOUNTED,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    ("elided messages", elision::MESSAGES_WITH, &["PRIMARY KEY (address>? AND address<?)"]),
    ("rows forward", plan_reader::FORWARD, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    ("rows backward", plan_reader::BACKWARD, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    ("tombstones", path::TOMBSTONES, &["INDEX tombstone (address>? AND address<?)"]),
    ("hidden", path::HIDDEN, &["COVERING INDEX hidden (address>? AND address<?)"]),
    (
        "whether there are children",
        delete::HAS_CHILDREN,
        &["INTEGER PRIMARY KEY (rowid=?)", "COVERING INDEX branch (parent=?)"],
    ),
    (
        "the compactions that cover a message",
        compaction::COVERING,
        &["INDEX compaction_end (last>? AND last<?)"],
    ),
    (
        "the last visible message of a range",
        ancestry::LAST_VISIBLE,
        &[
            "SEARCH message USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
            "SEARCH other USING COVERING INDEX hidden (address=? AND rowid=?)",
        ],
    ),
    ("branches", children::BRANCHES, &["COVERING INDEX branch (parent=? AND rowid>? AND rowid<?)"]),
    (
        "the next branch",
        children::NEXT_BRANCH,
        &["COVERING INDEX branch (parent=? AND rowid>? AND rowid<?)"],
    ),
    (
        "the deleted branches",
        children::DELETED_BRANCHES,
        &["INDEX tombstone (address>? AND address<?)"],
    ),
    ("every break", outline::BREAKS, &["COVERING INDEX run (address>? AND address<?)"]),
    ("every tombstone", outline::TOMBSTONES, &["INDEX tombstone (address>? AND address<?)"]),
    ("every hidden message", outline::HIDDEN, &["COVERING INDEX hidden (address>? AND address<?)"]),
    ("unfinished messages", unfinished::UNFINISHED, &["INDEX hidden (address>? AND address<?)"]),
    ("a fork's copy", fork::COPY, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    ("an append", row::message::INSERT, &[]),
    ("a session", row::session::BY_ID, &["(id=?)"]),
    (
        "the first session with pending messages",
        index::FIRST_PENDING,
        &["SCAN session USING INDEX session_unindexed"],
    ),
    (
        "the pending messages of a session",
        index::PENDING_PARTS,
        &["SEARCH message USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    (
        "the message of a label",
        label::NAMED,
        &["PRIMARY KEY (session=? AND name=?)", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    (
        "the labels of a range",
        "DELETE FROM label WHERE address BETWEEN ?1 AND ?2",
        &["COVERING INDEX label_target (address>? AND address<?)"],
    ),
    ("a list of all", list::ALL, &["INDEX session_listed (listed_at<?)"]),
    ("a list of an owner", list::OWNED, &["INDEX session_owner (owner=? AND listed_at<?)"]),
    ("a list of a source", list::OF_SOURCE, &["INDEX session_source (source=? AND listed_at<?)"]),
    ("a list of a model", list::OF_MODEL, &["INDEX session_model (model=? AND listed_at<?)"]),
    ("a list of pinned sessions", list::PINNED, &["INDEX session_pinned (listed_at<?)"]),
    ("a list of forks", list::FORKED, &["INDEX session_parent (parent_session=? AND listed_at<?)"]),
    ("the trash", list::IN_TRASH, &["INDEX session_deleted (listed_at<?)"]),
    ("the owners", owners::OWNERS, &["INDEX session_owner (owner>?)"]),
    ("the owners of transcripts", owners::OF_TRANSCRIPTS, &["INDEX transcript_owner (owner>?)"]),
    (
        "usage that is not in the ledger",
        usage::missing::MISSING,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "INDEX usage_message (address=?)"],
    ),
    ("the size of a session", discard::BYTES, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    ("a list by tag", list::TAGGED, &["COVERING INDEX session_tagged (tag=?)"]),
    (
        "whether an author wrote in a session",
        list::IS_WRITTEN_IN,
        &["INDEX message_author (author=? AND rowid>? AND rowid<?)"],
    ),
    (
        "the messages of an author",
        message_tag::WRITTEN,
        &["INDEX message_author (author=? AND rowid>? AND rowid<?)"],
    ),
    (
        "the messages with a tag",
        message_tag::TAGGED,
        &["COVERING INDEX message_tagged (tag=? AND address>?", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    (
        "the nearest author above an answer",
        usage::NEAREST_AUTHOR,
        &["INDEX message_authored (address>? AND address<?)"],
    ),
    (
        "the usage of an author, in batches",
        owner_data::LEDGER_OF_AUTHOR,
        &["INDEX usage_author (author=? AND used_at>?)", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    ("a preview", list::FIRST_OF_USER, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    ("where a key leads", binding::OPEN, &["INDEX binding_open (key=?)"]),
    (
        "the usage of an owner, in batches",
        owner_data::LEDGER,
        &["INDEX usage_owner (owner=? AND used_at>?)", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    (
        "the texts of a holder",
        entry::NAMES,
        &["(session=? AND owner=?)", "INDEX context_key (block=?)"],
    ),
    ("the bindings of a key", binding::OF_KEY, &["INDEX binding_key (key=? AND number<?)"]),
    (
        "the bindings of a session",
        binding::OF_SESSION,
        &["INDEX binding_session (session=? AND rowid<?)"],
    ),
    ("all bindings", binding::ALL, &["binding USING INTEGER PRIMARY KEY (rowid<?)"]),
    ("the keys of a session", binding::OPEN_OF_SESSION, &["INDEX binding_session (session=?)"]),
    ("the owner of a session", context::OWNER, &["INTEGER PRIMARY KEY (rowid=?)"]),
    ("a block", entry::BLOCK, &["(session=? AND owner=? AND label=?)"]),
    (
        "the labels that have a text",
        entry::LABELS,
        &["(session=? AND owner=?)", "INDEX context_present (block=? AND key>?)"],
    ),
    ("the blocks of a session", entry::BLOCKS, &["(session=? AND owner=?)"]),
    ("where a text is stored", entry::FIND, &["INDEX context_key (block=? AND key=?)"]),
    ("a text by key", entry::BY_KEY, &["(block=? AND key=?)"]),
    ("documents", entry::DOCUMENTS, &["INDEX context_present (block=? AND key>?)"]),
    ("how many documents", entry::COUNT, &["COVERING INDEX context_present (block=? AND key>?)"]),
    ("earlier versions", entry::FORMER, &["PRIMARY KEY (entry=?)"]),
    (
        "one version",
        entry::VERSION,
        &["PRIMARY KEY (entry=? AND version=?)", "INTEGER PRIMARY KEY (rowid=?)"],
    ),
    ("the current version", entry::PRESENT, &["INTEGER PRIMARY KEY (rowid=?)"]),
    (
        "a document entering the index",
        entry::SEARCHABLE,
        &["SEARCH context_entry USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    ("how many texts", search::IN_BLOCK, &["COVERING INDEX context_present (block=?)"]),
    ("a fork's texts", entry::COPY, &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    (
        "the texts of a removed session",
        entry::REMOVE_ENTRIES,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    (
        "the versions of a removed session",
        entry::REMOVE_VERSIONS,
        &["PRIMARY KEY (entry>? AND entry<?)"],
    ),
    ("a frozen prompt", context::FROZEN, &["INTEGER PRIMARY KEY (rowid=?)"]),
    ("whether there are elisions", elision::HAS_ANY, &["PRIMARY KEY (address>? AND address<?)"]),
    ("the elisions of a message", elision::OF_MESSAGE, &["PRIMARY KEY (address=?)"]),
    ("the elision of a call", elision::OF_CALL, &["PRIMARY KEY (address=? AND call=?)"]),
    (
        "the elisions of a deleted range",
        elision::REMOVE_RANGE,
        &["PRIMARY KEY (address>? AND address<?)"],
    ),
    ("the append of an item", inbox::INSERT, &[]),
    ("the oldest item of a key", inbox::NEXT, &["INDEX inbox_pending (source=? AND key=?)"]),
    (
        "how many items are pending",
        inbox::COUNT,
        &["COVERING INDEX inbox_pending (source=? AND key>?)"],
    ),
    ("a pending item", inbox::FIND, &["(source=? AND id=?)"]),
    ("the note of an item", inbox::SET_NOTE, &["(source=? AND id=?)"]),
    (
        "the oldest handled items",
        inbox::FORGET,
        &["INTEGER PRIMARY KEY (rowid=?)", "INDEX inbox_handled (source=?)"],
    ),
    (
        "the items of an owner, one by one",
        owner_data::ITEM,
        &["INDEX inbox_owner (owner=? AND rowid>?)"],
    ),
    (
        "the items of an erased owner",
        erase::inbox::OF_OWNER,
        &["INDEX inbox_owner (owner=? AND rowid<?)"],
    ),
    (
        "the items of an erased key",
        erase::inbox::OF_KEY,
        &["INDEX inbox_pending (source=? AND key=? AND rowid<?)"],
    ),
    (
        "the children of an erased session",
        erase::CHILDREN,
        &["INDEX session_parent (parent_session=?)"],
    ),
    (
        "a session and those that continue it",
        mention::ROWS,
        &[
            "SEARCH session USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH child USING INDEX session_parent (parent_session=?)",
            "SEARCH message USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    (
        "the opening message of a session that continues another one",
        erase::widen::OPENING,
        &[
            "SEARCH session USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH message USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    ("the first message of copies", erase::copies::FIRST, &["INTEGER PRIMARY KEY (rowid=?)"]),
    (
        "the copies of a message",
        erase::copies::ALL,
        &["INTEGER PRIMARY KEY (rowid=?)", "COVERING INDEX copy (origin=?)"],
    ),
    ("a transcript", transcript::FIND, &["(project=? AND session=? AND subpath=?)"]),
    ("an entry's copy", transcript::BY_UUID, &["INDEX transcript_uuid (transcript=? AND uuid=?)"]),
    ("the append of an entry", transcript::ADD, &[]),
    (
        "the session of a transcript",
        transcript::SESSION_OF,
        &["SEARCH transcript USING INTEGER PRIMARY KEY (rowid=?)"],
    ),
    (
        "the transcript of a session",
        transcript::OF_SESSION,
        &["SEARCH transcript USING COVERING INDEX transcript_shown_by (shown_by=?)"],
    ),
    (
        "the entries of a transcript",
        transcript::ENTRIES,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    ("the transcripts of a project", transcript::OF_PROJECT, &["(project=?)"]),
    (
        "the subpaths of a session",
        transcript::SUBPATHS,
        &["(project=? AND session=? AND subpath>?)"],
    ),
    ("all transcripts", transcript::LIST, &["INTEGER PRIMARY KEY (rowid>?)"]),
    (
        "the transcripts of an owner",
        transcript::LIST_OF_OWNER,
        &["INDEX transcript_owner (owner=? AND rowid>?)"],
    ),
    (
        "the transcripts of a deleted session",
        transcript::WITH_OTHERS,
        &["(project=? AND session=?)"],
    ),
    (
        "the transcripts of a deleted owner",
        transcript::OF_OWNER,
        &["INDEX transcript_owner (owner=?)", "(project=? AND session=?)"],
    ),
    (
        "the entries of a deleted transcript",
        transcript::DELETE_ENTRIES,
        &["INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    ),
    ("a fork's elisions", elision::COPY, &["PRIMARY KEY (address>? AND address<?)"]),
];

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
            session.append(&parent, &ExpectedHead::Any, &[message])?;
        }
        for n in (10..400).step_by(45) {
            session.delete(&[n.to_string().into()])?;
        }
        for n in (20..300).step_by(50) {
            let (first, last) = (n.to_string().into(), (n + 3).to_string().into());
            session.add_compaction(&Compaction::new("summary", first, last))?;
        }
        session.label("here", Some(&"5".into()))?;
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
    for number in 0..60 {
        let key = TranscriptKey::new(format!("project {}", number % 3), number.to_string());
        let owner = format!("owner {}", number % 7);
        for key in [key.clone(), key.subpath("subagents/agent-1")] {
            let entries: Vec<Json> =
                (0..20).map(|n| Json::from(serde_json::json!({"uuid": n.to_string()}))).collect();
            database.append_entries(&key, &entries, Some(&owner), |_, _| Ok(Derived::default()))?;
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

fn plan(database: &Database, sql: &str) -> Result<Vec<String>> {
    database.read(|conn| -> BackendResult<Vec<String>> {
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        // An unbound parameter is NULL, which a LIMIT does not accept.
        for at in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(at, 1)?;
        }
        let mut rows = statement.raw_query();
        let mut details = Vec::new();
        while let Some(row) = rows.next()? {
            details.push(row.get::<_, String>(3)?);
        }
        Ok(details)
    })
}

#[test]
fn hot_statements_use_the_indexes_made_for_them() -> Result<()> {
    let database = filled()?;
    for is_analyzed in [false, true] {
        if is_analyzed {
            database.write(|conn| Ok(conn.execute_batch("ANALYZE")?))?;
        }
        for (name, sql, expected) in HOT {
            let details = plan(&database, sql)?;
            let whole = details.join("\n");
            for part in *expected {
                assert!(whole.contains(part), "{name}, analyzed {is_analyzed}: {whole}");
            }
            let scan = details.iter().find(|detail| {
                // These indexes hold only the sessions with pending messages, and those in the trash. Sources are few, and so are the sessions that
                // continue one.
                detail.starts_with("SCAN")
                    && !detail.starts_with("SCAN inbox_source")
                    && !detail.starts_with("SCAN CONSTANT ROW")
                    && !detail.starts_with("SCAN continued")
                    && !detail.ends_with("INDEX session_unindexed")
                    && !detail.ends_with("INDEX session_deleted")
            });
            assert_eq!(scan, None, "{name}, analyzed {is_analyzed}");
            assert!(!whole.contains("TEMP B-TREE"), "{name}, analyzed {is_analyzed}: {whole}");
        }
    }
    Ok(())
}

#[test]
fn the_keys_of_an_inbox_are_read_from_its_index() -> Result<()> {
    let database = filled()?;
    for is_analyzed in [false, true] {
        if is_analyzed {
            database.write(|conn| Ok(conn.execute_batch("ANALYZE")?))?;
        }
        let whole = plan(&database, inbox::KEYS)?.join("\n");
        let part = "COVERING INDEX inbox_pending (source=? AND key>?)";
        assert!(whole.contains(part), "analyzed {is_analyzed}: {whole}");
        // The keys are sorted, not the items.
        assert_eq!(whole.matches("TEMP B-TREE").count(), 1, "analyzed {is_analyzed}: {whole}");
        assert!(whole.contains("TEMP B-TREE FOR ORDER BY"), "analyzed {is_analyzed}: {whole}");
    }
    Ok(())
}

#[test]
fn a_linear_append_does_not_write_the_indexes_of_the_tree() -> Result<()> {
    let database = std::sync::Arc::new(Database::open_in_memory(Config::default())?);
    let session = SqliteSession::new(std::sync::Arc::clone(&database), "s".into());
    let messages: Vec<Message> = (0..1_000).map(|n| Message::user(n.to_string())).collect();
    session.append(&Parent::Head, &ExpectedHead::Any, &messages)?;
    for index in ["run", "branch"] {
        let entries: u64 = database.read(|conn| {
            let sql = format!(
                "SELECT count(*) FROM message INDEXED BY {index} WHERE parent IS NOT address - 1"
            );
            Ok(conn.query_row(&sql, [], |row| row.get(0))?)
        })?;
        assert_eq!(entries, 1, "{index} holds the breaks only");
    }
    Ok(())
}

#[test]
fn a_full_session_is_an_error() -> Result<()> {
    let database = std::sync::Arc::new(Database::open_in_memory(Config::default())?);
    let session = SqliteSession::new(std::sync::Arc::clone(&database), "s".into());
    session.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("first")])?;
    let last = crate::tree::MAX_MESSAGES;
    database.write(|conn| {
        conn.execute("UPDATE session SET next = ?1", [last])?;
        Ok(())
    })?;
    session.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("last")])?;
    let answer = session.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("too many")]);
    assert!(matches!(answer, Err(Error::SessionFull { max, .. }) if max == last), "{answer:?}");
    assert_eq!((session.raw_history(None)?.len(), session.path_length(None)?), (2, 2));
    Ok(())
}
