//! Drafts: the conversations that a reader makes of a file, ready to be stored.

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::{
    CompactionId, Json, Message, MessageId, Record as Stored, SessionDetails, SessionId,
};

use crate::fields::{self, Fields};
use crate::records::{Place, Record};

pub(crate) use talktree::records::ids::{derive, fingerprint, message_id, name, session_id};

/// What holds for all records of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The name of the file.
    pub(crate) file: String,
    pub(crate) keeps_source: bool,
    /// The time of messages that have none.
    pub(crate) now: DateTime<Utc>,
}

/// Reads one format.
///
/// A record that is a whole conversation is returned at once. Of a conversation in several records,
/// only ids and positions are kept; it is returned at the end, and each record is read again when
/// it is written. So at most one record is in memory.
///
/// Invariant: of each record given to [`read`](Self::read), and each node within it, exactly one is
/// counted: kept or converted when its node is written, or converted or dropped by the reader.
pub(crate) trait Reader {
    /// Reads a record; returns the conversation if the record is a whole one.
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft>;

    /// Notes a record that cannot be read; `text` is what was kept of it, which may be nothing.
    fn pass_damaged(&mut self, _line: u64, _text: &[u8]) {}

    /// Returns the conversation of several records that ends with the record read last, if the format has such.
    fn close(&mut self, _report: &mut ImportReport) -> Option<Draft> {
        None
    }

    /// Returns the conversations that end with the file.
    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        self.close(report).into_iter().collect()
    }

    /// Returns the message of a record that was read before, which is stored under this id; none if a draft names no record but
    /// has the messages.
    fn message(&self, _record: &Record, _fields: Fields, _id: &MessageId) -> Option<Message> {
        None
    }

    /// Returns what replaces a message, by the fields of an edit; in a format without edits, the message.
    fn replacement(&self, _edit: &Fields, message: Message) -> Message {
        message
    }
}

/// One conversation, ready to be sorted and stored.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) session: SessionId,
    pub(crate) details: SessionDetails,
    pub(crate) nodes: Vec<Node>,
    pub(crate) compactions: Vec<DraftCompaction>,
    pub(crate) labels: Vec<DraftLabel>,
    pub(crate) edits: Vec<DraftEdit>,
    /// The head, or a node above it; `None` for the last of the file.
    pub(crate) head: Option<MessageId>,
    /// Whether the source names its head: then it stays there, even if that message has children.
    pub(crate) is_head_given: bool,
    /// Which nodes are notes of the program, with which no conversation ends; none if it is shorter than the nodes.
    pub(crate) notes: Vec<bool>,
    /// The line it begins on.
    pub(crate) line: u64,
    /// What becomes of a node whose parent is nowhere.
    pub(crate) orphans: Orphans,
    /// How many bytes of its records are in memory.
    pub(crate) bytes: usize,
    /// Whether it comes from an export of talktree, and says exactly what the session is.
    pub(crate) is_exact: bool,
    /// Records of such an export that refer to messages, with their lines; no labels.
    pub(crate) attached: Vec<(u64, Stored)>,
    /// Whether its head is before the first message.
    pub(crate) is_at_start: bool,
    /// The number of its records that are counted as converted.
    pub(crate) records: u64,
    /// Set if the source gives the conversation no id: then the session is found by its content.
    pub(crate) unnamed: Option<Unnamed>,
    /// Set if a copy of a conversation has the same ids: the first message with an id of its own.
    pub(crate) first: Option<MessageId>,
    /// The session of the same conversation from a source that has more of it: if the store has that one, this one is left out.
    pub(crate) unless: Option<SessionId>,
}

/// A conversation without an id.
pub(crate) struct Unnamed {
    pub(crate) format: &'static str,
    /// Its number among the conversations of the file with the same opening.
    pub(crate) count: u64,
    /// How many of its messages are the opening: all up to the first that is no instruction.
    pub(crate) opening: usize,
    /// The name of the file; none for standard input.
    pub(crate) file: Option<String>,
}

impl Unnamed {
    /// Returns the only conversation of a file.
    pub(crate) fn only(format: &'static str, opening: usize, from: &Origin) -> Self {
        let file = Some(from.file.clone()).filter(|file| !matches!(file.as_str(), "" | "-"));
        Self { format, count: 1, opening, file }
    }
}

/// One message to be.
pub(crate) struct Node {
    pub(crate) id: MessageId,
    pub(crate) parent: Option<MessageId>,
    pub(crate) line: u64,
    /// Distinguishes this content from other content under the same id.
    pub(crate) fingerprint: u64,
    /// Whether it belongs to a side chain, apart from the conversation.
    pub(crate) is_side: bool,
    /// Whether a later entry hides it.
    pub(crate) is_hidden: bool,
    pub(crate) body: Body,
}

impl Node {
    /// Returns the node of the main chain.
    pub(crate) fn new(
        id: MessageId,
        parent: Option<MessageId>,
        line: u64,
        fingerprint: u64,
        body: Body,
    ) -> Self {
        Self { id, parent, line, fingerprint, is_side: false, is_hidden: false, body }
    }

    /// Returns the node of a message. Two nodes are equal if role and parts are, so two forms of one source give the same node.
    /// `place` is where its record is, if the record is one message.
    pub(crate) fn of(
        message: Message,
        parent: Option<MessageId>,
        line: u64,
        place: Option<Place>,
    ) -> Self {
        let shown = serde_json::to_string(&message.parts).unwrap_or_default();
        let (id, is_hidden) = (message.id.clone(), message.is_hidden);
        let fingerprint = fingerprint(&format!("{} {}", message.role, canonical(&shown)));
        let body = place.map_or_else(|| Body::Here(Box::new(message)), Body::There);
        Self { is_hidden, ..Self::new(id, parent, line, fingerprint, body) }
    }
}

/// Where the content of a node is.
pub(crate) enum Body {
    Here(Box<Message>),
    There(Place),
    /// Of a deleted message there is only the place.
    Tombstone(Box<Stored>),
}

/// One compaction of the source: its summary replaces the path from `after`, or from the root, to `kept`.
pub(crate) struct DraftCompaction {
    pub(crate) id: CompactionId,
    pub(crate) line: u64,
    /// The last message that it keeps before what it replaces.
    pub(crate) after: Option<MessageId>,
    /// The first message that it keeps.
    pub(crate) kept: MessageId,
    /// The node that is the compaction in the source's own tree.
    pub(crate) marker: MessageId,
    pub(crate) summary: String,
    pub(crate) details: Option<Json>,
    pub(crate) created_at: DateTime<Utc>,
}

impl DraftCompaction {
    /// Returns the compaction that a node is, of all before `kept`.
    pub(crate) fn new(
        marker: MessageId,
        line: u64,
        kept: MessageId,
        summary: String,
        created_at: DateTime<Utc>,
    ) -> Self {
        let (id, after, details) = (CompactionId::from(marker.as_str()), None, None);
        Self { id, line, after, kept, marker, summary, details, created_at }
    }
}

pub(crate) struct DraftLabel {
    pub(crate) name: String,
    pub(crate) target: MessageId,
    pub(crate) line: u64,
}

/// An entry that hides or replaces an earlier message.
pub(crate) struct DraftEdit {
    /// The node that is the edit in the source's own tree.
    pub(crate) id: MessageId,
    pub(crate) target: MessageId,
    pub(crate) is_replacement: bool,
    pub(crate) line: u64,
}

/// What becomes of a node whose parent is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Orphans {
    /// It begins a tree.
    #[default]
    BecomeRoots,
    /// It becomes a child of the node before it in the file, in the same chain: some sources lose
    /// parents, and a new root would cut the history off.
    FollowTheNodeBefore,
}

impl Draft {
    pub(crate) fn new(session: SessionId, line: u64) -> Self {
        Self { session, line, ..Self::default() }
    }

    /// Adds a node; shares its parent's id if that is the previous node.
    pub(crate) fn push(&mut self, mut node: Node) {
        if let (Some(parent), Some(before)) = (&node.parent, self.nodes.last())
            && *parent == before.id
        {
            node.parent = Some(before.id.clone());
        }
        self.nodes.push(node);
    }

    /// Returns the id of the node added last.
    pub(crate) fn last_id(&self) -> Option<MessageId> {
        self.nodes.last().map(|node| node.id.clone())
    }

    /// Keeps more fields in the session's metadata.
    pub(crate) fn add_metadata(&mut self, more: Fields) {
        fields::add(&mut self.details.metadata, more);
    }
}

/// Returns canonical JSON, so that a source may spell it differently the next time.
pub(crate) fn canonical(json: &str) -> String {
    Json::parse(json).map_or_else(|_| json.to_owned(), |json| json.canonical())
}

/// Returns the message with its record, if it is to be kept, under the metadata key `source`.
pub(crate) fn with_source(mut message: Message, record: Option<&Json>) -> Message {
    let Some(record) = record else { return message };
    let known = match &message.metadata {
        None => Fields::default(),
        Some(metadata) => Fields::of(metadata)
            .unwrap_or_else(|| Fields::default().with("metadata", Some(metadata.clone()))),
    };
    message.metadata = known.with("source", Some(record.clone())).into_json();
    message
}
