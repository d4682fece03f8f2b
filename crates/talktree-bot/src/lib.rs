//! A chat bot on talktree: one core, with a front end for the terminal and one for Telegram.
//!
//! The [`core`] opens the session of a chat and asks the [model](models) for the answer; [`commands`] such as `/retry` work on
//! the conversation. A front end receives messages and shows answers. See `docs/bot.md`.

pub mod commands;
pub mod config;
pub mod core;
pub mod error;
pub mod files;
pub mod health;
mod line;
mod lock;
pub mod metrics;
pub mod models;
pub mod telegram;
pub mod terminal;
mod wrap;

pub use commands::{Command, Done, Step};
pub use config::Config;
pub use core::{Bot, Place};
pub use error::{Error, Result};
pub use models::{Flow, Model};
