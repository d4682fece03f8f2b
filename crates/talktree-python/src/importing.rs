//! Imports of what a program has read itself: messages with their own ids, parents and times, and compactions.

use chrono::{DateTime, Utc};
use pyo3::prelude::*;
use serde::Deserialize;
use talktree::{Appended, Compaction, CompactionId, Json, Message, MessageId};

use crate::json;
use crate::session::Session;

fn name(imported: &Appended) -> &'static str {
    match imported {
        Appended { is_new: true, .. } => "added",
        Appended { differs: true, .. } => "differs",
        _ => "known",
    }
}

/// A compaction as Python passes it.
#[derive(Deserialize)]
struct CompactionParts {
    id: Option<CompactionId>,
    first: MessageId,
    last: MessageId,
    summary: String,
    count: u64,
    tokens_before: u64,
    tokens_after: u64,
    nested: Vec<CompactionId>,
    model: Option<String>,
    details: Option<Json>,
    created_at: Option<DateTime<Utc>>,
}

impl From<CompactionParts> for Compaction {
    fn from(it: CompactionParts) -> Self {
        let mut compaction = Self::new(it.summary, it.first, it.last);
        compaction.id = it.id.unwrap_or_else(|| compaction.id.clone());
        compaction.count = it.count;
        compaction.tokens_before = it.tokens_before;
        compaction.tokens_after = it.tokens_after;
        compaction.nested = it.nested;
        compaction.model = it.model;
        compaction.details = it.details;
        compaction.created_at = it.created_at.unwrap_or(compaction.created_at);
        compaction
    }
}

#[pymethods]
impl Session {
    fn import_message(
        &self,
        py: Python<'_>,
        parent: Option<String>,
        message: &str,
    ) -> PyResult<&'static str> {
        let parent = parent.map(MessageId::from);
        self.handle.call(py, |chat| {
            Ok(name(&chat.import_message(parent.as_ref(), json::message(message)?)?))
        })
    }

    fn import_messages(&self, py: Python<'_>, messages: &str) -> PyResult<Vec<&'static str>> {
        self.handle.call(py, |chat| {
            let messages: Vec<(Option<MessageId>, Message)> =
                json::parse("a list of messages with their parents", messages)?;
            Ok(chat.import_messages(messages)?.iter().map(name).collect())
        })
    }

    fn is_imported(&self, py: Python<'_>, record: &str) -> PyResult<bool> {
        self.handle.call(py, |chat| chat.is_imported(record))
    }

    fn import_compaction(&self, py: Python<'_>, compaction: &str) -> PyResult<()> {
        self.handle.call(py, |chat| {
            let compaction: CompactionParts = json::parse("a compaction", compaction)?;
            chat.import_compaction(&compaction.into())
        })
    }
}
