//! Messages of the OpenAI chat API.
//!
//! The API takes a call of a tool only with its result right behind it, and a result only behind
//! its call. Stored conversations are freer: calls may stand in several messages, results in the
//! call's own message or in any later one, or nowhere. So what a model says is held back as a *turn*
//! until another begins, and written with the results that came meanwhile. A call without a result
//! gets one that says so; a result without a call is told in a user's message.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use super::output_error;
use crate::error::{Error, Result};
use crate::message::{File, Json, Message, Part, Role, Tool};
use crate::session::Session;
use crate::view::View;

/// The longest name of a function that the API takes.
const MAX_NAME: usize = 64;

/// What stands for the result of a call that has none.
const NO_RESULT: &str = "(no result)";

impl Session {
    /// Writes a view as messages of the OpenAI chat API: `{"id", "title", "messages": [..]}`.
    ///
    /// Reasoning is left out. The messages are ones that the API takes.
    ///
    /// ```
    /// use talktree::{Message, Store, View};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let mut json = Vec::new();
    /// chat.export_openai(&View::head(), &mut json)?;
    /// let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    /// assert_eq!(json["messages"][0]["content"], "2 + 2?");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the view's leaf is not in this session; [`Error::Io`] if
    /// `output` fails; as every read.
    pub fn export_openai(&self, view: &View, output: &mut impl Write) -> Result<()> {
        let title = self.info()?.and_then(|info| info.name);
        let mut chat = Chat { output, is_first: true, turn: Turn::default() };
        let head = json!({"id": self.id(), "title": title}).to_string();
        let head = head.strip_suffix('}').unwrap_or_default();
        chat.write(&format!("{head},\"messages\":["))?;
        for message in self.stream(view.clone()) {
            chat.take(&message?)?;
        }
        chat.end_turn()?;
        chat.write("\n]}\n")?;
        chat.output.flush().map_err(output_error)
    }
}

/// A chat as it is written.
struct Chat<'a, W> {
    output: &'a mut W,
    is_first: bool,
    turn: Turn,
}

/// What the model said and called, and what the tools answered so far.
#[derive(Default)]
struct Turn {
    text: Vec<String>,
    calls: Vec<Call>,
}

struct Call {
    id: String,
    name: String,
    arguments: String,
    result: Option<String>,
}

impl<W: Write> Chat<'_, W> {
    fn take(&mut self, message: &Message) -> Result<()> {
        match &message.role {
            Role::Assistant => self.take_assistant(message),
            role => self.take_other(role, message),
        }
    }

    fn take_assistant(&mut self, message: &Message) -> Result<()> {
        for part in &message.parts {
            match part.typed().as_ref() {
                Part::Text(text) => {
                    // What is said after a result is said in a turn of its own.
                    if self.turn.calls.iter().any(|call| call.result.is_some()) {
                        self.end_turn()?;
                    }
                    self.turn.text.push(text.text.clone());
                }
                Part::Tool(tool) => self.take_tool(tool)?,
                Part::File(file) => self.turn.text.push(mention(file)),
                Part::Reasoning(_) | Part::Other(_) => {}
            }
        }
        // Messages that call nothing do not belong together.
        if self.turn.calls.is_empty() { self.end_turn() } else { Ok(()) }
    }

    fn take_other(&mut self, role: &Role, message: &Message) -> Result<()> {
        let mut content = Vec::new();
        for part in &message.parts {
            match part.typed().as_ref() {
                Part::Text(text) => content.push(json!({"type": "text", "text": text.text})),
                Part::File(file) if *role == Role::User => content.push(file_content(file)),
                Part::File(file) => content.push(json!({"type": "text", "text": mention(file)})),
                Part::Tool(tool) => self.take_tool(tool)?,
                Part::Reasoning(_) | Part::Other(_) => {}
            }
        }
        let has_tools = message.parts.iter().any(|part| matches!(part, Part::Tool(_)));
        if content.is_empty() && (has_tools || *role == Role::Tool) {
            return Ok(());
        }
        self.end_turn()?;
        let role = match role {
            Role::System => "system",
            Role::Other(role) if &**role == "developer" => "developer",
            _ => "user",
        };
        let is_text = content.iter().all(|part| part["type"] == "text");
        let content = match is_text {
            true => {
                let texts = content.iter().filter_map(|part| part["text"].as_str());
                Value::from(texts.collect::<Vec<_>>().join("\n"))
            }
            false => Value::from(content),
        };
        self.message(&json!({"role": role, "content": content}))
    }

    fn take_tool(&mut self, tool: &Tool) -> Result<()> {
        let result = match (&tool.error_text, &tool.output) {
            (Some(error), _) => Some(error.clone()),
            (None, output) => output.as_ref().map(plain),
        };
        if let Some(input) = &tool.input {
            let is_answered = self.turn.calls.iter().any(|call| call.result.is_some());
            let is_open = self.turn.calls.iter().any(|call| call.result.is_none());
            // A call made before others are answered belongs to them.
            if is_answered && !is_open {
                self.end_turn()?;
            }
            self.turn.calls.push(Call {
                id: tool.call_id.clone(),
                name: function_name(&tool.name),
                arguments: plain(input),
                result,
            });
            return Ok(());
        }
        let Some(result) = result else { return Ok(()) };
        let open = self
            .turn
            .calls
            .iter_mut()
            .find(|call| call.id == tool.call_id && call.result.is_none());
        if let Some(call) = open {
            call.result = Some(result);
            return Ok(());
        }
        self.end_turn()?;
        let text = format!("Result of the tool {}: {result}", tool.name);
        self.message(&json!({"role": "user", "content": text}))
    }

    /// Writes what the model said and called, and each call's result behind it.
    fn end_turn(&mut self) -> Result<()> {
        let Turn { text, mut calls } = std::mem::take(&mut self.turn);
        if text.is_empty() && calls.is_empty() {
            return Ok(());
        }
        let mut used = BTreeSet::new();
        for (at, call) in calls.iter_mut().enumerate() {
            // The API pairs by id alone.
            while call.id.is_empty() || !used.insert(call.id.clone()) {
                call.id = format!("{}_{at}", call.id);
            }
        }
        let mut message = json!({"role": "assistant", "content": text.join("\n")});
        if !calls.is_empty() {
            if text.is_empty() {
                message["content"] = Value::Null;
            }
            let calls = calls.iter().map(|call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        self.message(&message)?;
        for call in calls {
            let content = call.result.unwrap_or_else(|| NO_RESULT.to_owned());
            self.message(&json!({"role": "tool", "tool_call_id": call.id, "content": content}))?;
        }
        Ok(())
    }

    fn message(&mut self, message: &Value) -> Result<()> {
        let text = serde_json::to_string(message);
        let text = text.map_err(|source| Error::Json { what: "a message", source })?;
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        self.write(&format!("{comma}\n{text}"))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.output.write_all(text.as_bytes()).map_err(output_error)
    }
}

/// Returns a JSON string's text, or the JSON as text.
fn plain(json: &Json) -> String {
    let text = json.as_str().starts_with('"').then(|| json.value());
    text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(|| json.to_string())
}

fn function_name(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name = name.chars().map(|letter| if fits(letter) { letter } else { '_' });
    let name: String = name.take(MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn file_content(file: &File) -> Value {
    let is_reachable = file.url.starts_with("data:") || file.url.starts_with("http");
    match file.media_type.split('/').next() {
        Some("image") if is_reachable => {
            json!({"type": "image_url", "image_url": {"url": file.url}})
        }
        _ if file.url.starts_with("data:") => {
            let name = file.filename.as_deref().unwrap_or("file");
            json!({"type": "file", "file": {"filename": name, "file_data": file.url}})
        }
        _ => json!({"type": "text", "text": mention(file)}),
    }
}

fn mention(file: &File) -> String {
    let name = file.filename.as_deref().unwrap_or(&file.media_type);
    let url = if file.url.starts_with("data:") { "attached" } else { &file.url };
    format!("[file {name}: {url}]")
}
