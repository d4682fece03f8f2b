//! The messages: seeded text of invented words with the frequencies of a language.

use talktree::{Message, Part};

const SYLLABLES: [&str; 40] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
    "ta", "ve", "wi", "xo", "yu", "bran", "cor", "del", "fin", "gor", "hel", "lan", "mer", "nor",
    "pal", "ren", "sol", "tor", "vin", "wes", "ster", "ling", "ton", "ard", "ish",
];
const WORDS: f64 = 20_000.0;

/// In one message of 10 000.
pub(crate) const RARE: &str = "zyzzyva";
/// In one message of 100.
pub(crate) const CHINESE: &str = "故宫";
const CHINESE_SENTENCE: &str = "我们去故宫看看吧";

/// How long messages are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// 100 bytes on average: for large stores.
    Short,
    /// 350 bytes on average, a few ten times as long, every eighth with a tool call and its result.
    Chat,
}

/// Generates the same messages in every run.
pub(crate) struct Speaker {
    state: u64,
    count: u64,
    length: Length,
}

impl Speaker {
    pub(crate) fn new(seed: u64, length: Length) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, count: 0, length }
    }

    /// Returns a number from 0 to 1, without 1.
    pub(crate) fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.random() * end as f64) as usize
    }

    /// Returns this many words; the n-th most frequent word is 1/n as frequent as the first.
    pub(crate) fn words(&mut self, count: usize) -> String {
        let mut text = String::with_capacity(count * 7);
        for _ in 0..count {
            if !text.is_empty() {
                text.push(' ');
            }
            push_word(&mut text, WORDS.powf(self.random()) as usize);
        }
        text
    }

    /// Returns the next text.
    pub(crate) fn text(&mut self) -> String {
        self.count += 1;
        let roll = self.random();
        let count = match self.length {
            Length::Short => 6 + (roll * 16.0) as usize,
            Length::Chat => 10 + (roll.powi(4) * 200.0) as usize,
        };
        let mut text = self.words(count);
        if self.count.is_multiple_of(10_000) {
            text.push(' ');
            text.push_str(RARE);
        }
        if self.count.is_multiple_of(100) {
            text.push(' ');
            text.push_str(CHINESE_SENTENCE);
        }
        text
    }

    /// Returns the next message.
    pub(crate) fn message(&mut self) -> Message {
        let text = self.text();
        if self.count % 2 == 1 {
            return Message::user(text);
        }
        let message = Message::assistant(text);
        if self.length == Length::Short || !self.count.is_multiple_of(8) {
            return message;
        }
        let call = format!("call_{}", self.count);
        let (query, found) = (self.words(5), self.words(40));
        message
            .with_part(Part::tool_call("search", call.clone(), serde_json::json!({ "q": query })))
            .with_part(Part::tool_result("search", call, serde_json::json!({ "found": found })))
    }

    pub(crate) fn messages(&mut self, count: usize) -> Vec<Message> {
        (0..count).map(|_| self.message()).collect()
    }
}

fn push_word(text: &mut String, number: usize) {
    // Frequent words are short.
    let mut left = number;
    loop {
        text.push_str(SYLLABLES[left % SYLLABLES.len()]);
        left /= SYLLABLES.len();
        if left == 0 {
            break;
        }
    }
}

/// Returns the n-th most frequent word, from 0.
pub(crate) fn word(number: usize) -> String {
    let mut word = String::new();
    push_word(&mut word, number);
    word
}

/// Returns a word that about one message in five contains.
pub(crate) fn common_word() -> String {
    word(2)
}

/// Returns two words; about one message in a hundred contains both.
pub(crate) fn usual_words() -> String {
    format!("{} {}", word(12), word(30))
}
