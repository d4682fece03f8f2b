//! Finding the words of a query in a text, outside the index.
//!
//! What is looked for is a list of *targets*: each term of the query, and for a term that is nowhere whole, its pieces.
//!
//! Invariant: a target matches where FTS5 would say it does, but for prefixes, which are taken at their word. The work is
//! linear in the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use crate::search::query::{Query, Term};
use crate::search::stem::stem;
use crate::search::token::{Token, tokens};
use crate::search::words::Words;

/// Most matches looked at: the scan of a long text ends there.
const MAX_MATCHES: usize = 1024;

/// Most neighbouring words of the query kept before phrases are looked for among them.
const MAX_RUN: usize = 4096;

/// Most comparisons of words. Only a text of one word and a query of long phrases of it come near.
const MAX_COMPARISONS: usize = 20_000_000;

/// What a letter more is worth, up to this length; a character that is a word by itself is worth four.
const LONG_WORD_CHARS: usize = 8;
const CUT_VALUE: usize = 4;

/// A place where something of the query stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// Where, in bytes of the text.
    pub(crate) range: Range<usize>,
    /// Which of the things looked for it is.
    pub(crate) target: usize,
    /// How much it tells about the text: more for long phrases and for what is rare in it.
    pub(crate) value: usize,
}

/// A word of the text that is in the query: where it is, and which words of the query it is.
struct Spotted {
    range: Range<usize>,
    words: Vec<usize>,
}

/// Something to look for: words in a row.
struct Target {
    words: Vec<usize>,
    /// The term that this is a piece of.
    whole: Option<usize>,
    value: usize,
}

/// What is looked for, prepared for many texts.
#[derive(Default)]
pub(crate) struct Targets {
    list: Vec<Target>,
    /// The targets by their first word.
    by_first: HashMap<usize, Vec<usize>>,
    words: Words,
}

impl Targets {
    pub(crate) fn of(query: &Query) -> Targets {
        let mut targets = Targets::default();
        for term in query.clauses.iter().flatten() {
            let whole = targets.add(term, None);
            for piece in term.pieces() {
                targets.add(&piece, whole);
            }
        }
        targets
    }

    /// Returns where the words of the query stand in `text`, by start.
    pub(crate) fn spot(&self, text: &str) -> Vec<Match> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let mut matches = Vec::new();
        let mut run: Vec<Spotted> = Vec::new();
        let (mut next, mut comparisons) = (0, 0);
        self.words.tell(text, |place, token, word| {
            if let Some(last) = run.last_mut().filter(|last| last.range == token.range()) {
                last.words.push(word);
                return ControlFlow::Continue(());
            }
            if place > next || run.len() == MAX_RUN {
                comparisons += self.match_run(&mut run, &mut matches);
                if matches.len() >= MAX_MATCHES || comparisons >= MAX_COMPARISONS {
                    return ControlFlow::Break(());
                }
            }
            next = place + 1;
            run.push(Spotted { range: token.range(), words: vec![word] });
            ControlFlow::Continue(())
        });
        self.match_run(&mut run, &mut matches);
        self.weigh(matches)
    }

    /// Adds a term or a piece of one; returns its number, none if it has no words.
    fn add(&mut self, term: &Term, whole: Option<usize>) -> Option<usize> {
        // Terms are public and may hold anything: they are split again as the index will split them.
        let found: Vec<Token<'_>> = term.tokens.iter().flat_map(|token| tokens(token)).collect();
        let (last, others) = found.split_last()?;
        let mut words: Vec<usize> = others.iter().map(|token| self.word(token, false)).collect();
        words.push(self.word(last, term.is_prefix));
        let worth = |token: &Token<'_>| {
            if token.is_cut() {
                CUT_VALUE
            } else {
                token.text().chars().take(LONG_WORD_CHARS).count()
            }
        };
        let mut same_first = self.by_first.get(&words[0]).into_iter().flatten();
        if let Some(&known) = same_first.find(|&&known| self.list[known].words == words) {
            // Asked for by itself as well, it is no mere piece.
            self.list[known].whole = self.list[known].whole.and(whole);
            return Some(known);
        }
        let number = self.list.len();
        self.by_first.entry(words[0]).or_default().push(number);
        self.list.push(Target { words, whole, value: found.iter().map(worth).sum() });
        Some(number)
    }

    /// Returns the number of a word of the query.
    fn word(&mut self, token: &Token<'_>, is_prefix: bool) -> usize {
        let folded = token.folded();
        let word = if is_prefix { Cow::Borrowed(&*folded) } else { stem(&folded) };
        self.words.number(&word, is_prefix)
    }

    /// Looks for the targets among neighbouring words, and empties `run`. Returns how many words were compared.
    fn match_run(&self, run: &mut Vec<Spotted>, matches: &mut Vec<Match>) -> usize {
        let mut comparisons = 0;
        for (at, first) in run.iter().enumerate() {
            for &target in first.words.iter().filter_map(|word| self.by_first.get(word)).flatten() {
                let words = &self.list[target].words;
                let Some(found) = run.get(at..at + words.len()) else { continue };
                let same = found
                    .iter()
                    .zip(words)
                    .take_while(|(spotted, word)| spotted.words.contains(word))
                    .count();
                comparisons += same + 1;
                if same == words.len() {
                    let range = first.range.start..found[found.len() - 1].range.end;
                    matches.push(Match { range, target, value: self.list[target].value });
                }
            }
            if matches.len() >= MAX_MATCHES {
                break;
            }
        }
        run.clear();
        comparisons
    }

    /// Returns `matches` without the pieces of terms that are found whole, and with what each is worth in this text.
    fn weigh(&self, mut matches: Vec<Match>) -> Vec<Match> {
        let mut counts = vec![0_usize; self.list.len()];
        matches.iter().for_each(|found| counts[found.target] += 1);
        matches
            .retain(|found| self.list[found.target].whole.is_none_or(|whole| counts[whole] == 0));
        for found in &mut matches {
            found.value = found.value * 16 / (1 + counts[found.target].max(1).ilog2() as usize);
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(text: &str, query: &str) -> Vec<Match> {
        Targets::of(&Query::parse(query)).spot(text)
    }

    /// Holds that `query` is found in `text` at the places put in brackets.
    #[track_caller]
    fn drawn(query: &str, expected: &str) {
        let text = expected.replace(['[', ']'], "");
        let mut out = text.clone();
        for found in spot(&text, query).into_iter().rev() {
            out.insert(found.range.end, ']');
            out.insert(found.range.start, '[');
        }
        assert_eq!(out, expected, "{query}");
    }

    #[test]
    fn words_are_compared_by_their_stems() {
        drawn("running dog", "[Runs] with [dogs], a [run]; dogma");
        drawn("CAFÉ", "a [cafe\u{301}], a [Café], cafeteria");
        drawn("comp*", "[compaction] [comp] com");
        drawn("runn*", "run [running] runt");
    }

    #[test]
    fn a_phrase_is_its_words_in_a_row() {
        drawn("\"new york\"", "new [New\n York], york");
        drawn("\"a b a\"", "[a b a] b x a b");
        drawn("北京", "在[北京]的北方");
        drawn("Rust语言", "[rust 语言] 语");
    }

    #[test]
    fn pieces_count_only_where_the_term_is_nowhere_whole() {
        drawn("user@host", "[user@host], user");
        drawn("user@host", "[host], [user]");
        drawn("user@host user", "[user] or [host]");
        drawn("天气怎么样", "明天[天气]好");
        drawn("\"user host\"", "host user");
    }

    #[test]
    fn excluded_words_are_not_looked_for() {
        drawn("a -b", "[a] b");
        drawn("-b", "a b");
        drawn("", "a b");
    }

    #[test]
    fn what_is_rare_in_the_text_is_worth_more() {
        let matches = spot("the the the the the cat", "the cat");
        assert!(matches[5].value > matches[0].value);
    }

    #[test]
    fn a_text_of_one_word_does_not_multiply_with_long_phrases_of_it() {
        let phrases: String = (0..64).map(|n| format!("\"{}b{n}\" ", "a ".repeat(63))).collect();
        assert_eq!(spot(&"a ".repeat(5_000_000), &phrases), []);
    }

    #[test]
    fn the_scan_ends_after_enough_matches() {
        assert_eq!(spot(&"a x ".repeat(1_000_000), "a").len(), MAX_MATCHES);
        assert!(spot(&"a b ".repeat(1_000_000), "\"a b\" b a").len() < MAX_MATCHES + 3);
    }
}
