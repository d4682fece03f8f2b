//! Messages whose text can be rebuilt from their first word and their length.
//!
//! The first word occurs once in all stores of a run, so a search for it finds one message.

use serde::{Deserialize, Serialize};
use talktree::Message;

/// The words that fill a text.
const WORDS: &[&str] = &[
    "river", "window", "Übung", "deploy", "green", "故宫", "number", "café", "branch", "winter",
    "일본", "question", "summary", "letter", "garden", "silver", "market", "answer", "paper",
    "mountain", "bridge", "engine", "yellow",
];

/// What a text is rebuilt from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextSpec {
    /// The first word; no other text contains it.
    pub(crate) word: String,
    /// How many words follow it.
    pub(crate) length: u32,
}

impl TextSpec {
    /// Returns the text.
    pub(crate) fn render(&self) -> String {
        let mut dice = fastrand::Rng::with_seed(seed_of(&self.word));
        let mut text = self.word.clone();
        for _ in 0..self.length {
            text.push(' ');
            text.push_str(WORDS[dice.usize(..WORDS.len())]);
        }
        text
    }
}

/// What a message is rebuilt from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageSpec {
    pub(crate) id: String,
    pub(crate) text: TextSpec,
}

impl MessageSpec {
    /// Returns a message whose id is its first word.
    pub(crate) fn new(word: String, length: u32) -> Self {
        Self { id: word.clone(), text: TextSpec { word, length } }
    }

    /// Returns the message to append.
    pub(crate) fn message(&self) -> Message {
        Message::user(self.text.render()).with_id(self.id.as_str())
    }
}

/// Returns a seed that depends on the whole text.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |seed, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rebuilt_the_same_and_begins_with_its_word() {
        let text = TextSpec { word: "w0g1k1".to_owned(), length: 40 };
        assert_eq!(text.render(), text.render());
        assert!(text.render().starts_with("w0g1k1 "));
        assert_ne!(text.render(), TextSpec { word: "w0g1k2".to_owned(), length: 40 }.render());
    }
}
