//! Logs of agents: what each becomes, on small files written by hand.

use std::io::Cursor;

use talktree::{Message, Part, Result, Role, Session, Store};
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, ImportReport, import_reader};

fn add(store: &Store, name: &str, file: &str) -> ImportReport {
    let options = ImportOptions::default();
    let file = Cursor::new(file.to_owned());
    let report = import_reader(store, name, file, &options, |_| {}).unwrap();
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    report
}

/// Imports a file twice into a new store; the second time changes nothing.
fn import(name: &str, file: &str) -> (Store, ImportReport) {
    let store = Store::open_in_memory().unwrap();
    let report = add(&store, name, file);
    let hash = content_hash(&store).unwrap();
    assert_eq!(add(&store, name, file).added, 0);
    assert_eq!(content_hash(&store).unwrap(), hash);
    assert!(store.verify(|_| {}).unwrap().damages.is_empty());
    (store, report)
}

/// A message in short: the letter of its role, then its texts, `(thoughts)`, `call>`, `>result`.
fn shown(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Reasoning(thought) => format!("({})", thought.text),
        Part::Tool(tool) => {
            let output = tool
                .output
                .as_ref()
                .map(|output| format!(">{}", output.value().as_str().unwrap_or("..")));
            let output =
                output.or_else(|| tool.error_text.as_ref().map(|error| format!(">!{error}")));
            let call = tool.input.as_ref().map(|_| tool.name.clone());
            format!("{}{}", call.unwrap_or_default(), output.unwrap_or_else(|| ">".to_owned()))
        }
        Part::File(file) => format!("<{}>", file.media_type),
        _ => format!("[{}]", part.kind()),
    };
    let parts: Vec<String> = message.parts.iter().map(part).collect();
    format!("{}:{}", &message.role.as_str()[..1], parts.join("+"))
}

fn history(chat: &Session) -> String {
    chat.history().unwrap().iter().map(shown).collect::<Vec<_>>().join(" | ")
}

/// The leaves, each as the text of its last message that is not hidden.
fn leaves(chat: &Session) -> Vec<String> {
    let mut leaves: Vec<String> = chat
        .leaves()
        .unwrap()
        .iter()
        .filter_map(|leaf| chat.at(leaf).history().unwrap().last().map(shown))
        .collect();
    leaves.sort();
    leaves
}

/// What a session took: answers, input, output, cached, reasoning.
fn spent(store: &Store, session: &str) -> (u64, u64, u64, u64, u64) {
    let total = store.usage().session(session).total().unwrap();
    (total.answers, total.input, total.output, total.cache_read, total.reasoning)
}

/// A rollout drawn: `KIND payload` a line, without the braces.
fn rollout(lines: &[(&str, &str)]) -> String {
    let line = |(at, (kind, payload)): (usize, &(&str, &str))| {
        format!(
            r#"{{"timestamp":"2026-01-02T03:04:{at:02}.000Z","type":"{kind}","payload":{{{payload}}}}}"#
        )
    };
    lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

const META: (&str, &str) = (
    "session_meta",
    r#""id":"th-1","timestamp":"2026-01-02T03:04:00Z","cwd":"/w","originator":"codex_cli""#,
);
const MODEL: (&str, &str) = ("turn_context", r#""turn_id":"t1","model":"m-1""#);
const STARTED: (&str, &str) = ("event_msg", r#""type":"task_started","turn_id":"t""#);

fn said(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(r#""type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]"#)
}

#[test]
fn a_rollout_becomes_messages_calls_thoughts_and_usage() -> Result<()> {
    let count = |total: u64| {
        format!(
            r#""type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9,"reasoning_output_tokens":4,"total_tokens":109}}}}"#
        )
    };
    let file = rollout(&[
        META,
        ("response_item", &said("developer", "be brief")),
        ("response_item", &said("user", "<environment_context>/w</environment_context>")),
        STARTED,
        MODEL,
        ("response_item", &said("user", "count the tests")),
        ("event_msg", r#""type":"user_message","message":"count the tests""#),
        (
            "response_item",
            r#""type":"reasoning","summary":[{"type":"summary_text","text":"look first"}],"encrypted_content":"x""#,
        ),
        ("response_item", r#""type":"reasoning","summary":[],"encrypted_content":"y""#),
        (
            "response_item",
            r#""type":"function_call","name":"shell","arguments":"{\"cmd\":\"ls\"}","call_id":"c1""#,
        ),
        ("response_item", r#""type":"function_call_output","call_id":"c1","output":"3 files""#),
        (
            "response_item",
            r#""type":"function_call","name":"shell","arguments":"{}","call_id":"c2""#,
        ),
        (
            "response_item",
            r#""type":"function_call_output","call_id":"c2","output":{"content":"gone","success":false}"#,
        ),
        ("event_msg", &count(109)),
        ("event_msg", &count(109)),
        ("event_msg", r#""type":"token_count","info":null"#),
        ("response_item", &said("assistant", "three")),
        ("event_msg", r#""type":"agent_message","message":"three""#),
        ("response_item", r#""type":"image_generation_call","result":"aGk=","status":"completed""#),
        ("world_state", r#""full":true"#),
    ]);
    let (store, report) = import("rollout-x.jsonl", &file);
    assert_eq!(
        (report.format.as_str(), report.kept, report.dropped),
        ("codex", 10, 4),
        "{report:#?}"
    );
    let chat = store.session("th-1")?;
    let expected = "s:be brief | u:<environment_context>/w</environment_context> | u:count the tests | a:(look first) \
        | a:shell> | t:>3 files | a:shell> | t:>!gone | a:three | a:<image/png>";
    assert_eq!(history(&chat), expected);
    assert_eq!(spent(&store, "th-1"), (1, 100, 9, 60, 4));
    let info = chat.info()?.unwrap();
    assert_eq!(
        (info.name.as_deref(), info.model.as_deref()),
        (Some("count the tests"), Some("m-1"))
    );
    let calls = chat.history()?;
    assert!(
        matches!(&calls[4].parts[0], Part::Tool(tool) if tool.input.as_ref().unwrap().value()["cmd"] == "ls")
    );
    assert_eq!(store.usage().model("m-1").total()?.answers, 1);
    Ok(())
}

#[test]
fn the_generations_of_codex_say_the_same() -> Result<()> {
    let items = [
        format!("{{{}}}", said("user", "hello")),
        r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}"#.to_owned(),
        r#"{"type":"function_call_output","call_id":"c1","output":"ok"}"#.to_owned(),
        format!("{{{}}}", said("assistant", "done")),
    ];
    let first = format!(
        r#"{{"session":{{"id":"th-1","timestamp":"2026-01-02T03:04:00Z"}},"items":[{}]}}"#,
        items.join(",")
    );
    let header =
        r#"{"id":"th-1","timestamp":"2026-01-02T03:04:00Z","instructions":"be kind","git":{}}"#;
    let second =
        format!("{header}\n{}\n{{\"record_type\":\"state\"}}\n{}", items[0], items[1..].join("\n"));
    for file in [first, second] {
        let (store, report) = import("rollout.json", &file);
        assert_eq!((report.format.as_str(), report.kept), ("codex", 4), "{report:#?}");
        assert_eq!(history(&store.session("th-1")?), "u:hello | a:shell> | t:>ok | a:done");
    }
    // Items without a session: it is found by its content.
    let (store, report) = import("items.json", &format!("[{}]", items.join(",")));
    assert_eq!((report.kept, store.sessions()?.len()), (4, 1));
    assert_eq!(add(&store, "copy.json", &items.join("\n")).added, 0);
    Ok(())
}

#[test]
fn turns_that_were_rolled_back_are_a_branch() -> Result<()> {
    let (one, two, three) = (said("user", "one"), said("user", "two"), said("user", "three"));
    let (a, b, c) = (said("assistant", "a"), said("assistant", "b"), said("assistant", "c"));
    let back = |turns: &str| format!(r#""type":"thread_rolled_back","num_turns":{turns}"#);
    let (back_1, back_2) = (back("1"), back("2"));
    let item = "response_item";
    let (store, _) = import(
        "r",
        &rollout(&[
            META,
            STARTED,
            (item, &one),
            (item, &a),
            STARTED,
            (item, &two),
            (item, &b),
            ("event_msg", &back_1),
            STARTED,
            (item, &three),
            (item, &c),
        ]),
    );
    let chat = store.session("th-1")?;
    assert_eq!(history(&chat), "u:one | a:a | u:three | a:c");
    assert_eq!(leaves(&chat), ["a:b", "a:c"]);
    // Without marks of turns each person's message begins one.
    let (store, _) = import(
        "r",
        &rollout(&[
            META,
            (item, &one),
            (item, &a),
            (item, &two),
            (item, &b),
            ("event_msg", &back_2),
            (item, &three),
            (item, &c),
        ]),
    );
    assert_eq!(history(&store.session("th-1")?), "u:three | a:c");
    Ok(())
}

#[test]
fn a_compaction_of_codex_is_a_summary() -> Result<()> {
    let item = "response_item";
    let summary = said("user", "so far: one");
    for (compacted, shown) in [
        (r#""message":"so far","replacement_history":[]"#.to_owned(), "so far"),
        (format!(r#""message":"","replacement_history":[{{{summary}}}]"#), "so far: one"),
    ] {
        let (store, report) = import(
            "r",
            &rollout(&[
                META,
                (item, &said("user", "one")),
                (item, &said("assistant", "a")),
                ("compacted", &compacted),
                (item, &said("user", "two")),
            ]),
        );
        let chat = store.session("th-1")?;
        assert_eq!(chat.history()?[0].text(), shown, "{report:#?}");
        assert_eq!((chat.history()?.len(), chat.compactions()?.len()), (2, 1));
        assert_eq!(chat.raw_history()?.len(), 4);
    }
    Ok(())
}

#[test]
fn a_fork_of_codex_shares_its_past_and_a_subagent_is_a_child() -> Result<()> {
    let item = "response_item";
    let (one, a) = (said("user", "one"), said("assistant", "a"));
    let count = r#""type":"token_count","info":{"total_token_usage":{"total_tokens":3},"last_token_usage":{"input_tokens":2,"output_tokens":1}}"#;
    let store = Store::open_in_memory()?;
    add(&store, "r1", &rollout(&[META, (item, &one), (item, &a), ("event_msg", count)]));
    let fork = r#""id":"th-2","forked_from_id":"th-1","timestamp":"2026-01-03T03:04:00Z""#;
    add(
        &store,
        "r2",
        &rollout(&[
            ("session_meta", fork),
            META,
            (item, &one),
            (item, &a),
            ("event_msg", count),
            (item, &said("user", "two")),
        ]),
    );
    let info = store.session("th-2")?.info()?.unwrap();
    assert_eq!(info.parent_session, Some("th-1".into()));
    assert_eq!(history(&store.session("th-2")?), "u:one | a:a | u:two");
    assert_eq!(store.usage().total()?.input, 2, "the copied past counts once");
    assert_eq!(store.search("one").run()?.hits.len(), 1);
    let agent = r#""id":"th-3","source":{"subagent":{"thread_spawn":{"parent_thread_id":"th-1","depth":1}}}"#;
    add(&store, "r3", &rollout(&[("session_meta", agent), (item, &one)]));
    assert_eq!(store.session("th-3")?.info()?.unwrap().parent_session, Some("th-1".into()));
    Ok(())
}

#[test]
fn events_are_messages_where_no_item_says_the_same() -> Result<()> {
    let event = |kind: &str, text: &str| format!(r#""type":"{kind}","message":"{text}""#);
    let (u, a) = (event("user_message", "one"), event("agent_message", "a"));
    let (store, _) = import("r", &rollout(&[META, ("event_msg", &u), ("event_msg", &a)]));
    assert_eq!(history(&store.session("th-1")?), "u:one | a:a");
    let (store, _) = import(
        "r",
        &rollout(&[
            META,
            ("event_msg", &u),
            ("response_item", &said("user", "one")),
            ("event_msg", &a),
        ]),
    );
    assert_eq!(history(&store.session("th-1")?), "u:one");
    Ok(())
}

#[test]
fn an_export_of_claude_ai_is_a_tree() -> Result<()> {
    let message = |id: &str, sender: &str, text: &str, time: u32, parent: &str, more: &str| {
        format!(
            r#"{{"uuid":"{id}","sender":"{sender}","text":"{text}","created_at":"2026-01-02T03:04:{time:02}.000000Z","attachments":[],"files":[],"parent_message_uuid":"{parent}"{more}}}"#
        )
    };
    let root = "00000000-0000-4000-8000-000000000000";
    let attached = r#","content":[],"attachments":[{"file_name":"n.txt","extracted_content":"bracken"}],"files":[{"file_name":"p.png"}]"#;
    let calls = r#","content":[{"type":"thinking","thinking":"frond"},{"type":"tool_use","id":"t1","name":"web","input":{}},{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"found"}]},{"type":"text","text":"It is.","citations":[]}]"#;
    let file = format!(
        r#"[{{"uuid":"cv","name":"Ferns","created_at":"2026-01-02T03:04:00Z","account":{{"uuid":"a"}},"chat_messages":[{},{},{},{}]}},{{"uuid":"e","name":"","chat_messages":[]}}]"#,
        message("h1", "human", "which fern", 1, root, attached),
        message("a1", "assistant", "It is.", 2, "h1", calls),
        message("a2", "assistant", "It is not.", 3, "h1", ""),
        message("h2", "human", "sure?", 4, "a2", ""),
    );
    let (store, report) = import("conversations.json", &file);
    assert_eq!(
        (report.format.as_str(), report.kept, report.dropped),
        ("claude-ai", 4, 1),
        "{report:#?}"
    );
    let chat = store.session("cv")?;
    assert_eq!(history(&chat), "u:which fern+bracken+[data-file] | a:It is not. | u:sure?");
    assert_eq!(
        chat.at(&"a1".into()).history()?.last().map(shown).unwrap(),
        "a:(frond)+web>found+It is."
    );
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Ferns"));
    Ok(())
}

const GEMINI: &str = r#"{"sessionId":"g-1","projectHash":"ab","startTime":"2026-01-02T03:04:00Z","lastUpdated":"2026-01-02T03:04:00Z","kind":"main"}
{"id":"m1","timestamp":"2026-01-02T03:04:01Z","type":"user","content":[{"text":"name the port"}]}
{"id":"m2","timestamp":"2026-01-02T03:04:02Z","type":"gemini","content":"","thoughts":[{"subject":"Look","description":"in the file"}],"model":"g-pro"}
{"id":"m2","timestamp":"2026-01-02T03:04:02Z","type":"gemini","content":"","thoughts":[{"subject":"Look","description":"in the file"}],"toolCalls":[{"id":"rf","name":"read_file","args":{"path":"a"},"status":"success","result":[{"functionResponse":{"id":"rf","name":"read_file","response":{"output":"8080"}}}]}],"model":"g-pro"}
{"id":"m3","timestamp":"2026-01-02T03:04:03Z","type":"gemini","content":"It is 8080.","tokens":{"input":900,"output":4,"cached":300,"thoughts":2,"tool":0,"total":906},"model":"g-pro"}
{"$set":{"lastUpdated":"2026-01-02T03:04:09Z","summary":"The port"}}
{"id":"i1","timestamp":"2026-01-02T03:04:04Z","type":"info","content":"saved"}"#;

#[test]
fn a_session_of_gemini_cli_grows_by_pieces_of_its_entries() -> Result<()> {
    let (store, report) = import("session.jsonl", GEMINI);
    assert_eq!((report.format.as_str(), report.kept), ("gemini-cli", 5), "{report:#?}");
    let chat = store.session("g-1")?;
    let expected =
        "u:name the port | a:(Look: in the file) | a:read_file> | t:>8080 | a:It is 8080.";
    assert_eq!(history(&chat), expected);
    assert_eq!(spent(&store, "g-1"), (1, 900, 6, 300, 2));
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("The port"));
    // The document that older versions write says the same.
    let entries: Vec<&str> = GEMINI.lines().collect();
    let document = format!(
        r#"{{"sessionId":"g-1","projectHash":"ab","startTime":"2026-01-02T03:04:00Z","messages":[{},{},{}]}}"#,
        entries[1], entries[3], entries[4]
    );
    let (store, _) = import("session.json", &document);
    assert_eq!(history(&store.session("g-1")?), expected);
    assert_eq!(add(&store, "session.jsonl", GEMINI).added, 1, "only the note is new");
    Ok(())
}

#[test]
fn gemini_cli_goes_back_and_compresses() -> Result<()> {
    let entry = |id: &str, kind: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-01-02T03:04:05Z","type":"{kind}","content":"{text}"}}"#
        )
    };
    let header = GEMINI.lines().next().unwrap();
    let (u1, g1) = (entry("u1", "user", "one"), entry("g1", "gemini", "a"));
    let (u2, g2) = (entry("u2", "user", "two"), entry("g2", "gemini", "b"));
    let (store, _) = import("s", &[header, &u1, &g1, &u2, r#"{"$rewindTo":"u2"}"#, &g2].join("\n"));
    let chat = store.session("g-1")?;
    assert_eq!(
        (history(&chat).as_str(), leaves(&chat)),
        ("u:one | a:a | a:b", vec!["a:b".to_owned(), "u:two".to_owned()])
    );
    let set = format!(r#"{{"$set":{{"messages":[{},{u2}]}}}}"#, entry("s1", "user", "so far"));
    let (store, report) = import("s", &[header, &u1, &g1, &u2, &set, &g2].join("\n"));
    let chat = store.session("g-1")?;
    let shown: Vec<String> = chat.history()?.iter().map(Message::text).collect();
    assert_eq!(shown, ["so far", "two", "b"], "{report:#?}");
    // A subagent's file is in the folder of its parent.
    let agent = header.replace("main", "subagent");
    let (store, _) = import("chats/g-1/a-1.jsonl", &[agent.as_str(), &u1].join("\n"));
    assert_eq!(store.session("a-1")?.info()?.unwrap().parent_session, Some("g-1".into()));
    Ok(())
}

#[test]
fn a_session_of_qwen_code_is_its_own_tree() -> Result<()> {
    let record = |id: &str, parent: &str, kind: &str, more: &str| {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(
            r#"{{"uuid":"{id}","parentUuid":{parent},"sessionId":"qs","timestamp":"2026-01-02T03:04:05Z","type":"{kind}","cwd":"/w",{more}}}"#
        )
    };
    let said = |text: &str| format!(r#""message":{{"role":"user","parts":[{{"text":"{text}"}}]}}"#);
    let call = r#""model":"qw","message":{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"f1","name":"ls","args":{}}}]},"usageMetadata":{"promptTokenCount":80,"candidatesTokenCount":5,"cachedContentTokenCount":60}"#;
    let result = r#""message":{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"a"}}}]}"#;
    let compressed = r#""subtype":"chat_compression","systemPayload":{"info":{},"compressedHistory":[{"role":"user","parts":[{"text":"so far"}]}]}"#;
    let file = [
        record("q1", "", "user", &said("list")),
        record("q2", "q1", "assistant", call),
        record("q3", "q2", "tool_result", result),
        record("x1", "q1", "user", &said("no")),
        record("q4", "q3", "system", compressed),
        record("q5", "q4", "user", &said("go on")),
    ];
    let (store, report) = import("qs.jsonl", &file.join("\n"));
    assert_eq!(
        (report.format.as_str(), report.kept, report.converted),
        ("qwen-code", 5, 1),
        "{report:#?}"
    );
    let chat = store.session("qs")?;
    assert_eq!(
        chat.at(&"q3".into()).raw_history()?.iter().map(shown).collect::<Vec<_>>(),
        ["u:list", "a:(hm)+ls>", "t:>a"]
    );
    let history: Vec<String> = chat.history()?.iter().map(Message::text).collect();
    assert_eq!(history, ["so far", "go on"]);
    assert_eq!((spent(&store, "qs"), chat.leaves()?.len()), ((1, 80, 5, 60, 0), 2));
    Ok(())
}

#[test]
fn a_chat_of_copilot_is_the_same_as_a_document_and_as_a_log() -> Result<()> {
    let request = r#"{"requestId":"r1","timestamp":1772800005000,"message":{"text":"fix"},"variableData":{"variables":[]},"response":[{"value":"Let me "},{"value":"see."},{"kind":"toolInvocationSerialized","toolId":"read","toolCallId":"k1","invocationMessage":"Reading"},{"kind":"undoStop","id":"x"},{"value":"Done."}],"responseId":"a1","modelId":"copilot/m","result":{"metadata":{"toolCallRounds":[{"response":"","toolCalls":[{"id":"k1","name":"read_file","arguments":"{}"}]}],"toolCallResults":{"k1":{"content":[]}},"promptTokens":700,"outputTokens":3}}}"#;
    let undone = r#"{"requestId":"r2","timestamp":1772800006000,"message":{"text":"undone"},"response":[],"shouldBeRemovedOnSend":true}"#;
    let last = r#"{"requestId":"r3","timestamp":1772800007000,"message":{"text":"thanks"},"response":[{"value":"half an ans"}]}"#;
    let document = format!(
        r#"{{"version":3,"sessionId":"vs1","creationDate":1772800000000,"customTitle":"Fix it","requests":[{request},{undone}]}}"#
    );
    let log = [
        r#"{"kind":0,"v":{"version":3,"sessionId":"vs1","creationDate":1772800000000,"requests":[]}}"#.to_owned(),
        r#"{"kind":1,"k":["customTitle"],"v":"Fix it"}"#.to_owned(),
        format!(r#"{{"kind":2,"k":["requests"],"v":[{undone}]}}"#),
        format!(r#"{{"kind":2,"k":["requests"],"i":0,"v":[{request},{undone}]}}"#),
        format!(r#"{{"kind":2,"k":["requests"],"v":[{last}]}}"#),
    ];
    for (file, added) in [(document, ""), (log.join("\n"), " | u:thanks")] {
        let (store, report) = import("vs1", &file);
        assert_eq!(report.format.as_str(), "copilot-chat");
        let chat = store.session("vs1")?;
        assert_eq!(
            history(&chat),
            format!("u:fix | a:Let me see.+read_file>..+Done.{added}"),
            "{report:#?}"
        );
        assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("Fix it"));
        assert_eq!(
            (spent(&store, "vs1"), chat.message(&"r2".into())?.is_some()),
            ((1, 700, 3, 0, 0), true)
        );
        assert_eq!(
            report.notes.len(),
            usize::from(!added.is_empty()),
            "the unfinished answer is named"
        );
    }
    Ok(())
}

#[test]
fn the_events_of_copilot_cli_become_messages() -> Result<()> {
    let event = |id: &str, kind: &str, more: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":null,"timestamp":"2026-01-02T03:04:05Z"{more},"data":{{{data}}}}}"#
        )
    };
    let file = [
        event(
            "e1",
            "session.start",
            "",
            r#""sessionId":"cp1","version":1,"selectedModel":"m-1","context":{"cwd":"/w"}"#,
        ),
        event("e2", "user.message", "", r#""content":"list""#),
        event(
            "e3",
            "assistant.message",
            "",
            r#""messageId":"am","content":"","reasoningText":"hm","toolRequests":[{"toolCallId":"k1","name":"bash","arguments":{"command":"ls"}}]"#,
        ),
        event(
            "e4",
            "tool.execution_start",
            "",
            r#""toolCallId":"k1","toolName":"bash","arguments":{}"#,
        ),
        event(
            "e5",
            "assistant.message",
            "",
            r#""messageId":"sm","content":"I look","parentToolCallId":"k1""#,
        ),
        event(
            "e6",
            "tool.execution_complete",
            "",
            r#""toolCallId":"k1","success":true,"result":{"content":"a"}"#,
        ),
        event("e7", "user.message", "", r#""content":"oops""#),
        event("e8", "session.snapshot_rewind", "", r#""upToEventId":"e7","eventsRemoved":1"#),
        event(
            "e9",
            "session.compaction_complete",
            "",
            r#""success":true,"summaryContent":"so far""#,
        ),
        event("e10", "user.message", "", r#""content":"go on""#),
        event(
            "e11",
            "session.shutdown",
            "",
            r#""modelMetrics":{"m-1":{"usage":{"inputTokens":10,"outputTokens":2,"cacheReadTokens":4}}}"#,
        ),
    ];
    let (store, report) = import("events.jsonl", &file.join("\n"));
    assert_eq!((report.format.as_str(), report.kept), ("copilot-cli", 6), "{report:#?}");
    let chat = store.session("cp1")?;
    let seen: Vec<String> = chat.history()?.iter().map(Message::text).collect();
    assert_eq!(seen, ["so far", "go on"]);
    let path: Vec<String> = chat.at(&"e6".into()).raw_history()?.iter().map(shown).collect();
    assert_eq!(path, ["u:list", "a:(hm)+bash>", "t:>a"]);
    assert_eq!(spent(&store, "cp1"), (1, 10, 2, 4, 0));
    let agent = store.session("cp1/subagents/k1")?;
    assert_eq!(
        (history(&agent).as_str(), agent.info()?.unwrap().parent_session),
        ("a:I look", Some("cp1".into()))
    );
    Ok(())
}

#[test]
fn a_task_of_cline_is_named_by_its_folder() -> Result<()> {
    let file = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nadd a test\n</task>"},{"type":"text","text":"<environment_details>x</environment_details>"}],"ts":1773200000000},
{"role":"assistant","content":[{"type":"tool_use","id":"z1","name":"read_file","input":{"path":"a"}}],"ts":1773200003000},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"z1","content":"x"}],"ts":1773200004000},
{"role":"assistant","content":"added","ts":1773200005000,"condenseParent":"c1"},
{"role":"assistant","content":"so far: a test","ts":1773200006000,"isSummary":true,"condenseId":"c1"},
{"role":"user","content":"thanks","ts":1773200007000}]"#;
    let (store, report) = import("tasks/1773200000000/api_conversation_history.json", file);
    assert_eq!((report.format.as_str(), report.kept), ("cline", 5), "{report:#?}");
    let chat = store.session("1773200000000")?;
    assert_eq!(chat.info()?.unwrap().name.as_deref(), Some("add a test"));
    let path: Vec<String> = chat.raw_history()?.iter().map(shown).collect();
    assert_eq!(path[1..4], ["a:read_file>", "t:>x", "a:added"]);
    assert_eq!(
        chat.history()?.iter().map(Message::text).collect::<Vec<_>>(),
        ["so far: a test", "thanks"]
    );
    // Elsewhere a task is found by its content.
    let (store, report) = import("-", file);
    assert_eq!((report.sessions.len(), store.sessions()?.len()), (1, 1));
    let own = r#"{"version":1,"agent":"lead","sessionId":"s1","messages":[{"id":"m1","role":"user","content":"hi","ts":1767225600000},{"id":"m2","role":"assistant","content":[{"type":"text","text":"ho"}]}]}"#;
    let (store, report) = import("s1.messages.json", own);
    assert_eq!(
        (report.format.as_str(), history(&store.session("s1")?).as_str()),
        ("cline", "u:hi | a:ho")
    );
    assert_eq!(store.session("s1")?.history()?[0].role, Role::User);
    Ok(())
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_rollout_is_unpacked() -> Result<()> {
    let file = rollout(&[
        META,
        ("response_item", &said("user", "one")),
        ("response_item", &said("assistant", "a")),
    ]);
    // Frames of one block each, as it is.
    let frame = |text: &[u8]| {
        let head = (1 | (text.len() as u32) << 3).to_le_bytes();
        [&[0x28, 0xB5, 0x2F, 0xFD, 0x20, text.len() as u8], &head[..3], text].concat()
    };
    let packed: Vec<u8> = file.as_bytes().chunks(200).flat_map(frame).collect();
    let store = Store::open_in_memory()?;
    import_reader(&store, "r.jsonl.zst", Cursor::new(&packed), &ImportOptions::default(), |_| {})?;
    assert_eq!(history(&store.session("th-1")?), "u:one | a:a");
    let cut = Cursor::new(&packed[..packed.len() - 9]);
    let refused = import_reader(&store, "cut.zst", cut, &ImportOptions::default(), |_| {});
    assert!(matches!(refused, Err(talktree::Error::Io { .. })), "{refused:?}");
    Ok(())
}
