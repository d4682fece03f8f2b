//! Transcripts of Claude Code.
//!
//! What an entry means is in [`talktree_claude::entries`], which also shows transcripts as sessions. A file is
//! usually one session, but that of a resumed one may hold entries of the session before; connected entries become one
//! session.

use std::collections::{HashMap, HashSet};

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::{Message, MessageId};
use talktree_claude::entries::{self, EntryTree, Progress, Rounds};

use super::Format;
use super::blocks::{self, ToolNames};
use super::detect::of_another_format;
use crate::draft::Body;
use crate::draft::{Draft, DraftCompaction, Node, Orphans, Reader, fingerprint, session_id};
use crate::fields::Fields;
use crate::records::{Place, Record};
use crate::unread_times::UnreadTimes;

/// Reads Claude Code transcripts.
pub(crate) struct ClaudeCode {
    now: DateTime<Utc>,
    /// The first time in the file: that of the entries before it.
    first: Option<DateTime<Utc>>,
    names: ToolNames,
    trees: Vec<EntryTree<About>>,
    /// The conversation of each session id; an entry without one belongs to that of the previous entry.
    by_session: HashMap<String, usize>,
    current: usize,
    links: Progress,
    links_line: Option<u64>,
    /// Summaries of messages that are not in the file: they become messages.
    plain_summaries: HashSet<MessageId>,
    /// The times of entries that have none of their own.
    times: HashMap<MessageId, DateTime<Utc>>,
    unread: UnreadTimes,
}

/// What is kept of an entry besides its place in the tree.
#[derive(Debug, Clone, Copy)]
struct About {
    fingerprint: u64,
    place: Place,
}

impl ClaudeCode {
    pub(crate) fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            first: None,
            names: ToolNames::new(),
            trees: Vec::new(),
            by_session: HashMap::new(),
            current: 0,
            links: Progress::default(),
            links_line: None,
            plain_summaries: HashSet::new(),
            times: HashMap::new(),
            unread: UnreadTimes::default(),
        }
    }

    /// Returns the session of an entry.
    fn tree(&mut self, record: &Record, entry: &Fields) -> &mut EntryTree<About> {
        let given = entry.text("sessionId");
        let known = given.as_ref().and_then(|id| self.by_session.get(id)).copied();
        let is_unnamed = self.trees.len() == 1 && self.by_session.is_empty();
        self.current = match (&given, known) {
            (_, Some(known)) => known,
            (None, None) if !self.trees.is_empty() => self.current,
            (Some(_), None) if is_unnamed => 0,
            _ => {
                self.trees.push(EntryTree::new(record.line));
                self.trees.len() - 1
            }
        };
        let tree = &mut self.trees[self.current];
        if let (Some(id), None) = (given, known) {
            tree.session = session_id(id.as_str());
            self.by_session.insert(id, self.current);
        }
        tree
    }
}

impl Reader for ClaudeCode {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        if let Some(why) = foreign(&entry) {
            report.lose(record.line, why);
            return None;
        }
        if entry.text("type").is_none() {
            report.remark(record.line, "an entry without a type, kept as a hidden message");
        }
        self.first = self.first.or_else(|| entry.time("timestamp"));
        blocks::collect_names(entries::called(&entry).as_ref(), &mut self.names);
        if self.links.read(&entry).is_some() {
            self.links_line.get_or_insert(record.line);
            report.dropped += 1;
            return None;
        }
        let about = About { fingerprint: fingerprint(&record.text), place: record.place() };
        let tree = self.tree(record, &entry);
        match tree.read(record.line, &record.text, &entry, about) {
            false => report.converted += 1,
            true => {
                if let Some(node) = tree.nodes.last()
                    && let Some(time) = node.time.filter(|_| entry.time("timestamp").is_none())
                {
                    let id = node.id.clone();
                    self.times.insert(id, time);
                }
                self.unread.check(record.line, &[(&entry, "timestamp")]);
            }
        }
        None
    }

    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        if let Some(line) = self.links_line {
            let count = self.links.count();
            report.remark(line, format!("{count} progress entries hold nothing to keep"));
        }
        self.unread.report("the time of the entry before", report);
        for node in self.trees.iter_mut().flat_map(|tree| &mut tree.nodes) {
            node.parent = self.links.pass(node.parent.take());
        }
        let trees = join(std::mem::take(&mut self.trees), report);
        trees.into_iter().map(|tree| self.close(tree, report)).collect()
    }

    fn message(&self, _: &Record, entry: Fields, node: &Node) -> Message {
        let time = self.times.get(&node.id).copied().unwrap_or(self.early());
        let is_plain = self.plain_summaries.contains(&node.id);
        entries::message(entry, node.id.clone(), time, &self.names, is_plain)
    }
}

impl ClaudeCode {
    /// Returns the time of entries that come before the first one with a time. So an import of the same file is the same at
    /// any time.
    fn early(&self) -> DateTime<Utc> {
        self.first.unwrap_or(self.now)
    }

    /// Resolves what depends on the whole file.
    fn close(&mut self, mut tree: EntryTree<About>, report: &mut ImportReport) -> Draft {
        chain_if_unlinked(&mut tree, report);
        join_answers(&mut tree);
        let ids: HashSet<&MessageId> = tree.nodes.iter().map(|node| &node.id).collect();
        let mut draft = Draft::new(tree.session.clone(), tree.line);
        draft.orphans = Orphans::FollowTheNodeBefore;
        draft.details = tree.details(|leaf| ids.contains(leaf));
        if let Some((line, _)) = tree.title_of().filter(|(_, leaf)| !ids.contains(leaf)) {
            report.remark(line, "a title for messages of another file, not used");
        }
        draft.head = tree.head().cloned();
        for cut in &tree.cuts {
            match tree.kept_by(cut, |kept| ids.contains(kept)) {
                Some(kept) => draft.compactions.push(DraftCompaction {
                    id: cut.id.clone(),
                    line: cut.line,
                    kept: kept.clone(),
                    marker: cut.marker.clone(),
                    summary: cut.summary.clone(),
                    details: None,
                    created_at: cut.created_at.unwrap_or(self.early()),
                }),
                None => {
                    self.plain_summaries.insert(cut.marker.clone());
                    let why = "a summary of what is not in the file, kept as a message";
                    report.remark(cut.line, why);
                }
            }
        }
        if let Some(agent) = tree.agent() {
            draft.session = session_id(format!("{}/subagents/agent-{agent}", draft.session));
        }
        draft.nodes = tree.nodes.into_iter().map(node).collect();
        draft
    }
}

/// Returns why a record is no entry of Claude Code, if it is one of another program.
///
/// Entries of unknown types are kept: new versions have new ones.
fn foreign(entry: &Fields) -> Option<String> {
    if ["uuid", "parentUuid", "sessionId"].iter().any(|name| entry.has(name)) {
        return None;
    }
    of_another_format(entry, Format::ClaudeCode).or_else(|| {
        let has_type = entry.text("type").is_some();
        (!has_type).then(|| "a record of an unknown kind: it has no type".to_owned())
    })
}

/// Makes each entry the child of the one before if no message of the file names its parent, as some tools write
/// transcripts.
fn chain_if_unlinked(tree: &mut EntryTree<About>, report: &mut ImportReport) {
    let ids: HashSet<&MessageId> = tree.nodes.iter().map(|node| &node.id).collect();
    let is_long = tree.chain.is_long(tree.nodes.len());
    if !is_long || tree.chain.is_connected(|parent| ids.contains(parent)) {
        return;
    }
    report.remark(tree.line, "no entry names a parent; each is taken to follow the one before");
    let mut before: Option<MessageId> = None;
    for node in &mut tree.nodes {
        node.parent = tree.chain.follow(&node.id, node.parent.take(), &mut before);
    }
}

/// Puts each answer of the model in one piece, so that every result of its calls is on the path.
fn join_answers(tree: &mut EntryTree<About>) {
    let mut index: HashMap<&MessageId, u32> = HashMap::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        // A repeated entry is left out later.
        index.entry(&node.id).or_insert(at as u32);
    }
    let named: Vec<_> = tree.nodes.iter().map(|node| node.parent.clone()).collect();
    let (rounds, _) = Rounds::of(&tree.nodes, &named, |id| index.get(id).copied());
    for node in &mut tree.nodes {
        node.parent = rounds.parent_of(node, node.parent.clone());
    }
}

/// Joins sessions with connected entries.
fn join(mut trees: Vec<EntryTree<About>>, report: &mut ImportReport) -> Vec<EntryTree<About>> {
    if trees.len() < 2 {
        return trees;
    }
    let owners: HashMap<MessageId, usize> = trees
        .iter()
        .enumerate()
        .flat_map(|(at, tree)| tree.nodes.iter().map(move |node| (node.id.clone(), at)))
        .collect();
    let mut into: Vec<usize> = (0..trees.len()).collect();
    let find = |into: &[usize], mut at: usize| {
        while into[at] != at {
            at = into[at];
        }
        at
    };
    for (at, tree) in trees.iter().enumerate() {
        for node in &tree.nodes {
            let other = node.parent.as_ref().and_then(|parent| owners.get(parent));
            if let Some(&other) = other.filter(|other| **other != at) {
                let (a, b) = (find(&into, at), find(&into, other));
                into[a.min(b)] = a.max(b);
            }
        }
    }
    for at in 0..trees.len() {
        let end = find(&into, at);
        if end == at {
            continue;
        }
        let from = std::mem::replace(&mut trees[at], EntryTree::new(0));
        let (line, id) = (from.line, from.session.clone());
        let to = &mut trees[end];
        report.remark(line, format!("entries of session {id:?} are part of {:?}", to.session));
        to.join(from);
    }
    trees.into_iter().enumerate().filter(|(at, _)| into[*at] == *at).map(|(_, tree)| tree).collect()
}

fn node(node: entries::Node<About>) -> Node {
    Node {
        id: node.id,
        parent: node.parent,
        line: node.line,
        fingerprint: node.about.fingerprint,
        is_side: node.is_side,
        is_hidden: false,
        body: Body::There(node.about.place),
    }
}
