//! Importing many sessions at once.

use super::Store;
use crate::compaction::is_blank;
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::check_label;
use crate::outcome::{Imported, SessionImport};

impl Store {
    /// Creates sessions from elsewhere, each with all that it holds, in one transaction; returns the outcome of each.
    ///
    /// One commit, so one wait for the disk, for all of them: an import of many small sessions takes a fraction of the
    /// time of [`import_messages`](crate::Session::import_messages) on each. A session that is refused leaves nothing
    /// behind, and the others are stored. After a crash each of them is there as a whole or not at all.
    ///
    /// ```
    /// use talktree::{Error, ImportRecord, Message, SessionImport, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let sessions: Vec<SessionImport> = ["monday", "tuesday", "monday"]
    ///     .into_iter()
    ///     .map(|day| {
    ///         let message = Message::user("hello").with_id("m1");
    ///         let record = ImportRecord { record: "line 1".to_owned(), parent: None, message };
    ///         SessionImport { records: vec![record], ..SessionImport::new(day) }
    ///     })
    ///     .collect();
    /// let outcomes = store.import_sessions(&sessions)?;
    /// assert!(outcomes[0].is_ok() && outcomes[1].is_ok());
    /// assert!(matches!(outcomes[2], Err(Error::SessionExists { .. })));
    /// assert_eq!(store.session("tuesday")?.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; nothing is stored then. The outcome of one session is
    /// [`Error::SessionExists`] if its id is taken, [`Error::UnknownMessage`] if a parent, a label, the head or an end of
    /// a compaction is not among its messages, [`Error::MessageTooLarge`], or what
    /// [`import_compaction`](crate::Session::import_compaction), [`label`](crate::Session::label) and
    /// [`set_details`](crate::Session::set_details) refuse.
    pub fn import_sessions(
        &self,
        sessions: &[SessionImport],
    ) -> Result<Vec<Result<Vec<Imported>>>> {
        let checked: Vec<Result<()>> = sessions.iter().map(check).collect();
        let sound = sessions.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
        let sound: Vec<&SessionImport> = sound.map(|(session, _)| session).collect();
        let mut stored = self.database.import_sessions(&sound)?.into_iter();
        let mut outcomes = Vec::with_capacity(sessions.len());
        for (session, checked) in sessions.iter().zip(checked) {
            let outcome = checked.and_then(|()| stored.next().unwrap_or_else(|| Ok(Vec::new())));
            if let Ok(imported) = &outcome {
                let added = imported.iter().filter(|imported| **imported == Imported::Added);
                let messages = added.count() as u64;
                if messages > 0 {
                    // A store has no error handler.
                    self.events.emit(&session.id, || Change::Import { messages }, |_| {});
                }
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }
}

/// Checks what does not depend on the store.
fn check(session: &SessionImport) -> Result<()> {
    session.id.check()?;
    session.details.check()?;
    for record in &session.records {
        record.message.id.check_for_writing()?;
    }
    for compaction in &session.compactions {
        compaction.id.check()?;
        if is_blank(&compaction.summary) {
            return Err(Error::SummaryRefused { why: crate::SummaryRefused::Blank });
        }
    }
    session.labels.iter().try_for_each(|label| check_label(&label.name))
}
