//! The error type.

/// A [`Result`](std::result::Result) with this crate's [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer. No error text contains a key or a message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model gave no answer, after all tries.
    #[error("the model {model} gave no answer; it was asked {tries} times; the last time: {why}")]
    NoAnswer {
        /// The name of the model.
        model: String,
        /// How many times it was asked.
        tries: u32,
        /// What went wrong the last time.
        why: String,
    },
    /// The caller stopped the answer.
    #[error("the answer was stopped")]
    Stopped,
    /// The conversation or the response cannot be read.
    #[error(transparent)]
    Store(#[from] talktree::Error),
}
