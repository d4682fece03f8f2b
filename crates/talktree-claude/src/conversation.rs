//! The conversation in a transcript: which message each entry becomes, and which one it follows.
//!
//! A [`Conversation`] keeps ids and positions of all entries and no content. It is fed with every entry; then
//! [`connect`](Conversation::connect) finds the parents of the new ones. Most entries follow one before. Some change what is
//! known of earlier ones: a parent that comes after its child, the name of a tool that comes after its result, the first
//! parent in a transcript without any. Then all are connected again, as if they had come at once.
//!
//! Invariant: after `connect` the result is that of the same entries in one batch.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use talktree::records::Title;
use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{self, Fields};
use talktree::records::order::{arrange, last_end};
use talktree::{
    Compaction, Json, Message, MessageId, Record, SessionDetails, SessionId, SessionInfo, Summary,
};

use crate::entries::{self, Cut, EntryTree, Node, Progress};

/// The metadata key under which a root that lost its parent has the parent's id.
const MISSING_PARENT: &str = "missing_parent";

/// The place of a message among those of a transcript.
type At = u32;

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// How many entries it has read, and how many of them are no message because they cannot be read.
    pub(crate) entries: u64,
    pub(crate) unread: u64,
    tree: EntryTree,
    progress: Progress,
    names: ToolNames,
    title: Title,
    parents: Vec<Option<At>>,
    /// The messages that were connected last, in the order in which they are stored: parents first.
    order: Vec<At>,
    /// Messages whose parent is missing.
    missing: Vec<(At, MessageId)>,
    /// The ids of entries and calls that were looked for and not found.
    awaited: HashSet<MessageId>,
    /// The last message of the main chain, and that of side chains.
    before: [Option<At>; 2],
    /// How many boundaries it has of which the messages that they keep were looked for.
    boundaries: usize,
    /// Whether a message follows one that comes later.
    is_early: bool,
    /// Whether parents form a cycle. A part of it comes before its parent, so any new message may change what it follows.
    is_circular: bool,
    /// Whether an entry has come that changes what earlier ones become.
    is_outdated: bool,
}

impl Conversation {
    pub(crate) fn len(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Reads the next entry.
    pub(crate) fn read(&mut self, entry: &Json) {
        self.entries += 1;
        let Some(fields) = Fields::of(entry) else {
            self.unread += 1;
            return;
        };
        self.note_tools(&fields);
        if let Some(link) = self.progress.read(&fields) {
            self.is_outdated |= self.awaited.contains(&link);
            return;
        }
        let (repeated, is_guessed) = (self.tree.repeated(), self.is_guessed());
        if !self.tree.read(self.entries, entry.as_str(), &fields) {
            return;
        }
        self.is_outdated |= self.tree.repeated() > repeated || self.is_guessed() != is_guessed;
        let Some(node) = self.tree.nodes.last() else { return };
        let (id, time) = (node.id.clone(), node.time.unwrap_or_default());
        let uuid = entries::uuid_of(&fields);
        if self.place(&id) != Some(self.len() as At - 1) {
            // Two ids that differ only in characters that no Rust string can have.
            self.tree.nodes.pop();
            self.unread += 1;
            return;
        }
        self.is_outdated |= uuid.iter().chain([&id]).any(|id| self.awaited.contains(id));
        if !self.title.is_final() {
            let is_plain = self.is_plain(&id);
            self.title.add(&entries::message(fields, id, time, &self.names, is_plain));
        }
    }

    /// Returns whether what entries follow is a guess that no longer counts.
    fn is_guessed(&self) -> bool {
        self.tree.has_guesses && self.tree.is_linked
    }

    fn note_tools(&mut self, fields: &Fields) {
        let mut called = ToolNames::new();
        blocks::collect_names(entries::called(fields).as_ref(), &mut called);
        for (id, name) in called {
            self.is_outdated |= self.awaited.contains(id.as_str());
            let known = self.names.insert(id, name.clone());
            self.is_outdated |= known.is_some_and(|known| known != name);
        }
        let content = fields.object("message").and_then(|message| message.get("content").cloned());
        let answered = blocks::answered(content.as_ref()).into_iter();
        let nameless = answered.filter(|id| !self.names.contains_key(id)).map(MessageId::from);
        self.awaited.extend(nameless);
    }

    /// Finds the parents of the new messages. Returns whether those before them may have another parent, order or content.
    pub(crate) fn connect(&mut self) -> bool {
        let before = self.parents.len();
        self.is_outdated |= self.is_circular;
        if !self.is_outdated {
            self.connect_rest();
        }
        let is_outdated = std::mem::take(&mut self.is_outdated);
        if is_outdated {
            // As if all had come at once.
            (self.before, self.is_early, self.is_circular) = Default::default();
            (self.parents, self.missing) = Default::default();
            self.tree.begin_again();
            self.connect_rest();
            self.is_outdated = false;
        }
        is_outdated && before > 0
    }

    fn connect_rest(&mut self) {
        let from = self.parents.len();
        let progress = &mut self.progress;
        let followed = self.tree.follow(from, |parent| progress.pass(parent));
        let nodes = &self.tree.nodes;
        for (node, parent) in nodes[from..].iter().zip(followed.parents) {
            let at = self.parents.len() as At;
            let before = self.before[usize::from(node.is_side)].replace(at);
            let named = node.parent.iter().filter(|id| !self.tree.index.contains_key(*id));
            self.awaited.extend(named.cloned());
            let found = parent.as_ref().and_then(|parent| self.place(parent));
            self.is_early |= found.is_some_and(|found| found > at);
            self.parents.push(found.or(before.filter(|_| parent.is_some())));
            if let Some(parent) = parent.filter(|_| found.is_none()) {
                self.awaited.insert(parent.clone());
                self.missing.push((at, parent));
            }
        }
        if self.boundaries != self.tree.boundaries() {
            self.boundaries = self.tree.boundaries();
            self.awaited.extend(self.tree.missing_kept().cloned());
        }
        let moved = self.tree.line_up(&mut self.parents);
        self.missing.retain(|(at, _)| !moved.contains(at));
        self.is_early |= moved.iter().any(|at| self.parents[*at as usize] > Some(*at));
        let moves = followed.moves || moved.iter().any(|at| (*at as usize) < from);
        let new = self.parents[from..].iter();
        let mut new: Vec<_> = new.map(|at| at.and_then(|at| at.checked_sub(from as At))).collect();
        let (order, broken) = arrange(&mut new);
        broken.iter().for_each(|at| self.parents[from + *at as usize] = None);
        self.order = order.into_iter().map(|at| at + from as At).collect();
        self.is_outdated |= moves;
        self.is_circular |= followed.is_circular || !broken.is_empty();
    }

    /// Writes the messages and compactions of the entries after so many, which are these.
    pub(crate) fn write<'a>(
        &self,
        to: &mut Vec<Record>,
        after: u64,
        entries: impl Iterator<Item = &'a Json>,
    ) {
        let (entries, now): (Vec<&Json>, _) = (entries.collect(), Utc::now());
        for at in self.order.iter().copied() {
            let line = self.tree.nodes[at as usize].line.checked_sub(after + 1);
            let Some(entry) = line.and_then(|line| entries.get(line as usize)) else { continue };
            let message = self.message(at, entry, now);
            to.push(Record::Message { below: None, message, name: None });
        }
        for cut in self.tree.cuts.iter().filter(|cut| cut.line > after) {
            let Some((first, last)) = self.covered(cut) else { continue };
            let (first, last) = (self.id(first).clone(), self.id(last).clone());
            let mut compaction = Compaction::new(cut.summary.as_str(), first, last);
            compaction.id = cut.id.clone();
            compaction.created_at = cut.created_at.unwrap_or(now);
            let (first_tombstone, last_tombstone) = (None, None);
            to.push(Record::Compaction { compaction, first_tombstone, last_tombstone });
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &MessageId> {
        self.tree.nodes.iter().map(|node| &node.id)
    }

    fn id(&self, at: At) -> &MessageId {
        &self.tree.nodes[at as usize].id
    }

    fn parent(&self, at: At) -> Option<At> {
        self.parents[at as usize]
    }

    /// Returns the message of an entry; `now` is the time of an entry with none before it.
    fn message(&self, at: At, entry: &Json, now: DateTime<Utc>) -> Message {
        let Node { id, time, .. } = &self.tree.nodes[at as usize];
        let (fields, time) = (Fields::of(entry).unwrap_or_default(), time.unwrap_or(now));
        let is_plain = fields.is_true("isCompactSummary") && self.is_plain(id);
        let mut message = entries::message(fields, id.clone(), time, &self.names, is_plain);
        message.is_hidden |= self.tree.is_repeated(id);
        message.parent = self.parent(at).map(|parent| self.id(parent).clone());
        // Metadata that is no object stays as it is.
        let is_object = message.metadata.as_ref().is_none_or(|known| Fields::of(known).is_some());
        if message.parent.is_none()
            && is_object
            && let Ok(found) = self.missing.binary_search_by_key(&at, |(at, _)| *at)
        {
            let parent = serde_json::Value::from(self.missing[found].1.as_str());
            let missing = Fields::default().with(MISSING_PARENT, Some(parent));
            fields::add(&mut message.metadata, missing);
        }
        message
    }

    /// Returns whether an entry is a summary of what is elsewhere.
    fn is_plain(&self, id: &MessageId) -> bool {
        let mut cuts = self.tree.cuts.iter().rev();
        cuts.find(|cut| cut.marker == *id).is_some_and(|cut| self.tree.is_plain(cut))
    }

    fn place(&self, id: &MessageId) -> Option<At> {
        self.tree.index.get(id).copied()
    }

    /// Returns the first and last message that a summary replaces.
    fn covered(&self, cut: &Cut) -> Option<(At, At)> {
        if Summary::new(cut.summary.as_str()).is_blank() || self.tree.is_plain(cut) {
            return None;
        }
        let (after, kept) = self.tree.kept_by(cut, &self.parents);
        let (marker, kept) = (self.place(&cut.marker)?, self.place(kept)?);
        let after = after.map(|after| self.place(after));
        let mut above = Some(marker);
        while above.is_some_and(|at| at != kept) {
            above = above.and_then(|at| self.parent(at));
        }
        let last = self.parent(above?)?;
        let mut first = last;
        while let Some(parent) = self.parent(first).filter(|parent| after != Some(Some(*parent))) {
            first = parent;
        }
        // What it keeps at the beginning is above all that it replaces.
        let is_whole = after.is_none() || self.parent(first).is_some() && after != Some(Some(last));
        is_whole.then_some((first, last))
    }

    /// Returns the message that the conversation ends with.
    pub(crate) fn head(&self) -> Option<&MessageId> {
        let head = self.tree.head().and_then(|id| self.place(id));
        let Some(head) = head else { return self.tree.nodes.last().map(|node| &node.id) };
        let is_side = self.tree.nodes[head as usize].is_side;
        let is_end = |at: At| {
            let node = &self.tree.nodes[at as usize];
            node.is_end && node.is_side == is_side
        };
        let is_connected = self.is_early && self.parents.len() == self.len();
        Some(self.id(if is_connected { last_end(&self.parents, head, is_end) } else { head }))
    }

    /// Returns the details of the session.
    pub(crate) fn details(&self) -> SessionDetails {
        let details = self.tree.details();
        let oldest = || self.tree.nodes.iter().filter_map(|node| node.time).min();
        SessionDetails {
            name: details.name.or_else(|| self.title.line().map(str::to_owned)),
            created_at: details.created_at.or_else(oldest),
            ..details
        }
    }

    /// Returns the time of the last message, if that is old: the entries were written then.
    pub(crate) fn written_long_ago(&self) -> Option<DateTime<Utc>> {
        let last = self.tree.nodes.last().and_then(|node| node.time);
        last.filter(|last| *last < Utc::now() - TimeDelta::minutes(1))
    }

    /// Returns the messages whose parent is missing.
    pub(crate) fn missing_parents(&self) -> Vec<MissingParent> {
        let missing = self.missing.iter();
        let missing = missing.map(|(at, parent)| (self.id(*at).clone(), parent.clone()));
        missing.map(|(message, parent)| MissingParent { message, parent }).collect()
    }
}

/// Returns the details that the entries say now and did not say before. What a program has set stays.
pub(crate) fn changed(
    before: &SessionDetails,
    now: SessionDetails,
    info: Option<&SessionInfo>,
) -> SessionDetails {
    fn new<T: PartialEq>(before: &Option<T>, now: Option<T>, set: Option<&T>) -> Option<T> {
        now.filter(|now| before.as_ref() != Some(now) && before.as_ref() == set)
    }
    let mut changed = SessionDetails::default();
    let Some(info) = info else { return changed };
    changed.name = new(&before.name, now.name, info.name.as_ref());
    changed.model = new(&before.model, now.model, info.model.as_ref());
    changed.parent_session =
        new(&before.parent_session, now.parent_session, info.parent_session.as_ref());
    changed.fork_point = new(&before.fork_point, now.fork_point, info.fork_point.as_ref());
    changed.metadata = new(&before.metadata, now.metadata, info.metadata.as_ref());
    let created_at = before.created_at.as_ref().and(Some(&info.created_at));
    changed.created_at = new(&before.created_at, now.created_at, created_at);
    changed
}

/// A transcript as a session of the store: from [`SessionStore::projection`](crate::SessionStore::projection).
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
/// use talktree_claude::SessionStore;
///
/// let sessions = SessionStore::new(&Store::open_in_memory()?).projecting();
/// let key = TranscriptKey::new("project", "session");
/// let lost = r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"content":"And then?"}}"#;
/// sessions.append(&key, &[Json::parse(lost)?])?;
///
/// let projection = sessions.projection(&key)?.expect("it was projected");
/// assert_eq!(projection.session.as_str(), "session");
/// assert_eq!(projection.missing_parents[0].parent.as_str(), "a");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Projection {
    /// The session that shows the transcript.
    pub session: SessionId,
    /// How many of its entries the session shows, from the first one on.
    pub entries: u64,
    /// How many later entries it does not show, because they were appended by a handle that does not project.
    pub waiting: u64,
    /// How many of the shown entries are not in the session although they are messages: they cannot be read as one, are
    /// too large for one, or were deleted from the session.
    pub left_out: u64,
    /// The messages whose parent is not in the transcript. Each follows the message before it.
    pub missing_parents: Vec<MissingParent>,
    /// Whether the session was changed by others: it was written to, or its head was moved. Such a session gets new messages,
    /// and no message of it moves.
    pub is_changed: bool,
}

/// A message whose parent is not in its transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingParent {
    /// The message.
    pub message: MessageId,
    /// The parent that its entry names.
    pub parent: MessageId,
}

/// The result of [`SessionStore::project_all`](crate::SessionStore::project_all).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProjectionReport {
    /// The number of transcripts that are sessions now.
    pub sessions: u64,
    /// The number of transcripts that are not: they have no messages, or their session was erased for good.
    pub without_session: u64,
    /// The number of messages whose parent is missing.
    pub missing_parents: u64,
    /// The number of entries that are messages and are left out.
    pub left_out: u64,
}
