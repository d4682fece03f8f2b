//! Context blocks, documents, and the tools of a model.

mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod document_keys;
mod forgery;
mod model;
mod processes;
mod texts;
mod tool_rounds;
mod tools;
