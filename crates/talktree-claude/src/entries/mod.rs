//! Transcripts of Claude Code.
//!
//! Entries form a tree by `uuid` and `parentUuid`. Entries by the model or a person become messages; other entries with a
//! `uuid` become hidden messages in the same position. What a person wrote while the model worked comes as an attachment of
//! the kind `queued_command`, and is a message, too. Entries without a `uuid` follow the entry before them, the program's own as
//! hidden messages, or become session details (titles, tags). `progress` entries only link others, and are left out.
//!
//! What the program says in the name of the model, such as that a request failed, is hidden, and so is a part of an answer that
//! a later part repeats with more text.
//!
//! An answer of the model is several entries, and their results hang under their own calls: [`Rounds`] puts each answer in
//! one piece, so that a path has every result.
//!
//! A compaction is a boundary, which begins a new chain, and a summary. The boundary becomes a child of the last entry
//! before the cut, both become hidden messages, and the summary replaces all messages before them, without those that the
//! boundary names as kept. These follow each other, whatever their entries name.
//!
//! An entry that was copied from another session with an id of its own (`forkedFrom`) becomes a message under the id of its
//! origin. So the copy is a fork of the session that it was copied from, and the ids of its entries name those messages.
//!
//! Some tools write transcripts in which no entry names its parent. Until one does, each entry is the child of the one before.
//!
//! An [`EntryTree`] reads the entries of one session in their order and says which message follows which; [`message`] makes a
//! message of one entry.

mod rounds;
mod tree;

pub use rounds::{Rounds, Share};
pub use tree::{CONTINUED_IN, Cut, EntryTree, Followed, Node, SESSION_KIND};

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::{Fields, data_part, text_part};
use talktree::records::ids::message_id;
use talktree::{Json, Message, MessageId, Role};

/// Returns the type of an entry; empty if it has none.
pub fn kind_of(entry: &Fields) -> String {
    entry.text("type").unwrap_or_default()
}

/// Returns the id that a field gives, as that of a message.
pub fn named(entry: &Fields, field: &str) -> Option<MessageId> {
    entry.id(field).map(message_id)
}

/// Returns the id of an entry.
pub fn uuid_of(entry: &Fields) -> Option<MessageId> {
    named(entry, "uuid")
}

/// Returns whether entries of this type are links of the chain.
pub fn is_link(kind: &str) -> bool {
    matches!(kind, "user" | "assistant" | "system" | "attachment")
}

/// Returns the content in which a model calls tools.
pub fn called(entry: &Fields) -> Option<Json> {
    let message = entry.object("message").filter(|_| kind_of(entry) == "assistant")?;
    message.get("content").cloned()
}

/// Returns whether an entry is the word of a person or of the model.
pub fn is_said(kind: &str, entry: &Fields) -> bool {
    let has_message = || entry.get("message").is_some_and(|it| it.as_str().starts_with('{'));
    match kind {
        "user" => has_message(),
        "assistant" => has_message() && !is_notice(entry),
        _ => queued(kind, entry).is_some(),
    }
}

/// Returns whether the program wrote a message in the name of the model.
fn is_notice(entry: &Fields) -> bool {
    let named = entry.get("message").filter(|message| message.as_str().contains(SYNTHETIC));
    let model = named.and_then(Fields::of).and_then(|message| message.text("model"));
    entry.is_true("isApiErrorMessage") || model.as_deref() == Some(SYNTHETIC)
}

/// The model of a message that the program itself wrote.
const SYNTHETIC: &str = "<synthetic>";

/// Returns what a person wrote while the model worked. Notices of the program come in the same form.
fn queued(kind: &str, entry: &Fields) -> Option<Json> {
    const NOTICE: &str = "<task-notification>";
    let attached = entry.object("attachment").filter(|_| kind == "attachment")?;
    let is_prompt = attached.text("type").as_deref() == Some("queued_command")
        && attached.text("commandMode").as_deref() != Some("task-notification");
    let origin = attached.object("origin").and_then(|origin| origin.text("kind"));
    let prompt = attached.get("prompt").filter(|_| is_prompt)?;
    let text = Message::new(Role::User, blocks::parts(Some(prompt), &ToolNames::new())).text();
    let is_persons = origin.is_none_or(|origin| origin == "human");
    (is_persons && !text.trim_start().starts_with(NOTICE)).then(|| prompt.clone())
}

/// Returns the files in which the full results of tools are that an entry has only the beginning of.
pub fn persisted(entry: &Fields) -> Vec<String> {
    const START: &str = "<persisted-output>";
    let message = entry.get("message").filter(|message| message.as_str().contains(START));
    let content = message.and_then(Fields::of).and_then(|message| message.list("content"));
    let results = content.unwrap_or_default();
    let results =
        results.iter().filter(|block| block.as_str().contains(START)).filter_map(Fields::of);
    let texts = results.filter_map(|block| block.text("content"));
    let path = |text: String| {
        let rest = text.split_once(START)?.1.split_once("saved to: ")?.1.lines().next()?;
        Some(rest.trim().to_owned())
    };
    texts.filter_map(path).collect()
}

/// Returns the message of an entry.
///
/// `time` is that of an entry without one; `names` has the names of the tools that were called. `is_plain` says that the
/// summary of a compaction is shown, because the messages that it replaces are elsewhere.
pub fn message(
    entry: Fields,
    id: MessageId,
    time: DateTime<Utc>,
    names: &ToolNames,
    is_plain: bool,
) -> Message {
    let kind = kind_of(&entry);
    let time = entry.time("timestamp").unwrap_or(time);
    let inner = entry.object("message").filter(|_| matches!(&*kind, "user" | "assistant"));
    let message = match (inner, queued(&kind, &entry)) {
        (Some(inner), _) => message_of(&kind, entry, inner, names, is_plain),
        (None, Some(prompt)) => message_of_queue(entry, &prompt),
        (None, None) if kind == "system" => noted(entry),
        (None, None) => hidden(&kind, entry),
    };
    message.with_id(id).at(time)
}

fn message_of(
    kind: &str,
    entry: Fields,
    inner: Fields,
    names: &ToolNames,
    is_plain: bool,
) -> Message {
    let parts = blocks::parts(inner.get("content"), names);
    let role = inner.text("role").unwrap_or_else(|| kind.to_owned());
    let is_notice = kind == "assistant" && is_notice(&entry);
    let role = match role {
        _ if is_notice => Role::System,
        _ if blocks::are_results(&parts) => Role::Tool,
        role => Role::from(role),
    };
    let is_summary = entry.is_true("isCompactSummary") && !is_plain;
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
    message.is_hidden = is_summary || is_notice;
    message
}

fn message_of_queue(entry: Fields, prompt: &Json) -> Message {
    let attached = entry.object("attachment").unwrap_or_default().without(&["prompt"]).into_json();
    let known = ["type", "uuid", "parentUuid", "sessionId", "timestamp", "attachment"];
    let about = entry.without(&known).with("attachment", attached);
    let mut message = Message::new(Role::User, blocks::parts(Some(prompt), &ToolNames::new()));
    message.metadata = about.into_json();
    message
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

/// The `progress` entries, which only link others: the parent of each.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    parents: HashMap<MessageId, Option<MessageId>>,
}

impl Progress {
    /// Reads an entry; returns its id if it only links others.
    pub fn read(&mut self, entry: &Fields) -> Option<MessageId> {
        let uuid = uuid_of(entry).filter(|_| kind_of(entry) == "progress")?;
        self.parents.insert(uuid.clone(), named(entry, "parentUuid"));
        Some(uuid)
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.parents.len()
    }

    /// Returns the first entry from this parent upwards that is more than a link. If the links are a cycle, that is the least
    /// of them, wherever the cycle is entered: a session must not depend on the order in which its entries came.
    pub fn pass(&mut self, mut parent: Option<MessageId>) -> Option<MessageId> {
        let mut way = Vec::new();
        while let Some(link) = parent.take_if(|id| self.parents.contains_key(id)) {
            // Removed while it is followed, so a cycle of links ends.
            parent = self.parents.remove(&link).flatten();
            way.push(link);
        }
        if let Some(entry) = way.iter().position(|link| parent.as_ref() == Some(link)) {
            parent = way[entry..].iter().min().cloned();
        }
        // Path compression: the next entry below the same links finds their end at once.
        for link in way {
            self.parents.insert(link, parent.clone());
        }
        parent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(drawn: &[[&str; 2]]) -> Progress {
        let parents = drawn.iter().map(|[id, parent]| (message_id(*id), Some(message_id(*parent))));
        Progress { parents: parents.collect() }
    }

    /// The end of a cycle was the link that was asked for first: a session depended on the order in which its entries came.
    #[test]
    fn a_cycle_of_links_ends_at_the_same_link_wherever_it_is_entered() {
        let drawn = [["a", "c"], ["c", "d"], ["d", "b"], ["b", "c"]];
        for first in ["a", "b", "c", "d"] {
            let mut links = links(&drawn);
            for next in [first, "a", "b", "c", "d"] {
                assert_eq!(links.pass(Some(message_id(next))), Some(message_id("b")), "{first}");
            }
        }
    }

    #[test]
    fn a_chain_of_links_ends_at_the_entry_above_it() {
        let mut links = links(&[["a", "b"], ["b", "x"]]);
        for _ in 0..2 {
            assert_eq!(links.pass(Some(message_id("a"))), Some(message_id("x")));
        }
        assert_eq!(links.pass(Some(message_id("y"))), Some(message_id("y")));
        assert_eq!(links.pass(None), None);
    }
}
