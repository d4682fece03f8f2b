//! Exports a path as a transcript of Claude Code, which `claude --resume` goes on with.

use std::io::Write;

use serde_json::{Value, json};
use talktree::{Json, Path, Result};

use super::steps::{
    Kind, LeftOut, Piece, Step, Talk, data_of, iso, kind_of, list_of, text_of, uuid_of, value,
    write_lines,
};
use crate::draft::derive;
use crate::fields::Fields;

/// The version that entries name if their session does not say which one wrote it.
const VERSION: &str = "2.1.0";

/// Fields of an entry that are written in any case.
const OWN: [&str; 11] = [
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "message",
    "cwd",
    "version",
    "isSidechain",
    "source",
    "missing_parent",
];

/// Writes a path as JSON lines of Claude Code; returns what they have no place for.
///
/// A summary at the beginning of the path is a compaction, after the messages that it replaces. A system message is a note in the
/// user's name that only the model sees. Reasoning that the provider has not signed is left out. Ids that are UUIDs stay. Put the file
/// where [`session_of_claude_code`] says.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_claude_code;
///
/// let chat = Store::open_in_memory()?.session("3e1b2c4d-0000-4000-8000-000000000001")?;
/// chat.append(Message::user("List the files."))?;
/// let mut lines = Vec::new();
/// assert!(export_claude_code(&chat.path(), &mut lines)?.is_empty());
/// let entry: serde_json::Value = serde_json::from_slice(&lines).unwrap();
/// assert_eq!(entry["message"]["content"], "List the files.");
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownMessage`](talktree::Error::UnknownMessage) if the leaf is not in this session; as [`Path::export`].
pub fn export_claude_code(path: &Path, output: &mut impl Write) -> Result<LeftOut> {
    write_lines(path, output, |talk| {
        let mut lines = Lines::new(talk);
        for step in std::mem::take(&mut talk.steps) {
            lines.add(&step, talk);
        }
        if let Some(title) = talk.title() {
            let session = &lines.session;
            let title = json!({"type": "custom-title", "customTitle": title, "sessionId": session});
            lines.written.push(title.into());
        }
        lines.written
    })
}

/// Returns the id that Claude Code knows a session by: its own, if that is a UUID.
///
/// The file is `<id>.jsonl` below `~/.claude/projects`, in the folder that is named after the one in which the tool works.
///
/// ```
/// use talktree_import::export::session_of_claude_code;
///
/// let id = "3e1b2c4d-0000-4000-8000-000000000001";
/// assert_eq!(session_of_claude_code(id), id);
/// assert_eq!(session_of_claude_code("telegram:4711").len(), id.len());
/// ```
#[must_use]
pub fn session_of_claude_code(id: &str) -> String {
    uuid_of("claude-code", id)
}

struct Lines {
    session: String,
    folder: String,
    version: String,
    branch: Option<String>,
    /// Whether the session came from Claude Code: then its metadata are fields of entries.
    is_own: bool,
    parent: Option<String>,
    written: Vec<Json>,
}

impl Lines {
    fn new(talk: &Talk) -> Self {
        Self {
            session: session_of_claude_code(&talk.session),
            folder: talk.folder(),
            version: talk.about.text("version").unwrap_or_else(|| VERSION.to_owned()),
            branch: talk.about.text("gitBranch"),
            is_own: talk.source() == Some("claude-code"),
            parent: None,
            written: Vec::new(),
        }
    }

    fn add(&mut self, step: &Step, talk: &mut Talk) {
        let uuid = uuid_of("entry", step.id.strip_prefix("compaction_").unwrap_or(&step.id));
        let Some(blocks) = step.blocks(|piece| block(piece, talk)) else { return };
        let user = Fields::default().with("role", value("user"));
        let blocks = Some(blocks);
        let mut entry = self.entry(step, &uuid);
        match step.kind {
            Kind::Summary => {
                self.boundary(step, &uuid);
                entry = entry.with("isCompactSummary", value(true));
            }
            Kind::System => entry = entry.without(&["isMeta"]).with("isMeta", value(true)),
            _ => {}
        }
        let (kind, inner) = match (step.kind, &step.pieces[..]) {
            (Kind::Model, _) => ("assistant", self.inner(step, talk).with("content", blocks)),
            (_, [Piece::Text(text)]) => ("user", user.with("content", value(text.as_str()))),
            _ => ("user", user.with("content", blocks)),
        };
        // After a boundary the parent is another one.
        let entry = entry.without(&["parentUuid"]).with("parentUuid", value(self.parent.clone()));
        let entry = entry.with("type", value(kind)).with("message", inner.into_json());
        self.written.extend(entry.into_json());
        self.parent = Some(uuid);
    }

    /// Returns the fields of an entry, but not its type and its message.
    fn entry(&self, step: &Step, uuid: &str) -> Fields {
        let fields = Fields::default()
            .with("uuid", value(uuid))
            .with("parentUuid", value(self.parent.clone()))
            .with("isSidechain", value(false))
            .with("userType", value("external"))
            .with("cwd", value(self.folder.as_str()))
            .with("sessionId", value(self.session.as_str()))
            .with("version", value(self.version.as_str()))
            .with("gitBranch", self.branch.as_deref().map(Value::from))
            .with("timestamp", value(iso(step.time)));
        let own = if self.is_own { step.about.except(&OWN) } else { Fields::default() };
        fields.into_iter().chain(own).collect()
    }

    /// Returns the message of an answer, without its content.
    fn inner(&self, step: &Step, talk: &Talk) -> Fields {
        let own = step.about.object("message").filter(|_| self.is_own);
        let own = own.unwrap_or_else(|| {
            let stop = if step.has_call() { "tool_use" } else { "end_turn" };
            Fields::default()
                .with("id", value(format!("msg_{}", step.id)))
                .with("model", value(talk.model(step)))
                .with("stop_reason", value(stop))
                .with("usage", Some(json!({"input_tokens": 0, "output_tokens": 0})))
        });
        own.with("type", value("message")).with("role", value("assistant"))
    }

    /// Writes the line before a summary. It has no parent: the summary begins a new chain.
    fn boundary(&mut self, step: &Step, summary: &str) {
        let before = self.parent.take();
        let uuid = derive(&["boundary", summary]).to_string();
        let entry = self
            .entry(step, &uuid)
            .with("type", value("system"))
            .with("subtype", value("compact_boundary"))
            .with("logicalParentUuid", before.map(Value::from))
            .with("content", value("Conversation compacted"))
            .with("compactMetadata", Some(json!({"trigger": "manual", "preTokens": 0})));
        self.written.extend(entry.into_json());
        self.parent = Some(uuid);
    }
}

/// Returns a block of content in the shape of Anthropic's API.
fn block(piece: &Piece, talk: &mut Talk) -> Option<Json> {
    let of = |kind: &str| Fields::default().with("type", value(kind));
    let block = match piece {
        Piece::Text(text) => of("text").with("text", value(text.as_str())),
        Piece::Reasoning(reasoning) => {
            let Some(signature) = reasoning.extra.get("signature") else {
                talk.leave_out("reasoning without a signature", 1);
                return None;
            };
            let block = of("thinking").with("thinking", value(reasoning.text.as_str()));
            block.with("signature", Some(signature.clone()))
        }
        Piece::File(file) => {
            let (kind, media, data) = match data_of(file) {
                Some((media @ "application/pdf", data)) => ("document", media, data),
                Some((media, data)) if media.starts_with("image/") => ("image", media, data),
                _ => {
                    talk.leave_out(kind_of(file), 1);
                    return None;
                }
            };
            let source = json!({"type": "base64", "media_type": media, "data": data});
            of(kind).with("source", Some(source))
        }
        Piece::Call { name, id, input } => {
            let object = match Fields::of(input) {
                Some(_) => Some(input.clone()),
                None => Fields::default().with("input", Some(input.clone())).into_json(),
            };
            let block = of("tool_use").with("id", value(id.as_str()));
            block.with("name", value(name.as_str())).with("input", object)
        }
        Piece::Result { id, output, is_error, .. } => {
            let content = list_of(output).unwrap_or_else(|| Value::from(text_of(output)).into());
            of("tool_result")
                .with("tool_use_id", value(id.as_str()))
                .with("content", Some(content))
                .with("is_error", value(true).filter(|_| *is_error))
        }
    };
    block.into_json()
}
