//! What the readers of agents' logs share: a conversation that grows by one message after the other, and small messages.
//!
//! A log is imported while it grows. So what a record becomes depends on what is before it alone, and a message is never
//! changed later: what a log tells of an answer afterwards, such as its tokens, is a message of its own.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Utc};
use talktree::{Json, Message, MessageId, Part, Role, SessionId, Usage};

use crate::draft::{Body, Draft, DraftCompaction, Node, Origin, derive, fingerprint, with_source};
use crate::fields::{Fields, data_part};
use crate::records::Record;

/// A conversation in which each message follows the one before it, until the log goes back.
pub(super) struct Chain {
    pub(super) draft: Draft,
    /// What the next message follows.
    pub(super) tip: Option<MessageId>,
}

impl Chain {
    pub(super) fn new(session: SessionId, line: u64) -> Self {
        Self { draft: Draft::new(session, line), tip: None }
    }

    /// Adds a message; `text` is what tells its content from another one.
    pub(super) fn add(&mut self, id: MessageId, line: u64, text: &str, body: Body) {
        let parent = self.tip.replace(id.clone());
        self.draft.push(Node::new(id, parent, line, fingerprint(text), body));
    }

    /// Replaces what is before the message `kept` by a summary. The message added last is the compaction in the log.
    pub(super) fn compact(
        &mut self,
        kept: Option<MessageId>,
        summary: String,
        details: Option<Json>,
        created_at: DateTime<Utc>,
    ) {
        let Some(marker) = self.draft.nodes.last() else { return };
        let (marker, line) = (marker.id.clone(), marker.line);
        let kept = kept.unwrap_or_else(|| marker.clone());
        let compaction = DraftCompaction::new(marker, line, kept, summary, created_at);
        self.draft.compactions.push(DraftCompaction { details, ..compaction });
    }

    /// Returns the conversation, whose head is where the log ends.
    pub(super) fn close(mut self) -> Draft {
        self.draft.is_at_start = self.tip.is_none() && !self.draft.nodes.is_empty();
        self.draft.head = self.tip;
        self.draft.is_head_given = true;
        self.draft
    }
}

/// Derives ids from contents. Equal records are numbered, so that each has its own id, and the same one in every copy of the log. A
/// record that comes twice in a row was written twice.
#[derive(Default)]
pub(super) struct Contents {
    seen: HashMap<u64, u32>,
    before: Option<(u64, MessageId)>,
}

impl Contents {
    /// Returns the id of the message with this content; `record` is all of its record.
    pub(super) fn id(&mut self, scope: &[&str], content: &str, record: &str) -> MessageId {
        let written = hash(record);
        if let Some((before, id)) = &self.before
            && *before == written
        {
            return id.clone();
        }
        let count = self.seen.entry(hash(content)).or_default();
        *count += 1;
        let number = count.to_string();
        let id = derive(&[scope, &[content, &number]].concat());
        let id = MessageId::from(id.to_string());
        self.before = Some((written, id.clone()));
        id
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The models of a log, each with the line from which on it answers.
#[derive(Default)]
pub(super) struct Models(Vec<(u64, String)>);

impl Models {
    pub(super) fn push(&mut self, line: u64, model: Option<String>) {
        self.0.extend(model.map(|model| (line, model)));
    }

    /// Returns the model that answers in this line.
    pub(super) fn at(&self, line: u64) -> Option<&String> {
        let after = self.0.partition_point(|(from, _)| *from <= line);
        after.checked_sub(1).map(|at| &self.0[at].1)
    }
}

/// Returns the body of a message: where its record is, unless that one holds others, too; then `source` is its own.
pub(super) fn body(
    message: Message,
    record: &Record,
    source: Option<&Json>,
    from: &Origin,
) -> Body {
    match source {
        Some(source) => here(message, from.keeps_source.then_some(source)),
        None => Body::There(record.place()),
    }
}

/// Returns a hidden message that keeps a record which nobody said.
pub(super) fn aside(kind: &str, record: &Fields) -> Message {
    let record = record.clone().into_json();
    Message::new(kind, record.iter().map(|record| data_part(kind, record)).collect()).hidden()
}

/// Returns a hidden answer that only says what answers took, for a log that tells it apart from them.
pub(super) fn spent(usage: &Usage) -> Message {
    Message::new(Role::Assistant, Vec::new()).with_usage(usage).hidden()
}

/// Returns the body of a message that a record holds beside others.
pub(super) fn here(message: Message, source: Option<&Json>) -> Body {
    Body::Here(Box::new(with_source(message, source)))
}

/// Returns a text as JSON.
pub(super) fn json(text: &str) -> Json {
    Json::from(serde_json::Value::from(text))
}

/// Returns the texts of these parts, one below the other.
pub(super) fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns whether a program wrote these texts in a person's name: each begins with one of these openings, and nothing
/// follows the element that it opens.
pub(super) fn is_context(parts: &[Part], openings: &[&str]) -> bool {
    let is_written = |part: &Part| match part {
        Part::Text(text) => {
            let text = text.text.trim();
            let is_open = openings.iter().any(|opening| text.starts_with(opening));
            is_open && (text.ends_with('>') || !text.contains("</"))
        }
        _ => false,
    };
    !parts.is_empty() && parts.iter().all(is_written)
}
