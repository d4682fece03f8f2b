//! What `compact` compactions, by a command that summarizes and by hand, and how it ends where that fails.
#![cfg(unix)]

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Answer, Outcome, Rig, fields, text};
use serde_json::{Value, json};

/// Nothing is kept at the end but the last two messages: `m4` to `m18` are compacted.
const SHORT: [&str; 2] = ["--keep-recent-tokens", "100"];
/// Five messages at a time, of 72 tokens each.
const STEPS: [&str; 2] = ["--max-step-tokens", "400"];

/// Returns a rig whose session `long` holds `m1` to `m20`.
fn long() -> Rig {
    with_texts(&"word ".repeat(50))
}

fn with_texts(words: &str) -> Rig {
    let rig = Rig::empty();
    let message = |n: usize| {
        let role = if n % 2 == 1 { "user" } else { "assistant" };
        let part = json!({"type": "text", "text": format!("number {n} {words}")});
        json!({"id": format!("m{n}"), "role": role, "parts": [part]})
    };
    let messages: Vec<Value> = (1..=20).map(message).collect();
    let file = rig.file("long.json", json!({"id": "long", "messages": messages}).to_string());
    rig.ok(["import", &text(&file), "--format", "ui-message"]);
    rig
}

/// Returns the words of a `compact` that asks a command.
fn by<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["compact", "long", "--summarizer-cmd", command][..], &SHORT, more].concat()
}

fn texts(rig: &Rig) -> Vec<String> {
    let log = rig.json(["log", "long"]);
    log.iter().map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs a `compact` that must end with 7 and leave everything as it was, and returns what it said.
#[track_caller]
fn refused(rig: &Rig, command: &str, more: &[&str]) -> String {
    let told = rig.fails(7, by(command, more));
    assert_eq!(rig.json(["compact", "long", "--list"]), Vec::<Value>::new());
    told
}

fn feed(rig: &Rig, args: &[&str], input: &str) -> Answer {
    let mut command = rig.command(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Answer::of(child.wait_with_output().unwrap())
}

#[test]
fn a_command_is_given_the_prompt_and_its_answer_is_added() {
    let rig = long();
    let asked = text(&rig.path("asked"));
    let told = rig.ok(by(&format!("cat > {asked}; echo; echo '  They counted. '"), &[]));
    assert!(told.contains("laid over 15 messages: 1080 -> 8 tokens\n"), "{told}");
    let texts = texts(&rig);
    assert_eq!((texts.len(), &*texts[3]), (6, "They counted."));
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.starts_with("Summarize") && asked.contains("number 18"), "{asked}");
    assert!(!asked.contains("number 19"), "{asked}");
}

#[test]
fn what_is_long_is_compacted_in_steps_that_take_in_the_summaries_before() {
    let rig = long();
    let steps = rig.json(by("grep -o 'number [0-9]*' | tail -n 1", &STEPS));
    let brief = |step: &Value| [&step["summary"], &step["count"], &step["last"]].map(Clone::clone);
    assert_eq!(
        steps.iter().map(brief).collect::<Vec<_>>(),
        [
            [json!("number 8"), json!(5), json!("m8")],
            [json!("number 13"), json!(10), json!("m13")],
            [json!("number 18"), json!(15), json!("m18")]
        ]
    );
    assert_eq!(steps[2]["nested"], json!([steps[1]["id"]]));
    assert_eq!(texts(&rig)[3], "number 18");
}

#[test]
fn once_is_one_step() {
    let rig = long();
    let steps = rig.json(by("echo brief", &[&STEPS[..], &["--once", "--model", "small"]].concat()));
    assert_eq!((steps.len(), &steps[0]["model"]), (1, &json!("small")));
    assert_eq!(texts(&rig).len(), 16);
}

#[test]
fn another_branch_is_compacted_where_the_head_is_elsewhere() {
    let rig = long();
    rig.ok(["checkout", "long", "m2"]);
    let told = rig.run(by("echo brief", &[]));
    assert_eq!((told.code, told.stdout.as_str()), (0, ""));
    assert!(told.stderr.contains("nothing is compacted: the view has 2 messages"), "{told:?}");
    let laid = rig.json(by("echo brief", &["--at", "m10"]));
    assert_eq!((&laid[0]["first"], &laid[0]["last"]), (&json!("m4"), &json!("m8")));
    assert_eq!(rig.json(["compact", "long", "--list"])[0]["status"], "off_path");
    rig.fails(1, by("echo brief", &["--at", "nobody"]));
}

#[test]
fn head_and_tail_are_left_as_they_are() {
    let rig = long();
    let plan = |args: &[&str]| {
        let plan = rig.json([&["compact", "long", "--plan"], args].concat()).remove(0);
        [&plan["first"], &plan["last"]].map(|id| id.as_str().unwrap_or("nothing").to_owned())
    };
    assert_eq!(plan(&[]), ["nothing", "nothing"]);
    assert_eq!(plan(&["--keep-recent-tokens", "300"]), ["m4", "m16"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--min-tail", "7"]), ["m4", "m13"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--protect-head", "0"]), ["m1", "m18"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--max-step-tokens", "80"]), ["m4", "m4"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--at", "m9"]), ["m4", "m7"]);
}

#[test]
fn a_plan_shows_what_would_be_compacted_and_asks_nobody() {
    let rig = long();
    rig.ok(by("echo brief", &[&STEPS[..], &["--once"]].concat()));
    let summary = rig.json(["compact", "long", "--list"])[0]["id"].as_str().unwrap().to_owned();
    let plan = [&["compact", "long", "--plan"][..], &SHORT].concat();
    let told = rig.ok(&plan);
    for line in [
        "long: 10 messages would be compacted",
        &format!("from  compaction_{summary}"),
        "to  m18",
        &format!("summaries taken in  {summary}"),
        "tokens  726, as a summary about 145",
        "window now  1086 tokens: prompt 0, head 216, summaries 6, middle 720, tail 144",
        "window afterwards  about 505 tokens",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    let answer = rig.json(&plan).remove(0);
    assert_eq!(
        fields(&answer),
        [
            "expected_total",
            "first",
            "last",
            "leaf",
            "messages",
            "nothing",
            "session",
            "summaries",
            "target_tokens",
            "tokens",
            "usage"
        ]
    );
    assert_eq!(
        fields(&answer["usage"]),
        ["head", "middle", "prompt", "summaries", "tail", "total"]
    );
    assert_eq!((&answer["messages"], &answer["nothing"]), (&json!(10), &Value::Null));
    assert_eq!(texts(&rig).len(), 16, "nothing was done");
}

#[test]
fn a_prompt_can_be_answered_by_hand() {
    let rig = long();
    let args = [&["compact", "long", "--plan", "--prompt"][..], &SHORT].concat();
    let prompt = rig.run(&args);
    assert!(prompt.stdout.starts_with("Summarize a stretch"), "{prompt:?}");
    assert_eq!(rig.json(&args)[0]["prompt"], prompt.stdout);
    // Where the answer belongs is told beside it.
    let stretch = prompt.stderr.trim_end().split_once("--summary-file FILE ").unwrap().1;
    let words: Vec<&str> = stretch.split(' ').collect();
    assert_eq!(words, ["--from", "m4", "--to", "m18"]);
    let lay = [&["compact", "long", "--summary-file", "-", "--model", "me"], &words[..]].concat();
    let laid = feed(&rig, &lay, "They counted.\n");
    assert_eq!(laid.code, 0, "{laid:?}");
    let listed = &rig.json(["compact", "long", "--list"])[0];
    assert_eq!((&listed["summary"], &listed["model"]), (&json!("They counted."), &json!("me")));
}

#[test]
fn a_summary_by_hand_is_added_over_what_would_be_compacted() {
    let rig = long();
    let file = text(&rig.file("summary", "They counted.\n"));
    let by_hand = |option, value| [&["compact", "long", option, value], &SHORT[..]].concat();
    let told = rig.ok([by_hand("--summary-file", &file), STEPS.to_vec()].concat());
    assert!(told.contains("laid over 5 messages: 360 -> 8 tokens"), "{told}");
    assert_eq!(feed(&rig, &by_hand("--summary", "-"), "On and on.\n").code, 0);
    assert_eq!(texts(&rig)[3], "On and on.");
    let told = rig.run(by_hand("--summary", "And on."));
    assert_eq!(told.code, 0);
    assert!(
        told.stderr.contains("nothing is compacted: between head and tail lie only"),
        "{told:?}"
    );
    rig.fails(5, by_hand("--summary-file", &text(&rig.path("nowhere"))));
}

#[test]
fn a_summary_by_hand_that_is_not_shorter_is_wrong_usage() {
    let rig = long();
    let summary = "word ".repeat(2_000);
    let told = rig.fails(2, [&["compact", "long", "--summary", &summary], &SHORT[..]].concat());
    assert!(told.contains("it would replace 1080"), "{told}");
    rig.fails(2, [&["compact", "long", "--summary", " "], &SHORT[..]].concat());
}

#[test]
fn nothing_to_compact_is_no_failure_and_says_why() {
    let rig = long();
    let told = rig.run(["compact", "long", "--summarizer-cmd", "echo brief"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, ""));
    assert!(told.stderr.contains("a smaller --keep-recent-tokens"), "{told:?}");
    let told = rig.run(["compact", "long", "--plan"]);
    assert_eq!((told.code, told.stdout.starts_with("window  1440 tokens")), (0, true), "{told:?}");
    let plan = rig.json(["compact", "long", "--plan", "--prompt"]).remove(0);
    assert!(plan["nothing"].as_str().unwrap().starts_with("nothing lies between"), "{plan}");
    assert_eq!((&plan["usage"]["total"], &plan["first"]), (&json!(1440), &Value::Null));
    let prompt = rig.run(["compact", "long", "--plan", "--prompt"]);
    assert_eq!((prompt.code, prompt.stdout.as_str()), (0, ""));
}

#[test]
fn a_command_that_fails_is_told_with_what_it_complained_of() {
    let rig = long();
    let told = refused(&rig, "echo half an answer; echo 'no\u{1b}[2J key' >&2; exit 3", &[]);
    assert_eq!(
        told,
        "talktree: the summarizer ended with status 3\ntalktree:   no\\u{1b}[2J key\n"
    );
    let told = refused(&rig, "no-such-command --at-all", &[]);
    assert!(told.contains("was not found (status 127)"), "{told}");
    assert!(told.contains("no-such-command"), "{told}");
    let told = refused(&rig, "kill -9 $$", &[]);
    assert!(told.contains("was ended: signal: 9"), "{told}");
    // The end of what is long.
    let told = refused(&rig, "seq 100000 >&2; exit 1", &[]);
    assert!(told.contains("100000\n") && told.len() < 9_000, "{told}");
}

#[test]
fn a_command_that_cannot_be_started_is_told() -> Outcome {
    let rig = long();
    let answer = Answer::of(rig.command(by("echo brief", &[])).env("PATH", "/nowhere").output()?);
    assert_eq!(answer.code, 7, "{answer:?}");
    assert!(answer.stderr.contains("the summarizer cannot be started"), "{answer:?}");
    Ok(())
}

#[test]
fn an_answer_that_is_no_summary_is_refused() {
    let rig = long();
    for (command, why) in [
        ("true", "wrote no summary"),
        ("echo; echo ' '", "wrote no summary"),
        ("printf '\\342\\200\\213'", "is blank"),
        ("printf 'ab\\377'", "no UTF-8 text after 2 bytes"),
        ("cat", "it would replace 1080; at most 216 tokens are asked for"),
        ("yes", "is too long"),
    ] {
        let told = refused(&rig, command, &[]);
        assert!(told.contains(why), "{command}: {told}");
    }
}

#[test]
fn pipes_that_are_full_hold_nobody_up() {
    // A prompt of more than a pipe takes.
    let rig = with_texts(&"word ".repeat(5_000));
    let plan = rig.ok([&["compact", "long", "--plan", "--prompt"][..], &SHORT].concat());
    assert!(plan.len() > 300_000);
    // It never reads.
    assert_eq!(rig.json(by("echo brief", &["--once"]))[0]["summary"], "brief");
    let summary = rig.json(["compact", "long", "--list"])[0]["id"].as_str().unwrap().to_owned();
    rig.ok(["compact", "long", "--remove", &summary]);
    // It writes and complains of more than a pipe takes before it reads.
    let script = "seq 20000; seq 50000 >&2; cat > /dev/null";
    let laid = rig.json(by(script, &["--once"]));
    assert!(laid[0]["summary"].as_str().unwrap().ends_with("\n20000"));
}

#[test]
fn what_a_command_leaves_behind_is_not_waited_for() {
    let rig = long();
    let pid = text(&rig.path("pid"));
    rig.ok(by(&format!("sleep 600 & echo $! > {pid}; echo brief"), &[]));
    assert_eq!(texts(&rig)[3], "brief");
    kill("-KILL", &std::fs::read_to_string(pid).unwrap());
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let rig = long();
    let pids = text(&rig.path("pids"));
    let script = format!("trap '' TERM; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait");
    let told = refused(&rig, &script, &["--timeout", "1"]);
    assert!(told.contains("took longer than 1 second"), "{told}");
    assert_gone(&std::fs::read_to_string(pids).unwrap());
}

#[test]
fn a_signal_ends_the_command_and_leaves_the_session_as_it_was() -> Outcome {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let rig = long();
        let pids = text(&rig.path("pids"));
        let script = format!("sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait");
        let mut command = rig.command(by(&script, &[]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        while !rig.path("pids").exists() {
            assert!(child.try_wait()?.is_none(), "{:?}", Answer::of(child.wait_with_output()?));
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(signal, &child.id().to_string());
        let answer = Answer::of(child.wait_with_output()?);
        assert_eq!((answer.code, &*answer.stderr), (code, "talktree: stopped\n"), "{signal}");
        assert_eq!(rig.json(["compact", "long", "--list"]), Vec::<Value>::new());
        assert_gone(&std::fs::read_to_string(pids)?);
    }
    Ok(())
}

#[test]
fn a_failure_takes_back_no_summary_that_was_added_before() {
    let rig = long();
    let flag = text(&rig.path("flag"));
    let script = format!("test -e {flag} && exit 9; touch {flag}; echo brief");
    let answer = rig.run(by(&script, &STEPS));
    assert_eq!(answer.code, 7, "{answer:?}");
    assert!(answer.stdout.contains("laid over 5 messages"), "{answer:?}");
    assert_eq!(rig.json(["compact", "long", "--list"]).len(), 1);
}

#[test]
fn what_changed_meanwhile_is_not_compacted() {
    let rig = long();
    let talktree = env!("CARGO_BIN_EXE_talktree");
    let told = refused(&rig, &format!("{talktree} rm long m9 > /dev/null; echo brief"), &[]);
    assert!(told.contains("the plan is stale: message \"m9\" was deleted"), "{told}");
    assert!(told.contains("run it again"), "{told}");
    // Nor is what another summary was laid over first.
    let first = format!("{talktree} compact long --summary first --from m10 --to m11 > /dev/null");
    let told = rig.fails(7, by(&format!("{first}; echo second"), &[]));
    assert!(told.contains("the range was compacted into the summary"), "{told}");
    // A word more at the end is no such change.
    let more = r#"[{"id":"m21","role":"user","parts":[{"type":"text","text":"more"}]}]"#;
    let file = text(&rig.file("more.json", more));
    let import = format!("{talktree} import {file} --session long --format ui-message > /dev/null");
    rig.ok(by(&format!("{import}; echo brief"), &[]));
    assert_eq!(texts(&rig).last().unwrap(), "more");
}

#[test]
fn the_list_tells_what_became_of_each_summary() {
    let rig = long();
    rig.ok(by("echo brief", &[&STEPS[..], &["--once", "--model", "small"]].concat()));
    rig.ok(by("echo 'all of it'", &[]));
    let rows = rig.json(["compact", "long", "--list"]);
    assert_eq!((&rows[0]["status"], &rows[0]["under"]), (&json!("under"), &rows[1]["id"]));
    assert_eq!((&rows[1]["status"], rows[1].get("under")), (&json!("shown"), None));
    let table = rig.ok(["compact", "long", "--list"]);
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["summary", "status", "messages", "tokens", "model", "made", "text"]);
    assert_eq!(lines[1][2..5], ["5", "360 -> 6", "small"]);
    assert_eq!(lines[1][1], format!("under {}", lines[2][0]));
    assert_eq!(
        (lines[2][1], lines[2][3], lines[2].last()),
        ("shown", "726 -> 8", Some(&"all of it"))
    );
}

#[test]
fn expand_reads_one_level_or_all_messages() {
    let rig = long();
    rig.ok(by("grep -o 'number [0-9]*' | tail -n 1", &STEPS));
    let ids: Vec<String> = rig
        .json(["compact", "long", "--list"])
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    let read = |args: &[&str]| -> Vec<String> {
        let messages = rig.json([&["expand", "long"], args].concat());
        messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    };
    let second = format!("compaction_{}", ids[1]);
    assert_eq!(read(&[&ids[2]]), [&*second, "m14", "m15", "m16", "m17", "m18"]);
    assert_eq!(read(&[&second]).len(), 6);
    assert_eq!(read(&[&ids[2][ids[2].len() - 12..], "--raw"]).len(), 15);
    let told = rig.ok(["expand", "long", &ids[2]]);
    assert!(told.contains("[summary]\n  number 13\n"), "{told}");
    rig.fails(1, ["expand", "long", "nobody"]);
}

fn kill(signal: &str, pids: &str) -> bool {
    let mut command = Command::new("kill");
    command.arg(signal).args(pids.split_whitespace()).stderr(Stdio::null());
    command.status().unwrap().success()
}

/// Fails if any of these processes still runs; one that nobody has waited for yet does not.
#[track_caller]
fn assert_gone(pids: &str) {
    for pid in pids.split_whitespace() {
        let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        assert!(state.trim().is_empty() || state.starts_with('Z'), "{pid} runs: {state}");
    }
}
