//! Reading options whose value is a date.

use chrono::{DateTime, Utc};
use talktree::search::parse_date;

use crate::failure::{Failure, Result};
use crate::text::quoted;

/// Returns the time that an option names, if it is given.
///
/// # Errors
/// [`Failure::Usage`] if it is no date.
pub(crate) fn time(option: &str, given: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    let Some(given) = given else { return Ok(None) };
    match parse_date(given, Utc::now()) {
        Some(time) => Ok(Some(time)),
        None => Err(Failure::Usage(format!(
            "--{option} {} is not a date; give one like 2026, 2026-01, 2026-01-31, yesterday or 7d, or an instant like 2026-01-31T12:00:00Z",
            quoted(given)
        ))),
    }
}
