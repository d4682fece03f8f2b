//! Conversations that are a list of messages.
//!
//! Such a list is one record (`{"messages": [..]}`, maybe with `id` and `title`) or the whole file
//! (each record is a message). Ids and times may be missing. A message without an id gets one
//! derived from its number and content. So a list that has grown keeps its ids, and lists with a
//! common beginning become branches. A list without an id is found by its content (see `unnamed`), so a copy of the file
//! under another name adds nothing.

use std::collections::HashMap;

use crate::report::ImportReport;
use talktree::{Json, Message, MessageId, Part, Role, SessionId};

use super::Format;
use super::blocks::ToolNames;
use super::chain::here;
use crate::draft::{
    Body, Draft, Node, Origin, Reader, Unnamed, canonical, derive, fingerprint, message_id, name,
    session_id,
};
use crate::fields::Fields;
use crate::records::Record;

/// The fields that a message may have its time in.
const TIMES: [&str; 4] = ["created_at", "createdAt", "create_time", "timestamp"];

/// The fields that a conversation may have its time in.
const CONVERSATION_TIMES: [&str; 2] = ["created_at", "createdAt"];

/// How one format represents a message.
pub(crate) trait Dialect: Default {
    const FORMAT: Format;

    /// Records what later messages refer to.
    fn collect_names(&self, fields: &Fields, names: &mut ToolNames);

    /// Returns the message; its id and time are set by the caller.
    fn message(&self, fields: Fields, names: &ToolNames) -> Message;

    /// Returns the parent that the message names, if the format has one.
    fn parent(&self, fields: &Fields) -> Option<Option<MessageId>>;
}

/// Reads lists of messages in one dialect.
#[derive(Default)]
pub(crate) struct Linear<D> {
    dialect: D,
    from: Origin,
    names: ToolNames,
    /// The messages that are records of their own: one conversation.
    loose: List,
    /// How many conversations with the same opening there were.
    openings: HashMap<Vec<u64>, u64>,
}

/// A list while it is read.
#[derive(Default)]
struct List {
    nodes: Vec<Node>,
    line: u64,
    /// Hashes of the messages up to the first that is not an instruction.
    opening: Vec<u64>,
    is_open: bool,
}

impl<D: Dialect> Linear<D> {
    pub(crate) fn new(from: Origin) -> Self {
        Self { from, ..Self::default() }
    }

    fn node(&self, list: &mut List, line: u64, json: &str, fields: &Fields, body: Body) -> Node {
        let content = canonical(json);
        let fingerprint = fingerprint(&content);
        let number = list.nodes.len().to_string();
        let id = match given_id(fields) {
            Some(id) => message_id(id),
            None => derive(&[D::FORMAT.as_str(), &number, &content]).to_string().into(),
        };
        let before = list.nodes.last().map(|node| node.id.clone());
        let parent = self.dialect.parent(fields).unwrap_or(before);
        if !list.is_open {
            list.opening.push(fingerprint);
            list.is_open = !matches!(fields.text("role").as_deref(), Some("system" | "developer"));
        }
        Node::new(id, parent, line, fingerprint, body)
    }

    fn message_of(&self, fields: Fields) -> Message {
        let time = TIMES.iter().find_map(|name| fields.time(name)).unwrap_or(self.from.now);
        self.dialect.message(fields, &self.names).at(time)
    }

    /// Returns what identifies a conversation that has no id.
    fn unnamed(&mut self, list: &List) -> Unnamed {
        let count = self.openings.entry(list.opening.clone()).or_default();
        *count += 1;
        Unnamed {
            format: D::FORMAT.as_str(),
            count: *count,
            opening: list.opening.len(),
            file: self.from.named_file(),
        }
    }

    /// Reads a record that is a whole conversation.
    fn conversation(
        &mut self,
        record: &Record,
        fields: Fields,
        messages: Vec<Json>,
        report: &mut ImportReport,
    ) -> Option<Draft> {
        let mut list = List { line: record.line, ..List::default() };
        self.names.clear();
        if messages.is_empty() {
            report.records += 1;
            report.leave_out(record.line, "a conversation without messages");
        }
        for (at, json) in messages.iter().enumerate() {
            report.records += 1;
            let message = Fields::of(json).filter(|fields| fields.text("role").is_some());
            let Some(message) = message else {
                report.lose(record.line, format!("message {}: no object with a role", at + 1));
                continue;
            };
            report.check_times(
                record.line,
                &TIMES.map(|name| (&message, name)),
                "the time of the import",
            );
            self.dialect.collect_names(&message, &mut self.names);
            let body = Body::Here(Box::new(Message::new("", Vec::new())));
            let mut node = self.node(&mut list, record.line, json.as_str(), &message, body);
            let message = self.message_of(message).with_id(node.id.clone());
            node.body = here(message, Some(json).filter(|_| self.from.keeps_source));
            list.nodes.push(node);
        }
        if list.nodes.is_empty() {
            return None;
        }
        let mut draft = match given_id(&fields) {
            Some(id) => self.draft(session_id(id), list),
            None => self.unnamed_draft(list),
        };
        draft.details.name = fields.text("title").as_deref().and_then(name);
        draft.details.model = fields.text("model");
        report.check_times(
            record.line,
            &CONVERSATION_TIMES.map(|name| (&fields, name)),
            "the time of the import",
        );
        draft.details.created_at = CONVERSATION_TIMES.iter().find_map(|name| fields.time(name));
        let known = ["id", "title", "messages", "model", "created_at", "createdAt"];
        draft.add_metadata(fields.without(&known).into_pairs());
        Some(draft)
    }

    fn unnamed_draft(&mut self, list: List) -> Draft {
        let unnamed = Some(self.unnamed(&list));
        Draft { unnamed, ..self.draft(session_id(""), list) }
    }

    fn draft(&self, session: SessionId, list: List) -> Draft {
        let mut draft = Draft::new(session, list.line);
        draft.nodes = list.nodes;
        draft
    }
}

impl<D: Dialect> Reader for Linear<D> {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        if let Some(messages) = entry.list("messages") {
            return self.conversation(record, entry, messages, report);
        }
        report.records += 1;
        if entry.text("role").is_none() {
            report.lose(record.line, "neither a message with a role nor a list of messages");
            return None;
        }
        report.check_times(
            record.line,
            &TIMES.map(|name| (&entry, name)),
            "the time of the import",
        );
        self.dialect.collect_names(&entry, &mut self.names);
        let mut list = std::mem::take(&mut self.loose);
        if list.nodes.is_empty() {
            list.line = record.line;
        }
        let body = Body::there(record);
        let node = self.node(&mut list, record.line, &record.text, &entry, body);
        list.nodes.push(node);
        self.loose = list;
        None
    }

    fn finish(&mut self, _: &mut ImportReport) -> Vec<Draft> {
        let list = std::mem::take(&mut self.loose);
        if list.nodes.is_empty() {
            return Vec::new();
        }
        vec![self.unnamed_draft(list)]
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        Some(self.message_of(fields))
    }
}

/// Returns the id of a record, given as text or as a number.
fn given_id(fields: &Fields) -> Option<String> {
    let id = fields.get("id")?;
    let number = || id.as_str().parse::<i64>().ok().map(|number| number.to_string());
    fields.id("id").filter(|id| !id.is_empty()).or_else(number)
}

/// Returns a message with the rest of its fields as metadata.
pub(crate) fn message(role: impl Into<Role>, parts: Vec<Part>, rest: Fields) -> Message {
    let mut message = Message::new(role, parts);
    message.metadata = rest.into_json();
    message
}
