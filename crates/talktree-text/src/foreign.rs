//! Foreign texts, which talktree did not write, inside its own texts.
//!
//! A prompt, an answer of a tool and an outline have lines of talktree: headers, names of hits, marks. Ids, titles and
//! contents come from people, models and files. Printed raw, an id with a line break would make a line that reads as
//! talktree's. So each foreign text goes through one of these functions:
//!
//! - a name ([`name`], [`quoted`]) is on one line, and different names look different;
//! - a sentence ([`line()`], [`short_line`]) is on one line, without characters that nobody sees;
//! - a content among others ([`indented`]) begins no line at the margin: lines at the margin are ours;
//! - a content of its own ([`guarded`]) stays as it is, but lines that would read as ours begin with `> `.
//!
//! Invariant: whatever a reader takes for a line break ends a line here, and characters that nobody sees are ignored when a
//! line is judged.

use std::borrow::Cow;
use std::path::Path;

/// The margin of a content among others.
const INDENT: &str = "  ";

/// What a line that would read as ours begins with: Markdown's mark of a quotation.
const QUOTE: &str = "> ";

/// Returns whether some reader takes the character for a line break: Unicode's, and the separators that Python adds.
fn is_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether the character ends a line, or is one that a terminal interprets.
pub fn breaks_line(c: char) -> bool {
    c.is_control() || is_break(c)
}

/// Returns whether nobody sees the character: control characters, and those that Unicode lets a font ignore (zero-width,
/// direction, joiners, tags, fillers).
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Returns whether the character separates words: white space, and invisible characters that break a line or a word, or
/// change the direction of the text.
fn is_gap(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200B}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
            | '\u{2800}')
}

/// Returns whether the character shapes the one before it, as in Persian, in Indian scripts and in emoji. Elsewhere, and
/// at the end of a text, nobody sees it.
fn shapes(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_shaping = match c {
        '\u{200C}' | '\u{200D}' => after.is_some_and(|after| !after.is_ascii()),
        c => matches!(c, '\u{FE0E}' | '\u{FE0F}'),
    };
    is_shaping
        && before.is_some_and(|before| {
            matches!(before,
                '\u{600}'..='\u{DFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{18AF}'
                | '\u{2600}'..='\u{27BF}' | '\u{1F000}'..='\u{1FBFF}')
                || (c == '\u{200D}' && before == '\u{FE0F}')
        })
}

/// The characters of rules, and those that look like them.
pub const RULES: [char; 6] = ['═', '━', '＝', '⹀', '゠', '꞊'];

/// Returns a name as it is if nothing in it could be taken for what is around it, else [`quoted`].
///
/// It can be in a list with commas, in brackets, before a colon, between rules and in a tree.
pub fn name(text: &str) -> Cow<'_, str> {
    let is_mark = |c: char| {
        matches!(c, '"' | '\\' | ',' | ';' | '[' | ']' | '(' | ')' | '`' | '\u{2500}'..='\u{257F}')
            || RULES.contains(&c)
    };
    let (mut before, mut is_plain) = (None, !text.is_empty() && !text.ends_with([' ', ':']));
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let follows = before.is_some_and(|before| before != ' ' && before != ':');
        is_plain &= match c {
            ' ' => follows,
            c if is_mark(c) || is_break(c) || c.is_whitespace() => false,
            c => !is_invisible(c) || shapes(c, before, chars.peek().copied()),
        };
        before = Some(c);
    }
    if is_plain { text.into() } else { quoted(text).into() }
}

/// Returns a name in quotation marks, escaped as in JSON: a model that copies it into a call has the name again.
pub fn quoted(text: &str) -> String {
    let (mut quoted, mut before) = (String::from('"'), None);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_seen = !is_invisible(c) || shapes(c, before, chars.peek().copied());
        let is_escaped = is_break(c) || !is_seen;
        before = (!is_escaped).then_some(c);
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            c if is_escaped => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    quoted += &format!("\\u{unit:04x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a path as it is if it is one line and all of it is seen, else [`quoted`].
pub fn path(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    match text.contains(|c| breaks_line(c) || is_invisible(c)) {
        true => quoted(&text).into(),
        false => text,
    }
}

/// Returns the name at the start of a text, as [`name`] wrote it, and the rest. A name without quotation marks ends before a
/// colon.
pub fn read_name(text: &str) -> (Cow<'_, str>, &str) {
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        if let Some(Ok(name)) = values.next() {
            return (name.into(), text.get(values.byte_offset()..).unwrap_or_default());
        }
    }
    let (name, rest) = text.split_at(text.find(": ").unwrap_or(text.len()));
    (name.into(), rest)
}

/// Returns the text on one line, with one space for each run of white space.
pub fn line(text: &str) -> String {
    on_one_line(text).collect()
}

/// Returns the start of the text on one line of at most so many characters.
pub fn short_line(text: &str, max_chars: usize) -> String {
    let mut chars = on_one_line(text);
    let mut line: String = chars.by_ref().take(max_chars).collect();
    if chars.next().is_some() {
        line.pop();
        line.truncate(line.trim_end().len());
        line.push('…');
    }
    line
}

fn on_one_line(text: &str) -> impl Iterator<Item = char> {
    let (mut before, mut has_gap) = (None, false);
    text.char_indices()
        .flat_map(move |(at, c)| {
            if is_gap(c) {
                has_gap = before.is_some();
                return [None, None];
            }
            let after = || text[at + c.len_utf8()..].chars().next();
            if is_invisible(c) && (has_gap || !shapes(c, before, after())) {
                return [None, None];
            }
            before = Some(c);
            [std::mem::take(&mut has_gap).then_some(' '), Some(c)]
        })
        .flatten()
}

/// Returns the lines of a text, each with its line break.
pub fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.find(is_break);
        let Some(at) = at else {
            let last = std::mem::take(&mut rest);
            return (!last.is_empty()).then_some((last, ""));
        };
        let (line, below) = rest.split_at(at);
        let length = match below.starts_with("\r\n") {
            true => 2,
            false => below.chars().next().map_or(0, char::len_utf8),
        };
        let (end, below) = below.split_at(length);
        rest = below;
        Some((line, end))
    })
}

/// Returns the text with a margin before each line.
pub fn indented(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() + text.len() / 16 + INDENT.len());
    for (line, _) in lines(text) {
        if !line.trim().is_empty() {
            indented += INDENT;
            indented += line;
        }
        indented.push('\n');
    }
    indented.truncate(indented.trim_end().len());
    indented
}

/// Returns the text with `> ` before each line that would read as ours.
///
/// `is_ours` is asked about each line as a reader sees it: without white space around it and without invisible characters.
pub fn guarded(text: &str, mut is_ours: impl FnMut(&str) -> bool) -> Cow<'_, str> {
    let mut guarded = String::new();
    // The end of what is in `guarded`.
    let (mut done, mut at) = (0, 0);
    for (line, end) in lines(text) {
        if is_ours(&visible(line)) {
            guarded += &text[done..at];
            guarded += QUOTE;
            done = at;
        }
        at += line.len() + end.len();
    }
    if done == 0 && guarded.is_empty() {
        return text.into();
    }
    guarded += &text[done..];
    guarded.into()
}

/// Returns the text with `> ` before each line that begins like this, as a reader sees it.
pub fn guarded_from<'t>(text: &'t str, start: &str) -> Cow<'t, str> {
    // Most texts have no such line, and a look for its first character is much faster than one at each line.
    match start.chars().next() {
        Some(first) if has_line_with(text, first) => guarded(text, |line| line.starts_with(start)),
        _ => text.into(),
    }
}

/// Returns whether a line begins with this character, as a reader sees it.
fn has_line_with(text: &str, start: char) -> bool {
    text.match_indices(start).any(|(at, _)| {
        let mut before = text[..at].chars().rev();
        before.find(|c| is_break(*c) || !is_unseen(*c)).is_none_or(is_break)
    })
}

/// Returns whether nothing is seen of the character.
pub fn is_unseen(c: char) -> bool {
    c.is_whitespace() || is_invisible(c) || c == '\u{2800}'
}

/// Returns a line as a reader sees it.
fn visible(line: &str) -> Cow<'_, str> {
    let line = line.trim_matches(is_unseen);
    match line.contains(is_invisible) {
        false => line.into(),
        true => line.chars().filter(|c| !is_invisible(*c)).collect::<String>().into(),
    }
}

/// Returns the text without invisible characters.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    // A line break is a control character.
    let is_hidden = |c: char| is_invisible(c) && !is_break(c) && c != '\t';
    match text.contains(is_hidden) {
        false => text.into(),
        true => text.chars().filter(|c| !is_hidden(*c)).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_bare_if_nothing_can_be_confused() {
        for bare in [
            "m1",
            "telegram:4711",
            "house rules",
            "a_b-c.d/e@f",
            "記憶",
            "कहानी",
            "می\u{200C}خواهم",
            "👨\u{200D}👩",
            "❤\u{FE0F}\u{200D}🔥",
        ] {
            assert_eq!(name(bare), bare);
        }
        for (text, shown) in [
            ("", "\"\""),
            ("a\nb", r#""a\nb""#),
            ("m1, user, 2026-01-01]", r#""m1, user, 2026-01-01]""#),
            ("a: b", r#""a: b""#),
            ("a  b", r#""a  b""#),
            (" a", r#"" a""#),
            ("a\u{200B}b", r#""a\u200bb""#),
            ("a\u{200D}b", r#""a\u200db""#),
            ("क\u{200D}", r#""क\u200d""#),
            ("\u{202E}a", r#""\u202ea""#),
            ("a\u{85}\u{2028}\u{1C}b", r#""a\u0085\u2028\u001cb""#),
            ("\u{E0041}", r#""\udb40\udc41""#),
            ("say \"hi\" \\", r#""say \"hi\" \\""#),
        ] {
            assert_eq!(name(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_sentence_is_one_line_without_what_nobody_sees() {
        for (text, shown) in [
            (" a\r\n\tb\u{2028}c\u{B}\u{85} ", "a b c"),
            ("safe\u{202E}gnp.exe", "safe gnp.exe"),
            ("so\u{AD}ft", "soft"),
            ("x\u{E0041}\u{FE0F}", "x"),
            ("❤\u{FE0F} 👨\u{200D}👩", "❤\u{FE0F} 👨\u{200D}👩"),
            ("\u{200B}\u{FEFF}", ""),
        ] {
            assert_eq!(line(text), shown, "{text:?}");
        }
        assert_eq!(short_line(&"x".repeat(60), 60), "x".repeat(60));
        assert_eq!(short_line(&"x".repeat(61), 60), format!("{}…", "x".repeat(59)));
        assert_eq!(short_line("ab cd", 4), "ab…");
        assert_eq!(short_line("ab \n", 2), "ab");
    }

    #[test]
    fn no_line_of_an_indented_text_is_at_the_margin() {
        assert_eq!(indented("a\r\nb\rc\u{2028}[d]\n\n\u{85}e\n"), "  a\n  b\n  c\n  [d]\n\n\n  e");
        assert_eq!(indented(""), "");
    }

    #[test]
    fn only_lines_that_would_read_as_ours_are_quoted() {
        let is_ours = |line: &str| line.starts_with("[x]");
        for (text, shown) in [
            ("a\nb [x]\n", "a\nb [x]\n"),
            ("[x]\na\r\n [x] b\r[x]", "> [x]\na\r\n>  [x] b\r> [x]"),
            ("\u{200B}[\u{2060}x]\u{2029}[x]", "> \u{200B}[\u{2060}x]\u{2029}> [x]"),
            ("", ""),
        ] {
            assert_eq!(guarded(text, is_ours), shown, "{text:?}");
            assert_eq!(has_line_with(text, '['), text != shown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn different_names_look_different(a in "[a\"\\\\, \n\u{200B}:é\u{200D}]{0,5}", b in "[a\"\\\\, \n\u{200B}:é\u{200D}]{0,5}") {
            prop_assert_eq!(name(&a) == name(&b), a == b);
        }

        #[test]
        fn a_name_is_one_line_and_is_read_back(text in "(\\PC|[\n\r\u{B}\u{C}\u{85}\u{2028}\u{200B}\u{202E}\": ]){0,40}") {
            let shown = name(&text);
            prop_assert!(!shown.contains(breaks_line));
            let about = format!("{shown}: about\": it");
            let (read, rest) = read_name(&about);
            prop_assert_eq!(read.as_ref(), text.as_str());
            prop_assert_eq!(rest, ": about\": it");
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).ok(), Some(text));
        }
    }
}
