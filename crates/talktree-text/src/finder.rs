//! Finds the words of a query in a text: their counts for ranking, their places for snippets.
//!
//! A *target* is a list of phrases of which each counts as the same: a word and its forms. One pass over the tokens of the text; the
//! parts of identifiers are read after it, as the index has them.
//!
//! Invariant: what the index matches has a match here. The work is linear in the text, and bounded.

use std::collections::HashMap;
use std::ops::Range;

use crate::identifiers::{MAX_PARTS, run};
use crate::query::Phrase;
use crate::token::{normal_form, tokens};

/// The maximum distance in words between two neighbours of a query that are near each other.
pub(crate) const NEAR_WORDS: usize = 2;

/// The maximum number of occurrences of words of the query that are read in a text.
const MAX_OCCURRENCES: usize = 100_000;

/// The maximum number of comparisons. Only a text that repeats one word, with long phrases of that word, comes near.
const MAX_COMPARISONS: usize = 20_000_000;

/// A match of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The number of the target.
    pub target: usize,
    /// The number of the first word in the text. Parts of identifiers follow the text.
    pub position: usize,
    /// The byte range in the text.
    pub range: Range<usize>,
    /// Whether it is the phrase as written or a form of an only word, outside of the parts of identifiers.
    pub is_whole: bool,
}

/// Targets, prepared to be found in many texts.
#[derive(Debug, Default)]
pub struct Finder {
    words: HashMap<String, usize>,
    prefixes: Vec<(String, usize)>,
    /// The number of ids of words and of prefixes.
    ids: usize,
    phrases: Vec<Words>,
    /// The phrases by their first word.
    by_first: HashMap<usize, Vec<usize>>,
    targets: usize,
}

/// A phrase of a target.
#[derive(Debug)]
struct Words {
    ids: Vec<usize>,
    target: usize,
    is_whole: bool,
}

/// A word of the text that is in the query.
struct Occurrence {
    position: usize,
    range: Range<usize>,
    id: usize,
}

impl Finder {
    /// Adds a target; returns its number. Of its phrases the first is as written.
    pub fn add(&mut self, phrases: &[Phrase]) -> usize {
        let target = self.targets;
        self.targets += 1;
        for (number, phrase) in phrases.iter().enumerate() {
            let Some((last, start)) = phrase.words.split_last() else { continue };
            let mut ids: Vec<usize> = start.iter().map(|word| self.id(word)).collect();
            ids.push(if phrase.is_prefix { self.prefix(last) } else { self.id(last) });
            self.by_first.entry(ids[0]).or_default().push(self.phrases.len());
            self.phrases.push(Words { is_whole: number == 0 || ids.len() == 1, ids, target });
        }
        target
    }

    fn id(&mut self, word: &str) -> usize {
        let next = self.ids;
        let id = *self.words.entry(word.to_owned()).or_insert(next);
        self.ids += usize::from(id == next);
        id
    }

    fn prefix(&mut self, word: &str) -> usize {
        if let Some((_, id)) = self.prefixes.iter().find(|(known, _)| known == word) {
            return *id;
        }
        self.prefixes.push((word.to_owned(), self.ids));
        self.ids += 1;
        self.ids - 1
    }

    /// Returns the matches in a text by position, those in parts of identifiers last, and the number of its words.
    #[must_use]
    pub fn find(&self, text: &str) -> (Vec<Match>, usize) {
        let (mut written, mut parts) = (Vec::new(), Vec::new());
        let (mut length, mut next) = (0, 0);
        for token in tokens(text) {
            if written.len() < MAX_OCCURRENCES {
                self.note(&token.form(), (length, token.range()), &mut written);
            }
            let run = run(text, &token);
            if !run.is_empty() && parts.len() < MAX_OCCURRENCES {
                for (number, part) in run.into_iter().enumerate() {
                    self.note(&normal_form(&text[part.clone()]), (next + number, part), &mut parts);
                }
                // No run is near another.
                next += 2 * MAX_PARTS + NEAR_WORDS;
            }
            length += 1;
        }
        for part in &mut parts {
            part.position += length + NEAR_WORDS;
        }
        let mut matches = Vec::new();
        self.match_all(&written, true, &mut matches);
        self.match_all(&parts, false, &mut matches);
        (matches, length)
    }

    fn note(
        &self,
        form: &str,
        (position, range): (usize, Range<usize>),
        found: &mut Vec<Occurrence>,
    ) {
        if let Some(&id) = self.words.get(form) {
            found.push(Occurrence { position, range: range.clone(), id });
        }
        for (prefix, id) in &self.prefixes {
            if form.starts_with(prefix.as_str()) {
                found.push(Occurrence { position, range: range.clone(), id: *id });
            }
        }
    }

    fn match_all(&self, found: &[Occurrence], is_written: bool, matches: &mut Vec<Match>) {
        let mut comparisons = 0;
        for (at, first) in found.iter().enumerate() {
            let from = matches.len();
            for &phrase in self.by_first.get(&first.id).into_iter().flatten() {
                let Words { ids, target, is_whole } = &self.phrases[phrase];
                comparisons += ids.len();
                if let Some(last) = end_of(&found[at..], ids)
                    && matches[from..].iter().all(|known| known.target != *target)
                {
                    let range = first.range.start..last.range.end;
                    let is_whole = *is_whole && is_written;
                    matches.push(Match {
                        target: *target,
                        position: first.position,
                        range,
                        is_whole,
                    });
                }
            }
            if comparisons >= MAX_COMPARISONS {
                return;
            }
        }
    }
}

/// Returns the last of the words in a row with these ids that begin at the first occurrence.
fn end_of<'o>(found: &'o [Occurrence], ids: &[usize]) -> Option<&'o Occurrence> {
    let mut rest = found;
    let mut last = found.first()?;
    for id in &ids[1..] {
        let wanted = last.position + 1;
        rest = &rest[rest.iter().take_while(|next| next.position < wanted).count()..];
        last =
            rest.iter().take_while(|next| next.position == wanted).find(|next| next.id == *id)?;
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    /// Asserts what the terms of a query match in a text.
    #[track_caller]
    fn finds(query: &str, text: &str, expected: &[&str]) {
        let mut finder = Finder::default();
        for term in Query::parse(query).clauses.iter().flatten() {
            finder.add(&term.phrases());
        }
        let found: Vec<&str> = finder.find(text).0.into_iter().map(|it| &text[it.range]).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn words_phrases_and_prefixes_are_found() {
        finds("red", "Red, redder RÉD", &["Red", "RÉD"]);
        finds("\"red fox\"", "a red-fox and a red, big fox", &["red-fox"]);
        finds("re*", "red rest are", &["red", "rest"]);
        finds("\"red fo*\"", "red food", &["red food"]);
        finds("北京", "在北京，京北", &["北京"]);
        finds("a b", "a", &["a"]);
    }

    #[test]
    fn parts_of_identifiers_are_found() {
        finds("request", "HttpRequest x", &["Request"]);
        finds("HttpRequest", "http_request", &["http_request"]);
        finds("\"x request\"", "HttpRequest x", &[]);
    }

    #[test]
    fn a_text_that_repeats_a_word_ends_soon() {
        let phrase = format!("\"{}b\"", "a ".repeat(63));
        finds(&phrase, &"a ".repeat(1_000_000), &[]);
    }
}
