//! A fake Telegram, a scripted model, and a load run that kills the bot between them.
//!
//! [`Telegram`] plays the server of Telegram's Bot API and the people who write to the bot. [`Model`] plays a provider of
//! models: it answers requests of OpenAI's chat completions API and Anthropic's messages API, and notes each request that a
//! provider would refuse. Both run on loopback, record every call, and fail on purpose. [`load`] starts a real bot between
//! the two.
//!
//! Each text of a person has a [`Mark`] with its chat and turn. The model repeats the mark that it answers. So a text in the
//! wrong chat, a second answer and a missing answer are all found at the end.

mod chance;
mod http;
mod limit;
mod lock;
mod mark;
#[path = "../../talktree-torture/src/spread.rs"]
mod spread;
mod telegram;

pub mod load;
pub mod model;
pub mod process;

pub use limit::Limit;
pub use mark::{Mark, marks_in};
pub use model::Model;
pub use process::{Api, Process, Settings};
pub use telegram::{Call, Fault, Faults, Limits, Options, Outcome, Saying, Sent, Shown, Telegram};

/// The result of a run; an error means that the run itself failed.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
