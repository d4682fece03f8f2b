//! A conversation as turns: of the model, with its calls and their results, and of the others.
//!
//! Providers require that a tool call is directly followed by its result. Stored conversations are
//! less strict: calls may be spread over several messages, and a result may be in its call's
//! message, in any later one, or missing. So a model's turn is held back until the next one begins
//! and collects the results until then. What others say while calls wait comes after the turn. A
//! call without a result gets one that says so. A result that no call of the open turn waits for
//! becomes a user's text.
//!
//! A turn keeps the order in which the model spoke and called. It ends when the model goes on after a result. In a message
//! that marks its steps it ends with the step, because a step is one answer.

use std::borrow::Cow;

use serde_json::Value;
use talktree::{Extra, File, Json, Message, Pairing, Part, Reasoning, Role, Text, Tool, ToolPairs};

use crate::content::{Content, Outcome, joined, outcome, read, steering_parts};
use crate::files::as_text;
use crate::origin::Origin;

/// The result of a call that has none when its turn ends. It may come later.
const NO_RESULT: &str = "(no result yet)";

#[derive(Debug)]
pub(super) enum Turn {
    System { is_developer: bool, text: String },
    User(Vec<Content>),
    Model(Model),
}

/// What the model wrote and called, in its order.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) pieces: Vec<Piece>,
    /// The container in which tools of the provider ran, and the time of its last message.
    pub(super) container: Option<Value>,
}

#[derive(Debug)]
pub(super) enum Piece {
    /// One text, in the parts in which the provider wrote it.
    Text(Vec<Text>),
    Reasoning(Reasoning),
    /// Encrypted reasoning, which only its provider can read.
    Redacted(String),
    /// A block or an item of one provider, kept as it is: a search that it ran itself.
    Native(Json),
    Call(Call),
}

impl Model {
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the texts, joined by line breaks.
    pub(super) fn text(&self) -> String {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(parts) => Some(parts.iter().map(|text| text.text.as_str()).collect()),
            _ => None,
        });
        texts.collect::<Vec<String>>().join("\n")
    }

    fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Returns whether the model only thought: then its answer comes in its next message.
    fn only_thinks(&self) -> bool {
        let thinks = |piece| matches!(piece, &Piece::Reasoning(_) | &Piece::Redacted(_));
        self.pieces.iter().all(thinks)
    }
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Json,
    /// What came with the call from its provider.
    pub(super) extra: Extra,
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
    /// The calls of the open turn, by their index in `model.pieces`.
    pairs: ToolPairs<usize>,
    /// The turns of others while calls waited.
    behind: Vec<Turn>,
    /// Whether a next call would belong to the same step as the newest one.
    in_step: bool,
    /// Whether the model has seen a result of the open turn, so that whatever it says next is another turn.
    is_answered: bool,
    /// How many messages were taken.
    taken: usize,
}

impl Turns {
    /// Returns the turns of the messages.
    pub(super) fn of<'m>(messages: impl IntoIterator<Item = Cow<'m, Message>>) -> Vec<Turn> {
        let mut turns = Self::default();
        for message in messages {
            turns.in_step = false;
            turns.taken += 1;
            match message.role {
                Role::Assistant => turns.take_model(&message),
                _ => turns.take_other_role(&message),
            }
        }
        turns.end();
        turns.done
    }

    fn take_model(&mut self, message: &Message) {
        let origin = Origin::of(message);
        let marks_steps = message.parts.iter().any(is_step_start);
        if self.model.has_calls() && !self.awaits() {
            self.is_answered = true;
        }
        // The extra fields of the text right before, and whether it was added.
        let mut before: Option<(Extra, bool)> = None;
        for part in &message.parts {
            let former = before.take();
            match read(part).as_ref() {
                Part::Text(text) => {
                    let goes_on =
                        former.is_some_and(|(extra, is_added)| is_added && text.continues(&extra));
                    let is_added = self.add_text(text, goes_on);
                    before = Some((text.extra.clone(), is_added));
                }
                // No provider accepts a file from the model's side.
                Part::File(file) => {
                    self.add_piece(Piece::Text(vec![Text {
                        text: as_text(file),
                        extra: Extra::new(),
                    }]));
                }
                Part::Reasoning(reasoning) => {
                    self.add_piece(match origin.redacted(reasoning) {
                        Some(data) => Piece::Redacted(data),
                        None => Piece::Reasoning(origin.signed(reasoning)),
                    });
                }
                Part::Tool(tool) => self.take_tool(tool, marks_steps),
                Part::Other(json) => self.take_other(json),
                _ => {}
            }
        }
        if let Some(container) = origin.container() {
            self.model.container = Some(container);
        }
        // Without calls, each message is a turn.
        if !self.model.has_calls() && !self.model.only_thinks() {
            self.end();
        }
    }

    fn take_other_role(&mut self, message: &Message) {
        let mut content = Vec::new();
        for part in &message.parts {
            match read(part).as_ref() {
                Part::Tool(tool) => self.take_tool(tool, false),
                part => content.extend(user_content(part)),
            }
        }
        if !content.is_empty() {
            self.add_other(match &message.role {
                Role::System => Turn::System { is_developer: false, text: joined(&content) },
                Role::Other(role) if &**role == "developer" => {
                    Turn::System { is_developer: true, text: joined(&content) }
                }
                _ => Turn::User(content),
            });
        }
    }

    fn add_piece(&mut self, piece: Piece) {
        // What the model says after a result, or after someone else spoke, begins another turn.
        if !self.behind.is_empty() || self.is_answered {
            self.end();
        }
        self.model.pieces.push(piece);
    }

    /// Adds a text, which may go on with the one before; returns whether there is a text to go on with.
    fn add_text(&mut self, text: &Text, goes_on: bool) -> bool {
        // No provider accepts a text that is blank.
        let is_blank = is_white_space(&text.text);
        match self.model.pieces.last_mut() {
            Some(Piece::Text(parts)) if goes_on => match parts.last_mut().filter(|_| is_blank) {
                Some(last) => last.text.push_str(&text.text),
                None => parts.push(text.clone()),
            },
            _ if is_blank => return false,
            _ => self.add_piece(Piece::Text(vec![text.clone()])),
        }
        true
    }

    fn add_other(&mut self, turn: Turn) {
        if self.awaits() {
            self.behind.push(turn);
        } else {
            self.end();
            self.done.push(turn);
        }
    }

    fn take_tool(&mut self, tool: &Tool, marks_steps: bool) {
        let here = self.model.pieces.len();
        match (tool.call_input(), tool.has_result()) {
            (None, false) => {}
            (Some(input), has_result) => {
                if has_result
                    && let Pairing::Answers(call) = self.pairs.take(self.taken, tool, here)
                {
                    return self.answer(call, outcome(tool));
                }
                self.call(tool, input, marks_steps);
            }
            (None, true) => match self.pairs.take(self.taken, tool, here) {
                Pairing::Answers(call) => self.answer(call, outcome(tool)),
                _ => {
                    let Some(result) = outcome(tool) else { return };
                    let text = joined(&result.content);
                    let text = format!("Result of the tool {}: {text}", tool.name);
                    self.add_other(Turn::User(vec![Content::Text(text)]));
                }
            },
        }
    }

    fn call(&mut self, tool: &Tool, input: &Json, marks_steps: bool) {
        // A call that is made while others wait belongs to the same turn.
        let belongs = !self.model.has_calls() || self.in_step || self.awaits();
        if !self.behind.is_empty() || !belongs {
            self.end();
        }
        self.in_step = true;
        let here = self.model.pieces.len();
        self.pairs.take(self.taken, tool, here);
        let result = outcome(tool);
        self.is_answered |= result.is_some() && !marks_steps;
        self.model.pieces.push(Piece::Call(Call {
            id: tool.call_id.clone(),
            name: tool.name.clone(),
            input: input.clone(),
            extra: tool.extra.clone(),
            result,
        }));
    }

    fn answer(&mut self, call: usize, result: Option<Outcome>) {
        if let Some(Piece::Call(call)) = self.model.pieces.get_mut(call) {
            call.result = result;
            self.is_answered = true;
        }
    }

    fn take_other(&mut self, json: &Json) {
        let part = json.value();
        match part["type"].as_str().unwrap_or_default() {
            "step-start" => {
                self.in_step = false;
                self.is_answered |= self.model.has_calls() && !self.awaits();
            }
            "steering-message" => {
                let content = steering(&part);
                if !content.is_empty() {
                    self.add_other(Turn::User(content));
                }
            }
            "redacted_thinking" => {
                if let Some(data) = part["data"].as_str().filter(|data| !data.is_empty()) {
                    self.add_piece(Piece::Redacted(data.to_owned()));
                }
            }
            kind if is_native(kind) => self.add_piece(Piece::Native(json.clone())),
            _ => {}
        }
    }

    fn awaits(&self) -> bool {
        self.pairs.is_waiting()
    }

    fn end(&mut self) {
        self.pairs.clear();
        let model = std::mem::take(&mut self.model);
        if !model.pieces.is_empty() || model.container.is_some() {
            self.done.push(Turn::Model(model));
        }
        self.done.append(&mut self.behind);
        self.in_step = false;
        self.is_answered = false;
    }
}

/// Returns whether a block or an item of this type belongs to one provider, which accepts it again.
fn is_native(kind: &str) -> bool {
    // Of Anthropic.
    kind.ends_with("_tool_result")
        || matches!(kind, "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction")
        // Of OpenAI.
        || kind.ends_with("_call")
        || kind == "mcp_list_tools"
}

fn user_content(part: &Part) -> Vec<Content> {
    match part {
        Part::Text(text) if is_white_space(&text.text) => Vec::new(),
        Part::Text(text) => vec![Content::Text(text.text.clone())],
        Part::File(file) => vec![Content::File(File::clone(file))],
        Part::Other(json) => {
            let part = json.value();
            if part["type"] == "steering-message" { steering(&part) } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// Returns what a user wrote while the model worked.
fn steering(part: &Value) -> Vec<Content> {
    steering_parts(part).flat_map(|part| user_content(&part)).collect()
}

/// Returns whether the part only marks the start of another step.
pub(super) fn is_step_start(part: &Part) -> bool {
    matches!(part, Part::Other(json) if json.as_str().contains("step-start") && json.value()["type"] == "step-start")
}

/// Returns whether providers would refuse the text as empty.
pub(super) fn is_white_space(text: &str) -> bool {
    text.trim().is_empty()
}
