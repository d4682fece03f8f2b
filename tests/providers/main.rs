//! Requests to the providers of models, and their answers.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/expected.rs"]
mod expected;
#[path = "../common/histories.rs"]
mod histories;
mod requests;
mod tool_rounds;
mod views;
mod views_random;
