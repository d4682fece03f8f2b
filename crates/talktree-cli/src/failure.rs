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
    /// Nothing was found: no hit, or no session, message, label or summary of that name.
    NotFound(String),
    /// What was asked cannot be done as it was asked.
    Usage(String),
    /// The store is not there, or could not be read or written.
    Store(String),
    /// The store is damaged; the damage was told already.
    Damaged,
    /// A file that was to be imported could not be read or understood.
    Input(String),
    /// What was found could not be written.
    Output(io::Error),
}

impl Failure {
    /// Returns the exit code: each is documented in the README.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            // Who reads has seen enough (`| head`).
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::NotFound(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Store(_) => ExitCode::from(3),
            Self::Damaged => ExitCode::from(4),
            Self::Input(_) => ExitCode::from(5),
            Self::Output(_) => ExitCode::from(6),
        }
    }

    /// Tells it on stderr.
    pub(crate) fn report(&self) {
        match self {
            Self::NotFound(why) | Self::Usage(why) | Self::Store(why) | Self::Input(why) => {
                tell(why)
            }
            Self::Damaged => {}
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Self::Output(error) => tell(&format!("what was found could not be written: {error}")),
        }
    }
}

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
            Error::InvalidName { .. }
            | Error::NotAncestor { .. }
            | Error::InsideSummary { .. }
            | Error::BlankSummary
            | Error::SessionExists { .. } => Self::Usage(text),
            Error::Import { .. } => Self::Input(text),
            _ => Self::Store(text),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
