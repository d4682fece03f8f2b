//! Compaction by a model: plan, ask, commit.

use serde::Serialize;

use super::in_progress::{self, Guard};
use super::{Path, Session};
use crate::compaction::policy::{
    CompactionOptions, CompactionPlan, NothingToCompact, Planned, Summarizer, judge,
};
use crate::compaction::{Compaction, PlanOrigin, Summary};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};
use crate::id::CompactionId;

/// What one commit replaced, in figures.
///
/// ```
/// use talktree::{CompactionOptions, Message, Planned, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Planned::Compact(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
///
/// let compacted = chat.commit(plan, "They said words.")?;
/// assert_eq!((compacted.messages, compacted.tokens_before, compacted.tokens_after), (4, 276, 8));
/// assert!(compacted.is_shown);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// The compaction.
    pub id: CompactionId,
    /// How many messages it replaced in the history; summaries it replaced are not counted.
    pub messages: usize,
    /// How many tokens the range had in the history.
    pub tokens_before: u64,
    /// How many tokens the summary has.
    pub tokens_after: u64,
    /// Whether the history shows it: the head may have moved to another branch since the plan.
    pub is_shown: bool,
}

/// What [`Session::compact`] did.
///
/// ```
/// use talktree::{BoxError, CompactionOutcome, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let brief = |_: &str| -> Result<&'static str, BoxError> { Ok("They said words.") };
/// let chat = store.session_builder("s").summarizer(brief).open()?;
/// chat.append(Message::user("hello"))?;
///
/// match chat.compact()? {
///     CompactionOutcome::Compacted(done) => println!("{} tokens now", done.tokens_after),
///     CompactionOutcome::Nothing(why) => println!("nothing to do: {why}"),
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// A summary was added.
    Compacted(Compacted),
    /// No summary was added, for this reason.
    Nothing(NothingToCompact),
}

impl Session {
    /// Returns the range of the history to compact now and the prompt for its summary, or why there
    /// is nothing to compact.
    ///
    /// The range is talktree's own choice, also in a session with a
    /// [`compaction_policy`](crate::SessionBuilder::compaction_policy). Nothing is written, and nothing is locked until the commit. [`CompactionPlan`] and
    /// [`Planned`] have examples.
    ///
    /// # Errors
    /// [`Error::SessionRemoved`] if the session was removed, before the call or while it runs: a plan is bound to its session;
    /// [`Error::Provider`] if a block of the prompt cannot be read; as every read.
    pub fn plan_compaction(&self, options: &CompactionOptions) -> Result<Planned> {
        self.path().plan_compaction(options)
    }

    /// Stores a summary of the planned range, if the range still reads as it did.
    ///
    /// Messages appended since do not matter, nor does the head: the summary shows on every path that
    /// holds the range. If a message of the range was updated or deleted, or another compaction covers
    /// part of it, the commit is refused with the reason.
    ///
    /// [`Compacted`] and [`Stale`](crate::Stale) have examples.
    ///
    /// # Errors
    /// [`Error::PlanOfAnother`] if the plan was made in another session or store; [`Error::Stale`] if the range changed;
    /// [`Error::SummaryRefused`] if the summary is blank or
    /// not shorter than the range. Nothing is stored then.
    pub fn commit(&self, plan: CompactionPlan, summary: impl Into<Summary>) -> Result<Compacted> {
        let compacted = self.commit_silently(plan, summary.into())?;
        self.compaction.note_change();
        self.emit_window();
        Ok(compacted)
    }

    /// Commits without telling subscribers the size of the window.
    pub(super) fn commit_silently(
        &self,
        plan: CompactionPlan,
        summary: Summary,
    ) -> Result<Compacted> {
        self.check_origin(plan.origin())?;
        let counter = self.compaction.counter();
        let tokens_after = judge(&summary.text, plan.tokens(), counter)
            .map_err(|why| Error::SummaryRefused { why })?;
        let compaction = Compaction {
            tokens_before: plan.tokens(),
            tokens_after,
            model: summary.model,
            details: summary.details,
            ..Compaction::new(summary.text, plan.first().clone(), plan.last().clone())
        };
        let is_shown = self.storage.commit_compaction(&compaction, plan.leaf(), plan.seen())?;
        self.emit(|| self.compacted(&compaction));
        Ok(Compacted {
            messages: plan.messages(),
            tokens_before: plan.tokens(),
            tokens_after,
            is_shown,
            id: compaction.id,
        })
    }

    /// Returns the event of a compaction, with the figures that are stored with it.
    pub(super) fn compacted(&self, compaction: &Compaction) -> Change {
        // Another handle may have removed it since.
        let stored = self.storage.compaction(&compaction.id).ok().flatten();
        let figures = stored.as_ref().unwrap_or(compaction);
        Change::Compact {
            id: compaction.id.clone(),
            messages: figures.count,
            tokens_before: figures.tokens_before,
            tokens_after: figures.tokens_after,
        }
    }

    /// Runs a compaction by a model between two events with the size of the window.
    fn announced(
        &self,
        compact: impl FnOnce() -> Result<CompactionOutcome>,
    ) -> Result<CompactionOutcome> {
        self.emit_window_in(Phase::Compacting);
        let compacted = compact();
        if !matches!(compacted, Ok(CompactionOutcome::Nothing(_))) {
            self.compaction.note_change();
        }
        self.emit_window_in(Phase::Idle);
        compacted.inspect_err(|error| self.emit_failure(error))
    }

    /// Compacts the history once, with the session's own summarizer or policy. Subscribers hear when it starts and
    /// ends ([`Change::Window`]), and what it did.
    ///
    /// The call waits for the summary, also in a session with [`compact_on`](crate::SessionBuilder::compact_on). If an
    /// automatic compaction of the range is running, the one that is committed later is stale.
    /// [`CompactionOutcome`] has an example.
    ///
    /// # Errors
    /// [`Error::NoSummarizer`] without both; [`Error::CompactionInProgress`] if another call compacts the session in this
    /// process (an automatic compaction is none); [`Error::Summarizer`] or [`Error::CompactionPolicy`] if it fails or panics; as
    /// [`plan_compaction`](Self::plan_compaction) and [`commit`](Self::commit). The history is
    /// unchanged then.
    pub fn compact(&self) -> Result<CompactionOutcome> {
        self.path().compact()
    }

    /// Begins a compaction by the session's summarizer.
    ///
    /// # Errors
    /// [`Error::CompactionInProgress`] if one runs in this process: a summarizer that waits for another compaction of its
    /// own session would wait for ever, and one that starts another in a new thread each time would never end.
    pub(super) fn begin_compaction(&self) -> Result<Guard> {
        let is_running = || Error::CompactionInProgress { session: self.id().clone() };
        in_progress::enter(in_progress::by_request(&self.storage.identity()?))
            .ok_or_else(is_running)
    }

    /// Returns what binds a plan to this session.
    pub(super) fn plan_origin(&self) -> Result<PlanOrigin> {
        Ok(PlanOrigin::new(self.id().clone(), self.storage.identity()?))
    }

    pub(super) fn check_origin(&self, origin: Option<&PlanOrigin>) -> Result<()> {
        origin.map_or(Ok(()), |origin| origin.check(self.id(), &self.storage.identity()?))
    }

    pub(super) fn summarizer(&self) -> Result<&dyn Summarizer> {
        self.compaction
            .summarizer()
            .ok_or_else(|| Error::NoSummarizer { session: self.id().clone() })
    }
}

impl Path {
    /// Returns the range of this path to compact and the prompt for its summary, or why there is
    /// nothing to compact.
    ///
    /// ```
    /// use talktree::{CompactionOptions, Message, Planned, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    /// chat.append_to(&"1".into(), Message::assistant("another way"))?; // the head is here now
    ///
    /// let options = CompactionOptions::default().keep_recent_tokens(0);
    /// let path = chat.at(&"9".into());
    /// let Planned::Compact(plan) = path.plan_compaction(&options)? else { panic!("nothing to compact") };
    /// assert!(!chat.commit(plan, "They said words.")?.is_shown);
    /// assert_eq!(path.history()?.len(), 6);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; as
    /// [`Session::plan_compaction`].
    pub fn plan_compaction(&self, options: &CompactionOptions) -> Result<Planned> {
        Ok(match self.plan(options, || self.session.besides_messages())? {
            Ok(plan) => Planned::Compact(plan),
            Err(why) => Planned::Nothing(why),
        })
    }

    /// Compacts this path once, with the session's own summarizer or policy.
    ///
    /// ```
    /// use talktree::{BoxError, CompactionOptions, CompactionOutcome, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("s")
    ///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
    ///     .compaction_options(CompactionOptions::default().keep_recent_tokens(0))
    ///     .open()?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    ///
    /// let outcome = chat.at(&"7".into()).compact()?;
    /// assert!(matches!(outcome, CompactionOutcome::Compacted(done) if done.messages == 2));
    /// assert_eq!(chat.history()?.len(), 8);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; as [`Session::compact`].
    pub fn compact(&self) -> Result<CompactionOutcome> {
        let session = &self.session;
        if session.compaction.policy().is_none() {
            session.summarizer()?;
        }
        // Before the plan: one that is made while another compaction runs would be stale.
        let guard = session.begin_compaction()?;
        match self.draft(|| session.besides_messages())? {
            Ok(draft) => session.announced(|| {
                // A listener that hears of the end may compact again.
                let _guard = guard;
                session.compact_draft(draft)
            }),
            Err(why) => Ok(CompactionOutcome::Nothing(why)),
        }
    }
}
