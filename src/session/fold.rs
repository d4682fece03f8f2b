//! Compactions by hand: laying summaries over stretches and taking them off.

use super::Session;
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::{CompactionId, MessageId};
use crate::message::{Json, Message};

impl Session {
    /// Lays a summary over the stretch from `first` to `last`, and returns the compaction's id.
    ///
    /// It shows on every path that holds `last`, in place of what it covers; nothing is changed in
    /// what is stored. It folds whole items of the view at `last`, messages and summaries alike; a
    /// shown summary's id stands for its first or last message. So compactions nest, and adding
    /// one never lengthens a history.
    ///
    /// # Errors
    /// [`Error::BlankSummary`]; [`Error::UnknownMessage`] or [`Error::UnknownCompaction`] if an end
    /// is not in this session; [`Error::NotAncestor`] if `first` does not lie on the path to
    /// `last`; [`Error::InsideSummary`] if an end lies inside a summary shown there;
    /// [`Error::NothingToFold`] if a model sees nothing of the stretch.
    pub fn add_compaction(
        &self,
        summary: impl Into<String>,
        first: &MessageId,
        last: &MessageId,
    ) -> Result<CompactionId> {
        self.lay(summary.into(), first, last, None)
    }

    /// Lays a summary as [`add_compaction`](Self::add_compaction) does, with details to keep
    /// beside it.
    ///
    /// # Errors
    /// As [`add_compaction`](Self::add_compaction).
    pub fn add_compaction_with(
        &self,
        summary: impl Into<String>,
        first: &MessageId,
        last: &MessageId,
        details: impl Into<Json>,
    ) -> Result<CompactionId> {
        self.lay(summary.into(), first, last, Some(details.into()))
    }

    fn lay(
        &self,
        summary: String,
        first: &MessageId,
        last: &MessageId,
        details: Option<Json>,
    ) -> Result<CompactionId> {
        let compaction = Compaction {
            id: CompactionId::new(),
            first: first.clone(),
            last: last.clone(),
            count: 0,
            summary,
            details,
            created_at: crate::message::now(),
        };
        self.import_compaction(&compaction)?;
        Ok(compaction.id)
    }

    /// Lays a summary that was made elsewhere, with its id and time; one of an id that stands is
    /// left as it is.
    ///
    /// A `count` of 0 is counted.
    ///
    /// # Errors
    /// As [`add_compaction`](Self::add_compaction).
    pub fn import_compaction(&self, compaction: &Compaction) -> Result<()> {
        compaction.id.check()?;
        if compaction.summary.trim().is_empty() {
            return Err(Error::BlankSummary);
        }
        self.provider.add_compaction(compaction)?;
        self.tell(|| Change::Compact { id: compaction.id.clone() });
        Ok(())
    }

    /// Takes a summary off; what was under it shows again.
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        self.provider.remove_compaction(id)?;
        self.tell(|| Change::Expand { id: id.clone() });
        Ok(())
    }

    /// Returns all compactions of the session, in the order they were made.
    ///
    /// # Errors
    /// As every read.
    pub fn compactions(&self) -> Result<Vec<Compaction>> {
        self.provider.compactions()
    }

    /// Returns one compaction.
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn compaction(&self, id: &CompactionId) -> Result<Compaction> {
        self.provider
            .compaction(id)?
            .ok_or_else(|| Error::UnknownCompaction { session: self.id().clone(), id: id.clone() })
    }

    /// Returns the stored messages under a summary, oldest first.
    ///
    /// # Errors
    /// [`Error::UnknownCompaction`] if `id` is not in this session.
    pub fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.provider.expand(id)
    }
}
