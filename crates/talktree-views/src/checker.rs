//! Runs the checker of a provider, and compares what it finds with what `validate_for` finds.

use std::fmt;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use talktree::Message;
use talktree_model::{Provider, validate_for};

use crate::requests::Maker;
use crate::{Options, Result, breaks, environment};

const PYTHON: &str = include_str!("../checkers/check.py");
const NODE: &str = include_str!("../checkers/check.mjs");

/// The most cases that are printed.
const SHOWN: usize = 5;

/// Requests above this size are not broken: they would cost most of the time.
const MAX_BROKEN_CHARS: usize = 20_000;

/// What was found of one provider.
#[derive(Debug)]
pub(crate) struct Found {
    provider: Provider,
    requests: usize,
    /// Requests in which the checker or `validate_for` found a problem.
    faults: Vec<String>,
    broken: usize,
    /// Broken requests in which both found a problem.
    both: usize,
    /// Those in which only `validate_for` did.
    stricter: usize,
    /// Those in which only the checker did.
    missed: Vec<String>,
}

impl Found {
    pub(crate) fn is_good(&self) -> bool {
        // A check that finds nothing in broken requests does not check.
        self.faults.is_empty()
            && self.missed.is_empty()
            && self.requests > 0
            && self.both * 4 > self.broken
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, requests, faults, broken, both, stricter, missed } = self;
        writeln!(f, "{provider}: {requests} requests, {} with problems", faults.len())?;
        writeln!(
            f,
            "    {broken} broken ones: both find {both}, only validate_for {stricter}, only the checker {}",
            missed.len()
        )?;
        for fault in faults.iter().chain(missed).take(SHOWN) {
            writeln!(f, "    {fault}")?;
        }
        Ok(())
    }
}

pub(crate) fn check(
    maker: &Maker,
    histories: &[(String, Vec<Message>)],
    options: &Options,
    cache: &Path,
) -> Result<Found> {
    let requests = maker.requests(histories);
    let mut found = Found {
        provider: maker.provider,
        requests: requests.len(),
        faults: Vec::new(),
        broken: 0,
        both: 0,
        stricter: 0,
        missed: Vec::new(),
    };
    let verdicts = verdicts(maker.checker, requests.iter().map(|(_, request)| request), cache)?;
    for ((name, request), theirs) in requests.iter().zip(verdicts) {
        let ours = problems(maker.provider, request);
        if !ours.is_empty() || !theirs.is_empty() {
            found
                .faults
                .push(format!("{name}: {theirs:?}, validate_for {ours:?}\n    {}", short(request)));
        }
    }
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let small: Vec<_> = requests
        .iter()
        .filter(|(_, request)| request.to_string().len() <= MAX_BROKEN_CHARS)
        .collect();
    let broken: Vec<(Value, String)> = (0..options.breaks)
        .filter_map(|_| Some(breaks::broken(&small.get(rng.usize(..small.len()))?.1, &mut rng)))
        .collect();
    found.broken = broken.len();
    let verdicts = self::verdicts(maker.checker, broken.iter().map(|(request, _)| request), cache)?;
    for ((request, what), theirs) in broken.iter().zip(verdicts) {
        let ours = problems(maker.provider, request);
        match (ours.is_empty(), theirs.is_empty()) {
            (false, false) => found.both += 1,
            (false, true) => found.stricter += 1,
            (true, false) => {
                found.missed.push(format!("missed: {what}: {theirs:?}\n    {}", short(request)))
            }
            (true, true) => {}
        }
    }
    Ok(found)
}

fn problems(provider: Provider, request: &Value) -> Vec<String> {
    validate_for(provider, request).iter().map(ToString::to_string).collect()
}

fn short(request: &Value) -> String {
    request.to_string().chars().take(1_500).collect()
}

/// Returns the problems that the checker finds in each request.
fn verdicts<'a>(
    checker: &str,
    requests: impl Iterator<Item = &'a Value> + Send,
    cache: &Path,
) -> Result<Vec<Vec<String>>> {
    let mut command = command(checker, cache)?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the checker has no pipes".into());
    };
    let mut found = Vec::new();
    let counted = std::thread::scope(|scope| -> Result<usize> {
        let writer = scope.spawn(move || -> std::io::Result<usize> {
            let mut input = BufWriter::new(input);
            let mut count = 0;
            for request in requests {
                writeln!(input, "{request}")?;
                count += 1;
            }
            input.flush()?;
            Ok(count)
        });
        for line in BufReader::new(output).lines() {
            found.push(serde_json::from_str(&line?)?);
        }
        Ok(writer.join().unwrap_or_else(|_| Err(std::io::Error::other("the writer panicked")))?)
    });
    let status = child.wait()?;
    let counted = counted?;
    if !status.success() || found.len() != counted {
        let heard = found.len();
        return Err(format!("{command:?} answered {heard} of {counted} requests: {status}").into());
    }
    Ok(found)
}

fn command(checker: &str, cache: &Path) -> Result<Command> {
    let program = |name: &str, text: &str| -> Result<PathBuf> {
        // One file for each checker: they are started at the same time.
        let path = cache.join(format!("{checker}-{name}"));
        std::fs::write(&path, text)?;
        Ok(path)
    };
    if checker == "ai-sdk" {
        let mut command = Command::new("node");
        command.arg(program("check.mjs", NODE)?).arg(cache.join("node"));
        return Ok(command);
    }
    let mut command = Command::new(environment::python_of(cache));
    command.arg(program("check.py", PYTHON)?).arg(checker);
    Ok(command)
}
