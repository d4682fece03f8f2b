//! The dates that people write: `2026`, `2026-01-31`, `yesterday`, `7d`.

use chrono::{
    DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc,
};

/// What [`parse_date`] accepts, for notices and errors.
pub const EXPECTED: &str = "a UTC date like 2026, 2026-01, 2026-01-31, today, yesterday or 7d, or an instant like 2026-01-31T12:00:00Z";

/// Returns the instant that a date means; `None` if it is not a date.
///
/// The parser of `after:` and `before:` in a [`Query`](super::Query), and of the command's options. All dates are UTC:
/// a day begins at midnight UTC.
///
/// | written | means |
/// |---|---|
/// | `2026`, `2026-01`, `2026-01-31` | the start of the year, month or day |
/// | `today`, `yesterday` | the start of the day |
/// | `12h`, `7d`, `2w`, `3mo`, `1y` | so many hours, days, weeks, months or years before `now` |
/// | `2026-01-31T12:00:00+01:00` | the instant |
/// | `2026-01-31T12:00:00`, `2026-01-31 12:00` | the instant, in UTC |
///
/// ```
/// use talktree_text::parse_date;
///
/// let now = "2026-03-05T15:00:00Z".parse().unwrap();
/// let date = |text| parse_date(text, now).map(|time| time.to_rfc3339());
/// assert_eq!(date("2026-02").as_deref(), Some("2026-02-01T00:00:00+00:00"));
/// assert_eq!(date("yesterday").as_deref(), Some("2026-03-04T00:00:00+00:00"));
/// assert_eq!(date("7d").as_deref(), Some("2026-02-26T15:00:00+00:00"));
/// assert_eq!(date("someday"), None);
/// ```
#[must_use]
pub fn parse_date(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let exact = || Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc());
    let time = named(text, now)
        .or_else(|| calendar(text))
        .or_else(|| ago(text, now))
        .or_else(exact)
        .or_else(|| without_zone(text))?;
    (0..=9999).contains(&time.year()).then_some(time)
}

fn named(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let days = match text.to_ascii_lowercase().as_str() {
        "today" => 0,
        "yesterday" => 1,
        _ => return None,
    };
    Some(start_of(now.date_naive().checked_sub_days(Days::new(days))?))
}

/// `2026`, `2026-01`, `2026-01-31`.
fn calendar(text: &str) -> Option<DateTime<Utc>> {
    let mut numbers = [1; 3];
    let mut parts = text.split('-');
    for (number, digits) in numbers.iter_mut().zip([4, 2, 2]) {
        let Some(part) = parts.next() else { break };
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    if parts.next().is_some() {
        return None;
    }
    let [year, month, day] = numbers;
    Some(start_of(NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?))
}

/// `12h`, `7d`, `2w`, `3mo`, `1y`. `m` alone could be a minute or a month.
fn ago(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (count, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let count: u32 = count.parse().ok()?;
    match unit.to_ascii_lowercase().as_str() {
        "h" => now.checked_sub_signed(TimeDelta::hours(i64::from(count))),
        "d" => now.checked_sub_days(Days::new(u64::from(count))),
        "w" => now.checked_sub_days(Days::new(u64::from(count) * 7)),
        "mo" => now.checked_sub_months(Months::new(count)),
        "y" => now.checked_sub_months(Months::new(count.checked_mul(12)?)),
        _ => None,
    }
}

fn without_zone(text: &str) -> Option<DateTime<Utc>> {
    let forms =
        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    let read = |form| NaiveDateTime::parse_from_str(text, form).ok();
    // Chrono also accepts years of other lengths, and months and days of one digit.
    let is_full = text.get(..10).is_some_and(|day| calendar(day).is_some());
    Some(forms.into_iter().filter(|_| is_full).find_map(read)?.and_utc())
}

fn start_of(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the instant of `text` on Thursday, 5 March 2026, 15:00; `-` if it is not a date.
    #[track_caller]
    fn means(text: &str, expected: &str) {
        let now = "2026-03-05T15:00:00Z".parse().unwrap_or_default();
        let found = parse_date(text, now).map(|time| time.format("%Y-%m-%d %H:%M:%S").to_string());
        assert_eq!(found.as_deref().unwrap_or("-"), expected, "{text:?}");
    }

    #[test]
    fn a_part_of_a_date_is_its_start() {
        means("2023", "2023-01-01 00:00:00");
        means("2023-02", "2023-02-01 00:00:00");
        means("2023-02-03", "2023-02-03 00:00:00");
        means("0000", "0000-01-01 00:00:00");
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        means("today", "2026-03-05 00:00:00");
        means("Yesterday", "2026-03-04 00:00:00");
    }

    #[test]
    fn a_span_counts_back_from_now() {
        means("12h", "2026-03-05 03:00:00");
        means("7d", "2026-02-26 15:00:00");
        means("2W", "2026-02-19 15:00:00");
        means("1mo", "2026-02-05 15:00:00");
        means("1y", "2025-03-05 15:00:00");
        means("0d", "2026-03-05 15:00:00");
    }

    #[test]
    fn an_instant_without_a_zone_is_in_utc() {
        means("2026-01-31T12:00:00Z", "2026-01-31 12:00:00");
        means("2026-01-31T12:00:00+01:00", "2026-01-31 11:00:00");
        means("2026-01-31T12:00:09", "2026-01-31 12:00:09");
        means("2026-01-31 12:00", "2026-01-31 12:00:00");
    }

    #[test]
    fn anything_else_is_not_a_date() {
        for text in [
            "",
            "d",
            "7",
            "7m",
            "-7d",
            "7 d",
            "someday",
            "202",
            "20233",
            "2023-",
            "2023-13",
            "2023-2",
            "2026-02-30",
            "2026-01-31-1",
            "2026-01-31T12",
            "+2026",
            "12026-01-01",
            "-0001-01-01",
            "9999-12-31T23:59:59-01:00",
            "99999999999d",
            "4000000000y",
            "4000000000h",
            "3000y",
            "２０２３",
            "2026-1-1 12:00",
        ] {
            means(text, "-");
        }
    }

    #[test]
    fn the_limits_of_the_calendar_never_panic() {
        for now in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            for text in
                ["yesterday", "today", "4294967295h", "4294967295d", "4294967295mo", "1w", "0y"]
            {
                assert_eq!(parse_date(text, now), None);
            }
        }
    }
}
