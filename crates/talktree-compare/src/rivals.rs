//! The rivals, and how one is run: a process that reads the plan and prints what it measured.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::Result;
use crate::plan::Plan;
use crate::timing::Line;

/// One column of the table.
#[derive(Debug)]
pub(crate) struct Rival {
    pub(crate) name: &'static str,
    /// The two lines at the head of its column.
    pub(crate) head: [&'static str; 2],
    /// How it is used.
    pub(crate) how: &'static str,
    language: Language,
}

#[derive(Debug)]
enum Language {
    Rust,
    Node(&'static str),
    /// The script and what it is told.
    Python(&'static str, &'static str),
}

/// The columns; the first is the one the others are compared with.
pub(crate) const RIVALS: &[Rival] = &[
    Rival {
        name: "talktree",
        head: ["talktree", ""],
        how: "append, history, page().limit(50), add_compaction, fork, append_to, search",
        language: Language::Rust,
    },
    Rival {
        name: "bare",
        head: ["bare", "SQLite"],
        how: "one table with parent links by hand, recursive query by parent, LIKE; nothing else",
        language: Language::Rust,
    },
    Rival {
        name: "jsonl",
        head: ["JSONL", "in memory"],
        how: "a line a message, history held in memory; opening reads and parses the file",
        language: Language::Rust,
    },
    Rival {
        name: "agents-0.22",
        head: ["agents 0.22", "memory/session"],
        how: "SessionManager and Session over a sql tag on better-sqlite3; no transactions of its own",
        language: Language::Node("agents_memory.mjs"),
    },
    Rival {
        name: "agents-sessions",
        head: ["agents 0.32", "sessions"],
        how: "Sessions over a stand-in for Durable Object storage on better-sqlite3; its index is \
              built by the first search and kept from then on",
        language: Language::Node("agents_sessions.mjs"),
    },
    Rival {
        name: "openai-sqlite",
        head: ["openai-agents", "SQLiteSession"],
        how: "add_items of one item, get_items; no tree",
        language: Language::Python("openai_sessions.py", "plain"),
    },
    Rival {
        name: "openai-advanced",
        head: ["openai-agents", "Advanced"],
        how: "AdvancedSQLiteSession: as before, create_branch_from_turn, find_turns_by_content",
        language: Language::Python("openai_sessions.py", "advanced"),
    },
    Rival {
        name: "langgraph",
        head: ["langgraph", "SqliteSaver"],
        how: "a graph of one chat node over MessagesState with the checkpointer; a turn of two \
              messages is one invoke; each step writes the whole state",
        language: Language::Python("langgraph_saver.py", ""),
    },
    Rival {
        name: "llm",
        head: ["llm", "LogStore"],
        how: "LogStore.append in a transaction, thread_messages, fork, log_rows; its file set to WAL",
        language: Language::Python("llm_logs.py", ""),
    },
];

/// What is known of one rival.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) lines: BTreeMap<String, Line>,
    pub(crate) versions: String,
    /// Why works are missing that it says nothing of.
    pub(crate) trouble: Option<String>,
}

/// Runs one rival; what goes wrong with it is part of the answer.
pub(crate) fn measure(rival: &Rival, plan: &Plan, cache: &Path, seconds: u64) -> Result<Measured> {
    let mut measured = Measured::default();
    let path = plan.write_for(rival.name)?;
    let mut command = match command(rival, &path, cache) {
        Ok(command) => command,
        Err(error) => {
            measured.trouble = Some(error.to_string());
            return Ok(measured);
        }
    };
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, receiver) = channel();
    let stdout = child.stdout.take().ok_or("no output")?;
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut stderr = child.stderr.take().ok_or("no errors")?;
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is what can be told.
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Line::Versions { versions }) => measured.versions = versions,
                Ok(Line::Time { ref work, .. } | Line::Why { ref work, .. }) => {
                    let known = serde_json::from_str(&line)?;
                    measured.lines.insert(work.clone(), known);
                }
                // A library's own words.
                Err(_) => {}
            },
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                measured.trouble = Some(format!("not done after {seconds} s"));
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait()?;
    let errors = errors.join().map_err(|_| "the reader of errors failed")?;
    if measured.trouble.is_none() && !status.success() {
        // A stack or a version may follow what went wrong.
        let is_told = |line: &&str| line.contains("Error") || line.starts_with("talktree-compare");
        let told = errors.lines().rfind(is_told).or_else(|| errors.lines().last());
        let told = told.unwrap_or("no error told").trim();
        measured.trouble = Some(format!("{status}: {told}"));
    }
    // Its files are large, and the next one should find the disk as this one did.
    std::fs::remove_dir_all(plan.folder.join(rival.name))?;
    Ok(measured)
}

fn command(rival: &Rival, plan: &Path, cache: &Path) -> Result<Command> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals");
    let installed = |program: PathBuf| {
        if program.exists() { Ok(program) } else { Err("not installed: `just compare-setup`") }
    };
    match rival.language {
        Language::Rust => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("child").arg(rival.name).arg(plan);
            Ok(command)
        }
        Language::Node(script) => {
            installed(cache.join("node/done"))?;
            let mut command = Command::new("node");
            command.arg(scripts.join(script)).arg(plan).env("RIVALS", cache.join("node/"));
            Ok(command)
        }
        Language::Python(script, argument) => {
            installed(cache.join("python/done"))?;
            let mut command = Command::new(cache.join("python/bin/python"));
            command.arg(scripts.join(script)).arg(plan).arg(argument);
            // Neither traces beside the scripts nor reports to anyone.
            command.env("PYTHONDONTWRITEBYTECODE", "1").env("OPENAI_AGENTS_DISABLE_TRACING", "1");
            command.env("LANGSMITH_TRACING", "false").env("LANGCHAIN_TRACING_V2", "false");
            Ok(command)
        }
    }
}
