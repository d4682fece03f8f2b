//! The context's storage, seen from inside.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::super::connection::{Config, Database};
use super::super::session::SqliteSession;
use super::search::{BEST, HOW_MANY, MATCHING};
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::{CompactionId, SessionId};
use crate::message::{Message, Part};
use crate::outcome::SessionDetails;
use crate::search::Matched;
use crate::storage::SessionProvider;
use crate::storage::context::{ContextStore, MAX_VERSIONS, NewEntry, Owner, Put, Section};
use crate::view::{Order, Place, View};

const OWNERS: [Owner; 2] = [Owner::Session, Owner::Shared];

fn in_memory() -> Result<Arc<Database>> {
    Ok(Arc::new(Database::open_in_memory(Config::default())?))
}

fn session(database: &Arc<Database>, id: &str) -> SqliteSession {
    SqliteSession::new(Arc::clone(database), SessionId::from(id))
}

fn text<'a>(key: &'a str, content: &'a str) -> NewEntry<'a> {
    NewEntry { key, content, ..NewEntry::default() }
}

fn put(context: &dyn ContextStore, key: &str, content: &str) -> Result<Put> {
    context.put(Owner::Session, "memory", &text(key, content), true, None)
}

fn keys(context: &dyn ContextStore, query: &str) -> Result<(Vec<String>, Matched)> {
    let (found, matched) = context.search(Owner::Session, "memory", query, 10)?;
    Ok((found.into_iter().map(|entry| entry.key).collect(), matched))
}

fn damages(database: &Database) -> Result<Vec<String>> {
    let verified = database.verify(|_| {})?;
    Ok(verified
        .damages
        .into_iter()
        .map(|damage| format!("{}: {}", damage.kind, damage.what))
        .collect())
}

#[track_caller]
fn sound(database: &Database) -> Result<()> {
    assert_eq!(damages(database)?, Vec::<String>::new());
    Ok(())
}

fn section(content: &str) -> Vec<Section> {
    vec![Section { label: "memory".into(), header: "MEMORY".into(), content: content.into() }]
}

/// A conversation whose second message is the result of a tool.
fn with_result(database: &Arc<Database>) -> Result<SqliteSession> {
    let chat = session(database, "s");
    let result = Part::tool_result("load", "call", json!({"text": "a very long skill"}));
    chat.append(
        &Place::Head,
        &[
            Message::user("load it").with_id("q"),
            Message::assistant("here").with_part(result).with_id("r"),
            Message::user("thanks").with_id("t"),
        ],
    )?;
    Ok(chat)
}

/// Returns what tools have answered, as it is shown.
fn outputs(messages: &[Message]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::Tool(tool) => {
                Some(tool.output.as_ref().map_or("none".to_owned(), |it| it.to_string()))
            }
            _ => None,
        })
        .collect()
}

const STORED: &str = r#"{"text":"a very long skill"}"#;
const MARKER: &str = "\"unloaded\"";

/// Returns the labels that hold any text.
fn stored_labels(context: &dyn ContextStore, owner: Owner) -> Result<Vec<String>> {
    Ok(context.labels(owner)?.into_iter().map(|found| found.label).collect())
}

#[test]
fn a_text_is_read_back_and_counts_its_versions() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    for owner in OWNERS {
        assert_eq!(context.entry(owner, "memory", "")?, None);
        let new = NewEntry {
            key: "",
            title: Some("Title"),
            description: Some("What it is about"),
            content: "one",
        };
        let answer = context.put(owner, "memory", &new, false, Some(0))?;
        assert_eq!(answer, Put::Stored { version: 1 });
        let again = context.put(owner, "memory", &new, false, None)?;
        assert_eq!(again, Put::Unchanged { version: 1 });
        let changed = NewEntry { content: "two", ..new };
        let answer = context.put(owner, "memory", &changed, false, Some(1))?;
        assert_eq!(answer, Put::Stored { version: 2 });
        let late =
            context.put(owner, "memory", &NewEntry { content: "three", ..new }, false, Some(1))?;
        assert_eq!(late, Put::Moved { found: 2 });

        let entry = context.entry(owner, "memory", "")?.unwrap();
        assert_eq!((entry.content.as_str(), entry.version), ("two", 2));
        assert_eq!(entry.title.as_deref(), Some("Title"));
        let versions = context.versions(owner, "memory", "")?;
        let texts: Vec<_> = versions.iter().map(|it| (it.version, it.content.as_deref())).collect();
        assert_eq!(texts, [(1, Some("one")), (2, Some("two"))]);
    }
    sound(&database)
}

#[test]
fn what_was_taken_away_keeps_its_versions_and_comes_back_as_the_next_one() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&*context, "colour", "red")?;
    assert!(context.remove(Owner::Session, "memory", "colour")?);
    assert!(!context.remove(Owner::Session, "memory", "colour")?);
    assert!(!context.remove(Owner::Session, "other", "colour")?);
    assert_eq!(context.entry(Owner::Session, "memory", "colour")?, None);
    assert_eq!(stored_labels(&*context, Owner::Session)?, Vec::<String>::new());
    assert_eq!(keys(&*context, "red")?.0, Vec::<String>::new());
    let moved = context.put(Owner::Session, "memory", &text("colour", "red"), true, Some(1))?;
    assert_eq!(moved, Put::Moved { found: 0 });
    let back = context.put(Owner::Session, "memory", &text("colour", "red"), true, Some(0))?;
    assert_eq!(back, Put::Stored { version: 3 });
    let versions = context.versions(Owner::Session, "memory", "colour")?;
    let texts: Vec<_> = versions.iter().map(|it| it.content.as_deref()).collect();
    assert_eq!(texts, [Some("red"), None, Some("red")]);
    assert_eq!(keys(&*context, "red")?.0, ["colour"]);
    sound(&database)
}

#[test]
fn of_very_many_versions_the_oldest_go_first() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    for n in 1..=MAX_VERSIONS + 2 {
        put(&*context, "", &n.to_string())?;
    }
    let versions = context.versions(Owner::Session, "memory", "")?;
    assert_eq!((versions.len() as u64, versions[0].version), (MAX_VERSIONS, 3));
    assert_eq!(versions.last().map(|last| last.version), Some(MAX_VERSIONS + 2));
    sound(&database)
}

#[test]
fn labels_and_documents_are_sorted_and_the_blocks_own_text_is_no_document() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&*context, "", "own")?;
    for key in ["b", "a", "c"] {
        put(&*context, key, key)?;
    }
    context.put(Owner::Session, "_system_prompt", &text("", "x"), false, None)?;
    context.put(Owner::Shared, "memory", &text("", "x"), false, None)?;
    assert_eq!(stored_labels(&*context, Owner::Session)?, ["_system_prompt", "memory"]);
    assert_eq!(stored_labels(&*context, Owner::Shared)?, ["memory"]);
    let documents = context.documents(Owner::Session, "memory")?;
    assert_eq!(documents.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(context.count(Owner::Session, "memory")?, 3);
    assert_eq!(context.count(Owner::Shared, "memory")?, 0);
    Ok(())
}

#[test]
fn sessions_do_not_see_each_others_texts_and_share_what_is_shared() -> Result<()> {
    let database = in_memory()?;
    let (one, two) = (database.context(&"one".into()), database.context(&"two".into()));
    put(&*one, "k", "red fox")?;
    put(&*two, "k", "blue fox")?;
    one.put(Owner::Shared, "memory", &text("k", "green fox"), true, None)?;
    assert_eq!(one.entry(Owner::Session, "memory", "k")?.unwrap().content, "red fox");
    assert_eq!(keys(&*two, "red")?.0, Vec::<String>::new());
    let (found, _) = two.search(Owner::Shared, "memory", "fox", 10)?;
    assert_eq!(found[0].content, "green fox");
    Ok(())
}

#[test]
fn names_and_sizes_are_limited() -> Result<()> {
    let config = Config { max_message_bytes: 100, ..Config::default() };
    let database = Arc::new(Database::open_in_memory(config)?);
    let context = database.context(&"s".into());
    let long = "x".repeat(10_000);
    for (label, key) in [("", "k"), (long.as_str(), "k"), ("memory", long.as_str())] {
        let answer = context.put(Owner::Session, label, &text(key, ""), false, None);
        assert!(matches!(answer, Err(Error::InvalidName { .. })), "{answer:?}");
    }
    let fits = "x".repeat(100);
    put(&*context, "k", &fits)?;
    let answer = put(&*context, "k", &"x".repeat(101));
    assert!(matches!(answer, Err(Error::TooLarge { bytes: 101, max: 100, .. })), "{answer:?}");
    let answer = context.freeze(&section(&fits));
    assert!(matches!(answer, Err(Error::TooLarge { .. })), "{answer:?}");
    assert_eq!(context.entry(Owner::Session, "memory", "k")?.unwrap().content, fits);
    Ok(())
}

#[test]
fn reading_makes_no_session_and_the_first_write_makes_one() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    context.entry(Owner::Session, "memory", "")?;
    context.remove(Owner::Session, "memory", "")?;
    context.thaw()?;
    context.put(Owner::Session, "memory", &text("", "x"), false, Some(7))?;
    context.put(Owner::Shared, "memory", &text("", "x"), false, None)?;
    assert_eq!(database.sessions()?.len(), 0);
    put(&*context, "", "x")?;
    assert_eq!(database.sessions()?.len(), 1);
    Ok(())
}

#[test]
fn all_words_are_looked_for_first_then_any_word() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&*context, "deploy", "How to deploy on a Friday")?;
    put(&*context, "bake", "How to bake bread")?;
    put(&*context, "beijing", "故宫在北京")?;
    for (query, expected, matched) in [
        ("deploying fridays", &["deploy"][..], Matched::All),
        ("bread friday", &["bake", "deploy"], Matched::Relaxed),
        ("\"deploy on\"", &["deploy"], Matched::All),
        ("\"on deploy\"", &[], Matched::All),
        ("how -bread", &["deploy"], Matched::All),
        ("brea*", &["bake"], Matched::All),
        ("北京", &["beijing"], Matched::All),
        ("宫", &["beijing"], Matched::All),
        ("bake role:user in:tools", &["bake"], Matched::All),
        ("nowhere", &[], Matched::All),
        ("", &[], Matched::All),
        ("-bread", &[], Matched::All),
        ("\" OR AND ( *", &[], Matched::All),
    ] {
        let (mut found, how) = keys(&*context, query)?;
        found.sort();
        assert_eq!(
            (found.as_slice(), how),
            (&expected.iter().map(|it| it.to_string()).collect::<Vec<_>>()[..], matched),
            "{query}"
        );
    }
    Ok(())
}

#[test]
fn keys_titles_and_descriptions_are_found_and_weigh_more() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&*context, "one", "a word on sailing among other words of this long text")?;
    let titled = NewEntry {
        key: "boats",
        title: Some("Sailing"),
        description: Some("for beginners"),
        content: "the first words of a text that is as long as that",
    };
    context.put(Owner::Session, "memory", &titled, true, None)?;
    assert_eq!(keys(&*context, "sailing")?.0, ["boats", "one"]);
    assert_eq!(keys(&*context, "beginner")?.0, ["boats"]);
    assert_eq!(keys(&*context, "boat")?.0, ["boats"]);
    Ok(())
}

#[test]
fn what_is_not_searchable_is_not_found_until_it_is() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    let set = |is_searchable| {
        context.put(Owner::Session, "memory", &text("k", "fox"), is_searchable, None)
    };
    set(false)?;
    assert_eq!(keys(&*context, "fox")?.0.len(), 0);
    assert_eq!(set(true)?, Put::Unchanged { version: 1 });
    assert_eq!(keys(&*context, "fox")?.0, ["k"]);
    set(false)?;
    assert_eq!(keys(&*context, "fox")?.0.len(), 0);
    sound(&database)
}

#[test]
fn of_very_many_that_match_the_best_are_found() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    database.write(|conn| {
        let block = super::block::find_or_make(conn, 0, "memory")?;
        for n in 0..1_500 {
            let (key, content) = (n.to_string(), format!("fox number {n} in a row of foxes"));
            super::entry::insert(conn, block, &text(&key, &content), true)?;
        }
        super::entry::insert(conn, block, &text("fox", "a den"), true)?;
        super::entry::insert(conn, block, &text("last", "fox den"), true)?;
        Ok(())
    })?;
    let search = |query: &str, limit| context.search(Owner::Shared, "memory", query, limit);
    let first = |query: &str| -> Result<(String, Matched)> {
        let (found, matched) = search(query, 1)?;
        Ok((found[0].key.clone(), matched))
    };
    assert_eq!(first("fox")?, ("fox".to_owned(), Matched::All));
    assert_eq!(first("fox 777")?, ("777".to_owned(), Matched::All));
    assert_eq!(first("row 1234 nowhere")?, ("1234".to_owned(), Matched::Relaxed));
    assert_eq!(search("fox", 0)?.0.len(), 0);
    assert_eq!(search("fox", 1_200)?.0.len(), 1_200);
    Ok(())
}

#[test]
fn a_search_asks_the_index_within_the_blocks_range() -> Result<()> {
    let database = in_memory()?;
    put(&*database.context(&"s".into()), "k", "fox")?;
    for sql in [MATCHING, BEST, HOW_MANY] {
        let details: Vec<String> = database.read(|conn| {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            for at in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(at, 1)?;
            }
            let mut rows = statement.raw_query();
            let mut details = Vec::new();
            while let Some(row) = rows.next()? {
                details.push(row.get(3)?);
            }
            Ok(details)
        })?;
        // FTS5 names what it was given: M a match, > and < the ends of a range of rowids.
        let plan = details.join("\n");
        assert!(plan.contains("VIRTUAL TABLE INDEX") && plan.contains("M2><"), "{sql}: {plan}");
    }
    Ok(())
}

#[test]
fn a_prompt_is_frozen_once_until_it_is_thawed() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    let odd = section("tab\t, quote\", \u{0}, 故宫, \u{1F600}\r\n");
    assert_eq!(context.frozen()?, None);
    assert_eq!(context.freeze(&odd)?, odd);
    assert_eq!(context.freeze(&section("two"))?, odd);
    put(&*context, "", "a block that changes")?;
    assert_eq!(context.frozen()?, Some(odd));
    context.refreeze(&section("three"))?;
    assert_eq!(context.frozen()?, Some(section("three")));
    context.thaw()?;
    assert_eq!(context.frozen()?, None);
    assert_eq!(context.freeze(&[])?, []);
    assert_eq!(context.freeze(&section("four"))?, []);
    Ok(())
}

#[test]
fn a_compaction_and_a_clear_thaw_the_prompt_and_blocks_stay() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    put(&*context, "k", "fox")?;
    let fold = Compaction {
        id: CompactionId::new(),
        first: "q".into(),
        last: "r".into(),
        count: 0,
        summary: "summary".to_owned(),
        details: None,
        created_at: crate::message::now(),
    };
    context.freeze(&section("one"))?;
    chat.add_compaction(&fold)?;
    assert_eq!(context.frozen()?, None);
    context.freeze(&section("one"))?;
    chat.add_compaction(&fold)?;
    assert_eq!(context.frozen()?, Some(section("one")), "it stood already");
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    chat.clear()?;
    assert_eq!(context.frozen()?, None);
    assert_eq!(keys(&*context, "fox")?.0, ["k"]);
    assert_eq!(database.stats()?.elisions, 0);
    sound(&database)
}

#[test]
fn an_elision_is_shown_in_histories_and_the_row_stays() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    context.elide(&[("r".into(), "call".into())], "first")?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    let shown = |view: &View, order| -> Result<Vec<String>> {
        Ok(outputs(&chat.cursor(view, order)?.next(10)?))
    };
    assert_eq!(outputs(&chat.history(None)?), [MARKER]);
    assert_eq!(outputs(&chat.history(Some(&"r".into()))?), [MARKER]);
    for order in [Order::OldestFirst, Order::NewestFirst] {
        assert_eq!(shown(&View::head(), order)?, [MARKER]);
        assert_eq!(shown(&View::head().raw(), order)?, [STORED]);
    }
    assert_eq!(outputs(&chat.raw_history(None)?), [STORED]);
    assert_eq!(outputs(&chat.all_messages()?.next(10)?), [STORED]);
    assert_eq!(outputs(&[chat.message(&"r".into())?.unwrap()]), [STORED]);
    sound(&database)
}

#[test]
fn an_elision_needs_the_result_of_a_call() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    let call = Part::tool_call("load", "open", json!({}));
    chat.append(&Place::Head, &[Message::assistant("").with_part(call).with_id("c")])?;
    for (id, call) in [("q", "call"), ("r", "other"), ("c", "open")] {
        let answer =
            context.elide(&[("r".into(), "call".into()), (id.into(), call.into())], "unloaded");
        assert!(matches!(answer, Err(Error::UnknownCall { .. })), "{answer:?}");
    }
    let answer = context.elide(&[("nobody".into(), "call".into())], "unloaded");
    assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
    assert_eq!(database.stats()?.elisions, 0, "all or none");
    Ok(())
}

#[test]
fn every_shape_of_a_result_takes_a_marker() -> Result<()> {
    let database = in_memory()?;
    let chat = session(&database, "s");
    let parts = [
        r#"{"type": "dynamic-tool", "toolName": "t", "toolCallId": "call", "result": [1]}"#,
        r#"{"output": "\ud800", "type": "tool-t", "toolCallId": "call"}"#,
        r#"{"type": "tool-t", "toolCallId": "call", "input": {}, "output": null}"#,
    ];
    let parts: Vec<Part> = parts.iter().map(|part| serde_json::from_str(part).unwrap()).collect();
    let stored = Message::new("assistant", parts).with_id("r");
    chat.append(&Place::Head, std::slice::from_ref(&stored))?;
    database.context(&"s".into()).elide(&[("r".into(), "call".into())], "unloaded")?;
    let shown = chat.history(None)?;
    assert_eq!(outputs(&shown), [MARKER, MARKER, MARKER]);
    assert!(!serde_json::to_string(&shown).unwrap().contains("\"result\""));
    assert_eq!(chat.raw_history(None)?[0].parts, stored.parts);
    Ok(())
}

#[test]
fn a_changed_output_and_a_deletion_take_elisions_away() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    let elide = || context.elide(&[("r".into(), "call".into())], "unloaded");
    let left = || -> Result<u64> { Ok(database.stats()?.elisions) };
    elide()?;
    let stored = chat.message(&"r".into())?.unwrap();
    chat.update(&stored)?;
    assert_eq!(left()?, 1, "nothing was changed");
    chat.update(&stored.clone().with_part("more".into()))?;
    assert_eq!((left()?, outputs(&chat.history(None)?)), (1, vec![MARKER.to_owned()]));
    let other = Part::tool_result("load", "call", json!("another skill"));
    chat.update(&Message::assistant("here").with_part(other).with_id("r"))?;
    assert_eq!(left()?, 0);
    chat.update(&stored)?;
    assert_eq!(outputs(&chat.history(None)?), [STORED]);
    elide()?;
    chat.delete(&["r".into()])?;
    assert_eq!(left()?, 0);
    chat.append(&Place::Head, &[stored])?;
    elide()?;
    chat.delete_branch(&"q".into())?;
    assert_eq!(left()?, 0);
    sound(&database)
}

#[test]
fn a_fork_begins_with_the_present_texts_and_the_elisions_on_its_path() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    put(&*context, "k", "red fox")?;
    put(&*context, "k", "blue fox")?;
    put(&*context, "gone", "green fox")?;
    context.remove(Owner::Session, "memory", "gone")?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    context.freeze(&section("one"))?;
    let fork = chat.fork(&"r".into(), &"fork".into(), &SessionDetails::default())?;
    chat.fork(&"q".into(), &"early".into(), &SessionDetails::default())?;
    let copy = database.context(&"fork".into());
    assert_eq!(outputs(&fork.history(None)?), [MARKER]);
    assert_eq!(outputs(&fork.raw_history(None)?), [STORED]);
    assert_eq!(copy.frozen()?, None);
    assert_eq!(copy.versions(Owner::Session, "memory", "k")?.len(), 1);
    assert_eq!(copy.entry(Owner::Session, "memory", "k")?.unwrap().version, 2);
    assert_eq!(copy.versions(Owner::Session, "memory", "gone")?.len(), 0);
    assert_eq!(keys(&*copy, "fox")?.0, ["k"]);
    put(&*copy, "k", "yellow fox")?;
    put(&*copy, "new", "white fox")?;
    assert_eq!(context.entry(Owner::Session, "memory", "k")?.unwrap().content, "blue fox");
    assert_eq!(database.stats()?.elisions, 2);
    sound(&database)?;
    database.remove(&"s".into())?;
    assert_eq!(keys(&*copy, "white")?.0, ["new"]);
    assert_eq!(outputs(&fork.history(None)?), [MARKER]);
    sound(&database)
}

#[test]
fn what_is_removed_with_a_session_does_not_come_back_with_its_name() -> Result<()> {
    let database = in_memory()?;
    with_result(&database)?;
    let context = database.context(&"s".into());
    put(&*context, "k", "one")?;
    put(&*context, "k", "two")?;
    context.put(Owner::Shared, "memory", &text("k", "shared"), true, None)?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    context.freeze(&section("one"))?;
    database.remove(&"s".into())?;
    with_result(&database)?;
    assert_eq!((stored_labels(&*context, Owner::Session)?.len(), context.frozen()?), (0, None));
    let stats = database.stats()?;
    assert_eq!((stats.context_entries, stats.context_versions, stats.elisions), (1, 0, 0));
    sound(&database)
}

#[test]
fn two_writers_who_say_what_they_saw_lose_nothing() -> Result<()> {
    const EACH: u64 = 50;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.db");
    let database = Arc::new(Database::open(&path, Config::default())?);
    let other = Arc::new(Database::open(&path, Config::default())?);
    std::thread::scope(|scope| {
        for database in [&database, &database, &other] {
            scope.spawn(move || {
                let context = database.context(&"s".into());
                let mut done = 0;
                while done < EACH {
                    let seen = context.entry(Owner::Session, "count", "").unwrap();
                    let count = seen.as_ref().map_or(0, |it| it.content.parse::<u64>().unwrap());
                    let version = seen.map_or(0, |it| it.version);
                    let next = (count + 1).to_string();
                    let put = context
                        .put(Owner::Session, "count", &text("", &next), false, Some(version))
                        .unwrap();
                    done += u64::from(matches!(put, Put::Stored { .. }));
                }
            });
        }
    });
    let last = database.context(&"s".into()).entry(Owner::Session, "count", "")?.unwrap();
    assert_eq!((last.content.parse::<u64>().unwrap(), last.version), (3 * EACH, 3 * EACH));
    Ok(())
}

#[test]
fn what_is_damaged_is_told() -> Result<()> {
    for (sql, kinds) in [
        ("UPDATE context_entry SET content = 'other words'", &["search-index"][..]),
        (
            "UPDATE context_entry SET version = 0, searchable = 0",
            &["broken-context", "search-index", "wrong-version"],
        ),
        ("UPDATE context_entry SET changed_at = 9000000000000000000", &["broken-context"]),
        (
            "UPDATE context_entry SET content = CAST(x'ff' AS TEXT)",
            &["broken-context", "search-index"],
        ),
        ("UPDATE context_version SET version = 5", &["wrong-version"]),
        ("UPDATE context_block SET next = 1", &["number-in-use"]),
        ("UPDATE context_block SET session = 77", &["stray-context"]),
        ("DELETE FROM context_block", &["stray-context"]),
        ("UPDATE frozen_prompt SET sections = '['", &["broken-prompt"]),
        ("UPDATE frozen_prompt SET session = 77", &["stray-context"]),
        ("UPDATE elision SET address = 1", &["lost-elision"]),
        ("UPDATE elision SET call = 'other'", &["lost-elision"]),
        ("DELETE FROM context_search_data WHERE id > 10", &["search-index"]),
    ] {
        let database = in_memory()?;
        with_result(&database)?;
        let context = database.context(&"s".into());
        put(&*context, "k", "one")?;
        put(&*context, "k", "two")?;
        context.freeze(&section("one"))?;
        context.elide(&[("r".into(), "call".into())], "unloaded")?;
        sound(&database)?;
        database.write(|conn| Ok(conn.execute(sql, [])?))?;
        let damages = damages(&database)?;
        let mut found: Vec<&str> =
            damages.iter().filter_map(|damage| damage.split(':').next()).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|kind| *kind != "damaged-page");
        assert_eq!(found, kinds, "{sql}: {damages:?}");
        if sql.contains("content") && kinds == ["search-index"] {
            database.rebuild_search()?;
            sound(&database)?;
        }
    }
    Ok(())
}

#[test]
fn a_damaged_text_is_an_error_that_names_it() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&*context, "k", "one")?;
    database.write(|conn| Ok(conn.execute("UPDATE context_entry SET changed_at = 9e18", [])?))?;
    let answer = context.entry(Owner::Session, "memory", "k");
    let Err(Error::Corrupt { what }) = answer else { panic!("{answer:?}") };
    assert!(what.starts_with("text 1 of context block 1: "), "{what}");
    Ok(())
}

/// One thing that is done to one of two sessions.
#[derive(Debug, Clone)]
enum Act {
    Put {
        owner: usize,
        label: usize,
        key: usize,
        content: String,
        is_searchable: bool,
        seen: Option<u64>,
    },
    Remove {
        owner: usize,
        label: usize,
        key: usize,
    },
    Search {
        owner: usize,
        label: usize,
        word: usize,
    },
    Freeze(String),
    Refreeze(String),
    Thaw,
    Clear,
    RemoveSession,
    Fork,
    Reopen,
}

const LABELS: [&str; 3] = ["memory", "memory_s", "_system_prompt"];
const KEYS: [&str; 4] = ["", "a", "b", "../x"];
const WORDS: [&str; 4] = ["fox", "den", "重", "river"];

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let words = || {
        prop::collection::vec(0..WORDS.len(), 1..4)
            .prop_map(|words| words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" "))
    };
    let put = (
        0..2usize,
        0..LABELS.len(),
        0..KEYS.len(),
        words(),
        any::<bool>(),
        prop::option::of(0..4u64),
    );
    let act = prop_oneof![
        12 => put.prop_map(|(owner, label, key, content, is_searchable, seen)| Act::Put { owner, label, key, content, is_searchable, seen }),
        4 => (0..2usize, 0..LABELS.len(), 0..KEYS.len()).prop_map(|(owner, label, key)| Act::Remove { owner, label, key }),
        6 => (0..2usize, 0..LABELS.len(), 0..WORDS.len()).prop_map(|(owner, label, word)| Act::Search { owner, label, word }),
        2 => words().prop_map(Act::Freeze),
        1 => words().prop_map(Act::Refreeze),
        1 => Just(Act::Thaw),
        1 => Just(Act::Clear),
        1 => Just(Act::RemoveSession),
        1 => Just(Act::Fork),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec((0..2usize, act), 1..40)
}

/// A text as a plain map has it: every version, and whether the last is searchable.
type ModelEntry = (Vec<(u64, Option<String>)>, bool);
/// Texts by owner (`None`: shared), label and key.
type ModelTexts = BTreeMap<(Option<usize>, usize, usize), ModelEntry>;

#[derive(Default)]
struct Model {
    texts: ModelTexts,
    frozen: [Option<String>; 2],
}

impl Model {
    fn present(&self, at: (Option<usize>, usize, usize)) -> Option<(&str, u64)> {
        let (version, content) = self.texts.get(&at)?.0.last()?;
        content.as_deref().map(|content| (content, *version))
    }

    fn push(
        &mut self,
        at: (Option<usize>, usize, usize),
        content: Option<String>,
        is_searchable: bool,
    ) -> u64 {
        let entry = self.texts.entry(at).or_default();
        let version = entry.0.last().map_or(1, |last| last.0 + 1);
        entry.0.push((version, content));
        entry.1 = is_searchable;
        version
    }
}

fn play(acts: &[(usize, Act)]) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.db");
    let config = || Config { is_synchronous: false, ..Config::default() };
    let open = || -> Result<Arc<Database>> { Ok(Arc::new(Database::open(&path, config())?)) };
    let mut database = open()?;
    let mut model = Model::default();
    let names = ["s", "t"];
    for (who, act) in acts {
        let context = database.context(&names[*who].into());
        let owned = |owner: usize| (OWNERS[owner] == Owner::Session).then_some(*who);
        match act {
            Act::Put { owner, label, key, content, is_searchable, seen } => {
                let at = (owned(*owner), *label, *key);
                let found = model.present(at).map_or(0, |present| present.1);
                let expected = if seen.is_some_and(|seen| seen != found) {
                    Put::Moved { found }
                } else if model.present(at).is_some_and(|present| present.0 == content) {
                    model.texts.entry(at).or_default().1 = *is_searchable;
                    Put::Unchanged { version: found }
                } else {
                    let version = model.push(at, Some(content.clone()), *is_searchable);
                    Put::Stored { version }
                };
                let new = text(KEYS[*key], content);
                let put =
                    context.put(OWNERS[*owner], LABELS[*label], &new, *is_searchable, *seen)?;
                assert_eq!(put, expected);
            }
            Act::Remove { owner, label, key } => {
                let at = (owned(*owner), *label, *key);
                let is_there = model.present(at).is_some();
                if is_there {
                    model.push(at, None, false);
                }
                assert_eq!(context.remove(OWNERS[*owner], LABELS[*label], KEYS[*key])?, is_there);
            }
            Act::Search { owner, label, word } => {
                let holds = |key: &usize| {
                    let at = (owned(*owner), *label, *key);
                    model.texts.get(&at).is_some_and(|entry| entry.1)
                        && model.present(at).is_some_and(|present| present.0.contains(WORDS[*word]))
                };
                let mut expected: Vec<_> =
                    (0..KEYS.len()).filter(holds).map(|key| KEYS[key]).collect();
                expected.sort_unstable();
                let (found, _) =
                    context.search(OWNERS[*owner], LABELS[*label], WORDS[*word], 10)?;
                let mut found: Vec<_> = found.iter().map(|entry| entry.key.as_str()).collect();
                found.sort_unstable();
                assert_eq!(found, expected);
            }
            Act::Freeze(content) => {
                let now = model.frozen[*who].get_or_insert_with(|| content.clone());
                assert_eq!(context.freeze(&section(content))?, section(now));
            }
            Act::Refreeze(content) => {
                model.frozen[*who] = Some(content.clone());
                context.refreeze(&section(content))?;
            }
            Act::Thaw => {
                model.frozen[*who] = None;
                context.thaw()?;
            }
            Act::Clear => {
                model.frozen[*who] = None;
                session(&database, names[*who]).clear()?;
            }
            Act::RemoveSession => {
                model.frozen[*who] = None;
                model.texts.retain(|at, _| at.0 != Some(*who));
                match database.remove(&names[*who].into()) {
                    Ok(()) | Err(Error::UnknownSession { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Act::Fork => {
                // Onto the other's name: what that one had goes first.
                let other = 1 - *who;
                let chat = session(&database, names[*who]);
                let id = chat.append(&Place::Head, &[Message::user("fork here")])?[0].id.clone();
                match database.remove(&names[other].into()) {
                    Ok(()) | Err(Error::UnknownSession { .. }) => {}
                    Err(error) => return Err(error),
                }
                chat.fork(&id, &names[other].into(), &SessionDetails::default())?;
                model.frozen[other] = None;
                model.texts.retain(|at, _| at.0 != Some(other));
                let copies: Vec<_> = model
                    .texts
                    .iter()
                    .filter(|(at, _)| at.0 == Some(*who))
                    .map(|(at, entry)| (*at, entry.clone()))
                    .collect();
                for ((_, label, key), (versions, is_searchable)) in copies {
                    let last = versions.into_iter().next_back().filter(|last| last.1.is_some());
                    if let Some(last) = last {
                        model.texts.insert((Some(other), label, key), (vec![last], is_searchable));
                    }
                }
            }
            Act::Reopen => {
                drop(context);
                drop(database);
                database = open()?;
            }
        }
    }
    for (who, name) in names.iter().enumerate() {
        let context = database.context(&(*name).into());
        assert_eq!(context.frozen()?, model.frozen[who].as_deref().map(section));
        for owner in OWNERS {
            let whose = (owner == Owner::Session).then_some(who);
            let mut labels = Vec::new();
            for (label, name) in LABELS.iter().enumerate() {
                let mut documents = 0;
                let mut is_held = false;
                for (key, key_name) in KEYS.iter().enumerate() {
                    let at = (whose, label, key);
                    let found = context.entry(owner, name, key_name)?;
                    let found = found.as_ref().map(|entry| (entry.content.as_str(), entry.version));
                    assert_eq!(found, model.present(at));
                    is_held |= found.is_some();
                    documents += u64::from(found.is_some() && !key_name.is_empty());
                    let versions = context.versions(owner, name, key_name)?;
                    let versions: Vec<_> = versions
                        .into_iter()
                        .map(|version| (version.version, version.content))
                        .collect();
                    assert_eq!(
                        versions,
                        model.texts.get(&at).map_or(vec![], |entry| entry.0.clone())
                    );
                }
                assert_eq!(context.count(owner, name)?, documents);
                assert_eq!(context.documents(owner, name)?.len() as u64, documents);
                labels.extend(is_held.then_some(*name));
            }
            labels.sort_unstable();
            assert_eq!(stored_labels(&*context, owner)?, labels);
        }
    }
    sound(&database)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_acts_leave_what_a_plain_map_holds(acts in acts()) {
        play(&acts).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}
