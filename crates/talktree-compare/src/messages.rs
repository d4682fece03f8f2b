//! The messages: the same random texts for every rival, 200 to 300 bytes each, from user and assistant in turns.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

const SEED: u64 = 0x7a1c_74ee;

/// In one message of 99, alternately of user and assistant.
pub(crate) const USUAL: &str = "lighthouse";
/// In one message of nine.
pub(crate) const COMMON: &str = "weather";

const SYLLABLES: [&str; 32] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
    "ta", "ve", "wi", "xo", "yu", "bran", "cor", "del", "fin", "gor", "hel", "lan", "mer", "nor",
    "pal", "ren", "sol",
];
/// The size of the vocabulary. The frequencies are those of a language: the n-th word is 1/n as frequent as the first.
const WORDS: f64 = 20_000.0;

/// One message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestMessage {
    /// A random UUID, for rivals whose caller chooses the ids.
    pub(crate) id: String,
    pub(crate) role: String,
    pub(crate) text: String,
}

/// Returns this many messages, the same in every run.
pub(crate) fn generate(count: usize) -> Vec<TestMessage> {
    let mut rng = Rng::with_seed(SEED);
    (0..count).map(|number| message(&mut rng, number)).collect()
}

fn message(rng: &mut Rng, number: usize) -> TestMessage {
    let length = rng.usize(200..=290);
    let mut text = String::with_capacity(length + 24);
    while text.len() < length {
        if !text.is_empty() {
            text.push(if rng.usize(..40) == 0 { '\n' } else { ' ' });
        }
        push_word(&mut text, WORDS.powf(rng.f64()) as usize);
    }
    for (word, every, at) in [(USUAL, 99, 37), (COMMON, 9, 4)] {
        if number % every == at {
            text.push(' ');
            text.push_str(word);
        }
    }
    let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
    TestMessage { id: uuid(rng), role: role.to_owned(), text }
}

/// Returns how many of the first messages contain the usual word.
pub(crate) fn usual_in(count: usize) -> usize {
    (count + 61) / 99
}

/// Returns how many of the first messages contain the common word.
pub(crate) fn common_in(count: usize) -> usize {
    (count + 4) / 9
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

fn uuid(rng: &mut Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62);
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_in_every_run_and_contain_the_words_as_often_as_computed() {
        let messages = generate(1_000);
        assert_eq!(
            messages.iter().map(|m| &m.text).collect::<Vec<_>>(),
            generate(1_000).iter().map(|m| &m.text).collect::<Vec<_>>()
        );
        for count in [0, 37, 38, 100, 1_000] {
            let holds =
                |word: &str| messages[..count].iter().filter(|m| m.text.contains(word)).count();
            assert_eq!((holds(USUAL), holds(COMMON)), (usual_in(count), common_in(count)));
        }
        assert!(messages.iter().all(|m| (200..=320).contains(&m.text.len())));
    }
}
