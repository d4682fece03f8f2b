//! Drafts: what is compacted next, before its summary is written.
//!
//! A draft is read from the history in one go. It is either a plan whose prompt goes to the summarizer, or a view that goes
//! to the program's own policy, which answers with a range and its summary. Both end in the same commit.

use super::{CompactionOutcome, Path, Session};
use crate::compaction::policy::{
    BesidesMessages, CompactionOptions, CompactionPlan, Given, NothingToCompact, ask, choose,
};
use crate::compaction::{PlanOrigin, Summary};
use crate::error::Result;
use crate::id::MessageId;
use crate::message::Message;

/// What is compacted next.
pub(super) enum Draft {
    /// A range that talktree chose; the summarizer is asked.
    Plan(CompactionPlan),
    /// The whole view; the program's policy is asked.
    View(SeenView),
}

/// A view and where it was read.
pub(super) struct SeenView {
    view: Vec<Message>,
    /// The leaf of the view's path.
    leaf: MessageId,
    origin: PlanOrigin,
    besides: BesidesMessages,
    /// The tokens of each item.
    tokens: Vec<u64>,
}

impl SeenView {
    /// Returns the tokens of the view, with what a request has beside it.
    pub(super) fn total(&self) -> u64 {
        self.tokens.iter().fold(self.besides.total(), |sum, tokens| sum.saturating_add(*tokens))
    }
}

impl Path {
    /// Returns what the session's policy, or else its summarizer, is to compact of this path, or why there is nothing.
    pub(super) fn draft(
        &self,
        besides: impl FnOnce() -> Result<BesidesMessages>,
    ) -> Result<Result<Draft, NothingToCompact>> {
        let settings = &self.session.compaction;
        if settings.policy().is_none() {
            return Ok(self.plan(settings.options(), besides)?.map(Draft::Plan));
        }
        let (view, leaf, origin) = self.view()?;
        let besides = besides()?;
        let tokens = view.iter().map(|item| settings.counter().message(item)).collect();
        Ok(Ok(Draft::View(SeenView { view, leaf, origin, besides, tokens })))
    }

    /// Returns the plan for this path, or why there is none.
    pub(super) fn plan(
        &self,
        options: &CompactionOptions,
        besides: impl FnOnce() -> Result<BesidesMessages>,
    ) -> Result<Result<CompactionPlan, NothingToCompact>> {
        let (view, leaf, origin) = self.view()?;
        let counter = self.session.compaction.counter();
        let plan = CompactionPlan::of(&view, leaf, besides()?, options, counter);
        Ok(plan.map(|plan| plan.made_in(origin)))
    }

    /// Returns the view of this path, its leaf, and what binds a plan to the session.
    fn view(&self) -> Result<(Vec<Message>, MessageId, PlanOrigin)> {
        let session = &self.session;
        let leaf = match self.leaf() {
            Some(leaf) => leaf.clone(),
            None => session.storage.head()?.unwrap_or_else(MessageId::new),
        };
        // The path to the head is not read by the head's id: the head may be a deleted message at which
        // a summary ends. If the head moves between the two reads, the commit compares with the view at
        // that time.
        let view = session.storage.history(self.leaf())?;
        // Asked after the read: before it, another writer may not have created the session yet.
        let origin = session.plan_origin()?;
        Ok((view, leaf, origin))
    }
}

impl Session {
    /// Has the summary of a draft written, and commits it. The caller tells subscribers the size of the window.
    pub(super) fn compact_draft(&self, draft: Draft) -> Result<CompactionOutcome> {
        let written = match draft {
            Draft::Plan(plan) => {
                ask(self.summarizer()?, plan.prompt())?.map(|summary| (plan, summary))
            }
            Draft::View(seen) => self.choose(seen)?,
        };
        match written {
            Some((plan, summary)) => {
                self.commit_silently(plan, summary).map(CompactionOutcome::Compacted)
            }
            None => Ok(CompactionOutcome::Nothing(NothingToCompact::Declined)),
        }
    }

    fn choose(&self, seen: SeenView) -> Result<Option<(CompactionPlan, Summary)>> {
        let settings = &self.compaction;
        let Some(policy) = settings.policy() else { return Ok(None) };
        let SeenView { view, leaf, origin, besides, tokens } = seen;
        let given = Given {
            view: &view,
            tokens: &tokens,
            leaf,
            besides,
            threshold: settings.threshold(),
            options: settings.options(),
            is_protecting: settings.has_own_options(),
        };
        let chosen = choose(policy, given)?;
        Ok(chosen.map(|(plan, summary)| (plan.made_in(origin), summary)))
    }
}
