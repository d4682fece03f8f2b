//! Why a summary is not laid: it may not stand there, or its place is no longer what it was.

use crate::id::{CompactionId, MessageId};

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
    #[error("a summary needs text; the one given is blank")]
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

/// Returns whether nobody would see anything of a summary.
pub(crate) fn is_blank(summary: &str) -> bool {
    summary.chars().all(is_unseen)
}

/// White space, control characters, and the characters without width that models emit.
fn is_unseen(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

/// Why a plan no longer stands: what it was made of is not what a model sees now.
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
    /// A message of the stretch is gone.
    #[error("message {id:?} was deleted")]
    Deleted {
        /// The message.
        id: MessageId,
    },
    /// A message of the stretch says something else.
    #[error("message {id:?} was updated")]
    Updated {
        /// The message.
        id: MessageId,
    },
    /// Another summary lies over the stretch or a part of it.
    #[error("it was compacted under the summary {by:?}")]
    Compacted {
        /// The other compaction.
        by: CompactionId,
    },
    /// A summary of the stretch was taken off.
    #[error("the summary {id:?} was taken off")]
    CompactionRemoved {
        /// The compaction that went.
        id: CompactionId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_that_nobody_would_see_is_blank() {
        for text in ["", " \n\t\u{A0}\u{3000}", "\u{200B}\u{FEFF}\0"] {
            assert!(is_blank(text), "{text:?}");
        }
        assert!(!is_blank("\u{200B}好"));
    }
}
