//! Exact runs of characters: `exact:"a ?? b"`.
//!
//! The index has only words. So the messages that have the words of the run are found first, and each is kept if its text
//! has the run. A text may continue before and after the run, so a word at its edge may be only a part of a word of the text.

use super::folding::voiced_pair;
use super::identifiers::{is_inner, marked};
use super::query::{MAX_TERM_TOKENS, Term};
use super::tokenizer::{Token, tokens};

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
    let is_mark = voiced_pair('は', token.text().chars().next().unwrap_or_default()).is_some();
    let is_rest = before.chars().all(is_inner) && (!token.is_unigram() || is_mark);
    // The dot of `.NET` is part of the word only after a blank.
    is_rest || marked(token.text()).is_some() && before.chars().nth(1).is_none()
}

/// Returns whether the last token of a run may be part of a token in the text that begins in another way in the index.
fn may_end_after(run: &str, last: &Token<'_>) -> bool {
    let rest = &run[last.range().end..];
    let mut chars = last.text().chars();
    // `C` may be `C++`.
    if last.text().len() == 1 && rest.chars().all(|c| matches!(c, '+' | '#'))
        || marked(last.text()).is_some()
    {
        return true;
    }
    match (rest.is_empty(), chars.next()) {
        // A kana may have a voicing mark.
        (true, Some(first)) if last.is_unigram() => {
            ['\u{3099}', '\u{309A}'].iter().any(|mark| voiced_pair(first, *mark).is_some())
        }
        (true, _) => last.normalized().chars().count() < MIN_PREFIX_CHARS,
        (false, _) => false,
    }
}

/// Returns whether a text has each of some runs.
pub(crate) fn holds(text: &str, runs: &[String]) -> bool {
    runs.iter().all(|run| text.contains(run.as_str()))
}
