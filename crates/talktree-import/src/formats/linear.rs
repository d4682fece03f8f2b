//! Conversations that are a list of messages.
//!
//! Such a list is one record (`{"messages": [..]}`, maybe with `id` and `title`) or the whole file
//! (each record is a message). Ids and times may be missing. A message without an id gets one
//! derived from its number and content. So a list that has grown keeps its ids, and lists with a
//! common beginning become branches. A list without an id is found by its content (see `unnamed`), so a copy of the file
//! under another name adds nothing.

use std::collections::HashMap;

use crate::report::ImportReport;
use talktree::{Json, Message, MessageId, Part, Role};

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
    fn collect_names(&self, _fields: &Fields, _names: &mut ToolNames) {}

    /// Returns the message; its id and time are set by the caller.
    fn message(&self, fields: Fields, names: &ToolNames) -> Message;

    /// Returns the parent that the message names, if the format has one.
    fn parent(&self, _fields: &Fields) -> Option<Option<MessageId>> {
        None
    }
}

/// Reads lists of messages in one dialect.
#[derive(Default)]
pub(crate) struct Linear<D> {
    dialect: D,
    pub(super) from: Origin,
    names: ToolNames,
    /// The messages that are records of their own: one conversation.
    loose: Option<List>,
    /// How many conversations with the same opening there were.
    openings: HashMap<Vec<u64>, u64>,
}

/// A list while it is read.
struct List {
    draft: Draft,
    /// Hashes of the messages up to the first that is not an instruction.
    opening: Vec<u64>,
    is_open: bool,
}

impl List {
    fn new(line: u64) -> Self {
        Self { draft: Draft::new(session_id(""), line), opening: Vec::new(), is_open: false }
    }
}

impl<D: Dialect> Linear<D> {
    /// Adds a message to a list; `source` is where it is in a record that holds others, too.
    fn add(
        &mut self,
        list: &mut List,
        record: &Record,
        source: Option<&Json>,
        fields: Fields,
        report: &mut ImportReport,
    ) {
        let line = record.line;
        check_times(&fields, TIMES, line, report);
        self.dialect.collect_names(&fields, &mut self.names);
        let content = canonical(source.map_or(record.text.as_str(), Json::as_str));
        let fingerprint = fingerprint(&content);
        let number = list.draft.nodes.len().to_string();
        let id = match given_id(&fields) {
            Some(id) => message_id(id),
            None => derive(&[D::FORMAT.as_str(), &number, &content]).to_string().into(),
        };
        let parent = self.dialect.parent(&fields).unwrap_or_else(|| list.draft.last_id());
        if !list.is_open {
            list.opening.push(fingerprint);
            list.is_open = !matches!(fields.text("role").as_deref(), Some("system" | "developer"));
        }
        let body = match source {
            Some(source) => {
                let message = self.message_of(fields).with_id(id.clone());
                here(message, self.from.keeps_source.then_some(source))
            }
            None => Body::There(record.place()),
        };
        list.draft.nodes.push(Node::new(id, parent, line, fingerprint, body));
    }

    fn message_of(&self, fields: Fields) -> Message {
        let time = TIMES.iter().find_map(|name| fields.time(name)).unwrap_or(self.from.now);
        self.dialect.message(fields, &self.names).at(time)
    }

    /// Reads a record that is a whole conversation.
    fn conversation(
        &mut self,
        record: &Record,
        fields: Fields,
        messages: Vec<Json>,
        report: &mut ImportReport,
    ) -> Option<Draft> {
        let mut list = List::new(record.line);
        self.names.clear();
        if messages.is_empty() {
            report.records += 1;
            report.leave_out(record.line, "a conversation without messages");
        }
        for (at, json) in messages.iter().enumerate() {
            report.records += 1;
            match Fields::of(json).filter(|fields| fields.text("role").is_some()) {
                Some(message) => self.add(&mut list, record, Some(json), message, report),
                None => {
                    report.lose(record.line, format!("message {}: no object with a role", at + 1));
                }
            }
        }
        if list.draft.nodes.is_empty() {
            return None;
        }
        let mut draft = match given_id(&fields) {
            Some(id) => Draft { session: session_id(id), ..list.draft },
            None => self.unnamed_draft(list),
        };
        draft.details.name = fields.text("title").as_deref().and_then(name);
        draft.details.model = fields.text("model");
        check_times(&fields, CONVERSATION_TIMES, record.line, report);
        draft.details.created_at = CONVERSATION_TIMES.iter().find_map(|name| fields.time(name));
        let known = ["id", "title", "messages", "model", "created_at", "createdAt"];
        draft.add_metadata(fields.without(&known));
        Some(draft)
    }

    fn unnamed_draft(&mut self, list: List) -> Draft {
        let mut unnamed = Unnamed::only(D::FORMAT.as_str(), list.opening.len(), &self.from);
        let count = self.openings.entry(list.opening).or_default();
        *count += 1;
        unnamed.count = *count;
        Draft { unnamed: Some(unnamed), ..list.draft }
    }
}

/// Counts times that cannot be read.
fn check_times<const N: usize>(
    fields: &Fields,
    names: [&str; N],
    line: u64,
    report: &mut ImportReport,
) {
    report.check_times(line, &names.map(|name| (fields, name)), "the time of the import");
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
        let mut list = self.loose.take().unwrap_or_else(|| List::new(record.line));
        self.add(&mut list, record, None, entry, report);
        self.loose = Some(list);
        None
    }

    fn close(&mut self, _: &mut ImportReport) -> Option<Draft> {
        let list = self.loose.take()?;
        Some(self.unnamed_draft(list))
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
