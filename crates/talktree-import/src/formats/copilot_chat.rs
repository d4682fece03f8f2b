//! Chats of Copilot in VS Code: one JSON document, or a log of what was done to it.
//!
//! A log begins with the whole document; each further line sets, cuts, extends or deletes something in it. The last state is
//! read. A request is a message of its user and one of the assistant. A request that was taken back is a branch.

use crate::report::ImportReport;
use serde_json::Value;
use talktree::records::chat;
use talktree::{Json, Message, MessageId, Part, Role, Usage};

use super::chain::{Chain, here, json};
use super::linear;
use super::parts::{self, Outcome, hidden_if_empty, kept, usage};
use crate::draft::{Draft, Origin, Reader, derive, message_id, name, session_id};
use crate::fields::{self, Fields, data_part};
use crate::records::Record;

/// Reads chats of Copilot in VS Code.
#[derive(Default)]
pub(crate) struct CopilotChat {
    pub(super) from: Origin,
    /// The document so far, and the line it begins on.
    state: Option<(u64, Value)>,
}

impl CopilotChat {
    fn chat(&self, line: u64, chat: &Fields, is_log: bool, report: &mut ImportReport) -> Draft {
        let derived = || derive(&["copilot-chat", &self.from.file]).to_string();
        let id = chat.id("sessionId").unwrap_or_else(derived);
        let mut chain = Chain::new(session_id(id.as_str()), line);
        let requests = chat.list("requests").unwrap_or_default();
        let details = &mut chain.draft.details;
        details.name = chat.text("customTitle").as_deref().and_then(name);
        details.created_at = chat.time("creationDate");
        let known = [
            "sessionId",
            "requests",
            "customTitle",
            "creationDate",
            "lastMessageDate",
            "inputState",
            "hasPendingEdits",
        ];
        chain.draft.add_metadata(chat.except(&known));
        let mut time = chat.time("creationDate").unwrap_or(self.from.now);
        for (number, source) in requests.iter().enumerate() {
            let Some(request) = Fields::of(source) else {
                report.records += 1;
                report.lose(line, "a request that is no object");
                continue;
            };
            time = request.time("timestamp").unwrap_or(time);
            let key = request.id("requestId").unwrap_or_else(|| format!("{id}/{number}"));
            let before = chain.tip.clone();
            let mut add = |chain: &mut Chain, id: MessageId, message: Message| {
                report.records += 1;
                let content = serde_json::to_string(&message.parts).unwrap_or_default();
                let message = hidden_if_empty(message).with_id(id.clone()).at(time);
                let body = here(message, self.from.keeps_source.then_some(source));
                chain.add(id, line, &content, body);
            };
            add(&mut chain, message_id(key.as_str()), question(&request));
            // An answer that is still written would be another one later.
            let is_last = number + 1 == requests.len();
            let signs = ["result", "modelState", "isCanceled"];
            let is_done =
                !is_log || !is_last || signs.iter().any(|sign| request.get(sign).is_some());
            let answer = answer(&request);
            if is_done && (!answer.parts.is_empty() || Usage::of(&answer).is_some()) {
                let id = request.id("responseId").map(message_id);
                let id = id.unwrap_or_else(|| derive(&["copilot-chat", &key]).to_string().into());
                add(&mut chain, id, answer);
            } else if !answer.parts.is_empty() {
                let why = "the last answer is not finished; it comes with a later import";
                report.remark(line, why);
            }
            let is_undone = |name: &str| request.is_true(name) || request.object(name).is_some();
            if is_undone("shouldBeRemovedOnSend") || is_undone("isHidden") {
                chain.tip = before;
            }
        }
        chain.close()
    }
}

impl Reader for CopilotChat {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        if entry.has("requests") {
            return Some(self.chat(record.line, &entry, false, report));
        }
        report.records += 1;
        let kind = entry.number("kind");
        let value = entry.get("v").map(Json::value);
        if kind == Some(0.0) {
            self.state = value.map(|value| (record.line, value));
        } else {
            let path = entry.list("k").unwrap_or_default();
            let (_, state) = self.state.get_or_insert_with(|| {
                report.fault(record.line, "the log does not begin with the whole chat");
                (record.line, Value::Object(serde_json::Map::new()))
            });
            let cut = entry.number("i").map(|at| at as usize);
            let done = change(state, &path, kind.unwrap_or(-1.0) as i8, cut, value);
            if done.is_none() {
                report.lose(record.line, "a change of what is not there");
                return None;
            }
        }
        report.converted += 1;
        None
    }

    fn close(&mut self, report: &mut ImportReport) -> Option<Draft> {
        let (line, state) = self.state.take()?;
        let state = Fields::of(&Json::from(state)).unwrap_or_default();
        Some(self.chat(line, &state, true, report))
    }
}

/// Does one operation of a log: 1 sets, 2 cuts a list and extends it, 3 deletes.
fn change(
    state: &mut Value,
    path: &[Json],
    kind: i8,
    cut: Option<usize>,
    value: Option<Value>,
) -> Option<()> {
    let (last, path) = path.split_last()?;
    let mut at = state;
    for key in path {
        at = step(at, key)?;
    }
    match (kind, fields::text(last)) {
        (3, Some(key)) => drop(at.as_object_mut()?.remove(&key)),
        (3, None) => {
            let (list, index) = (at.as_array_mut()?, last.value().as_u64()? as usize);
            (index < list.len()).then(|| list.remove(index))?;
        }
        (1, _) => *step(at, last)? = value.unwrap_or(Value::Null),
        (2, _) => {
            let list = step(at, last)?;
            if list.is_null() {
                *list = Value::Array(Vec::new());
            }
            let list = list.as_array_mut()?;
            list.truncate(cut.unwrap_or(list.len()));
            match value {
                Some(Value::Array(more)) => list.extend(more),
                more => list.extend(more),
            }
        }
        _ => return None,
    }
    Some(())
}

/// Returns the place below a value; the next one of a list, and any of an object, is made.
fn step<'a>(at: &'a mut Value, key: &Json) -> Option<&'a mut Value> {
    match fields::text(key) {
        Some(key) => {
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            Some(at.as_object_mut()?.entry(key).or_insert(Value::Null))
        }
        None => {
            let (list, index) = (at.as_array_mut()?, key.value().as_u64()? as usize);
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)
        }
    }
}

fn question(request: &Fields) -> Message {
    let text = request.inner("message").text("text").or_else(|| request.text("message"));
    let parts = vec![Part::text(text.unwrap_or_default())];
    let data = request.inner("variableData");
    let about = kept(&data, &["variables"]).with("agent", request.get("agent").cloned());
    linear::message(Role::User, parts, about)
}

fn answer(request: &Fields) -> Message {
    let result = request.inner("result");
    let about = result.inner("metadata");
    let rounds = about.objects("toolCallRounds").into_iter();
    let calls: Vec<Fields> = rounds.flat_map(|round| round.objects("toolCalls")).collect();
    let results = about.inner("toolCallResults");
    let mut parts: Vec<Part> = Vec::new();
    let mut text = String::new();
    let flush = |text: &mut String, parts: &mut Vec<Part>| {
        if !text.is_empty() {
            parts.push(Part::text(std::mem::take(text)));
        }
    };
    let mut shown = Vec::new();
    for piece in request.list("response").unwrap_or_default() {
        let Some(fields) = Fields::of(&piece) else { continue };
        let value = fields.text("value").or_else(|| fields.inner("value").text("value"));
        let kind = fields.text("kind").unwrap_or_default();
        match (kind.as_str(), value) {
            ("" | "markdownContent", Some(value)) => text.push_str(&value),
            // Texts come in pieces, and a reference is one of them.
            ("inlineReference", _) => text.push_str(&fields.text("name").unwrap_or_default()),
            ("thinking", value) => {
                flush(&mut text, &mut parts);
                parts.extend(value.filter(|value| !value.is_empty()).map(Part::reasoning));
            }
            ("toolInvocationSerialized", _) => {
                flush(&mut text, &mut parts);
                let id = fields.id("toolCallId").unwrap_or_default();
                let call = calls.iter().find(|call| call.id("id").as_ref() == Some(&id));
                parts.push(tool(&id, &fields, call, results.get(&id)));
                shown.push(id);
            }
            ("undoStop" | "codeblockUri" | "prepareToolInvocation" | "progressMessage", _) => {}
            (kind, _) => {
                flush(&mut text, &mut parts);
                parts.push(data_part(if kind.is_empty() { "value" } else { kind }, &piece));
            }
        }
    }
    flush(&mut text, &mut parts);
    for call in &calls {
        let id = call.id("id").unwrap_or_default();
        if !shown.contains(&id) {
            parts.push(tool(&id, &Fields::default(), Some(call), results.get(&id)));
        }
    }
    let model = about.text("resolvedModel").or_else(|| request.text("modelId"));
    let rest = Fields::default()
        .with("model", model.as_deref().map(json))
        .with("error", result.get("errorDetails").cloned())
        .with("canceled", request.get("isCanceled").cloned());
    let message = linear::message(Role::Assistant, parts, rest);
    let usage = usage(&about, model);
    if usage.input + usage.output > 0 { message.with_usage(&usage) } else { message }
}

/// Returns a call with its result.
fn tool(id: &str, shown: &Fields, call: Option<&Fields>, result: Option<&Json>) -> Part {
    let name = call.and_then(|call| call.text("name")).or_else(|| shown.id("toolId"));
    let input = call.and_then(|call| call.get("arguments")).map(chat::arguments);
    let input = input.or_else(|| shown.get("toolSpecificData").cloned());
    let output = result.or_else(|| shown.get("resultDetails")).cloned();
    let outcome = output.map_or(Outcome::Open, Outcome::Output);
    Part::Tool(parts::call(name, id.to_owned(), input, outcome))
}
