//! Failures of a command: each has an exit code and a message for people.

use std::io::{self, Write};
use std::process::ExitCode;

use talktree::Error;

use crate::suggestion::{command, verb};
use crate::text::{escape, shown, without_middle};

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed; each variant has its own exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was found: no match, or no session, message, label, compaction or text of that name.
    NotFound(String),
    /// The request can never succeed.
    Usage(String),
    /// The store is missing or full, or it cannot be read or written.
    Store(String),
    /// The store is damaged.
    Damaged(Damage),
    /// An input file or text cannot be read or understood.
    Input(String),
    /// The output cannot be written.
    Output(io::Error),
    /// No summary was made, or the messages to compact changed.
    Summary(String),
    /// A signal of this number stopped the command.
    Stopped(u8),
}

/// How a damaged store is reported.
#[derive(Debug)]
pub(crate) enum Damage {
    /// A command met this damage.
    Met(String),
    /// This damage stops even `verify`.
    StopsVerify(String),
    /// The command has already printed every damage.
    Printed,
}

impl Failure {
    /// Returns the exit code; `--help` and docs/command.md document each.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            // The reader closed the pipe, as `| head` does.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::NotFound(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Store(_) => ExitCode::from(3),
            Self::Damaged(_) => ExitCode::from(4),
            Self::Input(_) => ExitCode::from(5),
            Self::Output(_) => ExitCode::from(6),
            Self::Summary(_) => ExitCode::from(7),
            // The convention of shells.
            Self::Stopped(signal) => ExitCode::from(signal.saturating_add(128)),
        }
    }

    /// Writes the message to stderr.
    pub(crate) fn report(&self) {
        if let Some(message) = self.message() {
            tell(&message);
        }
    }

    /// Returns the message for people; none if there is nothing left to say.
    pub(crate) fn message(&self) -> Option<String> {
        Some(match self {
            Self::NotFound(why)
            | Self::Usage(why)
            | Self::Store(why)
            | Self::Input(why)
            | Self::Summary(why) => why.clone(),
            Self::Damaged(Damage::Met(what)) => {
                format!("the store is damaged: {what}\n{}", verify())
            }
            Self::Damaged(Damage::StopsVerify(what)) => {
                format!("the store is damaged: {what}\n{}", restore())
            }
            Self::Damaged(Damage::Printed) => return None,
            Self::Stopped(_) => "stopped".to_owned(),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Self::Output(error) => format!("the output cannot be written: {error}"),
        })
    }
}

/// Returns the advice for damage that a command meets.
fn verify() -> String {
    format!("`{}` lists every damage and its remedy", command("verify"))
}

/// Returns the advice for damage that stops `verify`.
fn restore() -> String {
    let export = command("export --all --skip-damaged -o FILE");
    format!(
        "restore a backup; or save the readable sessions with `{export}` and import FILE into a new store"
    )
}

/// Writes a message for people to stderr.
pub(crate) fn tell(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.lines() {
        // If stderr is closed there is nowhere to report it.
        let _ = writeln!(stderr, "talktree: {}", escape(&without_middle(line)));
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                Self::Output(source)
            }
            _ if error.is_unknown() => Self::NotFound(text),
            // The arguments are at fault: others would have succeeded.
            Error::InvalidValue { .. }
            | Error::NotAncestor { .. }
            | Error::InsideSummary { .. }
            | Error::NothingVisible { .. }
            | Error::SummaryRefused { .. }
            | Error::MessageTooLarge { .. }
            | Error::TooLarge { .. }
            | Error::BlockOverLimit { .. }
            | Error::BlockReadOnly { .. }
            | Error::BlockKeyed { .. }
            | Error::BlockCannot { .. }
            | Error::BlockExists { .. }
            | Error::TooManyBlocks { .. }
            | Error::NoOwner { .. }
            | Error::SessionExists { .. } => Self::Usage(text),
            Error::RuleMeetsAll { .. } => Self::Usage(format!("{text} with --all")),
            Error::SessionInTrash { id } => {
                let restore = command(&verb("restore", &[id.as_str()], ""));
                Self::Usage(format!("{text}: `{restore}`"))
            }
            Error::Corrupt { what } => Self::Damaged(Damage::Met(what)),
            // No command takes JSON as an argument, so the stored JSON is at fault.
            Error::Json { .. } => Self::Damaged(Damage::Met(text)),
            // The file starts like a store, so its header is damaged.
            Error::NotAStore { path, why } if why.contains("file is not a database") => {
                Self::Damaged(Damage::Met(format!("{}: {why}", shown(&path))))
            }
            Error::Import { .. } => Self::Input(text),
            Error::Stale { .. } => Self::Summary(format!("{text}; run the command again")),
            Error::OlderStore { .. } => {
                Self::Store(format!("{text}, for example with `{}`", command("verify")))
            }
            // The store or its disk is at fault: full, busy, read-only, missing, newer.
            _ => Self::Store(text),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

#[cfg(test)]
mod tests {
    use talktree::Stale;

    use super::*;

    #[test]
    fn each_error_has_its_exit_code() {
        let id = || "a".into();
        for (error, code) in [
            (Error::UnknownSession { id: "s".into() }, 1),
            (Error::SessionInTrash { id: "s".into() }, 2),
            (Error::RuleMeetsAll { rule: "r".to_owned(), sessions: 7 }, 2),
            (Error::UnknownVersion { label: "l".to_owned(), key: None, version: 7 }, 1),
            (Error::BlockCannot { label: "l".to_owned(), what: "be searched" }, 2),
            (Error::TooLarge { what: "a summary", bytes: 2, max: 1 }, 2),
            (Error::NothingVisible { first: id(), last: id() }, 2),
            (Error::NotAncestor { first: id(), last: id() }, 2),
            (Error::MessageTooLarge { id: id(), bytes: 2, max: 1 }, 2),
            (Error::StoreFull { max: 1 }, 3),
            (Error::SessionFull { session: "s".into(), max: 1 }, 3),
            (Error::NewerStore { found: 2, supported: 1 }, 3),
            (Error::StoreMoved { path: "a.db".into() }, 3),
            (Error::OlderStore { found: 1, current: 3 }, 3),
            (Error::DiskFull, 3),
            (Error::Corrupt { what: "x".to_owned() }, 4),
            (Error::Stale { why: Stale::Deleted { id: id() } }, 7),
        ] {
            let text = error.to_string();
            assert_eq!(Failure::from(error).exit_code(), ExitCode::from(code), "{text}");
        }
    }
}
