//! The key of a transcript.

use serde::Serialize;

use crate::error::{Error, Result, check_size};
use crate::id::check_length;
use crate::message::Json;

/// The maximum size of the entries of one append: 1 GiB of JSON.
///
/// An append is one transaction, and all of it is in the write-ahead log at once.
pub const MAX_TRANSCRIPT_BATCH_BYTES: usize = 1 << 30;

/// The maximum size of a part of a key, in bytes. A project is the path of a folder, and the SDK's stores take long ones.
const MAX_PART_BYTES: usize = 64 << 10;

/// The key under which a transcript is stored: a project, a session and a subpath.
///
/// Each part is any text of up to 64 KiB. Two keys are the same if all three parts are equal,
/// byte for byte, whatever separators they contain.
///
/// ```
/// use talktree::TranscriptKey;
///
/// let main = TranscriptKey::new("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10");
/// let helper = main.clone().subpath("subagents/agent-7f3a");
/// assert!(main.is_main() && !helper.is_main());
/// assert_eq!(helper.subpath(""), main);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct TranscriptKey {
    /// The project: the SDK makes it from the path of a folder.
    pub project: String,
    /// The id of the session: the SDK's are UUIDs.
    pub session: String,
    /// Empty for the main transcript, otherwise such as `subagents/agent-7f3a`.
    pub subpath: String,
}

impl TranscriptKey {
    /// Returns the key of a session's main transcript.
    #[must_use]
    pub fn new(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into(), subpath: String::new() }
    }

    /// Returns the key with this subpath; empty means the main transcript.
    #[must_use]
    pub fn subpath(mut self, subpath: impl Into<String>) -> Self {
        self.subpath = subpath.into();
        self
    }

    /// Returns whether this is the main transcript of its session.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.subpath.is_empty()
    }

    /// Checks the lengths of the parts.
    pub(crate) fn check(&self) -> Result<()> {
        check_length("project", &self.project, MAX_PART_BYTES)?;
        check_length("transcript's session", &self.session, MAX_PART_BYTES)?;
        check_length("subpath", &self.subpath, MAX_PART_BYTES)
    }

    /// Checks the size of entries that are to be appended; `max_bytes` is the limit of one.
    pub(crate) fn check_size(entries: &[Json], max_bytes: usize) -> Result<()> {
        check_sizes(entries.iter().map(|entry| entry.as_str().len()), max_bytes)
    }
}

fn check_sizes(sizes: impl Iterator<Item = usize>, max_bytes: usize) -> Result<()> {
    let mut total = 0_usize;
    for bytes in sizes {
        check_size("a transcript entry", bytes, max_bytes)?;
        total = total.saturating_add(bytes);
    }
    check_size("a batch of transcript entries", total, MAX_TRANSCRIPT_BATCH_BYTES)
}

/// Checks the owner that an append names.
///
/// # Errors
/// [`Error::InvalidValue`] if it is empty or too long, or if the transcript has another one.
pub(crate) fn check_owner(given: Option<&str>, stored: Option<&str>) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    crate::id::check_name("owner", given)?;
    match stored {
        Some(stored) if stored != given => Err(Error::InvalidValue {
            what: "owner",
            given: crate::id::shorten(given).into_owned(),
            why: "the transcript has another owner".to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_may_have_a_gibibyte() {
        let of = |sizes: &[usize]| check_sizes(sizes.iter().copied(), 1 << 29);
        assert!(of(&[1 << 29, 1 << 29]).is_ok());
        assert_eq!(
            of(&[1 << 29, 1 << 29, 1]).unwrap_err().to_string(),
            "a batch of transcript entries is 1073741825 bytes, over the store's limit of 1073741824"
        );
        assert!(matches!(
            of(&[(1 << 29) + 1]),
            Err(Error::TooLarge { what: "a transcript entry", .. })
        ));
    }

    #[test]
    fn a_part_of_a_key_has_a_limit() {
        let long = "x".repeat(MAX_PART_BYTES);
        assert!(TranscriptKey::new(&long, &long).subpath(&long).check().is_ok());
        for key in [
            TranscriptKey::new(format!("{long}x"), ""),
            TranscriptKey::new("", format!("{long}x")),
            TranscriptKey::new("", "").subpath(format!("{long}x")),
        ] {
            assert!(matches!(key.check(), Err(Error::InvalidValue { .. })));
        }
    }
}
