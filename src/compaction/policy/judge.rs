//! Decides whether a summary may replace its range.

use crate::compaction::{SummaryRefused, is_blank};
use crate::message::Message;
use crate::tokens::Counter;

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
