//! The words that a handle remembers: they need not be looked up in the vocabulary.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::super::error::BackendResult;
use super::recorder::Recorder;
use crate::search::word::WordHasher;

/// How many words a handle remembers: so many sets, each of so many words. Together they take a quarter of a MiB: to look up
/// words in a table larger than the cache of a core costs more than to hash them.
const SETS: usize = 1 << 12;
const WORDS_PER_SET: usize = 8;
/// A word that is used moves up by one place if its place is this or a later one. A new word takes the last place.
const FIRST_MOVING_PLACE: usize = WORDS_PER_SET / 2;
/// How many sets serve for one message.
const SETS_FOR_ONE: usize = 1 << 6;
/// Words with the languages in which they are recorded. The first bits of a word's hash tell its set, and its last 32 bits tell
/// it from others there: about one of 500 million new words is taken for a known one, and is not recorded. A word among the
/// last places of its set moves up by one whenever it is used, and a full set forgets the last one: so the frequent ones stay.
#[derive(Default)]
struct Remembered {
    /// The hashes and the languages of each set. There is a power of two of them, and none until the first word.
    sets: Vec<[[u32; WORDS_PER_SET]; 2]>,
    count: usize,
}

impl Remembered {
    fn with_sets(count: usize) -> Self {
        // Zeros take no memory until they are written.
        Self { sets: vec![[[0; WORDS_PER_SET]; 2]; count], count: 0 }
    }

    /// Returns whether a word is remembered with these languages, and remembers it.
    fn has_or_adds(&mut self, hash: u64, languages: u32) -> bool {
        if self.sets.is_empty() {
            *self = Self::with_sets(SETS);
        }
        let number = hash >> (u64::BITS - self.sets.len().ilog2());
        let [words, known] = &mut self.sets[number as usize];
        // 0 is a free place.
        let word = (hash as u32).max(1);
        let Some(place) = place_of(word, words) else {
            let place = place_of(0, words);
            self.count += usize::from(place.is_some());
            let place = place.unwrap_or(WORDS_PER_SET - 1);
            (words[place], known[place]) = (word, languages);
            return false;
        };
        let is_known = known[place] & languages == languages;
        known[place] |= languages;
        if place >= FIRST_MOVING_PLACE {
            words.swap(place - 1, place);
            known.swap(place - 1, place);
        }
        is_known
    }
}

/// Returns the first place of a word in a set. All places are compared, without branches: an early end would mostly be
/// mispredicted.
fn place_of(word: u32, words: &[u32; WORDS_PER_SET]) -> Option<usize> {
    let hits = words.iter().enumerate().map(|(place, it)| u32::from(*it == word) << place);
    let hits = hits.fold(0, |all, hit| all | hit);
    (hits != 0).then_some(hits.trailing_zeros() as usize)
}

/// The words that a handle knows to be recorded.
#[derive(Default)]
pub(in super::super) struct KnownWords {
    hasher: WordHasher,
    words: Mutex<Recorded>,
}

impl KnownWords {
    /// Returns one that is large enough for the words of one message.
    pub(super) fn of_one_message() -> Self {
        let words = Remembered::with_sets(SETS_FOR_ONE);
        Self { words: Mutex::new(Recorded { words, ..Recorded::default() }), ..Self::default() }
    }

    /// Begins to record words in a transaction.
    pub(in super::super) fn recorder<'a>(
        &'a self,
        conn: &'a Connection,
    ) -> BackendResult<Recorder<'a>> {
        let epoch = super::epoch(conn)?;
        let mut known = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken: if the transaction fails, all are forgotten, with those that it did not record.
        let mut known = std::mem::take(&mut *known);
        if known.epoch != epoch {
            known = Recorded { epoch, words: Remembered::default() };
        }
        Ok(Recorder::new(conn, &self.hasher, known))
    }

    /// Remembers what was recorded, after the commit.
    pub(in super::super) fn remember(&self, recorded: Recorded) {
        let mut known = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have recorded others meanwhile.
        if known.epoch != recorded.epoch || known.words.count < recorded.words.count {
            *known = recorded;
        }
    }
}

/// The words that are recorded once a transaction is committed.
#[derive(Default)]
pub(in super::super) struct Recorded {
    epoch: String,
    words: Remembered,
}

impl Recorded {
    /// Returns whether a word is remembered with these languages, and remembers it.
    pub(super) fn has_or_adds(&mut self, hash: u64, languages: u32) -> bool {
        self.words.has_or_adds(hash, languages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::word::Word;

    #[test]
    fn the_words_that_are_remembered_are_limited() {
        let hasher = WordHasher::default();
        let mut remembered = Remembered::default();
        let mut is_known =
            |n: usize| remembered.has_or_adds(hasher.hash(Word::new(&format!("w{n}"))), 0);
        let max = SETS * WORDS_PER_SET;
        assert!((0..3 * max).all(|n| !is_known(n)));
        assert!(is_known(3 * max - 1));
        let known = (0..3 * max).filter(|n| is_known(*n)).count();
        assert!((max / 2..=max).contains(&known), "{known}");
        assert_eq!(remembered.sets.len(), SETS);
        assert!((max - SETS / 8..=max).contains(&remembered.count), "{}", remembered.count);
        assert_eq!(size_of_val(&remembered.sets[..]), 1 << 18);
    }

    #[test]
    fn frequent_words_are_not_forgotten() {
        let mut remembered = Remembered::default();
        for word in 1..=WORDS_PER_SET as u64 {
            assert!(!remembered.has_or_adds(word, 1));
        }
        assert!(remembered.has_or_adds(5, 0) && !remembered.has_or_adds(5, 2));
        for rare in 100..200 {
            assert!(!remembered.has_or_adds(rare, 0));
            assert!(remembered.has_or_adds(5, 3) && remembered.has_or_adds(1, 1));
        }
        assert!(!remembered.has_or_adds(100, 0));
    }
}
