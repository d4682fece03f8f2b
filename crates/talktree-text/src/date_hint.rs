//! The time that a query mentions: `two weeks ago`, `last Saturday`, `in March 2022`, `last spring`.
//!
//! English only. It is a hint for ranking and never a filter: people misremember dates, and a message about March may
//! have been written in April.

use chrono::{DateTime, Datelike, NaiveDate, Utc, Weekday};

use crate::token::tokens;

/// The time that a query mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct DateHint {
    days: DateRange,
    /// The two words of the query that name the date: `march 2022`, `march 15th`, `fall 2023`.
    pub name: Option<[String; 2]>,
}

impl DateHint {
    /// Returns whether `time` is on a day of the range.
    #[must_use]
    pub fn contains(&self, time: DateTime<Utc>) -> bool {
        let (DateRange { first, last }, day) = (self.days, day_of(time));
        first - TOLERANCE_DAYS <= day && day <= last + TOLERANCE_DAYS
    }
}

/// An inclusive range of days, counted from 1 January of year 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DateRange {
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

/// Returns the time that `text` mentions, relative to `now`; the first pattern that matches wins.
#[must_use]
pub fn date_hint(text: &str, now: DateTime<Utc>) -> Option<DateHint> {
    let words: Vec<_> = tokens(text).map(|token| token.form()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let each = |read: fn(&[&str], DateTime<Utc>) -> Option<DateRange>| {
        (0..words.len()).find_map(|at| read(&words[at..], now))
    };
    let days = each(ago)
        .or_else(|| each(the_past))
        .or_else(|| each(weekday))
        .or_else(|| each(near_day))
        .or_else(|| each(season))
        .or_else(|| each(feast))
        .or_else(|| each(month))
        .or_else(|| each(whole_year))?;
    Some(DateHint { days, name: (0..words.len()).find_map(|at| name(&words[at..])) })
}

/// `March 2022`, `March 15th`, `fall of 2023`, `Christmas 2023`: the first two words that name a date.
fn name(words: &[&str]) -> Option<[String; 2]> {
    let (first, rest) = words.split_first()?;
    let rest = rest.strip_prefix(&["of"]).unwrap_or(rest);
    let is_month = MONTHS.contains(first);
    let has_years = is_month
        || FEASTS.iter().any(|feast| feast.0 == *first)
        || SEASONS.iter().any(|season| season.0 == *first);
    let is_named =
        (has_years && year_after(rest).is_some()) || (is_month && day_of_month(rest).is_some());
    is_named.then(|| [(*first).to_owned(), rest[0].to_owned()])
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

/// `in March`, `March 15`, `March 2022`, `March 15th, 2022`; without a year the latest that is not in the future.
fn month(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let (name, rest) = words.split_first()?;
    let number = MONTHS.iter().position(|month| month == name)? as u32 + 1;
    let day = day_of_month(rest);
    let year = year_after(if day.is_some() { &rest[1..] } else { rest });
    // `may` is usually a verb, and a `march` may be one of many people.
    if *name == "may" && year.is_none() {
        return None;
    }
    let latest = if number <= now.month() { now.year() } else { now.year() - 1 };
    let first = first_of(year.unwrap_or(latest), number, day.unwrap_or(1))?;
    let after = if day.is_some() { 3.0 } else { 33.0 };
    Some(DateRange { first: first - 3.0, last: first + after })
}

/// The seasons of the northern half of the world, where most people live, with the month in which each begins.
const SEASONS: [(&str, u32); 5] =
    [("spring", 3), ("summer", 6), ("fall", 9), ("autumn", 9), ("winter", 12)];

/// `last spring`, `in summer`, `winter 2022/23`. A season without a year or one of these words is any word: `spring` and
/// `fall` are verbs, too.
fn season(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let begins = |word: &str| SEASONS.iter().find(|season| season.0 == word).map(|season| season.1);
    let of = |year: i32, month: u32| {
        let first = first_of(year, month, 1)?;
        Some(DateRange { first: first - 10.0, last: first + 92.0 + 10.0 })
    };
    let (name, rest) = words.split_first()?;
    if let (Some(month), Some(year)) = (begins(name), year_after(rest)) {
        return of(year, month);
    }
    let rest = if rest.first() == Some(&"the") { &rest[1..] } else { rest };
    let month = begins(rest.first()?)?;
    let ended = match *name {
        "last" | "past" => 92.0,
        "in" | "this" | "during" | "over" => 0.0,
        _ => return None,
    };
    // With a year it is found at the next word.
    if year_after(&rest[1..]).is_some() {
        return None;
    }
    let has_come =
        |year: &i32| first_of(*year, month, 1).is_some_and(|first| first + ended <= day_of(now));
    let year = [now.year(), now.year() - 1, now.year() - 2].into_iter().find(has_come)?;
    of(year, month)
}

/// Feasts, with their month and day.
const FEASTS: [(&str, u32, u32); 2] = [("halloween", 10, 31), ("christmas", 12, 25)];

/// `Halloween`, `Christmas 2023`: people write of them weeks before.
fn feast(words: &[&str], now: DateTime<Utc>) -> Option<DateRange> {
    let (name, rest) = words.split_first()?;
    let &(_, month, day) = FEASTS.iter().find(|feast| feast.0 == *name)?;
    let of = |year: i32| first_of(year, month, day);
    let latest = [now.year(), now.year() - 1]
        .into_iter()
        .find(|year| of(*year).is_some_and(|first| first - 30.0 <= day_of(now)));
    let first = of(year_after(rest).or(latest)?)?;
    Some(DateRange { first: first - 30.0, last: first + 7.0 })
}

/// `in 2022`, `during 2022`, `the whole of 2022`.
fn whole_year(words: &[&str], _: DateTime<Utc>) -> Option<DateRange> {
    let ["in" | "during" | "of" | "year", rest @ ..] = words else { return None };
    let first = first_of(year_after(rest)?, 1, 1)?;
    Some(DateRange { first: first - 3.0, last: first + 368.0 })
}

/// Returns the day of a month that the words begin with, as in `15th`.
fn day_of_month(words: &[&str]) -> Option<u32> {
    let digits = words.first()?.trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// Returns the year that the words begin with, as in `of 2022`.
fn year_after(words: &[&str]) -> Option<i32> {
    let words = words.strip_prefix(&["of"]).unwrap_or(words);
    let year = words.first().filter(|word| word.len() == 4)?.parse().ok()?;
    (1_970..2_100).contains(&year).then_some(year)
}

fn first_of(year: i32, month: u32, day: u32) -> Option<f64> {
    Some(f64::from(NaiveDate::from_ymd_opt(year, month, day)?.num_days_from_ce()))
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
            .filter(|day| found.as_ref().is_some_and(|hint| hint.contains(*day)));
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
    fn a_month_may_have_a_year() {
        mentions("Which books was I reading in January 2022?", "2021-12-29 2022-02-03");
        mentions("in May 2022", "2022-04-28 2022-06-03");
        mentions("September of 2022", "2022-08-29 2022-10-04");
        mentions("on March 15th, 2022", "2022-03-12 2022-03-18");
        mentions("September 1234", "2022-08-29 2022-10-04");
    }

    #[test]
    fn a_season_needs_a_year_or_a_word_before_it() {
        mentions("last spring", "2022-02-19 2022-06-11");
        mentions("What did I grow in the summer?", "2022-05-22 2022-09-11");
        mentions("this spring", "02-19 06-11");
        mentions("during the winter", "2022-11-21 03-13");
        mentions("Flights to Florida, winter 2022/23", "2022-11-21 03-13");
        mentions("fall 2022", "2022-08-22 2022-12-12");
        mentions("last autumn of 2021", "2021-08-22 2021-12-12");
        mentions("a hot spring, and the fall of leaves", "");
        mentions("the summer dress", "");
    }

    #[test]
    fn a_feast_begins_weeks_before_it() {
        mentions("What did I plan for Halloween 2022?", "2022-10-01 2022-11-07");
        mentions("the week around Christmas", "2022-11-25 01-01");
    }

    #[test]
    fn a_year_alone_is_one_after_a_preposition() {
        mentions("Where did I travel in 2022?", "2021-12-29 01-04");
        mentions("the model 2022", "");
        mentions("one in 1000", "");
    }

    #[test]
    fn a_date_with_a_day_or_a_year_is_named_by_two_words() {
        let name = |text: &str| {
            let hint = date_hint(text, DateTime::UNIX_EPOCH);
            hint.and_then(|hint| hint.name).map(|words| words.join(" ")).unwrap_or_default()
        };
        assert_eq!(name("my plans in fall 2023"), "fall 2023");
        assert_eq!(name("What did I read in January of 2022?"), "january 2022");
        assert_eq!(name("the trip on March 15th, 2022"), "march 15th");
        assert_eq!(name("gifts for Christmas 2023"), "christmas 2023");
        for text in
            ["last spring", "in March", "two weeks ago", "in 2022", "the week around Christmas"]
        {
            assert_eq!(name(text), "", "{text}");
        }
    }

    #[test]
    fn the_limits_of_the_calendar_never_panic() {
        for now in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            for text in [
                "9999 years ago",
                "last 9999 years",
                "in December",
                "on Monday",
                "last winter",
                "Christmas",
                "in 2022",
            ] {
                let _ = date_hint(text, now).is_some_and(|hint| hint.contains(now));
            }
        }
    }
}
