//! The question that an answer is to.

use std::collections::HashSet;

use super::{Message, NewestFirst, Part, Role};
use crate::id::MessageId;

/// A question above a place.
pub(crate) struct Question {
    pub(crate) id: MessageId,
    /// Whether a model has answered it since.
    pub(crate) is_answered: bool,
}

/// The search for a question, newest message first.
///
/// A user message between a call and its result is inside a tool round. Whether it is shows only above it, where the call
/// is, or is not: some results have none. So such a message is kept until then.
#[derive(Default)]
pub(crate) struct WayUp {
    is_answered: bool,
    /// The ids of results whose call was not seen so far.
    results: HashSet<String>,
    /// User messages above such results, nearest first, each with the ids.
    kept: Vec<(Question, HashSet<String>)>,
    /// How many messages were seen since the first was kept.
    since: usize,
}

impl WayUp {
    /// Takes the next older message, and returns the question if it is found.
    pub(crate) fn take(&mut self, message: Message) -> Option<Question> {
        for tool in message.parts.iter().rev().filter_map(Part::tool) {
            if tool.is_call() {
                self.results.remove(&tool.call_id);
                self.kept.retain(|(_, results)| !results.contains(&tool.call_id));
            } else {
                self.results.insert(tool.call_id.clone());
            }
        }
        if asks(&message) {
            let question = Question { id: message.id, is_answered: self.is_answered };
            if self.results.is_empty() {
                return Some(question);
            }
            self.kept.push((question, self.results.clone()));
        }
        self.is_answered |= message.role == Role::Assistant;
        self.since = if self.kept.is_empty() { 0 } else { self.since + 1 };
        // No call so far above belongs to a result.
        if self.since > NewestFirst::REACH { self.nearest() } else { None }
    }

    pub(crate) fn nearest(&mut self) -> Option<Question> {
        self.kept.drain(..).next().map(|(question, _)| question)
    }
}

/// Returns whether a user says something in the message, beside results of tools.
pub(crate) fn asks(message: &Message) -> bool {
    message.role == Role::User
        && !message.is_hidden
        && message.parts.iter().any(|part| part.tool().is_none())
}
