//! How a command ends when it does not end well: an exit code, and a line for people.

use std::io::{self, Write};
use std::process::ExitCode;

use talktree::Error;

use crate::clean::clean;

/// The answer of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was found: no hit, or no session, message, label, summary or text of that name.
    NotFound(String),
    /// What was asked can never be done as it was asked.
    Usage(String),
    /// The store is not there, is full, or could not be read or written.
    Store(String),
    /// The store is damaged; what the damage is, if it was not told already.
    Damaged(Option<String>),
    /// A file or a text that was given could not be read or understood.
    Input(String),
    /// What was found could not be written.
    Output(io::Error),
    /// No summary came, or what was to be compacted changed meanwhile.
    Summary(String),
    /// A signal of this number came.
    Stopped(u8),
}

impl Failure {
    /// Returns the failure as `verify` tells it, which has nothing more to tell.
    pub(crate) fn of_verify(self) -> Self {
        match self {
            Self::Damaged(Some(why)) => {
                Self::Damaged(Some(format!("{}\n{RESTORE}", why.replace(TELLS_MORE, ""))))
            }
            failure => failure,
        }
    }

    /// Returns the exit code: each is documented in docs/command.md.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            // Who reads has seen enough (`| head`).
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::NotFound(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Store(_) => ExitCode::from(3),
            Self::Damaged(_) => ExitCode::from(4),
            Self::Input(_) => ExitCode::from(5),
            Self::Output(_) => ExitCode::from(6),
            Self::Summary(_) => ExitCode::from(7),
            // As shells have it.
            Self::Stopped(signal) => ExitCode::from(signal.saturating_add(128)),
        }
    }

    /// Tells it on stderr.
    pub(crate) fn report(&self) {
        match self {
            Self::NotFound(why)
            | Self::Usage(why)
            | Self::Store(why)
            | Self::Damaged(Some(why))
            | Self::Input(why)
            | Self::Summary(why) => tell(why),
            Self::Damaged(None) => {}
            Self::Stopped(_) => tell("stopped"),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Self::Output(error) => tell(&format!("what was found could not be written: {error}")),
        }
    }
}

/// What damage is told with by everything but `verify` itself.
const TELLS_MORE: &str = "; `verify` tells more";

/// What to do about damage that not even `verify` gets past.
const RESTORE: &str = "restore a backup, or take what can be read: `talktree export --all --skip-damaged -o FILE`, and `import` that into a new store";

/// Writes a line for people to stderr.
pub(crate) fn tell(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.lines() {
        // If stderr is closed, nobody wants to know.
        let _ = writeln!(stderr, "talktree: {}", clean(line));
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
            // What was given is at fault: other words would have done.
            Error::InvalidName { .. }
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
            | Error::SessionExists { .. } => Self::Usage(text),
            // Whichever command came upon it, `verify` or not.
            Error::Corrupt { .. } => Self::Damaged(Some(text)),
            // No command takes JSON, so it is what is stored.
            Error::Json { .. } => {
                Self::Damaged(Some(format!("the store is damaged: {text}{TELLS_MORE}")))
            }
            // It begins as a store does: its header is what was hit.
            Error::NotAStore { ref why, .. } if why.contains("file is not a database") => {
                Self::Damaged(Some(text))
            }
            Error::Import { .. } => Self::Input(text),
            Error::Stale { .. } => {
                Self::Summary(format!("{text}; run it again, with what is there now"))
            }
            // The store is at fault, or the place it lies in: full, busy, read-only, none, newer.
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
    fn the_code_says_who_is_at_fault() {
        let id = || "a".into();
        for (error, code) in [
            (Error::UnknownSession { id: "s".into() }, 1),
            (Error::UnknownVersion { label: "l".to_owned(), key: None, version: 7 }, 1),
            (Error::BlockCannot { label: "l".to_owned(), what: "be searched" }, 2),
            (Error::TooLarge { what: "a summary", bytes: 2, max: 1 }, 2),
            (Error::NothingVisible { first: id(), last: id() }, 2),
            (Error::NotAncestor { first: id(), last: id() }, 2),
            (Error::MessageTooLarge { id: id(), bytes: 2, max: 1 }, 2),
            (Error::StoreFull { max: 1 }, 3),
            (Error::SessionFull { session: "s".into(), max: 1 }, 3),
            (Error::NewerStore { found: 2, supported: 1 }, 3),
            (Error::DiskFull, 3),
            (Error::Corrupt { what: "x".to_owned() }, 4),
            (Error::Stale { why: Stale::Deleted { id: id() } }, 7),
        ] {
            let text = error.to_string();
            assert_eq!(Failure::from(error).exit_code(), ExitCode::from(code), "{text}");
        }
    }
}
