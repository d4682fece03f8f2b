//! Sessions of goose: its database, and the JSON lines before it.
//!
//! A file or a session of the database begins with a header; its messages are one path. goose gave its messages new ids when it
//! moved them into the database, and gives them new ones with each compaction. So ids are derived from session, time, role and
//! content: a session is one, whichever source it is read from.
//!
//! A compaction leaves the messages that only the person sees from then on, and adds a summary that only the model sees.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::text;
use talktree::{Json, Message, MessageId, Part, Role, Usage};

use super::database::{Kind, Layout};
use super::linear;
use super::parts::{Outcome, call, dollars, hidden_if_blank, kept, usage};
use crate::draft::{Draft, DraftCompaction, Node, Origin, Reader, derive, name, session_id};
use crate::fields::{self, Fields};
use crate::records::Record;
use crate::report::ImportReport;

pub(super) const LAYOUT: Layout = Layout {
    lines: "SELECT 0, rowid, created_at AS begun, id AS session, 0 AS time, 0 AS message
            FROM sessions
            UNION ALL
            SELECT 1, messages.id, sessions.created_at, sessions.id,
                   iif(created_timestamp > 100000000000, created_timestamp / 1000, created_timestamp),
                   messages.id
            FROM messages
            JOIN sessions ON sessions.id = messages.session_id
            ORDER BY begun, session, 1, time, message",
    kinds: &[
        Kind {
            row: ("session", "SELECT * FROM sessions WHERE rowid = ?1"),
            list: Some((
                "ledger",
                "usage_ledger",
                "SELECT * FROM usage_ledger
                 WHERE session_id = (SELECT id FROM sessions WHERE rowid = ?1)
                 ORDER BY created_timestamp",
            )),
        },
        Kind { row: ("row", "SELECT * FROM messages WHERE id = ?1"), list: None },
    ],
};

/// Reads sessions of goose.
#[derive(Default)]
pub(crate) struct Goose {
    pub(super) from: Origin,
    names: ToolNames,
    open: Option<Open>,
    /// What the ledger of the sessions says of the answers.
    usage: HashMap<MessageId, Usage>,
}

/// A session while it is read.
#[derive(Default)]
struct Open {
    draft: Draft,
    ledger: Vec<Fields>,
    /// The answers with their times.
    answers: Vec<(DateTime<Utc>, MessageId)>,
    /// How often each message occurred.
    counts: HashMap<String, u32>,
    /// The first message after those that a summary replaced; the outer is `None` as long as nothing is replaced.
    kept: Option<Option<MessageId>>,
    /// Whether the message before is only for the model.
    is_after_summary: bool,
}

impl Goose {
    fn begin(&mut self, header: &Fields, ledger: Vec<Fields>, line: u64) {
        let file = self.from.file.rsplit(['/', '\\']).next().unwrap_or_default();
        // Without an id, the name of the file without its ending.
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let mut draft =
            Draft::new(session_id(header.id("id").unwrap_or_else(|| stem.to_owned())), line);
        let mut titles = ["name", "description"].iter().filter_map(|name| header.text(name));
        let details = &mut draft.details;
        details.name = titles.find_map(|title| name(&title));
        details.parent_session = header.id("parent_session_id").map(session_id);
        details.model = header.inner("model_config_json").text("model_name");
        details.created_at = header.time("created_at");
        let about = ["working_dir", "session_type", "provider_name", "project_id", "schedule_id"];
        details.metadata = kept(header, &about).into_json();
        self.open = Some(Open { draft, ledger, ..Open::default() });
    }

    fn add(&mut self, fields: &Fields, record: &Record, report: &mut ImportReport) {
        let row = row(fields);
        let mut message = message(fields, &self.names, self.from.now);
        if self.open.is_none() {
            report.fault(record.line, "no header before the first message");
            self.begin(&Fields::default(), Vec::new(), record.line);
        }
        let Some(open) = &mut self.open else { return };
        let said = content(&row).map(|content| content.canonical()).unwrap_or_default();
        let time = message.created_at.timestamp().to_string();
        let session = open.draft.session.to_string();
        let same = derive(&["goose", &session, &time, message.role.as_str(), &said]).to_string();
        let count = open.counts.entry(same.clone()).or_default();
        *count += 1;
        let id: MessageId = match *count {
            1 => same.into(),
            count => derive(&[&same, &count.to_string()]).to_string().into(),
        };
        let about = row.object("metadata_json").unwrap_or_else(|| row.inner("metadata"));
        let is_for_model = about.is_false("userVisible");
        if is_for_model
            && !open.is_after_summary
            && let Some(kept) = &open.kept
        {
            message.is_hidden = true;
            let kept = kept.clone().unwrap_or_else(|| id.clone());
            let (line, summary, time) = (record.line, message.text(), message.created_at);
            let compaction = DraftCompaction::new(id.clone(), line, kept, summary, time);
            open.draft.compactions.push(compaction);
        }
        open.is_after_summary = is_for_model;
        if about.is_false("agentVisible") {
            open.kept = Some(None);
        } else if let Some(kept) = &mut open.kept {
            kept.get_or_insert_with(|| id.clone());
        }
        if message.role == Role::Assistant {
            open.answers.push((message.created_at, id.clone()));
        }
        let parent = open.draft.last_id();
        open.draft.push(Node::of(message.with_id(id), parent, record.line, Some(record.place())));
    }
}

impl Reader for Goose {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        let header = entry.object("session");
        let header = header.or_else(|| entry.has("working_dir").then(|| entry.clone()));
        if let Some(header) = header {
            report.converted += 1;
            let done = self.close(report);
            self.begin(&header, entry.objects("ledger"), record.line);
            return done;
        }
        let row = row(&entry);
        let blocks = content(&row).and_then(fields::list);
        let (Some(blocks), Some(_)) = (blocks, row.text("role")) else {
            report.lose(record.line, "neither a header nor a message with a role and content");
            return None;
        };
        for block in blocks.iter().filter_map(Fields::of) {
            let name = block.inner("toolCall").inner("value").text("name");
            self.names.extend(block.id("id").zip(name));
        }
        self.add(&entry, record, report);
        None
    }

    fn close(&mut self, _: &mut ImportReport) -> Option<Draft> {
        let Open { draft, ledger, answers, .. } = self.open.take()?;
        // A row of the ledger names no message: it is of the last answer that was there when it was written.
        for row in &ledger {
            let time = row.time("created_timestamp").unwrap_or(self.from.now);
            let before = answers.partition_point(|(answered, _)| *answered <= time);
            if let Some((_, id)) = answers.get(before.saturating_sub(1)) {
                let sum = self.usage.entry(id.clone()).or_default();
                let more = usage(row, row.text("model"));
                sum.model = more.model.or(sum.model.take());
                sum.input += more.input;
                sum.output += more.output;
                sum.cache_read += more.cache_read;
                sum.cache_write += more.cache_write;
                match (&mut sum.cost, dollars(row.number("cost"))) {
                    (Some(cost), Some(more)) => cost.micros += more.micros,
                    (cost, more) => *cost = cost.take().or(more),
                }
            }
        }
        (!draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, _: &Record, fields: Fields, id: &MessageId) -> Option<Message> {
        let message = message(&fields, &self.names, self.from.now);
        Some(match self.usage.get(id) {
            Some(usage) => message.with_usage(usage),
            None => message,
        })
    }
}

/// Returns a message as a row of the database or a line of a file has it.
fn row(fields: &Fields) -> Fields {
    fields.object("row").unwrap_or_else(|| fields.clone())
}

fn content(row: &Fields) -> Option<&Json> {
    row.get("content_json").or_else(|| row.get("content"))
}

fn message(fields: &Fields, names: &ToolNames, now: DateTime<Utc>) -> Message {
    let row = row(fields);
    let blocks = content(&row).and_then(fields::list).unwrap_or_default();
    let parts: Vec<Part> = blocks.iter().map(|block| part(block, names)).collect();
    let role = match blocks::are_results(&parts) {
        true => Role::Tool,
        false => row.text("role").unwrap_or_default().into(),
    };
    let time = row.time("created_timestamp").or_else(|| row.time("created")).unwrap_or(now);
    let about = row.get("metadata_json").or_else(|| row.get("metadata"));
    let about = Fields::default().with("metadata", about.cloned());
    hidden_if_blank(linear::message(role, parts, about).at(time))
}

fn part(json: &Json, names: &ToolNames) -> Part {
    let Some(block) = Fields::of(json) else { return blocks::part(json, names) };
    let id = block.id("id").unwrap_or_default();
    let called = |field: &str| {
        let given = block.inner(field);
        let value = given.inner("value");
        let outcome = given.text("error").map_or(Outcome::Open, Outcome::Failed);
        let input = value.get("arguments").cloned();
        Part::Tool(call(value.text("name"), id.clone(), input, outcome))
    };
    match block.text("type").as_deref() {
        Some("toolRequest" | "frontendToolRequest") => called("toolCall"),
        Some("toolResponse") => {
            let given = block.inner("toolResult");
            let (name, value) = (blocks::name_of(names, &id), given.inner("value"));
            let (content, is_error) = (value.get("content"), value.is_true("isError"));
            match given.get("error").map(|why| text(why).unwrap_or_else(|| why.to_string())) {
                Some(why) => Part::tool_error(name, id, why),
                None => blocks::result(name, id, content.or_else(|| given.get("value")), is_error),
            }
        }
        _ => blocks::part(json, names),
    }
}
