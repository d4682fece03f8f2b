//! What a reader makes of a file: sessions as they are to be stored.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::fields::Fields;
use super::records::Record;
use super::report::ImportReport;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message};
use crate::outcome::SessionDetails;
use chrono::{DateTime, Utc};

/// What derived ids are made under.
const NAMESPACE: Uuid = Uuid::from_u128(0x7461_6c6b_7472_4565_a5d6_9f0e_1c3b_5a77);

/// Reads one format.
///
/// A record that is a whole conversation is handed out at once; what comes in pieces is noted by
/// id and place and handed out at the end, and each piece is read again when it is written. So no
/// more than one record is in memory.
///
/// Invariant: of each record given to [`read`](Self::read), and each node within it, exactly one is
/// counted: kept or converted when its node is written, or converted or dropped by the reader.
pub(super) trait Reader {
    /// Takes note of a record; returns the conversation it holds, if it is a whole one.
    fn read(&mut self, record: &Record, fields: Fields, report: &mut ImportReport)
    -> Option<Draft>;

    /// Takes note that the next record could not be read.
    fn skip(&mut self) {}

    /// Returns the conversations that came in pieces.
    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft>;

    /// Returns the message of a record that was noted before.
    fn message(&self, record: &Record, fields: Fields, node: &Node) -> Message;
}

/// One conversation, ready to be put in order and stored.
pub(super) struct Draft {
    pub(super) session: SessionId,
    pub(super) details: SessionDetails,
    pub(super) nodes: Vec<Node>,
    pub(super) spans: Vec<Span>,
    pub(super) labels: Vec<DraftLabel>,
    pub(super) head: DraftHead,
    /// The line it begins on.
    pub(super) line: u64,
    /// What becomes of a node whose parent is nowhere.
    pub(super) orphans: Orphans,
    /// Whether it comes from an export: then it says all of what it holds, and is kept unchanged.
    pub(super) is_own: bool,
}

/// One message to be.
pub(super) struct Node {
    pub(super) id: MessageId,
    pub(super) parent: Option<MessageId>,
    pub(super) line: u64,
    /// What tells this content from other content under the same id.
    pub(super) mark: u64,
    /// Whether it belongs to a side chain, apart from the conversation.
    pub(super) is_side: bool,
    pub(super) body: Body,
}

/// Where the content of a node is.
pub(super) enum Body {
    Here(Box<Message>),
    There { offset: u64, bytes: usize },
}

/// A summary to be laid.
pub(super) struct Span {
    pub(super) id: CompactionId,
    pub(super) line: u64,
    /// `None`: the beginning of the path.
    pub(super) first: Option<MessageId>,
    pub(super) last: CompactionEnd,
    /// The node that stands for it in the source's own tree.
    pub(super) marker: Option<MessageId>,
    /// How many messages it stood for when it was made; 0 to count them.
    pub(super) count: u64,
    pub(super) figures: Figures,
    pub(super) summary: String,
    pub(super) details: Option<Json>,
    pub(super) created_at: DateTime<Utc>,
}

/// What a compaction knows of its making, where its source tells.
#[derive(Default)]
pub(super) struct Figures {
    /// 0 to count them.
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
    pub(super) nested: Vec<CompactionId>,
    pub(super) model: Option<String>,
}

pub(super) enum CompactionEnd {
    At(MessageId),
    /// The last message before this one.
    Before(MessageId),
}

pub(super) struct DraftLabel {
    pub(super) name: String,
    pub(super) target: MessageId,
    pub(super) line: u64,
    /// Whether the record is the label and nothing else.
    pub(super) is_record: bool,
}

/// Where the head is to stand.
pub(super) enum DraftHead {
    /// At the last node that was stored.
    Last,
    At(MessageId),
    /// Before the first message.
    Start,
}

/// What becomes of a node whose parent is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    /// It begins a tree.
    BecomeRoots,
    /// It hangs from the node before it in the file, of its own chain: the source loses parents now
    /// and then, and a root would cut the history off.
    FollowTheNodeBefore,
}

impl Draft {
    pub(super) fn new(session: SessionId, line: u64) -> Self {
        Self {
            session,
            details: SessionDetails::default(),
            nodes: Vec::new(),
            spans: Vec::new(),
            labels: Vec::new(),
            head: DraftHead::Last,
            line,
            orphans: Orphans::BecomeRoots,
            is_own: false,
        }
    }

    /// Adds a node, sharing its parent's id where that is the node before.
    pub(super) fn push(&mut self, mut node: Node) {
        if let (Some(parent), Some(before)) = (&node.parent, self.nodes.last())
            && *parent == before.id
        {
            node.parent = Some(before.id.clone());
        }
        self.nodes.push(node);
    }

    /// Returns the id of the node added last.
    pub(super) fn last_id(&self) -> Option<MessageId> {
        self.nodes.last().map(|node| node.id.clone())
    }

    /// Keeps one more field in the session's metadata.
    pub(super) fn add_metadata(&mut self, fields: Vec<(String, Json)>) {
        if fields.is_empty() {
            return;
        }
        let known = self.details.metadata.as_ref().and_then(Fields::of).unwrap_or_default();
        let merged: BTreeMap<String, Json> = known.into_pairs().into_iter().chain(fields).collect();
        let text = serde_json::to_string(&merged).unwrap_or_default();
        self.details.metadata = Json::parse(&text).ok();
    }
}

impl Body {
    pub(super) fn there(record: &Record) -> Self {
        Self::There { offset: record.offset, bytes: record.text.len() }
    }
}

/// Returns the id that these texts always give.
pub(super) fn derive(texts: &[&str]) -> Uuid {
    let mut name = String::new();
    for text in texts {
        // With its length before it, no two lists of texts read the same.
        name.push_str(&format!("{}:{text}", text.len()));
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// Returns what tells this content from other content.
pub(super) fn mark(text: &str) -> u64 {
    derive(&[text]).as_u64_pair().0
}

/// Returns the id as it is given, or a derived one if no message may be stored under it.
pub(super) fn message_id(given: impl Into<MessageId>) -> MessageId {
    let given = given.into();
    match given.check_for_writing() {
        Ok(()) => given,
        Err(_) => derive(&["message", given.as_str()]).to_string().into(),
    }
}

/// Returns the id as it is given, or a derived one if no session may have it.
pub(super) fn session_id(given: impl Into<SessionId>) -> SessionId {
    let given = given.into();
    match given.check() {
        Ok(()) => given,
        Err(_) => derive(&["session", given.as_str()]).to_string().into(),
    }
}

/// Returns the text cut to what fits a name.
pub(super) fn name(text: &str) -> Option<String> {
    let line = text.split(['\n', '\r']).map(str::trim).find(|line| !line.is_empty())?;
    let end = line.char_indices().nth(200).map_or(line.len(), |(end, _)| end);
    Some(line[..end].to_owned())
}

/// Returns the message with its record under the metadata key `source`.
pub(super) fn with_source(mut message: Message, record: &Json) -> Message {
    let known = match &message.metadata {
        None => Fields::default(),
        Some(metadata) => Fields::of(metadata)
            .unwrap_or_else(|| Fields::default().with("metadata", Some(metadata.clone()))),
    };
    message.metadata = known.with("source", Some(record.clone())).into_json();
    message
}
