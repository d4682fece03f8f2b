//! Texts with the word frequencies of real conversations, from a seed.
//!
//! A text is joined from runs of words of real messages, so words and pairs of words are as frequent as there. A session
//! takes its runs from a few chats, so its topic's words come together. One word in a hundred is new, because the
//! vocabulary of a store grows without end.

use std::path::Path;

use crate::random::Random;
use crate::{Result, data};

/// The longest text, in words; the mean is about 50.
const MAX_WORDS: usize = 90;
const MIN_WORDS: usize = 8;
/// The longest run of words from one place.
const MAX_RUN: usize = 16;
/// How many chats a session takes its words from.
const CHATS: usize = 4;
/// One word in this many is new.
const NEW_WORD: usize = 100;

pub(crate) struct Corpus {
    words: Vec<String>,
    /// The word numbers of each chat.
    chats: Vec<Vec<u32>>,
}

/// The topic of a session: the chats that its words are from.
pub(crate) struct Topic<'a> {
    corpus: &'a Corpus,
    chats: Vec<&'a [u32]>,
    random: Random,
}

impl Corpus {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut numbers = std::collections::HashMap::new();
        let (mut words, mut chats) = (Vec::new(), Vec::new());
        for chat in data::long_chats(folder)? {
            let mut chat_words = Vec::new();
            for word in chat.turns.iter().flat_map(|turn| turn.content.split_whitespace()) {
                let number = *numbers.entry(word.to_owned()).or_insert_with(|| {
                    words.push(word.to_owned());
                    words.len() as u32 - 1
                });
                chat_words.push(number);
            }
            if chat_words.len() > MAX_RUN {
                chats.push(chat_words);
            }
        }
        Ok(Self { words, chats })
    }

    pub(crate) fn topic(&self, session: usize) -> Topic<'_> {
        let mut random = Random::of(session as u64 + 1);
        let chats = (0..CHATS).map(|_| &*self.chats[random.below(self.chats.len())]).collect();
        Topic { corpus: self, chats, random }
    }
}

impl Topic<'_> {
    pub(crate) fn text(&mut self) -> String {
        let count = MIN_WORDS + self.random.below(MAX_WORDS - MIN_WORDS);
        let mut text = String::with_capacity(count * 7);
        let mut left = count;
        while left > 0 {
            let chat = self.chats[self.random.below(self.chats.len())];
            let run = (1 + self.random.below(MAX_RUN)).min(left);
            let start = self.random.below(chat.len() - run);
            for &number in &chat[start..start + run] {
                if !text.is_empty() {
                    text.push(' ');
                }
                if self.random.below(NEW_WORD) == 0 {
                    self.add_new_word(&mut text);
                } else {
                    text.push_str(&self.corpus.words[number as usize]);
                }
            }
            left -= run;
        }
        text
    }

    /// Adds a word like a name or an identifier: a few syllables. Some are drawn more than once.
    fn add_new_word(&mut self, text: &mut String) {
        const SYLLABLES: [&str; 16] = [
            "ka", "lo", "mi", "ter", "san", "vi", "do", "ra", "ben", "qui", "fo", "ne", "sta",
            "ul", "gro", "xi",
        ];
        for _ in 0..2 + self.random.below(4) {
            text.push_str(SYLLABLES[self.random.below(SYLLABLES.len())]);
        }
    }
}
