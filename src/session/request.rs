//! What a request to a model is made of: the session, or one of its paths.

use serde_json::Value;

use super::{Path, Session};
use crate::error::Result;
use crate::message::Message;
use crate::model::{Conversation, Provider};

impl Conversation for Session {
    fn prompt(&self) -> Result<String> {
        Self::prompt(self)
    }

    fn reminder(&self) -> Result<Option<String>> {
        Self::reminder(self)
    }

    fn history(&self) -> Result<Vec<Message>> {
        Self::history(self)
    }

    fn tools(&self, provider: Provider) -> Result<Value> {
        let tools = Self::tools(self);
        Ok(match provider {
            Provider::Anthropic => tools.anthropic(),
            Provider::OpenAiChat => tools.openai_chat(),
            Provider::OpenAiResponses => tools.openai_responses(),
            Provider::AiSdk => tools.mcp(),
        })
    }
}

/// With the prompt and the tools of the session.
impl Conversation for Path {
    fn prompt(&self) -> Result<String> {
        self.session.prompt()
    }

    fn reminder(&self) -> Result<Option<String>> {
        self.session.reminder()
    }

    fn history(&self) -> Result<Vec<Message>> {
        Self::history(self)
    }

    fn tools(&self, provider: Provider) -> Result<Value> {
        Conversation::tools(&self.session, provider)
    }
}
