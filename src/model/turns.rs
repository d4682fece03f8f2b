//! A conversation as turns: what a model says and calls with what came of it, and what others say.
//!
//! Providers take a call of a tool only with its result right behind it, and a result only behind
//! its call. Stored conversations are freer: calls may stand in several messages, results in the
//! call's own message or in any later one, or nowhere. So what a model says is held back as a turn
//! until another begins, with the results that came meanwhile; what others say while results are
//! awaited is put behind them. A call without a result gets one that says so; a result without a
//! call, or that comes after the call's turn, is told as a user's words.
//!
//! Invariant: no more is held than the turn that is open and what others said since.

use crate::message::{File, Json, Message, Part, Reasoning, Role, Tool, input_of};

use super::content::{Content, Outcome, joined, mention, outcome, read};
use super::summary::told;

/// What stands for the result of a call that has none when its turn ends; it may come later.
const NO_RESULT: &str = "(no result yet)";

/// What one side says before the other does.
#[derive(Debug)]
pub(super) enum Turn {
    System { is_developer: bool, text: String },
    User(Vec<Content>),
    Model(Model),
}

/// What the model says and calls.
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
    /// Reasoning that only its provider can read.
    Redacted(String),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Json,
    result: Option<Outcome>,
    /// Which message it stands in.
    message: usize,
}

impl Call {
    /// Returns what came of the call, or that nothing did.
    pub(super) fn outcome(&self) -> Outcome {
        self.result.clone().unwrap_or_else(|| Outcome {
            content: vec![Content::Text(NO_RESULT.to_owned())],
            is_error: false,
        })
    }
}

/// Turns as they come about, message by message.
#[derive(Debug, Default)]
pub(super) struct Turns {
    done: Vec<Turn>,
    model: Model,
    /// What others said while results were awaited.
    behind: Vec<Turn>,
    /// Whether the newest call is of the same step as a call that came now would be.
    in_step: bool,
    /// How many messages were taken.
    taken: usize,
}

impl Turns {
    /// Returns the turns of messages; hidden are not for a model.
    pub(super) fn of(messages: &[Message]) -> Vec<Turn> {
        let mut turns = Self::default();
        for message in messages.iter().filter(|message| !message.is_hidden) {
            turns.take(&told(message));
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
                // No provider takes a file of the model's back.
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
            // Messages that call nothing do not belong together.
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
        // What is said after a result, or after someone else spoke, is said in a turn of its own.
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
        let result = outcome(tool);
        if let Some(input) = input_of(tool) {
            // A call made before others are answered belongs to them.
            let belongs = self.model.calls.is_empty() || self.in_step || self.awaits();
            if !self.behind.is_empty() || !belongs {
                self.end();
            }
            self.in_step = true;
            self.model.calls.push(Call {
                id: tool.call_id.clone(),
                name: tool.name.clone(),
                input: input.clone(),
                result,
                message: self.taken,
            });
            return;
        }
        let Some(result) = result else { return };
        match self.nearest(&tool.call_id) {
            Some(call) => call.result = Some(result),
            None => {
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

    /// Returns the call that a result answers, as [`sanitize`](super::sanitize()) pairs them: of those
    /// of one id that wait, the first of the newest message.
    fn nearest(&mut self, id: &str) -> Option<&mut Call> {
        let waits = |call: &Call| call.id == id && call.result.is_none();
        let calls = &mut self.model.calls;
        let newest = calls.iter().rposition(waits)?;
        let message = calls[newest].message;
        // The calls of one message stand together: those before it are not gone through.
        let before = calls[..newest].iter().rposition(|call| call.message != message);
        calls[before.map_or(0, |at| at + 1)..=newest].iter_mut().find(|call| waits(call))
    }

    fn awaits(&self) -> bool {
        self.model.calls.iter().any(|call| call.result.is_none())
    }

    fn end(&mut self) {
        let model = std::mem::take(&mut self.model);
        if !model.said.is_empty() || !model.calls.is_empty() {
            self.done.push(Turn::Model(model));
        }
        self.done.append(&mut self.behind);
        self.in_step = false;
    }
}

/// Returns whether the part only says that what follows is another step.
pub(super) fn is_step_start(part: &Json) -> bool {
    part.value()["type"] == "step-start"
}

/// Returns whether providers would call the text empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
