//! A path as the steps that coding agents write down: what a person says, what the model answers and calls, what the tools return.
//!
//! A message may hold a call and its result, and text after that. An agent's log has one entry for each of these, so a message
//! becomes one step or several, in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::io::Write;

use chrono::{DateTime, Utc};
use serde_json::Value;
use talktree::{
    CompactionId, File, Json, Message, MessageId, Part, Path, Reasoning, Result, Role, SessionInfo,
};

use super::output_error;
use crate::draft::derive;
use crate::fields::{self, Fields};

/// What a format has no place for: how often, by kind.
///
/// ```
/// use talktree::{Message, Part, Store};
/// use talktree_import::export::export_codex;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("Look!").with_part(Part::file("audio/wav", "https://example.org/a.wav")))?;
/// let left_out = export_codex(&chat.path(), &mut Vec::new())?;
/// assert_eq!(left_out["files of audio/wav"], 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub type LeftOut = BTreeMap<String, u64>;

/// Messages by the one that is shown after them.
type Thoughts = HashMap<MessageId, Vec<Message>>;

/// What is written of a session.
pub(super) struct Talk {
    pub(super) session: String,
    pub(super) info: Option<SessionInfo>,
    /// The fields of the session's metadata.
    pub(super) about: Fields,
    pub(super) steps: Vec<Step>,
    pub(super) left_out: LeftOut,
}

pub(super) struct Step {
    pub(super) id: String,
    pub(super) time: DateTime<Utc>,
    pub(super) kind: Kind,
    pub(super) pieces: Vec<Piece>,
    /// The fields of the message's metadata.
    pub(super) about: Fields,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    System,
    Model,
    Results,
    /// What replaces all steps before it.
    Summary,
}

pub(super) enum Piece {
    Text(String),
    Reasoning(Reasoning),
    File(File),
    Call { name: String, id: String, input: Json },
    Result { name: String, id: String, output: Json, is_error: bool },
}

impl Step {
    pub(super) fn has_call(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }))
    }

    /// Returns the blocks that the pieces become, as one list; `None` if there are none.
    pub(super) fn blocks(&self, block: impl FnMut(&Piece) -> Option<Json>) -> Option<Json> {
        let blocks: Vec<Json> = self.pieces.iter().filter_map(block).collect();
        (!blocks.is_empty()).then(|| list(&blocks))
    }
}

/// Writes the lines that a path becomes; returns what they have no place for.
pub(super) fn write_lines<L: Display>(
    path: &Path,
    output: &mut impl Write,
    lines: impl FnOnce(&mut Talk) -> Vec<L>,
) -> Result<LeftOut> {
    path.export(output, |path, output| {
        let mut talk = Talk::read(path)?;
        for line in lines(&mut talk) {
            writeln!(output, "{line}").map_err(output_error)?;
        }
        Ok(talk.left_out)
    })
}

impl Talk {
    /// Reads a path: with the messages that a summary at its beginning replaces, and without hidden ones.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let session = path.session();
        let info = session.info()?;
        let metadata = info.as_ref().and_then(|info| info.metadata.as_ref());
        let about = metadata.and_then(Fields::of).unwrap_or_default();
        let id = session.id().to_string();
        let mut talk =
            Self { session: id, info, about, steps: Vec::new(), left_out: LeftOut::new() };
        let mut shown = path.history()?;
        shown.retain(|message| !is_closed(message));
        if let Some(first) = shown.first()
            && let Some(compaction) = CompactionId::from_message(&first.id)
        {
            let last = session.compaction(&compaction)?.last;
            talk.add_all(session.at(&last).raw_history()?);
        }
        let elsewhere = talk.info.as_ref().map_or(0, |info| info.messages);
        let elsewhere = elsewhere.saturating_sub(path.clone().raw().path_length()?);
        talk.leave_out("messages on other branches", elsewhere);
        let is_resumed = !talk.steps.is_empty();
        let (mut thoughts, at_end) = closed_thoughts(path, &shown)?;
        for (at, message) in shown.into_iter().enumerate() {
            match at == 0 && is_resumed {
                true => talk.steps.push(Step {
                    id: message.id.to_string(),
                    time: message.created_at,
                    kind: Kind::Summary,
                    pieces: vec![Piece::Text(message.text())],
                    about: Fields::default(),
                }),
                false => {
                    talk.add_all(thoughts.remove(&message.id).unwrap_or_default());
                    talk.add(&message);
                }
            }
        }
        talk.add_all(at_end);
        Ok(talk)
    }

    pub(super) fn leave_out(&mut self, kind: impl Into<String>, count: u64) {
        if count > 0 {
            *self.left_out.entry(kind.into()).or_default() += count;
        }
    }

    /// Returns the program that the session came from.
    pub(super) fn source(&self) -> Option<&str> {
        self.info.as_ref()?.source.as_deref()
    }

    /// Returns the name of the session.
    pub(super) fn title(&self) -> Option<&str> {
        self.info.as_ref()?.name.as_deref()
    }

    /// Returns the folder in which the tool worked.
    pub(super) fn folder(&self) -> String {
        self.about.text("cwd").unwrap_or_else(|| "/".to_owned())
    }

    /// Returns the model of a step.
    pub(super) fn model(&self, step: &Step) -> String {
        let inner = step.about.inner("message").text("model");
        let model = inner.or_else(|| step.about.text("model"));
        model.or_else(|| self.info.as_ref()?.model.clone()).unwrap_or_else(|| "unknown".to_owned())
    }

    fn add_all(&mut self, messages: Vec<Message>) {
        messages.iter().for_each(|message| self.add(message));
    }

    fn add(&mut self, message: &Message) {
        if message.is_hidden && !is_closed(message) {
            return self.leave_out("hidden messages", 1);
        }
        let metadata = message.metadata.as_ref().and_then(Fields::of).unwrap_or_default();
        let mut cut =
            Cut { talk: self, message, metadata, count: 0, said: Vec::new(), results: Vec::new() };
        for part in &message.parts {
            cut.take(part.typed().as_ref());
        }
        cut.end();
    }
}

/// Returns whether a message is reasoning that only its provider can read. It is hidden because it shows nothing.
fn is_closed(message: &Message) -> bool {
    let is_blank = |part: &Part| match part.typed().as_ref() {
        Part::Reasoning(reasoning) => reasoning.text.is_empty(),
        _ => false,
    };
    message.is_hidden && !message.parts.is_empty() && message.parts.iter().all(is_blank)
}

/// Returns such reasoning on a path that no summary replaces, by the message that is shown after it, and that at the end.
fn closed_thoughts(path: &Path, shown: &[Message]) -> Result<(Thoughts, Vec<Message>)> {
    let mut replaced = HashSet::new();
    for summary in shown.iter().filter_map(|message| CompactionId::from_message(&message.id)) {
        replaced.insert(path.session().compaction(&summary)?.last);
    }
    let (mut thoughts, mut waiting) = (Thoughts::new(), Vec::new());
    for message in path.clone().raw().history()? {
        if replaced.contains(&message.id) {
            waiting.clear();
        } else if is_closed(&message) {
            waiting.push(message);
        } else if !message.is_hidden && !waiting.is_empty() {
            thoughts.insert(message.id, std::mem::take(&mut waiting));
        }
    }
    Ok((thoughts, waiting))
}

/// Cuts a message into steps.
struct Cut<'a> {
    talk: &'a mut Talk,
    message: &'a Message,
    metadata: Fields,
    count: usize,
    said: Vec<Piece>,
    results: Vec<Piece>,
}

impl Cut<'_> {
    fn take(&mut self, part: &Part) {
        match part {
            Part::Text(text) => self.say(Piece::Text(text.text.clone())),
            Part::Reasoning(reasoning) => self.say(Piece::Reasoning(reasoning.clone())),
            Part::File(file) => self.say(Piece::File(file.clone())),
            Part::Tool(tool) => {
                let (name, id) = (tool.name.clone(), tool.call_id.clone());
                if let Some(input) = tool.input.clone() {
                    self.said.push(Piece::Call { name: name.clone(), id: id.clone(), input });
                }
                let error = tool.error_text.as_deref().map(|text| Value::from(text).into());
                let is_error = error.is_some();
                if let Some(output) = error.or_else(|| tool.output.clone()) {
                    self.results.push(Piece::Result { name, id, output, is_error });
                }
            }
            other => match &*other.kind() {
                "step-start" => self.end(),
                kind => self.talk.leave_out(format!("parts of the type {kind}"), 1),
            },
        }
    }

    /// Adds what is said; after the results of calls it is another step.
    fn say(&mut self, piece: Piece) {
        if !self.results.is_empty() {
            self.end();
        }
        self.said.push(piece);
    }

    fn end(&mut self) {
        let kind = match &self.message.role {
            Role::Assistant => Kind::Model,
            Role::System => Kind::System,
            Role::Other(role) if &**role == "developer" => Kind::System,
            _ => Kind::User,
        };
        for (kind, pieces) in [
            (kind, std::mem::take(&mut self.said)),
            (Kind::Results, std::mem::take(&mut self.results)),
        ] {
            if pieces.is_empty() {
                continue;
            }
            let given = self.message.id.to_string();
            let (id, about) = match self.count {
                0 => (given, std::mem::take(&mut self.metadata)),
                count => {
                    let id = derive(&["step", &given, &count.to_string()]).to_string();
                    (id, Fields::default())
                }
            };
            self.count += 1;
            let mut step = Step { id, time: self.message.created_at, kind, pieces, about };
            // A call is of the model, whoever has it in a message.
            if step.has_call() {
                step.kind = Kind::Model;
            }
            self.talk.steps.push(step);
        }
    }
}

impl Piece {
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Returns a value of a field.
pub(super) fn value(value: impl Into<Value>) -> Option<Value> {
    Some(value.into())
}

/// Returns the blocks as one list.
fn list(blocks: &[Json]) -> Json {
    let text = serde_json::to_string(blocks).ok();
    let list = text.and_then(|text| Json::parse(&text).ok());
    list.unwrap_or_else(|| Value::Array(Vec::new()).into())
}

/// Returns the media type and the base64 of a file that is data.
pub(super) fn data_of(file: &File) -> Option<(&str, &str)> {
    file.url.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns the kind under which a file is left out.
pub(super) fn kind_of(file: &File) -> String {
    format!("files of {}", file.media_type)
}

/// Returns an output as text.
pub(super) fn text_of(output: &Json) -> String {
    fields::text(output).unwrap_or_else(|| output.to_string())
}

/// Returns an output that is a list of texts and images.
pub(super) fn list_of(output: &Json) -> Option<Json> {
    let blocks = fields::list(output).filter(|blocks| !blocks.is_empty())?;
    let is_block = |block: &Json| {
        let kind = Fields::of(block).and_then(|block| block.text("type"));
        matches!(kind.as_deref(), Some("text" | "image"))
    };
    blocks.iter().all(is_block).then(|| list(&blocks))
}

/// Returns the id, if it is a UUID; else one that is made from it.
pub(super) fn uuid_of(kind: &str, id: &str) -> String {
    match uuid::Uuid::try_parse(id) {
        Ok(_) => id.to_owned(),
        Err(_) => derive(&[kind, id]).to_string(),
    }
}

/// Returns a time as JavaScript writes it.
pub(super) fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
