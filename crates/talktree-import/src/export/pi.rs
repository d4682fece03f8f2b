//! Exports a path as a session of the Pi coding agent, version 3.

use std::io::Write;

use serde_json::json;
use talktree::{Json, Path, Result};

use super::steps::{
    Kind, LeftOut, Piece, Step, Talk, data_of, iso, kind_of, list_of, text_of, value, write_lines,
};
use crate::fields::Fields;

/// Writes a path as JSON lines of Pi, version 3; returns what they have no place for.
///
/// A summary at the beginning of the path is a compaction, after the messages that it replaces. A system message is a custom
/// message, which the model sees and a person does not.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_pi;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("List the files."))?;
/// let mut lines = Vec::new();
/// export_pi(&chat.path(), &mut lines)?;
/// assert_eq!(String::from_utf8_lossy(&lines).lines().count(), 2); // the header and the message
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`export_claude_code`](super::export_claude_code).
pub fn export_pi(path: &Path, output: &mut impl Write) -> Result<LeftOut> {
    write_lines(path, output, |talk| {
        let steps = std::mem::take(&mut talk.steps);
        let time = steps.first().map(|step| iso(step.time)).unwrap_or_default();
        let header = json!({
            "type": "session", "version": 3, "id": talk.session, "timestamp": time, "cwd": talk.folder(),
        });
        let mut lines = Lines { parent: None, written: vec![header.into()] };
        for step in &steps {
            lines.add(step, talk);
        }
        if let Some(title) = talk.title() {
            let entry = Fields::default().with("name", value(title));
            lines.write("session_info", "title", &time, entry);
        }
        lines.written
    })
}

struct Lines {
    parent: Option<String>,
    written: Vec<Json>,
}

impl Lines {
    fn write(&mut self, kind: &str, id: &str, time: &str, entry: Fields) {
        let entry = entry
            .with("type", value(kind))
            .with("id", value(id))
            .with("parentId", value(self.parent.replace(id.to_owned())))
            .with("timestamp", value(time));
        self.written.extend(entry.into_json());
    }

    fn add(&mut self, step: &Step, talk: &mut Talk) {
        let time = iso(step.time);
        if step.kind == Kind::Results {
            for (at, piece) in step.pieces.iter().enumerate() {
                let id = if at == 0 { step.id.clone() } else { format!("{}-{at}", step.id) };
                self.result(step, &id, piece);
            }
            return;
        }
        let Some(content) = step.blocks(|piece| block(piece, talk)) else { return };
        match step.kind {
            Kind::Summary => {
                let said = step.pieces.iter().find_map(Piece::as_text).unwrap_or_default();
                let id = step.id.strip_prefix("compaction_").unwrap_or(&step.id);
                // It keeps nothing of what is before it.
                let entry = Fields::default()
                    .with("summary", value(said))
                    .with("firstKeptEntryId", value(id))
                    .with("tokensBefore", value(0));
                self.write("compaction", id, &time, entry);
            }
            Kind::System => {
                let entry = Fields::default()
                    .with("customType", value("system"))
                    .with("content", Some(content))
                    .with("display", value(false));
                self.write("custom_message", &step.id, &time, entry);
            }
            Kind::Model => {
                let provider = step.about.text("provider");
                let message = message("assistant", step, content)
                    .with("api", value("unknown"))
                    .with("provider", value(provider.unwrap_or_else(|| "unknown".to_owned())))
                    .with("model", value(talk.model(step)))
                    .with("usage", Some(usage(step)))
                    .with("stopReason", value(if step.has_call() { "toolUse" } else { "stop" }));
                self.message(step, &step.id, message);
            }
            Kind::User | Kind::Results => {
                self.message(step, &step.id, message("user", step, content))
            }
        }
    }

    fn message(&mut self, step: &Step, id: &str, message: Fields) {
        let entry = Fields::default().with("message", message.into_json());
        self.write("message", id, &iso(step.time), entry);
    }

    fn result(&mut self, step: &Step, id: &str, piece: &Piece) {
        let Piece::Result { name, id: call, output, is_error } = piece else { return };
        let text = || json!([{"type": "text", "text": text_of(output)}]).into();
        let message = message("toolResult", step, list_of(output).unwrap_or_else(text))
            .with("toolCallId", value(call.as_str()))
            .with("toolName", value(name.as_str()))
            .with("isError", value(*is_error));
        self.message(step, id, message);
    }
}

fn message(role: &str, step: &Step, content: Json) -> Fields {
    Fields::default()
        .with("role", value(role))
        .with("content", Some(content))
        .with("timestamp", value(step.time.timestamp_millis()))
}

/// Returns what the answer took, as Pi wrote it or nothing.
fn usage(step: &Step) -> Json {
    let nothing = || {
        let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
        json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost}).into()
    };
    let own = step.about.object("usage").filter(|usage| usage.has("input"));
    own.and_then(Fields::into_json).unwrap_or_else(nothing)
}

fn block(piece: &Piece, talk: &mut Talk) -> Option<Json> {
    let of = |kind: &str| Fields::default().with("type", value(kind));
    let block = match piece {
        Piece::Text(said) => of("text").with("text", value(said.as_str())),
        Piece::Reasoning(reasoning) => {
            let block = of("thinking").with("thinking", value(reasoning.text.as_str()));
            block.with("thinkingSignature", reasoning.extra.get("thinkingSignature").cloned())
        }
        Piece::Call { name, id, input } => of("toolCall")
            .with("id", value(id.as_str()))
            .with("name", value(name.as_str()))
            .with("arguments", Some(input.clone())),
        Piece::File(file) => match data_of(file).filter(|(media, _)| media.starts_with("image/")) {
            Some((media, data)) => {
                of("image").with("data", value(data)).with("mimeType", value(media))
            }
            None => {
                talk.leave_out(kind_of(file), 1);
                return None;
            }
        },
        // They are messages of their own.
        Piece::Result { .. } => return None,
    };
    block.into_json()
}
