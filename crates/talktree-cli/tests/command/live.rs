//! `import --all` and `watch`: what the programs of a machine write, while they write it.
#![cfg(unix)]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Answer, Outcome, Rig, text};

/// Variables that move the places of programs.
const VARIABLES: [&str; 11] = [
    "CLAUDE_CONFIG_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "CURSOR_CONFIG_DIR",
    "DATA_DIR",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "KIMI_CODE_HOME",
    "PI_CODING_AGENT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// How long a test waits for what should take a second or two.
const PATIENCE: Duration = Duration::from_secs(20);

fn at_home(rig: &Rig, args: &[&str]) -> Command {
    let mut command = rig.command(args);
    command.env("HOME", rig.path("home"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
}

fn run(rig: &Rig, args: &[&str]) -> Answer {
    Answer::of(at_home(rig, args).output().unwrap())
}

#[track_caller]
fn json(rig: &Rig, args: &[&str]) -> Vec<serde_json::Value> {
    let answer = run(rig, &[args, &["--json"]].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A line of Claude Code: the message of a number, after the one before it. Each session began in a second of its own: what began at
/// one time may be a copy.
fn line(session: &str, number: usize, said: &str) -> String {
    let digits = session.trim_start_matches(|c: char| !c.is_ascii_digit());
    let second: u32 = digits.parse().unwrap_or_default();
    let time = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    let parent = match number {
        0 => "null".to_owned(),
        number => format!("\"{session}-{}\"", number - 1),
    };
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{session}-{number}\",\"parentUuid\":{parent},\"sessionId\":\"{session}\",\
         \"timestamp\":\"2026-01-02T{time}.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}}}\n"
    )
}

/// A session of Pi.
fn pi(said: &str) -> String {
    format!(
        r#"{{"type":"session","version":3,"id":"p","timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}}
{{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05Z","message":{{"role":"user","content":"{said}"}}}}
"#
    )
}

fn append(path: &Path, text: &str) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
}

fn finds(rig: &Rig, word: &str) -> bool {
    rig.run(["search", word]).code == 0
}

#[track_caller]
fn until(what: &str, is_done: impl Fn() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_done() {
        assert!(begin.elapsed() < PATIENCE, "{what} has not happened");
        std::thread::sleep(Duration::from_millis(20));
    }
    begin.elapsed()
}

#[test]
fn what_the_programs_of_a_machine_keep_is_listed_and_imported_once() {
    let rig = Rig::empty();
    let log = rig.file("home/.claude/projects/-w/s.jsonl", line("s", 0, "zebra"));
    rig.file("home/.pi/agent/sessions/-w/x_p.jsonl", pi("giraffe"));
    rig.file("home/.factory/sessions/-w/d.jsonl", "{\"type\":\"session_start\",\"id\":\"d\"}\n");
    rig.file("home/.claude/settings.json", "{}");

    let list = ["import", "--all", "--list"];
    let found = |list: &[serde_json::Value]| -> Vec<String> {
        let line = |it: &serde_json::Value| format!("{} {} {}", it["tool"], it["files"], it["new"]);
        list.iter().map(|it| line(it).replace('"', "")).collect()
    };
    assert_eq!(found(&json(&rig, &list)), ["claude-code 1 1", "droid 1 1", "pi 1 1"]);
    assert!(!rig.store().exists(), "to list creates no store");

    let answer = run(&rig, &["import", "--all"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stderr.contains("droid: 1 file not imported"), "{answer:?}");
    assert!(answer.stdout.contains("imported: 2 new messages, 2 sessions, 2 files"), "{answer:?}");
    assert!(finds(&rig, "zebra") && finds(&rig, "giraffe"));
    assert_eq!(found(&json(&rig, &list)), ["claude-code 1 0", "droid 1 1", "pi 1 0"]);

    append(&log, &line("s", 1, "okapi"));
    assert_eq!(found(&json(&rig, &list))[0], "claude-code 1 1");
    let reports = json(&rig, &["import", "--all"]);
    assert_eq!((reports.len(), &reports[0]["added"]), (1, &1.into()), "{reports:?}");

    std::fs::remove_dir_all(rig.path("home")).unwrap();
    let nothing = run(&rig, &["import", "--all"]);
    assert!(
        nothing.code == 1 && nothing.stderr.contains("claude-code, cline, codex"),
        "{nothing:?}"
    );
    assert!(finds(&rig, "okapi"));
}

#[test]
fn a_record_that_is_still_being_written_is_left_until_it_is_whole() {
    let rig = Rig::empty();
    let whole = line("s", 1, "okapi");
    let (start, rest) = whole.split_at(40);
    let log = rig.file("home/.claude/projects/-w/s.jsonl", line("s", 0, "zebra") + start);
    let reports = json(&rig, &["import", "--all"]);
    assert_eq!((&reports[0]["added"], &reports[0]["dropped"]), (&1.into(), &0.into()));
    // Without the end of the line it is a whole record, too.
    append(&log, rest.trim_end());
    assert_eq!(json(&rig, &["import", "--all"])[0]["added"], 1);
    assert!(finds(&rig, "okapi"));
}

/// What was erased came back as soon as its file grew.
#[test]
fn what_was_removed_or_erased_does_not_come_back() {
    let rig = Rig::empty();
    let logs = ["s", "t"].map(|name| {
        rig.file(&format!("home/.claude/projects/-w/{name}.jsonl"), line(name, 0, "zebra"))
    });
    run(&rig, &["import", "--all"]);
    rig.ok(["erase", "s", "--yes"]);
    rig.ok(["rm", "t", "--yes", "--forever"]);
    for (name, log) in ["s", "t"].iter().zip(&logs) {
        append(log, &line(name, 1, "okapi"));
    }
    let answer = run(&rig, &["import", "--all"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(!finds(&rig, "zebra") && !finds(&rig, "okapi"));
    // Who names the file wants it.
    rig.ok(["import", &text(&logs[0])]);
    assert!(finds(&rig, "okapi"));
}

#[test]
fn secrets_are_replaced_and_counted() {
    let rig = Rig::empty();
    let key = format!("sk-ant-{}", "a1B2".repeat(8));
    let said = format!("my key is {key}, and postgres://ann:s3cret@db/x");
    let log = rig.file("s.jsonl", line("s", 0, &said) + &line("s", 1, "zebra"));
    let report = &rig.json(["import", &text(&log), "--redact"])[0];
    assert_eq!(report["redacted"]["anthropic-key"], 1, "{report}");
    assert_eq!(report["redacted"]["url-password"], 1, "{report}");
    let shown = rig.ok(["log", "s", "--json"]) + &rig.ok(["sessions", "--json"]);
    assert!(!shown.contains("sk-ant-") && !shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("my key is [redacted anthropic-key], and postgres://ann:"), "{shown}");
    let again = rig.ok(["import", &text(&log), "--redact"]);
    assert!(again.contains("0 new messages, 2 known") && !again.contains("redacted"), "{again}");
}

/// A `talktree watch`, which is stopped when it goes.
struct Watch {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Watch {
    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut watch = Self { child, said };
        let mut line = String::new();
        while !line.contains("watching") {
            line.clear();
            assert!(watch.said.read_line(&mut line).unwrap() > 0, "it ended by itself");
        }
        watch
    }

    fn stop(mut self, signal: &str) -> Option<i32> {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It is stopped already unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_written_is_imported_a_moment_later_whatever_becomes_of_its_file() -> Outcome {
    let rig = Rig::empty();
    let folder = rig.path("home/.claude/projects/-w");
    let log = rig.file("home/.claude/projects/-w/s.jsonl", line("s", 0, "zebra"));
    let watch = Watch::of(at_home(&rig, &["watch"]));
    assert!(finds(&rig, "zebra"), "what was there is imported first");

    let whole = line("s", 1, "okapi");
    append(&log, &whole[..30]);
    append(&log, &whole[30..]);
    let time = until("an append", || finds(&rig, "okapi"));
    println!("an appended line was found after {time:?}");
    // A file in a new folder.
    let other = rig.file("home/.claude/projects/-other/t.jsonl", line("t", 0, "giraffe"));
    until("a new file", || finds(&rig, "giraffe"));
    // The folder of a program that was not there.
    rig.file("home/.pi/agent/sessions/-w/x_p.jsonl", pi("condor"));
    until("a new program", || finds(&rig, "condor"));
    // It becomes shorter, and grows again.
    File::create(&log)?.write_all(line("s", 0, "zebra").as_bytes())?;
    append(&log, &line("s", 1, "okapi"));
    append(&log, &line("s", 2, "lynx"));
    until("growth after a cut", || finds(&rig, "lynx"));
    // Another file takes its place, and it goes on under another name.
    std::fs::rename(&log, folder.join("old.jsonl"))?;
    rig.file("new", line("u", 0, "heron"));
    std::fs::rename(rig.path("new"), &log)?;
    append(&folder.join("old.jsonl"), &line("s", 3, "ibis"));
    until("a replaced file", || finds(&rig, "heron") && finds(&rig, "ibis"));
    // All of them are gone.
    std::fs::remove_dir_all(rig.path("home/.claude"))?;
    std::thread::sleep(Duration::from_millis(800));
    for word in ["zebra", "okapi", "giraffe", "lynx", "heron", "ibis"] {
        assert!(finds(&rig, word), "{word}");
    }
    drop(other);
    // What is erased stays out, also if its file is there again.
    rig.ok(["erase", "s", "--yes"]);
    rig.file("home/.claude/projects/-w/s.jsonl", line("s", 0, "zebra") + &line("s", 4, "newt"));
    rig.file("home/.claude/projects/-w/v.jsonl", line("v", 0, "crane"));
    assert!(!finds(&rig, "newt"));
    assert_eq!(watch.stop("-INT"), Some(0));
    run(&rig, &["import", "--all"]);
    assert!(finds(&rig, "crane") && !finds(&rig, "zebra") && !finds(&rig, "newt"));
    Ok(())
}

#[test]
fn one_watch_runs_for_a_store_and_a_signal_ends_it() {
    let rig = Rig::empty();
    let folder: PathBuf = rig.path("logs");
    rig.file("logs/s.jsonl", line("s", 0, "zebra"));
    let watch = Watch::of(at_home(&rig, &["watch", &text(&folder)]));
    let second = rig.fails(3, ["watch", &text(&folder)]);
    assert!(second.contains("another `talktree watch` runs for this store"), "{second}");
    assert_eq!(watch.stop("-TERM"), Some(0));
    let third = Watch::of(at_home(&rig, &["watch", &text(&folder)]));
    assert_eq!(third.stop("-INT"), Some(0));
    let missing = rig.fails(5, ["watch", &text(&rig.path("missing"))]);
    assert!(missing.contains("is no folder"), "{missing}");
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_files_are_watched_by_a_process_that_sleeps() -> Outcome {
    let rig = Rig::empty();
    for number in 0..10_000 {
        let (folder, name) = (number / 100, format!("s{number}"));
        rig.file(&format!("logs/{folder}/{name}.jsonl"), line(&name, 0, "zebra"));
    }
    let watch = Watch::of(at_home(&rig, &["watch", &text(&rig.path("logs"))]));
    let ticks = || -> Result<u64, Box<dyn std::error::Error>> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", watch.child.id()))?;
        let fields = stat.rsplit(')').next().ok_or("no fields")?;
        let times: Result<Vec<u64>, _> =
            fields.split_whitespace().skip(11).take(2).map(str::parse).collect();
        Ok(times?.iter().sum())
    };
    let before = ticks()?;
    std::thread::sleep(Duration::from_secs(3));
    let idle = ticks()? - before;
    println!("{idle} hundredths of a second of the processor in 3 s");
    assert!(idle <= 3, "it took {idle} hundredths of a second in 3 s");
    append(&rig.path("logs/42/s4242.jsonl"), &line("s4242", 1, "okapi"));
    let time = until("an append", || finds(&rig, "okapi"));
    println!("of 10 000 files one line was found after {time:?}");
    assert_eq!(watch.stop("-INT"), Some(0));
    Ok(())
}
