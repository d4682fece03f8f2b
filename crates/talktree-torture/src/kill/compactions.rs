//! The operations that compact.

use std::sync::atomic::{AtomicU32, Ordering};

use talktree::{
    BoxError, CompactionId, CompactionPlan, Error, Message, MessageId, Session, TokenCounter,
};

use super::journal::Journal;
use super::model::summary_of;
use super::operation::Operation;
use super::state::name_of;
use super::worker::{SHARED, Worker, expect};
use crate::Result;
use crate::compaction::{Words, brief, by_words, options};
use crate::text::MessageSpec;

/// The token limit after which the session compacts automatically.
const THRESHOLD: u64 = 3_000;
/// The fewest tokens worth compacting: more than a summary of this test has.
const LEAST: u64 = 50;
/// The error of the summarizer when there are fewer tokens.
const TOO_LITTLE: &str = "too little to compact";

impl Worker {
    /// Completes an operation with what depends on the store: the range of a plan, or whether a checkout abandons
    /// anything. Returns another operation if there is nothing to compact or summarize.
    pub(super) fn complete(&self, operation: Operation) -> Result<Operation> {
        let nothing = Operation::VisibleTokens { are_words: false };
        if !matches!(
            operation,
            Operation::CommitPlan { .. }
                | Operation::CommitStalePlan { .. }
                | Operation::BranchSummary { .. }
        ) {
            return Ok(operation);
        }
        let chat = self.store()?.session(self.name.as_str())?;
        Ok(match operation {
            Operation::CommitPlan { id, .. } => match planned(&chat)? {
                Some(plan) => {
                    let (first, last) = ends(&chat, &plan)?;
                    Operation::CommitPlan { id, first, last }
                }
                None => nothing,
            },
            Operation::CommitStalePlan { message } => match planned(&chat)? {
                // A compaction at the end of the plan cannot be updated, nor a message with a generated id.
                Some(plan) if self.is_known(plan.last()) => Operation::CommitStalePlan {
                    message: MessageSpec { id: plan.last().to_string(), ..message },
                },
                _ => nothing,
            },
            Operation::BranchSummary { to, message } => {
                match chat.plan_branch_summary(&to.as_str().into(), &options())? {
                    Some(_) => Operation::BranchSummary { to, message },
                    None => Operation::Checkout { id: to },
                }
            }
            operation => operation,
        })
    }

    fn is_known(&self, id: &MessageId) -> bool {
        self.journal.with(|model| model.word(id.as_str()).is_some())
    }

    pub(super) fn commit_plan(&self, chat: &Session, id: &str) -> Result<()> {
        let plan = planned(chat)?.ok_or("planning again finds nothing to compact")?;
        let compacted = chat.commit(plan, summary_of(id))?;
        expect(compacted.is_shown(), "a compaction on the head's path is not shown")
    }

    pub(super) fn commit_stale_plan(&self, chat: &Session, message: &MessageSpec) -> Result<()> {
        let plan = planned(chat)?.ok_or("planning again finds nothing to compact")?;
        chat.update(message.message())?;
        match chat.commit(plan, "a stale summary") {
            Err(Error::Stale { .. }) => Ok(()),
            answer => Err(format!("committing a stale plan returns {answer:?}").into()),
        }
    }

    /// Appends; the journal records each compaction that follows before it is committed.
    pub(super) fn append_and_compact(&self, message: &MessageSpec) -> Result<()> {
        let (journal, store) = (self.journal.clone(), self.store()?.clone());
        let (name, stem, count) = (self.name.clone(), message.id.clone(), AtomicU32::new(0));
        let summarize = move |prompt: &str| {
            let id = format!("{stem}s{}", count.fetch_add(1, Ordering::Relaxed));
            begin_compaction(&journal, &store.session(name.as_str())?, &id, prompt)?;
            Ok::<_, BoxError>(summary_of(&id))
        };
        let journal = self.journal.clone();
        let chat = self
            .store()?
            .session_builder(self.name.as_str())
            .summarizer(summarize)
            .compaction_options(options())
            .compact_after(THRESHOLD)
            .on_error(move |error| {
                let is_meant = matches!(error, Error::Summarizer { source } if source.to_string() == TOO_LITTLE);
                if !is_meant {
                    journal.add_error(error.to_string());
                }
            })
            .open()?;
        let answer = chat.append(message.message())?;
        expect(answer.is_new, "a new message is reported as known")?;
        self.journal.check_errors()
    }

    pub(super) fn remove_compaction(&self, chat: &Session, id: &str) -> Result<()> {
        let found =
            chat.compactions()?.into_iter().find(|compaction| compaction.summary == summary_of(id));
        Ok(chat.remove_compaction(&found.ok_or("the compaction does not exist")?.id)?)
    }

    pub(super) fn branch_summary(
        &self,
        chat: &Session,
        to: &str,
        message: &MessageSpec,
    ) -> Result<()> {
        let plan =
            chat.plan_branch_summary(&to.into(), &options())?.ok_or("no branch to summarize")?;
        let answer = chat.checkout_with_summary(plan, message.text.render())?;
        expect(answer.is_new, "a new message is reported as known")
    }

    pub(super) fn count_tokens(&self, chat: &Session, are_words: bool) -> Result<()> {
        let history = chat.history()?;
        let (found, expected) = match are_words {
            true => (
                by_words(self.store()?, &self.name)?.visible_tokens()?,
                history.iter().map(|message| Words.count(message) as u64).sum(),
            ),
            false => (chat.visible_tokens()?, history.iter().map(Message::tokens).sum::<u64>()),
        };
        expect(found == expected, &format!("{found} visible tokens, not {expected}"))
    }

    /// Returns the session that all workers append to. It compacts automatically, and a plan may be stale because
    /// another worker has compacted the same range.
    pub(super) fn shared(&self) -> Result<Session> {
        let journal = self.journal.clone();
        let builder = self.store()?.session_builder(SHARED).summarizer(brief);
        let chat = builder
            .compact_after(THRESHOLD)
            .on_error(move |error| {
                if !matches!(error, Error::Stale { .. } | Error::SummaryRefused { .. }) {
                    journal.add_error(error.to_string());
                }
            })
            .open()?;
        Ok(chat)
    }
}

/// Records that the append is done and that the compaction begins for which the summarizer is called.
fn begin_compaction(
    journal: &Journal,
    chat: &Session,
    id: &str,
    prompt: &str,
) -> std::result::Result<(), BoxError> {
    let plan = planned(chat)?.ok_or(TOO_LITTLE)?;
    if plan.prompt() != prompt {
        return Err("the summarizer is called for another plan".into());
    }
    let (first, last) = ends(chat, &plan)?;
    journal.done()?;
    journal.begin(Operation::CommitPlan { id: id.to_owned(), first, last })
}

/// Plans a compaction; `None` if there is too little to compact.
fn planned(chat: &Session) -> Result<Option<CompactionPlan>> {
    Ok(match chat.plan_compaction(&options())? {
        Ok(plan) if plan.tokens() >= LEAST => Some(plan),
        _ => None,
    })
}

/// Returns the model's names of the first and the last message of a plan. If an end is a compaction, its own first or
/// last message counts.
fn ends(chat: &Session, plan: &CompactionPlan) -> Result<(String, String)> {
    let under = |id: &MessageId, is_first: bool| -> Result<String> {
        let id = match CompactionId::from_message(id) {
            Some(summary) if is_first => chat.compaction(&summary)?.first,
            Some(summary) => chat.compaction(&summary)?.last,
            None => id.clone(),
        };
        Ok(name_of(&chat.message(&id)?.ok_or("an end of the plan does not exist")?))
    };
    Ok((under(plan.first(), true)?, under(plan.last(), false)?))
}
