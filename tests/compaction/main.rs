//! Compactions: by a policy, by hand, in the background.

mod background;
#[path = "../common/mod.rs"]
mod common;
mod counters;
mod failures;
mod model;
mod plans;
mod policies;
#[path = "../common/tables.rs"]
mod tables;
mod threads;
mod window;
