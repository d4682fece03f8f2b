//! What the people write.

use std::time::Instant;

use fastrand::Rng;

use super::Place;
use crate::model::script::{AT_LENGTH, LINES, LONG_LINES};
use crate::telegram::{Options, Saying, Sent, Telegram};

/// What was said in turn 3, to be found at the end.
pub(super) const FACT: &str = "my parrot is called Zanzibar";

/// Something that a person wrote.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) sent: Sent,
    pub(super) at: Instant,
    /// How many lines the answer has; 0 if nobody asked the bot.
    pub(super) lines: u32,
    /// When the first text of the answer was shown, and in which message.
    pub(super) first_text: Option<(Instant, i64)>,
    /// When the answer was complete.
    pub(super) done: Option<Instant>,
}

impl Turn {
    pub(super) fn is_open(&self) -> bool {
        self.lines > 0 && self.done.is_none()
    }
}

/// The people of a place, and what they wrote.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) place: Place,
    pub(super) turns: Vec<Turn>,
    /// When they write again.
    pub(super) due: Instant,
}

impl Talk {
    /// Writes something; in a group it may be for others.
    pub(super) fn say(&mut self, telegram: &Telegram, rng: &mut Rng) {
        let place = self.place;
        let turn = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        let is_aside = place.is_group() && turn > 0 && rng.u32(..5) == 0;
        let (words, lines) = match rng.u32(..100) {
            _ if turn == 3 => (format!("I must tell you: {FACT}."), LINES),
            _ if is_aside => ("Shall we have lunch?".to_owned(), 0),
            0..4 => ("Please remember this: I like kettles.".to_owned(), LINES),
            4..8 => ("Please search for river".to_owned(), LINES),
            8..10 => (format!("Tell me {AT_LENGTH}."), LONG_LINES),
            _ => ("What else is there to say?".to_owned(), LINES),
        };
        let name = if place.is_group() && lines > 0 {
            format!("@{} ", Options::default().bot_name)
        } else {
            String::new()
        };
        let text = format!("{name}{} {words}", place.mark(turn));
        let mut saying = Saying::new(place.chat(), &text);
        if place.is_group() {
            const NAMES: [&str; 3] = ["Ada", "Bo", "Cy"];
            let person = turn as usize % NAMES.len();
            let id = 1_000_000 + i64::from(place.number) * 3 + person as i64;
            saying = saying.from(id, NAMES[person]);
        }
        if let Some(topic) = place.topic() {
            saying = saying.topic(topic);
        }
        let at = Instant::now();
        let sent = telegram.say(&saying);
        self.turns.push(Turn { sent, at, lines, first_text: None, done: None });
    }
}
