//! The labels of a message in the index: its role, author and tags, and its day.
//!
//! A range of days is the few labels that cover it: each day has a label, and so has each span of 8, 64, 512 and 4 096 days. Days before
//! 1900 and after 2100 count as the first and last of these, and a time of day has no label: such times are compared with the row.

use chrono::{DateTime, TimeDelta, Utc};
use talktree_text::{Expr, Filters, Phrase};

/// Returns the labels of a message.
pub(in super::super) fn of_message(
    role: &str,
    created_at: Option<DateTime<Utc>>,
    author: Option<&str>,
    tags: &[String],
) -> String {
    let mut labels = label('r', role);
    let author = author.map(|author| label('a', author));
    for other in author.into_iter().chain(tags.iter().map(|tag| label('t', tag))) {
        labels.push(' ');
        labels.push_str(&other);
    }
    if let Some(day) = created_at.map(day) {
        for (kind, days) in SPANS {
            labels.push_str(&format!(" {kind}{}", day / days));
        }
    }
    labels
}

/// Returns what the labels of a message must match to pass the filters; `None` if any may. A message that matches may still be of
/// another time of the first or last day.
pub(in super::super) fn wanted(filters: &Filters) -> Option<Expr> {
    let mut all = Vec::new();
    if !filters.roles.is_empty() {
        all.push(Expr::Any(filters.roles.iter().map(|role| word(label('r', role))).collect()));
    }
    if !filters.authors.is_empty() {
        all.push(Expr::Any(
            filters.authors.iter().map(|author| word(label('a', author))).collect(),
        ));
    }
    all.extend(filters.tags.iter().map(|tag| word(label('t', tag))));
    if filters.after.is_some() || filters.before.is_some() {
        let first = filters.after.map_or(FIRST, day);
        let last = filters.before.map_or(LAST, |time| day(time - TimeDelta::microseconds(1)));
        let labels = spans(first, last);
        // Of no time at all is no message.
        let labels = if labels.is_empty() { vec![word("none".to_owned())] } else { labels };
        all.push(Expr::Any(labels));
    }
    (!all.is_empty()).then_some(Expr::All(all))
}

fn word(label: String) -> Expr {
    Expr::Phrase(Phrase { words: vec![label], is_prefix: false })
}

/// Returns the label of a value: as it is if it is a plain word, and otherwise its bytes, so that no two are alike.
fn label(kind: char, value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match !value.is_empty() && value.bytes().all(is_plain) {
        true => format!("{kind}{value}"),
        false => {
            value.bytes().fold(format!("{kind}x"), |label, byte| label + &format!("_{byte:02x}"))
        }
    }
    .replace('_', "")
}

/// The spans of time that have labels, by their number of days, the longest first: each begins at a multiple of it.
const SPANS: [(char, i64); 5] = [('l', 4_096), ('h', 512), ('g', 64), ('e', 8), ('d', 1)];
const SECONDS: i64 = 86_400;
/// The days with labels of their own, since 1900-01-01.
const FIRST: i64 = 0;
const LAST: i64 = 73_413;
/// 1970-01-01.
const EPOCH: i64 = 25_567;

fn day(time: DateTime<Utc>) -> i64 {
    since_first(time).clamp(FIRST, LAST)
}

fn since_first(time: DateTime<Utc>) -> i64 {
    time.timestamp().div_euclid(SECONDS) + EPOCH
}

/// Returns whether the labels tell what is before a time and what is not.
pub(in super::super) fn tell(time: DateTime<Utc>) -> bool {
    let is_midnight = time.timestamp_micros() % (SECONDS * 1_000_000) == 0;
    is_midnight && (FIRST + 1..=LAST).contains(&since_first(time))
}

/// Returns the labels that cover the days from `first` to `last`.
fn spans(first: i64, last: i64) -> Vec<Expr> {
    let mut labels = Vec::new();
    let mut at = first;
    while at <= last {
        let fits = |(_, days): &&(char, i64)| at % days == 0 && at + days - 1 <= last;
        let Some((kind, days)) = SPANS.iter().find(fits) else { break };
        labels.push(word(format!("{kind}{}", at / days)));
        at += days;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(first: i64, last: i64) -> String {
        let words = spans(first, last).into_iter().map(|label| match label {
            Expr::Phrase(phrase) => phrase.words.concat(),
            other => panic!("{other:?}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn few_labels_cover_a_span() {
        assert_eq!(covered(6, 17), "d6 d7 e1 d16 d17");
        assert_eq!(covered(0, 4_096), "l0 d4096");
        assert_eq!(covered(56, 64 + 511), "e7 g1 g2 g3 g4 g5 g6 g7 g8");
        assert_eq!(covered(2, 1), "");
        assert!(covered(FIRST + 1, LAST - 1).split(' ').count() < 80);
    }

    #[test]
    fn days_are_counted_from_1900_to_2100() {
        let day = |text: &str| day(text.parse().unwrap());
        assert_eq!(day("1900-01-01T00:00:00Z"), FIRST);
        assert_eq!(day("1970-01-01T23:59:59Z"), EPOCH);
        assert_eq!(day("2100-12-31T12:00:00Z"), LAST);
        assert_eq!((day("0001-01-01T00:00:00Z"), day("9999-12-31T00:00:00Z")), (FIRST, LAST));
        for (time, expected) in [
            ("2026-01-31T00:00:00Z", true),
            ("2026-01-31T00:00:01Z", false),
            ("1850-01-01T00:00:00Z", false),
            ("2150-01-01T00:00:00Z", false),
        ] {
            assert_eq!(tell(time.parse().unwrap()), expected, "{time}");
        }
    }

    #[test]
    fn no_two_roles_have_one_label() {
        let roles = ["user", "User", "x75", "", "a b", "a-b", "ünder", "u\u{0}"];
        let labels: std::collections::HashSet<String> =
            roles.iter().map(|role| label('r', role)).collect();
        assert_eq!(labels.len(), roles.len());
    }
}
