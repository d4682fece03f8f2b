//! The labels of a message in the index: its role, author and tags, and the day, month, year and longer spans of its time.
//!
//! A span of time is the few labels that cover it, as `d20260131`, `m202602`, `y2027`, `e203`, `c21`: days up to the end of a month,
//! months up to the end of a year. A time of day is compared with the row.

use chrono::{DateTime, Datelike, Days, NaiveDate, TimeDelta, Utc};
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
    if let Some(date) =
        created_at.map(|time| time.date_naive()).filter(|date| (0..=9999).contains(&date.year()))
    {
        for span in [Span::Day, Span::Month, Span::Year, Span::Decade, Span::Century] {
            labels.push(' ');
            labels.push_str(&span.label(date));
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
        let first =
            filters.after.map_or(NaiveDate::from_ymd_opt(0, 1, 1), |time| Some(time.date_naive()));
        let end = filters.before.map(|time| (time - TimeDelta::microseconds(1)).date_naive());
        let last = end.or(NaiveDate::from_ymd_opt(9999, 12, 31));
        let labels = first.zip(last).map(|(first, last)| spans(first, last)).unwrap_or_default();
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

#[derive(Clone, Copy)]
enum Span {
    Day,
    Month,
    Year,
    Decade,
    Century,
}

impl Span {
    fn label(self, date: NaiveDate) -> String {
        let (year, month, day) = (date.year(), date.month(), date.day());
        match self {
            Span::Day => format!("d{year:04}{month:02}{day:02}"),
            Span::Month => format!("m{year:04}{month:02}"),
            Span::Year => format!("y{year:04}"),
            Span::Decade => format!("e{:03}", year / 10),
            Span::Century => format!("c{:02}", year / 100),
        }
    }

    /// Returns the first day after the span that begins on a day; `None` if none begins there, or if that was the last.
    fn end(self, date: NaiveDate) -> Option<NaiveDate> {
        let (year, month) = (date.year(), date.month());
        let first_of = |year, month| NaiveDate::from_ymd_opt(year, month, 1);
        let begins_year = date.ordinal() == 1;
        match self {
            Span::Day => date.checked_add_days(Days::new(1)),
            Span::Month if date.day() == 1 && month == 12 => first_of(year + 1, 1),
            Span::Month if date.day() == 1 => first_of(year, month + 1),
            Span::Year if begins_year => first_of(year + 1, 1),
            Span::Decade if begins_year && year % 10 == 0 => first_of(year + 10, 1),
            Span::Century if begins_year && year % 100 == 0 => first_of(year + 100, 1),
            _ => None,
        }
    }
}

/// Returns the labels that cover the days from `first` to `last`.
fn spans(first: NaiveDate, last: NaiveDate) -> Vec<Expr> {
    let mut labels = Vec::new();
    let mut at = first;
    while at <= last {
        let longest = [Span::Century, Span::Decade, Span::Year, Span::Month, Span::Day]
            .into_iter()
            .find_map(|span| {
                Some((span, span.end(at)?))
                    .filter(|(_, end)| end.pred_opt().is_some_and(|day| day <= last))
            });
        let Some((span, end)) = longest else { break };
        labels.push(word(span.label(at)));
        at = end;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(first: &str, last: &str) -> String {
        let day = |text: &str| text.parse().unwrap_or_default();
        let words = spans(day(first), day(last)).into_iter().map(|label| match label {
            Expr::Phrase(phrase) => phrase.words.concat(),
            other => panic!("{other:?}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn few_labels_cover_a_span() {
        assert_eq!(
            covered("2026-01-30", "2026-03-02"),
            "d20260130 d20260131 m202602 d20260301 d20260302"
        );
        assert_eq!(covered("2025-01-01", "2026-01-01"), "y2025 d20260101");
        assert_eq!(covered("2019-12-31", "2030-12-31"), "d20191231 e202 y2030");
        assert_eq!(covered("1900-01-01", "2009-12-31"), "c19 e200");
        assert_eq!(covered("2026-01-02", "2026-01-01"), "");
        assert!(covered("0000-01-01", "2026-06-15").split(' ').count() < 60);
        assert!(covered("2026-06-15", "9999-12-31").ends_with("c99"));
    }

    #[test]
    fn no_two_roles_have_one_label() {
        let roles = ["user", "User", "x75", "", "a b", "a-b", "ünder", "u\u{0}"];
        let labels: std::collections::HashSet<String> =
            roles.iter().map(|role| label('r', role)).collect();
        assert_eq!(labels.len(), roles.len());
    }
}
