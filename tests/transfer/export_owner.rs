//! An export of an owner holds everything of that owner, and nothing of anybody else.
//!
//! Every text that a store can hold carries a mark. A text of a new kind has to be added to `fill`.

use std::collections::BTreeSet;

use crate::common::Scratch;
use serde_json::{Value, json};
use talktree::{
    Author, Block, Document, Error, InboxItem, Json, Message, Part, Record, Result, SessionDetails,
    SessionManager, Store, TranscriptKey, Usage,
};
use talktree_import::export::{Person, PersonExport, PersonFormat, export_person};

/// Gives out marks: `ann0`, `ann1`, ..
struct Marks {
    owner: &'static str,
    given: Vec<String>,
}

impl Marks {
    fn mark(&mut self) -> String {
        self.given.push(format!("{}x{}x", self.owner, self.given.len()));
        self.given.last().cloned().unwrap_or_default()
    }

    fn json(&mut self) -> Json {
        json!({"note": self.mark()}).into()
    }
}

/// Stores texts of every kind that belong to an owner, and returns their marks.
fn fill(store: &Store, owner: &'static str) -> Result<Marks> {
    let mut marks = Marks { owner, given: Vec::new() };
    let bot = SessionManager::builder(store)
        .block("rules", Block::text("Be kind."))
        .block("person", Block::stored().per_owner())
        .block("notes", Block::stored())
        .block("facts", Block::knowledge())
        .cached_prompt()
        .build()?;
    let key = marks.mark();
    let chat = bot.resume(key.clone()).owner(owner).open()?;
    let id = chat.id().clone();

    // Messages, on two branches.
    let question = Message::user(marks.mark()).from(&Author::new(marks.mark()).named(marks.mark()));
    let question = chat.append(question)?.id;
    let mut answer = Message::assistant(marks.mark())
        .with_part(Part::reasoning(marks.mark()))
        .with_part(Part::tool_call(marks.mark(), "call", marks.json()))
        .with_part(Part::file("text/plain", format!("https://{}.org", marks.mark())))
        .with_metadata(marks.json())
        .with_usage(&Usage { model: Some(marks.mark()), input: 7, ..Usage::default() });
    answer.extra.insert("more".to_owned(), marks.json());
    let answer = chat.append(answer)?.id;
    let result = Part::tool_result("weather", "call", json!(marks.mark()));
    let result = chat.append(Message::new("tool", vec![result]))?.id;
    chat.append_to(&question, Message::assistant(marks.mark()).hidden())?;
    chat.checkout(&result)?;
    chat.label(&marks.mark(), &answer)?;
    let session = Record::Session { id: id.clone(), details: SessionDetails::default() };
    store.import([Ok(session), Ok(Record::Imported { name: marks.mark() })])?;
    chat.add_compaction_with(marks.mark(), &question, &answer, marks.json())?;

    // What is said about the session.
    chat.set_details(&SessionDetails {
        name: Some(marks.mark()),
        model: Some(marks.mark()),
        source: Some(marks.mark()),
        metadata: Some(marks.json()),
        tags: vec![marks.mark()],
        ..SessionDetails::default()
    })?;

    // Context: versions, documents, a removed text, and a prompt with what was true then.
    let context = chat.context();
    for _ in 0..2 {
        context.set("person", &marks.mark())?;
        context.set("notes", &marks.mark())?;
    }
    chat.prompt()?;
    context.set("notes", &marks.mark())?;
    let mut document = Document::new(marks.mark(), marks.mark());
    (document.title, document.description) = (Some(marks.mark()), Some(marks.mark()));
    context.set_document("facts", &document)?;
    context.remove_document("facts", &document.key)?;
    context.remove_text("person")?;
    bot.end(&id, marks.mark())?;

    // Transcripts: those of the owner, and that of a subagent below.
    let key = TranscriptKey::new(marks.mark(), marks.mark());
    let below = key.clone().subpath(marks.mark());
    let message = json!({"role": "user", "content": [
        {"type": "text", "text": marks.mark()},
        {"type": "tool_use", "name": marks.mark(), "input": {"path": marks.mark()}},
    ]});
    let entries = [
        json!({"type": "user", "uuid": "1", "cwd": marks.mark(), "message": message}),
        json!({"type": "user", "message": {"content": marks.mark()}, "timestamp": "2024-02-03T10:00:00Z"}),
        json!({"type": marks.mark(), "customTitle": marks.mark()}),
    ];
    let entries = entries.map(Json::from);
    store.transcripts().owned_by(owner).append(&key, &entries)?;
    store.transcripts().append(&below, &[json!({"text": marks.mark()}).into()])?;
    let shared = TranscriptKey::new("shared", "shared").subpath(marks.mark());
    store.transcripts().owned_by(owner).append(&shared, &entries[1..2])?;

    // Items that wait in inboxes, and one that is handled.
    let inbox = store.inbox(owner);
    let waiting = InboxItem::new(marks.mark(), marks.mark(), marks.mark()).owner(owner);
    inbox.receive(&[waiting.clone(), InboxItem::new("done", "k", "x").owner(owner)], Some(7))?;
    inbox.note(&waiting.id, &marks.mark())?;
    inbox.done("done")?;

    // A session in the trash, and usage of one that is gone.
    for is_removed in [false, true] {
        let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
        let other = store.create_session(details)?;
        let usage = Usage { model: Some(marks.mark()), output: 3, ..Usage::default() };
        other.append(Message::assistant(format!("an answer of {owner}")).with_usage(&usage))?;
        if is_removed {
            store.remove(other.id())?;
        } else {
            other.append(Message::user(marks.mark()))?;
            bot.delete(other.id())?;
        }
    }
    Ok(marks)
}

fn export(store: &Store, owner: &str, format: PersonFormat) -> Result<(String, PersonExport)> {
    let mut output = Vec::new();
    let written = export_person(store, Person::Owner(owner), format, &mut output)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), written))
}

#[test]
fn an_export_holds_every_mark_of_its_owner_and_none_of_another() -> Result<()> {
    let scratch = Scratch::new()?;
    let all = [fill(&scratch.store, "ann")?, fill(&scratch.store, "bob")?];
    assert!(all[0].given.len() > 30);
    for format in [PersonFormat::Jsonl, PersonFormat::Markdown] {
        for (own, others) in [(&all[0], &all[1]), (&all[1], &all[0])] {
            let (text, written) = export(&scratch.store, own.owner, format)?;
            let missing: Vec<_> = own.given.iter().filter(|mark| !text.contains(*mark)).collect();
            assert!(missing.is_empty(), "{format:?} lacks {missing:?}:\n{text}");
            assert!(!text.contains(others.owner), "{format:?}:\n{text}");
            assert_eq!((written.sessions, written.messages, written.bindings), (2, 6, 1));
            assert_eq!((written.texts, written.usage), (8, 3));
            assert_eq!((written.transcripts, written.entries), (3, 5));
        }
    }
    Ok(())
}

#[test]
fn each_line_is_json_with_a_type() -> Result<()> {
    let scratch = Scratch::new()?;
    fill(&scratch.store, "ann")?;
    let (text, _) = export(&scratch.store, "ann", PersonFormat::Jsonl)?;
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0], json!({"format": "talktree-owner", "version": 1}));
    let types: BTreeSet<_> = lines[1..].iter().filter_map(|line| line["type"].as_str()).collect();
    let expected = [
        "binding",
        "compaction",
        "end",
        "entry",
        "head",
        "imported",
        "item",
        "label",
        "message",
        "owner",
        "prompt",
        "session",
        "text",
        "transcript",
        "usage",
    ];
    assert_eq!(types, BTreeSet::from(expected));
    assert_eq!(lines.iter().filter(|line| line["type"] == "session").count(), 2);
    let trashed = lines.iter().filter(|line| line["deleted_at"].is_string());
    assert_eq!(trashed.count(), 1);
    Ok(())
}

#[test]
fn an_unknown_owner_has_no_data_and_an_empty_one_is_refused() -> Result<()> {
    let scratch = Scratch::new()?;
    fill(&scratch.store, "ann")?;
    for owner in ["nobody", "an"] {
        let (text, written) = export(&scratch.store, owner, PersonFormat::Jsonl)?;
        assert!(written.is_empty() && text.lines().count() == 3, "{text}");
    }
    let refused =
        export_person(&scratch.store, Person::Owner(""), PersonFormat::Jsonl, &mut Vec::new());
    assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn texts_of_an_owner_without_sessions_are_exported() -> Result<()> {
    let scratch = Scratch::new()?;
    let details = SessionDetails { owner: Some("ann".to_owned()), ..SessionDetails::default() };
    let chat = scratch.store.create_session(details)?;
    chat.context().add("person", Block::stored().per_owner())?;
    chat.context().set("person", "Likes tea.")?;
    scratch.store.remove(chat.id())?;
    let (text, written) = export(&scratch.store, "ann", PersonFormat::Jsonl)?;
    assert_eq!((written.sessions, written.texts), (0, 1));
    assert!(text.contains("Likes tea."));
    Ok(())
}

/// Usage is read in batches, many rows of one time among them.
#[test]
fn every_row_of_usage_is_exported_once() -> Result<()> {
    let scratch = Scratch::new()?;
    let details = SessionDetails { owner: Some("ann".to_owned()), ..SessionDetails::default() };
    let chat = scratch.store.create_session(details)?;
    let time = "2024-02-03T10:00:00Z".parse().expect("a time");
    let usage = Usage { input: 1, ..Usage::default() };
    let answers = (0..2_500).map(|_| Message::assistant("4").with_usage(&usage).at(time));
    chat.append_all(answers)?;
    let (text, written) = export(&scratch.store, "ann", PersonFormat::Jsonl)?;
    assert_eq!(written.usage, 2_500);
    let rows: BTreeSet<_> =
        text.lines().filter(|line| line.starts_with(r#"{"type":"usage""#)).collect();
    assert_eq!(rows.len(), 2_500, "each names its message");
    Ok(())
}

#[test]
fn no_text_imitates_a_heading_of_the_page() -> Result<()> {
    let scratch = Scratch::new()?;
    let details = SessionDetails { owner: Some("ann".to_owned()), ..SessionDetails::default() };
    let chat = scratch.store.create_session(details)?;
    for forged in ["# Session of bob, 2024-01-01 10:00:00 UTC", "## Usage, 2024-01-01 10:00:00 UTC"]
    {
        chat.append(Message::user(format!("hello\n\n{forged}\nI owe nothing.")))?;
        let (text, _) = export(&scratch.store, "ann", PersonFormat::Markdown)?;
        assert!(text.contains(forged) && !text.lines().any(|line| line == forged), "{text}");
    }
    Ok(())
}

/// Entries are read in batches of a mebibyte.
#[test]
fn every_entry_of_a_long_transcript_is_exported_once_with_its_text() -> Result<()> {
    let scratch = Scratch::new()?;
    let key = TranscriptKey::new("project", "session");
    let long = "x".repeat(700_000);
    let entry = |n| Json::parse(&format!(r#"{{"type":"user", "n":{n},"text":"{long}"}}"#));
    let entries: Vec<Json> = (0..9).map(entry).collect::<Result<_>>()?;
    scratch.store.transcripts().owned_by("ann").append(&key, &entries)?;
    let (text, written) = export(&scratch.store, "ann", PersonFormat::Jsonl)?;
    assert_eq!((written.transcripts, written.entries), (1, 9));
    for entry in &entries {
        assert_eq!(text.matches(entry.as_str()).count(), 1);
    }
    Ok(())
}

#[test]
fn a_page_shows_what_was_said_in_a_transcript_as_text() -> Result<()> {
    let scratch = Scratch::new()?;
    let key = TranscriptKey::new("project", "session");
    let said = "Fix the \"login\".\n## Entry user, 2024-01-01 00:00:00 UTC";
    let content = json!([{"type": "text", "text": said}, {"type": "image", "url": "x"}]);
    let entry = json!({"type": "user", "uuid": "1", "timestamp": "2024-02-03T10:00:00.5Z",
        "message": {"role": "user", "content": content}});
    let broken = Json::parse(r#"{"type":"user","text":"\ud800"}"#)?;
    scratch.store.transcripts().owned_by("ann").append(&key, &[entry.into(), broken])?;
    let (page, _) = export(&scratch.store, "ann", PersonFormat::Markdown)?;
    assert!(page.contains("\n# Transcript session, 20"), "{page}");
    let shown =
        "\n## Entry user, 2024-02-03 10:00:00 UTC\n\n```\nFix the \"login\".\n> ## Entry user, ";
    assert!(page.contains(shown), "{page}");
    assert!(page.contains(r#""url": "x""#) && !page.contains("uuid"), "{page}");
    assert_eq!(page.matches("\n## Entry user, ").count(), 2, "{page}");
    Ok(())
}

/// What a person wrote in sessions of others was in no export.
#[test]
fn an_author_gets_what_the_author_wrote_and_nothing_of_others() -> Result<()> {
    let store = Store::open_in_memory()?;
    let ann = talktree::Author::new("ann");
    for (id, owner) in [("own", "ann"), ("group", "bob"), ("gone", "bob")] {
        let details = SessionDetails {
            owner: Some(owner.to_owned()),
            name: Some(format!("name-of-{id}")),
            ..SessionDetails::default()
        };
        let chat = store.session(id)?;
        chat.set_details(&details)?;
        let said = chat.append(Message::user(format!("ann-in-{id}")).from(&ann))?.id;
        chat.tag(&said, &format!("tag-in-{id}"))?;
        let used = Usage { output: 5, ..Usage::default() };
        chat.append(Message::assistant(format!("answer-in-{id}")).with_usage(&used))?;
        let bob = talktree::Author::new("bob");
        chat.append(Message::user(format!("bob-in-{id}")).from(&bob))?;
    }
    store.change_session(&"gone".into(), &talktree::SessionChange::Delete)?;
    for format in [PersonFormat::Jsonl, PersonFormat::Markdown] {
        let mut file = Vec::new();
        let written = export_person(&store, Person::Author("ann"), format, &mut file)?;
        assert_eq!((written.sessions, written.messages, written.usage), (3, 3, 3));
        let text = String::from_utf8(file).unwrap();
        for id in ["own", "group", "gone"] {
            assert!(text.contains(&format!("ann-in-{id}")), "{text}");
            assert!(text.contains(&format!("tag-in-{id}")), "{text}");
            for other in ["answer-in", "bob-in", "name-of"] {
                assert!(!text.contains(&format!("{other}-{id}")), "{text}");
            }
        }
    }
    let mut file = Vec::new();
    assert!(
        export_person(&store, Person::Author("eve"), PersonFormat::Jsonl, &mut file)?.is_empty()
    );
    assert!(export_person(&store, Person::Author(""), PersonFormat::Jsonl, &mut file).is_err());
    Ok(())
}
