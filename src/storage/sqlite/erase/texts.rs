//! The texts of an erasure, as hashes, and where bytes contain them.
//!
//! A text is stored as the hashes of all its sequences of [`LENGTH`] bytes, a shorter one as the hash of the whole. Its
//! words are stored too, because the search index contains words. The memory is bounded: if there are too many sequences,
//! only those are kept whose hash begins with enough zeros. That is an even sample of all texts.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use uuid::Uuid;

use crate::sql::{BackendResult, Bind, Connection};

/// How many bytes a sequence has.
pub(super) const LENGTH: usize = 16;
/// Shorter texts are not looked for: they occur by chance.
const SHORTEST: usize = 8;
/// How many hashes of a length are kept: 8 MiB of memory.
const MAX_HASHES: usize = 1 << 19;

/// A hasher for values that are hashes already.
#[derive(Debug, Default, Clone)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    /// Only hashes are hashed.
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The hashes of the sequences of one length.
#[derive(Debug, Default, Clone)]
struct OfLength {
    hashes: HashSet<u64, BuildHasherDefault<Itself>>,
    /// A hash is kept if these bits are zero.
    mask: u64,
}

/// What to look for.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    /// Random, so that no text can be made whose sequences have the hashes of others.
    keys: [u64; 2],
    by_length: BTreeMap<usize, OfLength>,
    pub(super) count: u64,
    pub(super) too_short: u64,
}

impl Default for Texts {
    fn default() -> Self {
        let random = RandomState::new();
        let keys = [random.hash_one(1), random.hash_one(2)];
        Self { keys, by_length: BTreeMap::new(), count: 0, too_short: 0 }
    }
}

impl Texts {
    /// Adds a text with its words.
    fn add(&mut self, text: &str) {
        // Ids that were made in one millisecond begin in the same way, so only the end is looked for.
        if Uuid::try_parse(text).is_ok_and(|id| id.get_version_num() == 7) {
            return self.add_name(&text[text.len() - LENGTH..]);
        }
        self.add_name(text);
        let is_in_word = |c: char| c.is_alphanumeric();
        for word in text.split(|c| !is_in_word(c)).filter(|word| word.len() >= SHORTEST) {
            self.add_sequences(word.to_lowercase().as_bytes());
        }
    }

    /// Adds a text that is in no search index.
    pub(super) fn add_name(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.count += 1;
        match text.len() >= SHORTEST {
            true => self.add_sequences(text.as_bytes()),
            false => self.too_short += 1,
        }
    }

    /// Adds the texts that a statement returns. A number is no text, and a damaged one may not be read.
    pub(super) fn add_rows(
        &mut self,
        conn: &Connection,
        sql: &'static str,
        values: impl Bind,
    ) -> BackendResult<()> {
        conn.each(sql, values, |row| {
            for value in (0..).map_while(|column| row.value(column).ok()) {
                if let Ok(text) = value.as_str() {
                    self.add(text);
                }
            }
            Ok(true)
        })
    }

    fn add_sequences(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(LENGTH);
        if length < SHORTEST {
            return;
        }
        let mut hashes = Vec::new();
        for sequence in bytes.windows(length) {
            // Sequences of one repeated byte, such as blanks, are in every file.
            if sequence.iter().any(|byte| *byte != sequence[0]) {
                hashes.push(self.hash(Sequence::of(sequence)));
            }
        }
        let of = self.by_length.entry(length).or_default();
        of.hashes.extend(hashes.into_iter().filter(|hash| hash & of.mask == 0));
        while of.hashes.len() > MAX_HASHES {
            // The highest bits: a table finds a hash by the lowest ones.
            of.mask = of.mask >> 1 | 1 << 63;
            of.hashes.retain(|hash| hash & of.mask == 0);
        }
    }

    pub(super) fn sequences(&self) -> u64 {
        self.by_length.values().map(|of| of.hashes.len() as u64).sum()
    }

    pub(super) fn is_sample(&self) -> bool {
        self.by_length.values().any(|of| of.mask != 0)
    }

    fn hash(&self, Sequence { value, length }: Sequence) -> u64 {
        let (low, high) = (value as u64, (value >> 64) as u64);
        let product =
            u128::from(low ^ self.keys[0]) * u128::from(high ^ self.keys[1] ^ length as u64);
        (product as u64) ^ ((product >> 64) as u64)
    }

    /// Calls `found` for each known sequence with where it starts, and returns what the next bytes of the same text continue.
    pub(super) fn find(
        &self,
        mut passed: Passed,
        bytes: &[u8],
        mut found: impl FnMut(Sequence, u64),
    ) -> Passed {
        for byte in bytes {
            passed.value = passed.value << 8 | u128::from(*byte);
            passed.count += 1;
            for (length, of) in &self.by_length {
                if passed.count < *length as u64 {
                    break;
                }
                let sequence = Sequence { value: passed.value, length: LENGTH }.last(*length);
                let hash = self.hash(sequence);
                if hash & of.mask == 0 && of.hashes.contains(&hash) {
                    found(sequence, passed.count - *length as u64);
                }
            }
        }
        passed
    }
}

/// Up to [`LENGTH`] bytes, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sequence {
    value: u128,
    pub(super) length: usize,
}

impl Sequence {
    /// Returns the sequence of some bytes, [`LENGTH`] at most.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        Self { value, length: bytes.len() }
    }

    pub(super) fn first(self, length: usize) -> Self {
        Self { value: self.value >> (8 * (self.length - length)), length }
    }

    pub(super) fn last(self, length: usize) -> Self {
        Self { value: self.value & (u128::MAX >> (8 * (LENGTH - length))), length }
    }
}

/// The bytes before the next piece of a text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Passed {
    value: u128,
    count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(texts: &Texts, bytes: &[u8]) -> Vec<u64> {
        let mut places = Vec::new();
        texts.find(Passed::default(), bytes, |_, at| places.push(at));
        places
    }

    #[test]
    fn a_part_of_a_text_is_found_where_it_is() {
        let mut texts = Texts::default();
        texts.add_name("The vault opens with 7-1-9-4.");
        assert_eq!(places(&texts, b"....opens with 7-1-9...."), [4]);
        assert_eq!(places(&texts, b"....opens with 7-1-...."), [0; 0]);
        assert_eq!((texts.count, texts.too_short), (1, 0));
    }

    #[test]
    fn a_sequence_over_two_pieces_is_found() {
        let mut texts = Texts::default();
        texts.add_name("0123456789abcdef");
        let mut places = Vec::new();
        let passed = texts.find(Passed::default(), b"xx0123456", |_, at| places.push(at));
        texts.find(passed, b"789abcdefxx", |_, at| places.push(at));
        assert_eq!(places, [2]);
    }

    #[test]
    fn a_short_text_is_found_as_a_whole_and_a_word_without_its_capitals() {
        let mut texts = Texts::default();
        texts.add_name("user:4711");
        texts.add("My Passphrase!");
        texts.add_name("no");
        assert_eq!(places(&texts, b"--user:4711--"), [2]);
        assert_eq!(places(&texts, b"\x04passphrase\x01"), [1]);
        assert_eq!(places(&texts, b"--user:471--"), [0; 0]);
        assert_eq!((texts.count, texts.too_short), (3, 1));
    }

    #[test]
    fn of_very_long_texts_a_sample_is_kept() {
        let mut texts = Texts::default();
        let long: Vec<String> = (0..200_000).map(|n| format!("{n:x}/")).collect();
        texts.add_name(&long.concat());
        assert!(texts.is_sample());
        assert!(texts.sequences() <= MAX_HASHES as u64 && texts.sequences() > 100_000);
        assert!(!places(&texts, long[1_000..1_100].concat().as_bytes()).is_empty());
    }
}
