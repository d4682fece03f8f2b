//! Dates and spans of time that an option names, and times as they are printed.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Local, SecondsFormat, TimeZone, Utc};
use talktree::search::parse_date;

use crate::failure::{Failure, Result};
use crate::text::quoted;

/// Returns the time that an option names, if it is given.
///
/// # Errors
/// [`Failure::Usage`] if it is no date.
pub(crate) fn time_of(option: &str, given: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    let Some(given) = given else { return Ok(None) };
    match parse_date(given, Utc::now()) {
        Some(time) => Ok(Some(time)),
        None => Err(Failure::Usage(format!(
            "--{option} {} is not a date; give one like 2026, 2026-01, 2026-01-31, yesterday or 7d, or an instant like 2026-01-31T12:00:00Z",
            quoted(given)
        ))),
    }
}

/// Returns a time as programs read it: with its zone.
pub(crate) fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the local time to the second.
pub(crate) fn local(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns a time as people say it: how long ago it was within a week, else the local date and time.
pub(crate) fn ago<Zone: TimeZone>(time: DateTime<Utc>, now: &DateTime<Zone>) -> String
where
    Zone::Offset: std::fmt::Display,
{
    let time = time.with_timezone(&now.timezone());
    match now.clone().signed_duration_since(&time).num_seconds() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds @ 86_400..604_800 => format!("{} d ago", seconds / 86_400),
        _ => time.format("%Y-%m-%d %H:%M").to_string(),
    }
}

/// A span of time.
///
/// Months and years have no fixed length, so there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(Duration);

impl Span {
    pub(crate) fn length(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{} is no span of time such as 30d; the units are min, h, d and w",
                quoted(text)
            )
        };
        let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (count, unit) = text.split_at(end);
        let count: u64 = count.parse().map_err(|_| wrong())?;
        let unit = match unit {
            "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return Err(wrong()),
        };
        count.checked_mul(unit).map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    #[test]
    fn a_time_is_said_as_people_say_it() -> Result<(), Box<dyn std::error::Error>> {
        let east = FixedOffset::east_opt(3_600).ok_or("no offset")?;
        let now = "2026-03-29T12:00:00Z".parse::<DateTime<Utc>>()?.with_timezone(&east);
        for (time, said) in [
            ("2026-03-29T12:00:00Z", "just now"),
            ("2026-03-29T11:58:30Z", "1 min ago"),
            ("2026-03-28T13:00:00Z", "23 h ago"),
            ("2026-03-23T12:00:00Z", "6 d ago"),
            ("2026-03-20T23:30:00Z", "2026-03-21 00:30"),
            ("2026-03-29T12:00:01Z", "2026-03-29 13:00"),
        ] {
            assert_eq!(ago(time.parse()?, &now), said, "{time}");
        }
        Ok(())
    }

    #[test]
    fn spans_are_numbers_with_a_unit() {
        for (text, seconds) in [("90min", 5_400), ("12h", 43_200), ("0d", 0), ("2w", 1_209_600)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for text in
            ["", "d", "30", "1mo", "-1d", "1.5d", "99999999999999999999d", "9999999999999999999w"]
        {
            let why = text.parse::<Span>().unwrap_err();
            assert!(why.starts_with(&format!("{text:?} is no span of time")), "{why}");
        }
    }
}
