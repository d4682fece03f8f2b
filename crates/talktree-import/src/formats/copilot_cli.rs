//! Logs of Copilot CLI: `events.jsonl`.
//!
//! Each event names the one before it, so a log is no tree; a rewind goes back in it, and what follows is a branch. What a
//! subagent says is a session of its own below that of the log.

use std::collections::HashMap;

use crate::report::ImportReport;
use talktree::records::chat;
use talktree::{Message, MessageId, Part, Role};

use super::blocks::{self, ToolNames};
use super::chain::{Chain, Models, aside, is_context, json, spent};
use super::linear;
use super::parts::{self, Outcome, hidden_if_empty, usage};
use crate::draft::{Body, Draft, Origin, Reader, derive, message_id, session_id};
use crate::fields::Fields;
use crate::records::Record;

/// The field with the time of an event.
const TIME: &str = "timestamp";

/// Events that say that something begins or ends.
const IDLE: &[&str] = &[
    "assistant.turn_start",
    "assistant.turn_end",
    "session.resume",
    "session.idle",
    "session.info",
];

/// Reads logs of Copilot CLI.
#[derive(Default)]
pub(crate) struct CopilotCli {
    pub(super) from: Origin,
    names: ToolNames,
    /// The conversation of the log, and those of subagents with what tells them apart.
    chains: Vec<(Option<String>, Chain)>,
    /// What the message of each event follows.
    before: HashMap<String, Option<MessageId>>,
    models: Models,
}

impl CopilotCli {
    /// Returns the conversation of an event: that of the log, or of a subagent.
    fn chain(&mut self, line: u64, agent: Option<String>) -> &mut Chain {
        if self.chains.is_empty() {
            let id = derive(&["copilot-cli", &self.from.file]).to_string();
            self.chains.push((None, Chain::new(session_id(id), line)));
        }
        let known = self.chains.iter().position(|(known, _)| *known == agent);
        let at = known.unwrap_or_else(|| {
            let main = self.chains[0].1.draft.session.clone();
            let id = format!("{main}/subagents/{}", agent.as_deref().unwrap_or_default());
            let mut chain = Chain::new(session_id(id), line);
            chain.draft.details.parent_session = Some(main);
            self.chains.push((agent, chain));
            self.chains.len() - 1
        });
        &mut self.chains[at].1
    }

    fn begin(&mut self, line: u64, data: &Fields) {
        let model = data.text("selectedModel");
        self.models.push(line, model.clone());
        let draft = &mut self.chain(line, None).draft;
        if let Some(id) = data.id("sessionId") {
            draft.session = session_id(id);
        }
        draft.details.model = model;
        draft.details.created_at = data.time("startTime");
        draft.details.parent_session =
            data.id("detachedFromSpawningParentSessionId").map(session_id);
        draft.add_metadata(data.except(&["sessionId", "startTime"]));
    }

    /// Returns the messages of an event with their ids.
    fn messages(&self, line: u64, event: &Fields) -> Vec<(MessageId, Message)> {
        let derived = || derive(&["copilot-cli", &line.to_string()]).to_string();
        let id = event.id("id").unwrap_or_else(derived);
        let data = event.inner("data");
        let kind = event.text("type").unwrap_or_default();
        let time = event.time(TIME).unwrap_or(self.from.now);
        let model = data.text("model").or_else(|| self.models.at(line).cloned());
        let call = |request: &Fields| {
            let (id, name) = (request.id("toolCallId")?, tool_of(request));
            let input = request.get("arguments").map(chat::arguments);
            Some(Part::Tool(parts::call(name, id, input, Outcome::Open)))
        };
        let own = |message: Message| vec![(message_id(id.as_str()), message)];
        let messages = match kind.as_str() {
            "user.message" | "system.message" => {
                let parts: Vec<Part> = blocks::parts(data.get("content"), &self.names);
                let is_skill =
                    data.text("source").is_some_and(|source| source.starts_with("skill-"));
                let is_context = is_skill || is_context(&parts, &["<skill-context"]);
                let context = is_context.then(|| json("context"));
                let role = if kind == "user.message" { Role::User } else { Role::System };
                let rest = data.without(&["content", "role"]).with("kind", context);
                own(linear::message(role, parts, rest))
            }
            "assistant.message" => {
                let mut parts: Vec<Part> =
                    data.text("reasoningText").map(Part::reasoning).into_iter().collect();
                parts.extend(blocks::parts(data.get("content"), &self.names));
                parts.extend(data.objects("toolRequests").iter().filter_map(call));
                let rest = data.without(&["content", "reasoningText", "toolRequests", "model"]);
                let rest = rest.with("model", model.as_deref().map(json));
                own(hidden_if_empty(linear::message(Role::Assistant, parts, rest)))
            }
            "tool.execution_start" => {
                let parts = call(&data).into_iter().collect();
                own(linear::message(Role::Assistant, parts, Fields::default()))
            }
            "tool.execution_complete" => {
                let id = data.id("toolCallId").unwrap_or_default();
                let name = blocks::name_of(&self.names, &id);
                let (result, error) = (data.inner("result"), data.inner("error"));
                let output = result.get("content").or_else(|| data.get("result"));
                let output = output.or_else(|| error.get("message")).or_else(|| data.get("error"));
                let part = blocks::result(name, id, output, data.is_false("success"));
                let detail = result.get("detailedContent").cloned();
                let about = Fields::default().with("detailedContent", detail);
                own(linear::message(Role::Tool, vec![part], about))
            }
            "session.shutdown" => {
                let models = data.inner("modelMetrics").into_iter();
                let spent = models.map(|(model, metrics)| {
                    let own = derive(&["copilot-cli", &id, &model]).to_string();
                    let used = Fields::of(&metrics).unwrap_or_default().inner("usage");
                    (MessageId::from(own), spent(&usage(&used, Some(model))))
                });
                spent.chain(own(aside(&kind, &data))).collect()
            }
            _ => own(aside(&kind, &data)),
        };
        messages.into_iter().map(|(id, it)| (id.clone(), it.with_id(id).at(time))).collect()
    }
}

/// Returns the name of the tool that an event or a request in it is of.
fn tool_of(event: &Fields) -> Option<String> {
    event.text("name").or_else(|| event.text("toolName"))
}

impl Reader for CopilotCli {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        let line = record.line;
        report.check_times(line, &[(&entry, TIME)], "the time of the import");
        let Some(data) = entry.object("data") else {
            report.records += 1;
            report.lose(line, "an event without data");
            return None;
        };
        let kind = entry.text("type").unwrap_or_default();
        let agent = entry.id("agentId").or_else(|| data.id("parentToolCallId"));
        let id = entry.id("id").unwrap_or_default();
        let tip = self.chain(line, agent.clone()).tip.clone();
        self.before.insert(id, tip);
        let is_known = data.id("toolCallId").is_some_and(|id| self.names.contains_key(&id));
        for request in data.objects("toolRequests").iter().chain([&data]) {
            self.names.extend(request.id("toolCallId").zip(tool_of(request)));
        }
        match kind.as_str() {
            "session.start" => self.begin(line, &data),
            "session.model_change" => self.models.push(line, data.text("newModel")),
            "session.snapshot_rewind" => {
                let to = data.id("upToEventId").unwrap_or_default();
                match self.before.get(&to).cloned() {
                    Some(before) => self.chain(line, agent).tip = before,
                    None => report
                        .remark(line, format!("goes back to event {to:?}, which is not there")),
                }
            }
            "tool.execution_start" if is_known => {}
            kind if IDLE.contains(&kind) || entry.is_true("ephemeral") => {}
            _ => {
                for (id, message) in self.messages(line, &entry) {
                    report.records += 1;
                    let time = message.created_at;
                    let chain = self.chain(line, agent.clone());
                    chain.add(id, line, &record.text, Body::There(record.place()));
                    if kind == "session.compaction_complete"
                        && let Some(summary) = data.text("summaryContent")
                    {
                        let details = data.except(&["summaryContent"]).into_json();
                        chain.compact(None, summary, details, time);
                    }
                }
                return None;
            }
        }
        report.records += 1;
        report.converted += 1;
        None
    }

    fn finish(&mut self, _: &mut ImportReport) -> Vec<Draft> {
        self.chains.drain(..).map(|(_, chain)| chain.close()).collect()
    }

    fn message(&self, record: &Record, fields: Fields, id: &MessageId) -> Option<Message> {
        let mut messages = self.messages(record.line, &fields).into_iter();
        messages.find(|(own, _)| own == id).map(|(_, message)| message)
    }
}
