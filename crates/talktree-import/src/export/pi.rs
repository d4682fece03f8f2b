//! Exports a path as a session of the Pi coding agent, version 3.

use std::io::Write;

use serde_json::{Value, json};
use talktree::{Json, Path, Result};

use super::output_error;
use super::steps::{
    Kind, LeftOut, Piece, Step, Talk, blocks_of, data_of, iso, kind_of, list, text_of,
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
    path.export(output, |path, output| {
        let mut talk = Talk::read(path)?;
        let steps = std::mem::take(&mut talk.steps);
        let time = steps.first().map(|step| iso(step.time)).unwrap_or_default();
        let header = json!({
            "type": "session", "version": 3, "id": talk.session, "timestamp": time, "cwd": talk.folder(),
        });
        let mut lines = Lines { parent: None, written: vec![header.into()] };
        for step in &steps {
            lines.add(step, &mut talk);
        }
        if let Some(title) = talk.title() {
            let entry = Fields::default().with("name", Some(Value::from(title)));
            lines.write("session_info", "title", &time, entry);
        }
        for line in &lines.written {
            writeln!(output, "{line}").map_err(output_error)?;
        }
        Ok(talk.left_out)
    })
}

struct Lines {
    parent: Option<String>,
    written: Vec<Json>,
}

impl Lines {
    fn write(&mut self, kind: &str, id: &str, time: &str, entry: Fields) {
        let parent = self.parent.as_deref().map_or(Value::Null, Value::from);
        let entry = entry
            .with("type", Some(Value::from(kind)))
            .with("id", Some(Value::from(id)))
            .with("parentId", Some(parent))
            .with("timestamp", Some(Value::from(time)));
        self.written.extend(entry.into_json());
        self.parent = Some(id.to_owned());
    }

    fn add(&mut self, step: &Step, talk: &mut Talk) {
        let time = iso(step.time);
        let text = |text: &str| Some(Value::from(text));
        if step.kind == Kind::Results {
            for (at, piece) in step.pieces.iter().enumerate() {
                let id = if at == 0 { step.id.clone() } else { format!("{}-{at}", step.id) };
                self.result(step, &id, piece);
            }
            return;
        }
        let content: Vec<Json> =
            step.pieces.iter().filter_map(|piece| block(piece, talk)).collect();
        if content.is_empty() {
            return;
        }
        let said = step.pieces.iter().find_map(Piece::as_text).unwrap_or_default();
        let content = list(&content);
        match step.kind {
            Kind::Summary => {
                let id = step.id.strip_prefix("compaction_").unwrap_or(&step.id);
                // It keeps nothing of what is before it.
                let entry = Fields::default()
                    .with("summary", text(said))
                    .with("firstKeptEntryId", text(id))
                    .with("tokensBefore", Some(Value::from(0)));
                self.write("compaction", id, &time, entry);
            }
            Kind::System => {
                let entry = Fields::default()
                    .with("customType", text("system"))
                    .with("content", Some(content))
                    .with("display", Some(Value::from(false)));
                self.write("custom_message", &step.id, &time, entry);
            }
            Kind::Model => {
                let is_call = step.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
                let message = message("assistant", step, content)
                    .with("api", text("unknown"))
                    .with(
                        "provider",
                        text(&step.about.text("provider").unwrap_or_else(|| "unknown".to_owned())),
                    )
                    .with("model", text(&talk.model(step)))
                    .with("usage", Some(usage(step)))
                    .with("stopReason", text(if is_call { "toolUse" } else { "stop" }));
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
        let content = match blocks_of(output) {
            Some(blocks) => list(&blocks),
            None => json!([{"type": "text", "text": text_of(output)}]).into(),
        };
        let message = message("toolResult", step, content)
            .with("toolCallId", Some(Value::from(call.as_str())))
            .with("toolName", Some(Value::from(name.as_str())))
            .with("isError", Some(Value::from(*is_error)));
        self.message(step, id, message);
    }
}

fn message(role: &str, step: &Step, content: Json) -> Fields {
    Fields::default()
        .with("role", Some(Value::from(role)))
        .with("content", Some(content))
        .with("timestamp", Some(Value::from(step.time.timestamp_millis())))
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
    let text = |text: &str| Some(Value::from(text));
    let of = |kind: &str| Fields::default().with("type", text(kind));
    let block = match piece {
        Piece::Text(said) => of("text").with("text", text(said)),
        Piece::Reasoning(reasoning) => {
            let block = of("thinking").with("thinking", text(&reasoning.text));
            block.with("thinkingSignature", reasoning.extra.get("thinkingSignature").cloned())
        }
        Piece::Call { name, id, input } => of("toolCall")
            .with("id", text(id))
            .with("name", text(name))
            .with("arguments", Some(input.clone())),
        Piece::File(file) => match data_of(file).filter(|(media, _)| media.starts_with("image/")) {
            Some((media, data)) => {
                of("image").with("data", text(data)).with("mimeType", text(media))
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
