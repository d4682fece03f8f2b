//! Summarizers: the models that write summaries.

use crate::callback;
use crate::compaction::Summary;
use crate::error::{BoxError, Error, Result};

/// Answers a prompt with a summary: a model, or a stand-in for one.
///
/// Every closure that takes the prompt and returns a `Result` of a text, of a [`Summary`], or of an `Option` of one, is a
/// summarizer; `None` declines. It may be slow and call the library: no transaction is open and
/// no lock is held while it runs. If it fails or panics, the conversation stays unchanged. There is no time limit; a summarizer that needs one
/// returns an error itself.
///
/// ```
/// use talktree::{BoxError, Store, Summarized, Summarizer, Summary};
///
/// struct Model;
///
/// impl Summarizer for Model {
///     fn summarize(&self, prompt: &str) -> Result<Summarized, BoxError> {
///         if prompt.len() > 1_000_000 {
///             return Ok(Summarized::Declined);
///         }
///         Ok(Summary::new("They talked.").by("small-1").into())
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
    /// Returns the summary that the prompt asks for, or declines.
    ///
    /// # Errors
    /// Any error; the caller gets it as [`Error::Summarizer`].
    fn summarize(&self, prompt: &str) -> std::result::Result<Summarized, BoxError>;
}

/// What a [`Summarizer`] answers.
///
/// To decline is no failure: nothing is stored, and [`Session::compact`](crate::Session::compact) returns
/// [`NothingToCompact::Declined`](crate::NothingToCompact::Declined). Automatic compaction asks again when the window has
/// grown by a quarter of its threshold, or when the history or the prompt changed in another way.
///
/// ```
/// use talktree::{BoxError, CompactionOptions, CompactionOutcome, Message, NothingToCompact, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store
///     .session_builder("s")
///     .summarizer(|_: &str| -> Result<Option<String>, BoxError> { Ok(None) }) // not now
///     .compaction_options(CompactionOptions::default().keep_recent_tokens(0))
///     .open()?;
/// chat.append_all((1..=9).map(|_| Message::user("word ".repeat(50))))?;
/// assert_eq!(chat.compact()?, CompactionOutcome::Nothing(NothingToCompact::Declined));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Summarized {
    /// The summary.
    Summary(Summary),
    /// No summary now.
    Declined,
}

impl From<Summary> for Summarized {
    fn from(summary: Summary) -> Self {
        Self::Summary(summary)
    }
}

impl From<String> for Summarized {
    fn from(text: String) -> Self {
        Self::Summary(text.into())
    }
}

impl From<&str> for Summarized {
    fn from(text: &str) -> Self {
        Self::Summary(text.into())
    }
}

impl<S: Into<Summary>> From<Option<S>> for Summarized {
    fn from(summary: Option<S>) -> Self {
        summary.map_or(Self::Declined, |summary| Self::Summary(summary.into()))
    }
}

impl<F, S, E> Summarizer for F
where
    F: Fn(&str) -> std::result::Result<S, E> + Send + Sync,
    S: Into<Summarized>,
    E: Into<BoxError>,
{
    fn summarize(&self, prompt: &str) -> std::result::Result<Summarized, BoxError> {
        self(prompt).map(Into::into).map_err(Into::into)
    }
}

/// Asks a summarizer; `None` if it declines. A panic becomes an error.
pub(crate) fn ask(summarizer: &dyn Summarizer, prompt: &str) -> Result<Option<Summary>> {
    let answer = callback::call(|| summarizer.summarize(prompt));
    let answer = answer.unwrap_or_else(|failed| Err(failed.into()));
    match answer.map_err(|source| Error::Summarizer { source })? {
        Summarized::Summary(summary) => Ok(Some(summary)),
        Summarized::Declined => Ok(None),
    }
}
