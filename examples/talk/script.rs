//! The script: a workshop takes one order per turn. Some orders wait for a price, which comes later.

use talktree::{Message, Result, Session};

/// How many turns there are.
pub const COUNT: usize = 5_000;
/// The question at the end; the answer is in the turn [`ANSWERED_IN`].
pub const QUESTION: &str = "Where is the spare key?";
const ANSWERED_IN: usize = 1_234;

const GOODS: [&str; 7] = [
    "brass hinges",
    "oak shelves",
    "door handles",
    "window frames",
    "table legs",
    "coat hooks",
    "picture frames",
];
const CUSTOMERS: [&str; 5] =
    ["Mrs Okafor", "the school", "Amsel & Sons", "the harbour café", "Mr Lind"];
const DAYS: [&str; 4] = ["Monday", "Wednesday", "Thursday", "Friday"];
const REMARKS: [&str; 3] = [
    "",
    " The wood is in the store room.",
    " It is the same as last time, so the drawing can be used again.",
];

/// One in this many orders waits for a price.
const WAITS_EVERY: usize = 20;
/// The price comes this many turns later.
const WAITS_FOR: usize = 12;

/// Returns the messages of a turn, counted from 1: the user's and the assistant's. The ids are always the same, so a
/// repeated append after an interruption is a no-op.
pub fn turn(number: usize) -> [Message; 2] {
    let goods = GOODS[number % GOODS.len()];
    let customer = CUSTOMERS[number % CUSTOMERS.len()];
    let (pieces, day) = (number % 11 + 2, DAYS[number % DAYS.len()]);
    let mut asked =
        format!("Order {number}: {pieces} {goods} for {customer}. Can that be done by {day}?");
    if number == ANSWERED_IN {
        asked.push_str(" The spare key hangs behind the blue clock, by the way.");
    }
    let mut answer = format!("Order {number} is noted: {pieces} {goods} for {customer}, by {day}.");
    answer.push_str(REMARKS[number % REMARKS.len()]);
    if number.is_multiple_of(WAITS_EVERY) {
        answer.push_str(&format!("\nOrder {number} waits for a price."));
    }
    if number % WAITS_EVERY == WAITS_FOR && number > WAITS_EVERY {
        answer.push_str(&format!("\nThe price for order {} has come.", number - WAITS_FOR));
    }
    [
        Message::user(asked).with_id(format!("order-{number}")),
        Message::assistant(answer).with_id(format!("answer-{number}")),
    ]
}

/// Returns whether all messages of the first `turns` turns are stored unchanged.
pub fn is_complete(chat: &Session, turns: usize) -> Result<bool> {
    let stored = chat.raw_history()?;
    let expected = (1..=turns).flat_map(turn);
    Ok(expected.map(|message| message.text()).eq(stored.iter().map(Message::text)))
}
