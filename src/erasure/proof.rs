//! The proof of an erasure: the result of a search for the erased texts.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::Result;

/// The result of a search for erased texts in the files of a store.
///
/// [`Erased::prove`](crate::Erased::prove) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ErasureProof {
    /// How many bytes were read, of the file, its log and its shared memory.
    pub bytes: u64,
    /// How many texts were erased.
    pub texts: u64,
    /// How many of them are shorter than eight bytes, and were not looked for.
    pub too_short: u64,
    /// How many different sequences of bytes were looked for.
    pub sequences: u64,
    /// Whether the texts were so long that only a sample of their sequences was looked for.
    pub is_sample: bool,
    /// How many of the sequences other stored content also contains, or all but a few bytes of them at the edge of a text.
    pub kept: u64,
    /// How many copies and summaries the erasure has left; their texts count as kept.
    pub left: u64,
    /// How many times a sequence was found that no stored content contains.
    pub found: u64,
    /// The first of these places, a hundred at most.
    pub occurrences: Vec<Occurrence>,
}

/// A place of an erased text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Occurrence {
    /// The file.
    pub path: PathBuf,
    /// Where the sequence begins, in bytes from the start of the file.
    pub offset: u64,
}

impl Occurrence {
    pub(crate) fn new(path: PathBuf, offset: u64) -> Self {
        Self { path, offset }
    }
}

/// Looks for erased texts in the files of a store.
pub(crate) trait ErasureProver: Send + Sync {
    fn scan(&self) -> Result<ErasureProof>;
}
