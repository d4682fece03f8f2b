//! Another process: a test binary starts itself again and is told what to do.
//!
//! A test file that does so has a test called `child`, which does what [`task`] says, and nothing where it says nothing.

#![allow(clippy::print_stdout, reason = "the processes talk through it")]

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use talktree::{Error, Result};

const CHILD: &str = "TALKTREE_CHILD";
const STORE: &str = "TALKTREE_STORE";
/// What the lines of a child begin with: the test harness prints lines of its own.
const SAYS: &str = "child: ";

/// A child process of a test.
pub struct Other {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Other {
    pub fn start(task: &str, store: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: "a child process".into(), source };
        let mut process = Command::new(std::env::current_exe().map_err(io)?)
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
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

    /// Returns the next thing the child says; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).is_ok_and(|count| count > 0) {
            // The harness begins a line that a child's may end.
            if let Some(at) = line.find(SAYS)
                && line.ends_with('\n')
            {
                return Some(line[at + SAYS.len()..].trim_end().to_owned());
            }
            line.clear();
        }
        None
    }

    pub fn tell(&mut self, what: impl Display) {
        let told = self.input.as_mut().map(|input| writeln!(input, "{what}"));
        assert!(matches!(told, Some(Ok(()))), "the child is gone: {told:?}");
    }

    /// Kills the child and returns what it had said.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap_or_else(|error| panic!("cannot be killed: {error}"));
        let said = std::iter::from_fn(|| self.hear()).collect();
        let _ = self.process.wait();
        said
    }

    /// Tells the child that there is no more to do and returns what it has said.
    pub fn wait(mut self) -> Vec<String> {
        self.input = None;
        let said = std::iter::from_fn(|| self.hear()).collect();
        let status = self.process.wait();
        assert!(status.is_ok_and(|status| status.success()), "a child failed: {said:?}");
        said
    }
}

/// Says something to the process that started this one.
pub fn say(what: impl Display) {
    println!("\n{SAYS}{what}");
}

/// Returns what this process is to do, and the store to do it on; `None` in one that no test started.
pub fn task() -> Option<(String, PathBuf)> {
    Some((std::env::var(CHILD).ok()?, std::env::var_os(STORE)?.into()))
}
