//! Transcripts as sessions of the store.

use super::Transcripts;
use crate::error::Result;
use crate::transcript::{Projection, ProjectionReport, TranscriptFilter, TranscriptKey};

/// How many transcripts one read lists.
const PAGE: usize = 100;

impl Transcripts {
    /// Projects what is stored of a transcript, and repairs its session if it needs it. Returns how the session shows the
    /// transcript; `None` if none does: it has no messages, or its session was erased and must not come back.
    ///
    /// Calling it again changes nothing. It is one transaction, however long the transcript is.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (transcripts, key) = (store.transcripts(), TranscriptKey::new("project", "session"));
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// transcripts.append(&key, &[Json::parse(question)?])?;
    /// assert!(transcripts.projection(&key)?.is_none());
    ///
    /// let projection = transcripts.project(&key)?.expect("it has a message");
    /// assert_eq!(store.session(&projection.session)?.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn project(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        self.database.project(key)
    }

    /// Projects all transcripts that the filter shows, in order of their creation, each in a transaction of its own.
    ///
    /// Calling it again changes nothing.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptFilter, TranscriptKey};
    ///
    /// let store = Store::open_in_memory()?;
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// for session in ["monday", "tuesday"] {
    ///     store.transcripts().append(&TranscriptKey::new("p", session), &[Json::parse(question)?])?;
    /// }
    /// let report = store.transcripts().project_all(&TranscriptFilter::default())?;
    /// assert_eq!((report.sessions, store.sessions()?.len()), (2, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`project`](Self::project). What was projected before the error stays.
    pub fn project_all(&self, filter: &TranscriptFilter) -> Result<ProjectionReport> {
        let (mut report, mut after) = (ProjectionReport::default(), None);
        loop {
            let page = self.list(filter, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(report) };
            after = Some(last.number);
            for transcript in &page {
                report.add(self.project(&transcript.key)?.as_ref());
            }
        }
    }

    /// Returns how a session shows a transcript; `None` if none does.
    ///
    /// It reads the transcript, unless this store has projected it a moment ago.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) if the database fails.
    pub fn projection(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        self.database.projection(key)
    }
}
