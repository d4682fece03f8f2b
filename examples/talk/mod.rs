//! A long conversation to play with: what is said in it, and how a view of it is told.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each example uses a part of it")]

mod script;
mod window;

pub use script::{COUNT, QUESTION, are_all_there, turn};
pub use window::{Window, print_compactions, spaced};
