//! The deeds that compact: what is planned, and what a commit answers.

use std::sync::atomic::{AtomicU32, Ordering};

use talktree::{
    BoxError, CompactionId, CompactionPlan, Error, Message, MessageId, Planned, Session,
    TokenCounter,
};

use super::deed::Deed;
use super::journal::Journal;
use super::model::summary_of;
use super::state::name_of;
use super::worker::{SHARED, Worker, expect};
use crate::Result;
use crate::compaction::{Words, brief, by_words, options};
use crate::text::Said;

/// The window of a session that compacts by itself.
const THRESHOLD: u64 = 3_000;
/// The fewest tokens that are compacted: more than a summary of these works has.
const LEAST: u64 = 50;
/// What a summarizer says that is asked about less.
const TOO_LITTLE: &str = "too little to compact";

impl Worker {
    /// Fills in what only the store can tell of a deed: what would be compacted, and whether anything is left behind.
    pub(super) fn resolved(&self, deed: Deed) -> Result<Deed> {
        let nothing = Deed::Tokens { are_words: false };
        if !matches!(
            deed,
            Deed::CommitPlan { .. } | Deed::StaleCompaction { .. } | Deed::Leave { .. }
        ) {
            return Ok(deed);
        }
        let chat = self.store()?.session(self.name.as_str())?;
        Ok(match deed {
            Deed::CommitPlan { id, .. } => match planned(&chat)? {
                Some(plan) => {
                    let (first, last) = ends(&chat, &plan)?;
                    Deed::CommitPlan { id, first, last }
                }
                None => nothing,
            },
            Deed::StaleCompaction { message } => match planned(&chat)? {
                // A summary at the end cannot be updated, nor what has no name.
                Some(plan) if self.is_known(plan.last()) => Deed::StaleCompaction {
                    message: Said { id: plan.last().to_string(), ..message },
                },
                _ => nothing,
            },
            Deed::Leave { to, message } => {
                match chat.plan_branch_summary(&to.as_str().into(), &options())? {
                    Some(_) => Deed::Leave { to, message },
                    None => Deed::Checkout { id: to },
                }
            }
            deed => deed,
        })
    }

    fn is_known(&self, id: &MessageId) -> bool {
        self.journal.with(|model| model.word(id.as_str()).is_some())
    }

    pub(super) fn commit_plan(&self, chat: &Session, id: &str) -> Result<()> {
        let plan = planned(chat)?.ok_or("the same view is planned otherwise")?;
        let compacted = chat.commit(plan, summary_of(id))?;
        expect(compacted.is_shown, "a compaction of the head's own path is said not to show")
    }

    pub(super) fn compact_stale(&self, chat: &Session, message: &Said) -> Result<()> {
        let plan = planned(chat)?.ok_or("the same view is planned otherwise")?;
        chat.update(message.message())?;
        match chat.commit(plan, "of what was said before") {
            Err(Error::Stale { .. }) => Ok(()),
            answer => Err(format!("the commit of a stale plan: {answer:?}").into()),
        }
    }

    /// Appends, and tells the journal of each compaction that follows before it is committed.
    pub(super) fn append_and_compact(&self, message: &Said) -> Result<()> {
        let (journal, store) = (self.journal.clone(), self.store()?.clone());
        let (name, stem, count) = (self.name.clone(), message.id.clone(), AtomicU32::new(0));
        let summarize = move |prompt: &str| {
            let id = format!("{stem}s{}", count.fetch_add(1, Ordering::Relaxed));
            begin_compaction(&journal, &store.session(name.as_str())?, &id, prompt)?;
            Ok::<_, BoxError>(summary_of(&id))
        };
        let heard = self.journal.clone();
        let chat = self
            .store()?
            .session_builder(self.name.as_str())
            .summarizer(summarize)
            .compaction_options(options())
            .compact_after(THRESHOLD)
            .on_compaction_error(move |error| {
                let is_meant = matches!(error, Error::Summarizer { source } if source.to_string() == TOO_LITTLE);
                if !is_meant {
                    heard.hear(error.to_string());
                }
            })
            .open()?;
        let answer = chat.append(message.message())?;
        expect(answer.is_new, "a new message is said to be known")?;
        self.journal.heard()
    }

    pub(super) fn remove_compaction(&self, chat: &Session, id: &str) -> Result<()> {
        let found =
            chat.compactions()?.into_iter().find(|compaction| compaction.summary == summary_of(id));
        Ok(chat.remove_compaction(&found.ok_or("a compaction that is not there")?.id)?)
    }

    pub(super) fn leave(&self, chat: &Session, to: &str, message: &Said) -> Result<()> {
        let plan =
            chat.plan_branch_summary(&to.into(), &options())?.ok_or("nothing is left any more")?;
        let answer = chat.checkout_with_summary(plan, message.text.tell())?;
        expect(answer.is_new, "a new message is said to be known")
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
        expect(found == expected, &format!("{found} tokens are seen, not {expected}"))
    }

    /// Returns the session that all write to, which compacts by itself: others may have compacted the stretch meanwhile.
    pub(super) fn shared(&self) -> Result<Session> {
        let heard = self.journal.clone();
        let builder = self.store()?.session_builder(SHARED).summarizer(brief);
        let chat = builder
            .compact_after(THRESHOLD)
            .on_compaction_error(move |error| {
                if !matches!(error, Error::Stale { .. } | Error::SummaryRefused { .. }) {
                    heard.hear(error.to_string());
                }
            })
            .open()?;
        Ok(chat)
    }
}

/// Tells the journal that the append is done and the compaction begins that a summarizer is asked for.
fn begin_compaction(
    journal: &Journal,
    chat: &Session,
    id: &str,
    prompt: &str,
) -> std::result::Result<(), BoxError> {
    let plan = planned(chat)?.ok_or(TOO_LITTLE)?;
    if plan.prompt() != prompt {
        return Err("another compaction is planned than is asked for".into());
    }
    let (first, last) = ends(chat, &plan)?;
    journal.done()?;
    journal.begin(Deed::CommitPlan { id: id.to_owned(), first, last })
}

/// Returns what would be compacted now, if it is worth it.
fn planned(chat: &Session) -> Result<Option<CompactionPlan>> {
    Ok(match chat.plan_compaction(&options())? {
        Planned::Compact(plan) if plan.tokens() >= LEAST => Some(plan),
        _ => None,
    })
}

/// Returns what the model calls the first and the last message of a plan, of those under its summaries.
fn ends(chat: &Session, plan: &CompactionPlan) -> Result<(String, String)> {
    let under = |id: &MessageId, is_first: bool| -> Result<String> {
        let id = match CompactionId::from_message(id) {
            Some(summary) if is_first => chat.compaction(&summary)?.first,
            Some(summary) => chat.compaction(&summary)?.last,
            None => id.clone(),
        };
        Ok(name_of(&chat.message(&id)?.ok_or("an end of a plan that is not there")?))
    };
    Ok((under(plan.first(), true)?, under(plan.last(), false)?))
}
