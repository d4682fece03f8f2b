//! Helpers of the rules.
//!
//! Trees are drawn as text: a letter is the message of this id, `[s]` is the summary of the compaction `s`.

use std::sync::Arc;

use crate::compaction::{Compaction, CompactionStatus};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::{Json, Message};
use crate::outcome::Deleted;
use crate::search::{Scope, SearchRequest};
use crate::storage::{Cursor, SessionProvider};
use crate::view::{ExpectedHead, Parent};

/// A provider under test.
pub(super) struct Probe {
    pub(super) provider: Arc<dyn SessionProvider>,
}

pub(super) fn id(letter: &str) -> MessageId {
    MessageId::from(letter)
}

pub(super) fn message(letter: &str) -> Message {
    Message::user(format!("text of {letter}")).with_id(letter)
}

impl Probe {
    /// Appends a tree drawn as pairs of message and parent: `"a- ba cb da"` is the path a b c, and a branch d under a.
    pub(super) fn draw(&self, tree: &str) -> Result<()> {
        for node in tree.split(' ') {
            let (letter, parent) = node.split_at(1);
            let parent = match parent {
                "-" => Parent::Root,
                parent => Parent::Message(id(parent)),
            };
            self.provider.append(&parent, &ExpectedHead::Any, &[message(letter)])?;
        }
        Ok(())
    }

    pub(super) fn compact(&self, name: &str, first: &str, last: &str) -> Result<()> {
        let status = self.provider.add_compaction(&Compaction {
            id: CompactionId::from(name),
            details: Some(Json::from(serde_json::json!({"of": name}))),
            ..Compaction::new(format!("summary {name}"), id(first), id(last))
        })?;
        let shown = self.provider.history(None)?;
        let summary = CompactionId::from(name).as_message();
        assert_eq!(
            status == CompactionStatus::Shown,
            shown.iter().any(|item| item.id == summary),
            "the status of {name:?} when it was added: {status:?}"
        );
        Ok(())
    }

    pub(super) fn history(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.provider.history(Some(&id(leaf)))?))
    }

    pub(super) fn raw(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.provider.raw_history(Some(&id(leaf)))?))
    }

    /// Returns the raw path to the head.
    pub(super) fn head(&self) -> Result<String> {
        Ok(drawn(&self.provider.raw_history(None)?))
    }

    pub(super) fn children(&self, of: Option<&str>) -> Result<String> {
        Ok(drawn(&self.provider.branches(of.map(id).as_ref())?))
    }

    pub(super) fn delete(&self, ids: &str) -> Result<Deleted> {
        let ids: Vec<MessageId> = ids.split(' ').map(id).collect();
        self.provider.delete(&ids)
    }

    pub(super) fn found(&self, text: &str, scope: Scope) -> Result<String> {
        let found = self.provider.search(&SearchRequest::new(text, scope))?;
        let mut ids: Vec<String> = found.hits.iter().map(|hit| hit.id.to_string()).collect();
        ids.sort();
        Ok(ids.join(" "))
    }
}

/// Returns letters for messages and `[s]` for summaries.
pub(super) fn drawn(messages: &[Message]) -> String {
    let name = |message: &Message| match CompactionId::from_message(&message.id) {
        Some(compaction) => format!("[{compaction}]"),
        None => message.id.to_string(),
    };
    messages.iter().map(name).collect::<Vec<_>>().join(" ")
}

pub(super) fn ids(compactions: &[CompactionId]) -> String {
    compactions.iter().map(CompactionId::as_str).collect::<Vec<_>>().join(" ")
}

/// Returns the result of an optional method; `None` if the provider does not support it.
pub(super) fn supported<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(Error::Unsupported { .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

#[track_caller]
pub(super) fn assert_unknown<T>(answer: Result<T>) {
    match answer.err() {
        Some(Error::UnknownMessage { .. }) => {}
        other => panic!("an unknown id should be Error::UnknownMessage, not {other:?}"),
    }
}

/// Reads a message that must be there.
pub(super) fn read(probe: &Probe, letter: &str) -> Result<Message> {
    let session = probe.provider.id().clone();
    let unknown = Error::UnknownMessage { session, id: id(letter) };
    probe.provider.message(&id(letter))?.ok_or(unknown)
}

pub(super) fn read_by(cursor: &mut dyn Cursor, limit: usize) -> Result<Vec<Message>> {
    let mut read = Vec::new();
    loop {
        let batch = cursor.next(limit)?;
        assert!(batch.len() <= limit, "a batch exceeds its limit");
        if batch.is_empty() {
            return Ok(read);
        }
        read.extend(batch);
    }
}
