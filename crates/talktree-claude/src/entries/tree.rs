//! The entries of one session, while they are read in order.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{self, Fields};
use talktree::records::ids::{derive, message_id, name, session_id};
use talktree::{CompactionId, Json, Message, MessageId, Role, SessionDetails, SessionId};

use super::links::Chain;
use super::rounds::Share;
use super::{is_link, kind_of, uuid_of};

/// An entry that becomes a message.
#[derive(Debug, Clone)]
pub struct Node<T> {
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
    /// What the caller keeps of the entry.
    pub about: T,
}

/// A compaction: its summary replaces the path from the root to `kept`.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The id of the compaction.
    pub id: CompactionId,
    /// The line of the entry with the summary.
    pub line: u64,
    /// The first message that it keeps.
    pub kept: MessageId,
    /// The entry with the summary.
    pub marker: MessageId,
    /// The summary.
    pub summary: String,
    /// Its time; without one that of the entries before it.
    pub created_at: Option<DateTime<Utc>>,
}

/// One session while its entries are read.
#[derive(Debug, Clone)]
pub struct EntryTree<T> {
    /// The id that its entries give.
    pub session: SessionId,
    /// The line that it begins on.
    pub line: u64,
    /// The entries that become messages, in their order.
    pub nodes: Vec<Node<T>>,
    /// The compactions, in the order of their summaries.
    pub cuts: Vec<Cut>,
    /// How the entries are connected.
    pub chain: Chain,
    details: SessionDetails,
    head: Option<MessageId>,
    /// The head of a session in which all is apart from the conversation.
    fallback_head: Option<MessageId>,
    /// The parent for the next child of a node, if hidden messages were added after the node.
    behind: HashMap<Option<MessageId>, MessageId>,
    /// The node before the hidden messages at the end, and the last of these messages.
    row: Option<(Option<MessageId>, MessageId)>,
    ordinal: u64,
    titles: Titles,
    agent: Option<String>,
    has_main: bool,
    /// Boundaries, and the first message before them that each keeps.
    boundaries: BTreeMap<MessageId, Option<MessageId>>,
    time: Option<DateTime<Utc>>,
}

/// The name of the session; a title given by a person has priority.
#[derive(Debug, Clone, Default)]
struct Titles {
    custom: Option<String>,
    generated: Option<String>,
    summary: Option<(String, MessageId, u64)>,
}

impl<T> Default for EntryTree<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T> EntryTree<T> {
    /// Returns a session without entries.
    pub fn new(line: u64) -> Self {
        let source = Some("claude-code".to_owned());
        Self {
            session: session_id(""),
            line,
            nodes: Vec::new(),
            cuts: Vec::new(),
            chain: Chain::default(),
            details: SessionDetails { source, ..SessionDetails::default() },
            head: None,
            fallback_head: None,
            behind: HashMap::new(),
            row: None,
            ordinal: 0,
            titles: Titles::default(),
            agent: None,
            has_main: false,
            boundaries: BTreeMap::new(),
            time: None,
        }
    }

    /// Reads the next entry, of this line and with this text; `about` is what the caller keeps of it. Returns whether it
    /// becomes a message; otherwise it is about the session.
    pub fn read(&mut self, line: u64, text: &str, entry: &Fields, about: T) -> bool {
        self.time = entry.time("timestamp").or(self.time);
        let kind = kind_of(entry);
        if self.note_details(line, &kind, entry) {
            return false;
        }
        match uuid_of(entry).filter(|_| is_link(&kind) || entry.has("parentUuid")) {
            Some(uuid) => self.push_entry(line, &kind, entry, uuid, about),
            None => self.push_behind(line, text, about),
        }
        true
    }

    /// Returns the message that the conversation ends with.
    pub fn head(&self) -> Option<&MessageId> {
        self.head.as_ref().or(self.fallback_head.as_ref())
    }

    /// Returns the details of the session. `is_here` says whether it has a message.
    pub fn details(&self, is_here: impl FnOnce(&MessageId) -> bool) -> SessionDetails {
        let Titles { custom, generated, summary } = &self.titles;
        let summarized =
            || summary.as_ref().filter(|(_, leaf, _)| is_here(leaf)).map(|(text, ..)| text);
        let name = custom.as_ref().or(generated.as_ref()).or_else(summarized).cloned();
        let parent_session = self.agent().map(|_| self.session.clone());
        SessionDetails { name, parent_session, ..self.details.clone() }
    }

    /// Returns the line of a title, and the message that it is for.
    pub fn title_of(&self) -> Option<(u64, &MessageId)> {
        self.titles.summary.as_ref().map(|(_, leaf, line)| (*line, leaf))
    }

    /// Returns the agent of a session in which all is a side chain of one.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref().filter(|_| !self.has_main)
    }

    /// Returns the first message that a compaction keeps; `None` if all that it replaces is elsewhere: then its summary is
    /// shown as a message.
    pub fn kept_by<'a>(
        &'a self,
        cut: &'a Cut,
        is_here: impl FnOnce(&MessageId) -> bool,
    ) -> Option<&'a MessageId> {
        if self.nodes.first().is_some_and(|first| first.id == cut.kept) {
            return None;
        }
        let mut boundaries = self.boundaries.iter();
        match boundaries.find(|(_, kept)| kept.as_ref() == Some(&cut.kept)) {
            Some((boundary, _)) if !is_here(&cut.kept) => Some(boundary),
            _ => Some(&cut.kept),
        }
    }

    /// Adds the entries of a session that this one continues.
    pub fn join(&mut self, mut from: Self) {
        self.nodes.append(&mut from.nodes);
        self.nodes.sort_by_key(|node| node.line);
        self.cuts.append(&mut from.cuts);
        self.cuts.sort_by_key(|cut| cut.line);
        self.boundaries.extend(from.boundaries);
        self.chain.extend(from.chain);
        self.has_main |= from.has_main;
        self.line = self.line.min(from.line);
        if from.details.created_at.is_some() {
            self.details.created_at = from.details.created_at;
        }
    }

    /// Reads an entry about the whole session; `false` if it is another kind of entry.
    fn note_details(&mut self, line: u64, kind: &str, entry: &Fields) -> bool {
        match kind {
            // A blank title names nothing: the one before it stays.
            "custom-title" => {
                let title = entry.text("customTitle").and_then(|title| name(&title));
                self.titles.custom = title.or(self.titles.custom.take());
            }
            "ai-title" => {
                let title = entry.text("aiTitle").and_then(|title| name(&title));
                self.titles.generated = title.or(self.titles.generated.take());
            }
            "summary" => {
                let (Some(text), Some(leaf)) = (entry.text("summary"), entry.text("leafUuid"))
                else {
                    return false;
                };
                if let Some(title) = name(&text) {
                    self.titles.summary = Some((title, message_id(leaf), line));
                }
            }
            "tag" => {
                let tag = entry.get("tag").cloned();
                self.add_metadata(tag.map(|tag| ("tag".to_owned(), tag)).into_iter().collect());
            }
            "agent_metadata" => {
                let about = entry.clone().without(&["type", "sessionId"]);
                self.add_metadata(about.into_pairs());
            }
            _ => return false,
        }
        true
    }

    fn push_entry(&mut self, line: u64, kind: &str, entry: &Fields, id: MessageId, about: T) {
        self.note_circumstances(kind, entry);
        let is_side = entry.is_true("isSidechain");
        let parent = entry.text("parentUuid").map(message_id);
        match is_link(kind) {
            true => self.chain.named.extend(parent.clone()),
            false => self.chain.foreign.extend([id.clone()]),
        }
        let is_boundary = entry.text("subtype").as_deref() == Some("compact_boundary");
        let parent = match is_boundary {
            true => entry
                .text("logicalParentUuid")
                .map(message_id)
                .or(parent)
                .or_else(|| self.last_id()),
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
            self.note_compaction(line, entry, &id, parent.as_ref());
        }
        if matches!(kind, "user" | "assistant") {
            let is_apart = is_side || entry.has("teamName") || entry.is_true("isMeta");
            match is_apart {
                true => self.fallback_head = Some(id.clone()),
                false => self.head = Some(id.clone()),
            }
        }
        self.row = None;
        let share = match is_boundary || entry.is_true("isCompactSummary") {
            true => Share::Next,
            false => Share::of(kind, entry),
        };
        self.push(id, parent, line, is_side, share, about);
    }

    /// Adds an entry without a `uuid`, as a hidden message after the previous entry.
    fn push_behind(&mut self, line: u64, text: &str, about: T) {
        self.ordinal += 1;
        let ordinal = self.ordinal.to_string();
        let id: MessageId = derive(&["claude-code", &ordinal, text]).to_string().into();
        let before = self.last_id();
        let begin = match self.row.take() {
            Some((begin, last)) if before.as_ref() == Some(&last) => begin,
            _ => before.clone(),
        };
        self.behind.insert(begin.clone(), id.clone());
        self.row = Some((begin, id.clone()));
        self.chain.placed.insert(id.clone());
        self.push(id, before, line, false, Share::Notice, about);
    }

    fn push(
        &mut self,
        id: MessageId,
        mut parent: Option<MessageId>,
        line: u64,
        is_side: bool,
        share: Share,
        about: T,
    ) {
        // Ids are shared: the parent is usually the entry before.
        if let (Some(named), Some(before)) = (&parent, self.nodes.last())
            && *named == before.id
        {
            parent = Some(before.id.clone());
        }
        self.nodes.push(Node { id, parent, line, is_side, share, time: self.time, about });
    }

    fn last_id(&self) -> Option<MessageId> {
        self.nodes.last().map(|node| node.id.clone())
    }

    fn note_circumstances(&mut self, kind: &str, entry: &Fields) {
        let details = &mut self.details;
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
            self.add_metadata(seen.collect());
        }
        match entry.text("agentId").filter(|_| entry.is_true("isSidechain")) {
            Some(agent) => self.agent = Some(agent),
            None => self.has_main = true,
        }
    }

    fn note_compaction(
        &mut self,
        line: u64,
        entry: &Fields,
        id: &MessageId,
        parent: Option<&MessageId>,
    ) {
        let boundary = parent.filter(|parent| self.boundaries.contains_key(*parent));
        let kept = boundary.and_then(|boundary| self.boundaries[boundary].clone());
        let content = entry.object("message").and_then(|message| message.get("content").cloned());
        let parts = blocks::parts(content.as_ref(), &ToolNames::new());
        let kept = kept.or_else(|| boundary.cloned()).unwrap_or_else(|| id.clone());
        self.cuts.push(Cut {
            id: CompactionId::from(id.as_str()),
            line,
            kept,
            marker: id.clone(),
            summary: Message::new(Role::User, parts).text(),
            created_at: self.time,
        });
    }

    /// Keeps more fields in the session's metadata.
    fn add_metadata(&mut self, more: Vec<(String, Json)>) {
        fields::add(&mut self.details.metadata, more);
    }
}
