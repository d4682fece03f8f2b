//! The data of an owner besides messages, for an export.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::id::{MessageId, SessionId};
use crate::inbox::PendingItem;

/// A session or an owner, with texts of context blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextsOf<'a> {
    Owner(&'a str),
    Session(&'a SessionId),
}

/// The name of a text of a context block, also of a removed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextName {
    pub(crate) label: String,
    /// The key of a document; empty: the block's own text.
    pub(crate) key: String,
}

/// A pending item of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedItem {
    /// Its place among all items.
    pub(crate) number: i64,
    /// The name of the source.
    pub(crate) inbox: String,
    pub(crate) item: PendingItem,
}

/// Which rows of the ledger are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LedgerOf<'a> {
    Owner(&'a str),
    /// Of the answers to a person.
    Author(&'a str),
}

/// A row of the ledger of usage.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LedgerRow {
    /// `None` if the session is not in the store any more.
    pub(crate) session: Option<SessionId>,
    /// `None` if it is of no message, or of a deleted one.
    pub(crate) message: Option<MessageId>,
    pub(crate) model: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
    /// In millionths of the currency.
    pub(crate) cost: Option<i64>,
    pub(crate) currency: Option<String>,
    /// The provider's id of the answer.
    pub(crate) answer: Option<String>,
    pub(crate) used_at: DateTime<Utc>,
    /// The row's place, for the next batch.
    #[serde(skip)]
    pub(crate) place: (i64, i64),
}
