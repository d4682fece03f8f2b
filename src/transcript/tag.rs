//! The text of a tag or title.

use crate::error::{Error, Result};
use crate::id::shorten;

/// Characters that are not shown: those that format or join others, private use, noncharacters. Sorted.
const INVISIBLE: &[(u32, u32)] = &[
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xE000, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFEFF, 0xFEFF),
    (0xFFF0, 0xFFFB),
    (0xFFFE, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0x10FFFF),
];

/// Returns a tag without characters that are not shown and without white space at its ends, full-width characters in their
/// usual form.
///
/// # Errors
/// [`Error::InvalidValue`] if nothing is left.
pub(super) fn tag(text: &str) -> Result<String> {
    let shown: String =
        text.chars().filter(|letter| !is_invisible(*letter)).map(usual_width).collect();
    not_blank("tag", &shown, text)
}

/// Returns a title without white space at its ends.
///
/// # Errors
/// [`Error::InvalidValue`] if nothing is left.
pub(super) fn title(text: &str) -> Result<String> {
    not_blank("title", text, text)
}

fn not_blank(what: &'static str, text: &str, given: &str) -> Result<String> {
    match text.trim() {
        "" => Err(Error::InvalidValue {
            what,
            given: shorten(given).into_owned(),
            why: "nothing of it is visible".to_owned(),
        }),
        text => Ok(text.to_owned()),
    }
}

/// Returns the usual form of a full-width letter, digit or sign.
fn usual_width(letter: char) -> char {
    match letter {
        '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        letter => letter,
    }
}

fn is_invisible(letter: char) -> bool {
    let code = u32::from(letter);
    let at = INVISIBLE.partition_point(|(_, last)| *last < code);
    INVISIBLE.get(at).is_some_and(|(first, _)| *first <= code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_what_is_visible_of_it() {
        assert_eq!(tag(" c\u{200B}i\u{202E}\u{E0041} ").unwrap(), "ci");
        assert_eq!(tag("näher 🐛").unwrap(), "näher 🐛");
        assert_eq!(tag("\u{3000}Ｃｉ－１").unwrap(), "Ci-1");
        assert!(tag("\u{FEFF} \u{E000}").is_err() && title(" \n").is_err());
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
