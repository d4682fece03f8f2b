//! The error type of the bot.

use std::path::PathBuf;

/// A [`Result`](std::result::Result) with the bot's [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of the bot. No error text contains a token, a key or a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused something or failed.
    #[error(transparent)]
    Store(#[from] talktree::Error),
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The model gave no answer.
    #[error("the model {model} gave no answer; it was asked {tries} times; the last time: {why}")]
    Model {
        /// The name of the model.
        model: String,
        /// How many times it was asked.
        tries: u32,
        /// What went wrong the last time.
        why: String,
    },
    /// The model called tools in every round.
    #[error(
        "the model called tools in {max} rounds and gave no answer; [agent] max_turns is {max}"
    )]
    TooManyTurns {
        /// The limit.
        max: u32,
    },
    /// The program ended too often during this reply, so the reply may be what ends it.
    #[error("the program ended {times} times during the reply")]
    Interrupted {
        /// How often.
        times: u32,
    },
    /// The caller stopped the reply.
    #[error("the reply was stopped")]
    Stopped,
    /// Another part of the system failed: a thread, a socket, a signal.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl From<talktree_client::Error> for Error {
    fn from(error: talktree_client::Error) -> Self {
        match error {
            talktree_client::Error::NoAnswer { model, tries, why } => {
                Self::Model { model, tries, why }
            }
            talktree_client::Error::Store(error) => Self::Store(error),
            talktree_client::Error::Stopped => Self::Stopped,
        }
    }
}
