//! The entries of one session, while they are read in order.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{self, Fields};
use talktree::records::ids::{derive, message_id, name};
use talktree::{CompactionId, Json, Message, MessageId, Role, SessionDetails};

use super::rounds::Share;
use super::{is_link, kind_of, uuid_of};

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
    /// The boundary before the summary, which is what it keeps if `kept` is missing.
    boundary: Option<MessageId>,
    /// The entry with the summary.
    pub marker: MessageId,
    /// The summary.
    pub summary: String,
    /// Its time; without one that of the entries before it.
    pub created_at: Option<DateTime<Utc>>,
}

/// One session while its entries are read.
#[derive(Debug, Clone, Default)]
pub struct EntryTree {
    /// The entries that become messages, in their order.
    pub nodes: Vec<Node>,
    /// The compactions, in the order of their summaries.
    pub cuts: Vec<Cut>,
    /// The places of the messages; of a repeated one, the first.
    pub index: HashMap<MessageId, u32>,
    /// Whether an entry has named one that is here as its parent.
    pub is_linked: bool,
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
    ordinal: u64,
    /// The title that a person gave, that of a model, and that of a summary with the message it is for and its line.
    custom_title: Option<String>,
    generated_title: Option<String>,
    summarized_title: Option<(String, MessageId, u64)>,
    /// Boundaries, and the first message before them that each keeps.
    boundaries: HashMap<MessageId, Option<MessageId>>,
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
            Some(uuid) => self.push_entry(line, &kind, entry, uuid),
            None => self.push_behind(line, text),
        }
        true
    }

    /// Returns the message that the conversation ends with.
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

    /// Returns the first message that a compaction keeps; `None` if all that it replaces is elsewhere: then its summary is
    /// shown as a message.
    pub fn kept_by<'a>(&self, cut: &'a Cut) -> Option<&'a MessageId> {
        match self.index.get(&cut.kept) {
            Some(0) => None,
            Some(_) => Some(&cut.kept),
            None => Some(cut.boundary.as_ref().unwrap_or(&cut.kept)),
        }
    }

    /// Adds the entries of a session that this one continues.
    pub fn join(&mut self, mut from: Self) {
        self.nodes.append(&mut from.nodes);
        self.nodes.sort_by_key(|node| node.line);
        self.index.clear();
        for (node, at) in self.nodes.iter().zip(0..) {
            self.index.entry(node.id.clone()).or_insert(at);
        }
        self.cuts.append(&mut from.cuts);
        self.cuts.sort_by_key(|cut| cut.line);
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
                let Some(leaf) = entry.text("leafUuid").filter(|_| entry.text("summary").is_some())
                else {
                    return false;
                };
                let title = title("summary").map(|title| (title, message_id(leaf), line));
                self.summarized_title = title.or(self.summarized_title.take());
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

    fn push_entry(&mut self, line: u64, kind: &str, entry: &Fields, id: MessageId) {
        self.note_circumstances(kind, entry);
        let is_side = entry.is_true("isSidechain");
        let parent = entry.text("parentUuid").map(message_id);
        let is_link = is_link(kind);
        if is_link && !self.is_linked {
            let is_known = parent.as_ref().is_some_and(|it| self.index.contains_key(it));
            self.is_linked = is_known || self.named.contains(&id);
            self.named.extend(parent.clone());
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
        let before = &mut self.before[usize::from(is_side)];
        // What entries of other programs name says nothing about the others.
        let before = match is_link || parent.is_none() {
            true => before.replace(id.clone()),
            false => None,
        };
        let parent = parent.or(before.filter(|_| !self.is_linked));
        if is_boundary {
            let metadata = entry.object("compactMetadata");
            let kept = metadata.and_then(|metadata| metadata.object("preservedSegment"));
            let kept = kept.and_then(|kept| kept.text("headUuid")).map(message_id);
            self.boundaries.insert(id.clone(), kept);
        }
        let is_summary = entry.is_true("isCompactSummary");
        if is_summary {
            self.note_compaction(line, entry, &id, parent.as_ref());
        }
        if matches!(kind, "user" | "assistant") {
            let is_apart = is_side || entry.has("teamName") || entry.is_true("isMeta");
            let head = if is_apart { &mut self.fallback_head } else { &mut self.head };
            *head = Some(id.clone());
        }
        self.row = None;
        let share = match is_boundary || is_summary {
            true => Share::Next,
            false => Share::of(kind, entry),
        };
        self.push(id, parent, line, is_side, share);
    }

    /// Adds an entry without a `uuid`, as a hidden message after the previous entry.
    fn push_behind(&mut self, line: u64, text: &str) {
        self.ordinal += 1;
        let id = derive(&["claude-code", &self.ordinal.to_string(), text]).to_string();
        let (id, before) = (MessageId::from(id), self.last_id());
        let begin = self.row.take().unwrap_or_else(|| before.clone());
        self.behind.insert(begin.clone(), id.clone());
        self.row = Some(begin);
        self.before[0] = Some(id.clone());
        self.push(id, before, line, false, Share::Notice);
    }

    fn push(
        &mut self,
        id: MessageId,
        parent: Option<MessageId>,
        line: u64,
        is_side: bool,
        share: Share,
    ) {
        // Ids are shared: the parent is usually the entry before.
        let before = self.last_id().filter(|before| parent.as_ref() == Some(before));
        let parent = before.or(parent);
        self.index.entry(id.clone()).or_insert(self.nodes.len() as u32);
        self.nodes.push(Node { id, parent, line, is_side, share, time: self.time });
    }

    fn last_id(&self) -> Option<MessageId> {
        self.nodes.last().map(|node| node.id.clone())
    }

    fn note_circumstances(&mut self, kind: &str, entry: &Fields) {
        let details = &mut self.details;
        details.created_at = details.created_at.or_else(|| entry.time("timestamp"));
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
    }

    fn note_compaction(
        &mut self,
        line: u64,
        entry: &Fields,
        id: &MessageId,
        parent: Option<&MessageId>,
    ) {
        let boundary = parent.and_then(|parent| self.boundaries.get_key_value(parent));
        let (boundary, kept) = boundary.map(|(id, kept)| (id.clone(), kept.clone())).unzip();
        let content = entry.object("message").and_then(|message| message.get("content").cloned());
        let parts = blocks::parts(content.as_ref(), &ToolNames::new());
        let kept = kept.flatten().or_else(|| boundary.clone()).unwrap_or_else(|| id.clone());
        self.cuts.push(Cut {
            id: CompactionId::from(id.as_str()),
            line,
            kept,
            boundary,
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
