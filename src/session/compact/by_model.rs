//! Compaction by a model: plan, ask, commit.
//!
//! A draft is read from the history in one go. It is either a plan whose prompt goes to the summarizer, or a view that goes
//! to the program's own policy, which answers with a range and its summary. Both end in the same commit.

use super::{Guard, Path, Session, by_request, enter};
use crate::compaction::policy::{
    CompactionOptions, CompactionPlan, Given, NothingToCompact, Overhead, Summarizer, ask, choose,
    judge,
};
use crate::compaction::{Compaction, CompactionStatus, PlanOrigin, Stale, Summary};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::sql::BackendError;
use crate::storage::sqlite::compaction;

/// What one commit replaced, in figures.
///
/// ```
/// use talktree::{CompactionOptions, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Ok(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
///
/// let compacted = chat.commit(plan, "They said words.")?;
/// assert_eq!((compacted.messages, compacted.tokens_before, compacted.tokens_after), (4, 276, 8));
/// assert!(compacted.is_shown());
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Whether the history at the head shows it, or why not.
    pub status: CompactionStatus,
}

impl Compacted {
    /// Returns whether the history at the head shows the summary.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.status == CompactionStatus::Shown
    }
}

impl Session {
    /// Returns the range of the history to compact now and the prompt for its summary, or why there
    /// is nothing to compact.
    ///
    /// The range is talktree's own choice, also in a session with a
    /// [`compaction_policy`](crate::SessionBuilder::compaction_policy). Nothing is written, and nothing is locked until the commit. [`CompactionPlan`] has an
    /// example.
    ///
    /// # Errors
    /// [`Error::SessionRemoved`] if the session was removed, before the call or while it runs: a plan is bound to its session;
    /// [`Error::Provider`] if a block of the prompt cannot be read; as every read.
    pub fn plan_compaction(
        &self,
        options: &CompactionOptions,
    ) -> Result<std::result::Result<CompactionPlan, NothingToCompact>> {
        self.path().plan_compaction(options)
    }

    /// Stores a summary of the planned range, if the range still reads as it did.
    ///
    /// Messages appended since do not matter, nor does the head: the summary shows on every path that
    /// holds the range. If a message of the range was updated or deleted, or another compaction covers
    /// part of it, the commit is refused with the reason.
    ///
    /// [`Compacted`] and [`Stale`] have examples.
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
        let counter = &self.compaction.counter;
        let tokens_after = judge(&summary.text, plan.tokens(), counter)
            .map_err(|why| Error::SummaryRefused { why })?;
        let compaction = Compaction {
            tokens_before: plan.tokens(),
            tokens_after,
            model: summary.model,
            details: summary.details,
            ..Compaction::new(summary.text, plan.first().clone(), plan.last().clone())
        };
        let (stored, status) = self.storage.write_compaction(&compaction, |conn, session| {
            let Some(session) = session else {
                let why = Stale::Deleted { id: compaction.first.clone() };
                return Err(BackendError::Own(Error::Stale { why }));
            };
            let (leaf, seen) = (plan.leaf(), plan.seen());
            compaction::commit(conn, &session, self.id(), &compaction, leaf, seen)
        })?;
        self.emit(|| compacted(&stored));
        Ok(Compacted {
            messages: plan.messages(),
            tokens_before: plan.tokens(),
            tokens_after,
            status,
            id: compaction.id,
        })
    }

    /// Runs a compaction by a model between two events with the size of the window.
    fn announced(
        &self,
        compact: impl FnOnce() -> Result<std::result::Result<Compacted, NothingToCompact>>,
    ) -> Result<std::result::Result<Compacted, NothingToCompact>> {
        self.emit_window_in(Phase::Compacting);
        let compacted = compact();
        if !matches!(compacted, Ok(Err(_))) {
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
    /// ```
    /// use talktree::{BoxError, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let brief = |_: &str| -> Result<&'static str, BoxError> { Ok("They said words.") };
    /// let chat = store.session_builder("s").summarizer(brief).open()?;
    /// chat.append(Message::user("hello"))?;
    ///
    /// match chat.compact()? {
    ///     Ok(done) => println!("{} tokens now", done.tokens_after),
    ///     Err(why) => println!("nothing to do: {why}"),
    /// }
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSummarizer`] without both; [`Error::CompactionInProgress`] if another call compacts the session in this
    /// process (an automatic compaction is none); [`Error::Summarizer`] or [`Error::CompactionPolicy`] if it fails or panics; as
    /// [`plan_compaction`](Self::plan_compaction) and [`commit`](Self::commit). The history is
    /// unchanged then.
    pub fn compact(&self) -> Result<std::result::Result<Compacted, NothingToCompact>> {
        self.path().compact()
    }

    /// Begins a compaction by the session's summarizer.
    ///
    /// # Errors
    /// [`Error::CompactionInProgress`] if one runs in this process: a summarizer that waits for another compaction of its
    /// own session would wait for ever, and one that starts another in a new thread each time would never end.
    pub(super) fn begin_compaction(&self) -> Result<Guard> {
        let is_running = || Error::CompactionInProgress { session: self.id().clone() };
        enter(by_request(&self.storage.identity()?)).ok_or_else(is_running)
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
            .asked
            .summarizer
            .as_deref()
            .ok_or_else(|| Error::NoSummarizer { session: self.id().clone() })
    }
}

impl Path {
    /// Returns the range of this path to compact and the prompt for its summary, or why there is
    /// nothing to compact.
    ///
    /// ```
    /// use talktree::{CompactionOptions, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
    /// chat.append_to(&"1".into(), Message::assistant("another way"))?; // the head is here now
    ///
    /// let options = CompactionOptions::default().keep_recent_tokens(0);
    /// let path = chat.at(&"9".into());
    /// let Ok(plan) = path.plan_compaction(&options)? else { panic!("nothing to compact") };
    /// assert!(!chat.commit(plan, "They said words.")?.is_shown());
    /// assert_eq!(path.history()?.len(), 6);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; as
    /// [`Session::plan_compaction`].
    pub fn plan_compaction(
        &self,
        options: &CompactionOptions,
    ) -> Result<std::result::Result<CompactionPlan, NothingToCompact>> {
        self.plan(options, || self.session.overhead())
    }

    /// Compacts this path once, with the session's own summarizer or policy.
    ///
    /// ```
    /// use talktree::{BoxError, CompactionOptions, Message, Store};
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
    /// assert!(matches!(outcome, Ok(done) if done.messages == 2));
    /// assert_eq!(chat.history()?.len(), 8);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; as [`Session::compact`].
    pub fn compact(&self) -> Result<std::result::Result<Compacted, NothingToCompact>> {
        let session = &self.session;
        if session.compaction.asked.policy.is_none() {
            session.summarizer()?;
        }
        // Before the plan: one that is made while another compaction runs would be stale.
        let guard = session.begin_compaction()?;
        match self.draft(|| session.overhead())? {
            Ok(draft) => session.announced(|| {
                // A listener that hears of the end may compact again.
                let _guard = guard;
                session.compact_draft(draft)
            }),
            Err(why) => Ok(Err(why)),
        }
    }
}

/// What is compacted next.
pub(super) enum Draft {
    /// A range that talktree chose; the summarizer is asked.
    Plan(CompactionPlan),
    /// The whole view; the program's policy is asked.
    View(SeenView),
}

impl Draft {
    /// Returns the tokens of the window.
    pub(super) fn total(&self) -> u64 {
        match self {
            Self::Plan(plan) => plan.usage().total,
            Self::View(SeenView { overhead, tokens, .. }) => {
                tokens.iter().fold(overhead.total(), |sum, tokens| sum.saturating_add(*tokens))
            }
        }
    }
}

/// A view and where it was read.
pub(super) struct SeenView {
    view: Vec<Message>,
    /// The leaf of the view's path.
    leaf: MessageId,
    origin: PlanOrigin,
    overhead: Overhead,
    /// The tokens of each item.
    tokens: Vec<u64>,
}

impl Path {
    /// Returns what the session's policy, or else its summarizer, is to compact of this path, or why there is nothing.
    pub(super) fn draft(
        &self,
        overhead: impl FnOnce() -> Result<Overhead>,
    ) -> Result<Result<Draft, NothingToCompact>> {
        let settings = &self.session.compaction;
        if settings.asked.policy.is_none() {
            return Ok(self.plan(&settings.options, overhead)?.map(Draft::Plan));
        }
        let (view, leaf, origin) = self.view()?;
        let overhead = overhead()?;
        let tokens = view.iter().map(|item| settings.counter.message(item)).collect();
        Ok(Ok(Draft::View(SeenView { view, leaf, origin, overhead, tokens })))
    }

    /// Returns the plan for this path, or why there is none.
    pub(super) fn plan(
        &self,
        options: &CompactionOptions,
        overhead: impl FnOnce() -> Result<Overhead>,
    ) -> Result<Result<CompactionPlan, NothingToCompact>> {
        let (view, leaf, origin) = self.view()?;
        let counter = &self.session.compaction.counter;
        let plan = CompactionPlan::of(&view, leaf, overhead()?, options, counter);
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
        let view = session.storage.history(self.leaf(), false)?;
        // Asked after the read: before it, another writer may not have created the session yet.
        let origin = session.plan_origin()?;
        Ok((view, leaf, origin))
    }
}

impl Session {
    /// Has the summary of a draft written, and commits it. The caller tells subscribers the size of the window.
    pub(super) fn compact_draft(
        &self,
        draft: Draft,
    ) -> Result<std::result::Result<Compacted, NothingToCompact>> {
        let written = match draft {
            Draft::Plan(plan) => {
                ask(self.summarizer()?, plan.prompt())?.map(|summary| (plan, summary))
            }
            Draft::View(seen) => self.choose(seen)?,
        };
        match written {
            Some((plan, summary)) => self.commit_silently(plan, summary).map(Ok),
            None => Ok(Err(NothingToCompact::Declined)),
        }
    }

    fn choose(&self, seen: SeenView) -> Result<Option<(CompactionPlan, Summary)>> {
        let settings = &self.compaction;
        let Some(policy) = settings.asked.policy.as_deref() else { return Ok(None) };
        let SeenView { view, leaf, origin, overhead, tokens } = seen;
        let given = Given {
            view: &view,
            tokens: &tokens,
            leaf,
            overhead,
            threshold: settings.asked.threshold,
            options: &settings.options,
            is_protecting: settings.asked.options.is_some(),
        };
        let chosen = choose(policy, given)?;
        Ok(chosen.map(|(plan, summary)| (plan.made_in(origin), summary)))
    }
}

/// Returns the event of a stored compaction.
pub(super) fn compacted(stored: &Compaction) -> Change {
    Change::Compact {
        id: stored.id.clone(),
        messages: stored.count,
        tokens_before: stored.tokens_before,
        tokens_after: stored.tokens_after,
    }
}
