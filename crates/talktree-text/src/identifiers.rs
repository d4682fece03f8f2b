//! Identifiers and their parts: `HttpRequest` is also `http request`.
//!
//! The index has an identifier as one word, and after the text the parts of its identifiers, those of each once, as a *run*: words in a
//! row. [`BOUNDARY`] before each run keeps phrases from reaching from one run to another.
//!
//! A query for `HttpRequest` also finds the phrase `http request`, which is what `http_request` is in the index.

use std::collections::HashSet;
use std::iter::once;
use std::ops::Range;

use crate::token::{Token, normal_form, tokens};

/// The term before each run of parts in the index. Nobody types it.
pub(crate) const BOUNDARY: char = '\u{E000}';

/// Longer words, and words with more digits, are hashes, ids or encoded data.
const MAX_CHARS: usize = 40;
const MAX_DIGITS: usize = 4;
/// The maximum number of parts of an identifier.
pub(crate) const MAX_PARTS: usize = 8;
/// Twice the least mean length of a part.
const TWICE_MEAN_CHARS: usize = 5;

/// Returns the run of parts of a word in a text, as ranges of the text; none if it has no parts.
pub(crate) fn run(text: &str, token: &Token<'_>) -> Vec<Range<usize>> {
    let (word, start) = (token.text(), token.range().start);
    // Most words have no parts.
    let bytes = word.as_bytes();
    let may_have = bytes.len() > 1
        && (bytes[1..].iter().any(u8::is_ascii_uppercase) || matches!(bytes[0], b'v' | b'V'));
    if !may_have || !word.is_ascii() {
        return Vec::new();
    }
    if let Some(numbers) = version(text, token.range()) {
        return numbers;
    }
    let mut run: Vec<_> =
        parts(word).iter().map(|part| start + part.start..start + part.end).collect();
    // `args` of `parseArgs2`.
    for at in 0..run.len() {
        let part = run[at].clone();
        let letters = text[part.clone()].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if letters > 1 && letters < part.len() {
            run.push(part.start..part.start + letters);
        }
    }
    run
}

/// Returns the parts of a word of ASCII; none if it has only one.
pub(crate) fn parts(word: &str) -> Vec<Range<usize>> {
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if bytes.len() > MAX_CHARS
        || digits > MAX_DIGITS
        || !bytes.iter().all(u8::is_ascii_alphanumeric)
    {
        return Vec::new();
    }
    let is = |at: usize, test: fn(&u8) -> bool| bytes.get(at).is_some_and(test);
    let starts = |at: &usize| {
        let (at, before) = (*at, *at - 1);
        let follows_word = is(before, u8::is_ascii_lowercase) || is(before, u8::is_ascii_digit);
        // The last capital of `HTTPRequest` begins a part, that of `URLs` does not.
        let ends_acronym = is(before, u8::is_ascii_uppercase)
            && is(at + 1, u8::is_ascii_lowercase)
            && is(at + 2, u8::is_ascii_lowercase);
        is(at, u8::is_ascii_uppercase)
            && (follows_word && is(at + 1, u8::is_ascii_alphabetic) || ends_acronym)
    };
    // Encoded data has digits before letters again and again.
    let goes_on = |pair: &&[u8]| pair[0].is_ascii_digit() && pair[1].is_ascii_lowercase();
    if bytes.windows(2).filter(goes_on).count() > 1 {
        return Vec::new();
    }
    let inner: Vec<usize> = (1..bytes.len()).filter(starts).collect();
    let count = inner.len() + 1;
    if inner.is_empty() || count > MAX_PARTS || 2 * bytes.len() < TWICE_MEAN_CHARS * count {
        return Vec::new();
    }
    let ends = inner.iter().copied().chain(once(bytes.len()));
    let starts = once(0).chain(inner.iter().copied());
    let parts: Vec<_> = starts.zip(ends).map(|(start, end)| start..end).collect();
    let letters = parts.iter().filter(|part| part.len() == 1).count();
    if letters > 1 { Vec::new() } else { parts }
}

/// Returns the numbers of a version: `v0.14.2` has those of `0.14.2`.
fn version(text: &str, word: Range<usize>) -> Option<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_v = matches!(bytes[word.start], b'v' | b'V') && word.len() > 1;
    if !is_v || !(word.start + 1..word.end).all(is_digit) {
        return None;
    }
    let mut numbers: Vec<_> = once(word.start + 1..word.end).collect();
    while let Some(last) = numbers.last()
        && numbers.len() < MAX_PARTS
        && bytes.get(last.end) == Some(&b'.')
        && is_digit(last.end + 1)
    {
        let start = last.end + 1;
        let is_alnum = |at: &usize| bytes[*at].is_ascii_alphanumeric();
        let end = (start..bytes.len()).find(|at| !is_alnum(at)).unwrap_or(bytes.len());
        numbers.push(start..end);
    }
    (numbers.len() > 1).then_some(numbers)
}

/// Returns other spellings of the words of a term, each a phrase: `Http Request` of `HttpRequest`, `httprequest` of
/// `http_request`, `RTX 3060` of `RTX3060`, `0 14 2` of `v0.14.2`. `written` is what was typed.
pub(crate) fn spellings(tokens: &[String], written: &str) -> Vec<String> {
    let mut found = Vec::new();
    let split = |token: &String| -> String {
        let parts = parts(token);
        match parts.is_empty() {
            true => token.clone(),
            false => parts.into_iter().map(|part| &token[part]).collect::<Vec<_>>().join(" "),
        }
    };
    let words: Vec<String> = tokens.iter().map(split).collect();
    if words != tokens {
        found.push(words.join(" "));
    }
    if let [token] = tokens {
        let letters = token.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = token.len() - letters.len();
        let is_model = (1..=MAX_DIGITS).contains(&digits)
            && letters.len() > 1
            && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_model && words == tokens {
            found.push(format!("{letters} {}", &token[letters.len()..]));
        }
    } else if is_snake(written) && written.len() <= MAX_CHARS {
        found.push(tokens.concat());
    } else if let Some((first, rest)) = tokens.split_first()
        && let Some(start) = written.find(first.as_str()).filter(|_| first.is_ascii())
        && version(written, start..start + first.len()).is_some()
    {
        found.push([&first[1..], &rest.join(" ")].join(" "));
    }
    found
}

/// Returns whether a word has letters, digits and underscores only.
fn is_snake(written: &str) -> bool {
    written.contains('_')
        && written.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the terms of a text for the index, separated by blanks: its words, and after them the parts of its identifiers.
///
/// ```
/// let terms = talktree_text::terms("An HttpRequest failed, HttpRequest!");
/// assert_eq!(terms, "an httprequest failed httprequest \u{E000} http request");
/// ```
#[must_use]
pub fn terms(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = String::new();
    let mut seen = HashSet::new();
    for token in tokens(text) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&token.form());
        let run = run(text, &token);
        if let (Some(first), Some(end)) = (run.first(), run.iter().map(|part| part.end).max())
            && seen.insert(&text[first.start..end])
        {
            parts.extend([' ', BOUNDARY]);
            for part in run {
                parts.push(' ');
                parts.push_str(&normal_form(&text[part]));
            }
        }
    }
    out + &parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the parts of a word, joined with blanks.
    #[track_caller]
    fn splits(word: &str, expected: &str) {
        let found: Vec<_> = parts(word).into_iter().map(|part| &word[part]).collect();
        assert_eq!(found.join(" "), expected, "{word}");
    }

    /// Asserts the terms of a text, with `|` for the boundary.
    #[track_caller]
    fn indexed(text: &str, expected: &str) {
        assert_eq!(terms(text).replace(BOUNDARY, "|"), expected);
    }

    #[test]
    fn a_capital_begins_a_part() {
        splits("HttpRequest", "Http Request");
        splits("checkAutoCompaction", "check Auto Compaction");
        splits("HTTPRequest", "HTTP Request");
        splits("parseArgs2", "parse Args2");
        splits("S3Bucket", "S3 Bucket");
        splits("iPhone", "i Phone");
    }

    #[test]
    fn other_words_have_no_parts() {
        for word in [
            "word",
            "Word",
            "WORD",
            "URLs",
            "IDs",
            "sha256",
            "eBay",
            "aGVsbG8gd29y",
            "x2Y",
            "fooB",
            "größeB",
            "req011CVvAQm5gLufA1cDeHobKh",
        ] {
            splits(word, "");
        }
        splits(&"fooBar".repeat(7), "");
    }

    #[test]
    fn parts_follow_the_text_once_for_each_identifier() {
        indexed("plain text, user_by_id", "plain text user by id");
        indexed("HttpRequest and HttpRequest", "httprequest and httprequest | http request");
        indexed("a parseArgs2() b", "a parseargs2 b | parse args2 args");
        indexed("调用HttpRequest失败", "调 用 httprequest 失 败 | http request");
        indexed("GrößeBerechnen", "grosseberechnen");
        indexed("on v0.14.2, V2.1rc1 and v3", "on v0 14 2 v2 1rc1 and v3 | 0 14 2 | 2 1rc1");
        indexed("v1.2", "v1 2 | 1 2");
    }

    #[test]
    fn a_word_has_other_spellings() {
        let drawn = |written: &str| -> String {
            let split = written.split(|c: char| !c.is_ascii_alphanumeric());
            let tokens: Vec<_> = split.filter(|it| !it.is_empty()).map(str::to_owned).collect();
            spellings(&tokens, written).join(", ")
        };
        assert_eq!(drawn("HttpRequest"), "Http Request");
        assert_eq!(drawn("http_request"), "httprequest");
        assert_eq!(drawn("sessionManager.save()"), "session Manager save");
        assert_eq!(drawn("RTX3060"), "RTX 3060");
        assert_eq!(drawn("v0.14.2"), "0 14 2");
        for word in ["word", "user@host", "3.14", "sha1sum", "don't", "v3"] {
            assert_eq!(drawn(word), "", "{word}");
        }
    }
}
