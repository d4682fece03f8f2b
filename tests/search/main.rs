//! Search.

mod cjk;
#[path = "../common/mod.rs"]
mod common;
mod embeddings;
mod exact;
mod folding;
mod forms;
mod identifiers;
mod ladder;
mod model;
mod rebuild;
mod results;
mod signs;
#[path = "../common/tables.rs"]
mod tables;
