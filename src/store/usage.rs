//! Reports of usage.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Store;
use crate::error::Result;
use crate::id::SessionId;
use crate::storage::sqlite::Database;
use crate::usage::{UsageFilter, UsageGroup, UsageTotal};

/// A report of what answers took. Made by [`Store::usage`].
///
/// A shared prefix of forks counts once. The usage of deleted messages and of removed sessions stays in the totals.
///
/// ```
/// use talktree::{Message, Store, Usage};
///
/// let store = Store::open_in_memory()?;
/// for (model, output) in [("small", 10), ("large", 50), ("small", 5)] {
///     let usage = Usage { model: Some(model.to_owned()), output, ..Usage::default() };
///     store.session("s")?.append(Message::assistant("4").with_usage(&usage))?;
/// }
/// let rows = store.usage().by_model().run()?;
/// let rows: Vec<_> = rows.iter().map(|row| (row.group.as_deref(), row.output)).collect();
/// assert_eq!(rows, [(Some("large"), 50), (Some("small"), 15)]);
/// assert_eq!(store.usage().model("small").total()?.answers, 2);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a report does nothing until `run` or `total`"]
pub struct UsageReport {
    database: Arc<Database>,
    filter: UsageFilter,
    group: UsageGroup,
}

impl Store {
    /// Returns a report of what answers took. [`UsageReport`] has an example.
    pub fn usage(&self) -> UsageReport {
        let (filter, group) = (UsageFilter::default(), UsageGroup::All);
        UsageReport { database: Arc::clone(&self.database), filter, group }
    }
}

impl UsageReport {
    /// Adds up what a filter names, instead of what was set before.
    pub fn filter(mut self, filter: UsageFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Adds up the usage of a session.
    pub fn session(mut self, id: impl Into<SessionId>) -> Self {
        self.filter.session = Some(id.into());
        self
    }

    /// Adds up the usage of an owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.filter.owner = Some(owner.into());
        self
    }

    /// Adds up the usage of the answers to a person; [`UsageFilter::author`] says which these are.
    ///
    /// ```
    /// use talktree::{Author, Message, Store, Usage, UsageGroup};
    ///
    /// let store = Store::open_in_memory()?;
    /// let group = store.session("group")?;
    /// for (id, output) in [("41", 10), ("42", 5), ("41", 7)] {
    ///     group.append(Message::user("2 + 2?").from(&Author::new(id)))?;
    ///     group.append(Message::assistant("4").with_usage(&Usage { output, ..Usage::default() }))?;
    /// }
    /// assert_eq!(store.usage().author("41").total()?.output, 17);
    /// assert_eq!(store.usage().by(UsageGroup::Author).run()?.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.filter.author = Some(author.into());
        self
    }

    /// Adds up the usage of a model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.filter.model = Some(model.into());
        self
    }

    /// Adds up the usage of the sessions from a source.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.filter.source = Some(source.into());
        self
    }

    /// Adds up what is not older.
    pub fn since(mut self, time: DateTime<Utc>) -> Self {
        self.filter.since = Some(time);
        self
    }

    /// Adds up what is older.
    pub fn until(mut self, time: DateTime<Utc>) -> Self {
        self.filter.until = Some(time);
        self
    }

    /// Makes a sum for each of a group.
    pub fn by(mut self, group: UsageGroup) -> Self {
        self.group = group;
        self
    }

    /// Makes a sum for each model.
    pub fn by_model(self) -> Self {
        self.by(UsageGroup::Model)
    }

    /// Returns the sums: the newest day first, otherwise the one with the most tokens.
    ///
    /// # Errors
    /// As every read.
    pub fn run(self) -> Result<Vec<UsageTotal>> {
        self.database.usage(&self.filter, self.group)
    }

    /// Returns the sum of all.
    ///
    /// # Errors
    /// As every read.
    pub fn total(self) -> Result<UsageTotal> {
        let rows = self.by(UsageGroup::All).run()?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }
}
