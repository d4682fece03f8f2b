//! The times of entries, as the agent SDK reads them: with Python's `datetime.fromisoformat`, which takes more than ISO 8601.
//!
//! The date is `2026-03-01`, `20260301`, `2026-W09-7`, `2026W097` or a week without its day. Any character may follow it,
//! and then a time `10:00:02.123` or `100002,123`, or only its first parts, and an offset. A time without an offset is
//! that of this computer's time zone.

use chrono::{DateTime, Datelike, Local, NaiveDate, Offset, TimeDelta, TimeZone, Weekday};

use super::text;

/// Returns the milliseconds since 1970 that the SDK reads in a timestamp; `None` if it reads no time.
pub(super) fn millis(token: &str) -> Option<i64> {
    let mut bytes = text::decode(token)?.into_owned();
    if bytes.ends_with(b"Z") {
        // The SDK replaces every `Z`.
        bytes = bytes.iter().flat_map(utc).copied().collect();
    }
    let seconds = Parsed::read(&replaced_separator(bytes)?)?.seconds()?;
    Some((seconds * 1000.0) as i64)
}

fn utc(byte: &u8) -> &[u8] {
    match byte {
        b'Z' => b"+00:00",
        byte => std::slice::from_ref(byte),
    }
}

/// Returns the text with `T` for a lone surrogate where a separator may be; `None` if another one is left, or if the text is
/// too short.
fn replaced_separator(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let codes: Vec<(u32, usize)> = text::code_points(&bytes).collect();
    if codes.len() < 7 {
        return None;
    }
    let is_surrogate =
        |place: &usize| codes.get(*place).is_some_and(|(code, _)| (0xD800..0xE000).contains(code));
    let bytes = match [7, 8, 10].iter().find(|place| is_surrogate(place)) {
        None => bytes,
        Some(&place) => {
            let end = codes[place].1;
            [&bytes[..end - 3], b"T", &bytes[end..]].concat()
        }
    };
    std::str::from_utf8(&bytes).is_ok().then_some(bytes)
}

/// A time that was read.
struct Parsed {
    date: NaiveDate,
    time: Time,
    /// In microseconds; `None`: the time is local.
    offset: Option<i64>,
}

impl Parsed {
    fn read(bytes: &[u8]) -> Option<Self> {
        let separator = separator(bytes)?;
        let date = date(bytes, separator)?;
        let (time, offset) = match bytes.len() > separator {
            false => (Time::default(), None),
            true => {
                let width = match bytes[separator] {
                    0..0x80 => 1,
                    lead if lead & 0xF0 == 0xE0 => 3,
                    lead if lead & 0xF0 == 0xF0 => 4,
                    _ => 2,
                };
                time_and_offset(bytes.get(separator + width..)?)?
            }
        };
        let is_time = time.hour < 24 && time.minute < 60 && time.second < 60;
        let is_offset = offset.is_none_or(|offset| offset.abs() < 86_400_000_000);
        // Python's dates are of the years 1 to 9999.
        let is_date = (1..=9999).contains(&date.year());
        (is_time && is_offset && is_date).then_some(Self { date, time, offset })
    }

    /// Returns the seconds since 1970, rounded as Python rounds them.
    fn seconds(&self) -> Option<f64> {
        let days = self.date.num_days_from_ce() - NaiveDate::default().num_days_from_ce();
        let time = &self.time;
        let seconds = i64::from(days) * 86_400 + time.hour * 3_600 + time.minute * 60 + time.second;
        match self.offset {
            // The decimal text is read as the nearest number; a division of two numbers would round twice.
            Some(offset) => {
                let micros = seconds * 1_000_000 + time.micros - offset;
                let (sign, micros) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
                format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000).parse().ok()
            }
            None => Some(local_to_utc(seconds)? as f64 + time.micros as f64 / 1e6),
        }
    }
}

#[derive(Default)]
struct Time {
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

/// Returns where the date ends.
fn separator(bytes: &[u8]) -> Option<usize> {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let length = bytes.len();
    if length == 7 {
        return Some(7);
    }
    Some(match (bytes.get(4)?, bytes.get(5)?) {
        (b'-', b'W') => match bytes.get(8) {
            // `2026-W09-12` is a week and an hour, `2026-W09-1T` a day of a week.
            Some(b'-') if length == 9 => return None,
            Some(b'-') => {
                if is_digit(10) {
                    8
                } else {
                    10
                }
            }
            _ => 8,
        },
        (b'-', _) => 10,
        (b'W', _) => {
            let digits = bytes[7..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            match 7 + digits {
                end if end < 9 => end,
                end if end % 2 == 0 => 7,
                _ => 8,
            }
        }
        _ => 8,
    })
}

fn date(bytes: &[u8], length: usize) -> Option<NaiveDate> {
    let (year, mut at) = (digits(bytes, 0, 4)?, 4);
    let has_dashes = bytes.get(at) == Some(&b'-');
    at += usize::from(has_dashes);
    if bytes.get(at) == Some(&b'W') {
        let week = digits(bytes, at + 1, 2)?;
        at += 3;
        let mut day = 1;
        if at < length {
            if has_dashes {
                (bytes.get(at) == Some(&b'-')).then_some(())?;
                at += 1;
            }
            day = digits(bytes, at, 1)?;
        }
        let day = Weekday::try_from(u8::try_from(day.checked_sub(1)?).ok()?).ok()?;
        let is_year = (1..=9999).contains(&year);
        return is_year.then(|| NaiveDate::from_isoywd_opt(year as i32, week as u32, day))?;
    }
    let month = digits(bytes, at, 2)?;
    at += 2;
    if has_dashes {
        (bytes.get(at) == Some(&b'-')).then_some(())?;
        at += 1;
    }
    let day = digits(bytes, at, 2)?;
    let date = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32)?;
    (at + 2 == length).then_some(date)
}

fn time_and_offset(bytes: &[u8]) -> Option<(Time, Option<i64>)> {
    let sign = bytes.iter().position(|byte| matches!(byte, b'+' | b'-' | b'Z'));
    let (time, rest) = clock(bytes, sign.unwrap_or(bytes.len()))?;
    let Some(sign) = sign else { return (!rest).then_some((time, None)) };
    if bytes[sign] == b'Z' {
        return matches!(bytes.get(sign + 1), None | Some(0)).then_some((time, Some(0)));
    }
    let after = &bytes[sign + 1..];
    let (offset, rest) = clock(after, after.len())?;
    let seconds = offset.hour * 3_600 + offset.minute * 60 + offset.second;
    // CPython ignores the fraction of an offset without whole seconds.
    let micros = if seconds == 0 { 0 } else { seconds * 1_000_000 + offset.micros };
    (!rest).then_some((time, Some(if bytes[sign] == b'-' { -micros } else { micros })))
}

/// Reads a time of day that ends here; returns whether something is left after it.
///
/// Follows CPython, which reads the byte after the end: a sign or `Z`, or a zero at the end of the text.
fn clock(bytes: &[u8], end: usize) -> Option<(Time, bool)> {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let (mut parts, mut at, mut has_colons) = ([0; 3], 0, true);
    let mut number = 0;
    loop {
        parts[number] = digits(bytes, at, 2)?;
        let next = byte(at + 2);
        at += 3;
        if number == 0 {
            has_colons = next == b':';
        }
        let time = |micros| Time { hour: parts[0], minute: parts[1], second: parts[2], micros };
        if at >= end {
            return Some((time(0), next != 0));
        } else if has_colons && next == b':' {
        } else if next == b'.' || next == b',' {
            break;
        } else if !has_colons {
            at -= 1;
        } else {
            return None;
        }
        number += 1;
        if number == 3 {
            break;
        }
    }
    let width = (end - at).min(6);
    let micros = digits(bytes, at, width)? * 10_i64.pow(6 - width as u32);
    let mut after = at + width;
    while byte(after).is_ascii_digit() {
        after += 1;
    }
    let [hour, minute, second] = parts;
    Some((Time { hour, minute, second, micros }, byte(after) != 0))
}

/// Returns the number with exactly so many digits at this place.
fn digits(bytes: &[u8], at: usize, count: usize) -> Option<i64> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Returns the seconds since 1970 in UTC at which the local clock shows this time.
///
/// Of two the earlier one, as Python chooses; in a gap, the one that the clock would show without it.
fn local_to_utc(shown: i64) -> Option<i64> {
    let shift = shown_at(shown)? - shown;
    let first = shown - shift;
    let at_first = shown_at(first)?;
    let other = match at_first == shown {
        true => {
            let day_before = first - 86_400;
            let other = shown_at(day_before)? - day_before;
            if other == shift {
                return Some(first);
            }
            other
        }
        false => at_first - first,
    };
    let second = shown - other;
    Some(match (shown_at(second)? == shown, at_first == shown) {
        (true, _) => second,
        (false, true) => first,
        (false, false) => first.max(second),
    })
}

/// Returns what the local clock shows at a time; both in seconds since 1970. `None` outside the years 1 to 9999.
fn shown_at(utc: i64) -> Option<i64> {
    let time = DateTime::from_timestamp(utc, 0)?;
    let offset = Local.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc();
    let shown = time.naive_utc().checked_add_signed(TimeDelta::seconds(i64::from(offset)))?;
    (1..=9999).contains(&shown.year()).then_some(utc + i64::from(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_python_reads_them() {
        for (text, expected) in [
            ("2026-03-01T10:00:02.123Z", Some(1_772_359_202_123)),
            ("2026-03-01T10:00:02.1234567+00:00", Some(1_772_359_202_123)),
            ("20260301 100002,5-0130", Some(1_772_364_602_500)),
            ("2026-W09-7x10+00", Some(1_772_359_200_000)),
            ("2026W097T10:00+00:00:00.5", Some(1_772_359_200_000)),
            ("2026W097T10:00+00:00:01.5", Some(1_772_359_198_500)),
            ("1969-12-31T23:59:59.9996+00:00", Some(0)),
            ("2026-03-01T10:00:02+24:00", None),
            ("2026-02-29T10:00:00Z", None),
            ("2025-W53T10:00:00Z", None),
            ("2026-03-01T24:00:00Z", None),
            ("2026-03-01Z10:00:00Z", None),
            ("2026-03-01T", None),
            ("2026-03", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(millis(&text::encode(text.as_bytes())), expected, "{text}");
        }
        assert_eq!(millis(r#""2026-03-01\ud80010:00:00Z""#), Some(1_772_359_200_000));
        assert_eq!(millis(r#""2026-03-01T10:00:00\ud800""#), None);
        assert_eq!(millis("1772359200"), None);
        assert_eq!(millis(r#""1969-12-31T23:59:59.9985+00:00""#), Some(-1));
    }

    #[test]
    fn a_time_without_an_offset_is_local() {
        let here = Local.with_ymd_and_hms(2026, 3, 1, 10, 0, 2).single().unwrap();
        assert_eq!(millis("\"2026-03-01T10:00:02\""), Some(here.timestamp() * 1000));
        assert_eq!(millis("\"2026-03-01\"").map(|ms| ms % 1000), Some(0));
    }
}
