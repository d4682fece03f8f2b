//! A session: writes, the head, labels, details.

use pyo3::prelude::*;
use serde_json::json;
use talktree::{Appended, MessageId, Parent, SessionDetails, Updated};
use talktree_model::Stream;

use crate::callback::Function;
use crate::handle::{Handle, Life};
use crate::json;
use crate::manager::{DetailParts, details};
use crate::reply::Reply;
use crate::subscription::Subscription;

/// What an append did: the id, whether the message is new, whether the stored one differs.
type AppendedParts = (String, bool, bool);

fn appended(appended: Appended) -> AppendedParts {
    (appended.id.to_string(), appended.is_new, appended.differs)
}

fn all_appended(all: Vec<Appended>) -> Vec<AppendedParts> {
    all.into_iter().map(appended).collect()
}

/// What an update did: whether something changed, and the compactions that cover the message.
type UpdatedParts = (bool, bool, Vec<String>);

fn updated(updated: &Updated) -> UpdatedParts {
    (
        updated.is_new,
        updated.is_changed,
        updated.covered_by.iter().map(ToString::to_string).collect(),
    )
}

/// A session.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Session {
    pub(crate) handle: Handle<talktree::Session>,
    id: String,
}

impl Session {
    pub(crate) fn keep(session: talktree::Session, life: &Life) -> PyResult<Self> {
        let id = session.id().to_string();
        Ok(Self { handle: Handle::new(life, session), id })
    }
}

#[pymethods]
impl Session {
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    fn info(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.info()?))
    }

    fn set_details(&self, py: Python<'_>, given: DetailParts) -> PyResult<()> {
        self.handle.call(py, |chat| {
            let details: SessionDetails = details(&given)?;
            chat.set_details(&details)
        })
    }

    fn append(&self, py: Python<'_>, message: &str) -> PyResult<AppendedParts> {
        self.handle.call(py, |chat| Ok(appended(chat.append(json::message(message)?)?)))
    }

    fn append_to(&self, py: Python<'_>, parent: &str, message: &str) -> PyResult<AppendedParts> {
        self.handle.call(py, |chat| {
            Ok(appended(chat.append_to(&MessageId::from(parent), json::message(message)?)?))
        })
    }

    fn append_root(&self, py: Python<'_>, message: &str) -> PyResult<AppendedParts> {
        self.handle.call(py, |chat| Ok(appended(chat.append_root(json::message(message)?)?)))
    }

    fn append_if_head(
        &self,
        py: Python<'_>,
        expected: Option<String>,
        message: &str,
    ) -> PyResult<AppendedParts> {
        let expected = expected.map(MessageId::from);
        self.handle.call(py, |chat| {
            Ok(appended(chat.append_if_head(expected.as_ref(), json::message(message)?)?))
        })
    }

    fn append_all(&self, py: Python<'_>, messages: &str) -> PyResult<Vec<AppendedParts>> {
        self.handle.call(py, |chat| Ok(all_appended(chat.append_all(json::messages(messages)?)?)))
    }

    /// Appends to a message; to none: as a root.
    fn append_all_to(
        &self,
        py: Python<'_>,
        parent: Option<String>,
        messages: &str,
    ) -> PyResult<Vec<AppendedParts>> {
        let parent = parent.map_or(Parent::Root, |id| Parent::Message(id.into()));
        self.handle.call(py, |chat| {
            Ok(all_appended(chat.append_all_to(&parent, json::messages(messages)?)?))
        })
    }

    fn append_all_if_head(
        &self,
        py: Python<'_>,
        expected: Option<String>,
        messages: &str,
    ) -> PyResult<Vec<AppendedParts>> {
        let expected = expected.map(MessageId::from);
        self.handle.call(py, |chat| {
            let messages = json::messages(messages)?;
            Ok(all_appended(chat.append_all_if_head(expected.as_ref(), messages)?))
        })
    }

    /// Appends to a message; to none: as a root.
    fn append_all_to_if_head(
        &self,
        py: Python<'_>,
        parent: Option<String>,
        expected: Option<String>,
        messages: &str,
    ) -> PyResult<Vec<AppendedParts>> {
        let parent = parent.map_or(Parent::Root, |id| Parent::Message(id.into()));
        let expected = expected.map(MessageId::from);
        self.handle.call(py, |chat| {
            let messages = json::messages(messages)?;
            Ok(all_appended(chat.append_all_to_if_head(&parent, expected.as_ref(), messages)?))
        })
    }

    fn append_answer(&self, py: Python<'_>, response: &str) -> PyResult<String> {
        self.handle.call(py, |chat| {
            json::text(&talktree_model::append_answer(chat, json::value(response)?)?)
        })
    }

    fn begin(&self, py: Python<'_>, message: &str) -> PyResult<AppendedParts> {
        self.handle.call(py, |chat| Ok(appended(chat.begin(json::message(message)?)?)))
    }

    fn save(&self, py: Python<'_>, message: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.save(json::message(message)?))
    }

    fn finish(&self, py: Python<'_>, message: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.finish(json::message(message)?))
    }

    fn discard(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.discard(&MessageId::from(id)))
    }

    fn unfinished(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.unfinished()?))
    }

    /// Begins a reply into which an answer of this provider is streamed.
    fn reply(&self, py: Python<'_>, provider: &str) -> PyResult<Reply> {
        let stream = match provider {
            "anthropic" => Stream::anthropic(),
            "openai_chat" => Stream::openai_chat(),
            _ => Stream::openai_responses(),
        };
        let reply = self.handle.call(py, |chat| talktree_model::stream(chat, stream))?;
        Ok(Reply::keep(reply, self.handle.life()))
    }

    fn edit(&self, py: Python<'_>, id: &str, message: &str) -> PyResult<AppendedParts> {
        self.handle.call(py, |chat| {
            Ok(appended(chat.edit(&MessageId::from(id), json::message(message)?)?))
        })
    }

    fn retry(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| Ok(chat.retry()?.map(|id| id.to_string())))
    }

    fn question(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| Ok(chat.question()?.map(|id| id.to_string())))
    }

    fn update(&self, py: Python<'_>, message: &str) -> PyResult<UpdatedParts> {
        self.handle.call(py, |chat| Ok(updated(&chat.update(json::message(message)?)?)))
    }

    fn upsert(&self, py: Python<'_>, message: &str) -> PyResult<UpdatedParts> {
        self.handle.call(py, |chat| Ok(updated(&chat.upsert(json::message(message)?)?)))
    }

    fn delete(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<String> {
        self.handle.call(py, |chat| {
            let deleted = chat.delete(&json::ids(&ids))?;
            Ok(deleted_json(&deleted))
        })
    }

    fn delete_branch(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |chat| Ok(deleted_json(&chat.delete_branch(&MessageId::from(id))?)))
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, talktree::Session::clear)
    }

    fn fork(&self, py: Python<'_>, id: Option<String>, at: &str, name: &str) -> PyResult<Self> {
        let at = MessageId::from(at);
        let fork = self.handle.call(py, |chat| match id {
            Some(id) => chat.fork_as(&id.into(), &at, name),
            None => chat.fork(&at, name),
        })?;
        Self::keep(fork, self.handle.life())
    }

    fn subscribe(&self, py: Python<'_>, listener: Py<PyAny>) -> PyResult<Subscription> {
        let listener = Function::new(listener);
        let heard =
            self.handle.call(py, |chat| Ok(chat.subscribe(Subscription::call(listener))))?;
        Ok(Subscription::keep(heard, self.handle.life()))
    }

    fn head(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| Ok(chat.head()?.map(|id| id.to_string())))
    }

    /// Moves the head to a message; without one before the first message.
    fn checkout(&self, py: Python<'_>, id: Option<String>) -> PyResult<()> {
        self.handle.call(py, |chat| match id {
            Some(id) => chat.checkout(&id.into()),
            None => chat.checkout_start(),
        })
    }

    fn undo_head(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.call(py, talktree::Session::undo_head)
    }

    fn redo_head(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.call(py, talktree::Session::redo_head)
    }

    fn head_log(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.head_log()?))
    }

    fn label(&self, py: Python<'_>, name: &str, id: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.label(name, &MessageId::from(id)))
    }

    fn unlabel(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.unlabel(name))
    }

    fn labels(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.labels()?))
    }

    fn labelled(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| Ok(chat.labelled(name)?.map(|id| id.to_string())))
    }

    fn tag(&self, py: Python<'_>, id: &str, tag: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.tag(&MessageId::from(id), tag))
    }

    fn untag(&self, py: Python<'_>, id: &str, tag: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.untag(&MessageId::from(id), tag))
    }

    fn tags(&self, py: Python<'_>, id: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |chat| chat.tags(&MessageId::from(id)))
    }

    fn all_tags(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.all_tags()?))
    }
}

/// Returns the JSON of what a deletion did.
pub(crate) fn deleted_json(deleted: &talktree::Deleted) -> String {
    json!({
        "messages": deleted.messages,
        "covered_by": deleted.covered_by,
        "compactions_gone": deleted.compactions_gone,
        "compactions_back": deleted.compactions_back,
    })
    .to_string()
}
