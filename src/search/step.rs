//! What else a query may mean that finds little or nothing as it is written, as a search says it.

use std::fmt;

use serde::Serialize;

/// What was done for a query that finds little or nothing as it is written.
///
/// ```
/// use talktree::{Message, Store, search::Step};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("The session manager restarts."))?;
///
/// let found = store.search("seesion manager").run()?;
/// let (written, searched) = ("seesion".to_owned(), "session".to_owned());
/// assert_eq!(found.steps[0].step, Step::Spelling { written, searched });
/// assert_eq!(found.steps[0].to_string(), "1 hit: searched for \"session\" instead of \"seesion\"");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// A word was searched as the beginning of words.
    Beginning {
        /// The word in the query.
        written: String,
        /// What was searched, with a star.
        searched: String,
    },
    /// Two words were searched as the beginning of one.
    Joined {
        /// The words in the query.
        written: String,
        /// What was searched, with a star.
        searched: String,
    },
    /// A word was searched as two in a row.
    Split {
        /// The word in the query.
        written: String,
        /// The two words.
        searched: String,
    },
    /// A word that nobody wrote was searched in the nearest spelling that somebody wrote.
    Spelling {
        /// The word in the query.
        written: String,
        /// The word that was searched.
        searched: String,
    },
    /// No message has all the words, so any of them was enough.
    AnyWord,
}

/// The maximum count of the hits of a step.
const MAX_HITS: u64 = 1_000;

/// A step that was taken, and what it found.
///
/// ```
/// use talktree::search::{Step, Taken};
///
/// assert_eq!(Taken::new(Step::AnyWord, 7).to_string(), "7 hits: searched for any of the words");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// What was done.
    #[serde(flatten)]
    pub step: Step,
    /// How many messages it found that no earlier step found, at most 1 000. Steps that were taken together have the same
    /// number. The messages are among the hits.
    pub hits: u64,
}

impl Taken {
    /// Returns a step that found so many messages.
    #[must_use]
    pub fn new(step: Step, hits: u64) -> Self {
        Self { step, hits }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hits = match self.hits {
            1 => "1 hit".to_owned(),
            MAX_HITS.. => format!("at least {MAX_HITS} hits"),
            hits => format!("{hits} hits"),
        };
        write!(f, "{hits}: {}", self.step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyWord => f.write_str("searched for any of the words"),
            Self::Beginning { written, .. } => {
                write!(f, "searched for words that begin with {written:?}")
            }
            Self::Joined { written, searched }
            | Self::Split { written, searched }
            | Self::Spelling { written, searched } => {
                write!(f, "searched for {searched:?} instead of {written:?}")
            }
        }
    }
}
