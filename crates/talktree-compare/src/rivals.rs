//! The rivals, and how one is run: as a process that reads the plan and prints its times.

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
    /// The two lines of the column's head.
    pub(crate) head: [&'static str; 2],
    /// How the library is used.
    pub(crate) how: &'static str,
    language: Language,
}

#[derive(Debug)]
enum Language {
    Rust,
    Node(&'static str),
    /// The script and its argument.
    Python(&'static str, &'static str),
}

/// The columns; the others are compared with the first.
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
        how: "a handwritten table with parent links, recursive query by parent, LIKE; nothing else",
        language: Language::Rust,
    },
    Rival {
        name: "jsonl",
        head: ["JSONL", "in memory"],
        how: "one line per message, history held in memory; opening reads and parses the file",
        language: Language::Rust,
    },
    Rival {
        name: "agents-0.22",
        head: ["agents 0.22", "memory/session"],
        how: "SessionManager and Session over a sql tag on better-sqlite3; it uses no transactions",
        language: Language::Node("agents_memory.mjs"),
    },
    Rival {
        name: "agents-sessions",
        head: ["agents 0.32", "sessions"],
        how: "Sessions over a stand-in for Durable Object storage on better-sqlite3; the first search \
              builds its index, later writes update it",
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
        how: "AdvancedSQLiteSession: the same, create_branch_from_turn, find_turns_by_content",
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

/// What was measured of one rival.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) lines: BTreeMap<String, Line>,
    pub(crate) versions: String,
    /// Why tasks without a line are missing.
    pub(crate) trouble: Option<String>,
}

/// Runs one rival; its failure is part of the result.
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
        // What was read before an error is still worth printing.
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Line::Versions { versions }) => measured.versions = versions,
                Ok(Line::Time { ref task, .. } | Line::Why { ref task, .. }) => {
                    let known = serde_json::from_str(&line)?;
                    measured.lines.insert(task.clone(), known);
                }
                // A line that the library itself printed.
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
        // The error may be followed by a stack trace or a version.
        let is_error = |line: &&str| line.contains("Error") || line.starts_with("talktree-compare");
        let text = errors.lines().rfind(is_error).or_else(|| errors.lines().last());
        let text = text.unwrap_or("no error message").trim();
        measured.trouble = Some(format!("{status}: {text}"));
    }
    // The files are large, and every rival should find the same free space.
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
            // Write nothing beside the scripts, and send no traces.
            command.env("PYTHONDONTWRITEBYTECODE", "1").env("OPENAI_AGENTS_DISABLE_TRACING", "1");
            command.env("LANGSMITH_TRACING", "false").env("LANGCHAIN_TRACING_V2", "false");
            Ok(command)
        }
    }
}
