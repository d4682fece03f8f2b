//! Transcripts of agent sessions: the verbs of `Store::transcripts`.
//!
//! Entries go in as one JSON list and come back as several, each of about 256 KiB: Python parses a list while it has the
//! interpreter's lock, and other threads, such as that of an event loop, run between two lists.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Serialize;
use talktree::{Json, Result, TranscriptFilter, TranscriptKey};
use talktree_claude::{
    Projection, SessionStore, TranscriptFiles, TranscriptFork, TranscriptInfo, TranscriptMessage,
};

use crate::call::detached;
use crate::handle::Handle;
use crate::json;
use crate::store::Store;

/// After how many bytes a list of entries ends and the next one begins.
const CHUNK_BYTES: usize = 1 << 18;

/// A key as Python passes it.
type KeyParts = (String, String, String);

fn key((project, session, subpath): KeyParts) -> TranscriptKey {
    TranscriptKey::new(project, session).subpath(subpath)
}

/// Returns JSON lists that have these items in order.
fn chunks<T: Serialize>(items: &[T]) -> Result<Vec<String>> {
    let mut lists = Vec::new();
    let mut list = String::new();
    for item in items {
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(&json::text(item)?);
        if list.len() >= CHUNK_BYTES {
            list.push(']');
            lists.push(std::mem::take(&mut list));
        }
    }
    if !list.is_empty() {
        list.push(']');
        lists.push(list);
    }
    Ok(lists)
}

/// A message as Python gets it.
#[derive(Serialize)]
struct MessageFields<'a> {
    role: &'a str,
    uuid: &'a str,
    session: &'a str,
    message: &'a Json,
    parent_call: Option<&'a str>,
    parent_agent: Option<&'a str>,
}

fn messages(messages: &[TranscriptMessage]) -> Result<Vec<String>> {
    let fields = messages.iter().map(|it| MessageFields {
        role: it.role.as_str(),
        uuid: &it.uuid,
        session: &it.session,
        message: &it.message,
        parent_call: it.parent_call.as_deref(),
        parent_agent: it.parent_agent.as_deref(),
    });
    chunks(&fields.collect::<Vec<_>>())
}

fn info(it: &TranscriptInfo) -> serde_json::Value {
    serde_json::json!({
        "session": it.session,
        "summary": it.summary,
        "last_modified": it.last_modified,
        "custom_title": it.custom_title,
        "first_prompt": it.first_prompt,
        "git_branch": it.git_branch,
        "cwd": it.cwd,
        "tag": it.tag,
        "created_at": it.created_at,
    })
}

fn files(it: &TranscriptFiles) -> Result<String> {
    let unread: Vec<_> = it.unread.iter().map(|it| (&it.file, it.line, &it.why)).collect();
    json::text(&serde_json::json!({
        "files": it.files,
        "entries": it.entries,
        "known": it.known,
        "unread": unread,
        "refused": it.refused,
    }))
}

fn projection(it: &Projection) -> Result<String> {
    let missing: Vec<_> = it.missing_parents.iter().map(|it| (&it.message, &it.parent)).collect();
    json::text(&serde_json::json!({
        "session": it.session,
        "entries": it.entries,
        "waiting": it.waiting,
        "left_out": it.left_out,
        "missing_parents": missing,
        "is_changed": it.is_changed,
    }))
}

parts! {
    /// Which transcripts a list shows, as Python passes it.
    struct TranscriptFilterParts {
        project: Option<String>,
        owner: Option<String>,
        written_before: Option<i64>,
    }
}

impl From<TranscriptFilterParts> for TranscriptFilter {
    fn from(given: TranscriptFilterParts) -> Self {
        Self { project: given.project, owner: given.owner, written_before: given.written_before }
    }
}

/// Returns the data of a summary with more entries added.
#[pyfunction]
pub(crate) fn fold_transcript_summary(
    py: Python<'_>,
    data: Option<&str>,
    entries: &str,
) -> PyResult<String> {
    let summary = detached(py, || {
        let data = data.map(Json::parse).transpose()?;
        let entries: Vec<Json> = json::parse("a list of entries", entries)?;
        Ok(talktree_claude::fold_summary(data.as_ref(), &entries))
    });
    summary
        .map(|data| data.as_str().to_owned())
        .map_err(|error| crate::error::exception(py, &error))
}

/// The transcripts of a store.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Transcripts {
    handle: Handle<SessionStore>,
}

#[pymethods]
impl Store {
    fn transcripts(&self, py: Python<'_>) -> PyResult<Transcripts> {
        let transcripts = self.handle.call(py, |store| Ok(SessionStore::new(store)))?;
        Ok(Transcripts { handle: Handle::new(self.handle.life(), transcripts) })
    }
}

#[pymethods]
impl Transcripts {
    fn owned_by(&self, py: Python<'_>, owner: String) -> PyResult<Self> {
        let owned = self.handle.call(py, |it| Ok(it.owned_by(owner)))?;
        Ok(Self { handle: Handle::new(self.handle.life(), owned) })
    }

    fn projecting(&self, py: Python<'_>) -> PyResult<Self> {
        let projecting = self.handle.call(py, |it| Ok(it.projecting()))?;
        Ok(Self { handle: Handle::new(self.handle.life(), projecting) })
    }

    fn project(&self, py: Python<'_>, given: KeyParts) -> PyResult<Option<String>> {
        self.handle
            .call_long(py, |it| it.project(&key(given))?.as_ref().map(projection).transpose())
    }

    fn project_all(&self, py: Python<'_>, given: TranscriptFilterParts) -> PyResult<String> {
        self.handle.call_long(py, |it| {
            let report = it.project_all(&given.into())?;
            json::text(&serde_json::json!({
                "sessions": report.sessions,
                "without_session": report.without_session,
                "missing_parents": report.missing_parents,
                "left_out": report.left_out,
            }))
        })
    }

    fn projection(&self, py: Python<'_>, given: KeyParts) -> PyResult<Option<String>> {
        self.handle
            .call_long(py, |it| it.projection(&key(given))?.as_ref().map(projection).transpose())
    }

    fn append(&self, py: Python<'_>, given: KeyParts, entries: &str) -> PyResult<(u64, u64, u64)> {
        self.handle.call(py, |it| {
            let entries: Vec<Json> = json::parse("a list of entries", entries)?;
            let appended = it.append(&key(given), &entries)?;
            Ok((appended.added, appended.known, appended.differing))
        })
    }

    fn load(&self, py: Python<'_>, given: KeyParts) -> PyResult<Option<Vec<String>>> {
        self.handle.call(py, |it| it.log().load(&key(given))?.as_deref().map(chunks).transpose())
    }

    fn list_sessions(&self, py: Python<'_>, project: &str) -> PyResult<Vec<(String, i64)>> {
        self.handle.call(py, |it| {
            let sessions = it.log().of_project(project)?;
            Ok(sessions.into_iter().map(|it| (it.key.session, it.mtime)).collect())
        })
    }

    fn list_session_summaries(&self, py: Python<'_>, project: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |it| {
            let sessions = it.log().of_project(project)?;
            let fields = sessions
                .iter()
                .filter_map(|it| Some((&it.key.session, it.mtime, it.summary.as_ref()?)));
            chunks(&fields.collect::<Vec<_>>())
        })
    }

    fn delete(&self, py: Python<'_>, given: KeyParts) -> PyResult<u64> {
        self.handle.call(py, |it| it.log().delete(&key(given)))
    }

    fn list_subkeys(&self, py: Python<'_>, project: &str, session: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |it| it.log().subpaths(project, session))
    }

    #[expect(clippy::type_complexity, reason = "Python makes a class of it")]
    fn list(
        &self,
        py: Python<'_>,
        given: TranscriptFilterParts,
        after: Option<u64>,
        limit: usize,
    ) -> PyResult<Vec<(u64, KeyParts, Option<String>, u64, i64)>> {
        let filter = given.into();
        self.handle.call(py, |it| {
            let stored = it.log().list(&filter, after, limit)?.into_iter().map(|it| {
                let key = (it.key.project, it.key.session, it.key.subpath);
                (it.number, key, it.owner, it.entries, it.mtime)
            });
            Ok(stored.collect())
        })
    }

    fn delete_of_owner(&self, py: Python<'_>, owner: &str) -> PyResult<u64> {
        self.handle.call(py, |it| it.log().delete_of_owner(owner))
    }

    fn infos(&self, py: Python<'_>, project: &str) -> PyResult<String> {
        self.handle.call(py, |it| {
            let infos: Vec<_> = it.infos(project)?.iter().map(info).collect();
            json::text(&infos)
        })
    }

    fn info(&self, py: Python<'_>, project: &str, session: &str) -> PyResult<String> {
        self.handle.call(py, |it| json::text(&it.info(project, session)?.as_ref().map(info)))
    }

    fn messages(&self, py: Python<'_>, project: &str, session: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |it| messages(&it.messages(project, session)?))
    }

    fn subagents(&self, py: Python<'_>, project: &str, session: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |it| it.subagents(project, session))
    }

    fn subagent_messages(
        &self,
        py: Python<'_>,
        project: &str,
        session: &str,
        agent: &str,
    ) -> PyResult<Vec<String>> {
        self.handle.call(py, |it| messages(&it.subagent_messages(project, session, agent)?))
    }

    fn rename(&self, py: Python<'_>, project: &str, session: &str, title: &str) -> PyResult<()> {
        self.handle.call(py, |it| it.rename(project, session, title))
    }

    fn tag(&self, py: Python<'_>, project: &str, session: &str, tag: Option<&str>) -> PyResult<()> {
        self.handle.call(py, |it| it.tag(project, session, tag))
    }

    fn fork(
        &self,
        py: Python<'_>,
        project: &str,
        session: &str,
        last: Option<String>,
        title: Option<String>,
    ) -> PyResult<String> {
        let options = TranscriptFork { last, title };
        self.handle.call(py, |it| it.fork(project, session, &options))
    }

    fn import_session(&self, py: Python<'_>, folder: PathBuf, session: &str) -> PyResult<String> {
        self.handle.call(py, |it| files(&it.import_session(folder, session)?))
    }

    fn export_session(
        &self,
        py: Python<'_>,
        project: &str,
        session: &str,
        projects: PathBuf,
    ) -> PyResult<String> {
        self.handle.call(py, |it| files(&it.export_session(project, session, projects)?))
    }
}
