//! Requests and answers, as a program sees them.

#[path = "../../../../tests/common/mod.rs"]
mod common;
mod expected;
mod histories;

mod bot_core;
mod export;
mod random;
mod refusals;
mod requests;
mod seen;
mod shapes;
mod streams;
mod turns;
