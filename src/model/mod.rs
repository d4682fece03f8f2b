//! What a model's provider is given, and what comes back.
//!
//! A history is a list of messages as people and programs stored them: calls of tools whose results
//! lie under a summary, results without a call, two users in a row, an image from another program.
//! Providers refuse most of that. [`sanitize()`] puts the pairs of calls and results in order,
//! [`truncate()`] cuts what is old and long, and [`to_anthropic`], [`to_openai_chat`] and
//! [`to_openai_responses`] write what each provider takes; [`from_anthropic`] and the others read
//! its response into a message. Stored messages never change.
//!
//! All three go through the same *turns*: what a model says and calls is held together with the
//! results, and what others say meanwhile comes behind. [`validate_for`] knows nothing of that: it
//! holds any request to the provider's published rules.
//!
//! Invariant: what is converted breaks no rule that [`validate_for`] knows, whatever was stored.
//!
//! ```
//! use serde_json::json;
//! use talktree::model::{Provider, TruncateOptions, sanitize, to_anthropic, truncate, validate_for};
//! use talktree::{Message, Part, Role, Store};
//!
//! let chat = Store::open_in_memory()?.session("s")?;
//! chat.append(Message::user("Is it warm in Jena?"))?;
//! let call = Part::tool_call("weather", "call.1", json!({"city": "Jena"}));
//! chat.append(Message::new(Role::Assistant, vec![call]))?; // and then the program was stopped
//! chat.append(Message::user("Well?"))?;
//!
//! let history = chat.history()?;
//! let view = sanitize(&history);
//! let view = truncate(&view, &TruncateOptions::default());
//! let request = to_anthropic(&view);
//! assert!(validate_for(Provider::Anthropic, &request).is_empty());
//! assert_eq!(request["messages"][2]["content"][0]["type"], "tool_result");
//! # Ok::<(), talktree::Error>(())
//! ```

mod answer;
mod anthropic;
mod call_id;
mod content;
mod openai_chat;
mod openai_responses;
mod sanitize;
mod summary;
#[cfg(test)]
mod tests;
mod truncate;
mod turns;
mod validate;

pub use anthropic::{from_anthropic, to_anthropic};
pub(crate) use openai_chat::Chat;
pub use openai_chat::{from_openai_chat, to_openai_chat};
pub use openai_responses::{from_openai_responses, to_openai_responses};
pub use sanitize::sanitize;
pub use truncate::{TruncateOptions, truncate};
pub use validate::{Problem, Provider, validate_for};

/// What is said first where a provider wants a user to begin and nobody did.
const OPENING: &str = "[The conversation goes on from here.]";
