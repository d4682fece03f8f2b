//! The conversation in a transcript: which message each entry becomes, and which one it follows.
//!
//! A [`Conversation`] keeps ids and positions of all entries and no content. It is fed with every entry; then
//! [`connect`](Conversation::connect) finds the parents of the new ones. Most entries follow one before. Some change what is
//! known of earlier ones: a parent that comes after its child, the name of a tool that comes after its result, the first
//! parent in a transcript without any. Then all are connected again, as if they had come at once.
//!
//! Invariant: after `connect` the result is that of the same entries in one batch.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use talktree::records::Title;
use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{self, Fields};
use talktree::records::ids::message_id;
use talktree::records::order::arrange;
use talktree::{
    Compaction, Json, Message, MessageId, Record, SessionDetails, SessionId, SessionInfo, Summary,
};

use crate::entries::{self, Cut, EntryTree, Node, Progress, Rounds};

/// The metadata key under which a root that lost its parent has the parent's id.
const MISSING_PARENT: &str = "missing_parent";

/// The place of a message among those of a transcript.
type At = u32;

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    tree: EntryTree<()>,
    progress: Progress,
    rounds: Rounds,
    names: ToolNames,
    /// Calls whose results came before their names.
    nameless: HashSet<String>,
    title: Title,
    /// The times of the oldest and the newest message.
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
    entries: u64,
    unread: u64,
    index: HashMap<MessageId, At>,
    parents: Vec<Option<At>>,
    /// The messages in the order in which they are stored: parents first.
    order: Vec<At>,
    /// Messages whose parent is missing.
    missing: Vec<(At, MessageId)>,
    /// The ids that were looked for and not found.
    awaited: HashSet<MessageId>,
    /// The last message of the main chain, and that of side chains.
    before: [Option<At>; 2],
    /// The last message of a transcript in which no entry names its parent.
    chain_before: Option<MessageId>,
    is_connected: bool,
    is_chained: bool,
    /// Whether parents form a cycle. A part of it comes before its parent, so any new message may change what it follows.
    is_circular: bool,
    /// Whether an entry has come that changes what earlier ones become.
    is_outdated: bool,
}

impl Conversation {
    /// Returns how many entries it has read.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns how many of them are no message because they cannot be read.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
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
        if !self.tree.read(self.entries, entry.as_str(), &fields, ()) {
            return;
        }
        let Some(node) = self.tree.nodes.last() else { return };
        let (id, time) = (node.id.clone(), node.time);
        let at = self.tree.nodes.len() as At - 1;
        if self.index.contains_key(&id) {
            // Two ids that differ only in characters that no Rust string can have.
            self.tree.nodes.pop();
            self.unread += 1;
            return;
        }
        if let Some(time) = time {
            self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
            self.newest = self.newest.max(Some(time));
        }
        self.note_links(&fields, &id);
        self.index.insert(id.clone(), at);
        if !self.title.is_final() {
            let cut = self.tree.cuts.last().filter(|cut| cut.marker == id);
            let is_plain = cut.is_some_and(|cut| self.kept_by(cut).is_none());
            let time = time.unwrap_or_default();
            self.title.add(&entries::message(fields, id, time, &self.names, is_plain));
        }
    }

    fn note_tools(&mut self, fields: &Fields) {
        let mut called = ToolNames::new();
        blocks::collect_names(entries::called(fields).as_ref(), &mut called);
        for (id, name) in called {
            let is_other = self.names.get(&id).is_some_and(|known| *known != name);
            self.is_outdated |= is_other || self.nameless.contains(&id);
            self.names.insert(id, name);
        }
        let content = fields.object("message").and_then(|message| message.get("content").cloned());
        for id in blocks::answered(content.as_ref()) {
            if !self.names.contains_key(&id) {
                self.nameless.insert(id);
            }
        }
    }

    /// Notes what a new message says about earlier ones.
    fn note_links(&mut self, fields: &Fields, id: &MessageId) {
        self.is_outdated |= self.awaited.contains(id);
        if self.is_connected {
            return;
        }
        let named = fields.text("parentUuid").map(message_id);
        let named = named.filter(|_| entries::is_link(&entries::kind_of(fields)));
        self.is_connected = self.tree.chain.is_named(id)
            || named.is_some_and(|parent| self.index.contains_key(&parent));
    }

    /// Finds the parents of the new messages. Returns whether those before them may have another parent, order or content.
    pub(crate) fn connect(&mut self) -> bool {
        let from = self.parents.len();
        let is_chained = !self.is_connected && self.tree.chain.is_long(self.tree.nodes.len());
        self.is_outdated |= is_chained != self.is_chained;
        self.is_chained = is_chained;
        for at in from as At..self.tree.nodes.len() as At {
            let (named, before) = self.named_by(at);
            self.is_outdated |= self.rounds.take(&self.tree.nodes[at as usize], named.as_ref());
            self.is_outdated |= self.place_of(named.as_ref()).is_some_and(|parent| parent >= at);
            let parent = self.parent_of(at, named, before);
            self.parents.push(parent);
            self.order.push(at);
        }
        for cut in self.tree.cuts.iter().filter(|cut| !self.index.contains_key(&cut.kept)) {
            self.awaited.insert(cut.kept.clone());
        }
        let is_outdated = std::mem::take(&mut self.is_outdated) || self.is_circular;
        if is_outdated {
            self.connect_all();
        }
        is_outdated && from > 0
    }

    /// Finds the parents of all messages, as if they had come at once.
    fn connect_all(&mut self) {
        (self.before, self.chain_before) = ([None; 2], None);
        (self.parents, self.missing) = Default::default();
        let all = 0..self.tree.nodes.len() as At;
        let (named, before): (Vec<_>, Vec<_>) = all.clone().map(|at| self.named_by(at)).unzip();
        let place = |id: &MessageId| self.index.get(id).copied();
        let (rounds, is_circular) = Rounds::of(&self.tree.nodes, &named, place);
        self.rounds = rounds;
        for ((at, named), before) in all.zip(named).zip(before) {
            let parent = self.parent_of(at, named, before);
            self.parents.push(parent);
        }
        let (order, broken) = arrange(&mut self.parents);
        self.order = order;
        self.is_circular = is_circular || !broken.is_empty();
    }

    /// Returns the parent that the entry of a message names, and the message before it in its chain.
    fn named_by(&mut self, at: At) -> (Option<MessageId>, Option<At>) {
        let Node { id, parent, is_side, .. } = &self.tree.nodes[at as usize];
        let mut parent = self.progress.pass(parent.clone());
        if self.is_chained {
            parent = self.tree.chain.follow(id, parent, &mut self.chain_before);
        }
        (parent, self.before[usize::from(*is_side)].replace(at))
    }

    fn place_of(&self, id: Option<&MessageId>) -> Option<At> {
        self.index.get(id?).copied()
    }

    fn parent_of(&mut self, at: At, named: Option<MessageId>, before: Option<At>) -> Option<At> {
        let parent = self.rounds.parent_of(&self.tree.nodes[at as usize], named)?;
        let found = self.place_of(Some(&parent));
        if found.is_none() {
            self.awaited.insert(parent.clone());
            self.missing.push((at, parent));
        }
        found.or(before)
    }

    /// Writes the messages and compactions of the entries after so many, which are these.
    pub(crate) fn write<'a>(
        &self,
        to: &mut Vec<Record>,
        after: u64,
        entries: impl Iterator<Item = &'a Json>,
    ) {
        let (entries, now): (Vec<&Json>, _) = (entries.collect(), Utc::now());
        let new = self.tree.nodes.partition_point(|node| node.line <= after);
        for at in self.order.iter().copied().filter(|at| *at as usize >= new) {
            let line = self.tree.nodes[at as usize].line;
            let Some(entry) = entries.get((line - after) as usize - 1) else { continue };
            let parent = self.parent(at).map(|parent| self.id(parent).clone());
            let mut message = self.message(at, entry, now);
            message.parent = parent;
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
        let fields = Fields::of(entry).unwrap_or_default();
        let Node { id, time, .. } = &self.tree.nodes[at as usize];
        let is_plain = fields.is_true("isCompactSummary")
            && self.tree.cuts.iter().any(|cut| cut.marker == *id && self.kept_by(cut).is_none());
        let time = time.unwrap_or(now);
        let mut message = entries::message(fields, id.clone(), time, &self.names, is_plain);
        if self.parent(at).is_none()
            && let Ok(found) = self.missing.binary_search_by_key(&at, |(at, _)| *at)
        {
            let parent = serde_json::Value::from(self.missing[found].1.as_str());
            let more = vec![(MISSING_PARENT.to_owned(), Json::from(parent))];
            // Metadata that is no object stays as it is.
            if message.metadata.as_ref().is_none_or(|known| Fields::of(known).is_some()) {
                fields::add(&mut message.metadata, more);
            }
        }
        message
    }

    fn kept_by<'a>(&'a self, cut: &'a Cut) -> Option<&'a MessageId> {
        self.tree.kept_by(cut, |kept| self.index.contains_key(kept))
    }

    /// Returns the first and last message that a summary replaces.
    fn covered(&self, cut: &Cut) -> Option<(At, At)> {
        if Summary::new(cut.summary.as_str()).is_blank() {
            return None;
        }
        let marker = *self.index.get(&cut.marker)?;
        let kept = *self.index.get(self.kept_by(cut)?)?;
        let mut above = Some(marker);
        while above.is_some_and(|at| at != kept) {
            above = above.and_then(|at| self.parent(at));
        }
        let last = self.parent(above?)?;
        let mut first = last;
        while let Some(parent) = self.parent(first) {
            first = parent;
        }
        Some((first, last))
    }

    /// Returns the message that the conversation ends with.
    pub(crate) fn head(&self) -> Option<&MessageId> {
        let head = self.tree.head().filter(|id| self.index.contains_key(*id));
        head.or_else(|| self.tree.nodes.last().map(|node| &node.id))
    }

    /// Returns the details of the session, without its parent.
    pub(crate) fn details(&self) -> SessionDetails {
        let details = self.tree.details(|id| self.index.contains_key(id));
        SessionDetails {
            name: details.name.or_else(|| self.title.line().map(str::to_owned)),
            created_at: details.created_at.or(self.oldest),
            parent_session: None,
            ..details
        }
    }

    /// Returns the time of the newest message, if that is old: the entries were written then.
    pub(crate) fn written_long_ago(&self) -> Option<DateTime<Utc>> {
        self.newest.filter(|newest| *newest < Utc::now() - TimeDelta::minutes(1))
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

impl ProjectionReport {
    pub(crate) fn add(&mut self, projection: Option<&Projection>) {
        let Some(projection) = projection else {
            self.without_session += 1;
            return;
        };
        self.sessions += 1;
        self.missing_parents += projection.missing_parents.len() as u64;
        self.left_out += projection.left_out;
    }
}
