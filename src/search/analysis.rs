//! Analyzes a query: what must match, what may match, and what counts in ranking.
//!
//! A message must contain every word of the query. If too few do, or if the query is a question rather than a list of
//! keywords, the query is *relaxed*: a message must contain at least one *unit*. Units are the words, phrases and
//! prefixes of the query without its stop words. Terms with an operator (quotes, `OR`, a star, a minus) are never
//! relaxed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::search::identifiers::spellings;
use crate::search::language::StopWords;
use crate::search::query::{Clause, Columns, MAX_KEYWORDS, MAX_TERM_TOKENS, Query, Term};
use crate::search::script::is_unigram;
use crate::search::stemmer::stem;
use crate::search::tokenizer::{self, normalize, tokens};

/// The maximum number of units of a query: each is looked up in the index, and counted in each candidate.
///
/// With 128 a pasted page took 45 ms in a million messages.
const MAX_UNITS: usize = 64;

/// The units of a longer query are chosen from so many.
const MAX_READ_UNITS: usize = 1024;

/// A query with at least this many stop words is a question.
const STOPS_OF_A_QUESTION: usize = 2;

/// A word, phrase or prefix that is counted in ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The term to look up.
    pub(crate) term: Term,
    /// The stems of its words in order; the last word of a prefix is not stemmed.
    pub(crate) stems: Vec<String>,
    /// The stems of the words of each form of a single word: each form counts as the word.
    pub(crate) forms: Vec<Vec<String>>,
}

/// A query, with what matching and ranking need to know of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Analysis {
    pub(crate) query: Query,
    /// The distinct units, in the order of the query.
    pub(crate) units: Vec<Unit>,
    /// The units in the order of the query, with repetitions; `None` for a phrase, which has no neighbours.
    sequence: Vec<Option<usize>>,
    /// Whether it is a question rather than a list of keywords.
    pub(crate) is_question: bool,
    /// Whether the asker asks about themself: it has `my`, but not `you`.
    pub(crate) is_about_me: bool,
    /// The clauses with an operator: they must match even if the query is relaxed.
    pub(crate) strict: Vec<Clause>,
    /// The other terms, which need not match if the query is relaxed.
    pub(crate) words: Vec<Unit>,
    /// Whether the relaxed query can match more messages.
    can_relax: bool,
    /// Those of the language of the query.
    stop_words: StopWords,
}

impl Analysis {
    pub(crate) fn of(query: Query, text: &str) -> Self {
        Self::of_repaired(query, text, &HashSet::new())
    }

    /// Analyzes a query in which words were replaced: these clauses are relaxed although they are prefixes.
    pub(crate) fn of_repaired(query: Query, text: &str, beginnings: &HashSet<usize>) -> Self {
        let soft: Vec<&Clause> =
            beginnings.iter().filter_map(|at| query.clauses.get(*at)).collect();
        let (strict, plain): (Vec<Clause>, Vec<Clause>) = query
            .clauses
            .iter()
            .filter(|clause| clause.iter().any(|term| !term.is_empty()))
            .cloned()
            .partition(|clause| has_operator(clause) && !soft.contains(&clause));
        let mut sequence = Vec::new();
        for term in query.clauses.iter().flatten().filter(|term| !term.is_empty()) {
            add_units(term, &mut sequence);
        }
        let stop_words = stop_words_of(&plain);
        let is_meaningful = |unit: &Unit| !is_stop_term(&unit.term, stop_words);
        if sequence.iter().any(is_meaningful) {
            sequence.retain(is_meaningful);
        }
        let (units, sequence) = deduplicated(sequence);
        let stops = plain.iter().flatten().filter(|term| is_stop_term(term, stop_words)).count();
        let is_asked = text.contains(['?', '？', '؟']);
        // No message need have all words of a text that somebody pasted.
        let is_text = plain.len() > MAX_KEYWORDS;
        let is_question = plain.len() > 1 && (is_asked || is_text || stops >= STOPS_OF_A_QUESTION);
        // Relaxing a single word changes nothing, but a phrase without quotes has pieces.
        let can_relax = plain.len() + strict.len() > 1
            || plain.iter().flatten().any(|term| !term.pieces().is_empty());
        let can_relax = can_relax && !plain.is_empty() && (!units.is_empty() || !strict.is_empty());
        let is_about_me = is_about_me(&plain);
        let words = plain.iter().flatten().filter_map(whole).collect();
        Self {
            query,
            units,
            sequence,
            is_question,
            is_about_me,
            strict,
            words,
            can_relax,
            stop_words,
        }
    }

    /// Returns the FTS5 expression that matches every clause; `None` if the query has no word.
    pub(crate) fn all(&self) -> Option<String> {
        self.query.to_fts_all()
    }

    /// Returns the query as one that is never relaxed.
    pub(crate) fn strictly(&self) -> Self {
        Self { can_relax: false, ..self.clone() }
    }

    /// Returns the query in text, reasoning and tools.
    pub(crate) fn in_all_columns(&self) -> Self {
        let mut all = self.clone();
        all.query.filters.columns = Columns::All;
        all
    }

    /// Returns whether the query is never relaxed.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.can_relax
    }

    /// Returns whether a part of the query has an operator: a phrase in quotes, a prefix, an `OR`.
    pub(crate) fn has_operators(&self) -> bool {
        !self.strict.is_empty()
    }

    /// Returns whether the query is a single unit, so a match of the unit is a match of the query.
    pub(crate) fn is_one_unit(&self) -> bool {
        self.units.len() == 1 && self.words.len() + self.strict.len() == 1
    }

    /// Returns the FTS5 expression that matches a unit and every clause with an operator; without a unit, these clauses.
    pub(crate) fn with(&self, unit: Option<usize>) -> Option<String> {
        let mut clauses = self.strict.clone();
        clauses.extend(unit.map(|unit| vec![self.units[unit].term.clone()]));
        Query { clauses, ..self.query.clone() }.to_fts_all()
    }

    /// Returns the FTS5 expression that matches any of the given units and every clause with an operator.
    pub(crate) fn any(&self, units: impl Iterator<Item = usize>) -> Option<String> {
        let mut any: Clause = units.map(|unit| self.units[unit].term.clone()).collect();
        let mut clauses = self.strict.clone();
        // The first required clause is added to the alternatives: FTS5 then ranks by the units without requiring one.
        any.extend(self.strict.first().into_iter().flatten().cloned());
        clauses.push(any);
        Query { clauses, ..self.query.clone() }.to_fts_all()
    }

    /// Returns the kept units that are neighbours in the query, each pair once.
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
            let is_stop = |term: &Term| is_stop_term(term, self.stop_words);
            clauses.retain(|clause| has_operator(clause) || !clause.iter().all(is_stop));
            if !clauses.is_empty() {
                query.clauses = clauses;
            }
        }
        query
    }
}

/// Returns whether the clause has an operator and so is never relaxed.
fn has_operator(clause: &Clause) -> bool {
    clause.len() > 1 || clause.iter().any(|term| term.is_quoted || term.is_prefix)
}

/// Returns the stop words of the language in which the terms are written.
fn stop_words_of(plain: &[Clause]) -> StopWords {
    let words: Vec<&str> =
        plain.iter().flatten().flat_map(|term| &term.tokens).map(String::as_str).collect();
    StopWords::of(&words.join(" "))
}

fn is_stop_term(term: &Term, stop_words: StopWords) -> bool {
    let is_stop_token = |token: &String| stop_words.contains(&normalize(token));
    !term.is_quoted && !term.is_prefix && term.tokens.iter().all(is_stop_token)
}

/// Adds the units of a term: a quoted phrase as a whole, else each word, and each pair of neighbouring unigrams.
fn add_units(term: &Term, units: &mut Vec<Unit>) {
    let found = words_of(term);
    let mut add = |words: &[&str], is_prefix: bool| {
        if units.len() < MAX_READ_UNITS && !words.is_empty() {
            units.push(unit(words, is_prefix, term));
        }
    };
    if term.is_quoted || found.len() == 1 {
        return add(&found, term.is_prefix);
    }
    let is_run = |word: &str| word.chars().all(is_unigram);
    let count = found.len();
    let mut at = 0;
    for run in found.chunk_by(|a, b| is_run(a) && is_run(b)) {
        at += run.len();
        // The `t` of `don't` is not a word.
        let is_single_letter =
            matches!(run, [word] if word.len() == 1 && word.as_bytes()[0].is_ascii_alphabetic());
        if !is_single_letter {
            for words in run.windows(run.len().min(2)) {
                add(words, term.is_prefix && at == count && words.len() == 1);
            }
        }
    }
}

/// Returns the term as one unit; `None` if it has no word.
pub(crate) fn whole(term: &Term) -> Option<Unit> {
    let words = words_of(term);
    (!words.is_empty()).then(|| unit(&words, term.is_prefix, term))
}

/// Returns the words of a term. Its fields are public and may hold anything, so they are tokenized again.
fn words_of(term: &Term) -> Vec<&str> {
    let tokens = term.tokens.iter().flat_map(|token| tokens(token)).map(|token| token.with_signs());
    tokens.take(MAX_TERM_TOKENS).collect()
}

/// Returns words of a term as a unit. Only a term of one word has forms.
fn unit(words: &[&str], is_prefix: bool, term: &Term) -> Unit {
    let last = words.len() - 1;
    let stems = words.iter().enumerate().map(|(at, word)| {
        let normalized = normalize(word);
        if is_prefix && at == last {
            normalized.into_owned()
        } else {
            stem(&normalized).into_owned()
        }
    });
    let stems = stems.collect();
    let tokens: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let forms = match words {
        [_] if term.tokens.len() == 1 => term.forms.clone(),
        [word] if !term.is_quoted && !is_prefix => spellings(&tokens, word),
        _ => Vec::new(),
    };
    let stems_of = |form: &String| -> Vec<String> {
        tokenizer::tokens(form).map(|token| stem(&token.normalized()).into_owned()).collect()
    };
    let stems_of_forms = forms.iter().map(stems_of).collect();
    let term = Term { tokens, is_prefix, is_quoted: term.is_quoted, forms };
    Unit { term, stems, forms: stems_of_forms }
}

/// Removes duplicate units, and the least telling if there are too many. Also returns the sequence of units, with
/// `None` for a phrase: pairs of unigrams overlap.
fn deduplicated(all: Vec<Unit>) -> (Vec<Unit>, Vec<Option<usize>>) {
    let mut units: Vec<Unit> = Vec::new();
    let mut numbers = HashMap::new();
    let mut sequence = Vec::new();
    for unit in all {
        let is_word = unit.stems.len() == 1;
        let signs: Vec<String> = unit.term.signs().into_iter().map(str::to_owned).collect();
        let key = (unit.stems.clone(), unit.term.is_prefix, unit.forms.clone(), signs);
        let number = *numbers.entry(key).or_insert_with(|| {
            units.push(unit);
            units.len() - 1
        });
        sequence.push(is_word.then_some(number));
    }
    if units.len() <= MAX_UNITS {
        return (units, sequence);
    }
    let mut best: Vec<usize> = (0..units.len()).collect();
    best.sort_by_key(|&number| (Reverse(telling(&units[number])), number));
    best.truncate(MAX_UNITS);
    best.sort_unstable();
    let place = |number: usize| best.binary_search(&number).ok();
    let sequence = sequence.into_iter().map(|number| number.and_then(place)).collect();
    let mut number = 0;
    units.retain(|_| {
        number += 1;
        place(number - 1).is_some()
    });
    (units, sequence)
}

/// Returns how much a unit is likely to tell apart: long words, numbers and phrases are rare. How rare they are in the
/// store is not known here.
fn telling(unit: &Unit) -> usize {
    const LONG: usize = 12;
    const DIGIT: usize = 3;
    const PHRASE: usize = 4;
    let chars = |stem: &String| stem.chars().take(LONG).count();
    let has_digit = |stem: &String| stem.bytes().any(|byte| byte.is_ascii_digit());
    unit.stems.iter().map(chars).max().unwrap_or(0)
        + if unit.stems.iter().any(has_digit) { DIGIT } else { 0 }
        + if unit.stems.len() > 1 { PHRASE } else { 0 }
}

/// Returns whether the asker asks about themself.
fn is_about_me(plain: &[Clause]) -> bool {
    const ME: [&str; 9] = ["i", "my", "me", "mine", "myself", "we", "our", "us", "ours"];
    const YOU: [&str; 2] = ["you", "your"];
    let words: HashSet<String> = plain
        .iter()
        .flatten()
        .flat_map(|term| &term.tokens)
        .map(|token| normalize(token).into_owned())
        .collect();
    ME.iter().any(|word| words.contains(*word)) && !YOU.iter().any(|word| words.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Analysis {
        Analysis::of(Query::parse(text), text)
    }

    /// Asserts the units of `text`: `+` inside a phrase, `*` after a prefix.
    #[track_caller]
    fn counts(text: &str, expected: &str) {
        let draw = |unit: &Unit| unit.stems.join("+") + if unit.term.is_prefix { "*" } else { "" };
        let units: Vec<_> = read(text).units.iter().map(draw).collect();
        assert_eq!(units.join(" "), expected, "{text}");
    }

    #[test]
    fn units_are_the_words_without_stop_words() {
        counts("What did I say about Lisbon's bridges?", "sai lisbon bridg");
        counts("the of", "the of");
        counts("wann haben wir das Auto gekauft", "auto gekauft");
        counts("the die is cast", "die cast");
        counts("running runs runn*", "run runn*");
        counts("don't user@host 3-day C++", "user host 3 dai c\u{FDD01}");
        counts("\"the red fox\" OR den", "the+red+fox den");
        counts("北京 今天天气 Rust语言", "北+京 今+天 天+天 天+气 rust 语+言");
        counts("重", "重");
    }

    #[test]
    fn a_single_word_or_phrase_is_one_unit() {
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
    fn each_pair_of_neighbours_is_returned_once() {
        assert_eq!(read("red fox of red fox den").pairs(|_| true), [(0, 1), (1, 2)]);
        assert_eq!(read("red fox den").pairs(|unit| unit != 1), [(0, 2)]);
        assert_eq!(read("red \"big fox\" den").pairs(|_| true), []);
        assert_eq!(read("北京天气").pairs(|_| true), []);
    }

    #[test]
    fn a_question_has_a_question_mark_or_two_stop_words() {
        for (text, expected) in [
            ("deploy friday", false),
            ("deploy on friday", false),
            ("when did we deploy", true),
            ("deploy friday?", true),
            ("北京有什么好玩的？", false),
            ("friday?", false),
            ("\"when did we\" deploy", false),
            ("wann haben wir das eingespielt", true),
            ("die hard the movie", false),
            ("Katze das Haus", false),
        ] {
            assert_eq!(read(text).is_question, expected, "{text}");
        }
    }

    #[test]
    fn a_query_with_my_but_not_you_is_about_the_asker() {
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
    fn terms_with_an_operator_are_never_relaxed() {
        for (text, expected) in [
            ("red fox -den", r#"text : ((("red" OR "fox")) NOT "den")"#),
            ("\"red fox\" den", r#"text : ("red fox" AND ("red fox" OR "den"))"#),
            ("a OR b c", r#"text : (("a" OR "b") AND ("b" OR "c" OR "a"))"#),
        ] {
            let analysis = read(text);
            let any = analysis.any(0..analysis.units.len());
            assert_eq!(any.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_single_word_or_terms_with_operators_cannot_be_relaxed() {
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
    fn a_long_text_is_a_question_of_its_most_telling_words() {
        let common: String =
            ('a'..='o').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}x "))).collect();
        let analysis = read(&format!("{common} the segmentation fault 0x7ffe in talktree_open"));
        assert!(analysis.is_question);
        let stems: Vec<_> = analysis.units.iter().map(|unit| unit.stems.join(" ")).collect();
        for word in ["segment", "fault", "0x7ffe", "talktre"] {
            assert!(stems.iter().any(|stem| stem == word), "{word}: {stems:?}");
        }
        assert_eq!(analysis.units.len(), MAX_UNITS);
        assert!(analysis.pairs(|_| true).iter().all(|&(a, b)| a < MAX_UNITS && b < MAX_UNITS));
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
