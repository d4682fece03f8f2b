//! Transcripts of Claude Code.
//!
//! What an entry means is in [`talktree_claude::entries`], which also shows transcripts as sessions. A file is
//! usually one session, but that of a resumed one may hold entries of the session before; connected entries become one
//! session. One whose entries name no session has the name of the file.

use std::collections::{HashMap, HashSet};

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::{Message, MessageId, SessionId};
use talktree_claude::entries::{self, EntryTree, Progress};

use super::Format;
use super::blocks::{self, ToolNames};
use super::detect::of_another_format;
use crate::draft::{
    Body, Draft, DraftCompaction, Node, Origin, Orphans, Reader, derive, fingerprint, session_id,
};
use crate::fields::Fields;
use crate::records::{Place, Record};

/// Reads Claude Code transcripts.
#[derive(Default)]
pub(crate) struct ClaudeCode {
    pub(super) from: Origin,
    /// The first time in the file: that of the entries before it.
    first: Option<DateTime<Utc>>,
    names: ToolNames,
    /// What is kept of each entry; its number is its place here.
    abouts: Vec<About>,
    conversations: Vec<Conversation>,
    /// The conversation of each session id; an entry without one belongs to that of the previous entry.
    by_session: HashMap<String, usize>,
    current: usize,
    links: Progress,
    links_line: Option<u64>,
    /// Summaries of messages that are not in the file: they become messages.
    plain_summaries: HashSet<MessageId>,
    /// The times of entries that have none of their own.
    times: HashMap<MessageId, DateTime<Utc>>,
}

/// The entries of one session.
#[derive(Default)]
struct Conversation {
    tree: EntryTree,
    session: SessionId,
    /// The line that it begins on.
    line: u64,
    agent: Option<String>,
    /// Whether it has an entry that is of no side chain of an agent.
    has_main: bool,
}

/// What is kept of an entry besides its place in the tree.
#[derive(Debug, Clone, Copy)]
struct About {
    line: u64,
    fingerprint: u64,
    place: Place,
}

impl ClaudeCode {
    /// Returns the id of a session that no entry names.
    fn session_of_file(&self, record: &Record) -> SessionId {
        let file = std::path::Path::new(&self.from.file).file_stem();
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let name = file.filter(|file| !matches!(file.as_str(), "" | "-"));
        session_id(name.unwrap_or_else(|| derive(&["claude-code", &record.text]).to_string()))
    }

    /// Returns the conversation of an entry.
    fn conversation(&mut self, record: &Record, entry: &Fields) -> &mut Conversation {
        let line = record.line;
        let given = entry.id("sessionId");
        let known = given.as_ref().and_then(|id| self.by_session.get(id)).copied();
        let is_unnamed = self.conversations.len() == 1 && self.by_session.is_empty();
        self.current = match (&given, known) {
            (_, Some(known)) => known,
            (None, None) if !self.conversations.is_empty() => self.current,
            (Some(_), None) if is_unnamed => 0,
            _ => {
                let session = self.session_of_file(record);
                self.conversations.push(Conversation { session, line, ..Conversation::default() });
                self.conversations.len() - 1
            }
        };
        let conversation = &mut self.conversations[self.current];
        if let (Some(id), None) = (given, known) {
            conversation.session = session_id(id.as_str());
            self.by_session.insert(id, self.current);
        }
        conversation
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
        let number = self.abouts.len() as u64;
        let (line, fingerprint) = (record.line, fingerprint(&record.text));
        self.abouts.push(About { line, fingerprint, place: record.place() });
        for path in entries::persisted(&entry) {
            report.remark(line, format!("the full result is in {path:?}, which is not read"));
        }
        let conversation = self.conversation(record, &entry);
        if !conversation.tree.read(number, &record.text, &entry) {
            report.converted += 1;
            return None;
        }
        let node = conversation.tree.nodes.last()?;
        let (id, time) = (node.id.clone(), node.time);
        if node.is_named || node.is_end {
            match entry.id("agentId").filter(|_| entry.is_true("isSidechain")) {
                Some(agent) => conversation.agent = Some(agent),
                None => conversation.has_main = true,
            }
        }
        if let Some(time) = time.filter(|_| entry.time("timestamp").is_none()) {
            self.times.insert(id, time);
        }
        report.check_times(line, &[(&entry, "timestamp")], "the time of the entry before");
        None
    }

    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        if let Some(line) = self.links_line {
            let count = self.links.count();
            report.remark(line, format!("{count} progress entries hold nothing to keep"));
        }
        let mut conversations = std::mem::take(&mut self.conversations);
        for node in conversations.iter_mut().flat_map(|it| &mut it.tree.nodes) {
            node.parent = self.links.pass(node.parent.take());
        }
        join(conversations, report).into_iter().map(|it| self.close(it, report)).collect()
    }

    fn message(&self, _: &Record, entry: Fields, id: &MessageId) -> Option<Message> {
        let time = self.times.get(id).copied().unwrap_or(self.early());
        let is_plain = self.plain_summaries.contains(id);
        Some(entries::message(entry, id.clone(), time, &self.names, is_plain))
    }
}

impl ClaudeCode {
    /// Returns the time of entries that come before the first one with a time. So an import of the same file is the same at
    /// any time.
    fn early(&self) -> DateTime<Utc> {
        self.first.unwrap_or(self.from.now)
    }

    /// Resolves what depends on the whole file.
    fn close(&mut self, conversation: Conversation, report: &mut ImportReport) -> Draft {
        let Conversation { mut tree, session, line, agent, has_main } = conversation;
        if !tree.is_linked && tree.nodes.len() > 1 {
            report.remark(line, "no entry names a parent; each is taken to follow the one before");
        }
        let parents = connect(&mut tree);
        let line_of = |number: u64| self.abouts[number as usize].line;
        let mut draft = Draft::new(session, line);
        draft.orphans = Orphans::FollowTheNodeBefore;
        draft.details = tree.details();
        if let Some(number) = tree.foreign_title() {
            report.remark(line_of(number), "a title for messages of another file, not used");
        }
        draft.head = tree.head().cloned();
        draft.first = tree.nodes.iter().find(|it| it.is_named && it.is_end).map(|it| it.id.clone());
        for cut in &tree.cuts {
            let line = line_of(cut.line);
            if tree.is_plain(cut) {
                self.plain_summaries.insert(cut.marker.clone());
                report.remark(line, "a summary of what is not in the file, kept as a message");
                continue;
            }
            let (after, kept) = tree.kept_by(cut, &parents);
            let named = tree.named_by(cut).filter(|named| after.is_none() && *named != kept);
            if let Some(named) = named {
                let why = format!(
                    "the summary keeps message {named:?}, which is not above it: it keeps none"
                );
                report.remark(line, why);
            }
            let time = cut.created_at.unwrap_or(self.early());
            let (marker, summary) = (cut.marker.clone(), cut.summary.clone());
            let compaction = DraftCompaction::new(marker, line, kept.clone(), summary, time);
            let (id, after) = (cut.id.clone(), after.cloned());
            draft.compactions.push(DraftCompaction { id, after, ..compaction });
        }
        if let Some(agent) = agent.filter(|_| !has_main) {
            draft.details.parent_session = Some(draft.session.clone());
            draft.session = session_id(format!("{}/subagents/agent-{agent}", draft.session));
        }
        draft.notes = tree.nodes.iter().map(|node| !node.is_end).collect();
        let nodes = std::mem::take(&mut tree.nodes).into_iter();
        let nodes = nodes.map(|entries::Node { id, parent, is_side, line, .. }| {
            let About { line, fingerprint, place } = self.abouts[line as usize];
            let (is_hidden, body) = (tree.is_repeated(&id), Body::There(place));
            Node { id, parent, line, fingerprint, is_side, is_hidden, body }
        });
        draft.nodes = nodes.collect();
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

/// Names what each entry follows. Returns the places of these, as far as they are in the file or may be guessed.
fn connect(tree: &mut EntryTree) -> Vec<Option<u32>> {
    let followed = tree.follow(0, |parent| parent).parents;
    let (mut parents, mut before) = (Vec::with_capacity(followed.len()), [None, None]);
    for (at, (node, followed)) in (0..).zip(tree.nodes.iter_mut().zip(followed)) {
        let found = followed.as_ref().and_then(|id| tree.index.get(id)).copied();
        let last = &mut before[usize::from(node.is_side)];
        parents.push(found.or(last.filter(|_| followed.is_some())));
        if tree.index.get(&node.id) == Some(&at) {
            *last = Some(at);
        }
        node.parent = followed;
    }
    for at in tree.line_up(&mut parents) {
        let above = parents[at as usize].map(|above| tree.nodes[above as usize].id.clone());
        tree.nodes[at as usize].parent = above;
    }
    parents
}

/// Joins sessions with connected entries.
fn join(mut all: Vec<Conversation>, report: &mut ImportReport) -> Vec<Conversation> {
    let owners = all.iter().enumerate();
    let owners = owners.flat_map(|(at, it)| it.tree.index.keys().map(move |id| (id.clone(), at)));
    let owners: HashMap<MessageId, usize> = owners.collect();
    let mut into: Vec<usize> = (0..all.len()).collect();
    let find = |into: &[usize], mut at: usize| {
        while into[at] != at {
            at = into[at];
        }
        at
    };
    for (at, conversation) in all.iter().enumerate() {
        for node in &conversation.tree.nodes {
            let missing = node.parent.as_ref();
            let missing = missing.filter(|parent| !conversation.tree.index.contains_key(*parent));
            if let Some(&other) = missing.and_then(|parent| owners.get(parent)) {
                let (a, b) = (find(&into, at), find(&into, other));
                into[a.min(b)] = a.max(b);
            }
        }
    }
    for at in 0..all.len() {
        let end = find(&into, at);
        if end == at {
            continue;
        }
        let from = std::mem::take(&mut all[at].tree);
        let (line, id, has_main) = (all[at].line, all[at].session.clone(), all[at].has_main);
        let to = &mut all[end];
        report.remark(line, format!("entries of session {id:?} are part of {:?}", to.session));
        to.tree.join(from);
        to.has_main |= has_main;
        to.line = to.line.min(line);
    }
    all.into_iter().enumerate().filter(|(at, _)| into[*at] == *at).map(|(_, it)| it).collect()
}
