//! Summarizers: whatever answers a prompt with a summary.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::compaction::Summary;
use crate::error::{BoxError, Error, Result};

/// What answers a prompt with a summary: a model, or a stand-in for one.
///
/// Any closure that takes the prompt and returns a `Result` of something that can be a [`Summary`]
/// is one. It may take its time and may fail: no transaction is open meanwhile, and the conversation
/// then stays as it is. A time limit is its own to keep: it returns an error when it has waited
/// long enough.
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
    /// Whatever went wrong; it comes back as [`Error::Summarizer`].
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

/// Asks a summarizer; a panic of it is an error like any other.
pub(crate) fn ask(summarizer: &dyn Summarizer, prompt: &str) -> Result<Summary> {
    // Nothing of the conversation is in its hands, so nothing can be left half done.
    let answer = catch_unwind(AssertUnwindSafe(|| summarizer.summarize(prompt)));
    let answer = answer.unwrap_or_else(|panic| Err(told(&*panic).into()));
    answer.map_err(|source| Error::Summarizer { source })
}

/// Returns what a panic said.
fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}
