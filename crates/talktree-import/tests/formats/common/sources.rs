//! One conversation that grows, in every form in which a program keeps it. Message `n` is a person's if `n` is even; each answer
//! calls a tool.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Writes the first messages of a conversation and returns the file to import.
pub(crate) type Form = fn(folder: &Path, count: usize) -> PathBuf;

/// Forms in which a conversation is the same session.
pub(crate) const PROGRAMS: &[(&str, &[Form])] = &[
    ("opencode", &[opencode_database, opencode_folders, opencode_export]),
    ("goose", &[goose_database, goose_lines]),
    ("Open WebUI", &[open_webui_database, open_webui_export]),
    ("LibreChat", &[libre_chat_list, libre_chat_nested]),
    ("Cursor", &[cursor_database, cursor_inline]),
    ("Cursor's command", &[cursor_command]),
];

/// The first second of the conversation.
const START: usize = 1_772_700_000;

fn role(n: usize) -> &'static str {
    if n.is_multiple_of(2) { "user" } else { "assistant" }
}

fn text(n: usize) -> String {
    format!("message {n}")
}

/// Branches: every fourth message is an answer to an earlier one.
fn parent(n: usize) -> Option<usize> {
    if n % 4 == 3 { n.checked_sub(3) } else { n.checked_sub(1) }
}

fn seconds(n: usize) -> usize {
    START + n
}

fn iso(n: usize) -> String {
    let time = chrono::DateTime::from_timestamp(seconds(n) as i64, 0).unwrap();
    time.to_rfc3339()
}

/// Returns a new database with this schema.
pub(crate) fn database(path: &Path, schema: &str) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA synchronous = OFF").unwrap();
    conn.execute_batch(schema).unwrap();
    conn
}

fn write(path: PathBuf, value: &Value) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, serde_json::to_string_pretty(value).unwrap()).unwrap();
    path
}

fn opencode_session() -> Value {
    json!({"id": "ses_1", "title": "Grown", "directory": "/w", "version": "1", "time": {"created": START * 1000}})
}

fn opencode_message(n: usize) -> (Value, Vec<Value>) {
    let mut info = json!({"id": format!("msg_{n:03}"), "sessionID": "ses_1", "role": role(n), "time": {"created": seconds(n) * 1000}});
    let mut parts = vec![json!({"type": "text", "text": text(n)})];
    if role(n) == "assistant" {
        info["time"]["completed"] = json!(seconds(n) * 1000 + 500);
        info["modelID"] = json!("m");
        info["tokens"] =
            json!({"input": n, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}});
        parts.push(json!({"type": "tool", "callID": format!("c{n}"), "tool": "ls",
            "state": {"status": "completed", "input": {"n": n, "a": [1, 2]}, "output": "a\nb"}}));
    }
    for (at, part) in parts.iter_mut().enumerate() {
        part["id"] = json!(format!("prt_{n:03}_{at}"));
        part["messageID"] = info["id"].clone();
        part["sessionID"] = json!("ses_1");
    }
    (info, parts)
}

pub(crate) const OPENCODE: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, directory TEXT, version TEXT, time_created INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
    CREATE INDEX part_message_idx ON part (message_id);";

/// Takes fields out of an object: they are columns.
fn without(mut value: Value, fields: &[&str]) -> String {
    let object = value.as_object_mut().unwrap();
    object.retain(|name, _| !fields.contains(&name.as_str()));
    value.to_string()
}

fn opencode_database(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("opencode.db");
    let conn = database(&path, OPENCODE);
    conn.execute(
        "INSERT INTO session VALUES ('ses_1', NULL, 'Grown', '/w', '1', ?1)",
        [START as i64 * 1000],
    )
    .unwrap();
    for n in 0..count {
        let (info, parts) = opencode_message(n);
        let id = info["id"].as_str().unwrap().to_owned();
        let time = seconds(n) as i64 * 1000;
        let data = without(info, &["id", "sessionID"]);
        conn.execute(
            "INSERT INTO message VALUES (?1, 'ses_1', ?2, ?2, ?3)",
            params![id, time, data],
        )
        .unwrap();
        for part in parts {
            let name = part["id"].as_str().unwrap().to_owned();
            let data = without(part, &["id", "messageID", "sessionID"]);
            conn.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)", params![name, id, data])
                .unwrap();
        }
    }
    path
}

fn opencode_folders(folder: &Path, count: usize) -> PathBuf {
    let storage = folder.join("storage");
    let _ = fs::remove_dir_all(&storage);
    fs::create_dir_all(storage.join("message/ses_1")).unwrap();
    for n in 0..count {
        let (info, parts) = opencode_message(n);
        let id = info["id"].as_str().unwrap().to_owned();
        write(storage.join(format!("message/ses_1/{id}.json")), &info);
        for part in parts {
            write(storage.join(format!("part/{id}/{}.json", part["id"].as_str().unwrap())), &part);
        }
    }
    write(storage.join("session/project/ses_1.json"), &opencode_session())
}

fn opencode_export(folder: &Path, count: usize) -> PathBuf {
    let messages = (0..count).map(opencode_message);
    let messages: Vec<_> =
        messages.map(|(info, parts)| json!({"info": info, "parts": parts})).collect();
    write(folder.join("export.json"), &json!({"info": opencode_session(), "messages": messages}))
}

pub(crate) const GOOSE: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, created_at TIMESTAMP, parent_session_id TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
                           created_timestamp INTEGER, metadata_json TEXT);";

fn goose_content(n: usize) -> Value {
    let mut content = vec![json!({"type": "text", "text": text(n)})];
    if role(n) == "assistant" {
        content.push(json!({"type": "toolRequest", "id": format!("c{n}"),
            "toolCall": {"status": "success", "value": {"name": "ls", "arguments": {"n": n}}}}));
    }
    json!(content)
}

fn goose_database(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("sessions.db");
    let conn = database(&path, GOOSE);
    conn.execute("INSERT INTO sessions VALUES ('20260305_1', 'Grown', '', '/w', '2026-03-05 08:40:00', NULL)", []).unwrap();
    for n in 0..count {
        let row = params![
            format!("random {n} of {count}"),
            role(n),
            goose_content(n).to_string(),
            seconds(n) as i64
        ];
        conn.execute("INSERT INTO messages VALUES (NULL, ?1, '20260305_1', ?2, ?3, ?4, NULL)", row)
            .unwrap();
    }
    path
}

fn goose_lines(folder: &Path, count: usize) -> PathBuf {
    let header =
        json!({"working_dir": "/w", "description": "Grown", "created_at": "2026-03-05T08:40:00Z"});
    let message = |n| {
        json!({"role": role(n), "created": seconds(n), "content": goose_content(n)}).to_string()
    };
    let lines: Vec<String> =
        std::iter::once(header.to_string()).chain((0..count).map(message)).collect();
    let path = folder.join("20260305_1.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn open_webui_chat(count: usize) -> Value {
    let node = |n: usize| {
        let children: Vec<_> = (0..count)
            .filter(|child| parent(*child) == Some(n))
            .map(|child| format!("n{child}"))
            .collect();
        let mut node = json!({"id": format!("n{n}"), "parentId": parent(n).map(|n| format!("n{n}")), "childrenIds": children,
            "role": role(n), "content": text(n), "timestamp": seconds(n)});
        if role(n) == "assistant" {
            node["model"] = json!("m");
            node["usage"] = json!({"prompt_tokens": n, "completion_tokens": 1});
        }
        (format!("n{n}"), node)
    };
    let messages: serde_json::Map<String, Value> = (0..count).map(node).collect();
    json!({"title": "Grown", "models": ["m"], "history": {"messages": messages, "currentId": format!("n{}", count - 1)}})
}

pub(crate) const OPEN_WEBUI: &str = "
    CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, chat JSON, created_at INTEGER, updated_at INTEGER, meta JSON);";

fn open_webui_database(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("webui.db");
    let conn = database(&path, OPEN_WEBUI);
    let row = params![open_webui_chat(count).to_string(), START as i64];
    conn.execute("INSERT INTO chat VALUES ('w1', 'u', 'Grown', ?1, ?2, ?2, NULL)", row).unwrap();
    path
}

fn open_webui_export(folder: &Path, count: usize) -> PathBuf {
    let chat = json!({"id": "w1", "user_id": "u", "title": "Grown", "chat": open_webui_chat(count), "created_at": START, "updated_at": START});
    write(folder.join("chats.json"), &json!([chat]))
}

fn libre_chat_message(n: usize) -> Value {
    let parent =
        parent(n).map_or("00000000-0000-0000-0000-000000000000".to_owned(), |n| format!("l{n}"));
    json!({"messageId": format!("l{n}"), "parentMessageId": parent, "isCreatedByUser": role(n) == "user", "sender": "x",
        "text": text(n), "createdAt": iso(n)})
}

fn libre_chat(messages: Vec<Value>, is_nested: bool) -> Value {
    json!({"conversationId": "l", "title": "Grown", "endpoint": "e", "branches": true, "recursive": is_nested, "messages": messages})
}

fn libre_chat_list(folder: &Path, count: usize) -> PathBuf {
    let messages = (0..count).rev().map(libre_chat_message).collect();
    write(folder.join("list.json"), &libre_chat(messages, false))
}

fn libre_chat_nested(folder: &Path, count: usize) -> PathBuf {
    fn nested(n: usize, count: usize) -> Value {
        let mut message = libre_chat_message(n);
        let children = (0..count).filter(|child| parent(*child) == Some(n));
        message["children"] = json!(children.map(|child| nested(child, count)).collect::<Vec<_>>());
        message
    }
    write(folder.join("nested.json"), &libre_chat(vec![nested(0, count)], true))
}

fn bubble(n: usize) -> Value {
    let mut bubble = json!({"bubbleId": format!("b{n}"), "type": 1 + n % 2, "text": text(n)});
    if role(n) == "assistant" {
        bubble["createdAt"] = json!(iso(n));
        bubble["toolFormerData"] = json!({"tool": 5, "name": "read", "rawArgs": "{\"path\":\"a\"}", "result": "{\"contents\":\"x\"}", "status": "completed"});
    }
    bubble
}

fn composer(count: usize) -> Value {
    let headers: Vec<_> =
        (0..count).map(|n| json!({"bubbleId": format!("b{n}"), "type": 1 + n % 2})).collect();
    json!({"composerId": "co", "name": "Grown", "createdAt": START * 1000, "fullConversationHeadersOnly": headers})
}

pub(crate) const CURSOR: &str = "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);";

fn cursor_database(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("state.vscdb");
    let conn = database(&path, CURSOR);
    let insert = |key: String, value: Option<String>| {
        conn.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", (key, value)).unwrap()
    };
    for n in (0..count).rev() {
        insert(format!("bubbleId:co:b{n}"), Some(bubble(n).to_string()));
    }
    insert("composerData:co".to_owned(), Some(composer(count).to_string()));
    insert("composerData:gone".to_owned(), None);
    insert("bubbleId:other:b1".to_owned(), Some(bubble(1).to_string()));
    path
}

fn cursor_inline(folder: &Path, count: usize) -> PathBuf {
    let mut chat = composer(count);
    chat["fullConversationHeadersOnly"] = json!([]);
    chat["conversation"] = (0..count).map(bubble).collect();
    write(folder.join("chat.json"), &chat)
}

fn cursor_command(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("chat/store.db");
    let conn = database(
        &path,
        "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);",
    );
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let insert = |id: &[u8], data: &[u8]| {
        conn.execute("INSERT OR IGNORE INTO blobs VALUES (?1, ?2)", params![hex(id), data])
            .unwrap();
    };
    let mut root = Vec::new();
    for n in 0..count {
        // Every sixth message repeats the first.
        let n = if n % 6 == 0 { 0 } else { n };
        let content = match role(n) {
            "user" => json!(format!("<user_query>\n{}\n</user_query>", text(n))),
            _ => {
                json!([{"type": "text", "text": text(n)}, {"type": "tool-call", "toolCallId": "t", "toolName": "ls", "args": {}}])
            }
        };
        let id = [n as u8 + 1; 32];
        insert(&id, json!({"role": role(n), "content": content}).to_string().as_bytes());
        root.extend([&[0x0a, 32], id.as_slice()].concat());
    }
    root.extend([0x12, 1, b'x']);
    insert(&[0xff; 32], &root);
    let meta = json!({"agentId": "agent", "latestRootBlobId": hex(&[0xff; 32]), "name": "Grown", "createdAt": START * 1000});
    conn.execute("INSERT INTO meta VALUES ('0', ?1)", [hex(meta.to_string().as_bytes())]).unwrap();
    path
}
