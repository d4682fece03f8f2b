//! The date range that a query mentions: `two weeks ago`, `last Saturday`, `in March`.
//!
//! English only. It is a hint for ranking and never a filter: people misremember dates, and a message about March may
//! have been written in April.

use chrono::{DateTime, Datelike, NaiveDate, Utc, Weekday};

use crate::search::tokenizer::tokens;

/// An inclusive range of days, counted from 1 January of year 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DateRange {
    first: f64,
    last: f64,
}

/// The tolerance at both ends of the range.
const TOLERANCE_DAYS: f64 = 0.5;

/// A unit of time. `N units ago` is rarely exact.
struct Unit {
    days: f64,
    /// The tolerance of `N units ago`.
    tolerance: f64,
    /// The length of a unit in `the past N units`.
    past_days: f64,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl DateRange {
    /// Returns whether the range contains the day of `time`.
    pub(crate) fn contains(&self, time: DateTime<Utc>) -> bool {
        let day = day_of(time);
        self.first - TOLERANCE_DAYS <= day && day <= self.last + TOLERANCE_DAYS
    }
}

/// Returns the date range that `text` mentions, relative to `now`; the first pattern that matches wins.
pub(crate) fn date_hint(text: &str, now: DateTime<Utc>) -> Option<DateRange> {
    let words: Vec<_> = tokens(text).map(|token| token.normalized()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let each = |read: fn(&[&str], DateTime<Utc>) -> Option<DateRange>| {
        (0..words.len()).find_map(|at| read(&words[at..], now))
    };
    each(ago)
        .or_else(|| each(the_past))
        .or_else(|| each(weekday))
        .or_else(|| each(near_day))
        .or_else(|| each(month))
}

/// `three weeks ago`, `a couple of days ago`, `5 days before today`.
fn ago(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let (count, rest) = number(words)?;
    let rest = rest.strip_prefix(&["of"]).unwrap_or(rest);
    let [name, rest @ ..] = rest else { return None };
    let unit = unit(name).filter(|_| *name != "weekend" && *name != "weekends")?;
    if !(rest.starts_with(&["ago"]) || rest.starts_with(&["before", "today"])) {
        return None;
    }
    let day = day_of(now) - count * unit.days;
    Some(DateRange { first: day - unit.tolerance, last: day + unit.tolerance })
}

/// `last week`, `the past two months`, `recent days`.
fn the_past(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let ["past" | "last" | "recent", rest @ ..] = words else { return None };
    let (count, rest) = number(rest).unwrap_or((1.0, rest));
    let unit = unit(rest.first()?)?;
    let last = day_of(now);
    // People round down: the past month is often five weeks.
    Some(DateRange { first: last - count * unit.past_days * 1.3, last })
}

/// `last Saturday`, `this past Friday`, `on Monday`: the latest such day before today.
fn weekday(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let ["last" | "past" | "on", name, ..] = words else { return None };
    // Chrono also parses `mon` as a day, which may be any word here.
    let day: Weekday = name.parse().ok().filter(|_| name.ends_with("day"))?;
    let back = (now.weekday().days_since(day) + 6) % 7 + 1;
    Some(one_day(day_of(now) - f64::from(back)))
}

/// `yesterday`, `today`.
fn near_day(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    match *words.first()? {
        "yesterday" => Some(one_day(day_of(now) - 1.0)),
        "today" => Some(one_day(day_of(now))),
        _ => None,
    }
}

/// `in March`, `March 15`: the latest that is not in the future.
fn month(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let name = words.first()?;
    // `may` is usually a verb.
    let number = MONTHS.iter().position(|month| month == name && *name != "may")? as u32 + 1;
    let year = if number <= now.month() { now.year() } else { now.year() - 1 };
    let day = words
        .get(1)
        .and_then(|day| day.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse::<u32>().ok());
    let date = NaiveDate::from_ymd_opt(year, number, day.unwrap_or(1))?;
    let first = f64::from(date.num_days_from_ce());
    let after = if day.is_some() { 3.0 } else { 33.0 };
    Some(DateRange { first: first - 3.0, last: first + after })
}

fn one_day(day: f64) -> DateRange {
    DateRange { first: day, last: day }
}

fn day_of(time: DateTime<Utc>) -> f64 {
    f64::from(time.date_naive().num_days_from_ce())
}

fn unit(name: &str) -> Option<Unit> {
    let (days, tolerance, past_days) = match name.strip_suffix('s').unwrap_or(name) {
        "day" => (1.0, 1.0, 1.0),
        "week" => (7.0, 3.0, 7.0),
        "weekend" => (7.0, 3.0, 7.0),
        "month" => (30.4, 10.0, 31.0),
        "year" => (365.0, 90.0, 365.0),
        _ => return None,
    };
    Some(Unit { days, tolerance, past_days })
}

/// Returns the number at the start of the words, and the words after it.
fn number<'a, 'w>(words: &'a [&'w str]) -> Option<(f64, &'a [&'w str])> {
    const NAMES: [&str; 13] = [
        "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let (first, rest) = words.split_first()?;
    let named = NAMES.iter().position(|name| name == first && !name.is_empty());
    let count = match *first {
        // `a few weeks`, `a couple of days`: the number follows.
        "a" | "an" if rest.first().is_some_and(|word| ["few", "couple"].contains(word)) => {
            return number(rest);
        }
        "a" | "an" => 1,
        "couple" => 2,
        "few" => 3,
        "several" => 4,
        // The limit prevents an overflow.
        digits => named.or_else(|| digits.parse().ok().filter(|&count| count < 10_000))?,
    };
    Some((count as f64, rest))
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use super::*;

    /// Asserts the first and last day that a question asked on Wednesday, 31 May 2023, mentions; days of 2023 without
    /// the year.
    #[track_caller]
    fn mentions(text: &str, days: &str) {
        let now: DateTime<Utc> = "2023-05-31T12:00:00Z".parse().unwrap_or_default();
        let start = now.checked_sub_days(Days::new(800)).unwrap_or_default();
        let found = date_hint(text, now);
        let mut held = (0..900)
            .filter_map(|n| start.checked_add_days(Days::new(n)))
            .filter(|day| found.is_some_and(|range| range.contains(*day)));
        let first = held.next();
        let last = held.next_back().or(first);
        let drawn: Vec<String> = first
            .into_iter()
            .chain(last)
            .map(|day| day.format("%Y-%m-%d").to_string().replace("2023-", ""))
            .collect();
        assert_eq!(drawn.join(" "), days, "{text}");
    }

    #[test]
    fn a_number_of_units_ago() {
        mentions("What did I do ten days ago?", "05-20 05-22");
        mentions("two weeks ago", "05-14 05-20");
        mentions("a couple of days ago, or a few years ago", "05-28 05-30");
        mentions("a month ago", "04-21 05-11");
        mentions("a year ago", "2022-03-02 2022-08-29");
        mentions("3 days before today", "05-27 05-29");
        mentions("two cats ago", "");
        mentions("99999999999999999999 days ago", "");
    }

    #[test]
    fn the_past_number_of_units() {
        mentions("How often did I run last week?", "05-22 05-31");
        mentions("in the past two months", "03-11 05-31");
        mentions("last but not least", "");
    }

    #[test]
    fn a_weekday_is_the_latest_before_today() {
        mentions("last Saturday", "05-27 05-27");
        mentions("on Wednesday", "05-24 05-24");
        mentions("this past Tuesday", "05-30 05-30");
        mentions("yesterday", "05-30 05-30");
        mentions("today", "05-31 05-31");
        mentions("on Sun or Monday", "");
    }

    #[test]
    fn a_month_is_the_latest_that_has_begun() {
        mentions("the concert in March", "02-26 04-03");
        mentions("in October", "2022-09-28 2022-11-03");
        mentions("on March 15th or on March 15", "03-12 03-18");
        mentions("what may I do", "");
        mentions("February 30", "");
    }

    #[test]
    fn the_limits_of_the_calendar_never_panic() {
        for now in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            for text in ["9999 years ago", "last 9999 years", "in December", "on Monday"] {
                let _ = date_hint(text, now).is_some_and(|range| range.contains(now));
            }
        }
    }
}
