//! Compaction: by hand, with a plan, by the summarizer of the session.

use std::sync::Arc;

use pyo3::prelude::*;
use talktree::{
    BranchSummaryPlan, Compacted, CompactionId, CompactionPlan, CompactionStatus, Json, MessageId,
};

use crate::callback::{SummaryParts, summary_of};
use crate::json;
use crate::read::path;
use crate::session::Session;
use crate::settings::{OptionParts, options};

/// A compaction that waits for its summary.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Plan(Arc<CompactionPlan>);

#[pymethods]
impl Plan {
    #[getter]
    fn prompt(&self) -> &str {
        self.0.prompt()
    }

    #[getter]
    fn leaf(&self) -> &str {
        self.0.leaf().as_str()
    }

    #[getter]
    fn first(&self) -> &str {
        self.0.first().as_str()
    }

    #[getter]
    fn last(&self) -> &str {
        self.0.last().as_str()
    }

    #[getter]
    fn messages(&self) -> usize {
        self.0.messages()
    }

    #[getter]
    fn summaries(&self) -> Vec<&str> {
        self.0.summaries().iter().map(CompactionId::as_str).collect()
    }

    #[getter]
    fn tokens(&self) -> u64 {
        self.0.tokens()
    }

    #[getter]
    fn target_tokens(&self) -> u64 {
        self.0.target_tokens()
    }

    /// The tokens of the window before the compaction, as JSON.
    #[getter]
    fn usage(&self) -> String {
        serde_json::json!(self.0.usage()).to_string()
    }

    #[getter]
    fn expected_total(&self) -> u64 {
        self.0.expected_total()
    }
}

/// A checkout that waits for a summary of the branch it leaves.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct BranchPlan(BranchSummaryPlan);

#[pymethods]
impl BranchPlan {
    #[getter]
    fn prompt(&self) -> &str {
        self.0.prompt()
    }

    #[getter(from_id)]
    fn left(&self) -> &str {
        self.0.from().as_str()
    }

    #[getter(to_id)]
    fn reached(&self) -> &str {
        self.0.to().as_str()
    }

    #[getter]
    fn messages(&self) -> usize {
        self.0.messages()
    }

    #[getter]
    fn tokens(&self) -> u64 {
        self.0.tokens()
    }
}

fn status(status: &CompactionStatus) -> (&'static str, Option<String>) {
    match status {
        CompactionStatus::Shown => ("shown", None),
        CompactionStatus::Under { id } => ("under", Some(id.to_string())),
        _ => ("off_path", None),
    }
}

type CompactedParts = (String, usize, u64, u64, &'static str, Option<String>);

fn compacted(done: &Compacted) -> CompactedParts {
    let (name, under) = status(&done.status);
    (done.id.to_string(), done.messages, done.tokens_before, done.tokens_after, name, under)
}

#[pymethods]
impl Session {
    fn add_compaction(
        &self,
        py: Python<'_>,
        summary: &str,
        first: &str,
        last: &str,
        details: Option<&str>,
    ) -> PyResult<CompactedParts> {
        let (first, last) = (MessageId::from(first), MessageId::from(last));
        self.handle.call(py, |chat| {
            let done = match details {
                None => chat.add_compaction(summary, &first, &last)?,
                Some(details) => {
                    chat.add_compaction_with(summary, &first, &last, Json::parse(details)?)?
                }
            };
            Ok(compacted(&done))
        })
    }

    fn remove_compaction(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.handle.call(py, |chat| chat.remove_compaction(&CompactionId::from(id)))
    }

    fn compactions(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.compactions()?))
    }

    fn compaction(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.compaction(&CompactionId::from(id))?))
    }

    fn compaction_status(
        &self,
        py: Python<'_>,
        id: &str,
    ) -> PyResult<(&'static str, Option<String>)> {
        self.handle.call(py, |chat| Ok(status(&chat.compaction_status(&CompactionId::from(id))?)))
    }

    fn expand(&self, py: Python<'_>, id: &str, is_raw: bool) -> PyResult<String> {
        let id = CompactionId::from(id);
        self.handle.call(py, |chat| {
            json::text(&if is_raw { chat.expand_raw(&id)? } else { chat.expand(&id)? })
        })
    }

    /// Returns a plan, or why there is nothing to compact.
    fn plan_compaction(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        given: OptionParts,
    ) -> PyResult<(Option<Plan>, Option<String>)> {
        let options = options(&given);
        self.handle.call(py, |chat| {
            Ok(match path(chat, leaf, false).plan_compaction(&options)? {
                Ok(plan) => (Some(Plan(Arc::new(plan))), None),
                Err(why) => (None, Some(why.to_string())),
            })
        })
    }

    fn commit(
        &self,
        py: Python<'_>,
        plan: &Plan,
        summary: SummaryParts,
    ) -> PyResult<CompactedParts> {
        let plan = Arc::clone(&plan.0);
        self.handle.call(py, |chat| {
            Ok(compacted(&chat.commit(CompactionPlan::clone(&plan), summary_of(summary)?)?))
        })
    }

    /// Returns what was compacted, or why nothing was.
    fn compact(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
    ) -> PyResult<(Option<CompactedParts>, Option<String>)> {
        self.handle.call(py, |chat| {
            Ok(match path(chat, leaf, false).compact()? {
                Ok(done) => (Some(compacted(&done)), None),
                Err(why) => (None, Some(why.to_string())),
            })
        })
    }

    fn window_usage(&self, py: Python<'_>, leaf: Option<&str>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&path(chat, leaf, false).window_usage()?))
    }

    fn request_tokens(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| json::text(&chat.request_tokens()?))
    }

    fn visible_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        self.handle.call(py, talktree::Session::visible_tokens)
    }

    fn plan_branch_summary(
        &self,
        py: Python<'_>,
        to: &str,
        given: OptionParts,
    ) -> PyResult<Option<BranchPlan>> {
        let options = options(&given);
        self.handle.call(py, |chat| {
            Ok(chat.plan_branch_summary(&MessageId::from(to), &options)?.map(BranchPlan))
        })
    }

    fn checkout_with_summary(
        &self,
        py: Python<'_>,
        plan: &BranchPlan,
        summary: SummaryParts,
    ) -> PyResult<String> {
        let plan = plan.0.clone();
        self.handle.call(py, |chat| {
            Ok(chat.checkout_with_summary(plan, summary_of(summary)?)?.id.to_string())
        })
    }

    fn checkout_summarized(&self, py: Python<'_>, to: &str) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| {
            let appended = chat.checkout_summarized(&MessageId::from(to))?;
            Ok(appended.map(|appended| appended.id.to_string()))
        })
    }

    fn compact_and_split(
        &self,
        py: Python<'_>,
        id: Option<String>,
        summary: SummaryParts,
    ) -> PyResult<Self> {
        let next = self.handle.call(py, |chat| {
            let summary = summary_of(summary)?;
            match id {
                Some(id) => chat.compact_and_split_as(&id.into(), summary),
                None => chat.compact_and_split(summary),
            }
        })?;
        Self::keep(next, self.handle.life())
    }
}
