//! Models that write summaries, one that needs no model, and what makes a summary acceptable.

use super::summary_prompt;
use crate::callback;
use crate::compaction::{Summary, SummaryRefused, is_blank};
use crate::error::{BoxError, Error, Result};
use crate::message::Message;
use crate::tokens::Counter;

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
/// use talktree::{BoxError, CompactionOptions, Message, NothingToCompact, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store
///     .session_builder("s")
///     .summarizer(|_: &str| -> Result<Option<String>, BoxError> { Ok(None) }) // not now
///     .compaction_options(CompactionOptions::default().keep_recent_tokens(0))
///     .open()?;
/// chat.append_all((1..=9).map(|_| Message::user("word ".repeat(50))))?;
/// assert_eq!(chat.compact()?, Err(NothingToCompact::Declined));
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

/// The maximum length of a line of the summary, in characters.
const LINE: usize = 160;

/// The room for all lines is a tenth of the replaced text, within these bounds, in characters.
const SHARE: usize = 10;
const LEAST: usize = 200;
const MOST: usize = 4_000;

/// A [`Summarizer`] that asks no model: it keeps the first line of each message of a person, the newest that fit.
///
/// For programs without a network, and for tests. It does not know what matters, so its summary says how many lines it leaves
/// out; a search finds them.
///
/// ```
/// use talktree::{Extract, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").summarizer(Extract).compact_after(1_000).open()?;
/// for day in 0..50 {
///     chat.append(Message::user(format!("Day {day}: {}", "rain ".repeat(40))))?;
/// }
/// assert!(chat.visible_tokens()? <= 1_000);
/// assert!(chat.compactions()?[0].summary.contains("\n- Day "));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Extract;

impl Extract {
    /// Returns the summary of the messages that a summarizer's prompt quotes.
    #[must_use]
    pub fn summary(&self, prompt: &str) -> String {
        let quotes = summary_prompt::quotes(prompt);
        let size: usize = quotes.iter().map(|(_, words)| words.chars().count()).sum();
        let mut lines = Vec::new();
        for (title, words) in quotes {
            if title.starts_with("summary") {
                lines.extend(words.lines().filter_map(|line| line.strip_prefix("- ")));
            } else if title.ends_with(r#"role "user""#) {
                lines.extend(words.lines().find(|line| !line.trim().is_empty()));
            }
        }
        let mut room = (size / SHARE).clamp(LEAST, MOST);
        let mut kept = Vec::new();
        for line in lines.iter().rev() {
            let line: String = line.chars().take(LINE).collect();
            let Some(left) = room.checked_sub(line.chars().count()) else { break };
            room = left;
            kept.push(format!("\n- {line}"));
        }
        kept.reverse();
        let left_out = match lines.len() - kept.len() {
            0 => String::new(),
            count => format!("; {count} more are left out"),
        };
        format!("What was written, one line a message{left_out}:{}", kept.concat())
    }
}

impl Summarizer for Extract {
    fn summarize(&self, prompt: &str) -> Result<Summarized, BoxError> {
        Ok(Summary::new(self.summary(prompt)).by("extract").into())
    }
}

/// Returns the tokens of a summary that may replace `replaced` tokens, or why it may not.
pub(crate) fn judge(
    summary: &str,
    replaced: u64,
    counter: &Counter,
) -> Result<u64, SummaryRefused> {
    if is_blank(summary) {
        return Err(SummaryRefused::Blank);
    }
    let tokens = counter.message(&Message::assistant(summary));
    if tokens >= replaced {
        return Err(SummaryRefused::NotShorter { tokens, replaced });
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_text_and_is_shorter_than_its_range() {
        // 4 tokens for the message and 3 for its text.
        let counter = Counter::default();
        for (summary, replaced, verdict) in [
            ("Hello world", 8, Ok(7)),
            ("Hello world", 7, Err(SummaryRefused::NotShorter { tokens: 7, replaced: 7 })),
            ("Hello world", 0, Err(SummaryRefused::NotShorter { tokens: 7, replaced: 0 })),
            ("", 1_000, Err(SummaryRefused::Blank)),
            ("\u{200B}好", 1_000, Ok(6)),
        ] {
            assert_eq!(judge(summary, replaced, &counter), verdict, "{summary:?}");
        }
    }
}
