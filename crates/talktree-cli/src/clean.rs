//! Keeping what a terminal acts on out of what is printed.
//!
//! Stored text comes from anywhere: a tool's output with escape codes, a page with characters that
//! turn the direction of writing. It is shown with these as escapes, `\u{1b}`, so that a reader sees
//! that they are there and the terminal does nothing.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// How many characters may share a column: text of no width is cut, too.
const MAX_CHARS_PER_COLUMN: usize = 8;

/// Returns one line with each character that a terminal would act on as an escape.
pub(crate) fn clean(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_unsafe) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match is_unsafe(c) {
            true => text.extend(c.escape_unicode()),
            false => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// Returns the text as one line: white space of any kind is one blank.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clean(&words.join(" ")).into_owned()
}

/// Returns a count with its noun: `1 message`, `2 messages`, `2 summaries`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Returns the text, cut to this many columns of a terminal.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    // By the width of what is shown, which is not the sum of its characters: a selector after a heart
    // makes it as wide as two.
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let ends = ends.take(width.saturating_mul(MAX_CHARS_PER_COLUMN));
    let end = ends.take_while(|end| text[..*end].width() < width).last().unwrap_or(0);
    let mut short = text[..end].to_owned();
    if width > 0 {
        short.push('…');
    }
    Cow::Owned(short)
}

/// Returns whether a terminal acts on the character, or it changes the direction of what follows.
pub(crate) fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{61C}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_becomes_visible() {
        for (given, shown) in [
            ("plain 故宫 👩‍👧", "plain 故宫 👩‍👧"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("c1 \u{9b}2J", "c1 \\u{9b}2J"),
            ("exe\u{202e}gnp", "exe\\u{202e}gnp"),
            ("a\tb\r", "a\tb\\u{d}"),
            ("del\u{7f}", "del\\u{7f}"),
        ] {
            assert_eq!(clean(given), shown);
        }
    }

    #[test]
    fn texts_are_cut_by_columns() {
        for (text, width, shown) in [
            ("故宫博物院", 10, "故宫博物院"),
            ("故宫博物院", 6, "故宫…"),
            ("abc", 2, "a…"),
            ("abc", 0, ""),
            ("❤️❤️❤️", 6, "❤️❤️❤️"),
            ("❤️❤️❤️", 5, "❤️❤️…"),
            ("❤️❤️❤️", 4, "❤️❤…"),
            ("👩‍👧👩‍👧", 3, "👩‍👧…"),
        ] {
            assert_eq!(cut(text, width), shown);
            assert!(cut(text, width).width() <= width);
        }
    }
}
