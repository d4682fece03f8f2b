//! Tasks of Cline and of Roo Code: `api_conversation_history.json`, and the sessions of Cline's own program.
//!
//! The messages are those of Anthropic's API, in a line. A task has no id in its file: that is the name of its folder. In Roo
//! Code a summary replaces the messages that name it. What a task took is in other files.

use crate::report::ImportReport;
use chrono::DateTime;
use talktree::{Json, Message, MessageId, Part, Role};

use super::Format;
use super::blocks::{self, ToolNames};
use super::chain::{Chain, Contents, body, json, texts};
use super::linear;
use super::parts::hidden_if_empty;
use crate::draft::{Draft, Origin, Reader, Unnamed, message_id, session_id};
use crate::fields::Fields;
use crate::records::Record;

/// The field with the time of a message.
const TIME: &str = "ts";

/// Reads tasks of Cline and Roo Code.
#[derive(Default)]
pub(crate) struct Cline {
    pub(super) from: Origin,
    names: ToolNames,
    contents: Contents,
    chain: Option<Chain>,
    /// The summaries whose messages came before them.
    condensed: Vec<String>,
}

impl Cline {
    fn chain(&mut self, line: u64, id: Option<String>) -> &mut Chain {
        let id = id.or_else(|| task_of(&self.from.file)).unwrap_or_default();
        self.chain.get_or_insert_with(|| Chain::new(session_id(id), line))
    }

    fn take(
        &mut self,
        record: &Record,
        fields: &Fields,
        source: Option<&Json>,
        report: &mut ImportReport,
    ) {
        let line = record.line;
        report.records += 1;
        if fields.text("role").is_none() {
            report.lose(line, "no object with a role");
            return;
        }
        blocks::collect_names(fields.get("content"), &mut self.names);
        let content = fields.clone().into_json().map_or_else(String::new, |json| json.canonical());
        let written = source.map_or(record.text.as_str(), Json::as_str);
        let derived = self.contents.id(&["cline"], &content, written);
        let id = fields.id("id").map_or(derived, message_id);
        let message = self.message_of(fields).with_id(id.clone());
        let (said, time) = (texts(&message.parts), message.created_at);
        let summary = fields.id("condenseId").filter(|_| fields.is_true("isSummary"));
        self.condensed.extend(fields.id("condenseParent"));
        let is_summary = summary.is_some_and(|id| self.condensed.contains(&id));
        let body = body(message, record, source, &self.from);
        let chain = self.chain(line, None);
        chain.add(id, line, &content, body);
        if is_summary {
            chain.compact(None, said, None, time);
        }
    }

    fn message_of(&self, fields: &Fields) -> Message {
        let mut parts = blocks::parts(fields.get("content"), &self.names);
        let role = match fields.text("role").unwrap_or_default().as_str() {
            "user" if blocks::are_results(&parts) => Role::Tool,
            role => Role::from(role),
        };
        for part in &mut parts {
            let Part::Text(text) = part else { continue };
            // Cline puts what a person asked for between these tags.
            let task = text.text.strip_prefix("<task>").and_then(|rest| rest.split_once("</task>"));
            if let Some((task, _)) = task.filter(|(_, rest)| rest.trim().is_empty()) {
                text.text = task.trim().to_owned();
                text.extra.insert("element".to_owned(), json("task"));
            }
        }
        let rest = fields.except(&["id", "role", "content", TIME]);
        let mut message = hidden_if_empty(linear::message(role, parts, rest));
        message.is_hidden |= fields.is_true("isSummary");
        // The folder of a task is named by the millisecond in which it began.
        let began = || DateTime::from_timestamp_millis(task_of(&self.from.file)?.parse().ok()?);
        message.at(fields.time(TIME).or_else(began).unwrap_or(self.from.now))
    }
}

impl Reader for Cline {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let Some(messages) = entry.list("messages") else {
            self.take(record, &entry, None, report);
            return None;
        };
        let id = entry.id("sessionId").or_else(|| entry.id("session_id"));
        let draft = &mut self.chain(record.line, id).draft;
        draft.add_metadata(entry.without(&["messages", "sessionId", "updated_at"]));
        for source in messages {
            self.take(record, &Fields::of(&source).unwrap_or_default(), Some(&source), report);
        }
        None
    }

    fn close(&mut self, _: &mut ImportReport) -> Option<Draft> {
        let mut draft = self.chain.take()?.close();
        if task_of(&self.from.file).is_none() && draft.session == session_id("") {
            draft.unnamed = Some(Unnamed::only(Format::Cline.as_str(), 1, &self.from));
        }
        (!draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        Some(self.message_of(&fields))
    }
}

/// Returns the folder of a task's file.
fn task_of(file: &str) -> Option<String> {
    let mut names = file.rsplit(['/', '\\']);
    names.next().filter(|name| *name == "api_conversation_history.json")?;
    names.next().map(str::to_owned)
}
