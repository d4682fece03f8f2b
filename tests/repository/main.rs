//! The code and the documents of this repository.

#[path = "../common/mod.rs"]
mod common;
mod documents;
mod layers;
mod statements;
#[path = "../common/tables.rs"]
mod tables;
