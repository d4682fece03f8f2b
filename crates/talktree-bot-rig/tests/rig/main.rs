//! The fake Telegram and the scripted model.

mod client;
mod model;
mod telegram;
