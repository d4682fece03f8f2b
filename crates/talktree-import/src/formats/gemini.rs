//! Sessions of Gemini CLI: one JSON document, or lines.
//!
//! An entry is written again with more in it while the model answers: thoughts, text, the tokens it took, calls of tools, their
//! results. Each of these is a message of its own here, so an entry can grow after it was imported; its text has the id of the
//! entry. `$rewindTo` goes back, and what follows is a branch. `$set` gives the whole list again; entries at its front that are
//! new are a summary of those that are gone.

use std::collections::HashMap;

use crate::report::ImportReport;
use talktree::{Json, Message, MessageId, Part, Role, Usage};

use super::blocks;
use super::chain::{Chain, aside, body, here, is_context, json, spent, texts};
use super::linear;
use super::parts::{self, Outcome, usage};
use crate::draft::{Draft, Origin, Reader, derive, fingerprint, message_id, name, session_id};
use crate::fields::{self, Fields, data_part, text_part};
use crate::records::Record;

/// The field with the time of an entry.
const TIME: &str = "timestamp";

/// How the texts begin that are no words to the model.
const CONTEXT: &[&str] = &["/", "?", "<session_context", "<hook_context"];

/// Reads sessions of Gemini CLI.
#[derive(Default)]
pub(crate) struct Gemini {
    pub(super) from: Origin,
    chain: Option<Chain>,
    /// The entries of the list as it is now.
    entries: Vec<Entry>,
    /// The node of each message, and how long its content is.
    nodes: HashMap<MessageId, (usize, usize)>,
}

struct Entry {
    id: String,
    /// What its first message follows.
    before: Option<MessageId>,
}

impl Gemini {
    fn chain(&mut self, line: u64) -> &mut Chain {
        let file = &self.from.file;
        self.chain.get_or_insert_with(|| {
            let id = derive(&["gemini", file]).to_string();
            Chain::new(session_id(id), line)
        })
    }

    /// Takes what a document or a line says about the session.
    fn describe(&mut self, line: u64, fields: &Fields) {
        let mut folders = self.from.file.rsplit(['/', '\\']);
        let file = folders.next().and_then(|file| file.split('.').next()).map(str::to_owned);
        let folder = folders.next().map(str::to_owned);
        let is_agent = fields.text("kind").as_deref() == Some("subagent");
        let parent = folder.filter(|folder| is_agent && folder != "chats");
        let id = fields.id("sessionId");
        // A subagent's own id is the name of its file, in the folder of its parent.
        let id = if parent.is_some() && id == parent { file } else { id };
        let draft = &mut self.chain(line).draft;
        let details = &mut draft.details;
        details.name = fields.text("summary").as_deref().and_then(name).or(details.name.take());
        details.created_at = fields.time("startTime").or(details.created_at);
        details.parent_session = parent.map(session_id).or(details.parent_session.take());
        if let Some(id) = id {
            draft.session = session_id(id);
            let known = ["sessionId", "startTime", "lastUpdated", "messages", "summary"];
            draft.add_metadata(fields.except(&known));
        }
    }

    /// Takes an entry of the list; `source` is the list's record, unless the entry is one.
    fn entry(
        &mut self,
        record: &Record,
        entry: &Fields,
        source: Option<&Json>,
        report: &mut ImportReport,
    ) {
        let line = record.line;
        report.check_times(line, &[(entry, TIME)], "the time of the import");
        let Some(id) = entry.id("id") else {
            report.records += 1;
            report.lose(line, "an entry without an id");
            return;
        };
        let is_new = self.entries.iter().all(|known| known.id != id);
        let tip = self.chain(line).tip.clone();
        if is_new {
            self.entries.push(Entry { id, before: tip });
        }
        let mut added = 0;
        for (id, message) in self.messages(entry) {
            let text = serde_json::to_string(&message.parts).unwrap_or_default();
            let body = body(message, record, source, &self.from);
            let found = self.nodes.get(&id).copied();
            if is_new && found.is_some() {
                // It was taken back and comes again.
                self.chain(line).tip = Some(id.clone());
            }
            match found {
                // The last version counts, unless something was cut out of it.
                Some((_, length)) if text.len() < length => {}
                Some((node, _)) => {
                    self.nodes.insert(id, (node, text.len()));
                    let node = &mut self.chain(line).draft.nodes[node];
                    (node.body, node.line, node.fingerprint) = (body, line, fingerprint(&text));
                }
                None => {
                    let chain = self.chain(line);
                    chain.add(id.clone(), line, &text, body);
                    let node = chain.draft.nodes.len() - 1;
                    self.nodes.insert(id, (node, text.len()));
                    added += 1;
                }
            }
        }
        report.records += added.max(1);
        report.converted += u64::from(added == 0);
    }

    /// Replaces all items by those of a list.
    fn set(&mut self, record: &Record, list: &[Json], report: &mut ImportReport) {
        let items: Vec<(String, Fields, &Json)> = list
            .iter()
            .filter_map(|source| Some((source, Fields::of(source)?)))
            .map(|(source, item)| (item.id("id").unwrap_or_default(), item, source))
            .collect();
        let common =
            self.entries.iter().zip(&items).take_while(|(old, new)| old.id == new.0).count();
        let mut from = 0;
        if common < self.entries.len() {
            let is_old = |id: &String| self.entries.iter().position(|entry| entry.id == *id);
            let kept = items.iter().position(|(id, ..)| is_old(id).is_some());
            if common == 0 {
                // The front is a summary of what is no longer there.
                from = kept.unwrap_or(items.len());
                let said = items[..from].iter().map(|(_, item, _)| texts(&parts_of(item)));
                let said = said.collect::<Vec<_>>().join("\n\n");
                let first = kept.and_then(|kept| is_old(&items[kept].0));
                let kept =
                    first.and_then(|first| self.child_of(&self.entries[first].before.clone()));
                let id = MessageId::from(derive(&["gemini", "set", &record.text]).to_string());
                let message = aside("summary", &Fields::default().with("text", Some(json(&said))));
                let time =
                    items.first().and_then(|(_, item, _)| item.time(TIME)).unwrap_or(self.from.now);
                let chain = self.chain(record.line);
                chain.add(id.clone(), record.line, &said, here(message.with_id(id).at(time), None));
                chain.compact(kept, said, None, time);
                report.records += 1;
                let before = first.and_then(|first| self.entries[first].before.clone());
                let front = items[..from].iter();
                let front = front.map(|(id, ..)| Entry { id: id.clone(), before: before.clone() });
                self.entries.splice(..first.unwrap_or(self.entries.len()), front);
            } else {
                self.rewind(record.line, &self.entries[common].id.clone(), report);
            }
        }
        for (_, item, source) in &items[from..] {
            self.entry(record, item, Some(source), report);
        }
    }

    /// Returns the first message that follows another one.
    fn child_of(&self, parent: &Option<MessageId>) -> Option<MessageId> {
        let nodes = &self.chain.as_ref()?.draft.nodes;
        nodes.iter().find(|node| node.parent == *parent).map(|node| node.id.clone())
    }

    /// Removes an entry and all after it from the list.
    fn rewind(&mut self, line: u64, id: &str, report: &mut ImportReport) {
        let at = self.entries.iter().rposition(|entry| entry.id == id);
        if at.is_none() {
            let why = format!("goes back before {id:?}, which is not there: to the start");
            report.remark(line, why);
        }
        let removed = self.entries.drain(at.unwrap_or(0)..).next();
        self.chain(line).tip = removed.and_then(|entry| entry.before);
    }

    /// Returns the messages of an entry with their ids, the text's first: that of the entry.
    fn messages(&self, entry: &Fields) -> Vec<(MessageId, Message)> {
        let id = entry.id("id").unwrap_or_default();
        let time = entry.time(TIME).unwrap_or(self.from.now);
        let piece = |kind: &str, key: &str| {
            MessageId::from(derive(&["gemini", &id, kind, key]).to_string())
        };
        let result = |key: &str| MessageId::from(derive(&["gemini", "result", key]).to_string());
        let kind = entry.text("type").unwrap_or_default();
        let model = entry.get("model").cloned();
        let mut messages = Vec::new();
        let parts = parts_of(entry);
        let is_whole = parts.iter().any(|part| matches!(part, Part::Reasoning(_) | Part::Tool(_)));
        match kind.as_str() {
            "user" | "gemini" => {
                let (results, said): (Vec<_>, Vec<_>) = parts
                    .into_iter()
                    .partition(|part| blocks::are_results(std::slice::from_ref(part)));
                let thoughts = entry.objects("thoughts").into_iter().map(|thought| {
                    let text = ["subject", "description"].map(|name| thought.text(name));
                    Part::reasoning(text.into_iter().flatten().collect::<Vec<_>>().join(": "))
                });
                let thoughts: Vec<Part> = thoughts.filter(|_| !is_whole).collect();
                if !thoughts.is_empty() {
                    let about = Fields::default().with("model", model.clone());
                    let message = linear::message(Role::Assistant, thoughts, about);
                    messages.push((piece("thoughts", ""), message));
                }
                if !said.is_empty() {
                    let role = if kind == "user" { Role::User } else { Role::Assistant };
                    let is_context = role == Role::User && is_context(&said, CONTEXT);
                    let known = ["id", TIME, "type", "content", "thoughts", "toolCalls", "tokens"];
                    let about = entry.except(&known);
                    let about = about.with("kind", Some(json("context")).filter(|_| is_context));
                    messages.push((message_id(id.as_str()), linear::message(role, said, about)));
                }
                for part in results {
                    let Part::Tool(tool) = &part else { continue };
                    messages.push((result(&tool.call_id), Message::new(Role::Tool, vec![part])));
                }
            }
            _ => messages
                .push((message_id(id.as_str()), Message::new(kind.as_str(), parts).hidden())),
        }
        if let Some(counted) = entry.object("tokens") {
            let usage = usage_beside_thoughts(&counted, entry.text("model"));
            messages.push((piece("tokens", ""), spent(&usage)));
        }
        for (number, call) in entry.objects("toolCalls").into_iter().enumerate() {
            let key = call.id("id").unwrap_or_else(|| format!("{id}/{number}"));
            let tool = call.text("name").unwrap_or_else(|| "unknown".to_owned());
            if !is_whole {
                let input = call.get("args").cloned();
                let known = ["id", "name", "args", "result", "status", "resultDisplay"];
                let about = call.except(&known).with("model", model.clone());
                let part = parts::call(tool.clone(), key.clone(), input, Outcome::Open);
                let message = linear::message(Role::Assistant, vec![Part::Tool(part)], about);
                messages.push((piece("call", &key), message));
            }
            let status = call.text("status").unwrap_or_default();
            let is_error = matches!(status.as_str(), "error" | "cancelled");
            if call.has("result") || is_error {
                let answer = call.list("result").and_then(|parts| Fields::of(parts.first()?));
                let answer = answer.and_then(|part| part.object("functionResponse"));
                let output = answer.map_or(call.get("result").cloned(), |answer| output(&answer));
                let part = blocks::result(tool, key.clone(), output.as_ref(), is_error);
                messages.push((result(&key), Message::new(Role::Tool, vec![part])));
            }
        }
        messages.into_iter().map(|(id, it)| (id.clone(), it.with_id(id).at(time))).collect()
    }
}

impl Reader for Gemini {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let changes = entry.object("$set");
        if let Some(id) = entry.text("$rewindTo") {
            self.rewind(line, &id, report);
        } else if let Some(changes) =
            changes.as_ref().or(Some(&entry).filter(|it| it.has("sessionId")))
        {
            self.describe(line, changes);
            if let Some(list) = changes.list("messages") {
                self.set(record, &list, report);
            }
        } else {
            self.entry(record, &entry, None, report);
            return None;
        }
        report.records += 1;
        report.converted += 1;
        None
    }

    fn close(&mut self, _: &mut ImportReport) -> Option<Draft> {
        self.chain.take().map(Chain::close)
    }

    fn message(&self, _: &Record, fields: Fields, id: &MessageId) -> Option<Message> {
        let mut messages = self.messages(&fields).into_iter();
        messages.find(|(own, _)| own == id).map(|(_, message)| message)
    }
}

/// Returns what an answer took. The Gemini API counts thoughts beside the output.
pub(super) fn usage_beside_thoughts(counted: &Fields, model: Option<String>) -> Usage {
    let usage = usage(counted, model);
    Usage { output: usage.output.saturating_add(usage.reasoning), ..usage }
}

/// Returns what a function answered: its output, or all of the answer.
fn output(answer: &Fields) -> Option<Json> {
    answer.inner("response").get("output").or_else(|| answer.get("response")).cloned()
}

/// Returns the content of an entry: a text, or parts of the Gemini API.
fn parts_of(entry: &Fields) -> Vec<Part> {
    let Some(content) = entry.get("content") else { return Vec::new() };
    match fields::list(content) {
        Some(pieces) => pieces.iter().filter_map(part).collect(),
        None => part(content).into_iter().collect(),
    }
}

/// Returns a part of the Gemini API; `None` for an empty text.
pub(super) fn part(piece: &Json) -> Option<Part> {
    let Some(fields) = Fields::of(piece) else {
        return (piece.as_str() != "\"\"").then(|| text_part(piece));
    };
    if let Some(text) = fields.get("text") {
        return match fields.is_true("thought") {
            _ if text.as_str() == "\"\"" => None,
            true => fields::text(text).map(Part::reasoning),
            false => Some(text_part(text)),
        };
    }
    let name = |call: &Fields| call.text("name").unwrap_or_else(|| "unknown".to_owned());
    let id = |call: &Fields| call.id("id").unwrap_or_else(|| name(call));
    if let Some(call) = fields.object("functionCall") {
        let input = call.get("args").cloned();
        return Some(Part::Tool(parts::call(name(&call), id(&call), input, Outcome::Open)));
    }
    if let Some(answer) = fields.object("functionResponse") {
        return Some(blocks::result(name(&answer), id(&answer), output(&answer).as_ref(), false));
    }
    if let Some(data) = fields.object("inlineData") {
        let media = data.text("mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
        let url = format!("data:{media};base64,{}", data.text("data").unwrap_or_default());
        return Some(Part::file(media, url));
    }
    Some(data_part("value", piece))
}
