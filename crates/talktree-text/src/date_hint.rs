//! The time that a query mentions: `two weeks ago`, `last Saturday`, `in March 2022`, `2023-03-08`, `vor drei Monaten`.
//!
//! It is a hint for ranking and never a filter: people misremember dates, and a message about March may have been written in April. The
//! table has the words of a dozen languages, as normal forms; which language a query is in does not matter.

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use crate::query::MAX_KEYWORDS;
use crate::token::{Token, tokens};

/// The time that a query mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct DateHint {
    first: f64,
    last: f64,
    /// The words of the query that say it, normalized.
    pub words: Vec<String>,
    /// Whether they are a date that a text may have, too: `March 2022`, `2023-03-08`. Nobody writes `two weeks ago` again.
    pub is_date: bool,
}

impl DateHint {
    /// Returns the first day of the range, and the last.
    #[must_use]
    pub fn days(&self) -> Option<(NaiveDate, NaiveDate)> {
        let day = |day: f64| NaiveDate::from_num_days_from_ce_opt(day as i32);
        Some((day((self.first - 0.5).ceil())?, day((self.last + 0.5).floor())?))
    }

    /// Returns whether `time` is on a day of the range.
    #[must_use]
    pub fn contains(&self, time: DateTime<Utc>) -> bool {
        (self.first - 0.5..=self.last + 0.5).contains(&day_of(time))
    }
}

/// Units of time in days (a day, a week, a month, a year), with the tolerance of `N units ago`, which is rarely exact.
const UNITS: [(f64, f64); 4] = [(1.0, 1.0), (7.0, 3.0), (30.4, 10.0), (365.0, 90.0)];

/// The words of each kind, as normal forms: a line for each unit, number from 1 on, month, weekday from Monday on, season of the northern
/// half of the world from spring on, where most people live, and of words before a time (`in March`) and between its parts
/// (`8 de marzo`). Months are there also as English and German shorten them.
const WORDS: &str = include_str!("times.txt");

/// Returns which of the lines of a kind has the word.
fn place(kind: &str, word: &str) -> Option<usize> {
    let lines = WORDS.lines().filter_map(|line| line.split_once(": "));
    let mut of_kind = lines.filter(|(name, _)| *name == kind);
    of_kind.position(|(_, words)| words.split(' ').any(|known| known == word))
}

fn has(kind: &str, word: &str) -> bool {
    place(kind, word).is_some()
}

/// The words of a query from one of them on.
#[derive(Clone, Copy)]
struct Words<'w> {
    before: Option<&'w str>,
    rest: &'w [&'w str],
    now: DateTime<Utc>,
}

/// The days of a time, from 1 January of year 1, how many words say it, and whether they are a date.
type Found = ((f64, f64), usize, bool);

/// Returns the time that `text` mentions, relative to `now`; the first pattern that matches wins.
#[must_use]
pub fn date_hint(text: &str, now: DateTime<Utc>) -> Option<DateHint> {
    // A longer text was pasted: it is no question about a time.
    let found: Vec<Token<'_>> = tokens(text).take(MAX_KEYWORDS + 1).collect();
    if found.len() > MAX_KEYWORDS {
        return None;
    }
    let forms: Vec<_> = found.iter().map(Token::form).collect();
    let words: Vec<&str> = forms.iter().map(AsRef::as_ref).collect();
    let from = |at: usize| {
        let before = words[..at].iter().rev().find(|word| !has("between", word)).copied();
        Words { before, rest: &words[at..], now }
    };
    let readers: [fn(Words<'_>) -> Option<Found>; 7] =
        [ago, the_past, weekday, near_day, season, month, whole_year];
    let numeric = (0..words.len()).find_map(|at| Some((at, numeric(text, &found[at..])?)));
    let (at, ((first, last), count, is_date)) = numeric.or_else(|| {
        readers.iter().find_map(|read| (0..words.len()).find_map(|at| Some((at, read(from(at))?))))
    })?;
    let start = at - usize::from(at > 0 && has("before", words[at - 1]));
    let words = words[start..at + count].iter().map(|word| (*word).to_owned()).collect();
    Some(DateHint { first, last, words, is_date })
}

/// `2023-03-08`, `2023-03`, `2023/3/8`, `8.3.2023`, `3/8/2023`, `2023年3月`.
fn numeric(text: &str, found: &[Token<'_>]) -> Option<Found> {
    const SEPARATORS: [&str; 3] = ["-", "/", "."];
    let mut numbers: Vec<u32> = Vec::new();
    let (mut count, mut separator) = (0, "");
    for (at, token) in found.iter().enumerate() {
        if numbers.len() == 3 || !token.text().bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        numbers.push(token.text().parse().ok().filter(|number| *number < 10_000)?);
        count = at + 1;
        let next = found.get(at + 1).map(|next| &text[token.range().end..next.range().start]);
        match next.filter(|between| SEPARATORS.contains(between)) {
            Some(between) => separator = between,
            None => break,
        }
    }
    let (year, month, day) = match (&numbers[..], separator) {
        (&[year @ 1970..=9999, month], "-" | "/") => (year, month, None),
        (&[year @ 1970..=9999, month, day], _) => (year, month, Some(day)),
        // Only Americans write the month first, and only with slashes.
        (&[month @ ..=12, day, year @ 1970..=9999], "/") => (year, month, Some(day)),
        (&[day, month, year @ 1970..=9999], _) => (year, month, Some(day)),
        _ => return None,
    };
    Some((month_or_day(year as i32, month, day)?, count, true))
}

fn month_or_day(year: i32, month: u32, day: Option<u32>) -> Option<(f64, f64)> {
    let first = first_of(year, month, day.unwrap_or(1))?;
    Some((first, if day.is_some() { first } else { first + 30.0 }))
}

/// `three weeks ago`, `a couple of days ago`, `5 days before today`, `vor drei Wochen`, `il y a deux ans`, `三个月前`.
fn ago(words: Words<'_>) -> Option<Found> {
    let starts: [&[&str]; 5] = [&["vor"], &["hace"], &["ha"], &["il", "y", "a"], &["y", "a"]];
    let start = starts.iter().find_map(|start| words.rest.strip_prefix(*start));
    let (count, rest) = number(start.unwrap_or(words.rest))?;
    let ((days, tolerance), rest) = unit(without_between(rest))?;
    let end = match rest {
        [ago, rest @ ..] if has("ago", ago) => Some(rest),
        ["before", "today", rest @ ..] => Some(rest),
        _ => start.map(|_| rest),
    }?;
    let day = day_of(words.now) - count * days;
    Some(((day - tolerance, day + tolerance), words.rest.len() - end.len(), false))
}

/// `last week`, `the past two months`, `recent days`, `letzten Monat`, `el mes pasado`, `上个月`.
fn the_past(words: Words<'_>) -> Option<Found> {
    let (first, rest) = words.rest.split_first()?;
    let (count, (days, _), rest) = match has("last", first) || *first == "this" {
        true => {
            let (count, rest) = number(rest).unwrap_or((1.0, rest));
            let (unit, rest) = unit(without_between(rest))?;
            (count, unit, rest)
        }
        false => {
            let (unit, rest) = unit(words.rest)?;
            let (last, rest) = rest.split_first()?;
            (1.0, unit, Some(rest).filter(|_| has("last", last))?)
        }
    };
    let last = day_of(words.now);
    // People round down: the past month is often five weeks.
    Some(((last - count * days * 1.3, last), words.rest.len() - rest.len(), false))
}

/// `last Saturday`, `on Monday`: the latest such day before today.
fn weekday(words: Words<'_>) -> Option<Found> {
    let day = place("weekday", words.rest.first()?)? as u32;
    words.before.filter(|before| has("last", before) || has("before", before))?;
    let back = (words.now.weekday().num_days_from_monday() + 6 - day) % 7 + 1;
    Some((one_day(day_of(words.now) - f64::from(back)), 1, false))
}

fn near_day(words: Words<'_>) -> Option<Found> {
    let back = place("day", words.rest.first()?)?;
    Some((one_day(day_of(words.now) - back as f64), 1, false))
}

/// `in March`, `March 15`, `March 2022`, `15 March 2022`, `März 2022`; without a year the latest that is not in the future.
fn month(words: Words<'_>) -> Option<Found> {
    let (name, rest) = words.rest.split_first()?;
    let number = place("month", name)? as u32 + 1;
    let before = words.before.and_then(day_of_month);
    let day = before.or_else(|| day_of_month(rest.first()?));
    let rest = if day.is_some() && before.is_none() { &rest[1..] } else { rest };
    let (year, rest) = year_after(rest).map_or((None, rest), |(year, rest)| (Some(year), rest));
    // A short name is usually another word.
    let is_after = |before: &str| has("before", before) || has("last", before) || before == "since";
    if name.chars().count() <= 4
        && year.is_none()
        && day.is_none()
        && !words.before.is_some_and(is_after)
    {
        return None;
    }
    let latest = words.now.year() - i32::from(number > words.now.month());
    let first = first_of(year.unwrap_or(latest), number, day.unwrap_or(1))?;
    let last = first + if day.is_some() { 3.0 } else { 33.0 };
    Some(((first - 3.0, last), words.rest.len() - rest.len(), year.is_some() || day.is_some()))
}

/// `last spring`, `in summer`, `winter 2022/23`. A season without a year or one of these words is any word: `spring` and `fall` are
/// verbs, too.
fn season(words: Words<'_>) -> Option<Found> {
    let (name, rest) = words.rest.split_first()?;
    let month = 3 * (place("season", name)? as u32 + 1);
    let of = |year: i32| {
        let first = first_of(year, month, 1)?;
        Some((first - 10.0, first + 92.0 + 10.0))
    };
    if let Some((year, rest)) = year_after(rest) {
        return Some((of(year)?, words.rest.len() - rest.len(), true));
    }
    let ended = match words.before? {
        last if has("last", last) => 92.0,
        before if has("before", before) => 0.0,
        _ => return None,
    };
    let has_come = |year: &i32| {
        first_of(*year, month, 1).is_some_and(|first| first + ended <= day_of(words.now))
    };
    let year = (0..3).map(|back| words.now.year() - back).find(has_come)?;
    Some((of(year)?, 1, false))
}

/// `in 2022`, `during 2022`, `im Jahr 2022`, `2022年`.
fn whole_year(words: Words<'_>) -> Option<Found> {
    let year = year_of(words.rest.first()?)?;
    let is_year = words
        .before
        .is_some_and(|before| has("before", before) || place("unit", before) == Some(3))
        || words.rest.get(1) == Some(&"年");
    let first = first_of(year, 1, 1).filter(|_| is_year)?;
    Some(((first - 3.0, first + 368.0), 1, true))
}

/// Returns the day of a month: `15`, `15th`.
fn day_of_month(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn year_of(word: &str) -> Option<i32> {
    let year = Some(word).filter(|word| word.len() == 4)?.parse().ok()?;
    (1_970..2_100).contains(&year).then_some(year)
}

/// Returns the year that the words begin with, as in `of 2022`, and the words after it.
fn year_after<'a, 'w>(words: &'a [&'w str]) -> Option<(i32, &'a [&'w str])> {
    let (year, rest) = without_between(words).split_first()?;
    Some((year_of(year)?, rest))
}

fn without_between<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    match words {
        [first, rest @ ..] if has("between", first) => rest,
        words => words,
    }
}

fn unit<'a, 'w>(words: &'a [&'w str]) -> Option<((f64, f64), &'a [&'w str])> {
    let (name, rest) = words.split_first()?;
    Some((UNITS[place("unit", name)?], rest))
}

/// Returns the number at the start of the words, and the words after it.
fn number<'a, 'w>(words: &'a [&'w str]) -> Option<(f64, &'a [&'w str])> {
    let (first, rest) = words.split_first()?;
    // `a few weeks`, `a couple of days`: the number follows.
    if matches!((*first, rest), ("a" | "an", ["few" | "couple", ..])) {
        return number(rest);
    }
    // The limit prevents an overflow.
    let digits = || first.parse().ok().filter(|count| *count < 10_000);
    let named = place("number", first).map(|place| place + 1);
    Some((named.or_else(digits)? as f64, rest))
}

fn first_of(year: i32, month: u32, day: u32) -> Option<f64> {
    Some(f64::from(NaiveDate::from_ymd_opt(year, month, day)?.num_days_from_ce()))
}

fn one_day(day: f64) -> (f64, f64) {
    (day, day)
}

fn day_of(time: DateTime<Utc>) -> f64 {
    f64::from(time.date_naive().num_days_from_ce())
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
        mentions("in the past two months", "03-13 05-31");
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
        mentions("what we did in May", "04-28 06-03");
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
    fn a_year_alone_is_one_after_a_preposition() {
        mentions("Where did I travel in 2022?", "2021-12-29 01-04");
        mentions("the model 2022", "");
        mentions("one in 1000", "");
    }

    #[test]
    fn a_date_is_written_with_numbers_in_any_order() {
        for text in ["on 2023-03-08", "2023/3/8", "8.3.2023", "3/8/2023", "08.03.2023"] {
            mentions(text, "03-08 03-08");
        }
        mentions("13/3/2023", "03-13 03-13");
        mentions("2023-03", "03-01 03-31");
        for text in ["1.2.3", "10.0.0.1", "2023.1", "2023-13-01", "v2023", "3/8", "99/99/2023"] {
            mentions(text, "");
        }
    }

    #[test]
    fn other_languages_mention_times_too() {
        mentions("Was war vor drei Wochen?", "05-07 05-13");
        mentions("il y a deux semaines", "05-14 05-20");
        mentions("hace diez dias", "05-20 05-22");
        mentions("letzten Monat", "04-21 05-31");
        mentions("la semaine dernière", "05-22 05-31");
        mentions("el mes pasado", "04-21 05-31");
        mentions("上个月", "04-21 05-31");
        mentions("两周前", "05-14 05-20");
        mentions("am Montag", "05-29 05-29");
        mentions("im März 2022", "2022-02-26 2022-04-03");
        mentions("15. Januar 2022", "2022-01-12 2022-01-18");
        mentions("в апреле", "03-29 05-04");
        mentions("im Jahr 2022", "2021-12-29 01-04");
    }

    #[test]
    fn the_words_of_a_time_are_told() {
        let words = |text: &str| {
            let hint = date_hint(text, DateTime::UNIX_EPOCH);
            hint.map_or((String::new(), false), |hint| (hint.words.join(" "), hint.is_date))
        };
        for (text, expected, is_date) in [
            ("my plans in fall 2023", "in fall 2023", true),
            ("What did I read in January of 2022?", "in january of 2022", true),
            ("the trip on March 15th, 2022", "on march 15th 2022", true),
            ("log of 2023-03-08", "2023 03 08", true),
            ("gifts two weeks ago", "two weeks ago", false),
            ("trip last month", "last month", false),
            ("red fox", "", false),
        ] {
            assert_eq!(words(text), (expected.to_owned(), is_date), "{text}");
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
                "in 2022",
            ] {
                let _ = date_hint(text, now).is_some_and(|hint| hint.contains(now));
            }
        }
    }
}
