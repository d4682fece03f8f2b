//! Rollouts of Codex, in three generations, and items of the Responses API.
//!
//! The first generation is one document, `{"session", "items"}`. The second is lines of bare items after a header. The third
//! wraps each line: `{"timestamp", "type", "payload"}`. A file is one thread, that of its first header; a later header is that
//! of the thread whose past a fork has copied.
//!
//! An item becomes one message, under an id that its content gives. So a fork has the ids of the past that it copied, and the
//! store makes the same messages of both. Events repeat what items say; they are messages only in a file that has no items
//! before them. A rollback goes back to where the turns began: what follows is a branch. A *compacted* record is a hidden message
//! and a summary of all before it.

use crate::report::ImportReport;
use chrono::{DateTime, Utc};
use talktree::records::chat;
use talktree::{Json, Message, MessageId, Part, Role};

use super::Format;
use super::blocks::{self, ToolNames, name_of};
use super::chain::{Chain, Contents, Models, aside, body, is_context, json, spent, texts};
use super::linear;
use super::parts::{self, Outcome, kept, thoughts, usage};
use crate::draft::{Body, Draft, Origin, Reader, Unnamed, canonical, name, session_id};
use crate::fields::Fields;
use crate::records::Record;

/// The field with the time of a line or a session.
const TIME: &str = "timestamp";

/// How the texts begin that Codex writes in the name of the user.
const CONTEXT: &[&str] = &[
    "# AGENTS.md",
    "<environment_context",
    "<user_instructions",
    "<INSTRUCTIONS",
    "<turn_aborted",
    "<skill",
    "<subagent_notification",
    "<goal",
];

/// The fields of an item of reasoning that its first part keeps, for the provider.
pub(crate) const OF_REASONING: [&str; 3] = ["id", "encrypted_content", "status"];

/// Reads Codex rollouts.
#[derive(Default)]
pub(crate) struct Codex {
    pub(super) from: Origin,
    names: ToolNames,
    contents: Contents,
    chain: Option<Chain>,
    /// What comes before the ids: nothing, or the thread of a subagent, whose past is no other's.
    scope: Option<String>,
    /// Whether the file says which thread it is.
    is_named: bool,
    /// The time of records that have none.
    start: Option<DateTime<Utc>>,
    models: Models,
    /// Where the tip was when each turn of a person began.
    turns: Vec<Option<MessageId>>,
    /// Where it was when the present turn began, until a person's message is in it.
    turn: Option<Option<MessageId>>,
    has_turns: bool,
    has_items: bool,
    /// The text of the event that was read last, which the item after it repeats.
    event: Option<(Role, String)>,
    /// The texts of the reasoning that was read last.
    thought: String,
    /// How many of the first nodes are the opening of a conversation without an id.
    opening: Option<usize>,
    has_usage: bool,
    total: Option<Json>,
    /// The records that repeat others, with the line of the first.
    repeats: Option<(u64, u64)>,
}

/// What a record is: its kind, and what it is about.
struct Item {
    kind: String,
    fields: Fields,
    /// The same as text.
    json: String,
}

impl Item {
    fn new(kind: &str, fields: Fields, json: &str) -> Self {
        Self { kind: kind.to_owned(), fields, json: json.to_owned() }
    }
}

impl Codex {
    /// Returns the thread; before its header, one that is named by the file.
    fn chain(&mut self, line: u64) -> &mut Chain {
        let file = &self.from.file;
        let is_named = &mut self.is_named;
        self.chain.get_or_insert_with(|| {
            let thread = thread_of(file);
            *is_named = thread.is_some();
            Chain::new(session_id(thread.unwrap_or_default()), line)
        })
    }

    fn begin(
        &mut self,
        line: u64,
        header: &Fields,
        time: Option<DateTime<Utc>>,
        report: &mut ImportReport,
    ) {
        if self.is_named {
            return;
        }
        let id = header.id("id").or_else(|| header.id("session_id"));
        let id = id.or_else(|| thread_of(&self.from.file));
        let forked = header.id("forked_from_id");
        let spawn = header.inner("source").inner("subagent").inner("thread_spawn");
        let spawned = spawn.id("parent_thread_id").or_else(|| header.id("parent_thread_id"));
        let base = header.inner("history_base").id("thread_id");
        if let Some(parent) = &base {
            let why =
                format!("a fork that does not repeat its past, which is in session {parent:?}");
            report.remark(line, why);
        } else if let Some(parent) = &forked {
            let why = format!(
                "a fork: what it repeats of session {parent:?} counts once if that one was imported before"
            );
            report.remark(line, why);
        }
        self.scope = spawned.clone().filter(|_| forked.is_none()).and(id.clone());
        let start = header.time(TIME).or(time);
        self.start = self.start.or(start);
        let is_named = id.is_some();
        let chain = self.chain(line);
        if let Some(id) = id {
            chain.draft.session = session_id(id);
        }
        let details = &mut chain.draft.details;
        details.parent_session = forked.or(base).or(spawned).map(session_id);
        details.created_at = start;
        let known = ["id", TIME, "type", "base_instructions", "instructions"];
        chain.draft.add_metadata(header.except(&known));
        self.is_named = is_named;
    }

    /// Takes one record apart. Its message is the record, or in `source` beside others.
    fn take(
        &mut self,
        (record, source): (&Record, Option<&Json>),
        item: &Item,
        time: Option<DateTime<Utc>>,
        report: &mut ImportReport,
    ) {
        let line = record.line;
        let Item { kind, fields: payload, json } = item;
        let what = payload.text("type").unwrap_or_default();
        report.records += 1;
        match (kind.as_str(), &*what) {
            ("session_meta", _) => {
                self.begin(line, payload, time, report);
                report.converted += 1;
                return;
            }
            ("turn_context" | "event_msg", _) if self.turns(line, item, report) => {
                report.converted += 1;
                return;
            }
            ("event_msg", what) if self.is_repeat(what, payload) => {
                self.repeats.get_or_insert((0, line)).0 += 1;
                report.dropped += 1;
                return;
            }
            ("response_item", _) => {
                let id = payload.id("call_id").or_else(|| payload.id("id"));
                self.names.extend(id.zip(payload.text("name")));
            }
            _ => {}
        }
        self.has_usage |= kind == "token_usage_record";
        let time = time.or(self.start).unwrap_or(self.from.now);
        // What is neither said nor in a list is read when it is stored.
        let is_said =
            kind == "event_msg" || matches!(&*what, "message" | "agent_message" | "reasoning" | "");
        let is_needed = is_said || source.is_some();
        let message = is_needed.then(|| self.message_of(line, item).at(time));
        let words = message.as_ref().filter(|it| is_said && !it.is_hidden);
        let is_of_person = words.is_some_and(is_of_person);
        let said = words.map(|message| (message.role.clone(), said_in(message)));
        self.has_items |= kind == "response_item";
        if kind == "event_msg" {
            self.event = said;
        } else if self.event.take().is_some_and(|event| Some(event) == said) {
            report.leave_out(line, "repeats the event before it");
            return;
        }
        let content = canonical(json);
        if what == "reasoning" {
            self.thought.clone_from(&content);
        }
        let tip = self.chain(line).tip.clone();
        if is_of_person {
            let begun = self.turn.take();
            self.turns.extend(begun.or_else(|| (!self.has_turns).then_some(tip)));
        }
        let scope = ["codex", self.scope.as_deref().unwrap_or_default()];
        let written = source.map_or(record.text.as_str(), Json::as_str);
        let id = self.contents.id(&scope, &content, written);
        let body = match message {
            Some(message) => body(message.with_id(id.clone()), record, source, &self.from),
            None => Body::There(record.place()),
        };
        let chain = self.chain(line);
        // The id says what its content is.
        chain.add(id, line, "", body);
        if kind == "compacted" {
            let known = ["message", "replacement_history", "replacement_history_entries"];
            let details = payload.except(&known).into_json();
            chain.compact(None, summary(payload), details, time);
        }
        let count = chain.draft.nodes.len();
        self.opening = self.opening.or(is_of_person.then_some(count));
    }

    /// Takes what a record says about turns, models and names; returns whether it is such a record.
    fn turns(&mut self, line: u64, item: &Item, report: &mut ImportReport) -> bool {
        let Item { kind, fields: payload, .. } = item;
        let what = payload.text("type").unwrap_or_default();
        let details = &mut self.chain(line).draft.details;
        match (kind.as_str(), what.as_str()) {
            ("turn_context", _) => {
                let model = payload.text("model");
                details.model = details.model.take().or_else(|| model.clone());
                self.models.push(line, model);
            }
            (_, "thread_name_updated") => {
                let given = payload.text("thread_name").as_deref().and_then(name);
                details.name = given.or(details.name.take());
            }
            (_, "task_started") => {
                self.turn = Some(self.chain(line).tip.clone());
                self.has_turns = true;
            }
            (_, "thread_rolled_back") => {
                let count = payload.number("num_turns").unwrap_or(0.0) as usize;
                self.roll_back(line, count, report);
            }
            _ => return false,
        }
        true
    }

    /// Goes back to where the newest of so many turns began.
    fn roll_back(&mut self, line: u64, count: usize, report: &mut ImportReport) {
        let left = self.turns.len().saturating_sub(count);
        if count > self.turns.len() {
            let why =
                format!("takes back {count} turns, of which {} are in the file", self.turns.len());
            report.remark(line, why);
        }
        let start = self.turns.drain(left..).next();
        if let Some(start) = start {
            self.chain(line).tip = start.clone();
            self.turn = self.has_turns.then_some(start);
        }
    }

    /// Returns whether an event says what another record says, or nothing.
    fn is_repeat(&mut self, what: &str, event: &Fields) -> bool {
        match what {
            "user_message" | "agent_message" | "agent_reasoning" => self.has_items,
            "agent_reasoning_raw_content" => {
                event.text("text").is_none_or(|text| self.thought.contains(&text))
            }
            // One that repeats the total of the one before is of no answer.
            "token_count" => {
                let info = event.inner("info");
                let total = info.get("total_token_usage").cloned();
                let is_same = total.is_some() && total == self.total;
                self.total = total;
                self.has_usage || is_same || info.object("last_token_usage").is_none()
            }
            "agent_reasoning_section_break" | "context_compacted" | "task_complete" => true,
            _ => false,
        }
    }

    /// Returns the message of a record, without its id.
    fn message_of(&self, line: u64, Item { kind, fields: payload, .. }: &Item) -> Message {
        let what = payload.text("type").unwrap_or_default();
        let model = || self.models.at(line).map(|model| json(model));
        let took = |counted: Fields| spent(&usage(&counted, self.models.at(line).cloned()));
        let event = |role: Role, part: fn(String) -> Part, field: &str| {
            let text = payload.text(field).unwrap_or_default();
            let rest = payload.except(&["type", field]);
            let model = model().filter(|_| role == Role::Assistant);
            linear::message(role, vec![part(text)], rest.with("model", model))
        };
        match (kind.as_str(), what.as_str()) {
            ("response_item", _) => self.item(&what, payload, model()),
            ("token_usage_record", _) => took(payload.inner("usage")),
            ("event_msg", "token_count") => took(payload.inner("info").inner("last_token_usage")),
            ("event_msg", "user_message") => event(Role::User, Part::text, "message"),
            ("event_msg", "agent_message") => event(Role::Assistant, Part::text, "message"),
            ("event_msg", "agent_reasoning" | "agent_reasoning_raw_content") => {
                event(Role::Assistant, Part::reasoning, "text")
            }
            ("event_msg", what) => aside(what, payload),
            (kind, _) => aside(kind, payload),
        }
    }

    /// Returns the message of an item of the Responses API.
    fn item(&self, what: &str, item: &Fields, model: Option<Json>) -> Message {
        let rest = |known: &[&str]| item.except(&["type"]).without(known);
        let id = item.id("call_id").filter(|id| !id.is_empty());
        let id = id.or_else(|| item.id("id")).unwrap_or_default();
        let call = |name: Option<String>, input: Option<&Json>| {
            let call = parts::call(name, id.clone(), input.map(chat::arguments), Outcome::Open);
            let rest = rest(&["name", "call_id", "arguments", "input", "action"]);
            let rest = rest.with("model", model.clone());
            linear::message(Role::Assistant, vec![Part::Tool(call)], rest)
        };
        let whole = || item.clone().into_json().map(Part::Other).into_iter().collect::<Vec<_>>();
        match what {
            "message" | "agent_message" | "" if !what.is_empty() || item.has("role") => {
                let role = match item.text("role").as_deref() {
                    Some("developer") => Role::System,
                    role => Role::from(role.unwrap_or("user")),
                };
                let parts = blocks::parts(item.get("content"), &self.names);
                let is_context = is_context(&parts, CONTEXT) || what == "agent_message";
                let kind =
                    json(if what.is_empty() || what == "message" { "context" } else { what });
                let kind = Some(kind).filter(|_| role == Role::User && is_context);
                let model = model.filter(|_| role == Role::Assistant);
                linear::message(
                    role,
                    parts,
                    rest(&["role", "content"]).with("kind", kind).with("model", model),
                )
            }
            "reasoning" => {
                let mut parts: Vec<Part> = thoughts(item).map(Part::reasoning).collect();
                let is_closed = parts.is_empty();
                if is_closed {
                    parts.push(Part::reasoning(""));
                }
                if let Some(Part::Reasoning(first)) = parts.first_mut() {
                    first.extra = kept(item, &OF_REASONING).into_iter().collect();
                }
                let rest = rest(&["summary", "content"]).without(&OF_REASONING);
                let message = linear::message(Role::Assistant, parts, rest.with("model", model));
                if is_closed { message.hidden() } else { message }
            }
            "function_call" | "custom_tool_call" => {
                let input = item.get("arguments").or_else(|| item.get("input"));
                call(item.text("name"), input)
            }
            "local_shell_call" => call(Some("local_shell".to_owned()), item.get("action")),
            "function_call_output" | "custom_tool_call_output" => {
                let inner = item.inner("output");
                let is_plain = !inner.has("content");
                let output = if is_plain { item.get("output") } else { inner.get("content") };
                let is_error = !is_plain && inner.is_false("success");
                let part = blocks::result(name_of(&self.names, &id), id, output, is_error);
                linear::message(Role::Tool, vec![part], rest(&["call_id", "output"]))
            }
            "image_generation_call" => {
                let image = |data| Part::file("image/png", format!("data:image/png;base64,{data}"));
                let image = item.text("result").map(|data| vec![image(data)]);
                let rest = rest(&["result"]).with("model", model);
                linear::message(Role::Assistant, image.unwrap_or_else(whole), rest)
            }
            "web_search_call" | "tool_search_call" | "tool_search_output" => {
                linear::message(Role::Assistant, whole(), Fields::default().with("model", model))
            }
            _ => aside(what, item),
        }
    }
}

impl Reader for Codex {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.check_times(record.line, &[(&entry, TIME)], "the time of the session");
        let Some(items) = entry.list("items").filter(|_| entry.get("type").is_none()) else {
            let time = entry.time(TIME);
            self.start = self.start.or(time);
            let item = unwrapped(record, entry);
            self.take((record, None), &item, time, report);
            return None;
        };
        let header = entry.inner("session");
        self.take((record, None), &Item::new("session_meta", header, ""), None, report);
        for source in items {
            let Some(item) = Fields::of(&source) else {
                report.records += 1;
                report.lose(record.line, "an item that is no object");
                continue;
            };
            let item = Item::new("response_item", item, source.as_str());
            self.take((record, Some(&source)), &item, None, report);
        }
        None
    }

    fn close(&mut self, report: &mut ImportReport) -> Option<Draft> {
        if let Some((count, line)) = self.repeats {
            let why = format!("{count} events repeat what other records say, the first one here");
            report.remark(line, why);
        }
        let mut draft = self.chain.take()?.close();
        if !self.is_named {
            let opening = self.opening.unwrap_or(draft.nodes.len());
            draft.unnamed = Some(Unnamed::only(Format::Codex.as_str(), opening, &self.from));
        }
        (self.is_named || !draft.nodes.is_empty()).then_some(draft)
    }

    fn message(&self, record: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        let time = fields.time(TIME).or(self.start).unwrap_or(self.from.now);
        Some(self.message_of(record.line, &unwrapped(record, fields)).at(time))
    }
}

/// Returns what a line is: one of the third generation, or a bare item or header of the second.
fn unwrapped(record: &Record, fields: Fields) -> Item {
    let kind = fields.text("type");
    if let (Some(kind), Some(payload)) = (&kind, fields.get("payload"))
        && let Some(inner) = Fields::of(payload)
    {
        return Item::new(kind, inner, payload.as_str());
    }
    let is_header = fields.has("id") && fields.has(TIME) && !fields.has("role");
    let kind = match kind {
        None if fields.has("record_type") => "state",
        None if is_header => "session_meta",
        _ => "response_item",
    };
    Item::new(kind, fields, &record.text)
}

/// Returns what a compaction put in the place of the messages before it.
fn summary(compacted: &Fields) -> String {
    let message = compacted.text("message").filter(|text| !text.trim().is_empty());
    message.unwrap_or_else(|| {
        let items = compacted.objects("replacement_history").into_iter();
        let said = items.map(|item| texts(&blocks::parts(item.get("content"), &ToolNames::new())));
        let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
        match said.is_empty() {
            true => "(a summary that only the provider can read)".to_owned(),
            false => said.join("\n\n"),
        }
    })
}

/// Returns what is said or thought in a message.
fn said_in(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        Part::Reasoning(reasoning) => Some(reasoning.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn is_of_person(message: &Message) -> bool {
    let about = message.metadata.as_ref().and_then(Fields::of).unwrap_or_default();
    message.role == Role::User && !about.has("kind")
}

/// Returns the thread that the name of a file ends with: `rollout-<time>-<id>.jsonl`.
fn thread_of(file: &str) -> Option<String> {
    let name = file.rsplit(['/', '\\']).next()?.strip_prefix("rollout-")?;
    let name = name.split('.').next()?;
    let start = name.len().checked_sub(36)?;
    let id = name.get(start..)?;
    uuid::Uuid::parse_str(id).is_ok().then(|| id.to_owned())
}
