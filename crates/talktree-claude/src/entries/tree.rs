//! The entries of one session, while they are read in order.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{self, Fields};
use talktree::records::ids::{derive, fingerprint, message_id, name, session_id};
use talktree::{CompactionId, Json, Message, MessageId, Role, SessionDetails};

use super::rounds::{Rounds, Share};
use super::{SYNTHETIC, is_link, is_said, kind_of, named, uuid_of};

/// The metadata key of a session that says whether a background process wrote it.
pub const SESSION_KIND: &str = "sessionKind";
/// The metadata key of a session that names the one in which it was continued.
pub const CONTINUED_IN: &str = "continuedInSessionId";

/// An entry that becomes a message.
#[derive(Debug, Clone)]
pub struct Node {
    /// The id of the message.
    pub id: MessageId,
    /// The entry that it follows.
    pub parent: Option<MessageId>,
    /// The line of the entry, or its number.
    pub line: u64,
    /// Whether it belongs to a side chain, apart from the conversation.
    pub is_side: bool,
    /// What it is to the answer of a model.
    pub share: Share,
    /// Its time; without one that of the entries before it.
    pub time: Option<DateTime<Utc>>,
    /// Whether the entry has an id of its own.
    pub is_named: bool,
    /// Whether it follows the entry before it only as long as no entry names its parent.
    is_guess: bool,
    /// Whether the conversation may end with it: a word of a person or of the model, on the main chain.
    pub is_end: bool,
}

/// A compaction: its summary replaces a part of the path to it.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The id of the compaction.
    pub id: CompactionId,
    /// The line of the entry with the summary.
    pub line: u64,
    /// The entry before the summary, which should be a boundary.
    boundary: Option<MessageId>,
    /// The entry with the summary.
    pub marker: MessageId,
    /// The summary.
    pub summary: String,
    /// Its time; without one that of the entries before it.
    pub created_at: Option<DateTime<Utc>>,
}

/// What a boundary says about the messages that its compaction keeps.
#[derive(Debug, Clone, Default)]
struct Boundary {
    /// The messages, or the first and the last.
    kept: Vec<MessageId>,
    /// Whether they come before what the summary replaces.
    is_prefix: bool,
}

impl Boundary {
    /// Reads an entry. The list of messages is newer than their ends, and may be shorter.
    fn of(id: &MessageId, entry: &Fields) -> (Self, bool) {
        let about = entry.object("compactMetadata").unwrap_or_default();
        let [list, ends] = ["preservedMessages", "preservedSegment"].map(|name| about.object(name));
        let listed = list.as_ref().and_then(|list| list.list("uuids")).unwrap_or_default();
        let mut kept: Vec<_> = listed.iter().filter_map(fields::id).map(message_id).collect();
        let is_list = !kept.is_empty();
        if let Some(ends) = ends.as_ref().filter(|_| !is_list) {
            kept = ["headUuid", "tailUuid"].iter().filter_map(|end| named(ends, end)).collect();
        }
        let anchor = list.filter(|_| is_list).or(ends).and_then(|kept| named(&kept, "anchorUuid"));
        (Self { kept, is_prefix: anchor.as_ref() == Some(id) }, is_list)
    }
}

/// The newest part of an answer.
#[derive(Debug, Clone)]
struct LastPart {
    id: MessageId,
    parent: Option<MessageId>,
    answer: String,
    is_side: bool,
    content: Option<Json>,
}

impl LastPart {
    /// Returns whether a part that comes next has all of this one, with more text.
    fn grows_into(&self, next: &Self) -> bool {
        let is_same = (&self.answer, self.is_side) == (&next.answer, next.is_side);
        let is_next = next.parent.as_ref() == Some(&self.id) || next.parent == self.parent;
        if !is_same || !is_next || self.id == next.id {
            return false;
        }
        let blocks = |part: &Self| part.content.as_ref().and_then(fields::list).unwrap_or_default();
        let (one, other) = (blocks(self), blocks(next));
        let mut pairs = one.iter().zip(&other);
        !one.is_empty()
            && one.len() <= other.len()
            && pairs.all(|(one, other)| one == other || has_grown(one, other))
    }
}

/// Returns whether a block of text has become longer.
fn has_grown(one: &Json, other: &Json) -> bool {
    let (Some(one), Some(other)) = (Fields::of(one), Fields::of(other)) else { return false };
    let text = |block: &Fields| match block.text("type").as_deref() {
        Some(kind @ ("text" | "thinking")) => Some((kind.to_owned(), block.text(kind)?)),
        _ => None,
    };
    match (text(&one), text(&other)) {
        (Some((kind, one)), Some((other_kind, other))) => {
            kind == other_kind && !one.is_empty() && other.starts_with(&one)
        }
        _ => false,
    }
}

/// What messages follow.
#[derive(Debug)]
pub struct Followed {
    /// The message that each follows.
    pub parents: Vec<Option<MessageId>>,
    /// Whether messages before them follow another one now.
    pub moves: bool,
    /// Whether parents form a cycle.
    pub is_circular: bool,
}

/// One session while its entries are read.
#[derive(Debug, Clone, Default)]
pub struct EntryTree {
    /// The entries that become messages, in their order.
    pub nodes: Vec<Node>,
    /// The compactions, in the order of their summaries.
    pub cuts: Vec<Cut>,
    /// The places of the messages; of a repeated one, the first. A copied entry has two names: its own, and its origin's.
    pub index: HashMap<MessageId, u32>,
    /// Whether an entry has named one that is here as its parent.
    pub is_linked: bool,
    /// Whether an entry was taken to follow the one before it until then.
    pub has_guesses: bool,
    /// Until then: the parents that were named, and the last entry of the main chain and of side chains.
    named: HashSet<MessageId>,
    before: [Option<MessageId>; 2],
    details: SessionDetails,
    head: Option<MessageId>,
    /// The head of a session in which all is apart from the conversation.
    fallback_head: Option<MessageId>,
    /// The parent for the next child of a node, if hidden messages were added after the node.
    behind: HashMap<Option<MessageId>, MessageId>,
    /// The node before the hidden messages at the end.
    row: Option<Option<MessageId>>,
    /// How often each text of an entry without an id has occurred.
    repeats: HashMap<u64, u64>,
    /// The title that a person gave, that of a model, and that of a summary with the message it is for and its line.
    custom_title: Option<String>,
    generated_title: Option<String>,
    summarized_title: Option<(String, MessageId, u64)>,
    boundaries: HashMap<MessageId, Boundary>,
    /// Pairs of messages that a compaction keeps: the second follows the first. How many of them were put in line.
    lines: Vec<(MessageId, MessageId)>,
    in_line: usize,
    /// Parts of answers that a later part repeats with more text.
    snapshots: HashSet<MessageId>,
    last_part: Option<LastPart>,
    rounds: Rounds,
    time: Option<DateTime<Utc>>,
}

impl EntryTree {
    /// Reads the next entry, of this line and with this text. Returns whether it becomes a message; otherwise it is about the
    /// session.
    pub fn read(&mut self, line: u64, text: &str, entry: &Fields) -> bool {
        self.time = entry.time("timestamp").or(self.time);
        let kind = kind_of(entry);
        if self.note_details(line, &kind, entry) {
            return false;
        }
        match uuid_of(entry).filter(|_| is_link(&kind) || entry.has("parentUuid")) {
            Some(uuid) => {
                let id = self.origin(entry, &uuid);
                self.push_entry(line, &kind, entry, id.clone(), true);
                let place = self.index[&id];
                self.index.entry(uuid).or_insert(place);
            }
            None if is_said(&kind, entry) => {
                let id = self.derived_id(text);
                self.push_entry(line, &kind, entry, id, false);
            }
            None => self.push_behind(line, text),
        }
        true
    }

    /// Returns the id of the entry that an entry was copied from; its own if it is no copy, or if another entry has that one.
    fn origin(&self, entry: &Fields, uuid: &MessageId) -> MessageId {
        let from = entry.object("forkedFrom").and_then(|from| named(&from, "messageUuid"));
        match (self.index.get(uuid), from) {
            (None, Some(origin)) if !self.index.contains_key(&origin) => origin,
            _ => self.own(uuid).clone(),
        }
    }

    /// Returns the id of the message that an id names.
    fn own<'a>(&'a self, id: &'a MessageId) -> &'a MessageId {
        self.index.get(id).map_or(id, |at| &self.nodes[*at as usize].id)
    }

    /// Returns the id of an entry that has none: from its text, and how often that was there before.
    fn derived_id(&mut self, text: &str) -> MessageId {
        let count = self.repeats.entry(fingerprint(text)).or_default();
        *count += 1;
        derive(&["claude-code", &count.to_string(), text]).to_string().into()
    }

    /// Returns what the messages from this one on follow. `pass` returns what the children of an entry that is left out follow.
    pub fn follow(
        &mut self,
        from: usize,
        mut pass: impl FnMut(Option<MessageId>) -> Option<MessageId>,
    ) -> Followed {
        let Self { nodes: all, index, boundaries, rounds, is_linked, .. } = self;
        let nodes = &all[from..];
        let given = |node: &Node| node.parent.clone().filter(|_| !(node.is_guess && *is_linked));
        // A boundary whose end is lost follows the last message that it keeps.
        let bridged = |node: &Node, named: Option<MessageId>| {
            let is_lost = named.as_ref().is_none_or(|named| !index.contains_key(named));
            let boundary = boundaries.get(&node.id).filter(|it| is_lost && !it.is_prefix);
            let tail = boundary.and_then(|it| it.kept.last()).filter(|it| index.contains_key(*it));
            let named = tail.cloned().or(named)?;
            Some(index.get(&named).map_or(named, |at| all[*at as usize].id.clone()))
        };
        let named: Vec<_> = nodes.iter().map(|node| bridged(node, pass(given(node)))).collect();
        let place = |id: &MessageId| index.get(id)?.checked_sub(from as u32);
        let (moves, is_circular) = rounds.take(nodes, &named, place);
        let parents = nodes.iter().zip(named).map(|(node, named)| rounds.parent_of(node, named));
        Followed { parents: parents.collect(), moves, is_circular }
    }

    /// Puts the messages that compactions keep in line, each behind the one before it. Returns those that follow another one now.
    pub fn line_up(&mut self, parents: &mut [Option<u32>]) -> Vec<u32> {
        let is_above = |parents: &[Option<u32>], above: u32, below: u32| {
            let way = std::iter::successors(Some(below), |at| parents[*at as usize]);
            way.take(parents.len()).any(|at| at == above)
        };
        let mut moved = Vec::new();
        for (above, below) in &self.lines[std::mem::replace(&mut self.in_line, self.lines.len())..]
        {
            let [Some(above), Some(below)] = [above, below].map(|id| self.index.get(id).copied())
            else {
                continue;
            };
            if !is_above(parents, above, below) && !is_above(parents, below, above) {
                parents[below as usize] = Some(above);
                moved.push(below);
            }
        }
        moved
    }

    /// Forgets what follows what, to find it again as if all entries had come at once.
    pub fn begin_again(&mut self) {
        (self.rounds, self.in_line) = Default::default();
    }

    /// Returns how many boundaries there are.
    pub fn boundaries(&self) -> usize {
        self.boundaries.len()
    }

    /// Returns the messages that compactions keep and that are not here.
    pub fn missing_kept(&self) -> impl Iterator<Item = &MessageId> {
        let kept = self.boundaries.values().flat_map(|boundary| &boundary.kept);
        kept.filter(|kept| !self.index.contains_key(*kept))
    }

    /// Returns whether a later part of an answer repeats this one with more text.
    pub fn is_repeated(&self, part: &MessageId) -> bool {
        self.snapshots.contains(part)
    }

    /// Returns how many parts of answers are repeated.
    pub fn repeated(&self) -> usize {
        self.snapshots.len()
    }

    /// Returns the message that the conversation ends with, or one above it.
    pub fn head(&self) -> Option<&MessageId> {
        self.head.as_ref().or(self.fallback_head.as_ref())
    }

    /// Returns the details of the session.
    pub fn details(&self) -> SessionDetails {
        let summarized = self.summarized_title.as_ref();
        let summarized = summarized.filter(|(_, leaf, _)| self.index.contains_key(leaf));
        let name = self.custom_title.as_ref().or(self.generated_title.as_ref());
        let name = name.or(summarized.map(|(title, ..)| title)).cloned();
        let source = Some("claude-code".to_owned());
        SessionDetails { name, source, ..self.details.clone() }
    }

    /// Returns the line of a title for a message that is elsewhere.
    pub fn foreign_title(&self) -> Option<u64> {
        let title = self.summarized_title.as_ref();
        title.filter(|(_, leaf, _)| !self.index.contains_key(leaf)).map(|(.., line)| *line)
    }

    /// Returns the last message that a compaction keeps before what it replaces, and the first one after it.
    fn kept_of<'a>(&'a self, cut: &'a Cut) -> (Option<&'a MessageId>, &'a MessageId) {
        match self.boundary_of(cut) {
            None => (None, &cut.marker),
            Some((boundary, about)) if about.is_prefix => {
                (about.kept.last().map(|kept| self.own(kept)), boundary)
            }
            Some((boundary, about)) => {
                let kept = about.kept.first().filter(|kept| self.index.contains_key(*kept));
                (None, kept.map_or(boundary, |kept| self.own(kept)))
            }
        }
    }

    /// Returns the boundary of a compaction.
    fn boundary_of(&self, cut: &Cut) -> Option<(&MessageId, &Boundary)> {
        self.boundaries.get_key_value(self.own(cut.boundary.as_ref()?))
    }

    /// Returns the first message that the boundary of a compaction names as kept.
    pub fn named_by(&self, cut: &Cut) -> Option<&MessageId> {
        self.boundary_of(cut)?.1.kept.first().map(|kept| self.own(kept))
    }

    /// Returns whether all that a compaction replaces is elsewhere: then its summary is shown as a message.
    pub fn is_plain(&self, cut: &Cut) -> bool {
        let (after, kept) = self.kept_of(cut);
        let parent = self.nodes.first().and_then(|first| first.parent.as_ref());
        let is_first = parent.is_none_or(|parent| !self.index.contains_key(parent));
        after.is_none() && is_first && self.index.get(kept) == Some(&0)
    }

    /// Returns the last message that a compaction keeps before what it replaces, and the first one after it. If the path to the
    /// summary leads through none that it keeps, that is the boundary.
    pub fn kept_by<'a>(
        &'a self,
        cut: &'a Cut,
        parents: &[Option<u32>],
    ) -> (Option<&'a MessageId>, &'a MessageId) {
        let (after, kept) = self.kept_of(cut);
        let [marker, place] = [&cut.marker, kept].map(|id| self.index.get(id).copied());
        let way = std::iter::successors(marker, |at| parents[*at as usize]).take(parents.len());
        let is_above = place.is_some_and(|place| way.into_iter().any(|at| at == place));
        match (is_above, cut.boundary.as_ref().map(|boundary| self.own(boundary))) {
            (false, Some(boundary)) if self.index.contains_key(boundary) => (after, boundary),
            _ => (after, kept),
        }
    }

    /// Adds the entries of a session that this one continues.
    pub fn join(&mut self, mut from: Self) {
        let both = [&*self, &from].into_iter();
        let names = both.flat_map(|tree| tree.index.keys().map(|id| (id, tree.own(id))));
        let copies = names.filter(|(id, own)| id != own).map(|(id, own)| (id.clone(), own.clone()));
        let copies: Vec<_> = copies.collect();
        self.nodes.append(&mut from.nodes);
        self.nodes.sort_by_key(|node| node.line);
        self.index.clear();
        for (node, at) in self.nodes.iter().zip(0..) {
            self.index.entry(node.id.clone()).or_insert(at);
        }
        for (copy, own) in copies {
            let at = self.index[&own];
            self.index.entry(copy).or_insert(at);
        }
        self.cuts.append(&mut from.cuts);
        self.cuts.sort_by_key(|cut| cut.line);
        self.boundaries.extend(from.boundaries);
        self.lines.append(&mut from.lines);
        self.snapshots.extend(from.snapshots);
        self.is_linked |= from.is_linked;
        self.details.created_at = from.details.created_at.or(self.details.created_at);
    }

    /// Reads an entry about the whole session; `false` if it is another kind of entry.
    fn note_details(&mut self, line: u64, kind: &str, entry: &Fields) -> bool {
        // A blank title names nothing: the one before it stays.
        let title = |field| entry.text(field).and_then(|title| name(&title));
        match kind {
            "custom-title" => {
                self.custom_title = title("customTitle").or(self.custom_title.take());
            }
            "ai-title" => {
                self.generated_title = title("aiTitle").or(self.generated_title.take());
            }
            "summary" => {
                let leaf = named(entry, "leafUuid").filter(|_| entry.text("summary").is_some());
                let Some(leaf) = leaf else { return false };
                let title = title("summary").map(|title| (title, leaf, line));
                self.summarized_title = title.or(self.summarized_title.take());
            }
            "tag" => {
                self.add_metadata(Fields::default().with("tag", entry.get("tag").cloned()));
            }
            "continued-in" => {
                let next = entry.get("continuedInSessionId").cloned();
                self.add_metadata(Fields::default().with(CONTINUED_IN, next));
            }
            "agent_metadata" => {
                self.add_metadata(entry.except(&["type", "sessionId"]));
            }
            _ => return false,
        }
        true
    }

    fn push_entry(&mut self, line: u64, kind: &str, entry: &Fields, id: MessageId, is_named: bool) {
        let message = entry.object("message").unwrap_or_default();
        self.note_circumstances(kind, entry, &message);
        let is_side = entry.is_true("isSidechain");
        // Ids are shared: the parent is usually the entry before.
        let parent = named(entry, "parentUuid").map(|parent| self.own(&parent).clone());
        let is_link = is_link(kind);
        if is_link && !self.is_linked {
            let is_known = parent.as_ref().is_some_and(|it| self.index.contains_key(it));
            let is_parent = |id: &MessageId| self.named.contains(id);
            self.is_linked =
                is_known || is_parent(&id) || uuid_of(entry).is_some_and(|it| is_parent(&it));
            self.named.extend(parent.clone());
        }
        let is_boundary = entry.text("subtype").as_deref() == Some("compact_boundary");
        let parent = match is_boundary {
            true => {
                let (boundary, is_list) = Boundary::of(&id, entry);
                let tail = boundary.kept.last().filter(|_| !boundary.is_prefix).cloned();
                if is_list && !boundary.is_prefix {
                    let pairs = boundary.kept.windows(2);
                    self.lines.extend(pairs.map(|pair| (pair[0].clone(), pair[1].clone())));
                }
                self.boundaries.insert(id.clone(), boundary);
                let logical = named(entry, "logicalParentUuid").map(|it| self.own(&it).clone());
                let ends = logical.or(parent).or(tail);
                ends.or_else(|| self.before[usize::from(is_side)].clone())
                    .or_else(|| self.last_id())
            }
            // The first entry to follow a node follows the hidden messages after it.
            false if is_side => parent,
            false => self.behind.remove(&parent).or(parent),
        };
        let before = &mut self.before[usize::from(is_side)];
        // What entries of other programs name says nothing about the others.
        let before = match is_link || parent.is_none() {
            true => before.replace(id.clone()),
            false => None,
        };
        let is_guess = parent.is_none() && is_named && before.is_some() && !self.is_linked;
        self.has_guesses |= is_guess;
        let parent = parent.or(before.filter(|_| !self.is_linked || !is_named));
        let is_summary = entry.is_true("isCompactSummary");
        if is_summary {
            self.note_compaction(line, entry, &id, parent.as_ref());
        }
        let is_said = is_said(kind, entry);
        // At the message before a summary, the conversation is what it is at the summary.
        let is_apart = is_side || is_summary || entry.has("teamName") || entry.is_true("isMeta");
        if is_said {
            let head = if is_apart { &mut self.fallback_head } else { &mut self.head };
            *head = Some(id.clone());
        }
        self.row = None;
        let share = match is_boundary || is_summary {
            true => Share::Next,
            false => Share::of(kind, entry, &message),
        };
        if let Share::Part(answer, _) = &share {
            let (id, parent, answer) = (id.clone(), parent.clone(), answer.clone());
            let content = message.get("content").cloned();
            self.note_part(LastPart { id, parent, answer, is_side, content });
        }
        let time = self.time;
        let is_end = is_said && !is_apart;
        self.push(Node { id, parent, line, is_side, share, time, is_named, is_guess, is_end });
    }

    /// Notes the part before of the same answer if this one repeats it.
    fn note_part(&mut self, part: LastPart) {
        if let Some(before) = self.last_part.take_if(|before| before.grows_into(&part)) {
            self.snapshots.insert(before.id);
        }
        self.last_part = Some(part);
    }

    /// Adds an entry without a `uuid`, as a hidden message after the previous entry.
    fn push_behind(&mut self, line: u64, text: &str) {
        let (id, parent) = (self.derived_id(text), self.last_id());
        let begin = self.row.take().unwrap_or_else(|| parent.clone());
        self.behind.insert(begin.clone(), id.clone());
        self.row = Some(begin);
        self.before[0] = Some(id.clone());
        let (time, share) = (self.time, Share::Notice);
        let (is_side, is_named, is_guess, is_end) = Default::default();
        self.push(Node { id, parent, line, is_side, share, time, is_named, is_guess, is_end });
    }

    fn push(&mut self, node: Node) {
        self.index.entry(node.id.clone()).or_insert(self.nodes.len() as u32);
        self.nodes.push(node);
    }

    fn last_id(&self) -> Option<MessageId> {
        self.nodes.last().map(|node| node.id.clone())
    }

    fn note_circumstances(&mut self, kind: &str, entry: &Fields, message: &Fields) {
        let details = &mut self.details;
        details.created_at = details.created_at.or_else(|| entry.time("timestamp"));
        if kind == "assistant"
            && let Some(model) = message.text("model")
            && model != SYNTHETIC
        {
            details.model = Some(model);
        }
        // Of copied entries, the last one is the fork point.
        if let Some(from) = entry.get("forkedFrom") {
            let at = Fields::of(from);
            let session = at.as_ref().map_or_else(|| fields::id(from), |at| at.id("sessionId"));
            details.parent_session = session.map(session_id).or(details.parent_session.take());
            let point = at.and_then(|at| named(&at, "messageUuid"));
            details.fork_point = point.or(details.fork_point.take());
        }
        if details.metadata.is_none() {
            let seen = ["cwd", "gitBranch", "version", SESSION_KIND].into_iter();
            let seen = seen.filter_map(|name| Some((name.to_owned(), entry.get(name)?.clone())));
            self.add_metadata(seen.collect());
        }
    }

    fn note_compaction(
        &mut self,
        line: u64,
        entry: &Fields,
        id: &MessageId,
        parent: Option<&MessageId>,
    ) {
        let content = entry.object("message").and_then(|message| message.get("content").cloned());
        let parts = blocks::parts(content.as_ref(), &ToolNames::new());
        self.cuts.push(Cut {
            id: CompactionId::from(id.as_str()),
            line,
            boundary: parent.cloned(),
            marker: id.clone(),
            summary: Message::new(Role::User, parts).text(),
            created_at: self.time,
        });
    }

    /// Keeps more fields in the session's metadata.
    fn add_metadata(&mut self, more: Fields) {
        fields::add(&mut self.details.metadata, more);
    }
}
