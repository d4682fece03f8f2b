//! Asks a model to answer a talktree conversation, and streams the answer.
//!
//! `talktree-model` builds requests and reads responses; it sends nothing. This crate sends the requests over HTTP, with
//! timeouts and retries. Its calls block.
//!
//! ```no_run
//! use talktree::{Message, Store};
//! use talktree_client::{Client, Flow};
//!
//! let model = Client::ollama("llama3.2");
//! let chat = Store::open("bot.db")?.session("s")?;
//! chat.append(Message::user("Name a colour"))?;
//! let answer = model.answer(&chat, &mut |text| {
//!     println!("{text}"); // all of it so far
//!     Flow::Continue
//! })?;
//! chat.append(answer)?;
//! # Ok::<(), talktree_client::Error>(())
//! ```

mod addresses;
mod client;
mod error;
mod http;

pub use client::Client;
pub use error::{Error, Result};

/// Whether to go on with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop.
    Stop,
}
