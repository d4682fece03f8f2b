//! Models: a model gets a conversation and returns the answer.
//!
//! [`offline`] needs no network; the others are a [`Client`] of a server.

pub mod offline;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use talktree::{Message, Session, SessionManager};
pub use talktree_client::{Client, Flow};

use crate::config::{Agent, Provider};
use crate::error::{Error, Result};

/// A conversation that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The conversation. The message at its head is to be answered.
    pub chat: &'a Session,
    /// All sessions.
    pub sessions: &'a SessionManager,
}

/// A model.
// quote: model
pub trait Model: Send + Sync + fmt::Debug {
    /// Returns the name of the model.
    fn name(&self) -> &str;

    /// Returns the answer to a conversation. It is not stored, and may call tools. `on_text` gets the whole text so far.
    ///
    /// # Errors
    /// [`Error::Model`] after all retries; [`Error::Stopped`] if `on_text` stops it.
    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message>;

    /// Returns the summary that a prompt asks for.
    ///
    /// # Errors
    /// [`Error::Model`] after all retries.
    fn summarize(&self, prompt: &str) -> Result<String>;
}
// quote end

// quote: client
impl Model for Client {
    fn name(&self) -> &str {
        self.model()
    }

    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        Ok(Client::answer(self, turn.chat, on_text)?)
    }

    fn summarize(&self, prompt: &str) -> Result<String> {
        Ok(self.complete(prompt)?)
    }
}
// quote end

/// Returns the model of a configuration.
///
/// # Errors
/// [`Error::Config`] if it needs a name or a key, and there is none.
pub fn of(agent: &Agent) -> Result<Arc<dyn Model>> {
    let name = agent.model.as_str();
    let has_own_url = !agent.base_url.is_empty();
    let (client, variable, needs_key) = match agent.provider {
        Provider::Offline => return Ok(Arc::new(offline::Offline)),
        _ if name.is_empty() => {
            let why = "[agent] model is empty; every provider but `offline` needs one";
            return Err(Error::Config(why.to_owned()));
        }
        Provider::Anthropic => (Client::anthropic(name), "ANTHROPIC_API_KEY", true),
        Provider::OpenAi => (Client::openai(name), "OPENAI_API_KEY", !has_own_url),
        Provider::Ollama => (Client::ollama(name), "OLLAMA_API_KEY", false),
    };
    let variable = match agent.api_key_env.as_str() {
        "" => variable,
        named => named,
    };
    let key = std::env::var(variable).unwrap_or_default();
    if key.is_empty() && (needs_key || !agent.api_key_env.is_empty()) {
        let why = format!("the variable {variable} with the key of the model is not set");
        return Err(Error::Config(why));
    }
    if key.contains(char::is_control) {
        return Err(Error::Config(format!("the variable {variable} has a line break in the key")));
    }
    let timeout = Duration::from_secs(agent.api_timeout);
    let mut client = client.key(key).timeout(timeout).max_tokens(agent.max_tokens);
    if has_own_url {
        client = client.base_url(&agent.base_url);
    }
    Ok(Arc::new(client))
}
