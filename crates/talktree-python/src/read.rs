//! Reads of a session, and of one path of it.
//!
//! A path is named by its leaf, none for the head, and by whether its stored messages are read or what a model should see.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talktree::{Budget, DrawOptions, MessageId, Path};

use crate::handle::{Handle, Life};
use crate::json;
use crate::session::Session;

/// Returns the path of a session.
pub(crate) fn path(chat: &talktree::Session, leaf: Option<&str>, is_raw: bool) -> Path {
    let path = match leaf {
        Some(leaf) => chat.at(&MessageId::from(leaf)),
        None => chat.path(),
    };
    if is_raw { path.raw() } else { path }
}

#[pymethods]
impl Session {
    fn history(&self, py: Python<'_>, leaf: Option<&str>, is_raw: bool) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&path(chat, leaf, is_raw).history()?))
    }

    fn recent(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        is_raw: bool,
        unit: &str,
        max: u64,
    ) -> PyResult<(String, u64)> {
        let budget = match unit {
            "tokens" => Budget::tokens(max),
            "bytes" => Budget::bytes(max),
            "messages" => Budget::messages(max),
            other => return Err(PyValueError::new_err(format!("no budget of {other}"))),
        };
        self.handle.call(py, |chat| {
            let recent = path(chat, leaf, is_raw).recent(budget)?;
            Ok((json::text(&recent.messages)?, recent.left_out))
        })
    }

    fn page(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        is_raw: bool,
        before: Option<&str>,
        after: Option<&str>,
        shown: (Option<usize>, Option<String>, Option<String>),
    ) -> PyResult<(String, Option<String>, Option<String>)> {
        self.handle.call(py, |chat| {
            let (limit, author, tag) = shown;
            let mut page = path(chat, leaf, is_raw).page();
            if let Some(id) = before {
                page = page.before(&MessageId::from(id));
            }
            if let Some(id) = after {
                page = page.after(&MessageId::from(id));
            }
            if let Some(limit) = limit {
                page = page.limit(limit);
            }
            if let Some(author) = author {
                page = page.author(author);
            }
            if let Some(tag) = tag {
                page = page.tag(tag);
            }
            let page = page.run()?;
            let text = |id: Option<MessageId>| id.map(|id| id.to_string());
            Ok((json::text(&page.messages)?, text(page.before), text(page.after)))
        })
    }

    fn row_stats(&self, py: Python<'_>, leaf: Option<&str>, is_raw: bool) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&path(chat, leaf, is_raw).row_stats()?))
    }

    fn path_length(&self, py: Python<'_>, leaf: Option<&str>, is_raw: bool) -> PyResult<u64> {
        self.handle.call(py, |chat| path(chat, leaf, is_raw).path_length())
    }

    fn stream(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        is_raw: bool,
        is_reversed: bool,
    ) -> PyResult<Messages> {
        let messages = self.handle.call(py, |chat| {
            let path = path(chat, leaf, is_raw);
            Ok(if is_reversed { path.iter_rev() } else { path.iter() })
        })?;
        Ok(Messages::keep(messages, self.handle.life()))
    }

    fn all_messages(&self, py: Python<'_>) -> PyResult<Messages> {
        let messages = self.handle.call(py, |chat| Ok(chat.all_messages()))?;
        Ok(Messages::keep(messages, self.handle.life()))
    }

    fn message(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.message(&MessageId::from(id))?))
    }

    fn is_on_path(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        self.handle.call(py, |chat| chat.is_on_path(&MessageId::from(id)))
    }

    fn is_ancestor(&self, py: Python<'_>, ancestor: &str, id: &str) -> PyResult<bool> {
        let (ancestor, id) = (MessageId::from(ancestor), MessageId::from(id));
        self.handle.call(py, |chat| chat.is_ancestor(&ancestor, &id))
    }

    fn latest_leaf(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.latest_leaf()?))
    }

    fn leaves(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let text = |id: &MessageId| id.to_string();
        self.handle.call(py, |chat| Ok(chat.leaves()?.iter().map(text).collect()))
    }

    fn branches(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.branches(&MessageId::from(id))?))
    }

    fn branches_page(
        &self,
        py: Python<'_>,
        id: Option<String>,
        after: Option<String>,
        limit: usize,
    ) -> PyResult<String> {
        let (id, after) = (id.map(MessageId::from), after.map(MessageId::from));
        self.handle
            .call(py, |chat| json::text(&chat.branches_page(id.as_ref(), after.as_ref(), limit)?))
    }

    fn roots(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.roots()?))
    }

    fn siblings(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.siblings(&MessageId::from(id))?))
    }
}

#[pymethods]
impl Session {
    /// Draws the tree; a limit that is missing has its default.
    fn tree(
        &self,
        py: Python<'_>,
        max_children: Option<usize>,
        max_main_segments: Option<usize>,
        max_indent: Option<usize>,
        is_ascii: bool,
        is_whole: bool,
    ) -> PyResult<String> {
        let mut options = if is_whole { DrawOptions::everything() } else { DrawOptions::default() };
        options.max_children = max_children.unwrap_or(options.max_children);
        options.max_main_segments = max_main_segments.unwrap_or(options.max_main_segments);
        options.max_indent = max_indent.unwrap_or(options.max_indent);
        options.is_ascii = is_ascii;
        self.handle.call(py, |chat| {
            let tree = chat.tree()?;
            let lines: Vec<String> = tree.lines(&options).map(|line| line.to_string()).collect();
            Ok(lines.join("\n"))
        })
    }
}

/// Messages one after another, read in batches.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Messages(Handle<Arc<Mutex<talktree::Messages>>>);

impl Messages {
    pub(crate) fn keep(messages: talktree::Messages, life: &Life) -> Self {
        Self(Handle::new(life, Arc::new(Mutex::new(messages))))
    }
}

#[pymethods]
impl Messages {
    /// Returns the next messages as a JSON list, at most so many; an empty list at the end.
    fn next(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        self.0.call(py, |messages| {
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            let batch: talktree::Result<Vec<talktree::Message>> =
                messages.by_ref().take(limit).collect();
            json::text(&batch?)
        })
    }
}
