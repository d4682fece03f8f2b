//! Dates and spans of time that an option names.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
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
    use super::*;

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
