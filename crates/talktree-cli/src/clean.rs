//! Keeping what a terminal acts on out of what is printed.
//!
//! Stored text comes from anywhere: a tool's output with escape codes, a page with characters that
//! turn the direction of writing. It is shown with these as escapes, `\u{1b}`, so that a reader sees
//! that they are there and the terminal does nothing.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// Returns the text, cut to this many columns of a terminal.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let fits = |c: char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let mut short: String = text
        .chars()
        .take_while({
            let mut fits = fits;
            move |c| fits(*c)
        })
        .collect();
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
        ] {
            assert_eq!(cut(text, width), shown);
        }
    }
}
