//! Finds the words of a query in a text, for snippets.
//!
//! A *target* is a sequence of words to find: each term of the query, and its forms. A text that does not contain the term
//! may contain its pieces, or a word that the index matches with a prefix by its stem: `run` for `runn*`.
//!
//! Invariant: a text that is found has a match. The work is linear in the text.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use crate::search::dictionary::{Dictionary, PartMatch};
use crate::search::exact;
use crate::search::query::{Query, Term};
use crate::search::stemmer::stem;
use crate::search::tokenizer::{Token, tokens};

/// The maximum number of matches: the search of a long text ends there.
const MAX_MATCHES: usize = 1024;

/// The maximum number of adjacent query words that are kept before targets are matched.
const MAX_RUN: usize = 4096;

/// The maximum number of comparisons. Only a text that repeats one word, with long phrases of that word, comes near.
const MAX_COMPARISONS: usize = 20_000_000;

/// A word is worth one point a letter, up to this many; a unigram is worth four.
const LONG_WORD_CHARS: usize = 8;
const UNIGRAM_VALUE: usize = 4;

/// A match of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// The byte range in the text.
    pub(crate) range: Range<usize>,
    /// The number of the target.
    pub(crate) target: usize,
    /// The value for the snippet: greater for long phrases and for targets that are rare in the text.
    pub(crate) value: usize,
}

/// A word of the text that is in the query, with its ids in the dictionary.
struct Occurrence {
    range: Range<usize>,
    words: Vec<usize>,
}

/// A sequence of words to find.
struct Target {
    words: Vec<usize>,
    /// The term that this is a piece of.
    whole: Option<usize>,
    value: usize,
}

/// The targets of a query, prepared for many texts.
#[derive(Default)]
pub(crate) struct Matcher {
    list: Vec<Target>,
    /// The targets by their first word.
    by_first: HashMap<usize, Vec<usize>>,
    dictionary: Dictionary,
    /// Exact runs of characters; their targets follow those of the list.
    exact: Vec<String>,
}

impl Matcher {
    pub(crate) fn of(query: &Query) -> Matcher {
        let mut matcher = Matcher { exact: query.filters.exact.clone(), ..Matcher::default() };
        let led: Vec<Term> = matcher.exact.iter().filter_map(|run| exact::words(run)).collect();
        for term in query.clauses.iter().flatten().filter(|term| !led.contains(term)) {
            let whole = matcher.add(term, None);
            for piece in term.pieces().into_iter().chain(term.completed()) {
                matcher.add(&piece, whole);
            }
            for form in term.form_terms() {
                matcher.add(&form, None);
            }
        }
        matcher
    }

    /// Returns the matches in `text`, ordered by start.
    pub(crate) fn find(&self, text: &str) -> Vec<Match> {
        if self.list.is_empty() && self.exact.is_empty() {
            return Vec::new();
        }
        let mut matches = Vec::new();
        let mut run: Vec<Occurrence> = Vec::new();
        let (mut next, mut comparisons) = (0, 0);
        self.dictionary.for_each_match(text, |position, token, word| {
            if let Some(last) = run.last_mut().filter(|last| last.range == token.range()) {
                last.words.push(word);
                return ControlFlow::Continue(());
            }
            if position > next || run.len() == MAX_RUN {
                comparisons += self.match_run(&mut run, &mut matches);
                if matches.len() >= MAX_MATCHES || comparisons >= MAX_COMPARISONS {
                    return ControlFlow::Break(());
                }
            }
            next = position + 1;
            run.push(Occurrence { range: token.range(), words: vec![word] });
            ControlFlow::Continue(())
        });
        self.match_run(&mut run, &mut matches);
        self.add_parts(text, &mut matches);
        self.add_exact(text, &mut matches);
        self.scored(matches)
    }

    /// Adds the exact runs.
    fn add_exact(&self, text: &str, matches: &mut Vec<Match>) {
        let from = matches.len();
        for (number, run) in self.exact.iter().enumerate() {
            let found = text.match_indices(run.as_str()).take(MAX_MATCHES);
            let value = run.chars().count().max(UNIGRAM_VALUE);
            matches.extend(found.map(|(start, run)| Match {
                range: start..start + run.len(),
                target: self.list.len() + number,
                value,
            }));
        }
        if matches.len() > from {
            matches.sort_by_key(|found| (found.range.start, found.range.end));
        }
    }

    /// Adds the matches in the parts of identifiers that do not match as a whole.
    fn add_parts(&self, text: &str, matches: &mut Vec<Match>) {
        let mut found = Vec::new();
        let mut run: Vec<Occurrence> = Vec::new();
        let mut last = (0, 0);
        self.dictionary.for_each_part(text, |PartMatch { place, range, word }| {
            if place == last
                && let Some(same) = run.last_mut()
            {
                same.words.push(word);
                return;
            }
            if place != (last.0, last.1 + 1) {
                self.match_run(&mut run, &mut found);
            }
            last = place;
            if found.len() < MAX_MATCHES {
                run.push(Occurrence { range, words: vec![word] });
            }
        });
        self.match_run(&mut run, &mut found);
        // How far the matches up to each one reach.
        let reach = matches.iter().scan(0, |end, whole| {
            *end = whole.range.end.max(*end);
            Some(*end)
        });
        let reach: Vec<usize> = reach.collect();
        let is_covered = |part: &Match| {
            let before = matches.partition_point(|whole| whole.range.start <= part.range.start);
            before.checked_sub(1).is_some_and(|at| reach[at] >= part.range.end)
        };
        found.retain(|part| !is_covered(part));
        if !found.is_empty() {
            matches.append(&mut found);
            matches.sort_by_key(|found| (found.range.start, found.range.end));
            matches.dedup_by(|a, b| a.range == b.range && a.target == b.target);
        }
    }

    /// Adds a target; returns its number, or `None` if it has no word.
    fn add(&mut self, term: &Term, whole: Option<usize>) -> Option<usize> {
        let has_signs = !term.signs().is_empty();
        let number = self.add_words(term, has_signs, whole);
        if term.has_other_signs() {
            self.add_words(term, false, whole.or(number));
        }
        number
    }

    /// Adds the words of a term, which match only with their vowel signs or with any.
    fn add_words(&mut self, term: &Term, with_signs: bool, whole: Option<usize>) -> Option<usize> {
        // The fields of a term are public and may hold anything, so they are tokenized again.
        let found: Vec<Token<'_>> = term.tokens.iter().flat_map(|token| tokens(token)).collect();
        let last = found.len().checked_sub(1)?;
        let word = |(at, token): (usize, &Token<'_>)| match term.is_prefix && at == last {
            true => self.dictionary.add(&token.normalized(), true),
            false if with_signs => {
                self.dictionary.add_spelled(&stem(&token.normalized()), token.signs())
            }
            false => self.dictionary.add(&stem(&token.normalized()), false),
        };
        let words: Vec<usize> = found.iter().enumerate().map(word).collect();
        let value_of = |token: &Token<'_>| {
            if token.is_unigram() {
                UNIGRAM_VALUE
            } else {
                token.text().chars().take(LONG_WORD_CHARS).count()
            }
        };
        let mut same_first = self.by_first.get(&words[0]).into_iter().flatten();
        if let Some(&known) = same_first.find(|&&known| self.list[known].words == words) {
            // The query also has it as a term, so it is not just a piece.
            self.list[known].whole = self.list[known].whole.and(whole);
            return Some(known);
        }
        let number = self.list.len();
        self.by_first.entry(words[0]).or_default().push(number);
        self.list.push(Target { words, whole, value: found.iter().map(value_of).sum() });
        Some(number)
    }

    /// Matches the targets in a run of adjacent words, and clears it. Returns the number of comparisons.
    fn match_run(&self, run: &mut Vec<Occurrence>, matches: &mut Vec<Match>) -> usize {
        let mut comparisons = 0;
        for (at, first) in run.iter().enumerate() {
            for &target in first.words.iter().filter_map(|word| self.by_first.get(word)).flatten() {
                let words = &self.list[target].words;
                let Some(found) = run.get(at..at + words.len()) else {
                    continue;
                };
                let same = found
                    .iter()
                    .zip(words)
                    .take_while(|(occurrence, word)| occurrence.words.contains(word))
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

    /// Removes the pieces of terms that match as a whole, and sets the values for this text.
    fn scored(&self, mut matches: Vec<Match>) -> Vec<Match> {
        let mut counts = vec![0_usize; self.list.len() + self.exact.len()];
        matches.iter().for_each(|found| counts[found.target] += 1);
        let whole = |found: &Match| self.list.get(found.target).and_then(|target| target.whole);
        matches.retain(|found| whole(found).is_none_or(|whole| counts[whole] == 0));
        for found in &mut matches {
            found.value = found.value * 16 / (1 + counts[found.target].max(1).ilog2() as usize);
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, query: &str) -> Vec<Match> {
        Matcher::of(&Query::parse(query)).find(text)
    }

    /// Asserts that `query` matches the parts of the text in brackets.
    #[track_caller]
    fn drawn(query: &str, expected: &str) {
        let text = expected.replace(['[', ']'], "");
        let mut out = text.clone();
        for found in find(&text, query).into_iter().rev() {
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
        drawn("running*", "a [run], [runs], runner");
        drawn("\"red runn*\"", "a [red run], run");
    }

    #[test]
    fn a_phrase_is_its_words_in_a_row() {
        drawn("\"new york\"", "new [New\n York], york");
        drawn("\"a b a\"", "[a b a] b x a b");
        drawn("北京", "在[北京]的北方");
        drawn("Rust语言", "[rust 语言] 语");
    }

    #[test]
    fn pieces_match_only_if_the_whole_term_does_not() {
        drawn("user@host", "[user@host], user");
        drawn("user@host", "[host], [user]");
        drawn("user@host user", "[user] or [host]");
        drawn("天气怎么样", "明天[天气]好");
        drawn("\"user host\"", "host user");
    }

    #[test]
    fn parts_of_identifiers_match() {
        drawn("request", "an Http[Request] or http_[request]");
        drawn("HttpRequest", "an [HttpRequest], [http request], [HTTPRequest], [http_request]");
        drawn("http_request", "an [HttpRequest], [http_request], [httprequest], request");
        drawn("args", "parse[Args]2(), pargs");
        drawn("parse args", "[parse]_[args] [parse][Args]2");
        drawn("\"auto compaction\"", "check[AutoCompaction], auto_x, AutoIt CompactionPlan");
        drawn("v0.14.2", "[v0.14.2], [0.14.2], 0.14");
        drawn("0.14.2", "v[0.14.2]");
        drawn("C++", "C, [C++], C#");
    }

    #[test]
    fn vowel_signs_distinguish_words() {
        // A match ends before the last signs; a snippet marks them, too.
        drawn("ดี", "[ด]ีมาก ดู ด");
        drawn("กิน", "กัน [กิน]ข้าว กินี");
        drawn("\"के\"", "[क]े का");
        drawn("के", "[क]े का");
        drawn("के", "[क]ा");
    }

    #[test]
    fn exact_runs_match_as_they_are_written() {
        drawn("exact:\"a ?? b\"", "[a ?? b], a b, A ?? B");
        drawn("exact:oo fox", "f[oo] [fox]");
        drawn("exact:\"é\"", "caf[é] cafe");
    }

    #[test]
    fn excluded_words_do_not_match() {
        drawn("a -bat", "[a] bat");
        drawn("-bat", "a bat");
        drawn("", "a b");
    }

    #[test]
    fn a_rare_word_has_a_greater_value() {
        let matches = find("the the the the the cat", "the cat");
        assert!(matches[5].value > matches[0].value);
    }

    #[test]
    fn long_phrases_of_one_repeated_word_take_linear_time() {
        let phrases: String = (0..64).map(|n| format!("\"{}b{n}\" ", "a ".repeat(63))).collect();
        assert_eq!(find(&"a ".repeat(5_000_000), &phrases), []);
    }

    #[test]
    fn the_search_ends_after_enough_matches() {
        assert_eq!(find(&"a x ".repeat(1_000_000), "a").len(), MAX_MATCHES);
        assert!(find(&"a b ".repeat(1_000_000), "\"a b\" b a").len() < MAX_MATCHES + 3);
    }
}
