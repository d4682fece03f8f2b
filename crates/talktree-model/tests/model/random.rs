//! Random trees as requests: every request is valid for its provider, and nothing that a model should see is missing, out
//! of order or in the wrong call.
//!
//! Texts, calls, results and hidden parts have unique marks: `<w1>`, `<c2>`, `<r3>`, `<x4>`. What a model should see is
//! computed by brute force from the view alone.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{Block, Budget, Document, Error, Message, MessageId, Part, Result, Session};
use talktree_import::export::content_hash;
use talktree_model::{
    Provider, TruncateOptions, sanitize, to_anthropic, to_openai_chat, to_openai_responses,
    truncate, validate_for,
};

use crate::common::{Scratch, random};
use crate::expected::{Expected, Outcome, is_summary, marks};

/// Selects one of the existing things, however many there are.
type Pick = u16;

/// Few ids, so that calls and results meet and ids are reused; some are invalid for every provider.
const CALL_IDS: [&str; 5] = ["1", "2", "3", "functions.get:0", ""];

#[derive(Debug, Clone)]
enum Thing {
    Words,
    Blank,
    /// A text that JSON can hold and a Rust string cannot.
    LoneSurrogate,
    Reasoning(bool),
    /// A file named in brackets, an image by its URL, an image as data.
    Notes,
    Image,
    Picture,
    Unknown,
    StepStart,
    Call(usize, usize),
    Result(usize, usize),
    /// A call and its result in one part.
    Whole(usize, usize),
    Failed(usize),
    /// A call whose input is incomplete.
    Streaming(usize),
    /// A call whose input is not JSON.
    Unread(usize),
    /// A call that does not have the typed shape: a program wrote every field it knows.
    Untyped(usize),
}

#[derive(Debug, Clone)]
enum Op {
    Say {
        at: Option<Pick>,
        role: &'static str,
        things: Vec<Thing>,
        is_hidden: bool,
    },
    /// The calls of one step and their results, as programs store them.
    Work {
        ids: Vec<usize>,
        is_split: bool,
        between: u8,
        answered: u8,
        is_backward: bool,
    },
    Update(Pick, Vec<Thing>),
    Finish(Pick),
    Delete(Vec<Pick>),
    DeleteBranch(Pick),
    Checkout(Pick),
    Compact(Pick, Pick, Pick),
    RemoveCompaction(Pick),
    Load,
    Unload,
    Fork(Pick),
    Reopen,
}

fn things() -> impl Strategy<Value = Vec<Thing>> {
    let id = || 0..CALL_IDS.len();
    let thing = prop_oneof![
        5 => Just(Thing::Words),
        1 => Just(Thing::Blank),
        1 => Just(Thing::LoneSurrogate),
        1 => any::<bool>().prop_map(Thing::Reasoning),
        1 => Just(Thing::Notes),
        1 => Just(Thing::Image),
        1 => Just(Thing::Picture),
        1 => Just(Thing::Unknown),
        1 => Just(Thing::StepStart),
        3 => (id(), 0..4_usize).prop_map(|(id, kind)| Thing::Call(id, kind)),
        3 => (id(), 0..6_usize).prop_map(|(id, kind)| Thing::Result(id, kind)),
        1 => (id(), 0..6_usize).prop_map(|(id, kind)| Thing::Whole(id, kind)),
        1 => id().prop_map(Thing::Failed),
        1 => id().prop_map(Thing::Streaming),
        1 => id().prop_map(Thing::Unread),
        1 => id().prop_map(Thing::Untyped),
    ];
    prop::collection::vec(thing, 0..4)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let roles = prop_oneof![
        4 => Just("assistant"),
        4 => Just("user"),
        2 => Just("tool"),
        1 => Just("system"),
        1 => Just("developer"),
        1 => Just("critic"),
    ];
    let pick = any::<Pick>;
    let say = (prop::option::weighted(0.2, pick()), roles, things(), prop::bool::weighted(0.05))
        .prop_map(|(at, role, things, is_hidden)| Op::Say { at, role, things, is_hidden });
    let ids = prop::collection::vec(0..CALL_IDS.len(), 1..4);
    let work = (ids, any::<bool>(), 0..3_u8, 0..5_u8, any::<bool>()).prop_map(
        |(ids, is_split, between, answered, is_backward)| Op::Work {
            ids,
            is_split,
            between,
            answered,
            is_backward,
        },
    );
    let op = prop_oneof![
        12 => say,
        8 => work,
        2 => (pick(), things()).prop_map(|(at, things)| Op::Update(at, things)),
        2 => pick().prop_map(Op::Finish),
        2 => prop::collection::vec(pick(), 1..3).prop_map(Op::Delete),
        1 => pick().prop_map(Op::DeleteBranch),
        3 => pick().prop_map(Op::Checkout),
        5 => (pick(), pick(), pick()).prop_map(|(at, first, last)| Op::Compact(at, first, last)),
        1 => pick().prop_map(Op::RemoveCompaction),
        2 => Just(Op::Load),
        2 => Just(Op::Unload),
        1 => pick().prop_map(Op::Fork),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..40)
}

/// How often each situation that this test must cover has occurred.
type Seen = RefCell<BTreeMap<&'static str, usize>>;

fn saw(seen: &Seen, what: &'static str, times: usize) {
    *seen.borrow_mut().entry(what).or_default() += times;
}

struct World<'a> {
    scratch: Scratch,
    sessions: usize,
    chat: Session,
    /// The ids of all messages ever appended, in any session.
    ids: Vec<MessageId>,
    marks: usize,
    seen: &'a Seen,
}

impl<'a> World<'a> {
    fn new(seen: &'a Seen) -> Result<Self> {
        let scratch = Scratch::new()?;
        let chat = open(&scratch, 0)?;
        let book = Document::new("book", format!("A long text. {}", "z".repeat(200)));
        chat.context().set_document("skills", &book)?;
        Ok(Self { scratch, sessions: 1, chat, ids: Vec::new(), marks: 0, seen })
    }

    fn mark(&mut self, kind: char) -> String {
        self.marks += 1;
        format!("<{kind}{}>", self.marks)
    }

    /// Returns a text that begins with a mark and may be long enough to be truncated.
    fn long(&mut self, kind: char) -> String {
        let mark = self.mark(kind);
        let rest = if self.marks.is_multiple_of(3) { "y".repeat(300) } else { "y".to_owned() };
        format!("{mark} {rest}")
    }

    /// Returns a message of the current session; `None` if there is none.
    fn pick(&self, pick: Pick) -> Result<Option<MessageId>> {
        let mut living = Vec::new();
        for id in &self.ids {
            if self.chat.message(id)?.is_some() {
                living.push(id);
            }
        }
        Ok(living.get(usize::from(pick) % living.len().max(1)).map(|id| (*id).clone()))
    }

    fn input(&mut self, kind: usize) -> Value {
        let mark = self.mark('c');
        match kind {
            0 => json!({"q": mark}),
            1 => json!(format!("{{\"q\": \"{mark}\"}}")),
            2 => json!(format!("no JSON {mark}")),
            _ => json!([mark]),
        }
    }

    fn output(&mut self, kind: usize) -> Value {
        let text = self.long('r');
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        match kind {
            0 => json!(text),
            1 => json!({"out": text, "code": 0}),
            2 => json!([{"type": "text", "text": text}, image]),
            3 => json!([text, 2, 3]),
            4 => json!(""),
            _ => json!([{"type": "text", "text": text}]),
        }
    }

    fn part(&mut self, thing: &Thing) -> Part {
        let tool = |id: usize| json!({"type": "tool-get it", "toolCallId": CALL_IDS[id]});
        let mut json = match thing {
            Thing::Words => json!({"type": "text", "text": self.long('w')}),
            Thing::Blank => json!({"type": "text", "text": " \n"}),
            Thing::LoneSurrogate => {
                let json = format!(r#"{{"type": "text", "text": "{} \ud800"}}"#, self.mark('w'));
                return serde_json::from_str(&json).unwrap();
            }
            Thing::Reasoning(false) => json!({"type": "reasoning", "text": "hm"}),
            Thing::Reasoning(true) => {
                let id = format!("rs_{}", self.marks);
                json!({"type": "reasoning", "text": "hm", "signature": "s", "id": id})
            }
            Thing::Notes => {
                let name = self.mark('w');
                json!({"type": "file", "mediaType": "text/plain", "url": "notes.txt",
                       "filename": name})
            }
            Thing::Image => {
                let url = format!("https://example.org/{}.png", self.mark('w'));
                json!({"type": "file", "mediaType": "image/png", "url": url})
            }
            Thing::Picture => {
                json!({"type": "file", "mediaType": "image/png",
                       "url": "data:image/png;base64,AAAA"})
            }
            Thing::Unknown => json!({"type": "data-weather", "data": self.mark('x')}),
            Thing::StepStart => json!({"type": "step-start"}),
            Thing::Call(id, _) | Thing::Result(id, _) | Thing::Whole(id, _) => tool(*id),
            Thing::Failed(id) | Thing::Streaming(id) => tool(*id),
            Thing::Unread(id) | Thing::Untyped(id) => tool(*id),
        };
        if let Thing::Call(_, kind) | Thing::Whole(_, kind) = thing {
            json["input"] = self.input(*kind);
        }
        match thing {
            // An older format calls it `result`.
            Thing::Result(_, 5) => json["result"] = self.output(0),
            Thing::Result(_, kind) | Thing::Whole(_, kind) => json["output"] = self.output(*kind),
            Thing::Failed(_) => json["errorText"] = self.long('r').into(),
            Thing::Untyped(_) => {
                json["input"] = self.mark('c').into();
                json["errorText"] = Value::Null;
            }
            Thing::Streaming(_) => json["state"] = "input-streaming".into(),
            Thing::Unread(_) => {
                json["rawInput"] = self.mark('c').into();
                json["errorText"] = self.long('r').into();
            }
            _ => {}
        }
        serde_json::from_value(json).unwrap()
    }

    fn message(&mut self, role: &str, things: &[Thing]) -> Message {
        let parts = things.iter().map(|thing| self.part(thing)).collect();
        let id = format!("m{}", self.ids.len());
        self.ids.push(id.as_str().into());
        Message::new(role, parts).with_id(id)
    }

    fn append(&mut self, role: &str, things: &[Thing]) -> Result<()> {
        let message = self.message(role, things);
        self.chat.append(message).map(drop)
    }

    fn run(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Say { at, role, things, is_hidden } => {
                let at = at.map(|at| self.pick(at)).transpose()?.flatten();
                let mut message = self.message(role, things);
                if *is_hidden {
                    message = message.hidden();
                }
                match at {
                    Some(at) => self.chat.append_to(&at, message)?,
                    None => self.chat.append(message)?,
                };
            }
            Op::Work { ids, is_split, between, answered, is_backward } => {
                let calls: Vec<_> = ids.iter().map(|id| Thing::Call(*id, 0)).collect();
                for step in calls.chunks(if *is_split { 1 } else { calls.len() }) {
                    self.append("assistant", step)?;
                }
                for _ in 0..*between {
                    self.append("user", &[Thing::Words])?;
                }
                // Some calls get no result, others two.
                let results = ids.iter().cycle().take((*answered).into());
                let mut results: Vec<_> = results.map(|id| Thing::Result(*id, 0)).collect();
                if *is_backward {
                    results.reverse();
                }
                for result in results {
                    self.append("tool", &[result])?;
                }
            }
            Op::Update(at, things) => {
                let Some(id) = self.pick(*at)? else { return Ok(()) };
                let Some(mut message) = self.chat.message(&id)? else { return Ok(()) };
                message.parts = things.iter().map(|thing| self.part(thing)).collect();
                self.chat.update(message)?;
            }
            Op::Finish(at) => {
                let Some(id) = self.pick(*at)? else { return Ok(()) };
                let Some(mut message) = self.chat.message(&id)? else { return Ok(()) };
                let output = self.output(1);
                for part in &mut message.parts {
                    if let Part::Tool(tool) = part
                        && tool.output.is_none()
                        && tool.input.is_some()
                    {
                        tool.output = Some(output.into());
                        break;
                    }
                }
                self.chat.update(message)?;
            }
            Op::Delete(picks) => {
                for pick in picks {
                    if let Some(id) = self.pick(*pick)? {
                        self.chat.delete([&id])?;
                    }
                }
            }
            Op::DeleteBranch(at) => {
                if let Some(id) = self.pick(*at)? {
                    self.chat.delete_branch(&id)?;
                }
            }
            Op::Checkout(at) => {
                if let Some(id) = self.pick(*at)? {
                    self.chat.checkout(&id)?;
                }
            }
            Op::Compact(at, first, last) => self.compact(*at, *first, *last)?,
            Op::RemoveCompaction(pick) => {
                let compactions = self.chat.compactions()?;
                if let Some(compaction) =
                    compactions.get(usize::from(*pick) % compactions.len().max(1))
                {
                    self.chat.remove_compaction(&compaction.id)?;
                }
            }
            Op::Load | Op::Unload => {
                let name = if matches!(op, Op::Load) { "load_context" } else { "unload_context" };
                let input = json!({"label": "skills", "key": "book"});
                let answer = self.chat.tools().call(name, input)?;
                self.marks += 1;
                let id = format!("skill{}", self.marks);
                let mut question = self.message("assistant", &[]);
                let input = json!({"label": "skills", "key": "book", "mark": self.mark('c')});
                question.parts.push(Part::tool_call(name, id.as_str(), input));
                self.chat.append(question)?;
                let mut answer_message = self.message("tool", &[]);
                answer_message.parts.push(Part::tool_result(name, id, json!(answer)));
                self.chat.append(answer_message)?;
            }
            Op::Fork(at) => {
                let Some(id) = self.pick(*at)? else { return Ok(()) };
                self.chat.fork_as(&self.sessions.to_string().into(), &id, "fork")?;
                self.chat = open(&self.scratch, self.sessions)?;
                self.sessions += 1;
            }
            Op::Reopen => {
                self.scratch.reopen()?;
                self.chat = open(&self.scratch, self.sessions - 1)?;
            }
        }
        Ok(())
    }

    /// Compacts a range of the view at a message; the range may contain compactions.
    fn compact(&mut self, at: Pick, first: Pick, last: Pick) -> Result<()> {
        let Some(leaf) = self.pick(at)? else { return Ok(()) };
        let view = self.chat.at(&leaf).history()?;
        if view.is_empty() {
            return Ok(());
        }
        let (first, last) = (usize::from(first) % view.len(), usize::from(last) % view.len());
        let (first, last) = (first.min(last), first.max(last));
        let summary = self.long('w');
        match self.chat.add_compaction(summary, &view[first].id, &view[last].id) {
            Ok(_) | Err(Error::InsideSummary { .. } | Error::NothingVisible { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Checks every path of every session; returns the requests.
    fn check(&self) -> Result<Vec<String>> {
        let hash = content_hash(&self.scratch.store)?;
        let mut written = Vec::new();
        for session in 0..self.sessions {
            let chat = open(&self.scratch, session)?;
            for leaf in chat.leaves()? {
                let shown = chat.at(&leaf).history()?;
                written.extend(check_view(&shown, self.seen));
                written.extend(check_view(&chat.at(&leaf).raw_history()?, self.seen));
                for budget in [Budget::messages(1), Budget::messages(5), Budget::tokens(60)] {
                    let window = chat.at(&leaf).recent(budget)?.messages;
                    saw(self.seen, "windows", usize::from(window.len() < shown.len()));
                    check_view(&window, self.seen);
                }
                // A window that begins at any message.
                check_view(&shown[shown.len() / 2..], self.seen);
            }
        }
        assert_eq!(content_hash(&self.scratch.store)?, hash, "a read changed stored rows");
        Ok(written)
    }
}

fn open(scratch: &Scratch, session: usize) -> Result<Session> {
    let builder = scratch.store.session_builder(session.to_string());
    builder.block("skills", Block::stored_skills()).open()
}

/// Checks the requests made from a view; returns them.
fn check_view(view: &[Message], seen: &Seen) -> Vec<String> {
    let expected = Expected::of(view);
    let sane = sanitize(view);
    assert!(matches!(sanitize(&sane), Cow::Borrowed(_)), "{sane:#?}");
    let options = TruncateOptions {
        keep_whole: 2,
        max_text_chars: 60,
        max_output_chars: 150,
        ..Default::default()
    };
    let cut = truncate(&sane, &options);
    assert_eq!(cut.len(), sane.len());
    assert_eq!(cut[cut.len().saturating_sub(2)..], sane[sane.len().saturating_sub(2)..]);
    saw(seen, "cut", usize::from(matches!(cut, Cow::Owned(_))));
    saw(seen, "strays", expected.strays);
    saw(seen, "summaries", view.iter().filter(|message| is_summary(message)).count());
    let unloaded = |message: &&Message| {
        let json = serde_json::to_string(&message.parts).unwrap();
        json.contains("[unloaded; load_context")
    };
    saw(seen, "elided", view.iter().filter(unloaded).count());
    for call in &expected.calls {
        saw(seen, "calls", 1);
        match &call.outcome {
            Some(Outcome::Nothing(None)) => saw(seen, "stubs", 1),
            Some(Outcome::Nothing(Some(_))) => saw(seen, "stubs that name a summary", 1),
            _ if call.is_direct => saw(seen, "results right behind", 1),
            _ => saw(seen, "results later", 1),
        }
    }
    let mut written = Vec::new();
    for view in [&sane, &cut] {
        for (provider, convert) in [
            (Provider::Anthropic, to_anthropic as fn(&[Message]) -> Value),
            (Provider::OpenAiChat, to_openai_chat),
            (Provider::OpenAiResponses, to_openai_responses),
        ] {
            let request = convert(view);
            let problems = validate_for(provider, &request);
            assert!(problems.is_empty(), "{provider}: {problems:#?}\n{request:#}\n{view:#?}");
            check_request(provider, &request, &expected);
            written.push(request.to_string());
            assert_eq!(convert(view).to_string(), request.to_string());
        }
    }
    written
}

/// Checks a request against what a model should see.
fn check_request(provider: Provider, request: &Value, expected: &Expected) {
    let of = |kind: char, value: &Value| -> Vec<String> {
        marks(value).into_iter().filter(|mark| mark.starts_with(kind)).collect()
    };
    let texts = |is_system: Option<bool>| -> Vec<String> {
        let texts = expected.texts.iter().filter(|text| is_system.is_none_or(|is| is == text.1));
        texts.map(|(mark, _)| mark.clone()).collect()
    };
    match provider {
        Provider::Anthropic => {
            assert_eq!(of('w', &request["system"]), texts(Some(true)), "{request:#}");
            assert_eq!(of('w', &request["messages"]), texts(Some(false)), "{request:#}");
        }
        _ => assert_eq!(of('w', request), texts(None), "{provider}: {request:#}"),
    }
    assert!(of('x', request).is_empty(), "{request:#}");

    let (calls, results) = calls_and_results(request);
    assert_eq!(calls.len(), expected.calls.len(), "{request:#}");
    let mut expected_results = Vec::new();
    for ((id, input), call) in calls.iter().zip(&expected.calls) {
        // Calls of skills have marks, too, and no call occurs twice.
        assert_eq!(marks(input), [call.mark.as_str()], "{request:#}");
        let result = &results[id];
        let text = result.to_string();
        match call.outcome.as_ref().unwrap() {
            Outcome::Nothing(summary) => {
                assert!(text.contains("[the result is not here"), "{call:?}: {text}");
                let names = |id: &MessageId| text.contains(id.as_str());
                assert!(summary.as_ref().is_none_or(names), "{call:?}: {text}");
                assert_eq!(text.contains("compaction_"), summary.is_some(), "{call:?}: {text}");
            }
            Outcome::Result(mark) => {
                assert!(!text.contains("[the result is not here"), "{call:?}: {text}");
                expected_results.extend(mark.clone());
                if let Some(mark) = mark
                    && (call.is_direct || !marks(result).is_empty())
                {
                    assert_eq!(marks(result), [mark.as_str()], "{call:?}\n{request:#}");
                }
            }
        }
    }
    // Each result occurs once: directly after its call or later.
    let mut found = of('r', request);
    found.sort_unstable();
    expected_results.sort_unstable();
    assert_eq!(found, expected_results, "{request:#}");
}

/// Returns the calls of a request with their ids and arguments, and the results by id.
fn calls_and_results(request: &Value) -> (Vec<(String, Value)>, BTreeMap<String, Value>) {
    let (mut calls, mut results) = (Vec::new(), BTreeMap::new());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = request.get("messages").unwrap_or(request);
    for item in list.as_array().unwrap() {
        for call in item["tool_calls"].as_array().into_iter().flatten() {
            calls.push((text(&call["id"]), call["function"]["arguments"].clone()));
        }
        if item["role"] == "tool" {
            results.insert(text(&item["tool_call_id"]), item["content"].clone());
        }
        match item["type"].as_str() {
            Some("function_call") => {
                calls.push((text(&item["call_id"]), item["arguments"].clone()))
            }
            Some("function_call_output") => {
                results.insert(text(&item["call_id"]), item["output"].clone());
            }
            _ => {}
        }
        for block in item["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => calls.push((text(&block["id"]), block["input"].clone())),
                Some("tool_result") => {
                    results.insert(text(&block["tool_use_id"]), block["content"].clone());
                }
                _ => {}
            }
        }
    }
    (calls, results)
}

fn run(ops: &[Op], seen: &Seen) -> Result<()> {
    let mut world = World::new(seen)?;
    for (step, op) in ops.iter().enumerate() {
        world.run(op)?;
        if step % 8 == 7 {
            world.check()?;
        }
    }
    let written = world.check()?;
    world.run(&Op::Reopen)?;
    assert_eq!(world.check()?, written, "a reopened store gives the same requests");
    Ok(())
}

/// The reckoning of this test took an empty result that comes late for none, and expected too much of the next calls.
#[test]
fn a_late_empty_result_parts_what_follows() {
    let call = |id: &str, mark: &str| Part::tool_call("get it", id, json!({"q": mark}));
    let result = |id: &str, text: &str| Part::tool_result("get it", id, json!(text));
    let of = |role: &str, parts: Vec<Part>| Message::new(role, parts);
    let view = [
        of("assistant", vec![call("", "<c1>")]),
        of("assistant", vec![Part::text("<w2>")]),
        of("assistant", vec![call("1", "<c3>")]),
        of("tool", vec![result("", ""), call("2", "<c4>")]),
        of("tool", vec![result("1", "<r5>")]),
    ];
    check_view(&view, &Seen::default());
}

#[test]
fn a_model_sees_what_it_should_of_random_trees() -> std::result::Result<(), String> {
    // Fewer cases would not cover every situation that is required at the end.
    let seen = Seen::default();
    random::check_all(random::cases(48).max(48), &ops(), |ops| run(&ops, &seen))?;
    let seen = seen.into_inner();
    println!("{seen:?}");
    for what in [
        "calls",
        "cut",
        "elided",
        "results later",
        "results right behind",
        "strays",
        "stubs",
        "stubs that name a summary",
        "summaries",
        "windows",
    ] {
        assert!(seen.get(what).is_some_and(|times| *times > 0), "{what} never occurred: {seen:?}");
    }
    Ok(())
}
