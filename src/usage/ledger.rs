//! The ledger: what answers took, added up.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Cost;
use crate::error::Result;
use crate::id::{SessionId, check_given};

/// Which usage is added up. The default is all of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// Of this session. What a fork copied counts in the session where it was written.
    pub session: Option<SessionId>,
    /// Of the sessions of this owner.
    pub owner: Option<String>,
    /// Of the answers to this person, named by [`Author::key`](crate::Author::key). An answer is to the author of the nearest
    /// message above it that has one, among the 256 messages appended before it; that is noted when the answer is stored.
    pub author: Option<String>,
    /// Of this model.
    pub model: Option<String>,
    /// Of the sessions from this source.
    pub source: Option<String>,
    /// Not older.
    pub since: Option<DateTime<Utc>>,
    /// Older.
    pub until: Option<DateTime<Utc>>,
}

impl UsageFilter {
    /// Checks that owner, author, model and source are not empty.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue).
    pub(crate) fn check(&self) -> Result<()> {
        check_given([
            ("owner", &self.owner),
            ("author", &self.author),
            ("model", &self.model),
            ("source", &self.source),
        ])
    }
}

/// By what usage is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UsageGroup {
    /// Everything is one sum.
    #[default]
    All,
    /// By model.
    Model,
    /// By day, in UTC: `2026-01-31`.
    Day,
    /// By owner.
    Owner,
    /// By the person who was answered.
    Author,
    /// By session.
    Session,
    /// By the source of the session.
    Source,
}

/// One sum of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsageRow {
    /// The model, day, owner, author, session or source; `None` where there is none, and in a report that is one sum.
    pub group: Option<String>,
    /// The sum.
    #[serde(flatten)]
    pub total: UsageTotal,
}

/// What several answers took.
///
/// ```
/// use talktree::{Message, Store, Usage};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let usage = Usage { input: 100, output: 20, ..Usage::default() };
/// chat.append(Message::assistant("4").with_usage(&usage))?;
/// chat.add_usage(None, &usage)?; // of a call that left no message
///
/// let total = chat.usage()?;
/// assert_eq!((total.answers, total.input, total.output), (2, 200, 40));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct UsageTotal {
    /// How many answers.
    pub answers: u64,
    /// The tokens of the requests, cached ones included.
    pub input: u64,
    /// The tokens of the answers, reasoning included.
    pub output: u64,
    /// How many tokens of the input were read from a cache.
    pub cache_read: u64,
    /// How many tokens of the input were written to a cache.
    pub cache_write: u64,
    /// How many tokens of the output were reasoning.
    pub reasoning: u64,
    /// The known costs, one sum a currency, sorted by currency.
    pub costs: Vec<Cost>,
}

impl UsageTotal {
    /// Adds another total.
    pub(crate) fn add(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        for cost in other.costs {
            match self.costs.binary_search_by(|own| own.currency.cmp(&cost.currency)) {
                Ok(at) => self.costs[at].micros = self.costs[at].micros.saturating_add(cost.micros),
                Err(at) => self.costs.insert(at, cost),
            }
        }
    }
}

impl UsageRow {
    /// Returns a sum.
    pub(crate) fn new(group: Option<String>, total: UsageTotal) -> Self {
        Self { group, total }
    }
}
