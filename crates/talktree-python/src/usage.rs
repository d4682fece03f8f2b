//! Usage of models: of a message, a session, a store.

use pyo3::prelude::*;
use talktree::{MessageId, Result, Usage, UsageFilter, UsageGroup, UsageReport};

use crate::error::exception;
use crate::json;
use crate::manager::Manager;
use crate::read::path;
use crate::session::Session;
use crate::store::Store;

parts! {
    /// Which answers are counted, as Python passes it.
    struct UsageParts {
        session: Option<String>,
        owner: Option<String>,
        author: Option<String>,
        model: Option<String>,
        source: Option<String>,
        since: Option<String>,
        until: Option<String>,
        by: Option<String>,
    }
}

fn rows(report: UsageReport, given: UsageParts) -> Result<String> {
    let filter = UsageFilter {
        session: given.session.map(Into::into),
        owner: given.owner,
        author: given.author,
        model: given.model,
        source: given.source,
        since: json::maybe_time(given.since.as_deref())?,
        until: json::maybe_time(given.until.as_deref())?,
    };
    let report = report.filter(filter);
    let group = match given.by.as_deref() {
        Some("model") => UsageGroup::Model,
        Some("day") => UsageGroup::Day,
        Some("owner") => UsageGroup::Owner,
        Some("author") => UsageGroup::Author,
        Some("session") => UsageGroup::Session,
        Some("source") => UsageGroup::Source,
        _ => return json::text(&report.total()?),
    };
    json::text(&report.by(group).run()?)
}

#[pymethods]
impl Store {
    /// Returns a total, or rows if they are grouped.
    fn usage(&self, py: Python<'_>, given: UsageParts) -> PyResult<String> {
        self.handle.call_long(py, |store| rows(store.usage(), given))
    }
}

#[pymethods]
impl Manager {
    /// Returns a total, or rows if they are grouped.
    fn usage(&self, py: Python<'_>, given: UsageParts) -> PyResult<String> {
        self.handle.call_long(py, |bot| rows(bot.store().usage(), given))
    }
}

fn usage(text: &str) -> Result<Usage> {
    serde_json::from_str(text).map_err(|source| talktree::Error::Json { what: "a usage", source })
}

#[pymethods]
impl Session {
    fn add_usage(&self, py: Python<'_>, message: Option<String>, given: &str) -> PyResult<()> {
        let message = message.map(MessageId::from);
        self.handle.call(py, |chat| chat.add_usage(message.as_ref(), &usage(given)?))
    }

    fn usage(&self, py: Python<'_>, is_of_path: bool, leaf: Option<&str>) -> PyResult<String> {
        self.handle.call(py, |chat| {
            json::text(&if is_of_path { path(chat, leaf, false).usage()? } else { chat.usage()? })
        })
    }
}

/// Returns the usage that a message has in its metadata.
#[pyfunction]
pub(crate) fn usage_of(py: Python<'_>, message: &str) -> PyResult<String> {
    let usage = json::message(message).and_then(|message| json::text(&Usage::of(&message)));
    usage.map_err(|error| exception(py, &error))
}

/// Returns a message with a usage in its metadata.
#[pyfunction]
pub(crate) fn with_usage(py: Python<'_>, message: &str, given: &str) -> PyResult<String> {
    let done =
        json::message(message).and_then(|message| json::text(&message.with_usage(&usage(given)?)));
    done.map_err(|error| exception(py, &error))
}
