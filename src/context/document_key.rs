//! Chooses the key of a document that is given none.

use super::provider::Document;
use super::slug::{self, Candidates};
use crate::storage::context::Entry;

/// How many keys with a hash are tried; each is taken only if someone chose it for another document.
const MAX_CANDIDATES: usize = 1_000;

/// The document that has a key.
pub(super) struct Holder {
    key: String,
    title: Option<String>,
    content: String,
}

impl Holder {
    /// A document that is written in the same call.
    pub(super) fn of(document: &Document) -> Self {
        let Document { key, title, content, .. } = document.clone();
        Self { key, title, content }
    }

    /// Returns whether a document without a key replaces this one: both have the same title or, without titles, the same
    /// content.
    fn is_of(&self, document: &Document) -> bool {
        let own = slug::titled(self.title.as_deref());
        match slug::titled(document.title.as_deref()) {
            Some(title) => own.unwrap_or(&self.key) == title,
            None => own.is_none() && self.content == document.content,
        }
    }
}

impl From<Entry> for Holder {
    fn from(entry: Entry) -> Self {
        let Entry { key, title, content, .. } = entry;
        Self { key, title, content }
    }
}

/// Returns the key for a document without one.
///
/// If the document is stored already, its key; else the readable key if that is free; else one with a hash. The key with a
/// hash is looked up first: the document got it if the readable key was taken then, and that may be free by now.
pub(super) fn choose<E>(
    document: &Document,
    look: impl Fn(&str) -> Result<Option<Holder>, E>,
) -> Result<String, E> {
    let candidates = Candidates::of(document.title.as_deref(), &document.content);
    let mut long = candidates.long();
    let hashed = long.next().unwrap_or_default();
    let at_hashed = look(&hashed)?;
    let is_own = at_hashed.as_ref().is_some_and(|holder| holder.is_of(document));
    if let Some(short) = candidates.short.as_ref().filter(|_| !is_own)
        && look(short)?.is_none_or(|holder| holder.is_of(document))
    {
        return Ok(short.clone());
    }
    if is_own || at_hashed.is_none() {
        return Ok(hashed);
    }
    for key in long.take(MAX_CANDIDATES) {
        if look(&key)?.is_none_or(|holder| holder.is_of(document)) {
            return Ok(key);
        }
    }
    Ok(hashed)
}
