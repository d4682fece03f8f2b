//! Exact runs of characters: `exact:"a ?? b"`.
//!
//! An engine has only words. So the texts that have the words of the run are found first, and each is kept if it has the run. A text
//! may continue before and after the run, so a word at its edge may be only a part of a word of the text.

use crate::chars::{is_attached, is_letter};
use crate::query::{MAX_TERM_TOKENS, Term};
use crate::token::{Token, tokens};

/// A shorter prefix matches too many words.
const MIN_PREFIX_CHARS: usize = 3;

/// Returns the words in a row that every text with this run has; `None` if it has no whole word.
///
/// The first word is left out if the run begins with it, and the last is a prefix if the run ends with it.
pub(crate) fn words(run: &str) -> Option<Term> {
    let mut found: Vec<_> = tokens(run)
        .skip_while(|token| may_begin_before(run, token))
        .take(MAX_TERM_TOKENS)
        .collect();
    let mut is_prefix = false;
    if let Some(last) = found.last() {
        let is_at_end = last.range().end == run.len();
        if may_end_after(run, last) {
            found.pop();
        } else {
            is_prefix = is_at_end && !last.is_unigram();
        }
    }
    let tokens: Vec<String> = found.iter().map(|token| token.text().to_owned()).collect();
    (!tokens.is_empty()).then(|| Term { tokens, is_prefix, is_quoted: true, ..Term::default() })
}

/// Returns whether a token of a run may be only the end of a token in the text.
fn may_begin_before(run: &str, token: &Token<'_>) -> bool {
    let before = &run[..token.range().start];
    let is_rest = before.chars().all(is_attached) && (!token.is_unigram() || !before.is_empty());
    // The dot of `.NET` is part of the word only after a blank.
    is_rest || has_sign(token) && before.chars().nth(1).is_none()
}

/// Returns whether the last token of a run may be part of a token in the text that begins in another way in the index.
fn may_end_after(run: &str, last: &Token<'_>) -> bool {
    let rest = &run[last.range().end..];
    // `C` may be `C++`.
    if last.text().len() == 1 && rest.chars().all(|c| matches!(c, '+' | '#')) || has_sign(last) {
        return true;
    }
    match (rest.is_empty(), last.is_unigram()) {
        // A mark may follow a kana or a letter of Thai. Han has none.
        (true, true) => !last
            .text()
            .starts_with(|c| matches!(c, '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')),
        (true, false) => {
            // An article or a nasal of a script without case may read otherwise in a longer word.
            last.form().chars().count() < MIN_PREFIX_CHARS
                || !last
                    .text()
                    .chars()
                    .all(|c| c.is_ascii() || c.is_lowercase() || c.is_uppercase())
        }
        (false, _) => false,
    }
}

fn has_sign(token: &Token<'_>) -> bool {
    token.text().contains(|c| c != '\u{AD}' && !is_letter(c) && c.is_ascii())
}

/// Returns whether a text has each of some runs.
#[must_use]
pub fn holds(text: &str, runs: &[String]) -> bool {
    runs.iter().all(|run| text.contains(run.as_str()))
}
