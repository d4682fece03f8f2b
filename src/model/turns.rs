//! A conversation as turns: of the model, with its calls and their results, and of the others.
//!
//! Providers require that a tool call is directly followed by its result. Stored conversations are
//! less strict: calls may be spread over several messages, and a result may be in its call's
//! message, in any later one, or missing. So a model's turn is held back until the next one begins
//! and collects the results until then. What others say while calls wait comes after the turn. A
//! call without a result gets one that says so. A result that no call of the open turn waits for
//! becomes a user's text.
//!
//! Invariant: no more is held than the open turn and what others said since it began.

use crate::message::{
    File, Json, Message, OldestFirst, Pairing, Part, Reasoning, Role, Side, Tool,
};

use super::content::{Content, Outcome, joined, mention, outcome, read};
use super::summary::shown;

/// The result of a call that has none when its turn ends. It may come later.
const NO_RESULT: &str = "(no result yet)";

#[derive(Debug)]
pub(super) enum Turn {
    System { is_developer: bool, text: String },
    User(Vec<Content>),
    Model(Model),
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) said: Vec<Said>,
    pub(super) calls: Vec<Call>,
}

impl Model {
    /// Returns the texts, joined by line breaks.
    pub(super) fn text(&self) -> String {
        let texts = self.said.iter().filter_map(|said| match said {
            Said::Text(text) => Some(text.as_str()),
            Said::Reasoning(_) | Said::Redacted(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// One thing the model says.
#[derive(Debug)]
pub(super) enum Said {
    Text(String),
    Reasoning(Reasoning),
    /// Encrypted reasoning, which only its provider can read.
    Redacted(String),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Json,
    result: Option<Outcome>,
}

impl Call {
    /// Returns the outcome of the call, or a text that says there is none.
    pub(super) fn outcome(&self) -> Outcome {
        self.result.clone().unwrap_or_else(|| Outcome {
            content: vec![Content::Text(NO_RESULT.to_owned())],
            is_error: false,
        })
    }
}

/// Turns, built message by message.
#[derive(Debug, Default)]
pub(super) struct Turns {
    done: Vec<Turn>,
    model: Model,
    /// The calls of the open turn, by their index in `model.calls`.
    pairs: OldestFirst<usize>,
    /// What others said while calls waited.
    behind: Vec<Turn>,
    /// Whether a next call would belong to the same step as the newest one.
    in_step: bool,
    /// How many messages were taken.
    taken: usize,
}

impl Turns {
    /// Returns the turns of the messages that are not hidden.
    pub(super) fn of(messages: &[Message]) -> Vec<Turn> {
        let mut turns = Self::default();
        for message in messages.iter().filter(|message| !message.is_hidden) {
            turns.take(&shown(message));
        }
        turns.finish()
    }

    pub(super) fn take(&mut self, message: &Message) {
        self.in_step = false;
        self.taken += 1;
        let is_model = message.role == Role::Assistant;
        let mut content = Vec::new();
        for part in &message.parts {
            match read(part).as_ref() {
                Part::Text(text) if is_blank(&text.text) => {}
                Part::Text(text) if is_model => self.say(Said::Text(text.text.clone())),
                Part::Text(text) => content.push(Content::Text(text.text.clone())),
                // No provider accepts a file from the model's side.
                Part::File(file) if is_model => self.say(Said::Text(mention(file))),
                Part::File(file) => content.push(Content::File(File::clone(file))),
                Part::Reasoning(reasoning) if is_model => {
                    self.say(Said::Reasoning(reasoning.clone()));
                }
                Part::Tool(tool) => self.take_tool(tool),
                Part::Other(json) if is_model => self.take_other(json),
                Part::Reasoning(_) | Part::Other(_) => {}
            }
        }
        if is_model {
            // Without calls, each message is a turn.
            if self.model.calls.is_empty() {
                self.end();
            }
        } else if !content.is_empty() {
            self.others_say(match &message.role {
                Role::System => Turn::System { is_developer: false, text: joined(&content) },
                Role::Other(role) if &**role == "developer" => {
                    Turn::System { is_developer: true, text: joined(&content) }
                }
                _ => Turn::User(content),
            });
        }
    }

    /// Returns the turns that have ended since.
    pub(super) fn ended(&mut self) -> Vec<Turn> {
        std::mem::take(&mut self.done)
    }

    /// Returns the turns that have ended since, and the open one.
    pub(super) fn finish(mut self) -> Vec<Turn> {
        self.end();
        self.done
    }

    fn say(&mut self, said: Said) {
        // Text after a result, or after someone else spoke, begins another turn.
        if !self.behind.is_empty() || self.model.calls.iter().any(|call| call.result.is_some()) {
            self.end();
        }
        self.model.said.push(said);
    }

    fn others_say(&mut self, turn: Turn) {
        if self.awaits() {
            self.behind.push(turn);
        } else {
            self.end();
            self.done.push(turn);
        }
    }

    fn take_tool(&mut self, tool: &Tool) {
        if let Side::Call(input) | Side::Both(input) = Side::of(tool) {
            // A call that is made while others wait belongs to the same turn.
            let belongs = self.model.calls.is_empty() || self.in_step || self.awaits();
            if !self.behind.is_empty() || !belongs {
                self.end();
            }
            self.in_step = true;
            self.pairs.take(self.taken, tool, self.model.calls.len());
            self.model.calls.push(Call {
                id: tool.call_id.clone(),
                name: tool.name.clone(),
                input: input.clone(),
                result: outcome(tool),
            });
            return;
        }
        let Some(result) = outcome(tool) else { return };
        match self.pairs.take(self.taken, tool, self.model.calls.len()) {
            Pairing::Answers(call) => self.model.calls[call].result = Some(result),
            _ => {
                let text = joined(&result.content);
                let text = format!("Result of the tool {}: {text}", tool.name);
                self.others_say(Turn::User(vec![Content::Text(text)]));
            }
        }
    }

    fn take_other(&mut self, json: &Json) {
        if is_step_start(json) {
            self.in_step = false;
            return;
        }
        let part = json.value();
        if part["type"] == "redacted_thinking"
            && let Some(data) = part["data"].as_str().filter(|data| !data.is_empty())
        {
            self.say(Said::Redacted(data.to_owned()));
        }
    }

    fn awaits(&self) -> bool {
        self.pairs.is_waiting()
    }

    fn end(&mut self) {
        self.pairs.clear();
        let model = std::mem::take(&mut self.model);
        if !model.said.is_empty() || !model.calls.is_empty() {
            self.done.push(Turn::Model(model));
        }
        self.done.append(&mut self.behind);
        self.in_step = false;
    }
}

/// Returns whether the part only marks the start of another step.
pub(super) fn is_step_start(part: &Json) -> bool {
    part.value()["type"] == "step-start"
}

/// Returns whether providers would refuse the text as empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
