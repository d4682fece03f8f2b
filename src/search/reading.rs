//! How a query is read: what must be found, what may be, and what counts in ranking.
//!
//! Every word must be found, as long as such messages are there. Where none is, or where the query is a question rather
//! than a list of keywords, any of its *units* will do: words, phrases and starts of words, without those that say
//! nothing. What a person marked (quotes, `OR`, a star, a minus) holds in either reading.

use std::collections::HashSet;

use crate::search::query::{Clause, Columns, MAX_TERM_TOKENS, Query, Term};
use crate::search::script::is_cut;
use crate::search::stem::stem;
use crate::search::stop::is_stop;
use crate::search::token::{fold, tokens};

/// Most units of a query: each is looked up in the index.
const MAX_UNITS: usize = 128;

/// From so many words that say nothing on, a query is a question.
const STOPS_OF_A_QUESTION: usize = 2;

/// Something whose occurrences count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// How it is looked for.
    pub(crate) term: Term,
    /// The stems of its words, in a row; of a prefix, the last is the start of words.
    pub(crate) stems: Vec<String>,
}

impl Unit {
    /// Returns the FTS5 expression that finds the unit in these columns.
    pub(crate) fn to_fts(&self, columns: Columns) -> Option<String> {
        let mut query = Query { clauses: vec![vec![self.term.clone()]], ..Query::default() };
        query.filters.columns = columns;
        query.to_fts_all()
    }
}

/// A query with what ranking needs to know of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) query: Query,
    /// What counts, in the order of the query, each once.
    pub(crate) units: Vec<Unit>,
    /// The units as they follow each other in the query; phrases stand between, not among them.
    sequence: Vec<Option<usize>>,
    /// Whether it is asked as people ask people.
    pub(crate) is_question: bool,
    /// Whether the one who asks speaks of themself, and not to the other side.
    pub(crate) is_about_me: bool,
    /// What must be found in any reading.
    strict: Vec<Clause>,
    /// What need not be found if the query is relaxed, whole.
    pub(crate) words: Vec<Unit>,
    /// Whether another reading than the one in which all is found would find anything else.
    can_relax: bool,
}

impl Reading {
    pub(crate) fn of(query: Query, text: &str) -> Self {
        let (strict, plain): (Vec<Clause>, Vec<Clause>) = query
            .clauses
            .iter()
            .filter(|clause| clause.iter().any(|term| !term.is_blank()))
            .cloned()
            .partition(is_marked);
        let mut sequence = Vec::new();
        for term in query.clauses.iter().flatten().filter(|term| !term.is_blank()) {
            add_units(term, &mut sequence);
        }
        let says_something = |unit: &Unit| !is_stop_unit(unit);
        if sequence.iter().any(says_something) {
            sequence.retain(says_something);
        }
        let (units, sequence) = numbered(sequence);
        let stops = plain.iter().flatten().filter(|term| is_stop_term(term)).count();
        let is_asked = text.contains(['?', '？', '؟']);
        let is_question = plain.len() > 1 && (is_asked || stops >= STOPS_OF_A_QUESTION);
        // A single word is nothing else when it is relaxed; a phrase may be taken apart.
        let can_relax = plain.len() + strict.len() > 1
            || plain.iter().flatten().any(|term| !term.pieces().is_empty());
        let can_relax = can_relax && !plain.is_empty() && (!units.is_empty() || !strict.is_empty());
        let is_about_me = is_about_me(&plain);
        let words = plain.iter().flatten().filter_map(whole).collect();
        Self { query, units, sequence, is_question, is_about_me, strict, words, can_relax }
    }

    /// Returns the FTS5 expression in which all is found; none if no word is asked for.
    pub(crate) fn all(&self) -> Option<String> {
        self.query.to_fts_all()
    }

    /// Returns whether the all-words reading is the only one.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.can_relax
    }

    /// Returns whether one unit is all there is to find.
    pub(crate) fn is_one_unit(&self) -> bool {
        self.units.len() == 1 && self.words.len() + self.strict.len() == 1
    }

    /// Returns the FTS5 expression in which any of the given units is found; what is marked must be.
    pub(crate) fn any(&self, units: impl Iterator<Item = usize>) -> Option<String> {
        let mut any: Clause = units.map(|unit| self.units[unit].term.clone()).collect();
        let mut clauses = self.strict.clone();
        // The first of what must be found stands among what may be: so the others count, and need not be there.
        any.extend(self.strict.first().into_iter().flatten().cloned());
        clauses.push(any);
        Query { clauses, ..self.query.clone() }.to_fts_all()
    }

    /// Returns which of the units that are kept are neighbours, each pair once.
    pub(crate) fn pairs(&self, is_kept: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut seen = HashSet::new();
        let mut before: Option<usize> = None;
        for number in self.sequence.iter().copied().filter(|number| number.is_none_or(&is_kept)) {
            if let (Some(a), Some(b)) = (before, number)
                && a != b
                && seen.insert((a.min(b), a.max(b)))
            {
                pairs.push((a, b));
            }
            before = number;
        }
        pairs
    }

    /// Returns the query whose words are marked in snippets.
    pub(crate) fn shown(&self, is_relaxed: bool) -> Query {
        let mut query = self.query.clone();
        if is_relaxed {
            let mut clauses = query.clauses.clone();
            clauses.retain(|clause| is_marked(clause) || !clause.iter().all(is_stop_term));
            if !clauses.is_empty() {
                query.clauses = clauses;
            }
        }
        query
    }
}

/// Returns whether a person marked the clause: it is never relaxed.
fn is_marked(clause: &Clause) -> bool {
    clause.len() > 1 || clause.iter().any(|term| term.is_quoted || term.is_prefix)
}

fn is_stop_term(term: &Term) -> bool {
    let is_stop_token = |token: &String| is_stop(&fold(token));
    !term.is_quoted && !term.is_prefix && term.tokens.iter().all(is_stop_token)
}

fn is_stop_unit(unit: &Unit) -> bool {
    is_stop_term(&unit.term)
}

/// Adds what counts of a term: a marked phrase whole, of any other its words, and the pairs of its runs.
fn add_units(term: &Term, units: &mut Vec<Unit>) {
    let found = words_of(term);
    let mut add = |words: &[&str], is_prefix: bool| {
        if units.len() < MAX_UNITS * 2 && !words.is_empty() {
            units.push(unit(words, is_prefix, term.is_quoted));
        }
    };
    if term.is_quoted || found.len() == 1 {
        return add(&found, term.is_prefix);
    }
    let is_run = |word: &str| word.chars().all(is_cut);
    let count = found.len();
    let mut at = 0;
    for run in found.chunk_by(|a, b| is_run(a) && is_run(b)) {
        at += run.len();
        // What an apostrophe leaves: the `t` of `don't`.
        let is_scrap =
            matches!(run, [word] if word.len() == 1 && word.as_bytes()[0].is_ascii_alphabetic());
        if !is_scrap {
            for words in run.windows(run.len().min(2)) {
                add(words, term.is_prefix && at == count && words.len() == 1);
            }
        }
    }
}

/// Returns the term as one unit; none if there is nothing in it.
fn whole(term: &Term) -> Option<Unit> {
    let words = words_of(term);
    (!words.is_empty()).then(|| unit(&words, term.is_prefix, term.is_quoted))
}

/// Returns the words of a term. Terms are public and may hold anything: they are split as the index will split them.
fn words_of(term: &Term) -> Vec<&str> {
    let tokens = term.tokens.iter().flat_map(|token| tokens(token)).map(|token| token.text());
    tokens.take(MAX_TERM_TOKENS).collect()
}

fn unit(words: &[&str], is_prefix: bool, is_quoted: bool) -> Unit {
    let last = words.len() - 1;
    let stems = words.iter().enumerate().map(|(at, word)| {
        let folded = fold(word);
        if is_prefix && at == last { folded.into_owned() } else { stem(&folded).into_owned() }
    });
    let stems = stems.collect();
    let tokens = words.iter().map(|&word| word.to_owned()).collect();
    Unit { term: Term { tokens, is_prefix, is_quoted }, stems }
}

/// Returns each unit once, and their order; for a phrase `None`, as the pairs of a run overlap.
fn numbered(all: Vec<Unit>) -> (Vec<Unit>, Vec<Option<usize>>) {
    let mut units: Vec<Unit> = Vec::new();
    let mut sequence = Vec::new();
    for unit in all {
        let same =
            |known: &Unit| known.stems == unit.stems && known.term.is_prefix == unit.term.is_prefix;
        let is_word = unit.stems.len() == 1;
        let number = units.iter().position(same).unwrap_or_else(|| {
            units.push(unit);
            units.len() - 1
        });
        sequence.push(is_word.then_some(number));
        if units.len() == MAX_UNITS {
            break;
        }
    }
    (units, sequence)
}

/// Returns whether the words are those of someone who asks about themself.
fn is_about_me(plain: &[Clause]) -> bool {
    const ME: [&str; 9] = ["i", "my", "me", "mine", "myself", "we", "our", "us", "ours"];
    const YOU: [&str; 2] = ["you", "your"];
    let words: HashSet<String> = plain
        .iter()
        .flatten()
        .flat_map(|term| &term.tokens)
        .map(|token| fold(token).into_owned())
        .collect();
    ME.iter().any(|word| words.contains(*word)) && !YOU.iter().any(|word| words.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        Reading::of(Query::parse(text), text)
    }

    /// Holds that `text` has the units drawn, `+` inside a phrase, `*` after a prefix.
    #[track_caller]
    fn counts(text: &str, expected: &str) {
        let draw = |unit: &Unit| unit.stems.join("+") + if unit.term.is_prefix { "*" } else { "" };
        let units: Vec<_> = read(text).units.iter().map(draw).collect();
        assert_eq!(units.join(" "), expected, "{text}");
    }

    #[test]
    fn what_counts_is_words_that_say_something() {
        counts("What did I say about Lisbon's bridges?", "sai lisbon bridg");
        counts("the of", "the of");
        counts("running runs runn*", "run runn*");
        counts("don't user@host 3-day C++", "user host 3 dai c");
        counts("\"the red fox\" OR den", "the+red+fox den");
        counts("北京 今天天气 Rust语言", "北+京 今+天 天+天 天+气 rust 语+言");
        counts("重", "重");
    }

    #[test]
    fn one_unit_may_be_all_there_is() {
        for (text, expected) in [
            ("fox", true),
            ("fox*", true),
            ("\"red fox\"", true),
            ("北京", true),
            ("my fox", false),
            ("red fox", false),
            ("red OR fox", false),
            ("天气怎么样", false),
            ("user@host", false),
        ] {
            assert_eq!(read(text).is_one_unit(), expected, "{text}");
        }
    }

    #[test]
    fn neighbours_are_pairs_of_words_each_once() {
        assert_eq!(read("red fox of red fox den").pairs(|_| true), [(0, 1), (1, 2)]);
        assert_eq!(read("red fox den").pairs(|unit| unit != 1), [(0, 2)]);
        assert_eq!(read("red \"big fox\" den").pairs(|_| true), []);
        assert_eq!(read("北京天气").pairs(|_| true), []);
    }

    #[test]
    fn a_question_is_told_by_its_mark_or_its_small_words() {
        for (text, expected) in [
            ("deploy friday", false),
            ("deploy on friday", false),
            ("when did we deploy", true),
            ("deploy friday?", true),
            ("北京有什么好玩的？", false),
            ("friday?", false),
            ("\"when did we\" deploy", false),
        ] {
            assert_eq!(read(text).is_question, expected, "{text}");
        }
    }

    #[test]
    fn the_one_who_asks_may_speak_of_themself() {
        for (text, expected) in [
            ("my cat", true),
            ("What did you tell me?", false),
            ("cat", false),
            ("\"my cat\"", false),
        ] {
            assert_eq!(read(text).is_about_me, expected, "{text}");
        }
    }

    #[test]
    fn what_is_marked_is_never_relaxed() {
        for (text, expected) in [
            ("red fox -den", r#"text : ((("red" OR "fox")) NOT "den")"#),
            ("\"red fox\" den", r#"text : ("red fox" AND ("red fox" OR "den" OR "red fox"))"#),
            ("a OR b c", r#"text : (("a" OR "b") AND ("b" OR "c" OR "a" OR "b"))"#),
        ] {
            let reading = read(text);
            let any = reading.any(0..reading.units.len());
            assert_eq!(any.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_word_alone_and_what_is_marked_have_one_reading() {
        for (text, expected) in [
            ("fox", true),
            ("\"red fox\"", true),
            ("\"red fox\" den*", true),
            ("a OR b", true),
            ("user@host", false),
            ("red fox", false),
            ("\"red fox\" den", false),
            ("role:user", true),
        ] {
            assert_eq!(read(text).is_fixed(), expected, "{text}");
        }
    }

    #[test]
    fn units_are_limited() {
        let long: String = ('\u{4E00}'..'\u{6000}').collect();
        let text: String = long
            .chars()
            .enumerate()
            .map(|(n, c)| format!("{c}{}", if n % 60 == 0 { " " } else { "" }))
            .collect();
        assert!(read(&text).units.len() <= MAX_UNITS);
        assert!(read(&"word ".repeat(200_000)).units.len() <= MAX_UNITS);
    }
}
