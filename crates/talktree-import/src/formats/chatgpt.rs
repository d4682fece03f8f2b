//! ChatGPT exports: `conversations.json`.
//!
//! A record is a conversation; its `mapping` is a tree of nodes by id. A node without a message is
//! skipped: its children become those of its parent. Hidden messages stay hidden. Siblings come in
//! the order of their parent's `children`, or by time. What was spoken is text.

use std::collections::HashMap;

use crate::report::ImportReport;
use chrono::{DateTime, TimeDelta, Utc};
use talktree::{File, Json, Message, MessageId, Part, Reasoning, SessionDetails, Text};

use super::chain::here;
use crate::draft::{
    Draft, Node, Origin, Reader, derive, fingerprint, message_id, name, session_id,
};
use crate::fields::{self, Fields, data_part, text_part};
use crate::records::Record;

/// The field with the time of a message or a conversation.
const TIME: &str = "create_time";

/// Reads ChatGPT exports.
#[derive(Default)]
pub(crate) struct ChatGpt {
    from: Origin,
}

/// A node of the mapping.
struct MappedNode {
    id: String,
    parent: Option<String>,
    children: Vec<String>,
    json: Json,
    message: Option<Fields>,
}

impl ChatGpt {
    pub(crate) fn new(from: Origin) -> Self {
        Self { from }
    }

    fn node(
        &self,
        place: &MappedNode,
        parent: Option<&Living>,
        line: u64,
        start: DateTime<Utc>,
    ) -> (Node, DateTime<Utc>) {
        let fields = place.message.clone().unwrap_or_default();
        // Only the content: other fields may differ in a later export.
        let said = fields.get("content").map(|content| content.canonical());
        // A message without a time comes right after the one it follows.
        let inherited = parent.map_or(start, |parent| parent.time + TimeDelta::milliseconds(1));
        let time = fields.time(TIME).unwrap_or(inherited);
        let id = message_id(place.id.as_str());
        let message = message(fields).with_id(id.clone()).at(time);
        let body = here(message, Some(&place.json).filter(|_| self.from.keeps_source));
        let parent = parent.map(|parent| parent.id.clone());
        let fingerprint = fingerprint(&said.unwrap_or_default());
        (Node::new(id, parent, line, fingerprint, body), time)
    }
}

/// The nearest node above that is a message.
#[derive(Clone)]
struct Living {
    id: MessageId,
    time: DateTime<Utc>,
}

impl Reader for ChatGpt {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        let Some(mapping) = entry.object("mapping") else {
            report.records += 1;
            report.lose(line, "no conversation: it has no mapping");
            return None;
        };
        let given = entry.id("conversation_id").or_else(|| entry.id("id"));
        let mut places = Vec::new();
        for (id, json) in mapping.into_pairs() {
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
        let given = given.unwrap_or_else(|| derive(&["chatgpt", &first.id]).to_string());
        let mut draft = Draft::new(session_id(given), line);
        report.check_times(line, &[(&entry, TIME)], "the time of the message before");
        let start = entry.time(TIME).unwrap_or(self.from.now);
        draft.details = SessionDetails {
            name: entry.text("title").as_deref().and_then(name),
            model: entry.text("default_model_slug"),
            created_at: entry.time(TIME),
            ..SessionDetails::default()
        };
        let mut heads = HashMap::new();
        for (at, parent) in arrange(&places) {
            let place = &places[at];
            let living = match parent {
                Parent::Placed(parent) => heads.get(&parent).cloned().flatten(),
                Parent::Root => None,
                Parent::Nowhere => {
                    let id = message_id(place.parent.as_deref().unwrap_or_default());
                    Some(Living { id, time: start })
                }
            };
            let Some(message) = &place.message else {
                report.leave_out(line, format!("node {:?} holds no message", place.id));
                heads.insert(at, living);
                continue;
            };
            report.check_times(line, &[(message, TIME)], "the time of the message before");
            let (node, time) = self.node(place, living.as_ref(), line, start);
            heads.insert(at, Some(Living { id: node.id.clone(), time }));
            draft.push(node);
        }
        let current = entry.id("current_node");
        let current = current.and_then(|id| places.iter().position(|place| place.id == id));
        if let Some(Some(living)) = current.and_then(|at| heads.get(&at)) {
            draft.head = Some(living.id.clone());
        }
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
        let rest = entry.without(&known).into_pairs();
        // Most of these fields are null or empty.
        let rest =
            rest.into_iter().filter(|(_, value)| !matches!(value.as_str(), "null" | "[]" | "{}"));
        draft.add_metadata(rest.collect());
        (!draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, _: &Record, _: Fields, _: &MessageId) -> Option<Message> {
        None
    }
}

/// The parent of a node.
#[derive(Clone, Copy)]
enum Parent {
    Root,
    Placed(usize),
    /// A missing node, or a descendant of the node itself.
    Nowhere,
}

/// Returns the nodes with their parents, each branch after its root, siblings in their order.
fn arrange(places: &[MappedNode]) -> Vec<(usize, Parent)> {
    let index: HashMap<&str, usize> =
        places.iter().enumerate().map(|(at, place)| (place.id.as_str(), at)).collect();
    let parent_of = |place: &MappedNode| place.parent.as_deref().map(|id| index.get(id).copied());
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    let mut roots = Vec::new();
    for (at, place) in places.iter().enumerate() {
        match parent_of(place) {
            None => roots.push((at, Parent::Root)),
            Some(None) => roots.push((at, Parent::Nowhere)),
            Some(Some(parent)) => children[parent].push(at),
        }
    }
    for (at, place) in places.iter().enumerate() {
        let ranks: HashMap<&str, usize> =
            place.children.iter().enumerate().map(|(rank, id)| (id.as_str(), rank)).collect();
        let rank = |child: &usize| ranks.get(places[*child].id.as_str()).copied();
        let time = |child: &usize| places[*child].message.as_ref()?.time(TIME);
        let last = DateTime::<Utc>::MAX_UTC;
        children[at]
            .sort_by_key(|child| (rank(child).unwrap_or(usize::MAX), time(child).unwrap_or(last)));
    }
    let mut is_placed = vec![false; places.len()];
    let mut arranged = Vec::with_capacity(places.len());
    let mut stack: Vec<(usize, Parent)> = roots.into_iter().rev().collect();
    let mut rest = 0..places.len();
    loop {
        while let Some((at, parent)) = stack.pop() {
            if std::mem::replace(&mut is_placed[at], true) {
                continue;
            }
            arranged.push((at, parent));
            stack.extend(children[at].iter().rev().map(|child| (*child, Parent::Placed(at))));
        }
        // Nodes that no root leads to are in a cycle, which is visited from its first node.
        match rest.find(|at| !is_placed[*at]) {
            Some(at) => stack.push((at, Parent::Nowhere)),
            None => return arranged,
        }
    }
}

fn message(fields: Fields) -> Message {
    let author = fields.object("author").unwrap_or_default();
    let content = fields.object("content").unwrap_or_default();
    let metadata = fields.object("metadata").unwrap_or_default();
    let is_hidden = fields.number("weight") == Some(0.0)
        || metadata.is_true("is_visually_hidden_from_conversation");
    let role = author.text("role").unwrap_or_else(|| "unknown".to_owned());
    let kind = content.text("content_type").unwrap_or_default();
    let parts = parts(&kind, &content, fields.get("content"));
    let rest_of_content = content.without(&["parts", "text", "thoughts", "result"]);
    let is_plain = kind == "text" || kind.is_empty();
    let known = ["id", "author", "create_time", "update_time", "content", "metadata", "weight"];
    let about = fields
        .without(&known)
        .with("model", metadata.get("model_slug").cloned())
        .with("author", author.get("name").cloned())
        .with("content", rest_of_content.into_json().filter(|_| !is_plain))
        .with("metadata", metadata.into_json());
    let about = about.into_pairs().into_iter().filter(|(_, value)| !value.is_null());
    let about = about.filter(|(field, value)| field != "recipient" || value.as_str() != "\"all\"");
    let about =
        about.fold(Fields::default(), |about, (field, value)| about.with(&field, Some(value)));
    let mut message = Message::new(role, parts);
    message.metadata = about.into_json();
    message.is_hidden = is_hidden;
    message
}

fn parts(kind: &str, content: &Fields, json: Option<&Json>) -> Vec<Part> {
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
    let extra = summary.map(|summary| ("summary".to_owned(), summary));
    Some(Part::Reasoning(Reasoning { text, extra: extra.into_iter().collect() }))
}

/// Returns a piece of mixed content: text, words that were spoken, or a pointer to a file of the export, with the words that an
/// image was made from.
fn pieces(json: &Json) -> Vec<Part> {
    let Some(fields) = Fields::of(json) else { return vec![text_part(json)] };
    let kind = fields.text("content_type").unwrap_or_default();
    match (kind.as_str(), fields.text("text"), fields.text("asset_pointer")) {
        ("audio_transcription", Some(text), _) => {
            let extra = fields.without(&["text"]).into_pairs().into_iter().collect();
            vec![Part::Text(Text { text, extra })]
        }
        ("image_asset_pointer", _, Some(url)) => {
            let made = fields.object("metadata").and_then(|metadata| metadata.object("dalle"));
            let words = made.and_then(|made| made.text("prompt")).filter(|words| !words.is_empty());
            let mut file = File::default();
            (file.media_type, file.url) = ("image/*".to_owned(), url);
            file.extra.insert("asset".to_owned(), json.clone());
            words.map(Part::text).into_iter().chain([Part::File(file)]).collect()
        }
        _ => vec![data_part(if kind.is_empty() { "value" } else { &kind }, json)],
    }
}
