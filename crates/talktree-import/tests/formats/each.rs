//! What each format becomes, on small files written by hand.

use std::io::Cursor;

use serde_json::json;
use talktree::{Message, Part, Result, Session, Store};
use talktree_import::ImportReport;
use talktree_import::export::content_hash;
use talktree_import::{Format, ImportOptions, import_reader};

fn import(store: &Store, file: &str) -> Result<ImportReport> {
    import_as(store, file, &ImportOptions::default())
}

fn import_as(store: &Store, file: &str, options: &ImportOptions) -> Result<ImportReport> {
    let path = format!("{}/tests/fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
    let report = talktree_import::import(store, path, options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

/// Imports a fixture twice; the second time adds nothing and changes nothing.
fn import_twice(file: &str) -> Result<(Store, ImportReport)> {
    let store = Store::open_in_memory()?;
    let report = import(&store, file)?;
    let hash = content_hash(&store)?;
    assert_eq!(import(&store, file)?.added, 0);
    assert_eq!(content_hash(&store)?, hash);
    Ok((store, report))
}

fn format(report: &ImportReport) -> Format {
    report.format.parse().unwrap()
}

fn counts(report: &ImportReport) -> (u64, u64, u64, u64) {
    (report.records, report.kept, report.converted, report.dropped)
}

fn ids(messages: &[Message]) -> String {
    messages.iter().map(|message| message.id.to_string()).collect::<Vec<_>>().join(" ")
}

fn metadata(chat: &Session, id: &str) -> Result<serde_json::Value> {
    let message = chat.message(&id.into())?.unwrap();
    Ok(message.metadata.map_or(serde_json::Value::Null, |metadata| metadata.value()))
}

#[test]
fn claude_code() -> Result<()> {
    let (store, report) = import_twice("claude_code.jsonl")?;
    assert_eq!((format(&report), counts(&report)), (Format::ClaudeCode, (17, 8, 7, 2)));
    let chat = store.session("S")?;
    let info = chat.info()?.unwrap();
    assert_eq!(info.name.as_deref(), Some("Files"));
    assert_eq!(info.model.as_deref(), Some("claude-x"));
    assert_eq!(info.metadata.unwrap().value()["tag"], "ci");
    assert_eq!(info.created_at.to_rfc3339(), "2026-01-02T03:04:05+00:00");

    // An entry without an id stays in its position; progress entries only link; a lost parent is
    // repaired.
    let raw = chat.raw_history()?;
    let path: Vec<_> = raw.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(
        [&path[1..5], &path[6..]].concat(),
        "u1 a1 a2 r1 a3 u2 b1 c1 u3".split(' ').collect::<Vec<_>>()
    );
    assert!(raw[0].is_hidden && raw[5].is_hidden && raw[8].is_hidden);
    assert_eq!(raw[5].role.as_str(), "queue-operation");
    assert!(matches!(&raw[2].parts[0], Part::Reasoning(r) if r.extra.contains_key("signature")));
    assert!(
        matches!(&raw[3].parts[0], Part::Tool(tool) if tool.name == "Bash" && tool.call_id == "t1")
    );
    assert_eq!(raw[4].role.as_str(), "tool");
    assert!(matches!(&raw[4].parts[0], Part::Tool(tool)
        if tool.name == "Bash" && tool.output.as_ref().unwrap().value() == "a.txt"));
    assert_eq!(ids(&chat.history()?), "compaction_c1 u3");
    assert_eq!(chat.history()?[0].text(), "Earlier: files were listed.");
    assert_eq!(chat.roots()?.len(), 2, "the subagent's entries are a tree of their own");
    assert!(report.notes.iter().any(|note| note.line == Some(10) && note.is_fault));
    Ok(())
}

#[test]
fn a_file_of_a_subagent_becomes_a_session_below_its_parent() -> Result<()> {
    let store = Store::open_in_memory()?;
    let line = r#"{"type":"user","uuid":"s1","parentUuid":null,"sessionId":"S","isSidechain":true,"agentId":"x","message":{"role":"user","content":"check"}}"#;
    let report = import_reader(
        &store,
        "agent-x.jsonl",
        Cursor::new(line),
        &ImportOptions::default(),
        |_| {},
    )?;
    assert_eq!(report.sessions[0], "S/subagents/agent-x");
    let info = store.session(&report.sessions[0])?.info()?.unwrap();
    assert_eq!(info.parent_session, Some("S".into()));
    Ok(())
}

/// A transcript drawn: a word an entry, `id<parent`, then marks: `s` a side chain, `b` a boundary,
/// `c` a summary, `@` another session.
fn transcript(drawn: &str) -> Cursor<String> {
    let mut lines = Vec::new();
    for entry in drawn.split(' ') {
        let (id, rest) = entry.split_once('<').unwrap();
        let parent = rest.trim_end_matches(['s', 'b', 'c', '@']);
        let has = |mark| rest.contains(mark);
        let mut line = json!({
            "type": "user", "uuid": id, "parentUuid": parent,
            "sessionId": if has('@') { "T" } else { "S" }, "isSidechain": has('s'),
            "message": {"role": "user", "content": id},
        });
        if parent == "-" {
            line["parentUuid"] = json!(null);
        }
        if has('b') {
            line["type"] = json!("system");
            line["subtype"] = json!("compact_boundary");
            line["logicalParentUuid"] = line["parentUuid"].take();
        }
        if has('c') {
            line["isCompactSummary"] = json!(true);
        }
        lines.push(line.to_string());
    }
    Cursor::new(lines.join("\n"))
}

#[test]
fn chains_of_claude_code_are_mended_and_compacted() -> Result<()> {
    for (drawn, shown, faults) in [
        ("A<- B<A C<B", "A B C", 0),
        ("A<- B<A C<gone", "A B C", 1),
        // An entry that lost its parent beside a side chain does not become part of it.
        ("A<- X<-s B<gone", "A B", 1),
        ("A<- B<A D<Bb E<Dc F<E", "compaction_E F", 0),
        ("A<- D<Ab E<Dc F<E G<Fb H<Gc I<H", "compaction_H I", 0),
        // A boundary whose end is lost replaces everything before it.
        ("A<- B<A D<goneb E<Dc F<E", "compaction_E F", 1),
        // A summary of what another file holds is all there is.
        ("D<goneb E<Dc F<E", "E F", 1),
        // No entry names a parent.
        ("A<- B<- C<-", "A B C", 0),
        // A resumed session that goes on in another file's entries.
        ("A<- B<A C<B@ D<C@", "A B C D", 0),
    ] {
        let store = Store::open_in_memory()?;
        let options = ImportOptions::default();
        let report = import_reader(&store, "f", transcript(drawn), &options, |_| {})?;
        let chat = store.session(report.sessions.last().unwrap())?;
        assert_eq!(ids(&chat.history()?), shown, "{drawn}: {:#?}", report.notes);
        let found = report.notes.iter().filter(|note| note.is_fault).count();
        assert_eq!((found, report.sessions.len()), (faults, 1), "{drawn}: {:#?}", report.notes);
        let again = import_reader(&store, "f", transcript(drawn), &options, |_| {})?;
        assert_eq!(again.added, 0);
    }
    Ok(())
}

#[test]
fn a_compaction_of_claude_code_that_keeps_messages_leaves_them_in_view() -> Result<()> {
    let mut file = transcript("A<- B<A C<B D<Cb E<Dc F<E").into_inner();
    file = file.replace(
        "\"subtype\":\"compact_boundary\"",
        "\"subtype\":\"compact_boundary\",\"compactMetadata\":{\"preservedSegment\":{\"headUuid\":\"C\"}}",
    );
    let store = Store::open_in_memory()?;
    import_reader(&store, "f", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!(ids(&store.session("S")?.history()?), "compaction_E C F");
    Ok(())
}

#[test]
fn pi_version_3() -> Result<()> {
    let (store, report) = import_twice("pi_v3.jsonl")?;
    assert_eq!((format(&report), counts(&report)), (Format::Pi, (12, 6, 6, 0)));
    let chat = store.session("P")?;
    let info = chat.info()?.unwrap();
    assert_eq!((info.name.as_deref(), info.model.as_deref()), (Some("A look"), Some("m-1")));
    assert_eq!(info.parent_session, Some("parent-id".into()));
    assert_eq!(
        ids(&chat.history()?),
        "compaction_aaaa0005 aaaa0003 aaaa0004 aaaa0008 aaaa0009 aaaa000a"
    );
    assert_eq!(chat.raw_history()?.len(), 11);
    assert_eq!(chat.labelled("run")?, Some("aaaa0003".into()));
    assert_eq!(chat.head()?, Some("aaaa000b".into()));

    let look = chat.message(&"aaaa0002".into())?.unwrap();
    assert!(matches!(&look.parts[1], Part::File(file) if file.url == "data:image/png;base64,AAAA"));
    let call = chat.message(&"aaaa0003".into())?.unwrap();
    assert!(matches!(&call.parts[2], Part::Tool(tool)
        if tool.input.as_ref().unwrap().as_str() == r#"{"n":123456789012345678901234567890}"#));
    let result = chat.message(&"aaaa0004".into())?.unwrap();
    assert!(matches!(&result.parts[0], Part::Tool(tool)
        if tool.error_text.as_deref() == Some("boom") && tool.state.as_deref() == Some("output-error")));
    let future = chat.message(&"aaaa000b".into())?.unwrap();
    assert_eq!(
        serde_json::to_value(&future.parts[0]).unwrap(),
        json!({"type": "data-future_kind", "data": {"type": "future_kind", "data": {"x": 1.5}}})
    );
    assert_eq!(metadata(&chat, "aaaa0009")?["kind"], "branch_summary");
    let compaction = &chat.compactions()?[0];
    assert_eq!(compaction.details.as_ref().unwrap().value()["tokensBefore"], 4100);
    Ok(())
}

#[test]
fn pi_version_1() -> Result<()> {
    let (store, report) = import_twice("pi_v1.jsonl")?;
    assert_eq!(counts(&report), (6, 4, 2, 0));
    let chat = store.session("P1")?;
    let texts: Vec<_> = chat.history()?.iter().map(Message::text).collect();
    assert_eq!(texts, ["counted", "one", "four"]);
    assert_eq!(chat.raw_history()?.len(), 5);
    Ok(())
}

#[test]
fn chatgpt() -> Result<()> {
    let (store, report) = import_twice("chatgpt.json")?;
    // The root without a message and the conversation without nodes are dropped.
    assert_eq!((format(&report), counts(&report)), (Format::ChatGpt, (6, 3, 1, 2)));
    let chat = store.session("G")?;
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Colours"));
    assert_eq!(ids(&chat.history()?), "n2 n4");
    assert_eq!(ids(&chat.raw_history()?), "n1 n2 n4");
    assert_eq!(ids(&chat.branches(&"n2".into())?), "n3 n4");
    let question = chat.message(&"n2".into())?.unwrap();
    assert!(matches!(&question.parts[0], Part::File(file) if file.url == "file-service://f1"));
    let answer = chat.message(&"n4".into())?.unwrap();
    assert_eq!(answer.created_at - question.created_at, chrono::TimeDelta::milliseconds(1));
    assert_eq!(metadata(&chat, "n4")?["model"], "m-2");
    assert!(matches!(&chat.message(&"n3".into())?.unwrap().parts[0], Part::Reasoning(_)));
    assert_eq!(report.sessions.len(), 1);
    Ok(())
}

#[test]
fn open_assistant() -> Result<()> {
    let (store, report) = import_twice("open_assistant.jsonl")?;
    assert_eq!((format(&report), counts(&report)), (Format::OpenAssistant, (4, 4, 0, 0)));
    let chat = store.session("t1")?;
    assert_eq!(ids(&chat.history()?), "t1 t1a t1c", "by rank");
    assert_eq!(ids(&chat.branches(&"t1".into())?), "t1b t1a", "in file order");
    assert_eq!(metadata(&chat, "t1a")?["deleted"], true);
    assert_eq!(chat.history()?[0].role.as_str(), "user");

    let (store, report) = import_twice("open_assistant_flat.json")?;
    assert_eq!(counts(&report), (3, 3, 0, 0));
    let chat = store.session("f1")?;
    assert_eq!(ids(&chat.history()?), "f1 f2");
    assert_eq!(chat.history()?[0].created_at.to_rfc3339(), "2023-02-05T14:23:49.983374+00:00");
    assert_eq!(report.sessions.len(), 2);
    Ok(())
}

#[test]
fn openai() -> Result<()> {
    let (store, report) = import_twice("openai.jsonl")?;
    assert_eq!((format(&report), counts(&report)), (Format::OpenAi, (9, 8, 0, 1)));
    assert_eq!(report.sessions.len(), 3, "equal conversations are not one");
    let chat = store.session("O")?;
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Weather"));
    let history = chat.history()?;
    assert_eq!(history[1].id, "q");
    assert_eq!(history[1].created_at.timestamp(), 1_767_323_045);
    assert!(matches!(&history[1].parts[1], Part::File(file) if file.media_type == "image/png"));
    assert!(matches!(&history[2].parts[..], [Part::Tool(one), Part::Tool(two)]
        if one.input.as_ref().unwrap().value() == json!({"q": 1})
        && two.input.as_ref().unwrap().value() == "not json"));
    assert!(
        matches!(&history[4].parts[0], Part::Tool(tool) if tool.name == "get" && tool.call_id == "c2")
    );

    // An export and its import give the same messages.
    let mut written = Vec::new();
    talktree_model::export_openai(&chat.path(), &mut written)?;
    let json: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(json["messages"][2]["tool_calls"][1]["function"]["arguments"], "not json");
    let copy = Store::open_in_memory()?;
    import_reader(&copy, "o.json", Cursor::new(written), &ImportOptions::default(), |_| {})?;
    let texts = |chat: &Session| -> Result<Vec<_>> {
        Ok(chat.history()?.into_iter().map(|m| (m.role, m.parts.len())).collect::<Vec<_>>())
    };
    assert_eq!(texts(&copy.session("O")?)?, texts(&chat)?);
    Ok(())
}

#[test]
fn ui_messages() -> Result<()> {
    let (store, report) = import_twice("ui_message.json")?;
    assert_eq!((format(&report), counts(&report)), (Format::UiMessage, (3, 3, 0, 0)));
    let chat = store.session("V")?;
    let history = chat.history()?;
    assert_eq!(ids(&history), "a b c");
    assert_eq!(history[0].created_at.to_rfc3339(), "2026-01-02T03:04:05+00:00");
    assert_eq!(metadata(&chat, "a")?, json!({"k": 1}));
    assert_eq!(
        serde_json::to_string(&history[1].parts[2]).unwrap().replace(' ', ""),
        r#"{"type":"data-x","data":{"y":"\ud800"}}"#
    );
    assert!(matches!(&history[1].parts[1], Part::Tool(tool) if tool.output.is_some()));
    assert!(matches!(&history[2].parts[0], Part::Tool(tool) if tool.name == "calc"));
    assert_eq!(history[2].text(), "old");
    Ok(())
}

#[test]
fn the_source_record_is_kept_on_request() -> Result<()> {
    let options = ImportOptions { keeps_source: true, ..ImportOptions::default() };
    for (file, session, id, field, value) in [
        ("claude_code.jsonl", "S", "r1", "toolUseResult", json!({"stdout": "a.txt"})),
        ("pi_v3.jsonl", "P", "aaaa0004", "type", json!("message")),
        ("chatgpt.json", "G", "n4", "parent", json!("n2")),
        ("open_assistant.jsonl", "t1", "t1", "lang", json!("en")),
        ("open_assistant_flat.json", "f1", "f2", "parent_id", json!("f1")),
        ("openai.jsonl", "O", "q", "created_at", json!(1_767_323_045)),
        ("ui_message.json", "V", "a", "createdAt", json!("2026-01-02T03:04:05Z")),
    ] {
        let store = Store::open_in_memory()?;
        import_as(&store, file, &options)?;
        let found = metadata(&store.session(session)?, id)?;
        assert_eq!(found["source"][field], value, "{file}: {found}");
        // With or without it, the same record is the same record.
        assert_eq!(import(&store, file)?.added, 0);
    }
    Ok(())
}

#[test]
fn an_object_may_be_broken_over_lines_anywhere() -> Result<()> {
    for (format, object) in [
        (
            Format::OpenAi,
            r#"{"id": "c", "messages": [{"role": "user", "content": "{hi\"["}, {"role": "assistant", "content": null}]}"#,
        ),
        (
            Format::UiMessage,
            r#"{"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}"#,
        ),
        (
            Format::ChatGpt,
            r#"{"mapping": {"m": {"parent": null, "message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}}}}, "conversation_id": "c"}"#,
        ),
    ] {
        let pretty = serde_json::to_string_pretty(
            &serde_json::from_str::<serde_json::Value>(object).unwrap(),
        );
        let breaks =
            object.match_indices(' ').map(|(at, _)| [&object[..at], "\n", &object[at..]].concat());
        for file in breaks.chain([pretty.unwrap()]) {
            let store = Store::open_in_memory()?;
            let options = ImportOptions { is_strict: true, ..ImportOptions::default() };
            let report = import_reader(&store, "f", Cursor::new(&file), &options, |_| {})?;
            assert_eq!((report.format.as_str(), report.dropped), (format.as_str(), 0), "{file}");
            assert_eq!(report.sessions[0], "c", "{file}");
        }
    }
    Ok(())
}

/// Ten messages that name no parent are a chain. One entry of another program turned that off, and made ten roots.
#[test]
fn a_foreign_entry_in_a_transcript_leaves_its_chain_as_it_is() -> Result<()> {
    let message = |n: usize| {
        format!(
            r#"{{"type":"user","uuid":"m{n}","sessionId":"s","message":{{"role":"user","content":"{n}"}}}}"#
        )
    };
    let whole = (0..10).map(|n| format!("m{n}")).collect::<Vec<_>>().join(" ");
    for foreign in [
        r#"{"type":"telemetry","sessionId":"s","data":1}"#,
        r#"{"type":"telemetry","uuid":"f","parentUuid":"m3","sessionId":"s"}"#,
        r#"{"type":"telemetry","uuid":"f","parentUuid":"gone","sessionId":"s"}"#,
        r#"{"type":"user","uuid":"f","parentUuid":"gone","sessionId":"s","message":{"role":"user","content":"f"}}"#,
        r#"{"hello":"world"}"#,
    ] {
        for at in [0, 5, 10] {
            let mut lines: Vec<String> = (0..10).map(message).collect();
            lines.insert(at, foreign.to_owned());
            let store = Store::open_in_memory()?;
            let file = Cursor::new(lines.join("\n"));
            let report = import_reader(&store, "f", file, &ImportOptions::default(), |_| {})?;
            assert_eq!(report.sessions, ["s"]);
            let chat = store.session("s")?;
            let path = chat.at(&"m9".into()).raw_history()?;
            let own: Vec<_> = path.into_iter().filter(|m| m.id.as_str().starts_with('m')).collect();
            assert_eq!(ids(&own), whole, "{foreign} on line {at}: {report:#?}");
        }
    }
    Ok(())
}

/// The replies of a tree without a `prompt` around it were lost without a note.
#[test]
fn open_assistant_trees_may_have_no_prompt_around_them() -> Result<()> {
    let file = r#"{"message_id":"r1","text":"x","role":"prompter","replies":[
            {"message_id":"r2","text":"yy","role":"assistant","rank":1,"replies":[]},
            {"message_id":"r3","text":"z","role":"assistant","rank":0,"replies":[
                {"message_id":"r4","text":"zz","role":"prompter","replies":[]}]}]}"#
        .replace('\n', "");
    let below =
        r#"{"message_id":"r5","parent_id":"r2","message_tree_id":"r1","text":"u","role":"prompter",
        "replies":[{"message_id":"r6","text":"v","role":"assistant"}]}"#
            .replace('\n', "");
    let store = Store::open_in_memory()?;
    let file = Cursor::new(format!("{file}\n{below}\n"));
    let report = import_reader(&store, "oas.jsonl", file, &ImportOptions::default(), |_| {})?;
    assert_eq!((counts(&report), format(&report)), ((6, 6, 0, 0), Format::OpenAssistant));
    let chat = store.session("r1")?;
    assert_eq!(ids(&chat.history()?), "r1 r3 r4");
    assert_eq!(ids(&chat.at(&"r6".into()).history()?), "r1 r2 r5 r6");
    Ok(())
}

#[test]
fn a_pi_session_of_a_later_version_is_noted() -> Result<()> {
    for (version, notes) in [(3, 0), (4, 1)] {
        let file = Cursor::new(format!(
            r#"{{"type":"session","version":{version},"id":"p","timestamp":"2026-01-02T03:04:05Z"}}
{{"type":"message","id":"a","parentId":null,"message":{{"role":"user","content":"hi"}}}}"#
        ));
        let options = ImportOptions { format: Some(Format::Pi), ..ImportOptions::default() };
        let store = Store::open_in_memory()?;
        let report = import_reader(&store, "p.jsonl", file, &options, |_| {})?;
        assert_eq!(report.notes.len(), notes, "{:?}", report.notes);
    }
    Ok(())
}
