//! Inboxes: deliveries that a program has received and not handled yet.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::error::{Result, check_size};
use crate::id::check_name;

/// How many ids of handled items of a source are remembered at least.
pub(crate) const MAX_HANDLED_IDS: u64 = 100_000;

/// The maximum size of the items of one call, together.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 30;

/// An item that a program received: [`Inbox::receive`](crate::Inbox::receive) stores it, and
/// [`Inbox::next`](crate::Inbox::next) returns it while it waits to be handled.
///
/// ```
/// use talktree::InboxItem;
///
/// let item = InboxItem::new("812", "telegram:4711", r#"{"update_id":812}"#).owner("user:42");
/// assert_eq!(item.owner.as_deref(), Some("user:42"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[must_use = "an item is stored by `receive`"]
pub struct InboxItem {
    /// Its id in the source. Each id is stored once.
    pub id: String,
    /// What it belongs to, such as a chat: the items of a key are handled one after the other, those of different keys at the
    /// same time.
    pub key: String,
    /// The person or tenant whose data it is.
    pub owner: Option<String>,
    /// Any text.
    pub body: String,
    /// What [`Inbox::note`](crate::Inbox::note) stored last.
    pub note: Option<String>,
    /// When it was received; `None` if it is not stored yet.
    pub received_at: Option<DateTime<Utc>>,
}

impl InboxItem {
    /// Returns an item without an owner: with its id in the source, its key, and any text.
    pub fn new(id: impl Into<String>, key: impl Into<String>, body: impl Into<String>) -> Self {
        let (id, key, body) = (id.into(), key.into(), body.into());
        Self { id, key, owner: None, body, note: None, received_at: None }
    }

    /// Sets the owner: [`Erasure::owner`](crate::Erasure::owner) erases the item, and
    /// [`data_of_owner`](crate::Store::data_of_owner) includes it, while it waits.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Returns the size of its texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let owner = self.owner.as_ref().map_or(0, String::len);
        self.id.len() + self.key.len() + owner + self.body.len()
    }

    /// Checks the names, and that the body is within the store's limit for messages.
    pub(crate) fn check(&self, max_bytes: usize) -> Result<()> {
        check_name("inbox item", &self.id)?;
        check_name("key", &self.key)?;
        if let Some(owner) = &self.owner {
            check_name("owner", owner)?;
        }
        check_size("the body of an inbox item", self.body.len(), max_bytes)
    }
}

/// Checks the size of items that are received together.
pub(crate) fn check_batch(sizes: impl Iterator<Item = usize>) -> Result<()> {
    let total = sizes.fold(0, usize::saturating_add);
    check_size("a batch of inbox items", total, MAX_BATCH_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_may_have_a_gibibyte() {
        let of = |sizes: &[usize]| check_batch(sizes.iter().copied());
        assert!(of(&[1 << 29, 1 << 29]).is_ok());
        assert_eq!(
            of(&[1 << 29, 1 << 29, 1]).unwrap_err().to_string(),
            "a batch of inbox items is 1073741825 bytes, over the store's limit of 1073741824"
        );
    }
}
