//! A long conversation for the examples: its script, and a summary of what a model sees of it.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each example uses a part of it")]

mod script;
mod window;

pub use script::{COUNT, QUESTION, is_complete, turn};
pub use window::{Window, print_compactions, spaced};
