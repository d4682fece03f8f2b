//! Running the rules of a retention.
//!
//! A run reads the lists of sessions page by page, asks a judge about each session, and discards those that meet a rule, a
//! few at a time; at the end it erases those that meet a rule that erases. A session that changed after it was listed is
//! skipped. A run that is stopped may leave bytes to overwrite, and the next run continues. A dry run does the same but
//! discards nothing.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Store;
use crate::catalog::{SessionFilter, SessionState};
use crate::clock;
use crate::erasure::{Erasure, ErasureTarget};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::outcome::SessionInfo;
use crate::report::Progress;
use crate::retention::{
    Judge, Retention, RetentionAction, RetentionReport, RetentionRule, is_past, rule_in_trash,
};
use crate::storage::sqlite::{Database, Watch};

/// How many sessions are read at a time.
const PAGE: usize = 500;

/// How many sessions are read first to find one that a rule keeps. The newest ones usually are kept.
const FIRST_PAGE: usize = 20;

/// How many sessions are discarded in one transaction, at most.
const MAX_SESSIONS: usize = 64;

/// How many sessions are erased in one transaction.
const GROUP: usize = 16;

/// A run of the rules of a [`Retention`]. Made by [`Store::retention`].
///
/// Other threads and processes may write meanwhile: they wait for a few sessions at a time, and a session that they change
/// before its turn is left alone.
#[must_use = "rules do nothing until `run` or `dry_run`"]
pub struct RetentionRun<'p> {
    store: Store,
    retention: Retention,
    now: Option<DateTime<Utc>>,
    on_progress: Box<dyn FnMut(Progress) + 'p>,
}

impl Store {
    /// Returns a run of retention rules. [`Retention`] and [`RetentionRule`] have examples.
    ///
    /// Nothing is discarded before [`run`](RetentionRun::run), and never without it.
    pub fn retention<'p>(&self, retention: Retention) -> RetentionRun<'p> {
        RetentionRun { store: self.clone(), retention, now: None, on_progress: Box::new(|_| {}) }
    }
}

impl<'p> RetentionRun<'p> {
    /// Computes ages at this time instead of the present, for example to see what a later run would discard.
    pub fn as_of(mut self, time: DateTime<Utc>) -> Self {
        self.now = Some(time);
        self
    }

    /// Calls `progress` after each page with how many sessions were read, and how many there are as far as is known.
    ///
    /// It may use the store. If it panics, so does the run; what was discarded stays discarded.
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'p) -> Self {
        self.on_progress = Box::new(progress);
        self
    }

    /// Discards the sessions that meet a rule, and returns which these are.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] as in [`Retention::check`]; [`Error::RuleMeetsAll`] if all sessions that
    /// are not pinned meet one, unless that is [allowed](Retention::allow_all); nothing is discarded then.
    /// [`Error::Interrupted`], and as every write: what was discarded until then stays discarded, and another run goes on.
    pub fn run(self) -> Result<RetentionReport> {
        let mut report = RetentionReport::default();
        self.go(true, &mut report).map(|()| report)
    }

    /// Discards as [`run`](Self::run) does; if it fails or is interrupted, `report` has what was discarded until then.
    ///
    /// ```
    /// use talktree::{Message, Retention, RetentionReport, RetentionRule, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// for id in ["monday", "tuesday"] {
    ///     store.session(id)?.append(Message::user("hello"))?;
    /// }
    /// let newest = Retention::new().rule(RetentionRule::new("newest").keep_sessions(1));
    /// let mut report = RetentionReport::default();
    /// store.retention(newest).run_into(&mut report)?;
    /// assert_eq!(report.sessions[0].id, "monday");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_into(self, report: &mut RetentionReport) -> Result<()> {
        self.go(true, report)
    }

    /// Returns which sessions a run would discard now. Nothing is changed.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn dry_run(self) -> Result<RetentionReport> {
        let mut report = RetentionReport::default();
        self.go(false, &mut report).map(|()| report)
    }

    fn go(mut self, is_real: bool, report: &mut RetentionReport) -> Result<()> {
        self.retention.check()?;
        let now = self.now.unwrap_or_else(clock::now);
        let watch = self.store.database.watch();
        let retention = std::mem::take(&mut self.retention);
        if !retention.allows_all() {
            self.find_kept(retention.rules(), now, &watch)?;
        }
        let mut pass = Pass {
            run: self,
            watch,
            report: RetentionReport::new(retention.rules(), retention.trash_term().is_some()),
            is_real,
            due: Vec::new(),
            to_erase: Vec::new(),
            looked_at: 0,
        };
        let ended = pass.all(&retention, now);
        if ended.is_err() {
            pass.keep_what_is_left();
        }
        *report = pass.report;
        ended
    }

    /// Returns an error if all sessions meet one rule. Usually a few sessions are read to find one that each rule keeps.
    fn find_kept(&self, rules: &[RetentionRule], now: DateTime<Utc>, watch: &Watch) -> Result<()> {
        // Each rule is tried alone: an earlier rule may discard sessions that this one would keep.
        let mut undecided: Vec<(&RetentionRule, Judge<'_>)> =
            rules.iter().map(|rule| (rule, Judge::new(std::slice::from_ref(rule), now))).collect();
        let (mut sessions, mut newest) = (0, None);
        // A session to which a message is appended meanwhile moves to the front of the list, past the pages that are left: so
        // those are read again.
        for is_again in [false, true] {
            let since = newest.filter(|_| is_again);
            let filter = SessionFilter { since, ..SessionFilter::default() };
            each(&self.store.database, &filter, FIRST_PAGE, |page| {
                watch.check()?;
                for info in &page.sessions {
                    sessions += u64::from(!info.is_pinned && !is_again);
                    newest = newest.max(Some(info.last_message_at.unwrap_or(info.created_at)));
                    let mut left = Vec::new();
                    for (rule, mut judge) in std::mem::take(&mut undecided) {
                        let met = judge.rule_for(info, || self.store.database.bytes(&info.id))?;
                        if met.is_some() || info.is_pinned {
                            left.push((rule, judge));
                        }
                    }
                    undecided = left;
                }
                let is_known = undecided.is_empty();
                Ok(if is_known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            if undecided.is_empty() || sessions == 0 {
                return Ok(());
            }
        }
        match undecided.first() {
            Some((rule, _)) => Err(Error::RuleMeetsAll { rule: rule.name().to_owned(), sessions }),
            None => Ok(()),
        }
    }
}

/// The work of a run.
struct Pass<'p> {
    run: RetentionRun<'p>,
    watch: Watch,
    report: RetentionReport,
    is_real: bool,
    /// What will be discarded next, with the index of its rule and its size.
    due: Vec<(SessionInfo, usize, u64)>,
    /// What is erased at the end.
    to_erase: Vec<SessionInfo>,
    looked_at: u64,
}

impl Pass<'_> {
    /// Runs the rules over the trash, then over the other sessions, and erases what they erase.
    fn all(&mut self, retention: &Retention, now: DateTime<Utc>) -> Result<()> {
        // The trash first: the term of what the rules put there now begins only now.
        let has_erasing = retention.has_erasing();
        if retention.trash_term().is_some() || has_erasing {
            let filter = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
            self.over(&filter, |info, bytes| {
                if has_erasing
                    && let Some(at) = rule_in_trash(retention.rules(), info, now, &mut *bytes)?
                    && retention.rules()[at].action() == RetentionAction::Erase
                {
                    return Ok(Some(at));
                }
                let is_due = retention.trash_term().zip(info.deleted_at);
                let is_due = is_due.is_some_and(|(term, since)| is_past(since, term, now));
                Ok((is_due && !info.is_pinned).then_some(retention.rules().len()))
            })?;
        }
        if !retention.rules().is_empty() {
            let mut judge = Judge::new(retention.rules(), now);
            self.over(&SessionFilter::default(), |info, bytes| judge.rule_for(info, bytes))?;
        }
        self.erase()
    }

    /// Reads the sessions that a filter shows, and discards those for which `judge` returns a rule.
    fn over(
        &mut self,
        filter: &SessionFilter,
        mut judge: impl FnMut(&SessionInfo, &mut dyn FnMut() -> Result<u64>) -> Result<Option<usize>>,
    ) -> Result<()> {
        let database = Arc::clone(&self.run.store.database);
        each(&database, filter, PAGE, |page| {
            for info in page.sessions {
                let mut size = None;
                let mut bytes = || match size {
                    Some(size) => Ok(size),
                    None => Ok(*size.insert(database.bytes(&info.id)?)),
                };
                if let Some(rule) = judge(&info, &mut bytes)? {
                    let bytes = bytes()?;
                    self.add(info, rule, bytes)?;
                }
                self.looked_at += 1;
            }
            self.discard()?;
            let more = if page.is_last { 0 } else { PAGE as u64 };
            (self.run.on_progress)(Progress::new(self.looked_at, self.looked_at + more));
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Adds a session to those that are discarded next. If these are many, or need another action, they are discarded first.
    fn add(&mut self, info: SessionInfo, rule: usize, bytes: u64) -> Result<()> {
        let action = self.report.rules[rule].action;
        let is_other =
            self.due.first().is_some_and(|due| self.report.rules[due.1].action != action);
        if is_other || self.due.len() >= MAX_SESSIONS {
            self.discard()?;
        }
        self.due.push((info, rule, bytes));
        Ok(())
    }

    /// Discards what is due, in one transaction, and notes it.
    fn discard(&mut self) -> Result<()> {
        self.watch.check()?;
        let due = std::mem::take(&mut self.due);
        let Some((_, first, _)) = due.first() else { return Ok(()) };
        let action = self.report.rules[*first].action;
        let done = match self.is_real {
            // All of them at the end.
            true if action == RetentionAction::Erase => vec![true; due.len()],
            true => {
                let sessions: Vec<SessionInfo> =
                    due.iter().map(|(info, ..)| info.clone()).collect();
                self.run.store.database.discard(&sessions, action)?
            }
            false => vec![true; due.len()],
        };
        let mut removed = Vec::new();
        for ((info, rule, bytes), _) in due.iter().zip(done).filter(|(_, is_done)| *is_done) {
            self.report.add(info, *rule, *bytes);
            match action {
                RetentionAction::Remove if self.is_real => removed.push(&info.id),
                RetentionAction::Erase => self.to_erase.push(info.clone()),
                _ => {}
            }
        }
        removed.into_iter().for_each(|id| self.run.store.tell_removed(id));
        Ok(())
    }

    /// Erases all that is to be erased, at once: an erasure costs the whole search index and a read of the file.
    fn erase(&mut self) -> Result<()> {
        if self.to_erase.is_empty() {
            return Ok(());
        }
        // In groups: others write between two of them, and a run that is stopped leaves the later ones as they are.
        let of_group = |group: &[SessionInfo]| {
            let unchanged = |info: &SessionInfo| ErasureTarget::Unchanged(Box::new(info.clone()));
            let targets = group.iter().map(unchanged).collect();
            Erasure { targets, ..Erasure::default().keep_totals().keep_items() }
        };
        let erasures: Vec<Erasure> = self.to_erase.chunks(GROUP).map(of_group).collect();
        if !self.is_real {
            let mut copies = self.run.store.database.erasure_extent(&erasures)?.copies_left;
            // These are removed before.
            let removed = self.report.sessions.iter();
            let removed = removed.filter(|session| session.action == RetentionAction::Remove);
            let removed: HashSet<&SessionId> = removed.map(|session| &session.id).collect();
            copies.retain(|copies| !removed.contains(&copies.session));
            self.report.copies_left = copies;
            return Ok(());
        }
        let progress = &mut self.run.on_progress;
        let erased = self.run.store.database.erase(&erasures, |_| {}, progress)?;
        let ids: HashSet<&SessionId> = erased.extent.sessions.iter().collect();
        self.report.take_back(self.to_erase.iter().filter(|info| !ids.contains(&info.id)));
        erased.extent.sessions.iter().for_each(|id| self.run.store.tell_removed(id));
        self.report.is_log_in_use = erased.is_log_in_use;
        self.report.copies_left = erased.extent.copies_left;
        Ok(())
    }

    /// After an error: leaves in the report only what was erased.
    fn keep_what_is_left(&mut self) {
        let is_left = |info: &&SessionInfo| {
            !matches!(self.run.store.database.session_info(&info.id), Ok(None))
        };
        let (left, gone): (Vec<_>, Vec<_>) = self.to_erase.iter().partition(is_left);
        self.report.take_back(left.into_iter());
        if self.is_real {
            gone.into_iter().for_each(|info| self.run.store.tell_removed(&info.id));
        }
    }
}

/// A page of a list.
struct Read {
    sessions: Vec<SessionInfo>,
    is_last: bool,
}

/// Reads the sessions that a filter shows, page by page; the first page has `first` sessions at most.
fn each(
    database: &Database,
    filter: &SessionFilter,
    first: usize,
    mut with: impl FnMut(Read) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (mut after, mut size): (Option<String>, _) = (None, first);
    loop {
        let page = database.list_sessions(filter, after.as_deref(), size)?;
        (after, size) = (page.after, PAGE);
        let sessions = page.sessions.into_iter().map(|listed| listed.info).collect();
        if with(Read { sessions, is_last: after.is_none() })?.is_break() || after.is_none() {
            return Ok(());
        }
    }
}

impl fmt::Debug for RetentionRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetentionRun")
            .field("retention", &self.retention)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
