//! The transcripts of agent sessions.

use std::sync::Arc;

use super::Store;
use crate::transcript::handle::Transcripts;

impl Store {
    /// Returns the transcripts of agent sessions in this store.
    ///
    /// They are stored beside the store's own sessions. [`projecting`](Transcripts::projecting) shows them as sessions, too.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    ///
    /// let transcripts = Store::open_in_memory()?.transcripts();
    /// let (key, entry) = (TranscriptKey::new("project", "session"), Json::parse(r#"{"type":"user"}"#)?);
    /// transcripts.append(&key, &[entry.clone()])?;
    /// assert_eq!(transcripts.load(&key)?, Some(vec![entry]));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn transcripts(&self) -> Transcripts {
        Transcripts::of(Arc::clone(&self.database))
    }
}
