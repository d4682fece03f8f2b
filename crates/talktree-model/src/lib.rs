//! Requests to model providers from talktree conversations, and their answers as messages.
//!
//! [`anthropic_request`], [`openai_chat_request`] and [`openai_responses_request`] make a whole request of a
//! [`Session`](talktree::Session) or of one of its paths; a [`Request`] has options. [`append_answer`] stores the response, and
//! [`stream()`] stores it while it arrives. Nothing is sent here: the program does that with its HTTP client, or with the crate
//! `talktree-client`.
//!
//! ```
//! use serde_json::json;
//! use talktree::{Message, Store};
//! use talktree_model::{anthropic_request, append_answer};
//!
//! let chat = Store::open_in_memory()?.session("s")?;
//! chat.append(Message::user("2 + 2?"))?;
//! let request = anthropic_request(&chat)?; // add the model, and send it
//! # let send = |_| json!({"content": [{"type": "text", "text": "4"}]});
//! let answer = append_answer(&chat, send(request))?;
//! assert_eq!(chat.history()?[1].text(), answer.text());
//! # Ok::<(), talktree::Error>(())
//! ```
//!
//! # Step by step
//!
//! A history is a list of messages as people and programs stored them: tool calls whose results a summary replaced, results
//! without a call, two user messages in a row, an image from another program. Providers refuse most of that. [`sanitize()`]
//! completes the pairs of calls and results, [`truncate()`] shortens old messages, [`name_authors`] names who wrote, and
//! [`to_anthropic`], [`to_openai_chat`] and [`to_openai_responses`] convert the result to a provider's format, [`to_ai_sdk`] to
//! that of the Vercel AI SDK. A [`Request`] does all of this, and adds prompt and tools. Stored messages never change.
//!
//! The conversions for providers go through the same *turns*: a turn holds the model's text and calls together with the
//! results, and what others say in between comes after it. [`validate_for`] does not know about turns: it checks any request
//! against the provider's published rules.
//!
//! Invariant: a converted request breaks no rule that [`validate_for`] checks, whatever was stored.
//!
//! ```
//! use serde_json::json;
//! use talktree::{Message, Part, Role, Store};
//! use talktree_model::{Provider, TruncateOptions, sanitize, to_anthropic, truncate, validate_for};
//!
//! let chat = Store::open_in_memory()?.session("s")?;
//! chat.append(Message::user("Is it warm in Jena?"))?;
//! let call = Part::tool_call("weather", "call.1", json!({"city": "Jena"}));
//! chat.append(Message::new(Role::Assistant, vec![call]))?; // the program stopped here
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

mod ai_sdk;
mod answer;
mod anthropic;
mod authors;
mod call_id;
mod content;
mod export;
mod files;
mod input;
mod openai_chat;
mod openai_responses;
mod origin;
mod pairs;
mod reply;
mod request;
mod response;
mod sanitize;
mod seen;
mod stream;
mod summary;
mod truncate;
mod turns;
mod validate;

pub use ai_sdk::to_ai_sdk;
pub use anthropic::{from_anthropic, to_anthropic};
pub use authors::name_authors;
pub use export::export_openai;
pub use openai_chat::{from_openai_chat, to_openai_chat};
pub use openai_responses::{from_openai_responses, to_openai_responses};
pub use reply::{Reply, stream};
pub use request::{
    Conversation, Request, anthropic_request, openai_chat_request, openai_responses_request,
};
pub use response::{append_answer, from_response};
pub use sanitize::sanitize;
pub use seen::{Seen, SeenBlock, SeenMessage, SeenState, seen};
pub use stream::{MAX_STREAM_BYTES, Stream};
pub use truncate::{TruncateOptions, truncate};
pub use validate::{Problem, Provider, validate_for};

/// The first user message, for providers that want one when the conversation has none.
const OPENING: &str = "[The conversation goes on from here.]";

/// Runs the examples of the documents that send requests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/compaction.md")]
    mod compaction {}
    #[doc = include_str!("../../../docs/guide.md")]
    mod guide {}
}
