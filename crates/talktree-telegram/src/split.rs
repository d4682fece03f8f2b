//! Splits a text into messages of Telegram, whose length is limited in UTF-16 units.
//!
//! Invariant: each part has 1 to `max` units. Without fences and blanks at the ends of parts, they are the text.
//! Invariant: while a text grows at its end, its parts stay the same, except for the last one.

use unicode_segmentation::UnicodeSegmentation;

/// The maximum length of a message, in UTF-16 units.
pub const MAX_UNITS: usize = 4_096;

/// What is sent instead of an empty or blank text, which Telegram refuses.
const NOTHING: &str = "(empty)";

const FENCE: &str = "```";

/// The longest first line of a code block that is repeated in the next part, in bytes.
const MAX_FENCE: usize = 40;

/// Returns the texts of the messages: at least one, none over the limit.
///
/// A text is split after a paragraph, else a line, else a word, else a grapheme. A code block is closed at the end of a
/// part and opened again in the next one. The parts of a growing text stay the same, except for the last one.
///
/// ```
/// use talktree_telegram::split;
///
/// assert_eq!(split("first one second part", 16), ["first one", "second part"]);
/// ```
#[must_use]
pub fn split(text: &str, max: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    // The first line of the code block that the rest begins in.
    let mut block: Option<&str> = None;
    while !rest.is_empty() {
        let head = block.map(|fence| format!("{fence}\n")).unwrap_or_default();
        if units(&head) + units(rest) <= max {
            parts.push(head + rest);
            rest = "";
            continue;
        }
        // Room for the line that closes a block, needed or not: otherwise a part would change while the text grows.
        let room = max.saturating_sub(units(&head) + FENCE.len() + 1).max(1);
        let (part, after) = rest.split_at(cut(rest, room));
        block = open_block(block, part);
        let tail = if block.is_some() { format!("\n{FENCE}") } else { String::new() };
        parts.push(format!("{head}{}{tail}", part.trim_end()));
        // Blanks at the start of a line of code mean something.
        rest = if block.is_some() { after.trim_start_matches('\n') } else { after.trim_start() };
    }
    if parts.is_empty() {
        parts.push(NOTHING.to_owned());
    }
    parts
}

/// Returns the length of a text in UTF-16 units.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns where to cut a text that has more units than there is room for: at a byte after the first and not after the last.
fn cut(text: &str, room: usize) -> usize {
    let mut fits = 0;
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += units(grapheme);
        if used > room {
            break;
        }
        fits = at + grapheme.len();
    }
    if fits == 0 {
        // One grapheme is larger than a message: cut between its characters.
        let mut used = 0;
        let ends = text.char_indices().map(|(at, c)| (at + c.len_utf8(), c.len_utf16()));
        let ends = ends.take_while(|(_, units)| {
            used += units;
            used <= room
        });
        let first = text.chars().next().map_or(0, char::len_utf8);
        return ends.map(|(end, _)| end).last().unwrap_or(first);
    }
    let (whole, half) = (&text[..fits], fits / 2);
    // A place early in the text would leave most of the message empty.
    let after = |found: Option<usize>, len| found.map(|at| at + len).filter(|&at| at > half);
    after(whole.rfind("\n\n"), 2)
        .or_else(|| after(whole.rfind('\n'), 1))
        .or_else(|| {
            let is_end = |c: char| c.is_whitespace() || matches!(c, '。' | '！' | '？');
            let (at, c) = whole.char_indices().rfind(|&(_, c)| is_end(c))?;
            after(Some(at), c.len_utf8())
        })
        .unwrap_or(fits)
}

/// Returns the first line of the code block in which a part ends, if it ends in one.
fn open_block<'a>(mut block: Option<&'a str>, part: &'a str) -> Option<&'a str> {
    for line in part.lines().filter(|line| line.trim_start().starts_with(FENCE)) {
        let line = line.trim();
        block = match block {
            Some(_) => None,
            None if line.len() <= MAX_FENCE => Some(line),
            None => Some(FENCE),
        };
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_paragraphs_lines_and_words() {
        for (text, max, parts) in [
            ("short", 20, vec!["short"]),
            ("", 20, vec![NOTHING]),
            (" \n\t", 20, vec![NOTHING]),
            ("first one\n\nsecond part", 16, vec!["first one", "second part"]),
            ("first one\nsecond part", 16, vec!["first one", "second part"]),
            ("first one second part", 16, vec!["first one", "second part"]),
            ("abcdefghijklmnopqrst", 14, vec!["abcdefghij", "klmnopqrst"]),
            ("a bcdefghijklmnopqrs", 14, vec!["a bcdefghi", "jklmnopqrs"]), // not after one letter
        ] {
            assert_eq!(split(text, max), parts, "{text:?}");
        }
    }

    #[test]
    fn surrogate_pairs_and_graphemes_stay_whole() {
        let faces = "😀".repeat(9);
        assert_eq!(split(&faces, 11), ["😀😀😀", "😀😀😀", "😀😀😀"]);
        let families = "👨‍👩‍👧".repeat(3); // 8 units each
        assert_eq!(split(&families, 14), ["👨‍👩‍👧"; 3]);
        let accents = "e\u{301}".repeat(6);
        assert_eq!(split(&accents, 9), ["e\u{301}".repeat(2), "e\u{301}".repeat(4)]);
        let monster = format!("a{}", "\u{301}".repeat(30)); // one grapheme, larger than a message
        let parts = split(&monster, 14);
        assert_eq!(parts.concat(), monster);
        assert!(parts.iter().all(|part| units(part) <= 14));
    }

    #[test]
    fn a_code_block_is_closed_and_opened_again() {
        let text =
            "Look:\n```rust\nfn one() {}\n    fn two() {}\n    fn three() {}\n```\nThat is all.";
        assert_eq!(
            split(text, 48),
            [
                "Look:\n```rust\nfn one() {}\n    fn two() {}\n```",
                "```rust\n    fn three() {}\n```\nThat is all."
            ]
        );
    }

    #[test]
    fn the_parts_of_a_growing_text_stay_the_same() {
        let text =
            "Some words, 中文字 and 😀.\n\n```rust\nlet a = 1;\n  let bcd = 2;\n```\nThen more\n"
                .repeat(6);
        let mut before: Vec<String> = Vec::new();
        for (end, _) in text.char_indices().skip(1) {
            let parts = split(&text[..end], 60);
            assert!(parts.iter().all(|part| (1..=60).contains(&units(part))), "{parts:?}");
            let settled = before.len().saturating_sub(1);
            assert_eq!(parts[..settled], before[..settled], "at {end}");
            before = parts;
        }
        assert!(before.len() > 5);
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let shown = letters(&before.concat());
        assert_eq!(shown.replace("rust", ""), letters(&text).replace("rust", ""));
    }
}
