//! How fast are the logs of the five most used formats imported, beside an append of the same messages, and in how much memory?
//!
//! Claude Code and Codex are the agents that most logs are of; they keep a file for each session. ChatGPT's export is one large
//! array of trees. OpenAI's chat messages and the `UIMessage`s of the AI SDK are what programs of one's own keep: a record is a
//! whole conversation. The floor is `append_all` of each session's messages, as the import stored them; both times include the
//! index. The ratio is that of the processor's times, because the disk answers at another speed each time.
//! `just bench-import --messages 1000000 --only codex`.

#![allow(clippy::print_stdout, reason = "a program to be watched")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talktree::Store;
use talktree_import::{Format, ImportOptions, import_folder};

#[allow(dead_code, reason = "shared with other benches")]
#[path = "budgets/messages.rs"]
mod messages;

use messages::{Length, Speaker};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const FORMATS: [Format; 5] =
    [Format::ClaudeCode, Format::Codex, Format::ChatGpt, Format::OpenAi, Format::UiMessage];
/// How many of a log's steps are one turn: a question, three calls with their results, an answer.
const STEPS: usize = 8;
/// The least speed beside `append_all`, and the most memory, in MiB.
const LEAST: f64 = 0.7;
const MOST: f64 = 200.0;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--child") {
        return child(&args[at + 1..]);
    }
    let value =
        |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let count: usize = value("--messages").map_or(Ok(100_000), |count| count.parse())?;
    println!("{count} messages: import beside append_all, each with the index");
    for format in FORMATS {
        if value("--only").is_none_or(|only| *only == format.to_string()) {
            measure(format, count)?;
        }
    }
    Ok(())
}

fn measure(format: Format, count: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (logs, imported) = (folder.path().join("logs"), folder.path().join("imported.db"));
    fs::create_dir(&logs)?;
    let records = generate(&logs, format, count)?;
    let bytes: u64 =
        fs::read_dir(&logs)?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    let [import, import_work, peak, stored] = ask("import", &[&logs, &imported])?;
    let [append, append_work, _, appended] =
        ask("append", &[&imported, &folder.path().join("appended.db")])?;
    assert_eq!(stored, appended, "not every message is on the path of its session");
    let speed = append_work / import_work;
    let is_within = speed >= LEAST && peak <= MOST;
    println!(
        "{:<12} {records:>8} records, {:>5} MiB, {stored:>8} messages: {:>7.0} records/s, import {import:>6.2} s \
         (processor {import_work:.2} s), append_all {append:>6.2} s ({append_work:.2} s), {speed:.2}x, {peak:>4.0} MiB{}",
        format.as_str(),
        bytes >> 20,
        records as f64 / import,
        if is_within { "" } else { "  OVER" },
    );
    Ok(())
}

/// Asks a child process for seconds, those of the processor, its greatest memory in MiB, and a number of messages.
fn ask(work: &str, paths: &[&Path]) -> Result<[f64; 4]> {
    let child =
        Command::new(std::env::current_exe()?).args(["--child", work]).args(paths).output()?;
    let output = String::from_utf8(child.stdout)?;
    let figures: Vec<f64> =
        output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let stderr = String::from_utf8_lossy(&child.stderr).into_owned();
    figures.try_into().map_err(|_| format!("the child process printed {output:?}, {stderr}").into())
}

fn child(args: &[String]) -> Result<()> {
    let [work, from, to] = args else { return Err("no files given".into()) };
    let (time, messages) = if work == "import" { import(from, to)? } else { append(from, to)? };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
    println!(
        "{} {} {} {messages}",
        time[0].as_secs_f64(),
        time[1].as_secs_f64(),
        peak.unwrap_or(0.0) / 1024.0
    );
    Ok(())
}

/// On the clock, and on the processor.
type Times = [Duration; 2];

/// Runs some work and adds its times.
fn timed<T>(times: &mut Times, work: impl FnOnce() -> talktree::Result<T>) -> Result<T> {
    let on_processor = || -> Result<Duration> {
        let about = fs::read_to_string("/proc/self/schedstat")?;
        Ok(Duration::from_nanos(about.split(' ').next().unwrap_or_default().parse()?))
    };
    let (start, before) = (Instant::now(), on_processor()?);
    let done = work()?;
    times[0] += start.elapsed();
    times[1] += on_processor()? - before;
    Ok(done)
}

fn import(logs: &str, store: &str) -> Result<(Times, u64)> {
    let (store, mut times) = (Store::open(store)?, Times::default());
    let imported =
        timed(&mut times, || import_folder(&store, logs, &ImportOptions::default(), |_| {}))?;
    timed(&mut times, || store.index(|_| {}))?;
    assert!(imported.skipped.is_empty(), "{:?}", imported.skipped);
    Ok((times, imported.reports.iter().map(|report| report.added).sum()))
}

fn append(from: &str, to: &str) -> Result<(Times, u64)> {
    let (from, store) = (Store::open(from)?, Store::open(to)?);
    let (mut times, mut count) = (Times::default(), 0);
    for info in from.sessions()? {
        let messages = from.session(&info.id)?.raw_history()?;
        count += messages.len() as u64;
        let session = store.session(info.id)?;
        timed(&mut times, || session.append_all(messages))?;
    }
    timed(&mut times, || store.index(|_| {}))?;
    Ok((times, count))
}

/// What a log tells, one after the other.
enum Step {
    Question(String),
    Call { id: String, input: String },
    Output { id: String, text: String },
    Answer(String),
}

/// Writes logs of sessions of up to 2 000 steps; returns how many records they have.
fn generate(folder: &Path, format: Format, count: usize) -> Result<usize> {
    let mut speaker = Speaker::new(7, Length::Chat);
    let (mut records, mut left, mut session) = (0, count, 0);
    let is_array = format == Format::ChatGpt;
    let mut all = None;
    while left > 0 {
        session += 1;
        let steps = left.min(STEPS * (10 + speaker.below(240)));
        left -= steps;
        let steps: Vec<Step> = (0..steps).map(|at| step(&mut speaker, session, at)).collect();
        let lines = match format {
            Format::ClaudeCode => claude_code(session, &steps),
            Format::Codex => codex(session, &steps),
            Format::ChatGpt => vec![chatgpt(session, &steps)],
            Format::OpenAi => vec![openai(session, &steps)],
            _ => vec![ui_message(session, &steps)],
        };
        let is_own_file = matches!(format, Format::ClaudeCode | Format::Codex);
        let file = match all.take().filter(|_| !is_own_file) {
            Some(file) => file,
            None => {
                let name = if is_array {
                    "conversations.json"
                } else {
                    &format!("{}.jsonl", uuid(session, 0))
                };
                BufWriter::new(File::create(folder.join(name))?)
            }
        };
        let file = all.insert(file);
        for line in &lines {
            if is_array {
                file.write_all(if session == 1 { b"[" } else { b"," })?;
            }
            serde_json::to_writer(&mut *file, line)?;
            file.write_all(b"\n")?;
        }
        if is_array && left == 0 {
            file.write_all(b"]")?;
        }
        file.flush()?;
        records += if is_own_file { lines.len() } else { steps.len() };
    }
    Ok(records)
}

fn step(speaker: &mut Speaker, session: usize, at: usize) -> Step {
    // A call and its result, which is the step after it.
    let id = format!("call_{session}_{}", at.div_ceil(2));
    let roll = speaker.random();
    match at % STEPS {
        0 => Step::Question(speaker.words(10 + (roll.powi(4) * 200.0) as usize)),
        7 => Step::Answer(speaker.words(30 + (roll.powi(4) * 300.0) as usize)),
        even if even % 2 == 0 => {
            Step::Output { id, text: speaker.words(20 + (roll.powi(4) * 600.0) as usize) }
        }
        _ => Step::Call { id, input: speaker.words(8) },
    }
}

fn uuid(session: usize, number: usize) -> String {
    format!("{session:08x}-0000-4000-8000-{number:012x}")
}

fn time(session: usize, number: usize) -> String {
    let seconds = 1_700_000_000 + session as i64 * 20_000 + number as i64 * 9;
    let time = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn claude_code(session: usize, steps: &[Step]) -> Vec<Value> {
    let line = |at: usize, kind: &str, content: Value| {
        let message = match kind {
            "user" => json!({"role": "user", "content": content}),
            _ => {
                json!({"id": format!("msg_{session}_{at}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": content, "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 9, "cache_creation_input_tokens": 350, "cache_read_input_tokens": 20_000, "output_tokens": 180}})
            }
        };
        let parent = at.checked_sub(1).map(|before| uuid(session, before + 1));
        json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/ann/project",
            "sessionId": uuid(session, 0), "version": "2.0.14", "gitBranch": "main", "type": kind, "message": message,
            "uuid": uuid(session, at + 1), "timestamp": time(session, at)})
    };
    let mut lines = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        lines.push(match step {
            Step::Question(text) => line(at, "user", json!(text)),
            Step::Answer(text) => line(at, "assistant", json!([{"type": "text", "text": text}])),
            Step::Call { id, input } => {
                let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": input, "description": "Runs it"}});
                line(at, "assistant", json!([call]))
            }
            Step::Output { id, text } => {
                let result = json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": false}]);
                let mut line = line(at, "user", result);
                line["toolUseResult"] = json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false});
                line
            }
        });
    }
    lines
}

fn codex(session: usize, steps: &[Step]) -> Vec<Value> {
    let line = |at: usize, kind: &str, payload: Value| json!({"timestamp": time(session, at), "type": kind, "payload": payload});
    let meta = json!({"id": uuid(session, 0), "timestamp": time(session, 0), "cwd": "/home/ann/project", "originator": "codex_cli_rs",
        "cli_version": "0.50.0", "instructions": null, "source": "cli", "model_provider": "openai"});
    let mut lines = vec![line(0, "session_meta", meta)];
    for (at, step) in steps.iter().enumerate() {
        let mut item = |payload| lines.push(line(at, "response_item", payload));
        match step {
            Step::Question(text) => {
                item(
                    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
                );
                lines.push(line(
                    at,
                    "event_msg",
                    json!({"type": "user_message", "message": text, "kind": "plain"}),
                ));
                let context = json!({"cwd": "/home/ann/project", "approval_policy": "on-request", "model": "gpt-5-codex", "summary": "auto"});
                lines.push(line(at, "turn_context", context));
            }
            Step::Answer(text) => {
                item(
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
                );
                lines.push(line(
                    at,
                    "event_msg",
                    json!({"type": "agent_message", "message": text}),
                ));
                let usage = json!({"input_tokens": 9_000, "cached_input_tokens": 8_000, "output_tokens": 180 + at,
                    "reasoning_output_tokens": 64, "total_tokens": 9_244 + at});
                let info = json!({"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272_000});
                lines.push(line(at, "event_msg", json!({"type": "token_count", "info": info})));
            }
            Step::Call { id, input } => {
                let arguments = json!({"command": ["bash", "-lc", input]}).to_string();
                item(
                    json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": id}),
                );
            }
            Step::Output { id, text } => {
                let output =
                    json!({"output": text, "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
                        .to_string();
                item(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
    }
    lines
}

fn chatgpt(session: usize, steps: &[Step]) -> Value {
    let mut mapping = serde_json::Map::new();
    for (at, step) in steps.iter().enumerate() {
        let (author, content, recipient) = match step {
            Step::Question(text) => (
                json!({"role": "user", "name": null}),
                json!({"content_type": "text", "parts": [text]}),
                "all",
            ),
            Step::Answer(text) => (
                json!({"role": "assistant", "name": null}),
                json!({"content_type": "text", "parts": [text]}),
                "all",
            ),
            Step::Call { input, .. } => (
                json!({"role": "assistant", "name": null}),
                json!({"content_type": "code", "language": "unknown", "text": input}),
                "python",
            ),
            Step::Output { text, .. } => (
                json!({"role": "tool", "name": "python"}),
                json!({"content_type": "execution_output", "text": text}),
                "all",
            ),
        };
        let id = uuid(session, at + 1);
        let parent = at.checked_sub(1).map(|before| uuid(session, before + 1));
        let children: Vec<String> =
            (at + 1 < steps.len()).then(|| uuid(session, at + 2)).into_iter().collect();
        let time = 1_700_000_000.5 + (session * 20_000 + at * 9) as f64;
        let message = json!({"id": id, "author": author, "create_time": time, "update_time": null, "content": content,
            "status": "finished_successfully", "end_turn": null, "weight": 1.0, "recipient": recipient, "channel": null,
            "metadata": {"model_slug": "gpt-5", "request_id": id, "timestamp_": "absolute"}});
        mapping.insert(
            id.clone(),
            json!({"id": id, "message": message, "parent": parent, "children": children}),
        );
    }
    let time = 1_700_000_000 + session * 20_000;
    json!({"title": format!("Chat {session}"), "create_time": time, "update_time": time, "mapping": mapping,
        "current_node": uuid(session, steps.len()), "conversation_id": uuid(session, 0), "id": uuid(session, 0),
        "default_model_slug": "gpt-5", "is_archived": false, "moderation_results": [], "plugin_ids": null})
}

fn openai(session: usize, steps: &[Step]) -> Value {
    let messages = steps.iter().map(|step| match step {
        Step::Question(text) => json!({"role": "user", "content": text}),
        Step::Answer(text) => json!({"role": "assistant", "content": text}),
        Step::Call { id, input } => {
            let function = json!({"name": "shell", "arguments": json!({"command": input}).to_string()});
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
        }
        Step::Output { id, text } => json!({"role": "tool", "tool_call_id": id, "content": text}),
    });
    json!({"id": uuid(session, 0), "messages": messages.collect::<Vec<_>>()})
}

fn ui_message(session: usize, steps: &[Step]) -> Value {
    let mut messages = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let (role, part) = match step {
            Step::Question(text) => ("user", json!({"type": "text", "text": text})),
            Step::Answer(text) => {
                ("assistant", json!({"type": "text", "text": text, "state": "done"}))
            }
            // Its result is a part of the call.
            Step::Call { .. } if at + 1 < steps.len() => continue,
            Step::Call { id, input } => (
                "assistant",
                json!({"type": "tool-shell", "toolCallId": id, "state": "input-available", "input": {"command": input}}),
            ),
            Step::Output { id, text } => {
                let command = match &steps[at - 1] {
                    Step::Call { input, .. } => input.as_str(),
                    _ => "",
                };
                (
                    "assistant",
                    json!({"type": "tool-shell", "toolCallId": id, "state": "output-available",
                    "input": {"command": command}, "output": {"stdout": text, "exitCode": 0}}),
                )
            }
        };
        messages.push(json!({"id": uuid(session, at + 1), "role": role, "parts": [part]}));
    }
    json!({"id": uuid(session, 0), "messages": messages})
}
