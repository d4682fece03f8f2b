//! A word of a text. A short one is also an integer, so that it is compared and hashed in a few steps, whatever its case.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZero;
use std::ops::Range;

/// The length, in bytes, of the longest short word.
const SHORT: usize = 16;
/// The bit that lower-case ASCII letters have and capitals do not. Digits have it, too.
const LOWER: u128 = u128::from_ne_bytes([b' '; SHORT]);
/// The bit that no ASCII character has.
const NOT_ASCII: u128 = u128::from_ne_bytes([0x80; SHORT]);

/// A word as written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// The word as an integer, if it is short: 1 to 16 ASCII letters and digits. Those of two words are the same only if
    /// the words are, in lower case.
    pub(crate) short: Option<NonZero<u128>>,
}

impl<'a> Word<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self::at(text, 0..text.len())
    }

    /// Returns the word at a place of a text.
    pub(crate) fn at(text: &'a str, range: Range<usize>) -> Self {
        let start = range.start;
        let word = &text[range];
        let shift = SHORT.checked_sub(word.len()).filter(|shift| *shift < SHORT);
        let short = shift.map(|shift| {
            let bytes = match text.as_bytes().get(start..start + SHORT) {
                Some(bytes) => bytes.first_chunk().copied().unwrap_or_default(),
                None => {
                    // The text ends before.
                    let mut bytes = [0; SHORT];
                    bytes[..word.len()].copy_from_slice(word.as_bytes());
                    bytes
                }
            };
            u128::from_le_bytes(bytes) & u128::MAX >> (8 * shift)
        });
        let short = short.filter(|short| short & NOT_ASCII == 0);
        let short = short.and_then(|short| NonZero::new(short | LOWER));
        Self { text: word, short }
    }
}

/// Hashes short words for tables that nobody adds to.
#[derive(Default)]
pub(crate) struct ShortHasher(u64);

impl Hasher for ShortHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u128(u128::from(*byte)));
    }

    fn write_u128(&mut self, word: u128) {
        let [low, high] = [word as u64, (word >> 64) as u64];
        self.0 = folded(low ^ self.0 ^ 0x9E37_79B9_7F4A_7C15, high ^ 0xD1B5_4A32_D192_ED03);
    }
}

/// Hashes words by random keys, so that no text can be made whose words have the hashes of others.
pub(crate) struct WordHasher([u64; 3]);

impl Default for WordHasher {
    fn default() -> Self {
        let random = RandomState::new();
        Self([0_u64, 1, 2].map(|number| random.hash_one(number)))
    }
}

impl WordHasher {
    /// Returns the hash of a word. Capitals of ASCII count as lower case if the word is short.
    pub(crate) fn hash(&self, word: Word<'_>) -> u64 {
        let bytes = word.text.as_bytes();
        let state = match word.short {
            Some(short) => self.mix(0, short.get()),
            None => bytes.chunks(SHORT).fold(bytes.len() as u64, |state, chunk| {
                let mut bytes = [0; SHORT];
                bytes[..chunk.len()].copy_from_slice(chunk);
                self.mix(state, u128::from_le_bytes(bytes))
            }),
        };
        folded(state, self.0[2] | 1)
    }

    fn mix(&self, state: u64, value: u128) -> u64 {
        let [low, high] = [value as u64, (value >> 64) as u64];
        folded(low ^ self.0[0] ^ state, high ^ self.0[1])
    }
}

/// Returns the two halves of a product, combined: each bit depends on all bits of both.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn short_words_are_the_same_only_if_the_words_are() {
        let letters = "abcdabcdabcdabcd0";
        let mut seen = HashMap::new();
        for (start, len) in (1..=17).flat_map(|len| (0..=17 - len).map(move |start| (start, len))) {
            let word = Word::at(letters, start..start + len);
            assert_eq!(word.text, &letters[start..start + len]);
            match word.short {
                Some(short) => assert_eq!(*seen.entry(short).or_insert(word.text), word.text),
                None => assert_eq!(len, 17),
            }
            assert_eq!(Word::new(&word.text.to_uppercase()).short, word.short);
        }
        assert_eq!(Word::new("été").short.or(Word::new("").short), None);
    }

    #[test]
    fn words_have_hashes_of_their_own() {
        let hasher = WordHasher::default();
        let long = |n: usize| format!("{}{n}", "a-word-that-is-no-short-one".repeat(n % 3));
        let words = (0..10_000).map(|n| format!("w{n}")).chain((0..1_000).map(long));
        let mut hashes: Vec<_> = words
            .chain(["été", "Été"].map(str::to_owned))
            .map(|word| hasher.hash(Word::new(&word)))
            .collect();
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
        let word = Word::new("word");
        assert_eq!(hasher.hash(Word::new("wORD")), hasher.hash(word));
        assert_ne!(hasher.hash(word), WordHasher::default().hash(word));
    }
}
