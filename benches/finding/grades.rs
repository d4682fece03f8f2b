//! How good the first hits of a query are, by grades.
//!
//! A grade says what a hit is to somebody who typed the query: 0 is unrelated, 1 is about something near, 2 is about the same
//! thing, 3 is what they look for. The *gain* of a list of hits is its nDCG: the sum of 2^grade - 1, each divided by the
//! logarithm of its place, as a share of the same sum for the best order of all graded hits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use talktree::Store;

use crate::guard::ENOUGH;
use crate::{Result, judged};

/// How many characters are shown on each side of a word of the query.
const CONTEXT: usize = 120;
/// How many words of the query are shown.
const WORDS: usize = 3;
/// Gains that differ by less are the same.
const TOLERANCE: f64 = 0.001;

#[derive(Debug, Deserialize)]
struct Graded {
    store: String,
    /// The hash of the query, in hexadecimal: some are words of conversations that are not copied into the project.
    query: String,
    /// By session and message id.
    grades: BTreeMap<String, u8>,
}

pub(crate) struct Grades {
    known: Vec<Graded>,
    /// The gains of the compared queries, before and now.
    gains: Vec<(f64, f64)>,
    ungraded: usize,
}

/// The gains of one query before and now; `None` if one of its hits has no grade.
pub(crate) struct Comparison(Option<(f64, f64)>);

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((before, now)) => write!(f, ", gain {before:.3} -> {now:.3}"),
            None => Ok(()),
        }
    }
}

impl Grades {
    pub(crate) fn read() -> Result<Self> {
        Ok(Self { known: judged::read("grades.json")?, gains: Vec::new(), ungraded: 0 })
    }

    /// Compares two lists of hits of a query.
    pub(crate) fn compare(
        &mut self,
        store: &str,
        query: &str,
        before: &[String],
        now: &[String],
    ) -> Comparison {
        let hash = format!("{:016x}", judged::hash_of(query));
        let known = self.known.iter().find(|it| it.store == store && it.query == hash);
        let gains = known.and_then(|known| Some((known.gain(before)?, known.gain(now)?)));
        match gains {
            Some(gains) => self.gains.push(gains),
            None => self.ungraded += 1,
        }
        Comparison(gains)
    }

    pub(crate) fn print(&self) {
        let count = |is_counted: fn(f64) -> bool| {
            self.gains.iter().filter(|(before, now)| is_counted(now - before)).count()
        };
        let queries = self.gains.len().max(1) as f64;
        println!(
            "  of those that differ, by grades: {} better, {} as good, {} worse, {} without grades; mean gain {:.3} -> {:.3}",
            count(|more| more > TOLERANCE),
            count(|more| more.abs() <= TOLERANCE),
            count(|more| more < -TOLERANCE),
            self.ungraded,
            self.gains.iter().map(|gains| gains.0).sum::<f64>() / queries,
            self.gains.iter().map(|gains| gains.1).sum::<f64>() / queries,
        );
    }
}

impl Graded {
    fn gain(&self, hits: &[String]) -> Option<f64> {
        let grades: Option<Vec<u8>> =
            hits.iter().map(|hit| self.grades.get(hit).copied()).collect();
        let mut best: Vec<u8> = self.grades.values().copied().collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        best.truncate(ENOUGH);
        // If all grades are 0, so is the gain.
        Some(discounted(&grades?) / discounted(&best).max(f64::MIN_POSITIVE))
    }
}

fn discounted(grades: &[u8]) -> f64 {
    let gain =
        |(at, grade): (usize, &u8)| (f64::from(*grade).exp2() - 1.0) / (at as f64 + 2.0).log2();
    grades.iter().enumerate().map(gain).sum()
}

/// The hits of a query by several builds, to be graded without knowing which build found which.
#[derive(Debug, Serialize)]
pub(crate) struct Pooled {
    store: String,
    query: String,
    /// By session and message id.
    texts: BTreeMap<String, String>,
}

impl Pooled {
    pub(crate) fn of<'h>(
        store: &Store,
        name: &str,
        query: &str,
        hits: impl Iterator<Item = &'h String>,
    ) -> Result<Self> {
        let mut texts = BTreeMap::new();
        for hit in hits.collect::<BTreeSet<_>>() {
            let (session, message) = hit.split_once(' ').ok_or("a hit without a message")?;
            let found = store.session(session)?.message(&message.into())?;
            let message = found.ok_or_else(|| format!("no message {hit:?}"))?;
            let time = message.created_at.format("%Y-%m-%d");
            let text = excerpts(&message.text(), query);
            texts.insert(hit.clone(), format!("{time} {}: {text}", message.role));
        }
        Ok(Self { store: name.to_owned(), query: query.to_owned(), texts })
    }
}

/// Returns what is around the first occurrences of the longest words of the query, or the beginning of the text.
fn excerpts(text: &str, query: &str) -> String {
    let words_of = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect()
    };
    let mut wanted = words_of(query);
    wanted.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let letters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = Vec::new();
    let starts = |at: &usize| *at == 0 || !letters[at - 1].is_alphanumeric();
    for word in wanted.iter().filter(|word| !word.is_empty()).take(WORDS) {
        let is_here = |at: &usize| {
            let rest = letters[*at..].iter().take_while(|c| c.is_alphanumeric());
            rest.flat_map(|c| c.to_lowercase()).eq(word.chars())
        };
        places.extend((0..letters.len()).filter(starts).find(is_here));
    }
    places.sort_unstable();
    places.dedup_by(|later, earlier| *later < *earlier + CONTEXT);
    if places.is_empty() {
        places.push(0);
    }
    let around = |at: &usize| -> String {
        letters[at.saturating_sub(CONTEXT)..letters.len().min(at + CONTEXT)].iter().collect()
    };
    let shown: Vec<String> = places.iter().map(around).collect();
    format!("{} ({} characters)", shown.join(" [..] "), letters.len())
}
