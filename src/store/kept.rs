//! Values that a program keeps beside the conversations.

use super::Store;
use crate::error::Result;

impl Store {
    /// Puts values under names, in one transaction, each in place of the one before.
    ///
    /// They are for what a program has to know about its store, such as how far it has read a source. No verb lists or erases them,
    /// so nothing that a person wrote belongs there, nor into a name. Begin a name with that of the program.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let store = Store::open_in_memory()?;
    /// let name = "my-bot:last-digest";
    /// assert_eq!(store.kept(name)?, None);
    /// store.keep(&[(name.to_owned(), "2026-01-30".to_owned())])?;
    /// assert_eq!(store.kept(name)?.as_deref(), Some("2026-01-30"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a name is empty or too long,
    /// [`Error::TooLarge`](crate::Error::TooLarge) if a value is over the store's limit for messages; as every write.
    pub fn keep(&self, values: &[(String, String)]) -> Result<()> {
        self.database.keep_values(values)
    }

    /// Returns the value that was [kept](Self::keep) under a name.
    ///
    /// # Errors
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the name is empty or too long; as every read.
    pub fn kept(&self, name: &str) -> Result<Option<String>> {
        self.database.kept(name)
    }
}
