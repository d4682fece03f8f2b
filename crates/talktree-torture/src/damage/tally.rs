//! What became of the cases, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::case::Seen;
use super::crew::Ended;
use super::harm::Harm;
use crate::Report;

/// The most examples that are told of one kind.
const EXAMPLES: usize = 3;
/// The most sessions that one leaf of the message table can be part of, its neighbours' ends among them.
const SESSIONS_ON_A_PAGE: usize = 3;

/// How a case ended for the one who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Refused,
    ToldByReads,
    FoundByVerify,
    Harmless,
    Undetected,
}

impl Class {
    fn of(seen: &Seen) -> Self {
        if seen.refused.is_some() {
            Self::Refused
        } else if !seen.errors.is_empty() {
            Self::ToldByReads
        } else if seen.is_found() {
            Self::FoundByVerify
        } else if seen.different.is_empty() {
            Self::Harmless
        } else {
            Self::Undetected
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused when it is opened",
            Self::ToldByReads => "told by reads, and by verify",
            Self::FoundByVerify => "found by verify alone",
            Self::Harmless => "harmless",
            Self::Undetected => "undetected",
        }
    }
}

/// The counts of all cases.
#[derive(Default)]
pub(super) struct Tally {
    classes: BTreeMap<(&'static str, Class), u64>,
    /// What is undetected: where, and in which columns.
    undetected: BTreeMap<String, Vec<u64>>,
    kinds: BTreeMap<&'static str, u64>,
    /// Errors that do not say that the store is damaged, by their words.
    other_errors: BTreeMap<String, Vec<String>>,
    slowest: Duration,
    total: Duration,
    cases: u64,
    wrong_and_found: u64,
    /// By the number of sessions that still read as they were.
    readable: BTreeMap<usize, u64>,
    appended: u64,
}

impl Tally {
    /// Counts a case, and notes what broke a promise.
    pub(super) fn add(&mut self, report: &mut Report, again: &str, harm: Harm, ended: Ended<Seen>) {
        self.cases += 1;
        self.total += ended.took;
        self.slowest = self.slowest.max(ended.took);
        let seen = match ended.answer {
            None => return report.failure(format!("{harm}: a panic"), again),
            Some(Err(error)) => return report.failure(format!("{harm}: {error}"), again),
            Some(Ok(seen)) => seen,
        };
        let class = Class::of(&seen);
        *self.classes.entry((harm.kind(), class)).or_default() += 1;
        for kind in seen.damages.iter().map(|damage| damage.0).collect::<BTreeSet<_>>() {
            *self.kinds.entry(kind).or_default() += 1;
        }
        for told in seen.told().filter(|told| !told.is_clear) {
            // The same words about another place are the same error.
            let text = told.text.replace(|c: char| c.is_ascii_digit(), "#");
            self.other_errors.entry(text).or_default().push(again.to_owned());
        }
        if class == Class::ToldByReads && !seen.is_found() {
            let (asked, told) = &seen.errors[0];
            report.failure(
                format!("{harm} in {}: {asked} tells {told:?}, and verify does not", seen.part),
                again,
            );
        }
        for session in &seen.lost {
            if !seen.is_found() {
                report.failure(
                    format!("{harm} in {}: an append to {session} was lost", seen.part),
                    again,
                );
            }
        }
        if class == Class::Undetected {
            let verbs: BTreeSet<&str> =
                seen.different.iter().filter_map(|asked| asked.split(' ').next()).collect();
            let what = match seen.columns.is_empty() {
                true => {
                    format!("{}: {}", seen.part, verbs.into_iter().collect::<Vec<_>>().join(" "))
                }
                false => seen.columns.join(" "),
            };
            let round = again.rsplit(' ').next().and_then(|round| round.parse::<u64>().ok());
            self.undetected.entry(what).or_default().extend(round);
        }
        if class != Class::Refused {
            self.wrong_and_found +=
                u64::from(class != Class::Undetected && !seen.different.is_empty());
            self.appended += u64::from(seen.unwritten.is_empty());
            *self.readable.entry(seen.readable).or_default() += 1;
        }
        let lost = self.readable.keys().max().map_or(0, |all| all - seen.readable);
        let is_one_leaf = matches!(harm, Harm::Flip { .. }) && seen.part == "message leaf";
        if is_one_leaf && class != Class::Refused && lost > SESSIONS_ON_A_PAGE {
            report.failure(
                format!("{harm} in one leaf of the messages: {lost} sessions read otherwise"),
                again,
            );
        }
    }

    /// Tells the counts.
    pub(super) fn tell(&self, report: &mut Report) {
        report.fact("cases", self.cases);
        for ((kind, class), count) in &self.classes {
            report.fact(format!("{kind}: {}", class.name()), count);
        }
        report.fact("damaged, told, and some answers wrong", self.wrong_and_found);
        report.fact("opened and appended to", self.appended);
        report.fact("verify, by kind", format!("{:?}", self.kinds));
        for (what, rounds) in &self.undetected {
            let examples = &rounds[..rounds.len().min(EXAMPLES)];
            report.fact(
                format!("undetected in {what}"),
                format!("{} (rounds {examples:?})", rounds.len()),
            );
        }
        report.fact("sessions that read as they were: cases", format!("{:?}", self.readable));
        for (text, rounds) in &self.other_errors {
            report.fact(format!("error {text:?}"), format!("{} ({})", rounds.len(), rounds[0]));
        }
        let mean = self.total.checked_div(self.cases as u32).unwrap_or_default();
        report.fact(
            "time of a case",
            format!("{mean:.0?} in the mean, {:.1?} at the most", self.slowest),
        );
    }
}
