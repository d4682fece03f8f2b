//! Erasures.

mod bytes;
#[path = "../common/mod.rs"]
mod common;
mod names;
mod random;
