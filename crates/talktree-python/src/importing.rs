//! Imports of what a program has read itself: messages with their own ids, parents and times, and whole sessions.

use chrono::{DateTime, Utc};
use pyo3::prelude::*;
use serde::Deserialize;
use talktree::{
    Compaction, CompactionId, ImportRecord, Imported, Json, Label, Message, MessageId, Result,
    SessionDetails, SessionImport,
};

use crate::error::exception;
use crate::json;
use crate::session::Session;
use crate::store::Store;

fn name(imported: &Imported) -> &'static str {
    match imported {
        Imported::Added => "added",
        Imported::Known => "known",
        _ => "differs",
    }
}

/// A record as Python passes it.
#[derive(Deserialize)]
struct Record {
    record: String,
    parent: Option<MessageId>,
    message: Message,
}

impl From<Record> for ImportRecord {
    fn from(it: Record) -> Self {
        Self { record: it.record, parent: it.parent, message: it.message }
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

/// Details of a session as a part of a whole one.
#[derive(Deserialize)]
struct Details {
    name: Option<String>,
    parent_session: Option<String>,
    fork_point: Option<MessageId>,
    model: Option<String>,
    source: Option<String>,
    metadata: Option<Json>,
    end_reason: Option<String>,
    owner: Option<String>,
    tags: Vec<String>,
    is_pinned: Option<bool>,
    ended_at: Option<DateTime<Utc>>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
}

/// A whole session as Python passes it.
#[derive(Deserialize)]
struct Whole {
    id: String,
    details: Details,
    records: Vec<Record>,
    compactions: Vec<CompactionParts>,
    labels: Vec<(String, MessageId)>,
    head: Option<MessageId>,
    marks: Vec<String>,
}

impl From<Whole> for SessionImport {
    fn from(it: Whole) -> Self {
        let details = it.details;
        Self {
            details: SessionDetails {
                name: details.name,
                parent_session: details.parent_session.map(Into::into),
                fork_point: details.fork_point,
                model: details.model,
                source: details.source,
                metadata: details.metadata,
                end_reason: details.end_reason,
                owner: details.owner,
                tags: details.tags,
                is_pinned: details.is_pinned,
                ended_at: details.ended_at,
                created_at: details.created_at,
                updated_at: details.updated_at,
            },
            records: it.records.into_iter().map(Into::into).collect(),
            compactions: it.compactions.into_iter().map(Into::into).collect(),
            labels: it.labels.into_iter().map(|(name, id)| Label::new(name, id)).collect(),
            head: it.head,
            marks: it.marks,
            ..Self::new(it.id)
        }
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

    fn import_messages(&self, py: Python<'_>, records: &str) -> PyResult<Vec<&'static str>> {
        self.handle.call(py, |chat| {
            let records: Vec<Record> = json::parse("a list of records", records)?;
            let records: Vec<ImportRecord> = records.into_iter().map(Into::into).collect();
            Ok(chat.import_messages(&records)?.iter().map(name).collect())
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

/// The result for one session: what was done with each record, or the exception of its error.
type Outcome = (Option<Vec<&'static str>>, Option<Py<PyAny>>);

#[pymethods]
impl Store {
    fn import_sessions(&self, py: Python<'_>, sessions: &str) -> PyResult<Vec<Outcome>> {
        let outcomes = self.handle.call_long(py, |store| {
            let sessions: Vec<Whole> = json::parse("a list of sessions", sessions)?;
            let sessions: Vec<SessionImport> = sessions.into_iter().map(Into::into).collect();
            store.import_sessions(&sessions)
        })?;
        let outcome = |outcome: Result<Vec<Imported>>| match outcome {
            Ok(imported) => (Some(imported.iter().map(name).collect()), None),
            Err(error) => (None, Some(exception(py, &error).into_value(py).into_any())),
        };
        Ok(outcomes.into_iter().map(outcome).collect())
    }
}
