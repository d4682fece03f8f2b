//! Exports a path as a rollout of Codex, which `codex resume` goes on with.

use std::io::Write;

use serde_json::{Value, json};
use talktree::{Path, Result};

use super::steps::{
    Kind, LeftOut, Piece, Step, Talk, data_of, iso, kind_of, text_of, uuid_of, write_lines,
};
use crate::formats::codex::OF_REASONING;

/// Writes a path as a rollout of Codex: JSON lines `{"timestamp", "type", "payload"}`; returns what they have no place for.
///
/// A summary at the beginning of the path is a compaction, after the messages that it replaces. A system message is one of the
/// developer. Reasoning that the provider has not encrypted is left out, and so is whether a result is an error.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_codex;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("List the files."))?;
/// let mut lines = Vec::new();
/// export_codex(&chat.path(), &mut lines)?;
/// assert!(String::from_utf8_lossy(&lines).starts_with(r#"{"payload":"#));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`export_claude_code`](super::export_claude_code).
pub fn export_codex(path: &Path, output: &mut impl Write) -> Result<LeftOut> {
    write_lines(path, output, |talk| {
        let mut lines = vec![header(talk)];
        for step in std::mem::take(&mut talk.steps) {
            write(&step, talk, &mut lines);
        }
        lines
    })
}

/// Returns the id that Codex knows a session by: its own, if that is a UUID.
///
/// ```
/// assert_eq!(talktree_import::export::session_of_codex("telegram:4711").len(), 36);
/// ```
#[must_use]
pub fn session_of_codex(id: &str) -> String {
    uuid_of("codex", id)
}

fn header(talk: &Talk) -> Value {
    let time = talk.steps.first().map(|step| iso(step.time)).unwrap_or_default();
    let payload = json!({
        "id": session_of_codex(&talk.session), "timestamp": time, "cwd": talk.folder(),
        "originator": "talktree", "cli_version": env!("CARGO_PKG_VERSION"), "source": "cli",
    });
    json!({"timestamp": time, "type": "session_meta", "payload": payload})
}

fn write(step: &Step, talk: &mut Talk, lines: &mut Vec<Value>) {
    let time = iso(step.time);
    let line =
        |kind: &str, payload: Value| json!({"timestamp": time, "type": kind, "payload": payload});
    let role = match step.kind {
        Kind::Model => "assistant",
        Kind::System => "developer",
        Kind::User | Kind::Results | Kind::Summary => "user",
    };
    let text = |text: &str| match step.kind {
        Kind::Model => json!({"type": "output_text", "text": text}),
        _ => json!({"type": "input_text", "text": text}),
    };
    let message =
        |content: Vec<Value>| json!({"type": "message", "role": role, "content": content});
    let mut content = Vec::new();
    let mut items = Vec::new();
    for piece in &step.pieces {
        let item = match piece {
            Piece::Text(said) if step.kind == Kind::Summary => {
                let history = [message(vec![text(said)])];
                let payload = json!({"message": said, "replacement_history": history});
                return lines.push(line("compacted", payload));
            }
            Piece::Text(said) => {
                content.push(text(said));
                continue;
            }
            Piece::File(file)
                if data_of(file).is_some() && file.media_type.starts_with("image/") =>
            {
                content.push(json!({"type": "input_image", "image_url": file.url}));
                continue;
            }
            Piece::File(file) => {
                talk.leave_out(kind_of(file), 1);
                continue;
            }
            Piece::Reasoning(reasoning) => {
                let text = Some(reasoning.text.as_str()).filter(|text| !text.is_empty());
                let text = text.map(|text| json!({"type": "summary_text", "text": text}));
                if !reasoning.extra.contains_key("encrypted_content") {
                    // An item with several summaries is several parts.
                    let before = items.last_mut().filter(|_| content.is_empty());
                    match before.and_then(|item: &mut Value| item["summary"].as_array_mut()) {
                        Some(summary) => summary.extend(text),
                        None => talk.leave_out("reasoning that is not encrypted", 1),
                    }
                    continue;
                }
                let mut item = json!({"type": "reasoning", "summary": Vec::from_iter(text)});
                for name in OF_REASONING {
                    if let Some(value) = reasoning.extra.get(name) {
                        item[name] = value.value();
                    }
                }
                item
            }
            Piece::Call { name, id, input } => {
                json!({"type": "function_call", "name": name, "arguments": input.as_str(), "call_id": id})
            }
            Piece::Result { id, output, is_error, .. } => {
                talk.leave_out("marks of failed calls", u64::from(*is_error));
                json!({"type": "function_call_output", "call_id": id, "output": text_of(output)})
            }
        };
        if !content.is_empty() {
            items.push(message(std::mem::take(&mut content)));
        }
        items.push(item);
    }
    if !content.is_empty() {
        items.push(message(content));
    }
    lines.extend(items.into_iter().map(|item| line("response_item", item)));
    // Codex itself writes messages of the role `user`; an event says that a person wrote this one.
    let said: Vec<&str> = step.pieces.iter().filter_map(Piece::as_text).collect();
    if step.kind == Kind::User && !said.is_empty() {
        lines.push(line("event_msg", json!({"type": "user_message", "message": said.join("\n")})));
    }
}
