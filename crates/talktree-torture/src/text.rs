//! Messages whose first word is their id. It occurs once in all stores of a run, so a search for it finds one message.

use talktree::Message;

/// The words that fill a text.
const WORDS: &[&str] = &[
    "river", "window", "Übung", "deploy", "green", "故宫", "number", "café", "branch", "winter",
    "일본", "question", "summary", "letter", "garden", "silver", "market", "answer", "paper",
    "mountain", "bridge", "engine", "yellow",
];

/// Returns a message with this id and so many words after it, which depend on it alone.
pub(crate) fn message(id: &str, words: u32) -> Message {
    let mut dice = fastrand::Rng::with_seed(seed_of(id));
    let mut text = id.to_owned();
    for _ in 0..words {
        text.push(' ');
        text.push_str(WORDS[dice.usize(..WORDS.len())]);
    }
    Message::user(text).with_id(id)
}

/// Returns a seed that depends on the whole text.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |seed, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
