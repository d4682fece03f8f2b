//! A manager: what the sessions of a program have in common, and verbs over many of them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use talktree::{
    Json, MessageId, Result, SessionChange, SessionDetails, SessionFilter, SessionId,
    SessionManager, SessionState,
};

use crate::callback::{SummaryParts, summary_of};
use crate::handle::Handle;
use crate::json;
use crate::session::Session;
use crate::settings::apply;
use crate::store::{Store, seconds_of};

parts! {
    /// Details of a session as Python passes them: times in ISO 8601, metadata as JSON.
    struct DetailParts {
        name: Option<String>,
        parent_session: Option<String>,
        fork_point: Option<String>,
        model: Option<String>,
        source: Option<String>,
        metadata: Option<String>,
        end_reason: Option<String>,
        owner: Option<String>,
        tags: Vec<String>,
        is_pinned: Option<bool>,
        ended_at: Option<String>,
        created_at: Option<String>,
        updated_at: Option<String>,
    }
}

/// Returns the details of their parts.
pub(crate) fn details(parts: &DetailParts) -> Result<SessionDetails> {
    Ok(SessionDetails {
        name: parts.name.clone(),
        parent_session: parts.parent_session.clone().map(SessionId::from),
        fork_point: parts.fork_point.clone().map(MessageId::from),
        model: parts.model.clone(),
        source: parts.source.clone(),
        metadata: parts.metadata.as_deref().map(Json::parse).transpose()?,
        end_reason: parts.end_reason.clone(),
        owner: parts.owner.clone(),
        tags: parts.tags.clone(),
        is_pinned: parts.is_pinned,
        ended_at: json::maybe_time(parts.ended_at.as_deref())?,
        created_at: json::maybe_time(parts.created_at.as_deref())?,
        updated_at: json::maybe_time(parts.updated_at.as_deref())?,
    })
}

parts! {
    /// A filter of sessions as Python passes it.
    struct FilterParts {
        owner: Option<String>,
        author: Option<String>,
        source: Option<String>,
        model: Option<String>,
        tag: Option<String>,
        parent_session: Option<String>,
        since: Option<String>,
        until: Option<String>,
        name: Option<String>,
        is_pinned: Option<bool>,
        state: String,
    }
}

fn filter(parts: FilterParts) -> Result<SessionFilter> {
    Ok(SessionFilter {
        owner: parts.owner,
        author: parts.author,
        source: parts.source,
        model: parts.model,
        tag: parts.tag,
        parent_session: parts.parent_session.map(Into::into),
        since: json::maybe_time(parts.since.as_deref())?,
        until: json::maybe_time(parts.until.as_deref())?,
        name: parts.name,
        created_at: None,
        is_pinned: parts.is_pinned,
        state: match parts.state.as_str() {
            "open" => SessionState::Open,
            "ended" => SessionState::Ended,
            "trash" => SessionState::Trash,
            _ => SessionState::Present,
        },
    })
}

parts! {
    /// A resume as Python passes it.
    struct ResumeParts {
        key: String,
        owner: Option<String>,
        expire_after: Option<f64>,
        details: Option<DetailParts>,
        new_id: Option<String>,
    }
}

/// The session that a key led to before, and why it was not resumed.
type Former = (String, &'static str);

/// A manager.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Manager {
    pub(crate) handle: Handle<SessionManager>,
}

#[pymethods]
impl Manager {
    #[new]
    fn build(py: Python<'_>, store: &Store, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let life = store.handle.life();
        let builder = store.handle.call(py, |store| Ok(SessionManager::builder(store)))?;
        let builder = apply(builder, settings, life)?;
        let manager = store.handle.call(py, |_| builder.build())?;
        Ok(Self { handle: Handle::new(life, manager) })
    }

    fn session(&self, py: Python<'_>, id: &str) -> PyResult<Session> {
        let session = self.handle.call(py, |bot| bot.session(id))?;
        Session::keep(session, self.handle.life())
    }

    fn create(&self, py: Python<'_>, id: Option<String>, given: DetailParts) -> PyResult<Session> {
        let session = self.handle.call(py, |bot| {
            let details = details(&given)?;
            match id {
                Some(id) => bot.create_as(id, details),
                None => bot.create(details),
            }
        })?;
        Session::keep(session, self.handle.life())
    }

    /// Returns the session of a key, whether it is new, and the former one with why it ended.
    fn resume(
        &self,
        py: Python<'_>,
        given: ResumeParts,
    ) -> PyResult<(Session, bool, Option<Former>)> {
        let idle = given.expire_after.map(|idle| seconds_of("expire_after", idle)).transpose()?;
        let resumed = self.handle.call(py, |bot| {
            let mut resume = bot.resume(given.key);
            if let Some(owner) = given.owner {
                resume = resume.owner(owner);
            }
            if let Some(idle) = idle {
                resume = resume.expire_after(idle);
            }
            if let Some(given) = &given.details {
                resume = resume.details(details(given)?);
            }
            if let Some(id) = given.new_id {
                resume = resume.new_id(id);
            }
            resume.run()
        })?;
        let former = resumed.former.map(|(id, end)| (id.to_string(), end.as_str()));
        Ok((Session::keep(resumed.session, self.handle.life())?, resumed.is_new, former))
    }

    fn unbind(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        self.handle.call(py, |bot| Ok(bot.unbind(key)?.map(|id| id.to_string())))
    }

    fn bindings(&self, py: Python<'_>, key: &str) -> PyResult<String> {
        self.handle.call(py, |bot| json::text(&bot.bindings(key)?))
    }

    fn get(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |bot| json::text(&bot.get(&SessionId::from(id))?))
    }

    fn list(
        &self,
        py: Python<'_>,
        given: FilterParts,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> PyResult<String> {
        self.handle.call(py, |bot| {
            json::text(
                &bot.store()
                    .list()
                    .filter(filter(given)?)
                    .after(after)
                    .limit(limit.unwrap_or(20))
                    .run()?,
            )
        })
    }

    /// Changes one detail of a session: its kind, and its value as JSON.
    fn change(&self, py: Python<'_>, id: &str, kind: &str, value: &str) -> PyResult<()> {
        self.handle.call(py, |bot| {
            let given = Json::parse(value)?;
            let text = || given.value().as_str().unwrap_or_default().to_owned();
            let maybe_text = || (!given.is_null()).then(text);
            let change = match kind {
                "name" => SessionChange::Name(maybe_text()),
                "owner" => SessionChange::Owner(maybe_text()),
                "metadata" => {
                    SessionChange::Metadata(Some(given.clone()).filter(|it| !it.is_null()))
                }
                "tag" => SessionChange::Tag(text()),
                "untag" => SessionChange::Untag(text()),
                "pin" => SessionChange::Pin(given.value() == json!(true)),
                "end" => SessionChange::End(text()),
                "reopen" => SessionChange::Reopen,
                "delete" => SessionChange::Delete,
                _ => SessionChange::Restore,
            };
            bot.store().change_session(&SessionId::from(id), &change)
        })
    }

    fn remove(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.handle.call(py, |bot| bot.remove(&SessionId::from(id)))
    }

    fn fork(&self, py: Python<'_>, id: &str, at: &str, name: &str) -> PyResult<Session> {
        let (id, at) = (SessionId::from(id), MessageId::from(at));
        let session = self.handle.call(py, |bot| bot.fork(&id, &at, name))?;
        Session::keep(session, self.handle.life())
    }

    fn compact_and_split(
        &self,
        py: Python<'_>,
        id: &str,
        summary: SummaryParts,
    ) -> PyResult<Session> {
        let session = self
            .handle
            .call(py, |bot| bot.compact_and_split(&SessionId::from(id), summary_of(summary)?))?;
        Session::keep(session, self.handle.life())
    }
}
