//! The judge: whether a summary may stand in place of what it is a summary of.

use super::Counter;
use crate::message::Message;

/// Why a summary is refused; the view stays as it was.
///
/// ```
/// use talktree::SummaryRefused;
///
/// let why = SummaryRefused::NotShorter { tokens: 150, replaced: 120 };
/// assert_eq!(why.to_string(), "the summary has 150 tokens; it would replace 120");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryRefused {
    /// It has no text that can be seen.
    #[error("the summary is blank")]
    Blank,
    /// The view would not become shorter by it.
    #[error("the summary has {tokens} tokens; it would replace {replaced}")]
    NotShorter {
        /// The tokens of the summary, as a message of the view.
        tokens: u64,
        /// The tokens of what it would replace.
        replaced: u64,
    },
}

/// Returns the tokens of a summary that may replace this many.
pub(crate) fn judge(
    summary: &str,
    replaced: u64,
    counter: &Counter,
) -> Result<u64, SummaryRefused> {
    if summary.chars().all(is_unseen) {
        return Err(SummaryRefused::Blank);
    }
    let tokens = counter.message(&Message::assistant(summary));
    if tokens >= replaced {
        return Err(SummaryRefused::NotShorter { tokens, replaced });
    }
    Ok(tokens)
}

/// White space, control characters, and the characters without width that models emit.
fn is_unseen(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_text_and_is_shorter_than_what_it_replaces() {
        // 4 of the message and 3 of its text.
        let counter = Counter::default();
        for (summary, replaced, verdict) in [
            ("Hello world", 8, Ok(7)),
            ("Hello world", 7, Err(SummaryRefused::NotShorter { tokens: 7, replaced: 7 })),
            ("Hello world", 0, Err(SummaryRefused::NotShorter { tokens: 7, replaced: 0 })),
            ("", 1_000, Err(SummaryRefused::Blank)),
            (" \n\t\u{A0}\u{3000}", 1_000, Err(SummaryRefused::Blank)),
            ("\u{200B}\u{FEFF}\0", 1_000, Err(SummaryRefused::Blank)),
            ("\u{200B}好", 1_000, Ok(6)),
        ] {
            assert_eq!(judge(summary, replaced, &counter), verdict, "{summary:?}");
        }
    }
}
