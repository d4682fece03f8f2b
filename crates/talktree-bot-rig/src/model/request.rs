//! What a request says, and what is wrong with it.

use std::collections::BTreeMap;

use serde_json::Value;
use talktree::estimate_tokens;
use talktree_model::{Provider, validate_for};

use crate::http::Incoming;
use crate::{Mark, marks_in};

/// The tokens of a message besides its texts.
const PER_MESSAGE: u64 = 4;

/// A request, as far as the answer depends on it.
pub(super) struct Said {
    pub(super) provider: Provider,
    pub(super) model: Value,
    pub(super) is_streamed: bool,
    /// Whether a streamed answer of OpenAI ends with the usage.
    pub(super) wants_usage: bool,
    /// The text of the last message of a person, and its last mark.
    pub(super) text: String,
    pub(super) mark: Option<Mark>,
    /// The first and the last turn of each chat that the request shows.
    pub(super) chats: BTreeMap<u32, (u32, u32)>,
    pub(super) is_summary: bool,
    /// The text of the last message, if it has results of tools.
    pub(super) result: Option<String>,
    pub(super) tools: Vec<Tool>,
    pub(super) tokens: u64,
    pub(super) messages: usize,
}

/// A tool that the request offers.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) schema: Value,
}

impl Said {
    pub(super) fn read(provider: Provider, request: &Value, bytes: &[u8]) -> Self {
        let none = Vec::new();
        let messages = request["messages"].as_array().unwrap_or(&none);
        let by_people = || messages.iter().filter(|message| message["role"] == "user");
        let texts = by_people().rev().map(|message| words(&message["content"]));
        let text = texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
        let mark = marks_in(&text).last();
        let mut chats: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for mark in marks_in(&String::from_utf8_lossy(bytes)) {
            let range = chats.entry(mark.chat).or_insert((mark.turn, mark.turn));
            *range = (range.0.min(mark.turn), range.1.max(mark.turn));
        }
        let listed = request["tools"].as_array().unwrap_or(&none);
        Self {
            provider,
            model: request["model"].clone(),
            is_streamed: request["stream"] == true,
            wants_usage: request["stream_options"]["include_usage"] == true,
            mark,
            chats,
            is_summary: text.trim_start().starts_with("Summarize a range of messages"),
            text,
            result: messages.last().and_then(result),
            tools: listed.iter().filter_map(Tool::read).collect(),
            tokens: tokens(request, messages),
            messages: messages.len(),
        }
    }

    /// Returns an id for the answer, the same for the same request.
    pub(super) fn id(&self) -> String {
        let (chat, turn) = self.mark.map_or((0, 0), |mark| (mark.chat, mark.turn));
        format!("rig_{chat}_{turn}_{}", self.messages)
    }

    /// Returns what is wrong with a request.
    pub(super) fn problems(
        &self,
        request: &Value,
        incoming: &Incoming,
        window: Option<u64>,
    ) -> Vec<String> {
        let mut problems: Vec<String> = validate_for(self.provider, request)
            .into_iter()
            .map(|problem| problem.to_string())
            .collect();
        let messages = request["messages"].as_array().into_iter().flatten();
        let mut roles = messages.map(|message| message["role"].as_str().unwrap_or_default());
        let is_prompt = |role: &&str| ["system", "developer"].contains(role);
        if roles.clone().find(|role| !is_prompt(role)) != Some("user") {
            problems.push("does not begin with a user message".to_owned());
        }
        if roles.next_back() == Some("assistant") {
            problems.push("ends with an assistant message".to_owned());
        }
        if self.model.as_str().is_none_or(str::is_empty) {
            problems.push("names no model".to_owned());
        }
        if self.chats.len() > 1 {
            problems.push(format!("shows marks of several chats: {:?}", self.chats));
        }
        if let Some(window) = window.filter(|window| self.tokens > *window) {
            problems.push(format!("has {} tokens, over the limit of {window}", self.tokens));
        }
        if self.provider == Provider::Anthropic {
            if request["max_tokens"].as_u64().is_none_or(|max| max == 0) {
                problems.push("has no max_tokens".to_owned());
            }
            if incoming.header("x-api-key").is_none() {
                problems.push("has no x-api-key".to_owned());
            }
            if incoming.header("anthropic-version").is_none() {
                problems.push("has no anthropic-version".to_owned());
            }
        } else if incoming.header("authorization").is_none_or(|key| !key.starts_with("Bearer ")) {
            problems.push("has no key".to_owned());
        }
        problems
    }
}

impl Tool {
    fn read(tool: &Value) -> Option<Self> {
        let tool = if tool["function"].is_object() { &tool["function"] } else { tool };
        let schema = if tool["parameters"].is_object() { "parameters" } else { "input_schema" };
        Some(Self { name: tool["name"].as_str()?.to_owned(), schema: tool[schema].clone() })
    }
}

/// Returns the texts of a content, without results of tools.
fn words(content: &Value) -> String {
    let Some(parts) = content.as_array() else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

/// Returns the text of the results of a message that has nothing else.
fn result(message: &Value) -> Option<String> {
    if message["role"] == "tool" {
        return Some(words(&message["content"]));
    }
    let parts = message["content"].as_array()?;
    let is_result = |part: &Value| part["type"] == "tool_result";
    let texts = || parts.iter().map(|part| words(&part["content"])).collect::<Vec<_>>();
    (!parts.is_empty() && parts.iter().all(is_result)).then(|| texts().join("\n"))
}

/// Returns the estimated tokens of all texts of a request.
fn tokens(request: &Value, messages: &[Value]) -> u64 {
    let tools = &request["tools"];
    let tools = if tools.is_null() { 0 } else { estimate_tokens(&tools.to_string()) };
    let texts = strings(&request["system"])
        + messages.iter().map(|message| PER_MESSAGE + strings(message)).sum::<u64>();
    tools + texts
}

fn strings(value: &Value) -> u64 {
    match value {
        Value::String(text) => estimate_tokens(text),
        Value::Array(list) => list.iter().map(strings).sum(),
        Value::Object(fields) => {
            let named = |name: &str| !["role", "type", "id", "tool_use_id"].contains(&name);
            fields.iter().filter(|field| named(field.0)).map(|field| strings(field.1)).sum()
        }
        _ => 0,
    }
}
