//! What is said: a workshop takes orders, one a turn. Some wait for a price, which comes later.

use talktree::{Message, Result, Session};

/// How many turns there are.
pub const COUNT: usize = 5_000;
/// What is asked at the end; it was said once, in the turn [`TOLD`].
pub const QUESTION: &str = "Where is the spare key?";
const TOLD: usize = 1_234;

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

/// Every so many orders one waits for a price.
const WAITS_EVERY: usize = 20;
/// So many turns later the price has come.
const WAITS_FOR: usize = 12;

/// Returns what is said in a turn, counted from 1: by the user, and by the assistant. The ids are the same
/// each time, so that what is appended again after an interruption is there once.
pub fn turn(number: usize) -> [Message; 2] {
    let goods = GOODS[number % GOODS.len()];
    let customer = CUSTOMERS[number % CUSTOMERS.len()];
    let (pieces, day) = (number % 11 + 2, DAYS[number % DAYS.len()]);
    let mut asked =
        format!("Order {number}: {pieces} {goods} for {customer}. Can that be done by {day}?");
    if number == TOLD {
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

/// Returns whether all that was said in so many turns is stored, word for word.
pub fn are_all_there(chat: &Session, turns: usize) -> Result<bool> {
    let stored = chat.raw_history()?;
    let said = (1..=turns).flat_map(turn);
    Ok(said.map(|message| message.text()).eq(stored.iter().map(Message::text)))
}
