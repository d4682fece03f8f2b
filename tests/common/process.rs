//! Child processes: a test program starts itself again with a task.
//!
//! A module with child processes has a test `child` that runs the [`task`], and does nothing without one.

#![allow(clippy::print_stdout, reason = "the processes communicate through it")]

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use talktree::{Error, Result};

const CHILD: &str = "TALKTREE_CHILD";
const STORE: &str = "TALKTREE_STORE";
/// The prefix of a child's lines; the test harness prints lines, too.
const PREFIX: &str = "child: ";

/// A child process of a test.
pub struct Other {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Other {
    /// Starts the test `child` of the caller's module.
    #[track_caller]
    pub fn start(task: &str, store: &Path) -> Result<Self> {
        let child = test_name("child");
        let io = |source| Error::Io { path: "a child process".into(), source };
        let mut process = Command::new(std::env::current_exe().map_err(io)?)
            .args(["--exact", &child, "--nocapture", "--test-threads=1"])
            .env(CHILD, task)
            .env(STORE, store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io)?;
        let (input, Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Unsupported { what: "a child without pipes" });
        };
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    /// Returns the next line of the child; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).is_ok_and(|count| count > 0) {
            // The child's line may follow text that the harness has printed on the same line.
            if let Some(at) = line.find(PREFIX)
                && line.ends_with('\n')
            {
                return Some(line[at + PREFIX.len()..].trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    pub fn tell(&mut self, what: impl Display) {
        let written = self.input.as_mut().map(|input| writeln!(input, "{what}"));
        assert!(matches!(written, Some(Ok(()))), "the child has exited: {written:?}");
    }

    /// Kills the child and returns its remaining lines.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap_or_else(|error| panic!("cannot kill the child: {error}"));
        let lines = std::iter::from_fn(|| self.hear()).collect();
        let _ = self.process.wait();
        lines
    }

    /// Closes the child's input, waits for its end, and returns its remaining lines.
    pub fn wait(mut self) -> Vec<String> {
        self.input = None;
        let lines = std::iter::from_fn(|| self.hear()).collect();
        let status = self.process.wait();
        assert!(status.is_ok_and(|status| status.success()), "a child failed: {lines:?}");
        lines
    }
}

/// Returns the full name of a test of the caller's module, which has a file of its own: `processes::child`.
#[track_caller]
pub fn test_name(test: &str) -> String {
    let file = Path::new(Location::caller().file());
    format!("{}::{test}", file.file_stem().unwrap_or_default().display())
}

/// Sends a line to the parent process.
pub fn say(what: impl Display) {
    println!("\n{PREFIX}{what}");
}

/// Returns the task of this process and its store; `None` if no test started it.
pub fn task() -> Option<(String, PathBuf)> {
    Some((std::env::var(CHILD).ok()?, std::env::var_os(STORE)?.into()))
}
