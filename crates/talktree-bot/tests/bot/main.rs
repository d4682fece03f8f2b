//! The bot.

mod background;
mod commands;
mod common;
mod config;
mod erasure;
mod log;
mod models;
mod odd;
mod process;
mod quotes;
mod replies;
mod sessions;
mod size;
#[path = "../../../../tests/common/tables.rs"]
mod tables;
mod telegram;
mod terminal;
