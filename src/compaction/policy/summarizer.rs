//! Summarizers: the models that write summaries.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::compaction::Summary;
use crate::error::{BoxError, Error, Result};

/// Answers a prompt with a summary: a model, or a stand-in for one.
///
/// Every closure that takes the prompt and returns a `Result` of a [`Summary`], or of a type that
/// converts into one, is a summarizer. It may be slow: no transaction is open while it runs. If it
/// fails, the conversation stays unchanged. There is no time limit; a summarizer that needs one
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
    // The summarizer holds nothing of ours, so a panic cannot leave anything half done.
    let answer = catch_unwind(AssertUnwindSafe(|| summarizer.summarize(prompt)));
    let answer = answer.unwrap_or_else(|panic| Err(panic_text(&*panic).into()));
    answer.map_err(|source| Error::Summarizer { source })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}
