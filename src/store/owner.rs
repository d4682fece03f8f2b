//! The data of an owner besides messages, for an export.

use super::Store;
use crate::error::Result;
use crate::id::SessionId;
use crate::message::Json;
use crate::storage::context::EntryVersion;
use crate::storage::owner_data::{LedgerOf, LedgerRow, OwnedItem, TextName, TextsOf};
use crate::transcript::StoredTranscript;

impl Store {
    /// Returns the names of all texts of an owner or a session, removed ones included.
    pub(crate) fn text_names(&self, of: TextsOf<'_>) -> Result<Vec<TextName>> {
        self.database.text_names(of)
    }

    /// Returns the versions of a text, oldest first.
    pub(crate) fn text_versions(
        &self,
        of: TextsOf<'_>,
        name: &TextName,
    ) -> Result<Vec<EntryVersion>> {
        self.database.text_versions(of, name)
    }

    /// Returns a batch of rows of the ledger, after a place; an empty one is the end.
    pub(crate) fn ledger(
        &self,
        of: LedgerOf<'_>,
        after: Option<(i64, i64)>,
    ) -> Result<Vec<LedgerRow>> {
        self.database.ledger(of, after)
    }

    /// Returns the owner's next pending item in an inbox, after one of them; `None` is the end.
    pub(crate) fn owned_item(&self, owner: &str, after: i64) -> Result<Option<OwnedItem>> {
        self.database.owned_item(owner, after)
    }

    /// Returns the transcripts that an erasure of the owner erases, oldest first.
    pub(crate) fn owned_transcripts(&self, owner: &str) -> Result<Vec<StoredTranscript>> {
        self.database.owned_transcripts(owner)
    }

    /// Returns a batch of a transcript's entries with their numbers, after one of them; an empty one is the end.
    pub(crate) fn entries(&self, transcript: u64, after: i64) -> Result<Vec<(i64, Json)>> {
        self.database.entries(transcript, after)
    }

    /// Returns the keys of the records that were imported into a session.
    pub(crate) fn imported_records(&self, id: &SessionId) -> Result<Vec<String>> {
        self.database.imported_records(id)
    }
}
