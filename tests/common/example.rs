//! Runs the examples, which cargo builds with the tests.

use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs an example that must succeed, and returns its standard output.
pub fn printed(
    name: &str,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<String, Box<dyn Error>> {
    let test = std::env::current_exe()?;
    let built = test.parent().and_then(Path::parent).ok_or("tests are built in another folder")?;
    let example = built.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let output = Command::new(&example).args(args).output().map_err(|error| {
        format!("{}: {error}; build it by `cargo build --examples`", example.display())
    })?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// One turn of a long conversation, as the examples print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub number: usize,
    pub head: Part,
    pub summary: Part,
    pub tail: Part,
    pub total: u64,
    pub threshold: u64,
}

/// A number of messages and their tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub messages: usize,
    pub tokens: u64,
}

impl Turn {
    /// Parses a line such as `turn 1234  head 3 msgs 120  summary 1 msg 98  tail 14 msgs 1 830  total 2 048 of
    /// 4 000`; returns `None` for any other line.
    pub fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.strip_prefix("turn ")?.trim_start().split("  ").collect();
        let [number, head, summary, tail, total] = fields[..] else { return None };
        let (total, threshold) = total.strip_prefix("total ")?.split_once(" of ")?;
        Some(Self {
            number: number.parse().ok()?,
            head: Part::read(head.strip_prefix("head ")?)?,
            summary: Part::read(summary.strip_prefix("summary ")?)?,
            tail: Part::read(tail.strip_prefix("tail ")?)?,
            total: unspaced(total)?,
            threshold: unspaced(threshold)?,
        })
    }
}

impl Part {
    fn read(text: &str) -> Option<Self> {
        let (messages, tokens) = text.split_once(" msgs ").or_else(|| text.split_once(" msg "))?;
        Some(Self { messages: messages.parse().ok()?, tokens: unspaced(tokens)? })
    }
}

/// Parses `1 830` as 1830.
fn unspaced(text: &str) -> Option<u64> {
    text.replace(' ', "").parse().ok()
}
