//! A summarizer that is a command of the shell: it reads the prompt on stdin and writes the summary
//! to stdout.
//!
//! Three threads hold the ends of its pipes and one waits for its end; all they see comes as an
//! [`Event`] to the one that asks, which alone decides. So nothing that the command does or leaves
//! undone with its pipes is waited for for ever.
//!
//! Invariant: a command that is given up is ended, with all it started.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clean::plural;
use crate::failure::{Failure, Result};

/// The longest answer that is read, in bytes: many times what the largest window of a model holds.
const MAX_ANSWER: usize = 16 << 20;
/// How much of the end of its stderr is told, in bytes.
const MAX_COMPLAINT: usize = 2_000;
/// How often it is looked whether the time is up or a signal came.
const TICK: Duration = Duration::from_millis(50);
/// How long its pipes may stay open when the command has ended: what it left behind may hold them.
const LINGER: Duration = Duration::from_secs(1);
/// How long a command has to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// A command that answers a prompt with a summary.
pub(crate) struct Summarizer {
    command: String,
    time_limit: Option<Duration>,
    /// The signal that came, or 0.
    signal: Arc<AtomicUsize>,
}

/// What is seen of a running command.
enum Event {
    /// It wrote to stdout; nothing, if it never will again.
    Answer(Vec<u8>),
    /// The same of stderr.
    Complaint(Vec<u8>),
    Ended(io::Result<ExitStatus>),
}

impl Summarizer {
    /// Returns the command as a summarizer; from now on a signal ends it, and then talktree.
    pub(crate) fn new(command: String, time_limit: Option<Duration>) -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            let noted = Arc::clone(&signal);
            signal_hook::flag::register_usize(number, noted, number.unsigned_abs() as usize)
                .map_err(|error| Failure::Summary(format!("no signal can be heard: {error}")))?;
        }
        Ok(Self { command, time_limit, signal })
    }

    /// Returns what the command answers.
    pub(crate) fn ask(&self, prompt: &str) -> Result<String> {
        self.check_signal()?;
        let child = shell(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::Summary(format!("the summarizer cannot be started: {error}"))
            })?;
        let group = child.id();
        let events = watch(child, prompt);
        let asked = self.follow(&events);
        if asked.is_err() {
            end(group, &events);
        }
        let (status, seen) = asked?;
        seen.judged(status)
    }

    fn check_signal(&self) -> Result<()> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Stopped(u8::try_from(signal).unwrap_or_default())),
        }
    }

    fn check_time(&self, start: Instant, seen: &Seen) -> Result<()> {
        match self.time_limit {
            Some(limit) if start.elapsed() >= limit => {
                let limit = plural(limit.as_secs(), "second");
                Err(seen.failure(&format!(
                    "the summarizer took longer than {limit}; --timeout gives it more"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns how the command ended and what it wrote, or why it is no longer waited for.
    fn follow(&self, events: &Receiver<Event>) -> Result<(ExitStatus, Seen)> {
        let start = Instant::now();
        let mut seen = Seen::default();
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            self.check_signal()?;
            match ended {
                Some((status, at)) if seen.is_over(status) || at.elapsed() >= LINGER => {
                    return Ok((status, seen));
                }
                Some(_) => {}
                None => self.check_time(start, &seen)?,
            }
            seen.check_length()?;
            match events.recv_timeout(TICK) {
                Ok(Event::Ended(status)) => {
                    let status = status.map_err(|error| {
                        Failure::Summary(format!("the summarizer was lost: {error}"))
                    })?;
                    ended = Some((status, Instant::now()));
                }
                Ok(event) => seen.add(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(seen.failure("the summarizer was lost sight of"));
                }
            }
        }
    }
}

/// What a command has written so far.
#[derive(Default)]
struct Seen {
    answer: Vec<u8>,
    /// The end of it.
    complaint: Vec<u8>,
    is_answer_over: bool,
    is_complaint_over: bool,
}

impl Seen {
    fn add(&mut self, event: Event) {
        match event {
            Event::Answer(bytes) => {
                self.is_answer_over |= bytes.is_empty();
                self.answer.extend(bytes);
            }
            Event::Complaint(bytes) => {
                self.is_complaint_over |= bytes.is_empty();
                self.complaint.extend(bytes);
                let too_much = self.complaint.len().saturating_sub(MAX_COMPLAINT);
                self.complaint.drain(..too_much);
            }
            Event::Ended(_) => {}
        }
    }

    /// Returns whether all is known of a command that ended like this: what one that did well
    /// complained of nobody asks.
    fn is_over(&self, status: ExitStatus) -> bool {
        self.is_answer_over && (self.is_complaint_over || status.success())
    }

    fn check_length(&self) -> Result<()> {
        match self.answer.len() {
            0..=MAX_ANSWER => Ok(()),
            _ => Err(self.failure(&format!(
                "the summarizer's answer is too long, over {MAX_ANSWER} bytes; it should be the summary alone"
            ))),
        }
    }

    /// Returns the answer of a command that ended like this.
    fn judged(mut self, status: ExitStatus) -> Result<String> {
        if !status.success() {
            return Err(self.failure(&told(status)));
        }
        let answer = String::from_utf8(std::mem::take(&mut self.answer)).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            self.failure(&format!("the summarizer's answer is no UTF-8 text after {good} bytes; it should be nothing else"))
        })?;
        match answer.trim() {
            "" => Err(self.failure("the summarizer wrote no summary to its standard output")),
            answer => Ok(answer.to_owned()),
        }
    }

    /// Returns a failure, with the end of what the command complained of.
    fn failure(&self, why: &str) -> Failure {
        let mut why = why.to_owned();
        for line in String::from_utf8_lossy(&self.complaint).lines() {
            why.push_str("\n  ");
            why.push_str(line);
        }
        Failure::Summary(why)
    }
}

/// Returns how a command ended that did not end well.
fn told(status: ExitStatus) -> String {
    match status.code() {
        // So shells say it.
        Some(127) => "the summarizer was not found (status 127)".to_owned(),
        Some(code) => format!("the summarizer ended with status {code}"),
        None => format!("the summarizer was ended: {status}"),
    }
}

/// Feeds the command and listens to it, and returns where what is seen of it arrives.
fn watch(mut child: Child, prompt: &str) -> Receiver<Event> {
    // Few at a time, so that a command that says too much is stopped before it has said it.
    let (sender, events) = mpsc::sync_channel(16);
    if let Some(mut stdin) = child.stdin.take() {
        let prompt = prompt.to_owned();
        // Whether it reads all of it is its own affair.
        std::thread::spawn(move || stdin.write_all(prompt.as_bytes()));
    }
    if let Some(stdout) = child.stdout.take() {
        listen(stdout, sender.clone(), Event::Answer);
    }
    if let Some(stderr) = child.stderr.take() {
        listen(stderr, sender.clone(), Event::Complaint);
    }
    std::thread::spawn(move || sender.send(Event::Ended(child.wait())));
    events
}

/// Sends on what comes, until the end or until nobody listens any more.
fn listen(
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

/// Ends a command and all it started: it is told to, and made to if it does not.
fn end(group: u32, events: &Receiver<Event>) {
    signal(group, Force::Ask);
    let start = Instant::now();
    while let Some(left) = GRACE.checked_sub(start.elapsed()) {
        // What it still says is read, so that it is not held up by that.
        match events.recv_timeout(left) {
            Ok(Event::Ended(_)) | Err(_) => break,
            Ok(_) => {}
        }
    }
    signal(group, Force::Make);
}

/// How a command is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Force {
    Ask,
    Make,
}

/// Returns the shell on a command, in a group of its own: it can be ended as a whole.
#[cfg(unix)]
fn shell(command: &str) -> Command {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

#[cfg(unix)]
fn signal(group: u32, force: Force) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if force == Force::Ask { Signal::TERM } else { Signal::KILL };
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // If none of it is left, that is what was wanted.
        let _ = kill_process_group(group, signal);
    }
}

/// Returns the shell on a command.
#[cfg(windows)]
fn shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    shell.arg("/C").raw_arg(command);
    shell
}

#[cfg(windows)]
fn signal(group: u32, force: Force) {
    if force == Force::Make {
        return;
    }
    let mut kill = Command::new("taskkill");
    kill.args(["/T", "/F", "/PID", &group.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    // If none of it is left, that is what was wanted.
    let _ = kill.status();
}
