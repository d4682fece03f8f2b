//! What the conversations of opencode, goose, Open WebUI, LibreChat and Cursor become, on small files written by hand.

use serde_json::{Value, json};
use talktree::{Part, Result, Session, Store, Usage};
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, ImportReport};

/// Imports a fixture twice; the second time adds nothing and changes nothing.
fn import(file: &str) -> Result<(Store, ImportReport)> {
    let path = format!("{}/tests/fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
    let store = Store::open_in_memory()?;
    let read =
        |store: &Store| talktree_import::import(store, &path, &ImportOptions::default(), |_| {});
    let report = read(&store)?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    let hash = content_hash(&store)?;
    assert_eq!(read(&store)?.added, 0);
    assert_eq!(content_hash(&store)?, hash);
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok((store, report))
}

fn counts(report: &ImportReport) -> (u64, u64, u64, u64) {
    (report.records, report.kept, report.converted, report.dropped)
}

/// The history as `role: text`, without the messages that have none.
fn history(chat: &Session) -> Result<String> {
    let said = chat.history()?.into_iter().map(|it| (it.role.to_string(), it.text()));
    let said =
        said.filter(|(_, text)| !text.is_empty()).map(|(role, text)| format!("{role}: {text}"));
    Ok(said.collect::<Vec<_>>().join("\n"))
}

/// The parts of a message as JSON.
fn parts(chat: &Session, id: &str) -> Result<Value> {
    let message = chat.message(&id.into())?.unwrap();
    Ok(serde_json::to_value(&message.parts).unwrap())
}

fn usage(chat: &Session, id: &str) -> Result<Usage> {
    Ok(Usage::of(&chat.message(&id.into())?.unwrap()).unwrap_or_default())
}

#[test]
fn opencode() -> Result<()> {
    let (store, report) = import("opencode.json")?;
    assert_eq!(report.format, "opencode");
    // The session, the request for a summary, the summary and an answer of which there is nothing.
    assert_eq!(counts(&report), (7, 3, 4, 0));
    let chat = store.session("ses_1")?;
    let info = chat.info()?.unwrap();
    assert_eq!((info.name.as_deref(), info.parent_session), (Some("Port"), Some("ses_0".into())));
    assert_eq!(info.model.as_deref(), Some("m"));
    assert_eq!(history(&chat)?, "assistant: They asked for a port.\nuser: go on");
    assert_eq!(chat.raw_history()?.len(), 6);
    assert_eq!(
        parts(&chat, "msg_01")?[1],
        json!({"type": "text", "text": "the file says 80", "synthetic": true})
    );
    let answer = parts(&chat, "msg_02")?;
    assert_eq!(answer[0], json!({"type": "reasoning", "text": "look first"}));
    assert_eq!((&answer[1]["output"], &answer[1]["title"]), (&json!("a"), &json!("ls")));
    assert_eq!(
        (&answer[2]["errorText"], &answer[3]["errorText"]),
        (&json!("denied"), &json!("no such tool"))
    );
    assert_eq!(
        (&answer[4]["state"], answer.as_array().unwrap().len()),
        (&json!("input-available"), 5)
    );
    // What the model no longer sees of an output.
    let shown = chat.history()?.into_iter().find(|it| it.id == "msg_02").unwrap();
    let shown = serde_json::to_value(&shown.parts[1]).unwrap();
    assert_eq!(shown["output"], "[Old tool result content cleared]");
    let usage = usage(&chat, "msg_02")?;
    assert_eq!((usage.input, usage.output, usage.cache_read), (927, 13, 800));
    assert_eq!((usage.cost.unwrap().micros, usage.model.as_deref()), (2000, Some("m")));
    Ok(())
}

#[test]
fn an_undo_of_opencode_moves_the_head_before_what_it_would_remove() -> Result<()> {
    let path = format!("{}/tests/fixtures/opencode.json", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(path).unwrap();
    for (revert, head) in [("msg_05", "msg_04"), ("msg_01", "-"), ("gone", "msg_06")] {
        let file = file.replacen(
            "\"title\"",
            &format!("\"revert\": {{\"messageID\": \"{revert}\"}}, \"title\""),
            1,
        );
        let store = Store::open_in_memory()?;
        let file = std::io::Cursor::new(file);
        talktree_import::import_reader(&store, "f", file, &ImportOptions::default(), |_| {})?;
        let chat = store.session("ses_1")?;
        let found = chat.head()?.map_or("-".to_owned(), |id| id.to_string());
        assert_eq!(found.trim_start_matches("compaction_"), head, "{revert}");
        assert_eq!(chat.leaves()?.len(), 1, "nothing is lost");
    }
    Ok(())
}

#[test]
fn goose() -> Result<()> {
    let (store, report) = import("goose.jsonl")?;
    assert_eq!((report.format.as_str(), counts(&report)), ("goose", (8, 6, 2, 0)));
    let chat = store.session("goose")?;
    let info = chat.info()?.unwrap();
    assert_eq!(
        (info.name.as_deref(), info.parent_session),
        (Some("Kettle"), Some("20260301_1".into()))
    );
    assert_eq!(
        history(&chat)?,
        "assistant: Summary: it was descaled.\nassistant: Do not mention the summary.\nuser: and now?\nuser: and now?"
    );
    let raw = chat.raw_history()?;
    assert!(
        matches!(&raw[0].parts[1], Part::File(file) if file.url == "data:image/png;base64,AAAA")
    );
    assert!(matches!(&raw[1].parts[..], [Part::Reasoning(_), Part::Tool(call), Part::Tool(failed)]
        if call.name == "shell" && failed.error_text.as_deref() == Some("no such tool")));
    assert_eq!(raw[2].role.as_str(), "tool");
    assert!(
        matches!(&raw[2].parts[0], Part::Tool(tool) if tool.name == "shell" && tool.output.is_some())
    );
    Ok(())
}

#[test]
fn open_webui() -> Result<()> {
    let (store, report) = import("open_webui.json")?;
    assert_eq!((report.format.as_str(), counts(&report)), ("open-webui", (6, 4, 1, 1)));
    let chat = store.session("w1")?;
    let info = chat.info()?.unwrap();
    assert_eq!((info.name.as_deref(), &info.tags[..]), (Some("Rain"), &["weather".to_owned()][..]));
    assert_eq!(history(&chat)?, "user: rain?\nassistant: Yes.\nuser: sure?");
    assert_eq!(chat.head()?, Some("n5".into()));
    let siblings: Vec<_> =
        chat.branches(&"n1".into())?.into_iter().map(|it| it.id.to_string()).collect();
    assert_eq!(siblings, ["n2", "n3"]);
    let marked = parts(&chat, "n2")?;
    assert_eq!(marked[0], json!({"type": "reasoning", "text": "wet & cold"}));
    assert_eq!((&marked[1]["input"], &marked[1]["output"]), (&json!({"q": 1}), &json!("clouds")));
    assert_eq!(marked[2], json!({"type": "text", "text": "No."}));
    let items = parts(&chat, "n3")?;
    assert_eq!(
        (&items[1]["input"], &items[1]["state"]),
        (&json!({"q": 2}), &json!("output-available"))
    );
    assert_eq!(items[2]["text"], "Yes.");
    assert_eq!((usage(&chat, "n2")?.input, usage(&chat, "n3")?.output), (20, 5));
    assert_eq!(parts(&chat, "n1")?[2]["filename"], "a.txt");
    Ok(())
}

#[test]
fn libre_chat() -> Result<()> {
    let (store, report) = import("librechat.json")?;
    assert_eq!((report.format.as_str(), counts(&report)), ("librechat", (4, 4, 0, 0)));
    assert!(
        report.notes.iter().any(|note| note.why.contains("which branch was open")),
        "{report:#?}"
    );
    let chat = store.session("l1")?;
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Rope"));
    assert_eq!(history(&chat)?, "user: splice it\nassistant: Spliced\nuser: thanks");
    assert_eq!(chat.branches(&"a".into())?.len(), 2);
    let made = parts(&chat, "c")?;
    assert_eq!((&made[0]["text"], &made[1]["text"]), (&json!("hard"), &json!("Tied")));
    assert_eq!(
        (&made[2]["input"], &made[2]["output"]),
        (&json!({"kind": "bowline"}), &json!("tied"))
    );
    assert_eq!(
        (&made[3]["url"], &made[4]["type"]),
        (&json!("/images/k.png"), &json!("data-error"))
    );
    assert_eq!(usage(&chat, "b")?.output, 3);
    Ok(())
}

#[test]
fn a_transcript_of_cursor_is_left_out_if_the_chat_is_there() -> Result<()> {
    let (store, report) = import("cursor.jsonl")?;
    assert_eq!((report.format.as_str(), counts(&report)), ("cursor", (5, 4, 0, 1)));
    let chat = store.session("transcript/cursor")?;
    assert_eq!(
        history(&chat)?,
        "user: why stale?\nassistant: I look.\nuser: go on\nassistant: I look."
    );
    let store = Store::open_in_memory()?;
    store.session("cursor")?.append(talktree::Message::user("why stale?"))?;
    let path = format!("{}/tests/fixtures/cursor.jsonl", env!("CARGO_MANIFEST_DIR"));
    let options = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let report = talktree_import::import(&store, path, &options, |_| {})?;
    assert_eq!((report.added, report.dropped), (0, 5), "{report:#?}");
    assert_eq!(store.sessions()?.len(), 1);
    Ok(())
}
