//! Which texts have the words of a query with their vowel signs.
//!
//! The index has letters only: in Thai `ดี` (good) and `ดู` (look) are one word of it. So the texts that have the letters are
//! found first, and each is kept if it has the signs, too. A query without such words reads no text for this.

use std::ops::Range;

use super::Matched;
use super::analysis::{Analysis, Unit, whole};
use super::query::{Clause, Columns, Term};
use super::scanner::Scanner;

/// What a text must have, besides what the index finds.
pub(crate) struct Spelling {
    pub(crate) columns: Columns,
    scanner: Scanner,
    /// The units of each clause that is checked, one of which a text must have.
    clauses: Vec<Range<usize>>,
    /// How many of these must match even if the query is relaxed; they are the first.
    strict: usize,
    /// The units of which one is enough if the query is relaxed; none if the index or other clauses are enough.
    any: Range<usize>,
    /// The units that no text may have.
    excluded: Range<usize>,
}

impl Spelling {
    /// Returns `None` if the index tells enough.
    pub(crate) fn of(reading: &Analysis) -> Option<Self> {
        let needs_signs = |clause: &&Clause| clause.iter().any(Term::needs_signs);
        let is_strict = |clause: &&Clause| reading.strict.contains(clause);
        let checked = reading.query.clauses.iter().filter(needs_signs);
        let (strict, others): (Vec<_>, Vec<_>) = checked.partition(is_strict);
        let excluded: Vec<&Term> =
            reading.query.excluded.iter().filter(|term| term.needs_signs()).collect();
        if strict.is_empty() && others.is_empty() && excluded.is_empty() {
            return None;
        }
        let mut units: Vec<Unit> = Vec::new();
        let mut clauses = Vec::new();
        for clause in strict.iter().chain(&others) {
            let from = units.len();
            units.extend(clause.iter().flat_map(alternatives).filter_map(|term| whole(&term)));
            clauses.push(from..units.len());
        }
        let from = units.len();
        if reading.strict.is_empty() && !others.is_empty() {
            units.extend(reading.units.iter().cloned());
        }
        let any = from..units.len();
        units.extend(excluded.into_iter().filter_map(whole));
        let excluded = any.end..units.len();
        Some(Self {
            columns: reading.query.filters.columns,
            scanner: Scanner::new(&units, &[]),
            clauses,
            strict: strict.len(),
            any,
            excluded,
        })
    }

    /// Returns whether a text that the index found for all words of the query, or for any of them, has them with their signs.
    pub(crate) fn holds(&self, text: &str, matched: Matched) -> bool {
        let counts = self.scanner.scan(text, usize::MAX).counts;
        let has = |units: &Range<usize>| counts[units.clone()].iter().any(|count| *count > 0);
        if has(&self.excluded) {
            return false;
        }
        match matched {
            Matched::All => self.clauses.iter().all(has),
            _ => {
                self.clauses[..self.strict].iter().all(has)
                    && (self.any.is_empty() || has(&self.any))
            }
        }
    }
}

/// Returns the term and what the index finds besides it.
fn alternatives(term: &Term) -> Vec<Term> {
    let others = term.form_terms().chain(term.completed());
    std::iter::once(term.clone()).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;

    /// Returns whether the text has all words of the query, and any.
    fn holds(query: &str, text: &str) -> (bool, bool) {
        let spelling = Spelling::of(&Analysis::of(Query::parse(query), query));
        let holds = |matched| spelling.as_ref().is_none_or(|it| it.holds(text, matched));
        (holds(Matched::All), holds(Matched::Relaxed))
    }

    #[test]
    fn only_words_with_signs_are_checked() {
        for query in ["red fox", "北京", "मेल", "มา", "cafe\u{301}", "role:user"] {
            assert!(Spelling::of(&Analysis::of(Query::parse(query), query)).is_none(), "{query}");
        }
        for query in ["\"मेल\"", "red -ดี"] {
            assert!(Spelling::of(&Analysis::of(Query::parse(query), query)).is_some(), "{query}");
        }
    }

    #[test]
    fn all_words_or_any_of_them_have_their_signs() {
        assert_eq!(holds("ดี ปู", "ดีปู"), (true, true));
        assert_eq!(holds("ดี ปู", "ดีปี"), (false, true));
        assert_eq!(holds("ดี ปู", "ดูปี"), (false, false));
    }

    #[test]
    fn an_excluded_word_has_its_signs() {
        assert_eq!(holds("red -\"ดี\"", "red ดู"), (true, true));
        assert_eq!(holds("red -\"ดี\"", "red ดี"), (false, false));
        assert_eq!(holds("ดู -\"ดี\"", "ดูดี"), (false, false));
    }

    #[test]
    fn an_alternative_without_signs_is_enough() {
        assert_eq!(holds("ดี OR HttpRequest", "ดู http request"), (true, true));
        assert_eq!(holds("\"ดี\" OR runn*", "ดู run"), (true, true));
        assert_eq!(holds("\"ดี\" OR fox", "ดู den"), (false, false));
        assert_eq!(holds("\"ดี\" fox", "ดี den"), (true, true));
        assert_eq!(holds("\"ดี\" fox", "ดู fox"), (false, false));
    }
}
