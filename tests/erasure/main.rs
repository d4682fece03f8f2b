//! Erasures.

mod bytes;
#[path = "../common/mod.rs"]
mod common;
mod names;
mod random;
#[path = "../common/tables.rs"]
mod tables;
