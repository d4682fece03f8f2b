//! What several formats have: calls that hold their results, numbers of tokens, answers that are still being written.

use chrono::{DateTime, TimeDelta, Utc};
use talktree::{Cost, Extra, Json, Message, MessageId, Part, Tool, Usage};

use crate::draft::{Draft, Node, with_source};
use crate::fields::{Fields, data_part};
use crate::report::ImportReport;
use crate::sniff::is_invisible;

/// How long an unfinished answer is waited for. A message is not changed once it is imported, so one that may grow is left for
/// a later import; one that has not changed for so long was interrupted.
const PATIENCE: TimeDelta = TimeDelta::hours(1);

/// What became of a call.
pub(super) enum Outcome {
    /// Nothing yet, or never.
    Open,
    Output(Json),
    Failed(String),
}

/// Returns a call together with its result.
pub(super) fn call(
    name: impl Into<Option<String>>,
    id: String,
    input: Option<Json>,
    outcome: Outcome,
) -> Tool {
    let mut tool = Tool::default();
    (tool.name, tool.call_id) = (name.into().unwrap_or_else(|| "unknown".to_owned()), id);
    tool.input = Some(input.unwrap_or_else(|| Json::from(serde_json::json!({}))));
    let state = match outcome {
        Outcome::Open => "input-available",
        Outcome::Output(output) => {
            tool.output = Some(output);
            "output-available"
        }
        Outcome::Failed(why) => {
            tool.error_text = Some(why);
            "output-error"
        }
    };
    tool.state = Some(state.to_owned());
    tool
}

/// Returns the texts of an item of reasoning in the Responses API.
pub(super) fn thoughts(item: &Fields) -> impl Iterator<Item = String> {
    let blocks = ["summary", "content"].map(|name| item.objects(name));
    blocks.into_iter().flatten().filter_map(|block| block.text("text"))
}

/// Gives a result to the last open call of this id, or to the last open one; without a call it is a part of its own.
pub(super) fn answer(parts: &mut Vec<Part>, id: Option<&str>, result: Part) {
    let open = parts.iter_mut().rev().find_map(|part| match part {
        Part::Tool(call) if call.state.as_deref() == Some("input-available") => {
            Some(call).filter(|call| id.is_none_or(|id| id == call.call_id))
        }
        _ => None,
    });
    match (open, result) {
        (Some(call), Part::Tool(result)) => {
            (call.state, call.output, call.error_text) =
                (result.state, result.output, result.error_text);
        }
        (_, result) => parts.push(result),
    }
}

/// Returns the part; as it came, if a field of its own has the name of a field of the typed shape.
pub(super) fn typed(part: Part, kind: &str, source: &Fields) -> Option<Part> {
    match part.reserved_field() {
        None => Some(part),
        Some(_) => source.clone().into_json().map(|json| data_part(kind, &json)),
    }
}

/// Returns the other fields of a part.
pub(super) fn extra(fields: &Fields, known: &[&str]) -> Extra {
    fields.except(known).into_iter().filter(|(_, it)| !it.is_null()).collect()
}

/// Returns the fields of these names that say something.
pub(super) fn kept(fields: &Fields, names: &[&str]) -> Fields {
    let given =
        names.iter().filter_map(|name| Some(((*name).to_owned(), fields.get(name)?.clone())));
    given.filter(|(_, it)| !matches!(it.as_str(), "false" | "0" | "[]" | "{}" | "\"\"")).collect()
}

/// Returns a file; a `data:` URL says its own type.
pub(super) fn file(
    media_type: Option<String>,
    url: String,
    name: Option<String>,
) -> talktree::File {
    let own = url.strip_prefix("data:").and_then(|url| url.split([';', ',']).next());
    let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
    let mut file = talktree::File::default();
    file.media_type = own.or(media_type).unwrap_or_else(|| "application/octet-stream".to_owned());
    (file.url, file.filename) = (url, name);
    file
}

/// Returns the message, hidden if there is nothing in it to show.
pub(super) fn hidden_if_blank(mut message: Message) -> Message {
    message.is_hidden |= is_invisible(&message);
    message
}

/// Returns the message, hidden if it has no parts.
pub(super) fn hidden_if_empty(mut message: Message) -> Message {
    message.is_hidden |= message.parts.is_empty();
    message
}

/// Returns what an answer took, however a program spells the names of the numbers.
pub(super) fn usage(counted: &Fields, model: Option<String>) -> Usage {
    let mut usage = Usage { model, ..Usage::default() };
    for name in counted.names() {
        let number = match name.to_lowercase().replace('_', "").as_str() {
            "inputtokens" | "prompttokens" | "prompttokencount" | "input" => &mut usage.input,
            "outputtokens" | "candidatestokencount" | "output" => &mut usage.output,
            "cachedinputtokens" | "cachereadtokens" => &mut usage.cache_read,
            "cachedcontenttokencount" | "cached" => &mut usage.cache_read,
            "cachewriteinputtokens" | "cachewritetokens" => &mut usage.cache_write,
            "reasoningoutputtokens" | "reasoningtokens" => &mut usage.reasoning,
            "thoughtstokencount" | "thoughts" => &mut usage.reasoning,
            _ => continue,
        };
        // One that is not a number takes nothing from another spelling.
        *number = tokens(counted, name).max(*number);
    }
    usage
}

/// Returns a number of tokens; 0 if there is none.
pub(super) fn tokens(fields: &Fields, name: &str) -> u64 {
    fields.number(name).filter(|tokens| *tokens > 0.0).map_or(0, |tokens| tokens as u64)
}

/// Returns an amount of dollars, if it is one.
pub(super) fn dollars(amount: Option<f64>) -> Option<Cost> {
    let micros = amount.filter(|amount| *amount > 0.0).map(|amount| (amount * 1e6).round() as u64);
    micros.map(|micros| Cost { micros, currency: "USD".to_owned() })
}

/// Returns whether what was changed at this time may still change.
pub(super) fn may_grow(changed: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    changed.is_some_and(|changed| (now - changed).abs() < PATIENCE)
}

/// Leaves out the last message of a conversation, which is not finished.
pub(super) fn leave_unfinished(draft: &mut Draft, report: &mut ImportReport) {
    if let Some(node) = draft.nodes.pop() {
        let why = format!("message {:?} is still being written; a later import takes it", node.id);
        report.leave_out(node.line, why);
    }
}

/// A message of a tree, as a source has it.
pub(super) struct Placed {
    pub(super) message: Message,
    pub(super) time: Option<DateTime<Utc>>,
    pub(super) parent: Option<MessageId>,
    /// The record, if it is to be kept.
    pub(super) source: Option<Json>,
}

/// Adds the messages of a tree to a draft, siblings by time. A message without a time has that of the one before it in the file.
pub(super) fn add_by_time(draft: &mut Draft, mut placed: Vec<Placed>, start: DateTime<Utc>) {
    let mut before = start;
    for Placed { message, time, .. } in &mut placed {
        before = time.unwrap_or(before);
        message.created_at = before;
    }
    placed.sort_by_key(|placed| placed.message.created_at);
    let line = draft.line;
    for Placed { message, parent, source, .. } in placed {
        let time = message.created_at;
        let message = with_source(message, source.as_ref());
        draft.push(Node::of(message.at(time), parent, line, None));
    }
}
