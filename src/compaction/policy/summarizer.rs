//! Summarizers: the models that write summaries.

use crate::callback;
use crate::compaction::Summary;
use crate::error::{BoxError, Error, Result};

/// Answers a prompt with a summary: a model, or a stand-in for one.
///
/// Every closure that takes the prompt and returns a `Result` of a [`Summary`], or of a type that
/// converts into one, is a summarizer. It may be slow and call the library: no transaction is open and
/// no lock is held while it runs. If it fails or panics, the conversation stays unchanged. There is no time limit; a summarizer that needs one
/// returns an error itself.
///
/// ```
/// use talktree::{BoxError, Store, Summarizer, Summary};
///
/// struct Model;
///
/// impl Summarizer for Model {
///     fn summarize(&self, prompt: &str) -> Result<Summary, BoxError> {
///         let text = if prompt.is_empty() { return Err("nothing to read".into()) } else { "They talked." };
///         Ok(Summary::new(text).by("small-1"))
///     }
/// }
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").summarizer(Model).open()?;
/// let other = store
///     .session_builder("t")
///     .summarizer(|prompt: &str| -> Result<String, BoxError> { Ok(format!("{} bytes", prompt.len())) })
///     .open()?;
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait Summarizer: Send + Sync {
    /// Returns the summary that the prompt asks for.
    ///
    /// # Errors
    /// Any error; the caller gets it as [`Error::Summarizer`].
    fn summarize(&self, prompt: &str) -> std::result::Result<Summary, BoxError>;
}

impl<F, S, E> Summarizer for F
where
    F: Fn(&str) -> std::result::Result<S, E> + Send + Sync,
    S: Into<Summary>,
    E: Into<BoxError>,
{
    fn summarize(&self, prompt: &str) -> std::result::Result<Summary, BoxError> {
        self(prompt).map(Into::into).map_err(Into::into)
    }
}

/// Asks a summarizer. A panic becomes an error.
pub(crate) fn ask(summarizer: &dyn Summarizer, prompt: &str) -> Result<Summary> {
    let answer = callback::call(|| summarizer.summarize(prompt));
    let answer = answer.unwrap_or_else(|failed| Err(failed.into()));
    answer.map_err(|source| Error::Summarizer { source })
}
