//! Erasing: what is erased, what was, and the proof.

use pyo3::prelude::*;
use serde_json::json;
use talktree::{Erased as Outcome, Erasure, MessageId, Result, SessionId, TranscriptKey};

use crate::handle::{Handle, Life};
use crate::json;
use crate::manager::Manager;
use crate::session::Session;
use crate::store::{Store, progress};

/// Messages of a session, as Python passes them.
type MessagesOf = Vec<(String, Vec<String>)>;

parts! {
    /// What is erased, as Python passes it.
    struct ErasureParts {
        messages: MessagesOf,
        branches: MessagesOf,
        sessions: Vec<String>,
        owners: Vec<String>,
        authors: Vec<String>,
        keys: Vec<String>,
        transcripts: Vec<(String, String, String)>,
        deleted: bool,
        with_forks: bool,
        with_summaries: bool,
        keep_totals: bool,
        keep_items: bool,
        forbid_import: bool,
    }
}

fn erasure(parts: ErasureParts) -> Erasure {
    let messages = parts.messages.into_iter().map(|(session, ids)| {
        let ids: Vec<MessageId> = ids.into_iter().map(MessageId::from).collect();
        Erasure::messages(&SessionId::from(session), &ids)
    });
    let branches = parts.branches.into_iter().flat_map(|(session, ids)| {
        let session = SessionId::from(session);
        ids.into_iter().map(move |id| Erasure::branch(&session, &MessageId::from(id)))
    });
    let transcripts = parts.transcripts.into_iter().map(|(project, session, subpath)| {
        Erasure::transcript(&TranscriptKey::new(project, session).subpath(subpath))
    });
    let mut erasure = messages
        .chain(branches)
        .chain(parts.sessions.into_iter().map(Erasure::session))
        .chain(parts.owners.into_iter().map(Erasure::owner))
        .chain(parts.authors.into_iter().map(Erasure::author))
        .chain(parts.keys.into_iter().map(Erasure::key))
        .chain(transcripts)
        .chain(parts.deleted.then(Erasure::deleted))
        .fold(Erasure::default(), Erasure::and);
    if parts.with_forks {
        erasure = erasure.with_forks();
    }
    if parts.with_summaries {
        erasure = erasure.with_summaries();
    }
    if parts.keep_totals {
        erasure = erasure.keep_totals();
    }
    if parts.keep_items {
        erasure = erasure.keep_items();
    }
    match parts.forbid_import {
        true => erasure.forbid_import(),
        false => erasure,
    }
}

fn report(it: &Outcome) -> Result<String> {
    json::text(&json!({
        "extent": it.extent,
        "messages": it.messages,
        "is_log_in_use": it.is_log_in_use,
        "is_rewritten": it.is_rewritten,
    }))
}

/// The outcome of an erasure, which can prove it.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Erased {
    handle: Handle<Outcome>,
    #[pyo3(get)]
    report: String,
}

impl Erased {
    fn keep((outcome, report): (Outcome, String), life: &Life) -> Self {
        Self { handle: Handle::new(life, outcome), report }
    }
}

#[pymethods]
impl Erased {
    fn prove(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, |erased| json::text(&erased.prove()?))
    }

    fn scan(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, |erased| json::text(&erased.scan()?))
    }
}

#[pymethods]
impl Store {
    fn erase(
        &self,
        py: Python<'_>,
        given: ErasureParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<Erased> {
        let progress = progress(progress_callback);
        let erased = self.handle.call_long(py, |store| {
            let erased = store.erase_with_progress(&erasure(given), progress)?;
            let report = report(&erased)?;
            Ok((erased, report))
        })?;
        Ok(Erased::keep(erased, self.handle.life()))
    }

    fn erasure_extent(&self, py: Python<'_>, given: ErasureParts) -> PyResult<String> {
        self.handle.call_long(py, |store| json::text(&store.erasure_extent(&erasure(given))?))
    }

    fn finish_erasure(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.call_long(py, talktree::Store::finish_erasure)
    }

    fn has_unfinished_erasure(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.call(py, talktree::Store::has_unfinished_erasure)
    }

    fn is_import_forbidden(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        self.handle.call(py, |store| store.is_import_forbidden(&SessionId::from(id)))
    }
}

#[pymethods]
impl Manager {
    fn erase(
        &self,
        py: Python<'_>,
        given: ErasureParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<Erased> {
        let progress = progress(progress_callback);
        let erased = self.handle.call_long(py, |bot| {
            let erased = bot.store().erase_with_progress(&erasure(given), progress)?;
            let report = report(&erased)?;
            Ok((erased, report))
        })?;
        Ok(Erased::keep(erased, self.handle.life()))
    }

    fn erasure_extent(&self, py: Python<'_>, given: ErasureParts) -> PyResult<String> {
        self.handle.call_long(py, |bot| json::text(&bot.store().erasure_extent(&erasure(given))?))
    }
}

#[pymethods]
impl Session {
    fn erase(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Erased> {
        let erased = self.handle.call_long(py, |chat| {
            let erased = chat.erase(&json::ids(&ids))?;
            let report = report(&erased)?;
            Ok((erased, report))
        })?;
        Ok(Erased::keep(erased, self.handle.life()))
    }
}
