//! The key of an encrypted store.

use std::fmt;
use std::sync::Arc;

use crate::callback;
use crate::error::{BoxError, Error, Result};

/// The key of an encrypted store: 32 bytes, or a function that returns them.
///
/// The bytes are the key of the cipher itself, not a passphrase: talktree opens connections often, and to derive a key
/// from a passphrase takes a tenth of a second for each. Make the bytes with a random generator and keep them in the
/// system's key store, or derive them from a passphrase once, with a function made for that (Argon2, scrypt).
///
/// The bytes are in no output of `Debug` and in no error.
///
/// ```
/// use talktree::{EncryptionKey, Error, Message, Store};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("bot.db");
/// # fn read_key() -> Result<[u8; 32], std::io::Error> { Ok([7; 32]) }
/// let key = EncryptionKey::from_fn(|| Ok(read_key()?)); // called each time a store is opened with it
/// let store = Store::options().key(key.clone()).open(&path)?;
/// store.session("s")?.append(Message::user("hello"))?;
/// drop(store);
///
/// assert!(matches!(Store::open(&path), Err(Error::WrongKey { .. })));
/// assert_eq!(Store::options().key(key).open(&path)?.session("s")?.history()?.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct EncryptionKey(Source);

#[derive(Clone)]
enum Source {
    Bytes([u8; 32]),
    Function(Arc<dyn Fn() -> Result<[u8; 32], BoxError> + Send + Sync>),
}

impl EncryptionKey {
    /// Returns the key that a function returns, which is called each time a store is opened with it.
    ///
    /// A store that cannot get its key is not opened: [`Error::EncryptionKey`].
    #[must_use]
    pub fn from_fn(read: impl Fn() -> Result<[u8; 32], BoxError> + Send + Sync + 'static) -> Self {
        Self(Source::Function(Arc::new(read)))
    }

    /// Returns the bytes, from the function if there is one.
    pub(crate) fn bytes(&self) -> Result<[u8; 32]> {
        match &self.0 {
            Source::Bytes(bytes) => Ok(*bytes),
            Source::Function(read) => callback::call(|| read())
                .map_err(BoxError::from)
                .flatten()
                .map_err(|source| Error::EncryptionKey { source }),
        }
    }
}

impl From<[u8; 32]> for EncryptionKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(Source::Bytes(bytes))
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey").finish_non_exhaustive()
    }
}
