//! The time a question speaks of: `two weeks ago`, `last Saturday`, `in March`.
//!
//! English only. It is a hint for ranking and never a filter: people remember dates wrong, and a message about March may
//! be written in April.

use chrono::{DateTime, Datelike, NaiveDate, Utc, Weekday};

use crate::search::token::tokens;

/// A range of days, both ends in it, counted from 1 January of the year 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    first: f64,
    last: f64,
}

/// How far a day may lie from the window's ends and still count.
const TOLERANCE_DAYS: f64 = 0.5;

/// `N units ago` is seldom meant to the day.
struct Unit {
    days: f64,
    /// For `N units ago`.
    tolerance: f64,
    /// For `the past N units`.
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

impl Window {
    /// Returns whether the time lies in the window.
    pub(crate) fn holds(&self, time: DateTime<Utc>) -> bool {
        let day = day_of(time);
        self.first - TOLERANCE_DAYS <= day && day <= self.last + TOLERANCE_DAYS
    }
}

/// Returns the time that `text` speaks of, seen from `now`; the first reading that fits.
pub(crate) fn window(text: &str, now: DateTime<Utc>) -> Option<Window> {
    let words: Vec<_> = tokens(text).map(|token| token.folded()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let each = |read: fn(&[&str], DateTime<Utc>) -> Option<Window>| {
        (0..words.len()).find_map(|at| read(&words[at..], now))
    };
    each(ago)
        .or_else(|| each(the_past))
        .or_else(|| each(weekday))
        .or_else(|| each(near_day))
        .or_else(|| each(month))
}

/// `three weeks ago`, `a couple of days ago`, `5 days before today`.
fn ago(words: &[&str], now: DateTime<Utc>) -> Option<Window> {
    let (count, rest) = number(words)?;
    let rest = rest.strip_prefix(&["of"]).unwrap_or(rest);
    let [name, rest @ ..] = rest else { return None };
    let unit = unit(name).filter(|_| *name != "weekend" && *name != "weekends")?;
    if !(rest.starts_with(&["ago"]) || rest.starts_with(&["before", "today"])) {
        return None;
    }
    let day = day_of(now) - count * unit.days;
    Some(Window { first: day - unit.tolerance, last: day + unit.tolerance })
}

/// `last week`, `the past two months`, `recent days`.
fn the_past(words: &[&str], now: DateTime<Utc>) -> Option<Window> {
    let ["past" | "last" | "recent", rest @ ..] = words else { return None };
    let (count, rest) = number(rest).unwrap_or((1.0, rest));
    let unit = unit(rest.first()?)?;
    let last = day_of(now);
    // People round down: the past month is often five weeks.
    Some(Window { first: last - count * unit.past_days * 1.3, last })
}

/// `last Saturday`, `this past Friday`, `on Monday`: the latest such day before today.
fn weekday(words: &[&str], now: DateTime<Utc>) -> Option<Window> {
    let ["last" | "past" | "on", name, ..] = words else { return None };
    // Chrono takes `mon` for a day, too; here it may be anything.
    let day: Weekday = name.parse().ok().filter(|_| name.ends_with("day"))?;
    let back = (now.weekday().days_since(day) + 6) % 7 + 1;
    Some(one_day(day_of(now) - f64::from(back)))
}

/// `yesterday`, `today`.
fn near_day(words: &[&str], now: DateTime<Utc>) -> Option<Window> {
    match *words.first()? {
        "yesterday" => Some(one_day(day_of(now) - 1.0)),
        "today" => Some(one_day(day_of(now))),
        _ => None,
    }
}

/// `in March`, `March 15`: the latest that is not in the future.
fn month(words: &[&str], now: DateTime<Utc>) -> Option<Window> {
    let name = words.first()?;
    // `may` is mostly a verb.
    let number = MONTHS.iter().position(|month| month == name && *name != "may")? as u32 + 1;
    let year = if number <= now.month() { now.year() } else { now.year() - 1 };
    let day = words
        .get(1)
        .and_then(|day| day.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse::<u32>().ok());
    let date = NaiveDate::from_ymd_opt(year, number, day.unwrap_or(1))?;
    let first = f64::from(date.num_days_from_ce());
    let after = if day.is_some() { 3.0 } else { 33.0 };
    Some(Window { first: first - 3.0, last: first + after })
}

fn one_day(day: f64) -> Window {
    Window { first: day, last: day }
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

/// Returns the number the words begin with, and the rest of them.
fn number<'a, 'w>(words: &'a [&'w str]) -> Option<(f64, &'a [&'w str])> {
    const NAMES: [&str; 13] = [
        "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let (first, rest) = words.split_first()?;
    let named = NAMES.iter().position(|name| name == first && !name.is_empty());
    let count = match *first {
        // `a few weeks`, `a couple of days`: the number comes after.
        "a" | "an" if rest.first().is_some_and(|word| ["few", "couple"].contains(word)) => {
            return number(rest);
        }
        "a" | "an" => 1,
        "couple" => 2,
        "few" => 3,
        "several" => 4,
        // More years than anybody remembers, and no overflow.
        digits => named.or_else(|| digits.parse().ok().filter(|&count| count < 10_000))?,
    };
    Some((count as f64, rest))
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use super::*;

    /// Holds that a question asked on Wednesday, 31 May 2023, speaks of these days of 2023: `"05-20 05-22"`.
    #[track_caller]
    fn speaks_of(text: &str, days: &str) {
        let now: DateTime<Utc> = "2023-05-31T12:00:00Z".parse().unwrap_or_default();
        let start = now.checked_sub_days(Days::new(800)).unwrap_or_default();
        let found = window(text, now);
        let mut held = (0..900)
            .filter_map(|n| start.checked_add_days(Days::new(n)))
            .filter(|day| found.is_some_and(|window| window.holds(*day)));
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
    fn so_many_units_ago() {
        speaks_of("What did I do ten days ago?", "05-20 05-22");
        speaks_of("two weeks ago", "05-14 05-20");
        speaks_of("a couple of days ago, or a few years ago", "05-28 05-30");
        speaks_of("a month ago", "04-21 05-11");
        speaks_of("a year ago", "2022-03-02 2022-08-29");
        speaks_of("3 days before today", "05-27 05-29");
        speaks_of("two cats ago", "");
        speaks_of("99999999999999999999 days ago", "");
    }

    #[test]
    fn the_past_so_many_units() {
        speaks_of("How often did I run last week?", "05-22 05-31");
        speaks_of("in the past two months", "03-11 05-31");
        speaks_of("last but not least", "");
    }

    #[test]
    fn days_of_the_week_lie_before_today() {
        speaks_of("last Saturday", "05-27 05-27");
        speaks_of("on Wednesday", "05-24 05-24");
        speaks_of("this past Tuesday", "05-30 05-30");
        speaks_of("yesterday", "05-30 05-30");
        speaks_of("today", "05-31 05-31");
        speaks_of("on Sun or Monday", "");
    }

    #[test]
    fn months_are_the_latest_that_began() {
        speaks_of("the concert in March", "02-26 04-03");
        speaks_of("in October", "2022-09-28 2022-11-03");
        speaks_of("on March 15th or on March 15", "03-12 03-18");
        speaks_of("what may I do", "");
        speaks_of("February 30", "");
    }

    #[test]
    fn the_end_of_time_is_no_trouble() {
        for now in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            for text in ["9999 years ago", "last 9999 years", "in December", "on Monday"] {
                let _ = window(text, now).is_some_and(|window| window.holds(now));
            }
        }
    }
}
