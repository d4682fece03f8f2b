//! OpenAssistant message trees.
//!
//! Nested: a record is a tree, each message with its `replies` inside it; its `prompt` is the root, or it is the root
//! itself. Flat: a record is a message; a tree has one `message_tree_id` or, without that field, one root. Deleted messages are
//! kept, and marked in the metadata.

use std::collections::HashMap;

use crate::report::ImportReport;
use talktree::{Json, Message, MessageId, Role};

use super::chain::here;
use super::linear;
use crate::draft::{
    Body, Draft, Node, Origin, Reader, canonical, fingerprint, message_id, session_id,
};
use crate::fields::{Fields, text_part};
use crate::order::{Shape, arrange};
use crate::records::Record;

/// The field with the time of a message.
const TIME: &str = "created_date";

/// Reads OpenAssistant trees.
#[derive(Default)]
pub(crate) struct OpenAssistant {
    pub(super) from: Origin,
    flat: Vec<Flat>,
}

/// A message that is one record.
struct Flat {
    node: Node,
    tree: Option<String>,
    rank: Option<f64>,
}

impl OpenAssistant {
    /// Takes a nested tree apart: its messages, parents first, and their ranks.
    fn take_apart(
        &mut self,
        line: u64,
        tree: &str,
        report: &mut ImportReport,
    ) -> (Vec<Node>, Vec<Option<f64>>) {
        let nested = unnest(tree, "replies");
        let mut ids: Vec<Option<MessageId>> = Vec::with_capacity(nested.len());
        let (mut ranks, mut nodes) = (Vec::new(), Vec::new());
        for Nested { parent, text } in &nested {
            report.records += 1;
            let fields = Fields::parse(text).ok();
            let (Some(fields), Some(id)) = (fields.clone(), fields.as_ref().and_then(id_of)) else {
                report.lose(line, "a message of the tree has no message_id");
                // Its replies become children of its parent.
                ids.push(parent.and_then(|parent| ids[parent].clone()));
                continue;
            };
            let id = message_id(id);
            report.check_times(line, &[(&fields, TIME)], "the time of the import");
            ranks.push(fields.number("rank"));
            // Only a root names a message outside of its tree.
            let outside = outer_parent(&fields).filter(|_| parent.is_none()).map(message_id);
            let source = Some(text).filter(|_| self.from.keeps_source);
            let source = source.and_then(|text| Json::parse(text).ok());
            let body = here(self.message_of(fields).with_id(id.clone()), source.as_ref());
            let parent = parent.and_then(|parent| ids[parent].clone()).or(outside);
            let fingerprint = fingerprint(&canonical(text));
            nodes.push(Node::new(id.clone(), parent, line, fingerprint, body));
            ids.push(Some(id));
        }
        (nodes, ranks)
    }

    fn tree(
        &mut self,
        line: u64,
        record: Fields,
        prompt: &Json,
        report: &mut ImportReport,
    ) -> Option<Draft> {
        let (mut nodes, ranks) = self.take_apart(line, prompt.as_str(), report);
        let root = nodes.first_mut()?;
        root.parent = None;
        let given = record.id("message_tree_id").unwrap_or_else(|| root.id.to_string());
        let mut draft = Draft::new(session_id(given), line);
        draft.add_metadata(record.without(&["message_tree_id", "prompt"]));
        draft.head = head(&nodes, &ranks);
        draft.nodes = nodes;
        Some(draft)
    }

    fn message_of(&self, fields: Fields) -> Message {
        let role = match fields.text("role").unwrap_or_default().as_str() {
            "prompter" => Role::User,
            "" => Role::from("unknown"),
            role => Role::from(role),
        };
        let time = fields.time(TIME).unwrap_or(self.from.now);
        let parts = fields.get("text").map(text_part).into_iter().collect();
        let known = [
            "message_id",
            "user_message_id",
            "parent_id",
            "parent_message_id",
            "message_tree_id",
            "text",
            "role",
            "replies",
            TIME,
        ];
        linear::message(role, parts, fields.without(&known)).at(time)
    }
}

impl Reader for OpenAssistant {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        if let Some(prompt) = entry.get("prompt").cloned() {
            return self.tree(record.line, entry, &prompt, report);
        }
        let tree = entry.id("message_tree_id");
        if entry.get("replies").is_some_and(|replies| replies.as_str().contains('{')) {
            let (nodes, ranks) = self.take_apart(record.line, &record.text, report);
            // Together even if a message without an id was the only tie.
            let tree = tree.or_else(|| Some(nodes.first()?.id.to_string()));
            let taken = nodes.into_iter().zip(ranks);
            self.flat.extend(taken.map(|(node, rank)| Flat { node, tree: tree.clone(), rank }));
            return None;
        }
        report.records += 1;
        let Some(id) = id_of(&entry) else {
            report.lose(record.line, "a message without an id");
            return None;
        };
        report.check_times(record.line, &[(&entry, TIME)], "the time of the import");
        let parent = outer_parent(&entry).map(message_id);
        let fingerprint = fingerprint(&canonical(&record.text));
        let (line, body) = (record.line, Body::There(record.place()));
        let node = Node::new(message_id(id), parent, line, fingerprint, body);
        self.flat.push(Flat { node, tree, rank: entry.number("rank") });
        None
    }

    fn finish(&mut self, _: &mut ImportReport) -> Vec<Draft> {
        let flat = std::mem::take(&mut self.flat);
        let mut trees: Vec<(String, Vec<Flat>)> = Vec::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for (root, message) in roots(&flat).into_iter().zip(flat) {
            let name = message.tree.clone().unwrap_or(root);
            let tree = *by_name.entry(name.clone()).or_insert_with(|| {
                trees.push((name, Vec::new()));
                trees.len() - 1
            });
            trees[tree].1.push(message);
        }
        trees.into_iter().map(|(name, messages)| flat_draft(name, messages)).collect()
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        Some(self.message_of(fields))
    }
}

fn id_of(fields: &Fields) -> Option<String> {
    fields.id("message_id").or_else(|| fields.id("user_message_id"))
}

fn outer_parent(fields: &Fields) -> Option<String> {
    fields.id("parent_id").or_else(|| fields.id("parent_message_id"))
}

fn flat_draft(tree: String, messages: Vec<Flat>) -> Draft {
    let line = messages.first().map_or(1, |message| message.node.line);
    let mut draft = Draft::new(session_id(tree), line);
    let ranks: Vec<Option<f64>> = messages.iter().map(|message| message.rank).collect();
    messages.into_iter().for_each(|message| draft.push(message.node));
    draft.head = head(&draft.nodes, &ranks);
    draft
}

/// Returns the id of each message's root.
fn roots(messages: &[Flat]) -> Vec<String> {
    let mut parents = parents_of(messages.iter().map(|message| &message.node));
    let (order, _) = arrange(&mut parents);
    let shape = Shape::new(&parents, &order);
    shape.roots.iter().map(|root| messages[*root as usize].node.id.to_string()).collect()
}

fn parents_of<'a>(nodes: impl Iterator<Item = &'a Node> + Clone) -> Vec<Option<u32>> {
    let index: HashMap<&MessageId, u32> =
        nodes.clone().enumerate().map(|(at, node)| (&node.id, at as u32)).collect();
    nodes.map(|node| node.parent.as_ref().and_then(|parent| index.get(parent)).copied()).collect()
}

/// Returns the leaf that the best replies lead to from the first root.
fn head(nodes: &[Node], ranks: &[Option<f64>]) -> Option<MessageId> {
    let mut best: Vec<Option<usize>> = vec![None; nodes.len()];
    let parents = parents_of(nodes.iter());
    let rank = |at: usize| ranks[at].unwrap_or(f64::INFINITY);
    for (at, parent) in parents.iter().enumerate() {
        if let Some(best) = parent.map(|parent| &mut best[parent as usize])
            && best.is_none_or(|other| rank(at) < rank(other))
        {
            *best = Some(at);
        }
    }
    let mut at = parents.iter().position(Option::is_none)?;
    while let Some(next) = best[at] {
        at = next;
    }
    Some(nodes[at].id.clone())
}

/// A message taken out of the tree it was nested in.
pub(super) struct Nested {
    pub(super) parent: Option<usize>,
    /// The message, with its replies taken out.
    pub(super) text: String,
}

/// Splits a nested tree into messages, each before its replies, which are in the list of this name.
///
/// One pass over the text: a recursive parser fails below 128 levels, and one that keeps each
/// level's replies as text is quadratic in the depth.
pub(super) fn unnest(tree: &str, list: &str) -> Vec<Nested> {
    let list = format!("\"{list}\"");
    enum Level {
        /// Inside a message: which one, and how many of its brackets are open.
        Message(usize, u32),
        /// Inside a list of replies to a message.
        Replies(usize),
    }
    let mut nested: Vec<(Option<usize>, Vec<u8>)> = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let (mut in_string, mut is_escaped) = (false, false);
    // The start of the last string, and whether a colon followed it.
    let (mut string_start, mut is_key) = (0, false);
    for &byte in tree.as_bytes() {
        let (at, depth) = match levels.last_mut() {
            Some(Level::Message(at, depth)) => (*at, depth),
            level => {
                let parent = match level {
                    Some(Level::Replies(parent)) => Some(*parent),
                    _ => None,
                };
                match byte {
                    b'{' => {
                        levels.push(Level::Message(nested.len(), 1));
                        nested.push((parent, vec![b'{']));
                        is_key = false;
                    }
                    b']' => drop(levels.pop()),
                    _ => {}
                }
                continue;
            }
        };
        let text = &mut nested[at].1;
        text.push(byte);
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' if in_string => in_string = false,
            _ if in_string => {}
            b'"' => (string_start, in_string, is_key) = (text.len() - 1, true, false),
            b':' => {
                let before = &text[string_start..text.len() - 1];
                is_key = *depth == 1 && before.trim_ascii_end() == list.as_bytes();
            }
            b'[' if is_key => {
                text.push(b']');
                is_key = false;
                levels.push(Level::Replies(at));
            }
            b'{' | b'[' => *depth += 1,
            b'}' | b']' => {
                *depth -= 1;
                if *depth == 0 {
                    levels.pop();
                }
            }
            _ => is_key &= byte.is_ascii_whitespace(),
        }
    }
    // Cut at ASCII bytes only, so it is still UTF-8.
    let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
    nested.into_iter().map(|(parent, bytes)| Nested { parent, text: text(bytes) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_tree_is_taken_apart() {
        let tree = r#"{"id":"a","x":{"replies":[1]},"replies": [{"id":"b \" [","replies":[]},
                       {"replies":[{"id":"d"}],"id":"c"}],"y":"replies"}"#;
        let parts: Vec<_> =
            unnest(tree, "replies").into_iter().map(|n| (n.parent, n.text)).collect();
        assert_eq!(
            parts,
            [
                (None, r#"{"id":"a","x":{"replies":[1]},"replies": [],"y":"replies"}"#.to_owned()),
                (Some(0), r#"{"id":"b \" [","replies":[]}"#.to_owned()),
                (Some(0), r#"{"replies":[],"id":"c"}"#.to_owned()),
                (Some(2), r#"{"id":"d"}"#.to_owned()),
            ]
        );
    }
}
