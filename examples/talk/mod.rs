//! A long conversation to play with: what is said in it, and how a view of it is told.
#![allow(dead_code, unreachable_pub, reason = "each example uses a part of it")]

mod script;
mod window;

pub use script::{COUNT, QUESTION, turn};
pub use window::{Window, laid, spaced};
