//! The offline model: it answers from memory, without a network.

use talktree::{Extract, Message, Usage, estimate_tokens};
use talktree_offline::{Place, answer, hello};

use super::{Flow, Model, Turn};
use crate::core::MEMORY;
use crate::error::{Error, Result};
use crate::files::KNOWLEDGE;

/// The model without a network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Model for Offline {
    fn name(&self) -> &str {
        "offline"
    }

    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        let Turn { chat, sessions } = turn;
        let question = chat.question()?.map(|id| chat.message(&id)).transpose()?;
        let place = Place { chat, sessions, memory: MEMORY, knowledge: KNOWLEDGE };
        let text = match question.flatten() {
            Some(question) => answer(place, &question)?,
            None => hello(None),
        };
        if on_text(&text) == Flow::Stop {
            return Err(Error::Stopped);
        }
        let (model, output) = (Some(self.name().to_owned()), estimate_tokens(&text));
        Ok(Message::assistant(text).with_usage(&Usage { model, output, ..Usage::default() }))
    }

    fn summarize(&self, prompt: &str) -> Result<String> {
        Ok(Extract.summary(prompt))
    }
}
