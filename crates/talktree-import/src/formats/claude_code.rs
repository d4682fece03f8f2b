//! Transcripts of Claude Code.
//!
//! Entries form a tree by `uuid` and `parentUuid`. A file is usually one session, but that of a resumed one may hold
//! entries of the session before; connected entries become one session. Entries by the model or a person become
//! messages; other entries with a `uuid` become hidden messages in the same position. Entries without a `uuid` become
//! hidden messages after the entry before them in the file, or session details (titles, tags). `progress` entries only
//! link others, and are left out.
//!
//! A compaction is a boundary, which begins a new chain, and a summary. The boundary becomes a child of the last entry
//! before the cut, both become hidden messages, and the summary replaces all messages before them.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use talktree::import::ImportReport;
use talktree::{CompactionId, Json, Message, MessageId, Role};

use super::blocks::{self, ToolNames};
use crate::draft::{
    Body, Draft, DraftCompaction, Node, Orphans, Reader, derive, fingerprint, message_id, name,
    session_id,
};
use crate::fields::{Fields, data_part, text_part};
use crate::records::Record;

/// Reads Claude Code transcripts.
pub(crate) struct ClaudeCode {
    now: DateTime<Utc>,
    times: Times,
    names: ToolNames,
    talks: Vec<Talk>,
    /// The conversation of each session id; an entry without one belongs to that of the previous entry.
    by_session: HashMap<String, usize>,
    current: usize,
    /// Entries that only link others, and their parents.
    links: HashMap<MessageId, Option<MessageId>>,
    links_line: Option<u64>,
    /// Summaries of messages that are not in the file: they become messages.
    plain_summaries: HashSet<MessageId>,
}

/// The times of entries without a `timestamp`: that of the entry before them, or of the first one that has a time.
///
/// So an import of the same file is the same at any time, and a session is not younger than its last answer.
#[derive(Default)]
struct Times {
    latest: Option<DateTime<Utc>>,
    /// Entries before the first time.
    early: Vec<MessageId>,
    by_entry: HashMap<MessageId, DateTime<Utc>>,
}

impl Times {
    /// Notes the time of an entry before it is read.
    fn note(&mut self, time: Option<DateTime<Utc>>) {
        if let Some(time) = time {
            self.latest = Some(time);
            self.by_entry.extend(self.early.drain(..).map(|id| (id, time)));
        }
    }

    /// Notes a message of an entry that has no time.
    fn lacks(&mut self, id: &MessageId) {
        match self.latest {
            Some(time) => drop(self.by_entry.insert(id.clone(), time)),
            None => self.early.push(id.clone()),
        }
    }
}

/// One session while it is read.
struct Talk {
    draft: Draft,
    /// The parent for the next child of a node, if hidden messages were added after the node.
    behind: HashMap<Option<MessageId>, MessageId>,
    /// The node before the hidden messages at the end, and the last of these messages.
    row: Option<(Option<MessageId>, MessageId)>,
    links: Links,
    ordinal: u64,
    titles: Titles,
    agent: Option<String>,
    has_main: bool,
    fallback_head: Option<MessageId>,
    /// Boundaries, and the first message before them that each keeps.
    boundaries: HashMap<MessageId, Option<MessageId>>,
}

/// Which entries say how the entries of a session are connected.
#[derive(Default)]
struct Links {
    /// The parents that messages name.
    named: HashSet<MessageId>,
    /// Entries without a `uuid`, which were placed after the entry before them.
    placed: HashSet<MessageId>,
    /// Entries with a `uuid` that are of no type of Claude Code.
    foreign: HashSet<MessageId>,
}

impl Links {
    fn follows_a_placed_one(&self, node: &Node) -> bool {
        node.parent.as_ref().is_some_and(|parent| self.placed.contains(parent))
    }
}

/// The name of the session; a title given by a person has priority.
#[derive(Default)]
struct Titles {
    custom: Option<String>,
    generated: Option<String>,
    summary: Option<(String, MessageId, u64)>,
}

impl ClaudeCode {
    pub(crate) fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            times: Times::default(),
            names: ToolNames::new(),
            talks: Vec::new(),
            by_session: HashMap::new(),
            current: 0,
            links: HashMap::new(),
            links_line: None,
            plain_summaries: HashSet::new(),
        }
    }

    /// Returns the session of an entry.
    fn talk(&mut self, record: &Record, entry: &Fields) -> &mut Talk {
        let given = entry.text("sessionId");
        let known = given.as_ref().and_then(|id| self.by_session.get(id)).copied();
        let is_unnamed = self.talks.len() == 1 && self.by_session.is_empty();
        self.current = match (&given, known) {
            (_, Some(known)) => known,
            (None, None) if !self.talks.is_empty() => self.current,
            (Some(_), None) if is_unnamed => 0,
            _ => {
                self.talks.push(Talk::new(record.line));
                self.talks.len() - 1
            }
        };
        let talk = &mut self.talks[self.current];
        if let (Some(id), None) = (given, known) {
            talk.draft.session = session_id(id.as_str());
            self.by_session.insert(id, self.current);
        }
        talk
    }
}

impl Reader for ClaudeCode {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        let kind = entry.text("type").unwrap_or_default();
        if let Some(message) = entry.object("message").filter(|_| kind == "assistant") {
            blocks::collect_names(message.get("content"), &mut self.names);
        }
        let time = entry.time("timestamp");
        self.times.note(time);
        let now = self.times.latest.unwrap_or(self.now);
        let uuid = entry.text("uuid").map(message_id);
        if kind == "progress"
            && let Some(uuid) = uuid
        {
            self.links.insert(uuid, entry.text("parentUuid").map(message_id));
            self.links_line.get_or_insert(record.line);
            report.dropped += 1;
            return None;
        }
        let talk = self.talk(record, &entry);
        if talk.note_details(record, &kind, &entry) {
            report.converted += 1;
            return None;
        }
        match uuid.filter(|_| is_link(&kind) || entry.has("parentUuid")) {
            Some(uuid) => talk.push_entry(record, &kind, &entry, uuid, now),
            None => talk.push_behind(record),
        }
        if let (None, Some(id)) = (time, talk.draft.last_id()) {
            self.times.lacks(&id);
        }
        None
    }

    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        if let Some(line) = self.links_line {
            let count = self.links.len();
            report.remark(line, format!("{count} progress entries hold nothing to keep"));
        }
        self.pass_links();
        let mut drafts = Vec::new();
        for mut talk in join(std::mem::take(&mut self.talks), report) {
            talk.close(report, &mut self.plain_summaries);
            drafts.push(talk.draft);
        }
        drafts
    }

    fn message(&self, _: &Record, entry: Fields, node: &Node) -> Message {
        let kind = entry.text("type").unwrap_or_default();
        let time = entry.time("timestamp").or_else(|| self.times.by_entry.get(&node.id).copied());
        let time = time.unwrap_or(self.now);
        let inner = entry.object("message").filter(|_| matches!(&*kind, "user" | "assistant"));
        let message = match inner {
            Some(inner) => self.said(&kind, entry, inner, node),
            None if kind == "system" => noted(entry),
            None => hidden(&kind, entry),
        };
        message.with_id(node.id.clone()).at(time)
    }
}

impl ClaudeCode {
    fn said(&self, kind: &str, entry: Fields, inner: Fields, node: &Node) -> Message {
        let parts = blocks::parts(inner.get("content"), &self.names);
        let role = inner.text("role").unwrap_or_else(|| kind.to_owned());
        let role = if blocks::are_results(&parts) { Role::Tool } else { Role::from(role) };
        let is_summary =
            entry.is_true("isCompactSummary") && !self.plain_summaries.contains(&node.id);
        let about = inner.without(&["role", "content", "type"]).into_json();
        // Fields that every entry of a session repeats are in the session's details.
        let mut entry = entry.without(&[
            "type",
            "uuid",
            "parentUuid",
            "sessionId",
            "timestamp",
            "message",
            "cwd",
            "version",
            "gitBranch",
            "userType",
            "toolUseResult",
        ]);
        if !entry.is_true("isSidechain") {
            entry = entry.without(&["isSidechain"]);
        }
        let mut message = Message::new(role, parts);
        message.metadata = entry.with("message", about).into_json();
        message.is_hidden = is_summary;
        message
    }

    /// Replaces links: their children get the parent of the link.
    fn pass_links(&mut self) {
        let mut way = Vec::new();
        for talk in &mut self.talks {
            for node in &mut talk.draft.nodes {
                while let Some(link) = node.parent.take_if(|id| self.links.contains_key(id)) {
                    // Removed while it is followed, so a cycle of links ends.
                    node.parent = self.links.remove(&link).flatten();
                    way.push(link);
                }
                // Path compression: the next node below the same links finds their end at once.
                for link in way.drain(..) {
                    self.links.insert(link, node.parent.clone());
                }
            }
        }
    }
}

impl Talk {
    fn new(line: u64) -> Self {
        let mut draft = Draft::new(session_id(""), line);
        draft.orphans = Orphans::FollowTheNodeBefore;
        draft.details.source = Some("claude-code".to_owned());
        Self {
            draft,
            behind: HashMap::new(),
            row: None,
            links: Links::default(),
            ordinal: 0,
            titles: Titles::default(),
            agent: None,
            has_main: false,
            fallback_head: None,
            boundaries: HashMap::new(),
        }
    }

    /// Reads an entry about the whole session; `false` if it is another kind of entry.
    fn note_details(&mut self, record: &Record, kind: &str, entry: &Fields) -> bool {
        match kind {
            "custom-title" => self.titles.custom = entry.text("customTitle"),
            "ai-title" => self.titles.generated = entry.text("aiTitle"),
            "summary" => {
                let (Some(text), Some(leaf)) = (entry.text("summary"), entry.text("leafUuid"))
                else {
                    return false;
                };
                self.titles.summary = Some((text, message_id(leaf), record.line));
            }
            "tag" => {
                let tag = entry.get("tag").cloned();
                self.draft
                    .add_metadata(tag.map(|tag| ("tag".to_owned(), tag)).into_iter().collect());
            }
            "agent_metadata" => {
                let about = entry.clone().without(&["type", "sessionId"]);
                self.draft.add_metadata(about.into_pairs());
            }
            _ => return false,
        }
        true
    }

    fn push_entry(
        &mut self,
        record: &Record,
        kind: &str,
        entry: &Fields,
        id: MessageId,
        now: DateTime<Utc>,
    ) {
        self.note_circumstances(kind, entry);
        let is_side = entry.is_true("isSidechain");
        let parent = entry.text("parentUuid").map(message_id);
        match is_link(kind) {
            true => self.links.named.extend(parent.clone()),
            false => drop(self.links.foreign.insert(id.clone())),
        }
        let is_boundary = entry.text("subtype").as_deref() == Some("compact_boundary");
        let parent = match is_boundary {
            true => entry
                .text("logicalParentUuid")
                .map(message_id)
                .or(parent)
                .or_else(|| self.draft.last_id()),
            // The first entry to follow a node follows the hidden messages after it.
            false if is_side => parent,
            false => self.behind.remove(&parent).or(parent),
        };
        if is_boundary {
            let metadata = entry.object("compactMetadata");
            let kept = metadata.and_then(|metadata| metadata.object("preservedSegment"));
            let kept = kept.and_then(|kept| kept.text("headUuid")).map(message_id);
            self.boundaries.insert(id.clone(), kept);
        }
        if entry.is_true("isCompactSummary") {
            self.note_compaction(record, entry, &id, parent.as_ref(), now);
        }
        if matches!(kind, "user" | "assistant") {
            let is_apart = is_side || entry.has("teamName") || entry.is_true("isMeta");
            match is_apart {
                true => self.fallback_head = Some(id.clone()),
                false => self.draft.head = Some(id.clone()),
            }
        }
        self.row = None;
        self.draft.push(Node { is_side, ..node(id, parent, record) });
    }

    /// Adds an entry without a `uuid`, as a hidden message after the previous entry.
    fn push_behind(&mut self, record: &Record) {
        self.ordinal += 1;
        let ordinal = self.ordinal.to_string();
        let id: MessageId = derive(&["claude-code", &ordinal, &record.text]).to_string().into();
        let before = self.draft.last_id();
        let begin = match self.row.take() {
            Some((begin, last)) if before.as_ref() == Some(&last) => begin,
            _ => before.clone(),
        };
        self.behind.insert(begin.clone(), id.clone());
        self.row = Some((begin, id.clone()));
        self.links.placed.insert(id.clone());
        self.draft.push(node(id, before, record));
    }

    fn note_circumstances(&mut self, kind: &str, entry: &Fields) {
        let details = &mut self.draft.details;
        if details.created_at.is_none() {
            details.created_at = entry.time("timestamp");
        }
        if kind == "assistant"
            && let Some(model) = entry.object("message").and_then(|message| message.text("model"))
            && model != "<synthetic>"
        {
            details.model = Some(model);
        }
        if details.metadata.is_none() {
            let seen = ["cwd", "gitBranch", "version"].into_iter();
            let seen = seen.filter_map(|name| Some((name.to_owned(), entry.get(name)?.clone())));
            self.draft.add_metadata(seen.collect());
        }
        match entry.text("agentId").filter(|_| entry.is_true("isSidechain")) {
            Some(agent) => self.agent = Some(agent),
            None => self.has_main = true,
        }
    }

    fn note_compaction(
        &mut self,
        record: &Record,
        entry: &Fields,
        id: &MessageId,
        parent: Option<&MessageId>,
        now: DateTime<Utc>,
    ) {
        let boundary = parent.filter(|parent| self.boundaries.contains_key(*parent));
        let kept = boundary.and_then(|boundary| self.boundaries[boundary].clone());
        let content = entry.object("message").and_then(|message| message.get("content").cloned());
        let parts = blocks::parts(content.as_ref(), &ToolNames::new());
        let kept = kept.or_else(|| boundary.cloned()).unwrap_or_else(|| id.clone());
        self.draft.compactions.push(DraftCompaction {
            id: CompactionId::from(id.as_str()),
            line: record.line,
            kept,
            marker: id.clone(),
            summary: Message::new(Role::User, parts).text(),
            details: None,
            created_at: entry.time("timestamp").unwrap_or(now),
        });
    }

    /// Resolves what depends on the whole file.
    fn close(&mut self, report: &mut ImportReport, plain_summaries: &mut HashSet<MessageId>) {
        let draft = &mut self.draft;
        if let Some(fallback) = self.fallback_head.take()
            && draft.head.is_none()
        {
            draft.head = Some(fallback);
        }
        chain_if_unlinked(draft, &self.links, report);
        let ids: HashSet<&MessageId> = draft.nodes.iter().map(|node| &node.id).collect();
        if let Some((text, leaf, line)) = self.titles.summary.take() {
            match ids.contains(&leaf) {
                true => self.titles.generated = self.titles.generated.take().or(Some(text)),
                false => report.remark(line, "a title for messages of another file, not used"),
            }
        }
        let title = self.titles.custom.take().or(self.titles.generated.take());
        draft.details.name = title.as_deref().and_then(name);
        // The messages of this summary are in another file.
        let first = draft.nodes.first().map(|node| node.id.clone());
        let boundaries = &self.boundaries;
        draft.compactions.retain_mut(|compaction| {
            let end = &compaction.kept;
            let is_empty = first.as_ref() == Some(end);
            if let Some(boundary) = boundaries.iter().find(|(_, kept)| kept.as_ref() == Some(end))
                && !ids.contains(end)
            {
                compaction.kept = boundary.0.clone();
            }
            if is_empty {
                plain_summaries.insert(compaction.marker.clone());
                let why = "a summary of what is not in the file, kept as a message";
                report.remark(compaction.line, why);
            }
            !is_empty
        });
        if let Some(agent) = self.agent.take().filter(|_| !self.has_main) {
            draft.details.parent_session = Some(draft.session.clone());
            draft.session = session_id(format!("{}/subagents/agent-{agent}", draft.session));
        }
    }
}

/// Makes each entry the child of the one before if no message of the file names its parent, as some tools write
/// transcripts.
///
/// Entries of other programs say nothing about how the others are connected.
fn chain_if_unlinked(draft: &mut Draft, links: &Links, report: &mut ImportReport) {
    let ids: HashSet<&MessageId> = draft.nodes.iter().map(|node| &node.id).collect();
    let count = draft.nodes.len() - links.placed.len() - links.foreign.len();
    if count < 2 || links.named.iter().any(|parent| ids.contains(parent)) {
        return;
    }
    report.remark(draft.line, "no entry names a parent; each is taken to follow the one before");
    let mut before: Option<MessageId> = None;
    for node in &mut draft.nodes {
        let is_placed = links.placed.contains(&node.id);
        if links.foreign.contains(&node.id) && node.parent.is_some() {
            continue;
        }
        // A parent that is missing is reported later; the entry follows the one before, too.
        if node.parent.is_none() || is_placed || links.follows_a_placed_one(node) {
            node.parent.clone_from(&before);
        }
        before = Some(node.id.clone());
    }
}

/// Joins sessions with connected entries.
fn join(mut talks: Vec<Talk>, report: &mut ImportReport) -> Vec<Talk> {
    if talks.len() < 2 {
        return talks;
    }
    let owners: HashMap<MessageId, usize> = talks
        .iter()
        .enumerate()
        .flat_map(|(at, talk)| talk.draft.nodes.iter().map(move |node| (node.id.clone(), at)))
        .collect();
    let mut into: Vec<usize> = (0..talks.len()).collect();
    let find = |into: &[usize], mut at: usize| {
        while into[at] != at {
            at = into[at];
        }
        at
    };
    for (at, talk) in talks.iter().enumerate() {
        for node in &talk.draft.nodes {
            let other = node.parent.as_ref().and_then(|parent| owners.get(parent));
            if let Some(&other) = other.filter(|other| **other != at) {
                let (a, b) = (find(&into, at), find(&into, other));
                into[a.min(b)] = a.max(b);
            }
        }
    }
    for at in 0..talks.len() {
        let end = find(&into, at);
        if end == at {
            continue;
        }
        let mut from = std::mem::replace(&mut talks[at], Talk::new(0));
        let (line, id) = (from.draft.line, from.draft.session.clone());
        let to = &mut talks[end];
        report
            .remark(line, format!("entries of session {id:?} are part of {:?}", to.draft.session));
        to.draft.nodes.append(&mut from.draft.nodes);
        to.draft.nodes.sort_by_key(|node| node.line);
        to.draft.compactions.append(&mut from.draft.compactions);
        to.draft.compactions.sort_by_key(|compaction| compaction.line);
        to.boundaries.extend(from.boundaries);
        to.links.named.extend(from.links.named);
        to.links.placed.extend(from.links.placed);
        to.links.foreign.extend(from.links.foreign);
        to.has_main |= from.has_main;
        to.draft.line = to.draft.line.min(line);
        if from.draft.details.created_at.is_some() {
            to.draft.details.created_at = from.draft.details.created_at;
        }
    }
    talks.into_iter().enumerate().filter(|(at, _)| into[*at] == *at).map(|(_, talk)| talk).collect()
}

fn node(id: MessageId, parent: Option<MessageId>, record: &Record) -> Node {
    let body = Body::there(record);
    Node {
        id,
        parent,
        line: record.line,
        fingerprint: fingerprint(&record.text),
        is_side: false,
        is_hidden: false,
        body,
    }
}

/// Returns whether entries of this type are links of the chain.
fn is_link(kind: &str) -> bool {
    matches!(kind, "user" | "assistant" | "system" | "attachment")
}

/// Returns the text of an entry that the program itself wrote.
fn noted(entry: Fields) -> Message {
    let parts = entry.get("content").map(text_part).into_iter().collect();
    let mut message = Message::new(Role::System, parts).hidden();
    let known = ["type", "uuid", "parentUuid", "sessionId", "timestamp", "content"];
    message.metadata = entry.without(&known).into_json();
    message
}

fn hidden(kind: &str, entry: Fields) -> Message {
    let record: Option<Json> = entry.into_json();
    let parts = record.iter().map(|record| data_part(kind, record)).collect();
    Message::new(kind, parts).hidden()
}
