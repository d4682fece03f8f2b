//! What else a query may mean that finds little or nothing as it is written: the steps of the ladder, and how words differ.
//!
//! The storage takes the steps; this module has what needs no index. Terms with an operator (quotes, `OR`, a star, a
//! minus) are never changed.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use super::SearchRequest;
use super::lexer::{Filter, LexemeKind, lex};
use super::query::{Clause, Query, Term};
use super::script::is_unigram;
use super::tokenizer::{is_sign, normalize};

/// A word of a query that has at least so many letters is also searched as the beginning of a word.
pub(crate) const MIN_BEGINNING: usize = 3;
/// Two neighbours are also searched as one word that has at least so many letters.
pub(crate) const MIN_JOINED: usize = 4;
/// A word is also searched as two words of at least so many letters each.
const MIN_PART: usize = 2;
/// A longer word is not searched as two words: the vocabulary has no words of more than 40 letters.
const MAX_SPLIT: usize = 80;
/// From so many letters on, a word is corrected by one edit, or by two.
///
/// Of 32 misspelled words of real queries this rule corrects 30. Shorter words have too many neighbours.
const ONE_EDIT: usize = 5;
const TWO_EDITS: usize = 9;
/// Longer words are not corrected: nobody types them.
const MAX_CORRECTED: usize = 40;

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
    /// Reasoning and tools were searched.
    Tools,
    /// The hits in reasoning and tools were only counted, because there are hits in the text. `in:all` finds them.
    MoreInTools,
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
/// assert_eq!(Taken::new(Step::Tools, 7).to_string(), "7 hits in reasoning and tools");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Taken {
    /// What was done.
    #[serde(flatten)]
    pub step: Step,
    /// How many messages it found that no earlier step found, at most 1 000. Steps that were taken together have the same
    /// number. The messages are among the hits, except those of [`Step::MoreInTools`].
    pub hits: u64,
}

impl Taken {
    /// Returns a step that found so many messages, for storages of your own.
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
        match &self.step {
            Step::Tools => write!(f, "{hits} in reasoning and tools"),
            Step::MoreInTools => {
                write!(f, "{hits} more in reasoning and tools, which `in:all` finds")
            }
            step => write!(f, "{hits}: {step}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools => f.write_str("searched in reasoning and tools"),
            Self::MoreInTools => f.write_str("looked into reasoning and tools"),
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

/// A query in which words were replaced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repaired {
    pub(crate) query: Query,
    /// The beginnings among the clauses. They have no operator in the query as it was written, so they may be relaxed.
    pub(crate) beginnings: HashSet<usize>,
    pub(crate) steps: Vec<Step>,
}

/// Returns whether a request says which part of messages is searched, so that no other part may be.
pub(crate) fn names_columns(request: &SearchRequest) -> bool {
    let is_column = |kind| matches!(kind, LexemeKind::Filter { filter: Filter::In, .. });
    !request.is_plain && lex(&request.text).any(|lexeme| is_column(lexeme.kind))
}

/// Returns the single word of a clause without an operator; `None` for phrases and unigrams.
pub(crate) fn word_of(clause: &Clause) -> Option<&str> {
    let [term] = clause.as_slice() else { return None };
    let [token] = term.tokens.as_slice() else { return None };
    let is_word = !term.is_quoted && !term.is_prefix && !token.chars().any(is_unigram);
    // No vocabulary has signs.
    is_word.then(|| token.trim_end_matches(is_sign))
}

/// Returns the term of one word.
pub(crate) fn term(word: &str) -> Term {
    Term { tokens: vec![word.to_owned()], ..Term::default() }
}

/// Returns the term of the words that begin so.
pub(crate) fn beginning(word: &str) -> Term {
    Term { is_prefix: true, ..term(word) }
}

/// Returns the ways to split a word in two; none if it is very long.
pub(crate) fn splits(word: &str) -> impl Iterator<Item = (&str, &str)> {
    let count = word.chars().count();
    let is_short = count <= MAX_SPLIT;
    word.char_indices()
        .enumerate()
        .take_while(move |_| is_short)
        .filter(move |(number, _)| *number >= MIN_PART && number + MIN_PART <= count)
        .map(|(_, (at, _))| word.split_at(at))
}

/// A word that may be misspelled, to compare with others.
pub(crate) struct Misspelled {
    letters: Vec<char>,
    max_edits: usize,
}

impl Misspelled {
    /// Returns the word to compare; `None` if it is not corrected: because it is short, or has digits.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let letters: Vec<char> = normalize(word).chars().collect();
        let max_edits = match letters.len() {
            TWO_EDITS..=MAX_CORRECTED => 2,
            ONE_EDIT..TWO_EDITS => 1,
            _ => return None,
        };
        letters.iter().all(|c| c.is_alphabetic()).then_some(Self { letters, max_edits })
    }

    /// The first letter is hardly ever the wrong one.
    pub(crate) fn first(&self) -> char {
        self.letters[0]
    }

    /// Returns by how many edits a normalized word differs, if they are few: a letter more, less or different, or two
    /// neighbours swapped.
    pub(crate) fn distance(&self, other: &str) -> Option<usize> {
        let (bytes, max) = (other.len(), self.max_edits);
        // Most words differ in length: a letter has one to four bytes.
        if bytes + max < self.letters.len() || bytes > 4 * (self.letters.len() + max) {
            return None;
        }
        let other: Vec<char> = other.chars().collect();
        let (rows, columns) = (self.letters.len(), other.len());
        if rows.abs_diff(columns) > max || !other.iter().all(|c| c.is_alphabetic()) {
            return None;
        }
        let mut before: Vec<usize> = Vec::new();
        let mut last: Vec<usize> = (0..=columns).collect();
        for row in 1..=rows {
            let mut next = vec![row];
            for column in 1..=columns {
                let is_same = self.letters[row - 1] == other[column - 1];
                let mut least = (last[column] + 1)
                    .min(next[column - 1] + 1)
                    .min(last[column - 1] + usize::from(!is_same));
                if row > 1
                    && column > 1
                    && self.letters[row - 1] == other[column - 2]
                    && self.letters[row - 2] == other[column - 1]
                {
                    least = least.min(before[column - 2] + 1);
                }
                next.push(least);
            }
            if next.iter().all(|edits| *edits > max) {
                return None;
            }
            before = std::mem::replace(&mut last, next);
        }
        Some(last[columns]).filter(|edits| (1..=max).contains(edits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn differs(written: &str, other: &str, expected: Option<usize>) {
        let word = Misspelled::of(written);
        assert_eq!(word.and_then(|word| word.distance(other)), expected, "{written} {other}");
    }

    #[test]
    fn words_are_one_edit_apart_from_five_letters_on_and_two_from_nine() {
        differs("seesion", "session", Some(1));
        differs("sesion", "session", Some(1));
        differs("sesssion", "session", Some(1));
        differs("sessoin", "session", Some(1));
        differs("sesoin", "session", None);
        differs("enivronmant", "environment", Some(2));
        differs("teh", "the", None);
        differs("größe", "große", None);
        differs("привот", "привет", Some(1));
    }

    #[test]
    fn a_word_does_not_differ_from_itself_and_digits_are_never_corrected() {
        differs("session", "session", None);
        differs("sha256sum", "sha257sum", None);
        differs("version", "versio2", None);
    }

    /// Each way to split a word of 100 000 letters was looked up: the search took minutes, whatever its timeout.
    #[test]
    fn a_very_long_word_is_not_split() {
        assert_eq!(splits(&"a".repeat(MAX_SPLIT)).count(), MAX_SPLIT - 2 * MIN_PART + 1);
        assert_eq!(splits(&"a".repeat(MAX_SPLIT + 1)).count(), 0);
    }

    #[test]
    fn each_part_of_a_split_has_two_letters() {
        let drawn = |word| splits(word).map(|(a, b)| format!("{a} {b}")).collect::<Vec<_>>();
        assert_eq!(drawn("hardl"), ["ha rdl", "har dl"]);
        assert_eq!(drawn("übel"), ["üb el"]);
        assert_eq!(drawn("abc"), [""; 0]);
    }

    #[test]
    fn only_single_words_without_operators_are_words() {
        let words = |text: &str| -> Vec<String> {
            let query = Query::parse(text);
            query.clauses.iter().filter_map(word_of).map(str::to_owned).collect()
        };
        assert_eq!(words("fox \"den\" co* a OR b user@host 北 x"), ["fox", "x"]);
    }
}
