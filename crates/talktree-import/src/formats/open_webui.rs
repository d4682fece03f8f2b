//! Chats of Open WebUI: its database, and its exports.
//!
//! A record is a chat. Its messages are a tree by id; the newest versions keep each in a row of its own, too, which counts where
//! both differ. Reasoning and calls of tools are items of their own, or marked in the text.

use std::collections::{HashMap, HashSet};

use talktree::records::blocks::{self, ToolNames};
use talktree::records::chat::arguments;
use talktree::records::fields::text;
use talktree::{Json, Message, MessageId, Part, Role};

use super::database::{Kind, Layout};
use super::linear;
use super::parts::{
    Outcome, Placed, add_by_time, answer, call, extra, file, hidden_if_blank, kept, may_grow,
    thoughts, typed,
};
use crate::draft::{Draft, DraftCompaction, Origin, Reader, derive, message_id, name, session_id};
use crate::fields::{Fields, data_part};
use crate::records::Record;
use crate::report::ImportReport;

pub(super) const LAYOUT: Layout = Layout {
    lines: "SELECT 0, rowid FROM chat ORDER BY created_at, rowid",
    kinds: &[Kind {
        row: ("row", "SELECT * FROM chat WHERE rowid = ?1"),
        list: Some((
            "nodes",
            "chat_message",
            "SELECT * FROM chat_message
             WHERE chat_id = (SELECT id FROM chat WHERE rowid = ?1)
             ORDER BY created_at, id",
        )),
    }],
};

/// The fields of a message that are kept in its metadata.
const METADATA: [&str; 5] = ["error", "sources", "annotation", "modelName", "modelIdx"];

/// Reads chats of Open WebUI.
pub(crate) struct OpenWebUi {
    pub(super) from: Origin,
}

impl Reader for OpenWebUi {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let item = entry.object("row").unwrap_or_else(|| entry.clone());
        let chat = item.object("chat").unwrap_or_else(|| item.clone());
        let history = chat.inner("history");
        let nodes = nodes(&entry, &chat, &history);
        if nodes.is_empty() {
            report.records += 1;
            report.leave_out(line, "a chat without messages");
            return None;
        }
        let id = item.id("id").unwrap_or_else(|| derive(&["open-webui", &nodes[0].0]).to_string());
        let mut draft = Draft::new(session_id(id), line);
        let title = item.text("title").or_else(|| chat.text("title"));
        let tags = item.inner("meta").list("tags").unwrap_or_default();
        let models = chat.list("models").unwrap_or_default();
        let details = &mut draft.details;
        details.name = title.filter(|title| title != "New Chat").as_deref().and_then(name);
        details.model = models.first().and_then(text).filter(|model| !model.is_empty());
        details.tags = tags.iter().filter_map(text).filter_map(|tag| name(&tag)).collect();
        details.created_at = item.time("created_at").or_else(|| chat.time("timestamp"));
        let about = ["archived", "folder_id", "share_id", "pinned"];
        details.metadata = kept(&item, &about).into_json();
        let parents: HashSet<String> = nodes.iter().filter_map(|(_, node)| parent(node)).collect();
        let changed = item.time("updated_at");
        let mut placed = Vec::with_capacity(nodes.len());
        let mut summaries = Vec::new();
        for (id, node) in nodes {
            report.records += 1;
            let Some(role) = node.text("role") else {
                report.lose(line, format!("message {id:?} has no role"));
                continue;
            };
            let is_open =
                node.get("done").is_some_and(|done| matches!(done.as_str(), "false" | "0"));
            let is_leaf = !parents.contains(&id);
            if is_open && is_leaf && role == "assistant" && may_grow(changed, self.from.now) {
                let why = format!("message {id:?} is still being written; a later import takes it");
                report.leave_out(line, why);
                continue;
            }
            if let Some(summary) = node.text("context_summary") {
                summaries.push((message_id(id.as_str()), summary));
            }
            placed.push(Placed {
                time: node.time("timestamp").or_else(|| node.time("created_at")),
                parent: parent(&node).map(message_id),
                source: self.from.keeps_source.then(|| node.clone().into_json()).flatten(),
                message: message(&node, role.into()).with_id(message_id(id)),
            });
        }
        let current = history.id("currentId").or_else(|| item.id("current_message_id"));
        draft.head = current.map(message_id);
        let start = draft.details.created_at.unwrap_or(self.from.now);
        add_by_time(&mut draft, placed, start);
        compact(&mut draft, summaries);
        (!draft.nodes.is_empty()).then_some(draft)
    }
}

/// Returns the messages of a chat by id.
fn nodes(fields: &Fields, chat: &Fields, history: &Fields) -> Vec<(String, Fields)> {
    let mut nodes: Vec<(String, Fields)> = match history.object("messages") {
        Some(messages) => {
            let node = |json: Json| Fields::of(&json).unwrap_or_default();
            messages.into_iter().map(|(id, json)| (id, node(json))).collect()
        }
        // The oldest chats have a list.
        None => {
            let messages = chat.objects("messages").into_iter();
            messages.filter_map(|node| Some((node.id("id")?, node))).collect()
        }
    };
    let places: HashMap<String, usize> =
        nodes.iter().enumerate().map(|(at, (id, _))| (id.clone(), at)).collect();
    for row in fields.objects("nodes") {
        let chat = row.id("chat_id").unwrap_or_default();
        let Some(id) = row.id("id") else { continue };
        let id = id.strip_prefix(&format!("{chat}-")).unwrap_or(&id).to_owned();
        match places.get(&id) {
            // Of two fields of one name the last one counts.
            Some(at) => {
                let node = std::mem::take(&mut nodes[*at].1);
                nodes[*at].1 = node.into_iter().chain(row).collect();
            }
            None => nodes.push((id, row)),
        }
    }
    nodes
}

fn parent(node: &Fields) -> Option<String> {
    node.id("parent_id").or_else(|| node.id("parentId"))
}

/// Adds summaries, each of the path to a message; it replaces that path for the message after it.
fn compact(draft: &mut Draft, summaries: Vec<(MessageId, String)>) {
    let parents =
        draft.nodes.iter().filter_map(|node| Some((node.parent.clone()?, node.id.clone())));
    // The newest of several.
    let next: HashMap<MessageId, MessageId> = parents.collect();
    for (last, summary) in summaries {
        // Nothing is replaced before something follows.
        let Some(next) = next.get(&last) else { continue };
        let id = derive(&["open-webui", last.as_str(), &summary]).to_string().into();
        let time = draft.details.created_at.unwrap_or_default();
        let compaction =
            DraftCompaction::new(next.clone(), draft.line, next.clone(), summary, time);
        draft.compactions.push(DraftCompaction { id, ..compaction });
    }
}

fn message(node: &Fields, role: Role) -> Message {
    let mut parts = match node.list("output").filter(|items| !items.is_empty()) {
        Some(items) => of_items(&items),
        None => match node.text("content") {
            Some(content) if role == Role::Assistant => marked(&content),
            _ => blocks::parts(node.get("content"), &ToolNames::new()),
        },
    };
    parts.extend(node.objects("files").into_iter().filter_map(|given| {
        let url = given.text("url").or_else(|| given.id("id"))?;
        let is_image = given.text("type").as_deref() == Some("image");
        let media = given.text("content_type").or_else(|| is_image.then(|| "image/*".to_owned()));
        let mut made = file(media, url, given.text("name"));
        made.extra = extra(&given, &["type", "url", "name", "content_type"]);
        typed(Part::File(made), "file", &given)
    }));
    let info = node.inner("info");
    let usage = node.object("usage").or_else(|| info.object("usage"));
    // Ollama's numbers have names of their own.
    let usage = usage.or_else(|| info.has("eval_count").then(|| info.clone())).map(|usage| {
        let (input, output) = (usage.get("prompt_eval_count"), usage.get("eval_count"));
        let (input, output) = (input.cloned(), output.cloned());
        usage.with("input_tokens", input).with("output_tokens", output)
    });
    let about = kept(node, &METADATA)
        .with("model", node.get("model_id").or_else(|| node.get("model")).cloned())
        .with("usage", usage.and_then(Fields::into_json));
    hidden_if_blank(linear::message(role, parts, about))
}

/// Returns the parts of an answer in the items of the Responses API.
fn of_items(items: &[Json]) -> Vec<Part> {
    let names = ToolNames::new();
    let mut parts: Vec<Part> = Vec::new();
    for json in items {
        let Some(item) = Fields::of(json) else { continue };
        let id = item.id("call_id").or_else(|| item.id("id")).unwrap_or_default();
        match item.text("type").as_deref() {
            Some("message") => parts.extend(blocks::parts(item.get("content"), &names)),
            Some("reasoning") => {
                parts.push(Part::reasoning(thoughts(&item).collect::<Vec<_>>().join("\n")));
            }
            Some("function_call") => {
                let input = item.get("arguments").map(arguments);
                parts.push(Part::Tool(call(item.text("name"), id, input, Outcome::Open)));
            }
            Some("function_call_output") => {
                let name = "unknown".to_owned();
                let result = blocks::result(name, id.clone(), item.get("output"), false);
                answer(&mut parts, Some(&id), result);
            }
            kind => parts.push(data_part(kind.unwrap_or("value"), json)),
        }
    }
    parts
}

/// Returns the parts of an answer whose text has reasoning and calls in `<details>`.
fn marked(content: &str) -> Vec<Part> {
    const START: &str = "<details type=\"";
    const END: &str = "</details>";
    let mut parts = Vec::new();
    let mut said = String::new();
    let mut rest = content;
    while let Some(start) = rest.find(START) {
        let Some(length) = rest[start..].find(END) else { break };
        let (before, block) = (&rest[..start], &rest[start..start + length]);
        said.push_str(before);
        rest = &rest[start + length + END.len()..];
        match of_details(block) {
            Some(part) => {
                push_text(&mut parts, &mut said);
                parts.push(part);
            }
            None => said.extend([block, END]),
        }
    }
    said.push_str(rest);
    push_text(&mut parts, &mut said);
    parts
}

fn push_text(parts: &mut Vec<Part>, said: &mut String) {
    if !said.trim().is_empty() {
        parts.push(Part::text(said.trim()));
    }
    said.clear();
}

fn of_details(block: &str) -> Option<Part> {
    let (head, body) = block.split_once('>')?;
    let value = |name: &str| {
        let (_, rest) = head.split_once(&format!(" {name}=\""))?;
        Some(unescaped(rest.split('"').next()?))
    };
    match value("type")?.as_str() {
        "reasoning" => {
            let body = body.split_once("</summary>").map_or(body, |(_, body)| body);
            let lines = body.trim().lines();
            let lines = lines
                .map(|line| line.strip_prefix("&gt; ").or(line.strip_prefix("> ")).unwrap_or(line));
            Some(Part::reasoning(unescaped(&lines.collect::<Vec<_>>().join("\n"))))
        }
        "tool_calls" => {
            let given = |name: &str| {
                let text = value(name).filter(|text| !text.is_empty())?;
                let json = Json::parse(&text).unwrap_or_else(|_| serde_json::json!(text).into());
                Some(arguments(&json))
            };
            let outcome = given("result").map_or(Outcome::Open, Outcome::Output);
            let id = value("id").unwrap_or_default();
            Some(Part::Tool(call(value("name")?, id, given("arguments"), outcome)))
        }
        _ => None,
    }
}

fn unescaped(text: &str) -> String {
    let quotes = text.replace("&quot;", "\"").replace("&#x27;", "'").replace("&#39;", "'");
    quotes.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
