//! ChatGPT exports: `conversations.json`.
//!
//! A record is a conversation; its `mapping` is a tree of nodes by id. A node without a message is
//! skipped: its children become those of its parent. Hidden messages stay hidden. Siblings come in
//! the order of their parent's `children`, or by time. What was spoken is text.

use std::collections::HashMap;

use crate::report::ImportReport;
use chrono::{DateTime, TimeDelta, Utc};
use talktree::{Json, Message, MessageId, Part, Reasoning, Text};

use super::chain::here;
use super::{linear, parts};
use crate::draft::{
    Draft, Node, Origin, Reader, derive, fingerprint, message_id, name, session_id,
};
use crate::fields::{self, Fields, data_part, text_part};
use crate::records::Record;

/// The field with the time of a message or a conversation.
const TIME: &str = "create_time";

/// Reads ChatGPT exports.
pub(crate) struct ChatGpt {
    pub(super) from: Origin,
}

/// A node of the mapping.
struct MappedNode {
    id: String,
    parent: Option<String>,
    children: Vec<String>,
    json: Json,
    message: Option<Fields>,
}

/// A node that is a message, with its time.
type Living = (MessageId, DateTime<Utc>);

impl Reader for ChatGpt {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let Some(mapping) = entry.object("mapping") else {
            report.records += 1;
            report.lose(line, "no conversation: it has no mapping");
            return None;
        };
        let mut places = Vec::new();
        for (id, json) in mapping {
            report.records += 1;
            let Some(node) = Fields::of(&json) else {
                report.lose(line, format!("node {id:?} is no object"));
                continue;
            };
            let children = node.list("children").unwrap_or_default();
            places.push(MappedNode {
                parent: node.id("parent"),
                children: children.iter().filter_map(fields::id).collect(),
                message: node.object("message"),
                json,
                id,
            });
        }
        let Some(first) = places.first() else {
            report.records += 1;
            report.leave_out(line, "a conversation without nodes");
            return None;
        };
        let given = entry.id("conversation_id").or_else(|| entry.id("id"));
        let given = given.unwrap_or_else(|| derive(&["chatgpt", &first.id]).to_string());
        let mut draft = Draft::new(session_id(given), line);
        report.check_times(line, &[(&entry, TIME)], "the time of the message before");
        draft.details.name = entry.text("title").as_deref().and_then(name);
        draft.details.model = entry.text("default_model_slug");
        draft.details.created_at = entry.time(TIME);
        let start = entry.time(TIME).unwrap_or(self.from.now);
        let current = entry.id("current_node");
        // Of each node, the nearest message at or above it.
        let mut living: Vec<Option<Living>> = vec![None; places.len()];
        for (at, above) in arrange(&places) {
            let place = &mut places[at];
            let parent = match above {
                Some(above) => living[above].clone(),
                // A missing node, or a descendant of the node itself.
                None => place.parent.as_deref().map(|id| (message_id(id), start)),
            };
            let Some(fields) = place.message.take() else {
                report.leave_out(line, format!("node {:?} holds no message", place.id));
                living[at] = parent;
                continue;
            };
            report.check_times(line, &[(&fields, TIME)], "the time of the message before");
            let (parent, before) = parent.unzip();
            // A message without a time comes right after the one it follows.
            let inherited = before.map_or(start, |before| before + TimeDelta::milliseconds(1));
            let time = fields.time(TIME).unwrap_or(inherited);
            // Only the content: other fields may differ in a later export.
            let said = fields.get("content").map(|content| content.canonical());
            let fingerprint = fingerprint(&said.unwrap_or_default());
            let id = message_id(place.id.as_str());
            living[at] = Some((id.clone(), time));
            let message = message(fields).with_id(id.clone()).at(time);
            let body = here(message, self.from.keeps_source.then_some(&place.json));
            draft.push(Node::new(id, parent, line, fingerprint, body));
        }
        let current = current.and_then(|id| places.iter().position(|place| place.id == id));
        draft.head = current.and_then(|at| living[at].take()).map(|(id, _)| id);
        let known = [
            "mapping",
            "title",
            "create_time",
            "update_time",
            "current_node",
            "conversation_id",
            "id",
            "default_model_slug",
        ];
        // Most of the other fields are null or empty.
        let is_filled = |_: &str, value: &Json| !matches!(value.as_str(), "null" | "[]" | "{}");
        draft.add_metadata(entry.without(&known).only(is_filled));
        (!draft.nodes.is_empty()).then_some(draft)
    }
}

/// Returns the nodes with their parents, each branch after its root, siblings in their order. A node whose parent is missing, or is
/// below the node itself, has none.
fn arrange(places: &[MappedNode]) -> Vec<(usize, Option<usize>)> {
    let index: HashMap<&str, usize> =
        places.iter().enumerate().map(|(at, place)| (place.id.as_str(), at)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    let mut roots = Vec::new();
    for (at, place) in places.iter().enumerate() {
        match place.parent.as_deref().and_then(|id| index.get(id)) {
            Some(parent) => children[*parent].push(at),
            None => roots.push(at),
        }
    }
    for (place, children) in places.iter().zip(&mut children) {
        let ranks: HashMap<&str, usize> =
            place.children.iter().enumerate().map(|(rank, id)| (id.as_str(), rank)).collect();
        children.sort_by_cached_key(|child| {
            let child = &places[*child];
            let time = child.message.as_ref().and_then(|message| message.time(TIME));
            let rank = ranks.get(child.id.as_str()).copied();
            (rank.unwrap_or(usize::MAX), time.unwrap_or(DateTime::<Utc>::MAX_UTC))
        });
    }
    let mut is_placed = vec![false; places.len()];
    let mut arranged = Vec::with_capacity(places.len());
    let mut stack = Vec::new();
    // Nodes that no root leads to are in a cycle, which is visited from its first node.
    for start in roots.into_iter().chain(0..places.len()) {
        stack.push((start, None));
        while let Some((at, above)) = stack.pop() {
            if !std::mem::replace(&mut is_placed[at], true) {
                arranged.push((at, above));
                stack.extend(children[at].iter().rev().map(|child| (*child, Some(at))));
            }
        }
    }
    arranged
}

fn message(fields: Fields) -> Message {
    let (author, content) = (fields.inner("author"), fields.inner("content"));
    let metadata = fields.inner("metadata");
    let is_hidden = fields.number("weight") == Some(0.0)
        || metadata.is_true("is_visually_hidden_from_conversation");
    let role = author.text("role").unwrap_or_else(|| "unknown".to_owned());
    let kind = content.text("content_type").unwrap_or_default();
    let parts = parts_of(&kind, &content, fields.get("content"));
    let rest_of_content = content.without(&["parts", "text", "thoughts", "result"]);
    let is_plain = kind == "text" || kind.is_empty();
    let known = ["id", "author", "create_time", "update_time", "content", "metadata", "weight"];
    let about = fields
        .without(&known)
        .with("model", metadata.get("model_slug").cloned())
        .with("author", author.get("name").cloned())
        .with("content", rest_of_content.into_json().filter(|_| !is_plain))
        .with("metadata", metadata.into_json())
        .only(|field, value| {
            !value.is_null() && (field != "recipient" || value.as_str() != "\"all\"")
        });
    let mut message = linear::message(role, parts, about);
    message.is_hidden = is_hidden;
    message
}

fn parts_of(kind: &str, content: &Fields, json: Option<&Json>) -> Vec<Part> {
    if let Some(parts) = content.list("parts") {
        return parts.iter().filter(|part| part.as_str() != "\"\"").flat_map(pieces).collect();
    }
    if let Some(thoughts) = content.list("thoughts") {
        return thoughts.iter().filter_map(Fields::of).filter_map(thought).collect();
    }
    let text = content.get("text").or_else(|| content.get("result"));
    match (kind, text, content.text("content"), json) {
        ("reasoning_recap", _, Some(recap), _) => vec![Part::reasoning(recap)],
        (_, Some(text), _, _) if text.as_str() == "\"\"" => Vec::new(),
        (_, Some(text), _, _) => vec![text_part(text)],
        (_, None, _, Some(json)) => vec![data_part(kind, json)],
        (_, None, _, None) => Vec::new(),
    }
}

/// Returns a thought: its text with its summary, or the summary alone.
fn thought(thought: Fields) -> Option<Part> {
    let said = |field| thought.text(field).filter(|text: &String| !text.is_empty());
    let (text, summary) = (said("content"), thought.get("summary").cloned());
    let Some(text) = text else { return said("summary").map(Part::reasoning) };
    let extra = Fields::default().with("summary", summary).into_iter().collect();
    Some(Part::Reasoning(Reasoning { text, extra }))
}

/// Returns a piece of mixed content: text, words that were spoken, or a pointer to a file of the export, with the words that an
/// image was made from.
fn pieces(json: &Json) -> Vec<Part> {
    let Some(fields) = Fields::of(json) else { return vec![text_part(json)] };
    let kind = fields.text("content_type").unwrap_or_default();
    match (kind.as_str(), fields.text("text"), fields.text("asset_pointer")) {
        ("audio_transcription", Some(text), _) => {
            vec![Part::Text(Text { text, extra: fields.without(&["text"]).into_iter().collect() })]
        }
        ("image_asset_pointer", _, Some(url)) => {
            let words = fields.inner("metadata").inner("dalle").text("prompt");
            let words = words.filter(|words| !words.is_empty()).map(Part::text);
            let mut image = parts::file(Some("image/*".to_owned()), url, None);
            image.extra.insert("asset".to_owned(), json.clone());
            words.into_iter().chain([Part::File(image)]).collect()
        }
        _ => vec![data_part(if kind.is_empty() { "value" } else { &kind }, json)],
    }
}
