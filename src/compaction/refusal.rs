//! The reasons why a summary is refused or a plan is stale.

use talktree_text::foreign::is_unseen;

use crate::id::{CompactionId, MessageId};

/// The reason why a summary, or the range that it should replace, is refused. The history is unchanged.
///
/// ```
/// use talktree::SummaryRefused;
///
/// let why = SummaryRefused::NotShorter { tokens: 150, replaced: 120 };
/// assert_eq!(why.to_string(), "the summary (150 tokens) is not shorter than what it replaces (120)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryRefused {
    /// It has no visible text.
    #[error("a summary needs text; the one given is blank")]
    Blank,
    /// It is not shorter than its range.
    #[error("the summary ({tokens} tokens) is not shorter than what it replaces ({replaced})")]
    NotShorter {
        /// The tokens of the summary as a message.
        tokens: u64,
        /// The tokens of the range.
        replaced: u64,
    },
    /// A [`CompactionPolicy`](crate::CompactionPolicy) named an end that the history it was given does not show.
    #[error("the policy's range names {id:?}, which the history does not show")]
    NotShown {
        /// The id.
        id: MessageId,
    },
    /// The range of a policy begins after its end.
    #[error("the policy's range begins at {first:?}, after its end at {last:?}")]
    Reversed {
        /// The start of the range.
        first: MessageId,
        /// The end of the range.
        last: MessageId,
    },
    /// The range of a policy would separate a tool call from its result.
    #[error("the policy's range parts the tool call in {call:?} from its result in {result:?}")]
    PartsPair {
        /// The message with the call.
        call: MessageId,
        /// The message with the result.
        result: MessageId,
    },
    /// The range of a policy holds a message that the options of the session protect.
    #[error("the policy's range holds {id:?}, which the compaction options protect")]
    Protected {
        /// The message.
        id: MessageId,
    },
}

/// Returns whether a summary has no visible character.
pub(crate) fn is_blank(summary: &str) -> bool {
    summary.chars().all(is_unseen)
}

/// The reason why a plan is stale: its range changed since it was made.
///
/// ```
/// use talktree::{CompactionOptions, Error, Message, Planned, Stale, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Planned::Compact(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
///
/// chat.delete(&["5".into()])?; // while the model thinks
/// let refused = chat.commit(plan, "They said words.").unwrap_err();
/// let Error::Stale { why } = refused else { panic!("{refused}") };
/// assert_eq!(why, Stale::Deleted { id: "5".into() });
/// assert_eq!(chat.history()?.len(), 8); // as it was
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// A message of the range was deleted.
    #[error("message {id:?} was deleted")]
    Deleted {
        /// The message.
        id: MessageId,
    },
    /// A message of the range was updated.
    #[error("message {id:?} was updated")]
    Updated {
        /// The message.
        id: MessageId,
    },
    /// The range, or a part of it, was compacted into another summary.
    #[error("the range was compacted into the summary {by:?}")]
    Compacted {
        /// The other compaction.
        by: CompactionId,
    },
    /// A compaction inside the range was removed.
    #[error("the summary {id:?} was removed")]
    CompactionRemoved {
        /// The removed compaction.
        id: CompactionId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_that_nobody_would_see_is_blank() {
        for text in ["", " \n\t\u{A0}\u{3000}", "\u{200B}\u{FEFF}\0", "\u{2800}\u{3164}\u{E0020}"] {
            assert!(is_blank(text), "{text:?}");
        }
        assert!(!is_blank("\u{200B}好"));
    }
}
