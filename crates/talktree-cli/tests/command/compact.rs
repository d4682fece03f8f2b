//! `compact` with a summarizer command and with a given summary, and how its failures are reported.
#![cfg(unix)]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Answer, Outcome, Rig, fields, text};
use serde_json::{Value, json};

/// Keeps only the last two messages, so that `m4` to `m18` are compacted.
const SHORT: [&str; 2] = ["--keep-recent-tokens", "100"];
/// Steps of five messages with 72 tokens each.
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

/// Returns the arguments of a `compact` with a summarizer command.
fn by<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["compact", "long", "--summarizer-cmd", command][..], &SHORT, more].concat()
}

fn texts(rig: &Rig) -> Vec<String> {
    let log = rig.json(["log", "long"]);
    log.iter().map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs a `compact` that must exit with 7 and add no compaction, and returns its stderr.
#[track_caller]
fn refused(rig: &Rig, command: &str, more: &[&str]) -> String {
    let printed = rig.fails(7, by(command, more));
    assert_eq!(rig.json(["compact", "long", "--list"]), Vec::<Value>::new());
    printed
}

fn feed(rig: &Rig, args: &[&str], input: &str) -> Answer {
    let mut command = rig.command(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Answer::of(child.wait_with_output().unwrap())
}

#[test]
fn a_command_reads_the_prompt_and_writes_the_summary() {
    let rig = long();
    let asked = text(&rig.path("asked"));
    let printed = rig.ok(by(&format!("cat > {asked}; echo; echo '  They counted. '"), &[]));
    assert!(
        printed.contains("compacted 15 messages, 1080 tokens into 8: compaction "),
        "{printed}"
    );
    let texts = texts(&rig);
    assert_eq!((texts.len(), &*texts[3]), (6, "They counted."));
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.starts_with("Summarize") && asked.contains("number 18"), "{asked}");
    assert!(!asked.contains("number 19"), "{asked}");
}

#[test]
fn a_long_history_is_compacted_in_steps_and_each_contains_the_one_before() {
    let rig = long();
    let steps = rig.json(by("grep -o 'number [0-9]*' | tail -n 1", &STEPS));
    let brief = |step: &Value| [&step["summary"], &step["count"], &step["last"]].map(Clone::clone);
    assert_eq!(
        steps.iter().map(brief).collect::<Vec<_>>(),
        [
            [json!("number 8"), json!(5), json!("m8")],
            [json!("number 12"), json!(9), json!("m12")],
            [json!("number 16"), json!(13), json!("m16")],
            [json!("number 18"), json!(15), json!("m18")]
        ]
    );
    assert_eq!(steps[3]["nested"], json!([steps[2]["id"]]));
    assert_eq!(texts(&rig)[3], "number 18");
}

#[test]
fn once_stops_after_one_step() {
    let rig = long();
    let steps = rig.json(by("echo brief", &[&STEPS[..], &["--once", "--model", "small"]].concat()));
    assert_eq!((steps.len(), &steps[0]["model"]), (1, &json!("small")));
    assert_eq!(texts(&rig).len(), 16);
}

/// `log` prints the id of a summary, and `checkout`, `label`, `fork` and `export` did not know it.
#[test]
fn the_id_of_a_summary_names_the_place_of_its_last_message() {
    let rig = long();
    rig.ok(by("echo brief", &[]));
    let id = rig.json(["compact", "long", "--list"])[0]["id"].as_str().unwrap().to_owned();
    let summary = &format!("compaction_{id}");
    let log = rig.json(["log", "long", "--at", summary]);
    let ids: Vec<&Value> = log.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&json!("m1"), &json!("m2"), &json!("m3"), &json!(summary)]);
    assert!(rig.ok(["show", "long", summary]).contains("children  m19"));
    assert!(rig.ok(["export", "long", "--format", "markdown", "--at", summary]).contains("brief"));
    rig.ok(["label", "long", "then", summary]);
    assert!(rig.ok(["show", "long", "then"]).contains("number 18"));
    rig.ok(["fork", "long", summary, "A fork"]);
    assert_eq!(rig.json(["log", "A fork"]).len(), 4);
    rig.ok(["checkout", "long", summary]);
    assert_eq!(texts(&rig).last().map(String::as_str), Some("brief"));
}

#[test]
fn a_branch_away_from_the_head_can_be_compacted() {
    let rig = long();
    rig.ok(["checkout", "long", "m2"]);
    let printed = rig.run(by("echo brief", &[]));
    assert_eq!((printed.code, printed.stdout.as_str()), (0, ""));
    assert!(printed.stderr.contains("nothing to compact: "), "{printed:?}");
    let added = rig.json(by("echo brief", &["--at", "m10"]));
    assert_eq!((&added[0]["first"], &added[0]["last"]), (&json!("m4"), &json!("m8")));
    assert_eq!(rig.json(["compact", "long", "--list"])[0]["status"], "off_path");
    rig.fails(1, by("echo brief", &["--at", "nobody"]));
}

#[test]
fn the_first_and_last_messages_are_kept() {
    let rig = long();
    let plan = |args: &[&str]| {
        let plan = rig.json([&["compact", "long", "--plan"], args].concat()).remove(0);
        [&plan["first"], &plan["last"]].map(|id| id.as_str().unwrap_or("nothing").to_owned())
    };
    assert_eq!(plan(&[]), ["nothing", "nothing"]);
    assert_eq!(plan(&["--keep-recent-tokens", "300"]), ["m4", "m16"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--min-tail", "7"]), ["m4", "m12"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--protect-head", "0"]), ["m1", "m18"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--max-step-tokens", "80"]), ["m4", "m4"]);
    assert_eq!(plan(&["--keep-recent-tokens", "0", "--at", "m9"]), ["m4", "m6"]);
}

#[test]
fn a_plan_changes_nothing_and_runs_no_command() {
    let rig = long();
    rig.ok(by("echo brief", &[&STEPS[..], &["--once"]].concat()));
    let summary = rig.json(["compact", "long", "--list"])[0]["id"].as_str().unwrap().to_owned();
    let short = &summary[summary.len() - 8..];
    let plan = [&["compact", "long", "--plan"][..], &SHORT].concat();
    let printed = rig.ok(&plan);
    for line in [
        &format!("from               {short}"),
        "to                 m18",
        &format!("earlier summaries  {short}"),
        "summary            at most 145 tokens, in place of 726",
        "window now         1086 tokens: prompt 0, tools 0, head 216, summaries 6, middle 720, tail 144",
        "window after       about 505 tokens",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
    assert!(printed.lines().any(|line| line.ends_with(": 10 messages would become a summary")));
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
        ["head", "middle", "prompt", "summaries", "tail", "tools", "total"]
    );
    assert_eq!((&answer["messages"], &answer["nothing"]), (&json!(10), &Value::Null));
    assert_eq!(texts(&rig).len(), 16, "the history is unchanged");
}

#[test]
fn the_answer_to_a_printed_prompt_can_be_added_later() {
    let rig = long();
    let args = [&["compact", "long", "--plan", "--prompt"][..], &SHORT].concat();
    let prompt = rig.run(&args);
    assert!(prompt.stdout.starts_with("Summarize"), "{prompt:?}");
    assert_eq!(rig.json(&args)[0]["prompt"], prompt.stdout);
    // stderr names the range for the answer.
    let range = prompt.stderr.trim_end().split_once("--summary-file FILE ").unwrap().1;
    let words: Vec<&str> = range.split(' ').collect();
    assert_eq!(words, ["--from", "m4", "--to", "m18"]);
    let add = [&["compact", "long", "--summary-file", "-", "--model", "me"], &words[..]].concat();
    let added = feed(&rig, &add, "They counted.\n");
    assert_eq!(added.code, 0, "{added:?}");
    let listed = &rig.json(["compact", "long", "--list"])[0];
    assert_eq!((&listed["summary"], &listed["model"]), (&json!("They counted."), &json!("me")));
}

#[test]
fn a_given_summary_replaces_the_planned_range() {
    let rig = long();
    let file = text(&rig.file("summary", "They counted.\n"));
    let given = |option, value| [&["compact", "long", option, value], &SHORT[..]].concat();
    let printed = rig.ok([given("--summary-file", &file), STEPS.to_vec()].concat());
    assert!(printed.contains("compacted 5 messages, 360 tokens into 8"), "{printed}");
    assert_eq!(feed(&rig, &given("--summary", "-"), "On and on.\n").code, 0);
    assert_eq!(texts(&rig)[3], "On and on.");
    let printed = rig.run(given("--summary", "And on."));
    assert_eq!(printed.code, 0);
    assert!(printed.stderr.contains("nothing to compact: "), "{printed:?}");
    rig.fails(5, given("--summary-file", &text(&rig.path("nowhere"))));
}

#[test]
fn a_given_summary_that_is_not_shorter_is_wrong_usage() {
    let rig = long();
    let summary = "word ".repeat(2_000);
    let printed = rig.fails(2, [&["compact", "long", "--summary", &summary], &SHORT[..]].concat());
    assert!(printed.contains("1080"), "{printed}");
    rig.fails(2, [&["compact", "long", "--summary", " "], &SHORT[..]].concat());
}

#[test]
fn nothing_to_compact_is_a_success_with_a_reason() {
    let rig = long();
    let printed = rig.run(["compact", "long", "--summarizer-cmd", "echo brief"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (0, ""));
    assert!(printed.stderr.contains("a smaller --keep-recent-tokens"), "{printed:?}");
    let printed = rig.run(["compact", "long", "--plan"]);
    assert_eq!(
        (printed.code, printed.stdout.starts_with("window  1440 tokens")),
        (0, true),
        "{printed:?}"
    );
    let plan = rig.json(["compact", "long", "--plan", "--prompt"]).remove(0);
    assert!(plan["nothing"].as_str().is_some_and(|why| !why.is_empty()), "{plan}");
    assert_eq!((&plan["usage"]["total"], &plan["first"]), (&json!(1440), &Value::Null));
    let prompt = rig.run(["compact", "long", "--plan", "--prompt"]);
    assert_eq!((prompt.code, prompt.stdout.as_str()), (0, ""));
}

#[test]
fn a_failed_command_is_reported_with_the_end_of_its_stderr() {
    let rig = long();
    let printed = refused(&rig, "echo half an answer; echo 'no\u{1b}[2J key' >&2; exit 3", &[]);
    assert_eq!(
        printed,
        "talktree: the summarizer exited with status 3\ntalktree:   no\\u{1b}[2J key\n"
    );
    let printed = refused(&rig, "no-such-command --at-all", &[]);
    assert!(printed.contains("was not found (status 127)"), "{printed}");
    assert!(printed.contains("no-such-command"), "{printed}");
    let printed = refused(&rig, "kill -9 $$", &[]);
    assert!(printed.contains("was killed: signal: 9"), "{printed}");
    // Only the end of a long stderr is shown.
    let printed = refused(&rig, "seq 100000 >&2; exit 1", &[]);
    assert!(printed.contains("100000\n") && printed.len() < 9_000, "{printed}");
}

#[test]
fn a_command_that_cannot_be_started_is_reported() -> Outcome {
    let rig = long();
    let answer = Answer::of(rig.command(by("echo brief", &[])).env("PATH", "/nowhere").output()?);
    assert_eq!(answer.code, 7, "{answer:?}");
    assert!(answer.stderr.contains("the summarizer cannot be started"), "{answer:?}");
    Ok(())
}

#[test]
fn a_bad_answer_is_refused_with_its_reason() {
    let rig = long();
    for (command, why) in [
        ("true", "wrote no summary"),
        ("echo; echo ' '", "wrote no summary"),
        ("printf '\\342\\200\\213'", "refused"),
        ("printf 'ab\\377'", "not UTF-8 text after byte 2"),
        ("cat", "the prompt asks for at most 216 tokens"),
        ("yes", "is too long"),
    ] {
        let printed = refused(&rig, command, &[]);
        assert!(printed.contains(why), "{command}: {printed}");
    }
}

#[test]
fn full_pipes_do_not_block() {
    // A prompt longer than the buffer of a pipe.
    let rig = with_texts(&"word ".repeat(5_000));
    let plan = rig.ok([&["compact", "long", "--plan", "--prompt"][..], &SHORT].concat());
    assert!(plan.len() > 300_000);
    // The command never reads it.
    assert_eq!(rig.json(by("echo brief", &["--once"]))[0]["summary"], "brief");
    let summary = rig.json(["compact", "long", "--list"])[0]["id"].as_str().unwrap().to_owned();
    rig.ok(["compact", "long", "--remove", &summary]);
    // The command fills stdout and stderr before it reads.
    let script = "seq 20000; seq 50000 >&2; cat > /dev/null";
    let added = rig.json(by(script, &["--once"]));
    assert!(added[0]["summary"].as_str().unwrap().ends_with("\n20000"));
}

#[test]
fn a_process_left_behind_is_not_waited_for() {
    let rig = long();
    let pid = text(&rig.path("pid"));
    rig.ok(by(&format!("sleep 600 & echo $! > {pid}; echo brief"), &[]));
    assert_eq!(texts(&rig)[3], "brief");
    kill("-KILL", &std::fs::read_to_string(pid).unwrap());
}

#[test]
fn a_command_over_its_time_limit_is_killed_with_all_processes_it_started() {
    let rig = long();
    let pids = text(&rig.path("pids"));
    let script = format!("trap '' TERM; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait");
    let printed = refused(&rig, &script, &["--timeout", "1"]);
    assert!(printed.contains("took longer than 1 second"), "{printed}");
    assert_gone(&std::fs::read_to_string(pids).unwrap());
}

/// Such a process cannot be killed with the command. It must not keep talktree waiting.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_left_the_group_is_not_waited_for() {
    let rig = long();
    let pid = text(&rig.path("pid"));
    let script = format!("setsid -w sh -c 'echo $$ > {pid}; sleep 600'");
    let printed = refused(&rig, &script, &["--timeout", "1"]);
    assert!(printed.contains("took longer than 1 second"), "{printed}");
    assert!(kill("-KILL", &std::fs::read_to_string(pid).unwrap()));
}

#[test]
fn a_signal_kills_the_command_and_leaves_the_session_unchanged() -> Outcome {
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
fn a_failed_step_keeps_the_compactions_of_earlier_steps() {
    let rig = long();
    let flag = text(&rig.path("flag"));
    let script = format!("test -e {flag} && exit 9; touch {flag}; echo brief");
    let answer = rig.run(by(&script, &STEPS));
    assert_eq!(answer.code, 7, "{answer:?}");
    assert!(answer.stdout.contains("compacted 5 messages"), "{answer:?}");
    assert_eq!(rig.json(["compact", "long", "--list"]).len(), 1);
}

#[test]
fn messages_that_changed_while_the_command_ran_are_not_compacted() {
    let rig = long();
    let talktree = env!("CARGO_BIN_EXE_talktree");
    let printed = refused(&rig, &format!("{talktree} rm long m9 > /dev/null; echo brief"), &[]);
    assert!(printed.contains("\"m9\""), "{printed}");
    assert!(printed.contains("run the command again"), "{printed}");
    // Nor are messages that another compaction replaced first.
    let first = format!("{talktree} compact long --summary first --from m10 --to m11 > /dev/null");
    let printed = rig.fails(7, by(&format!("{first}; echo second"), &[]));
    assert!(printed.contains("run the command again"), "{printed}");
    // An append does not change the range.
    let more = r#"[{"id":"m21","role":"user","parts":[{"type":"text","text":"more"}]}]"#;
    let file = text(&rig.file("more.json", more));
    let import = format!("{talktree} import {file} --session long --format ui-message > /dev/null");
    rig.ok(by(&format!("{import}; echo brief"), &[]));
    assert_eq!(texts(&rig).last().unwrap(), "more");
}

#[test]
fn the_list_shows_the_status_of_each_compaction() {
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
    assert_eq!(
        lines[0],
        ["compaction", "status", "messages", "tokens", "model", "created", "summary"]
    );
    assert_eq!(lines[1][2..5], ["5", "360 -> 6", "small"]);
    assert_eq!(lines[1][1], format!("inside {}", lines[2][0]));
    assert_eq!(
        (lines[2][1], lines[2][3], lines[2].last()),
        ("shown", "726 -> 8", Some(&"all of it"))
    );
}

#[test]
fn expand_prints_one_level_or_all_messages() {
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
    assert_eq!(read(&[&ids[2]]), [&*second, "m13", "m14", "m15", "m16"]);
    assert_eq!(read(&[&second]).len(), 5);
    assert_eq!(read(&[&ids[2][ids[2].len() - 12..], "--raw"]).len(), 13);
    let printed = rig.ok(["expand", "long", &ids[2]]);
    assert!(printed.contains("[summary]\n  number 12\n"), "{printed}");
    rig.fails(1, ["expand", "long", "nobody"]);
}

fn kill(signal: &str, pids: &str) -> bool {
    let mut command = Command::new("kill");
    command.arg(signal).args(pids.split_whitespace()).stderr(Stdio::null());
    command.status().unwrap().success()
}

/// Fails if any of these processes still runs; a zombie does not.
#[track_caller]
fn assert_gone(pids: &str) {
    for pid in pids.split_whitespace() {
        let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        assert!(state.trim().is_empty() || state.starts_with('Z'), "{pid} runs: {state}");
    }
}
