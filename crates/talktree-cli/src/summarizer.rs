//! A summarizer that is a shell command: it reads the prompt on stdin and writes the summary to
//! stdout.
//!
//! One thread writes the prompt to stdin, two read stdout and stderr, and one waits for the exit. The
//! last three send [`Event`]s to the caller's thread, which alone decides when to stop. So a command
//! that does not read its stdin, or leaves its pipes open, cannot block the caller.
//!
//! Invariant: a command that is stopped is killed together with the processes of its group: all that it started, except
//! those that left the group, as `setsid` does. Such a process is not waited for, and its pipes are closed when talktree
//! ends.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::signals::Signals;
use crate::text::plural;

/// The maximum length of an answer, in bytes: many times the largest context window of a model.
const MAX_STDOUT: usize = 16 << 20;
/// The maximum length of the end of stderr that an error shows, in bytes.
const MAX_STDERR: usize = 2_000;
/// How often the time limit and signals are checked.
const TICK: Duration = Duration::from_millis(50);
/// How long the pipes may stay open after the command has exited: a process it left behind may hold
/// them open.
const PIPE_GRACE: Duration = Duration::from_secs(1);
/// How long a command has to exit after SIGTERM, before SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// A shell command that answers a prompt with a summary.
pub(crate) struct Summarizer {
    command: String,
    time_limit: Option<Duration>,
    signals: Signals,
}

/// An event of a running command.
enum Event {
    /// Bytes of stdout; none at its end.
    Stdout(Vec<u8>),
    /// Bytes of stderr; none at its end.
    Stderr(Vec<u8>),
    Exited(io::Result<ExitStatus>),
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
        let child = shell(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::Summary(format!("the summarizer cannot be started: {error}"))
            })?;
        let group = child.id();
        let events = start_threads(child, prompt);
        let answered = self.wait(&events);
        if answered.is_err() {
            stop(group, &events);
        }
        let (status, captured) = answered?;
        captured.into_answer(status)
    }

    fn check_time(&self, start: Instant, captured: &Captured) -> Result<()> {
        match self.time_limit {
            Some(limit) if start.elapsed() >= limit => {
                let limit = plural(limit.as_secs(), "second");
                Err(captured.failure(&format!(
                    "the summarizer took longer than {limit}; raise the limit with --timeout"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the command has exited and its output is complete.
    fn wait(&self, events: &Receiver<Event>) -> Result<(ExitStatus, Captured)> {
        let start = Instant::now();
        let mut captured = Captured::default();
        let mut exited: Option<(ExitStatus, Instant)> = None;
        loop {
            self.signals.check()?;
            match exited {
                Some((status, at))
                    if captured.is_complete(status) || at.elapsed() >= PIPE_GRACE =>
                {
                    return Ok((status, captured));
                }
                Some(_) => {}
                None => self.check_time(start, &captured)?,
            }
            captured.check_length()?;
            match events.recv_timeout(TICK) {
                Ok(Event::Exited(status)) => {
                    let status = status.map_err(|error| {
                        Failure::Summary(format!(
                            "the exit status of the summarizer cannot be read: {error}"
                        ))
                    })?;
                    exited = Some((status, Instant::now()));
                }
                Ok(event) => captured.add(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(captured.failure("the exit of the summarizer was not reported"));
                }
            }
        }
    }
}

/// The output of a command so far.
#[derive(Default)]
struct Captured {
    stdout: Vec<u8>,
    /// The last [`MAX_STDERR`] bytes.
    stderr: Vec<u8>,
    is_stdout_closed: bool,
    is_stderr_closed: bool,
}

impl Captured {
    fn add(&mut self, event: Event) {
        match event {
            Event::Stdout(bytes) => {
                self.is_stdout_closed |= bytes.is_empty();
                self.stdout.extend(bytes);
            }
            Event::Stderr(bytes) => {
                self.is_stderr_closed |= bytes.is_empty();
                self.stderr.extend(bytes);
                let excess = self.stderr.len().saturating_sub(MAX_STDERR);
                self.stderr.drain(..excess);
            }
            Event::Exited(_) => {}
        }
    }

    /// Returns whether all needed output has arrived; stderr is needed only if the command failed.
    fn is_complete(&self, status: ExitStatus) -> bool {
        self.is_stdout_closed && (self.is_stderr_closed || status.success())
    }

    fn check_length(&self) -> Result<()> {
        match self.stdout.len() {
            0..=MAX_STDOUT => Ok(()),
            _ => Err(self.failure(&format!(
                "the summarizer's answer is too long, over {MAX_STDOUT} bytes; it must write only the summary"
            ))),
        }
    }

    /// Returns the answer of a command that exited with this status.
    fn into_answer(mut self, status: ExitStatus) -> Result<String> {
        if !status.success() {
            return Err(self.failure(&description(status)));
        }
        let answer = String::from_utf8(std::mem::take(&mut self.stdout)).map_err(|error| {
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

    /// Returns a failure that shows the end of stderr.
    fn failure(&self, why: &str) -> Failure {
        let mut why = why.to_owned();
        for line in String::from_utf8_lossy(&self.stderr).lines() {
            why.push_str("\n  ");
            why.push_str(line);
        }
        Failure::Summary(why)
    }
}

/// Returns how a command failed.
fn description(status: ExitStatus) -> String {
    match status.code() {
        // The shell's status for an unknown command.
        Some(127) => "the summarizer was not found (status 127)".to_owned(),
        Some(code) => format!("the summarizer exited with status {code}"),
        None => format!("the summarizer was killed: {status}"),
    }
}

/// Starts the threads that serve the command, and returns the receiver of their events.
fn start_threads(mut child: Child, prompt: &str) -> Receiver<Event> {
    // A small buffer, so that a command that writes too much is stopped early.
    let (sender, events) = mpsc::sync_channel(16);
    if let Some(mut stdin) = child.stdin.take() {
        let prompt = prompt.to_owned();
        // A command may exit without reading the whole prompt; that is no error.
        std::thread::spawn(move || stdin.write_all(prompt.as_bytes()));
    }
    if let Some(stdout) = child.stdout.take() {
        forward(stdout, sender.clone(), Event::Stdout);
    }
    if let Some(stderr) = child.stderr.take() {
        forward(stderr, sender.clone(), Event::Stderr);
    }
    std::thread::spawn(move || sender.send(Event::Exited(child.wait())));
    events
}

/// Forwards the bytes of a pipe as events, until its end or until the receiver is gone.
fn forward(
    mut pipe: impl Read + Send + 'static,
    events: SyncSender<Event>,
    event: fn(Vec<u8>) -> Event,
) {
    std::thread::spawn(move || {
        let mut bytes = [0; 8 << 10];
        loop {
            let count = match pipe.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.unwrap_or(0),
            };
            if events.send(event(bytes[..count].to_vec())).is_err() || count == 0 {
                return;
            }
        }
    });
}

/// Stops a command and the processes of its group: terminates them, then kills what still runs.
fn stop(group: u32, events: &Receiver<Event>) {
    signal(group, Stop::Terminate);
    let start = Instant::now();
    while let Some(left) = TERM_GRACE.checked_sub(start.elapsed()) {
        // Output is still drained, so that a full pipe does not keep the command from exiting.
        match events.recv_timeout(left) {
            Ok(Event::Exited(_)) | Err(_) => break,
            Ok(_) => {}
        }
    }
    signal(group, Stop::Kill);
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
    kill.args(["/T", "/F", "/PID", &group.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    // It fails if no process is left, which is the aim.
    let _ = kill.status();
}
