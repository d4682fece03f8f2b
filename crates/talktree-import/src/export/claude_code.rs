//! Exports a path as a transcript of Claude Code, which `claude --resume` goes on with.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};
use talktree::{File, Json, Path, Result};

use super::output_error;
use super::steps::{
    Kind, LeftOut, Piece, Step, Talk, blocks_of, data_of, iso, kind_of, list, text_of, uuid_of,
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
    path.export(output, |path, output| {
        let mut talk = Talk::read(path)?;
        let mut lines = Lines::new(&talk);
        for step in std::mem::take(&mut talk.steps) {
            lines.add(&step, &mut talk);
        }
        if let Some(title) = talk.title() {
            let session = &lines.session;
            lines.written.push(
                json!({"type": "custom-title", "customTitle": title, "sessionId": session}).into(),
            );
        }
        for line in &lines.written {
            writeln!(output, "{line}").map_err(output_error)?;
        }
        Ok(talk.left_out)
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

/// A block of content in the shape of Anthropic's API.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a Json,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Json,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Json,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Lines {
    fn new(talk: &Talk) -> Self {
        Self {
            session: session_of_claude_code(&talk.session),
            folder: talk.folder(),
            version: talk.about.text("version").unwrap_or_else(|| VERSION.to_owned()),
            branch: talk.about.text("gitBranch"),
            is_own: talk
                .info
                .as_ref()
                .is_some_and(|info| info.source.as_deref() == Some("claude-code")),
            parent: None,
            written: Vec::new(),
        }
    }

    fn add(&mut self, step: &Step, talk: &mut Talk) {
        let uuid = uuid_of("entry", step.id.strip_prefix("compaction_").unwrap_or(&step.id));
        let blocks: Vec<Json> = step.pieces.iter().filter_map(|piece| block(piece, talk)).collect();
        if blocks.is_empty() {
            return;
        }
        let text = match &step.pieces[..] {
            [Piece::Text(text)] => Some(text.as_str()),
            _ => None,
        };
        let content = match text {
            Some(text) => Value::from(text).into(),
            None => list(&blocks),
        };
        let user = |content| {
            Fields::default().with("role", Some(Value::from("user"))).with("content", Some(content))
        };
        let entry = self.entry(step, &uuid);
        match step.kind {
            Kind::Model => {
                let inner = self.inner(step, talk, &blocks);
                self.write("assistant", &uuid, entry, inner);
            }
            Kind::Summary => {
                self.boundary(step, &uuid);
                let entry = entry.with("isCompactSummary", Some(Value::from(true)));
                self.write("user", &uuid, entry, user(content));
            }
            Kind::System => {
                let entry = entry.without(&["isMeta"]).with("isMeta", Some(Value::from(true)));
                self.write("user", &uuid, entry, user(content));
            }
            Kind::User | Kind::Results => self.write("user", &uuid, entry, user(content)),
        }
    }

    /// Returns the fields of an entry, but not its type and its message.
    fn entry(&self, step: &Step, uuid: &str) -> Fields {
        let text = |text: &str| Some(Value::from(text));
        let own = if self.is_own { step.about.clone().without(&OWN) } else { Fields::default() };
        let fields = Fields::default()
            .with("uuid", text(uuid))
            .with("parentUuid", Some(self.parent.as_deref().map_or(Value::Null, Value::from)))
            .with("isSidechain", Some(Value::from(false)))
            .with("userType", text("external"))
            .with("cwd", text(&self.folder))
            .with("sessionId", text(&self.session))
            .with("version", text(&self.version))
            .with("gitBranch", self.branch.as_deref().map(Value::from))
            .with("timestamp", text(&iso(step.time)));
        own.into_pairs()
            .into_iter()
            .fold(fields, |fields, (name, value)| fields.with(&name, Some(value)))
    }

    /// Returns the message of an answer.
    fn inner(&self, step: &Step, talk: &Talk, blocks: &[Json]) -> Fields {
        let own = step.about.object("message").filter(|_| self.is_own);
        let own = own.unwrap_or_else(|| {
            let is_call = step.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
            let stop = if is_call { "tool_use" } else { "end_turn" };
            Fields::default()
                .with("id", Some(Value::from(format!("msg_{}", step.id))))
                .with("model", Some(Value::from(talk.model(step))))
                .with("stop_reason", Some(Value::from(stop)))
                .with("usage", Some(json!({"input_tokens": 0, "output_tokens": 0})))
        });
        own.with("type", Some(Value::from("message")))
            .with("role", Some(Value::from("assistant")))
            .with("content", Some(list(blocks)))
    }

    /// Writes the line before a summary. It has no parent: the summary begins a new chain.
    fn boundary(&mut self, step: &Step, summary: &str) {
        let before = self.parent.take();
        let uuid = derive(&["boundary", summary]).to_string();
        let entry = self
            .entry(step, &uuid)
            .with("type", Some(Value::from("system")))
            .with("subtype", Some(Value::from("compact_boundary")))
            .with("logicalParentUuid", before.map(Value::from))
            .with("content", Some(Value::from("Conversation compacted")))
            .with("compactMetadata", Some(json!({"trigger": "manual", "preTokens": 0})));
        self.written.extend(entry.into_json());
        self.parent = Some(uuid);
    }

    fn write(&mut self, kind: &str, uuid: &str, entry: Fields, inner: Fields) {
        // After a boundary the parent is another one.
        let parent = self.parent.as_deref().map_or(Value::Null, Value::from);
        let entry = entry.without(&["parentUuid"]).with("parentUuid", Some(parent));
        let entry = entry.with("type", Some(Value::from(kind))).with("message", inner.into_json());
        self.written.extend(entry.into_json());
        self.parent = Some(uuid.to_owned());
    }
}

fn block(piece: &Piece, talk: &mut Talk) -> Option<Json> {
    let empty = || Json::from(json!({}));
    let object;
    let block = match piece {
        Piece::Text(text) => Block::Text { text },
        Piece::Reasoning(reasoning) => match reasoning.extra.get("signature") {
            Some(signature) => Block::Thinking { thinking: &reasoning.text, signature },
            None => {
                talk.leave_out("reasoning without a signature", 1);
                return None;
            }
        },
        Piece::File(file) => match file_block(file) {
            Some(block) => block,
            None => {
                talk.leave_out(kind_of(file), 1);
                return None;
            }
        },
        Piece::Call { name, id, input } => {
            let is_object = Fields::of(input).is_some();
            object = if is_object {
                input.clone()
            } else {
                Fields::default()
                    .with("input", Some(input.clone()))
                    .into_json()
                    .unwrap_or_else(empty)
            };
            Block::ToolUse { id, name, input: &object }
        }
        Piece::Result { id, output, is_error, .. } => {
            let content = match blocks_of(output) {
                Some(blocks) => list(&blocks),
                None => Value::from(text_of(output)).into(),
            };
            Block::ToolResult { tool_use_id: id, content, is_error: *is_error }
        }
    };
    Json::parse(&serde_json::to_string(&block).ok()?).ok()
}

fn file_block(file: &File) -> Option<Block<'_>> {
    let (media_type, data) = data_of(file)?;
    let source = Source { r#type: "base64", media_type, data };
    match media_type {
        "application/pdf" => Some(Block::Document { source }),
        media if media.starts_with("image/") => Some(Block::Image { source }),
        _ => None,
    }
}
