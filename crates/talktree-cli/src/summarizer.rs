//! A summarizer that is a shell command: it reads the prompt on stdin and writes the summary to stdout.
//!
//! All three of its streams are temporary files without a name, so a command that does not read its prompt, writes too much or
//! leaves a process behind cannot block the caller, which waits for the exit alone.
//!
//! Invariant: a command that is stopped is killed together with the processes of its group: all that it started, except those
//! that left the group, as `setsid` does. Such a process is not waited for.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::text::plural;
use crate::work::Signals;

/// The maximum length of an answer, in bytes: many times the largest context window of a model.
const MAX_STDOUT: u64 = 16 << 20;
/// The maximum length of the end of stderr that an error shows, in bytes.
const MAX_STDERR: u64 = 2_000;
/// How often the exit, the time limit and signals are checked.
const TICK: Duration = Duration::from_millis(10);
/// How long a command has to exit after SIGTERM, before SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// A shell command that answers a prompt with a summary.
pub(crate) struct Summarizer {
    command: String,
    time_limit: Option<Duration>,
    signals: Signals,
}

impl Summarizer {
    /// Returns the summarizer; from now on a signal stops its command first, then talktree.
    pub(crate) fn new(command: String, time_limit: Option<Duration>) -> Result<Self> {
        let signals = Signals::catch().map_err(|error| {
            Failure::Summary(format!("no signal handler can be installed: {error}"))
        })?;
        Ok(Self { command, time_limit, signals })
    }

    /// Runs the command on the prompt and returns its answer.
    pub(crate) fn ask(&self, prompt: &str) -> Result<String> {
        self.signals.check()?;
        let cannot = |error| Failure::Summary(format!("the summarizer cannot be started: {error}"));
        let mut running = Running::start(&self.command, prompt).map_err(cannot)?;
        let waited = self.wait(&mut running);
        if waited.is_err() {
            running.stop();
        }
        let status = waited?;
        match status.code() {
            Some(0) => running.answer(),
            // The shell's status for an unknown command.
            Some(127) => Err(running.failure("the summarizer was not found (status 127)")),
            Some(code) => {
                Err(running.failure(&format!("the summarizer exited with status {code}")))
            }
            None => Err(running.failure(&format!("the summarizer was killed: {status}"))),
        }
    }

    /// Waits until the command has exited.
    fn wait(&self, running: &mut Running) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            let exited = running.child.try_wait().map_err(|error| running.unreadable(&error))?;
            let length = running.stdout.metadata().map_or(0, |file| file.len());
            if length > MAX_STDOUT {
                return Err(running.failure(&format!(
                    "the summarizer's answer is too long, over {MAX_STDOUT} bytes; it must write only the summary"
                )));
            }
            if let Some(status) = exited {
                return Ok(status);
            }
            self.signals.check()?;
            if let Some(limit) = self.time_limit.filter(|limit| start.elapsed() >= *limit) {
                let limit = plural(limit.as_secs(), "second");
                return Err(running.failure(&format!(
                    "the summarizer took longer than {limit}; raise the limit with --timeout"
                )));
            }
            std::thread::sleep(TICK);
        }
    }
}

/// A command that runs, with the files that it writes to.
struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

impl Running {
    fn start(command: &str, prompt: &str) -> io::Result<Self> {
        let (mut stdin, stdout, stderr) =
            (tempfile::tempfile()?, tempfile::tempfile()?, tempfile::tempfile()?);
        stdin.write_all(prompt.as_bytes())?;
        stdin.seek(SeekFrom::Start(0))?;
        let child = shell(command)
            .stdin(stdin)
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .spawn()?;
        Ok(Self { child, stdout, stderr })
    }

    /// Returns the answer of a command that succeeded.
    fn answer(&mut self) -> Result<String> {
        let read = read_from(&mut self.stdout, SeekFrom::Start(0));
        let bytes = read.map_err(|error| self.unreadable(&error))?;
        let answer = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            self.failure(&format!(
                "the summarizer's answer is not UTF-8 text after byte {valid}; it must write only the summary"
            ))
        })?;
        match answer.trim() {
            "" => Err(self.failure("the summarizer wrote no summary to its standard output")),
            answer => Ok(answer.to_owned()),
        }
    }

    fn unreadable(&mut self, error: &io::Error) -> Failure {
        self.failure(&format!("the outcome of the summarizer cannot be read: {error}"))
    }

    /// Returns a failure that shows the end of stderr.
    fn failure(&mut self, why: &str) -> Failure {
        let length = self.stderr.metadata().map_or(0, |file| file.len());
        let start = SeekFrom::Start(length.saturating_sub(MAX_STDERR));
        let end = read_from(&mut self.stderr, start).unwrap_or_default();
        let lines = String::from_utf8_lossy(&end);
        Failure::Summary(lines.lines().fold(why.to_owned(), |why, line| why + "\n  " + line))
    }

    /// Stops the command and the processes of its group: terminates them, then kills what still runs.
    fn stop(&mut self) {
        let group = self.child.id();
        signal(group, Stop::Terminate);
        let start = Instant::now();
        while start.elapsed() < TERM_GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(TICK);
        }
        signal(group, Stop::Kill);
        // It has been killed, so it ends at once.
        let _ = self.child.wait();
    }
}

fn read_from(file: &mut File, start: SeekFrom) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(start)?;
    file.take(MAX_STDOUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How processes are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Terminate,
    Kill,
}

/// Returns a shell that runs the command in a new process group, which can be signalled as a whole.
#[cfg(unix)]
fn shell(command: &str) -> Command {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

#[cfg(unix)]
fn signal(group: u32, stop: Stop) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if stop == Stop::Terminate { Signal::TERM } else { Signal::KILL };
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // It fails if no process is left, which is the aim.
        let _ = kill_process_group(group, signal);
    }
}

/// Returns a shell that runs the command.
#[cfg(windows)]
fn shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    shell.arg("/C").raw_arg(command);
    shell
}

#[cfg(windows)]
fn signal(group: u32, stop: Stop) {
    if stop == Stop::Terminate {
        return;
    }
    let mut kill = Command::new("taskkill");
    kill.args(["/T", "/F", "/PID", &group.to_string()]).stdout(std::process::Stdio::null());
    kill.stderr(std::process::Stdio::null());
    // It fails if no process is left, which is the aim.
    let _ = kill.status();
}
