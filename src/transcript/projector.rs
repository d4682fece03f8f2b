//! Reads the entries of a transcript in their order, and says which message each one becomes and which one it follows.
//!
//! A [`Projector`] keeps ids and positions of all entries and no content. It is fed with every entry; then
//! [`connect`](Projector::connect) finds the parents of the new ones. Most entries follow one before. Some change what is
//! known of earlier ones: a parent that comes after its child, the name of a tool that comes after its result, the first
//! parent in a transcript without any. Then all are connected again, as if they had come at once.
//!
//! Invariant: after `connect` the result is that of the same entries in one batch.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::compaction::{Compaction, Summary};
use crate::id::MessageId;
use crate::message::{Json, Message};
use crate::outcome::SessionDetails;
use crate::records::Title;
use crate::records::blocks::{self, ToolNames};
use crate::records::claude_code::{self, Cut, Node, Progress, Rounds, Talk};
use crate::records::fields::{self, Fields};
use crate::records::ids::message_id;
use crate::records::order::arrange;

/// The metadata key under which a root that lost its parent has the parent's id.
const MISSING_PARENT: &str = "missing_parent";

/// The place of a message among those of a transcript.
pub(crate) type At = u32;

#[derive(Debug, Clone)]
pub(crate) struct Projector {
    talk: Talk<()>,
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
    /// Whether all have to be connected again, and what is stored may differ.
    is_outdated: bool,
    /// Whether stored messages have other contents now.
    is_rewritten: bool,
}

/// What a call of [`Projector::connect`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connected {
    /// The new messages follow those before them.
    Grown,
    /// Messages from before have another parent, order or content.
    Rearranged,
}

impl Default for Projector {
    fn default() -> Self {
        Self {
            talk: Talk::new(1),
            progress: Progress::default(),
            rounds: Rounds::default(),
            names: ToolNames::new(),
            nameless: HashSet::new(),
            title: Title::default(),
            oldest: None,
            newest: None,
            entries: 0,
            unread: 0,
            index: HashMap::new(),
            parents: Vec::new(),
            order: Vec::new(),
            missing: Vec::new(),
            awaited: HashSet::new(),
            before: [None; 2],
            chain_before: None,
            is_connected: false,
            is_chained: false,
            is_outdated: false,
            is_rewritten: false,
        }
    }
}

impl Projector {
    /// Returns how many entries it has read.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns how many of them are no message because they cannot be read.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    /// Returns how many of them are messages, connected ones only.
    pub(crate) fn messages(&self) -> usize {
        self.order.len()
    }

    /// Reads the next entry, of this number; `None` if it is damaged.
    pub(crate) fn read(&mut self, number: u64, entry: Option<&Json>) {
        self.entries = number;
        let fields = entry.and_then(|entry| Some((entry, Fields::of(entry)?)));
        let Some((entry, fields)) = fields else {
            self.unread += 1;
            return;
        };
        self.note_tools(&fields);
        if let Some(link) = self.progress.read(&fields) {
            self.is_outdated |= self.awaited.contains(&link);
            return;
        }
        if !self.talk.read(self.entries, entry.as_str(), &fields, ()) {
            return;
        }
        let Some(node) = self.talk.nodes.last() else { return };
        let (id, time) = (node.id.clone(), node.time);
        let at = self.talk.nodes.len() as At - 1;
        if self.index.contains_key(&id) {
            // Two ids that differ only in characters that no Rust string can have.
            self.talk.nodes.pop();
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
            let cut = self.talk.cuts.last().filter(|cut| cut.marker == id);
            let is_plain = cut.is_some_and(|cut| self.kept_by(cut).is_none());
            let time = time.unwrap_or_default();
            self.title.add(&claude_code::message(fields, id, time, &self.names, is_plain));
        }
    }

    fn note_tools(&mut self, fields: &Fields) {
        let mut called = ToolNames::new();
        blocks::collect_names(claude_code::called(fields).as_ref(), &mut called);
        for (id, name) in called {
            let is_other = self.names.get(&id).is_some_and(|known| *known != name);
            self.is_rewritten |= is_other || self.nameless.contains(&id);
            self.names.insert(id, name);
        }
        let content = fields.object("message").and_then(|message| message.get("content").cloned());
        for id in blocks::answered(content.as_ref()) {
            if !self.names.contains_key(&id) {
                self.nameless.insert(id);
            }
        }
        self.is_outdated |= self.is_rewritten;
    }

    /// Notes what a new message says about earlier ones.
    fn note_links(&mut self, fields: &Fields, id: &MessageId) {
        self.is_outdated |= self.awaited.contains(id);
        if self.is_connected {
            return;
        }
        let named = fields.text("parentUuid").map(message_id);
        let named = named.filter(|_| claude_code::is_link(&claude_code::kind_of(fields)));
        self.is_connected = self.talk.chain.is_named(id)
            || named.is_some_and(|parent| self.index.contains_key(&parent));
    }

    /// Finds the parents of the new messages.
    pub(crate) fn connect(&mut self) -> Connected {
        let from = self.parents.len();
        let is_chained = !self.is_connected && self.talk.chain.is_long(self.talk.nodes.len());
        self.is_outdated |= is_chained != self.is_chained;
        self.is_chained = is_chained;
        for at in from as At..self.talk.nodes.len() as At {
            let (named, before) = self.named_by(at);
            self.is_outdated |= self.rounds.take(&self.talk.nodes[at as usize], named.as_ref());
            self.is_outdated |= self.place_of(named.as_ref()).is_some_and(|parent| parent >= at);
            let parent = self.parent_of(at, named, before);
            self.parents.push(parent);
        }
        self.note_ends(from);
        if !self.is_outdated {
            self.order.extend(from as At..self.talk.nodes.len() as At);
            return Connected::Grown;
        }
        let parents = std::mem::take(&mut self.parents);
        let missing = std::mem::take(&mut self.missing);
        let order = std::mem::take(&mut self.order);
        self.connect_all();
        (self.order, _) = arrange(&mut self.parents);
        self.is_outdated = false;
        let is_before = |(at, _): &&(At, MessageId)| (*at as usize) < from;
        let is_grown = !std::mem::take(&mut self.is_rewritten)
            && self.order.starts_with(&order)
            && self.parents[..from] == parents[..from]
            && self.missing.iter().filter(is_before).eq(missing.iter().filter(is_before));
        if is_grown || from == 0 { Connected::Grown } else { Connected::Rearranged }
    }

    /// Finds the parents of all messages, as if they had come at once.
    fn connect_all(&mut self) {
        (self.before, self.chain_before) = ([None; 2], None);
        self.rounds = Rounds::default();
        let all = 0..self.talk.nodes.len() as At;
        let named: Vec<_> = all.clone().map(|at| self.named_by(at)).collect();
        let mut places: Vec<_> = named.iter().map(|(id, _)| self.place_of(id.as_ref())).collect();
        for at in arrange(&mut places).0 {
            self.rounds.take(&self.talk.nodes[at as usize], named[at as usize].0.as_ref());
        }
        for (at, (named, before)) in all.zip(named) {
            let parent = self.parent_of(at, named, before);
            self.parents.push(parent);
        }
    }

    /// Returns the parent that the entry of a message names, and the message before it in its chain.
    fn named_by(&mut self, at: At) -> (Option<MessageId>, Option<At>) {
        let Node { id, parent, is_side, .. } = &self.talk.nodes[at as usize];
        let mut parent = self.progress.pass(parent.clone());
        if self.is_chained {
            parent = self.talk.chain.follow(id, parent, &mut self.chain_before);
        }
        (parent, self.before[usize::from(*is_side)].replace(at))
    }

    fn place_of(&self, id: Option<&MessageId>) -> Option<At> {
        self.index.get(id?).copied()
    }

    fn parent_of(&mut self, at: At, named: Option<MessageId>, before: Option<At>) -> Option<At> {
        let parent = self.rounds.parent_of(&self.talk.nodes[at as usize], named)?;
        let found = self.place_of(Some(&parent));
        if found.is_none() {
            self.awaited.insert(parent.clone());
            self.missing.push((at, parent));
        }
        found.or(before)
    }

    /// Notes the messages that new compactions keep, if they are not here.
    fn note_ends(&mut self, from: usize) {
        let Some(first) = self.talk.nodes.get(from).map(|node| node.line) else { return };
        for cut in self.talk.cuts.iter().rev().take_while(|cut| cut.line >= first) {
            if !self.index.contains_key(&cut.kept) {
                self.awaited.insert(cut.kept.clone());
            }
        }
        // One that came after its compaction changes its range.
        let is_kept = |cut: &Cut| {
            let kept = self.index.get(&cut.kept).copied();
            let marker = self.index.get(&cut.marker).copied();
            kept.is_some_and(|kept| kept as usize >= from) && kept > marker
        };
        if self.is_outdated && self.talk.cuts.iter().any(is_kept) {
            self.is_rewritten = true;
        }
    }

    /// Returns the messages in the order in which they are stored.
    pub(crate) fn order(&self) -> &[At] {
        &self.order
    }

    /// Returns the messages of the entries after this one, in the order in which they are stored.
    pub(crate) fn after(&self, entry: u64) -> Vec<At> {
        let new = self.talk.nodes.partition_point(|node| node.line <= entry);
        let tail = &self.order[new..];
        // All after those before, unless an entry has changed their order.
        match tail.iter().all(|at| *at as usize >= new) {
            true => tail.to_vec(),
            false => self.order.iter().copied().filter(|at| *at as usize >= new).collect(),
        }
    }

    pub(crate) fn id(&self, at: At) -> &MessageId {
        &self.talk.nodes[at as usize].id
    }

    pub(crate) fn parent(&self, at: At) -> Option<At> {
        self.parents[at as usize]
    }

    /// Returns the number of the entry of a message.
    pub(crate) fn number(&self, at: At) -> u64 {
        self.talk.nodes[at as usize].line
    }

    /// Returns the message of an entry; `now` is the time of an entry with none before it.
    pub(crate) fn message(&self, at: At, entry: &Json, now: DateTime<Utc>) -> Message {
        let fields = Fields::parse(entry.as_str()).unwrap_or_default();
        let Node { id, time, .. } = &self.talk.nodes[at as usize];
        let is_plain = fields.is_true("isCompactSummary")
            && self.talk.cuts.iter().any(|cut| cut.marker == *id && self.kept_by(cut).is_none());
        let time = time.unwrap_or(now);
        let mut message = claude_code::message(fields, id.clone(), time, &self.names, is_plain);
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
        self.talk.kept_by(cut, |kept| self.index.contains_key(kept))
    }

    /// Returns the compactions of entries after this one, each with its first and last message.
    pub(crate) fn compactions(&self, after: u64, now: DateTime<Utc>) -> Vec<(Compaction, At, At)> {
        let new = self.talk.cuts.iter().rev().take_while(|cut| cut.line > after);
        let mut found: Vec<_> = new
            .filter_map(|cut| {
                let (first, last) = self.covered(cut)?;
                let ids = (self.id(first).clone(), self.id(last).clone());
                let mut compaction = Compaction::new(cut.summary.as_str(), ids.0, ids.1);
                compaction.id = cut.id.clone();
                compaction.created_at = cut.created_at.unwrap_or(now);
                Some((compaction, first, last))
            })
            .collect();
        found.reverse();
        found
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
    pub(crate) fn head(&self) -> Option<At> {
        let head = self.talk.head().and_then(|id| self.index.get(id)).copied();
        head.or_else(|| (self.talk.nodes.len() as At).checked_sub(1))
    }

    /// Returns the details of the session, without its parent.
    pub(crate) fn details(&self) -> SessionDetails {
        let details = self.talk.details(|id| self.index.contains_key(id));
        SessionDetails {
            name: details.name.or_else(|| self.title.line().map(str::to_owned)),
            created_at: details.created_at.or(self.oldest),
            parent_session: None,
            ..details
        }
    }

    /// Returns the time of the newest message.
    pub(crate) fn newest(&self) -> Option<DateTime<Utc>> {
        self.newest
    }

    /// Returns the messages whose parent is missing, each with its id.
    pub(crate) fn missing(&self) -> impl Iterator<Item = (&MessageId, &MessageId)> {
        self.missing.iter().map(|(at, parent)| (self.id(*at), parent))
    }
}
