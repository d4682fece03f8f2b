//! Analyzes a query: what must match, what may match, and what counts in ranking.
//!
//! A text must contain every word of the query. If too few do, or if the query is a question rather than a list of
//! keywords, the query is *relaxed*: a text must contain at least one *unit*. Units are the words, phrases and
//! prefixes of the query without its stop words. Terms with an operator (quotes, `OR`, a star, a minus) are never
//! relaxed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::finder::Finder;
use crate::language::StopWords;
use crate::query::{Clause, Expr, MAX_KEYWORDS, Phrase, Query, Term};
use crate::token::normal_form;

/// The maximum number of units of a query: each is looked up in the index, and counted in each candidate.
///
/// With 64 a pasted page took 70 ms in a million messages.
const MAX_UNITS: usize = 32;

/// The units of a longer query are chosen from so many.
const MAX_READ_UNITS: usize = 1024;

/// A query with at least this many stop words is a question.
const STOPS_OF_A_QUESTION: usize = 2;

/// A word, phrase or prefix that is counted in ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The term to look up.
    pub term: Term,
    /// Its phrases: as written, and its forms.
    pub phrases: Vec<Phrase>,
}

/// A query, with what matching and ranking need to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The query.
    pub query: Query,
    /// The distinct units, in the order of the query.
    pub units: Vec<Unit>,
    /// The units in the order of the query, with repetitions; `None` for a phrase, which has no neighbours.
    sequence: Vec<Option<usize>>,
    /// Whether it is a question rather than a list of keywords.
    pub is_question: bool,
    /// Whether the asker asks about themself: it has `my`, but not `you`.
    pub is_about_me: bool,
    /// The clauses with an operator: they must match even if the query is relaxed.
    pub strict: Vec<Clause>,
    /// The other terms, which need not match if the query is relaxed.
    pub words: Vec<Unit>,
    /// Whether the relaxed query can match more texts.
    can_relax: bool,
    /// Those of the language of the query.
    stop_words: StopWords,
}

impl Analysis {
    /// Analyzes a query that was read from this text.
    #[must_use]
    pub fn of(query: Query, text: &str) -> Self {
        Self::of_repaired(query, text, &HashSet::new())
    }

    /// Analyzes a query in which words were replaced: these clauses are relaxed although they are prefixes.
    #[must_use]
    pub fn of_repaired(query: Query, text: &str, beginnings: &HashSet<usize>) -> Self {
        let soft: Vec<&Clause> =
            beginnings.iter().filter_map(|at| query.clauses.get(*at)).collect();
        let (strict, plain): (Vec<Clause>, Vec<Clause>) = query
            .clauses
            .iter()
            .filter(|clause| clause.iter().any(|term| !term.is_empty()))
            .cloned()
            .partition(|clause| has_operator(clause) && !soft.contains(&clause));
        let terms = query.clauses.iter().flatten().filter(|term| !term.is_empty());
        let mut sequence: Vec<Unit> = terms.flat_map(units_of).take(MAX_READ_UNITS).collect();
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
        let words = plain.iter().flatten().cloned().map(Unit::of).collect();
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

    /// Returns what matches every clause and no excluded term; `None` if the query has no word.
    #[must_use]
    pub fn all(&self) -> Option<Expr> {
        Some(Expr::all(&self.query.clauses)?.without(self.excluded()))
    }

    /// Returns what matches an excluded term.
    #[must_use]
    pub fn excluded(&self) -> Option<Expr> {
        Expr::any(&self.query.excluded)
    }

    /// Returns what matches any of the given units and every clause with an operator; without units, these clauses.
    #[must_use]
    pub fn any(&self, units: impl IntoIterator<Item = usize>) -> Option<Expr> {
        let any = Expr::any(units.into_iter().map(|unit| &self.units[unit].term));
        let all = match (any, Expr::all(&self.strict)) {
            (Some(any), Some(strict)) => Expr::All(vec![strict, any]),
            (any, strict) => any.or(strict)?,
        };
        Some(all.without(self.excluded()))
    }

    /// Returns the query as one that is never relaxed.
    #[must_use]
    pub fn strictly(&self) -> Self {
        Self { can_relax: false, ..self.clone() }
    }

    /// Returns whether the query is never relaxed.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !self.can_relax
    }

    /// Returns whether the query is a single unit, so a match of the unit is a match of the query.
    #[must_use]
    pub fn is_one_unit(&self) -> bool {
        self.units.len() == 1 && self.words.len() + self.strict.len() == 1
    }

    /// Returns what finds the units in a text, each as the target of its number.
    #[must_use]
    pub fn finder(&self) -> Finder {
        finder(&self.units)
    }

    /// Returns what finds the words that need not match, each as the target of its number.
    #[must_use]
    pub fn words_finder(&self) -> Finder {
        finder(&self.words)
    }

    /// Returns the kept units that are neighbours in the query, each pair once.
    #[must_use]
    pub fn pairs(&self, is_kept: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
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
    #[must_use]
    pub fn shown(&self, is_relaxed: bool) -> Query {
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
    let is_stop_token = |token: &String| stop_words.contains(&normal_form(token));
    !term.is_quoted && !term.is_prefix && term.tokens.iter().all(is_stop_token)
}

impl Unit {
    fn of(term: Term) -> Self {
        Self { phrases: term.phrases(), term }
    }
}

/// Returns the units of a term: its pieces, or the whole if it has none.
fn units_of(term: &Term) -> Vec<Unit> {
    let pieces = term.pieces();
    let units = if pieces.is_empty() { vec![term.clone()] } else { pieces };
    units.into_iter().map(Unit::of).filter(|unit| !unit.phrases.is_empty()).collect()
}

fn finder(units: &[Unit]) -> Finder {
    let mut finder = Finder::default();
    for unit in units {
        finder.add(&unit.phrases);
    }
    finder
}

/// Removes duplicate units, and the least telling if there are too many. Also returns the sequence of units, with
/// `None` for a phrase: pairs of unigrams overlap.
fn deduplicated(all: Vec<Unit>) -> (Vec<Unit>, Vec<Option<usize>>) {
    let mut units: Vec<Unit> = Vec::new();
    let mut numbers: HashMap<Phrase, usize> = HashMap::new();
    let mut sequence = Vec::new();
    for unit in all {
        let is_word = unit.phrases[0].words.len() == 1;
        // A form of a word that the query has, too, is the same unit.
        let known = unit.phrases.iter().find_map(|phrase| numbers.get(phrase).copied());
        let number = known.unwrap_or(units.len());
        numbers.extend(unit.phrases.iter().map(|phrase| (phrase.clone(), number)));
        if known.is_none() {
            units.push(unit);
        }
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
    (best.iter().map(|number| units[*number].clone()).collect(), sequence)
}

/// Returns how much a unit is likely to tell apart: long words and phrases are rare. How rare they are in the store is not known
/// here.
fn telling(unit: &Unit) -> usize {
    const LONG: usize = 12;
    unit.phrases[0].words.iter().map(|word| word.chars().take(LONG).count()).sum()
}

/// Returns whether the asker asks about themself.
fn is_about_me(plain: &[Clause]) -> bool {
    const ME: [&str; 9] = ["i", "my", "me", "mine", "myself", "we", "our", "us", "ours"];
    const YOU: [&str; 2] = ["you", "your"];
    let words: HashSet<String> = plain
        .iter()
        .flatten()
        .flat_map(|term| &term.tokens)
        .map(|token| normal_form(token).into_owned())
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
        let draw = |unit: &Unit| {
            unit.phrases[0].words.join("+") + if unit.term.is_prefix { "*" } else { "" }
        };
        let units: Vec<_> = read(text).units.iter().map(draw).collect();
        assert_eq!(units.join(" "), expected, "{text}");
    }

    #[test]
    fn units_are_the_words_without_stop_words() {
        counts("What did I say about Lisbon's bridges?", "say lisbon bridges");
        counts("the of", "the of");
        counts("wann haben wir das Auto gekauft", "auto gekauft");
        counts("the die is cast", "die cast");
        counts("running Running runn*", "running runn*");
        counts("don't user@host 3-day C++", "user host 3 day c＋");
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
        let strict = read("\"red fox\" den");
        let phrase = Expr::all(&Query::parse("\"red fox\"").clauses).unwrap();
        let any = Expr::all(&Query::parse("\"red fox\" OR den").clauses).unwrap();
        assert_eq!(strict.any(0..2), Some(Expr::All(vec![phrase, any])));
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
        let words: Vec<_> =
            analysis.units.iter().map(|unit| unit.phrases[0].words.join(" ")).collect();
        for word in ["segmentation", "fault", "0x7ffe", "talktree"] {
            assert!(words.iter().any(|it| it == word), "{word}: {words:?}");
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
