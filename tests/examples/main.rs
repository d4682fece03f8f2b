//! The examples, which cargo builds with the tests.

mod assistant;
mod background;
#[path = "../common/mod.rs"]
mod common;
mod long_chat;
