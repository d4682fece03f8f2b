//! Counts how the cases ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::case::Seen;
use super::corruption::Corruption;
use super::threads::Ended;
use crate::Report;

/// The maximum number of examples of one kind in the report.
const EXAMPLES: usize = 3;
/// The maximum number of sessions on one leaf page of the message table, including the ends of its neighbours.
const SESSIONS_ON_A_PAGE: usize = 3;

/// How the damage of a case showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Refused,
    ReportedByReads,
    FoundByVerify,
    Harmless,
    Undetected,
}

impl Class {
    fn of(seen: &Seen) -> Self {
        if seen.refused.is_some() {
            Self::Refused
        } else if !seen.errors.is_empty() {
            Self::ReportedByReads
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
            Self::Refused => "refused on opening",
            Self::ReportedByReads => "reported by reads and by verify",
            Self::FoundByVerify => "found only by verify",
            Self::Harmless => "harmless",
            Self::Undetected => "undetected",
        }
    }
}

/// The counts of all cases.
#[derive(Default)]
pub(super) struct Tally {
    classes: BTreeMap<(&'static str, Class), u64>,
    /// The rounds with undetected damage, by part of the file and reads that differ.
    undetected: BTreeMap<String, Vec<u64>>,
    kinds: BTreeMap<&'static str, u64>,
    /// Errors that do not say that the store is damaged, by text, with the commands that replay them.
    other_errors: BTreeMap<String, Vec<String>>,
    slowest: Duration,
    total: Duration,
    cases: u64,
    wrong_and_found: u64,
    /// Cases by the number of sessions that still read as before.
    readable: BTreeMap<usize, u64>,
    appended: u64,
}

impl Tally {
    /// Counts a case and reports broken promises.
    pub(super) fn add(
        &mut self,
        report: &mut Report,
        replay: &str,
        corruption: Corruption,
        ended: Ended<Seen>,
    ) {
        self.cases += 1;
        self.total += ended.took;
        self.slowest = self.slowest.max(ended.took);
        let seen = match ended.answer {
            None => return report.failure(format!("{corruption}: a panic"), replay),
            Some(Err(error)) => return report.failure(format!("{corruption}: {error}"), replay),
            Some(Ok(seen)) => seen,
        };
        let class = Class::of(&seen);
        *self.classes.entry((corruption.kind(), class)).or_default() += 1;
        for kind in seen.damages.iter().map(|damage| damage.0).collect::<BTreeSet<_>>() {
            *self.kinds.entry(kind).or_default() += 1;
        }
        for error in seen.all_errors().filter(|error| !error.is_about_damage) {
            // The same text with other numbers is the same error.
            let text = error.text.replace(|c: char| c.is_ascii_digit(), "#");
            self.other_errors.entry(text).or_default().push(replay.to_owned());
        }
        if class == Class::ReportedByReads && !seen.is_found() {
            let (asked, error) = &seen.errors[0];
            report.failure(
                format!(
                    "{corruption} in {}: {asked} fails with {error:?}, but verify finds nothing",
                    seen.part
                ),
                replay,
            );
        }
        for session in &seen.lost {
            if !seen.is_found() {
                report.failure(
                    format!("{corruption} in {}: an append to {session} was lost", seen.part),
                    replay,
                );
            }
        }
        if class == Class::Undetected {
            let verbs: BTreeSet<&str> =
                seen.different.iter().filter_map(|asked| asked.split(' ').next()).collect();
            let verbs = verbs.into_iter().collect::<Vec<_>>().join(" ");
            let what = format!("{}: {verbs}", seen.part);
            let round = replay.rsplit(' ').next().and_then(|round| round.parse::<u64>().ok());
            self.undetected.entry(what).or_default().extend(round);
        }
        if class != Class::Refused {
            self.wrong_and_found +=
                u64::from(class != Class::Undetected && !seen.different.is_empty());
            self.appended += u64::from(seen.append_errors.is_empty());
            *self.readable.entry(seen.readable).or_default() += 1;
        }
        let lost = self.readable.keys().max().map_or(0, |all| all - seen.readable);
        let is_one_leaf =
            matches!(corruption, Corruption::Flip { .. }) && seen.part == "message leaf";
        if is_one_leaf && class != Class::Refused && lost > SESSIONS_ON_A_PAGE {
            report.failure(
                format!(
                    "{corruption} in one leaf page of messages: {lost} sessions read differently"
                ),
                replay,
            );
        }
    }

    /// Writes the counts into the report.
    pub(super) fn report(&self, report: &mut Report) {
        report.fact("cases", self.cases);
        for ((kind, class), count) in &self.classes {
            report.fact(format!("{kind}: {}", class.name()), count);
        }
        report.fact("damage reported, and some reads differ", self.wrong_and_found);
        report.fact("stores that still accept appends", self.appended);
        report.fact("damages found by verify, by kind", format!("{:?}", self.kinds));
        for (what, rounds) in &self.undetected {
            let examples = &rounds[..rounds.len().min(EXAMPLES)];
            report.fact(
                format!("undetected in {what}"),
                format!("{} (rounds {examples:?})", rounds.len()),
            );
        }
        report.fact(
            "cases by number of sessions that read as before",
            format!("{:?}", self.readable),
        );
        for (text, rounds) in &self.other_errors {
            report.fact(format!("error {text:?}"), format!("{} ({})", rounds.len(), rounds[0]));
        }
        let mean = self.total.checked_div(self.cases as u32).unwrap_or_default();
        report.fact("time per case", format!("mean {mean:.0?}, max {:.1?}", self.slowest));
    }
}
