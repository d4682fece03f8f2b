//! Text made fit for a terminal.
//!
//! Stored text comes from anywhere: a tool's output with escape codes, a page with characters that
//! change the direction of writing. Such characters are printed as escapes like `\u{1b}`: a reader
//! sees them and the terminal ignores them.

use std::borrow::Cow;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

/// The most characters per column: text without width, as zero-width spaces, is cut by count.
const MAX_CHARS_PER_COLUMN: usize = 8;

/// The most bytes of a line of a message: a path has up to 4 096.
const MAX_LINE: usize = 8_192;
/// How many characters of each end of a longer line are shown.
const MAX_END: usize = 1_000;

/// The most characters of a name in a message.
pub(crate) const MAX_NAME: usize = 80;

/// Returns the line with each unsafe character replaced by an escape.
pub(crate) fn escape(line: &str) -> Cow<'_, str> {
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

/// Returns a name that was given, in quotes and cut to 80 characters, for a message.
pub(crate) fn quoted(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{:?}", format!("{}…", &name[..end])),
        None => format!("{name:?}"),
    }
}

/// Returns a line of a message without the middle if it is very long: a name of any length may be in it.
pub(crate) fn without_middle(line: &str) -> Cow<'_, str> {
    let ends = (line.char_indices().nth(MAX_END), line.char_indices().nth_back(MAX_END));
    match ends {
        (Some((first, _)), Some((last, _))) if line.len() > MAX_LINE && first < last => {
            Cow::Owned(format!("{}…{}", &line[..first], &line[last..]))
        }
        _ => Cow::Borrowed(line),
    }
}

/// Returns a path on one line, escaped.
pub(crate) fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

/// Returns the text as one line, escaped; each run of white space becomes one space.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    escape(&words.join(" ")).into_owned()
}

/// Returns a count with its noun: `1 message`, `2 messages`, `2 summaries`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Returns a number of bytes in the unit that people would use: `812 bytes`, `39.9 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let unit = |(power, name)| (1_000_u64.pow(power), name);
    match [(4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")].map(unit).iter().find(|it| bytes >= it.0) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => plural(bytes, "byte"),
    }
}

/// Returns the text, cut to this many terminal columns; a cut text ends with `…`.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    // The width of a text is not the sum of its characters' widths: a variation selector makes the
    // heart before it two columns wide.
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let ends = ends.take(width.saturating_mul(MAX_CHARS_PER_COLUMN));
    let end = ends.take_while(|end| text[..*end].width() < width).last().unwrap_or(0);
    let mut short = text[..end].to_owned();
    if width > 0 {
        short.push('…');
    }
    Cow::Owned(short)
}

/// Returns whether the character controls a terminal or changes the direction of writing.
pub(crate) fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{61C}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_printed_as_escapes() {
        for (given, shown) in [
            ("plain 故宫 👩‍👧", "plain 故宫 👩‍👧"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("c1 \u{9b}2J", "c1 \\u{9b}2J"),
            ("exe\u{202e}gnp", "exe\\u{202e}gnp"),
            ("a\tb\r", "a\tb\\u{d}"),
            ("del\u{7f}", "del\\u{7f}"),
        ] {
            assert_eq!(escape(given), shown);
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        assert_eq!(quoted(&"é".repeat(80)), format!("\"{}\"", "é".repeat(80)));
        assert_eq!(quoted(&"é".repeat(120_000)), format!("\"{}…\"", "é".repeat(80)));
        let line = format!("a{}b", "é".repeat(120_000));
        let shown = without_middle(&line);
        assert!(shown.chars().count() == 2_002 && shown.starts_with("aé") && shown.ends_with("éb"));
        assert_eq!(without_middle("a name"), "a name");
    }

    #[test]
    fn a_size_has_a_unit() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (39_923_712, "39.9 MB"),
            (5_000_000_000_000_000, "5000.0 TB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn text_is_cut_by_columns() {
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
