//! Identifiers and their parts: `HttpRequest` is also `http request`.
//!
//! FTS5 makes `HttpRequest` one word, and the words of `http_request` three. So after a text the parts of its identifiers
//! are indexed, those of each identifier once, as a *run*: words in a row. [`BOUNDARY`] before each run keeps phrases from
//! reaching from one run to another. Ranking and snippets find the same runs in the original text.
//!
//! A query for `HttpRequest` also finds the phrase `http request`, which is what `http_request` is in the index.
//!
//! `C++`, `C#` and `.NET` are words of their own: each is indexed with a private-use character that stands for its sign.

use std::borrow::Cow;
use std::collections::HashSet;
use std::iter::once;
use std::ops::Range;

use crate::search::folding::is_left_out;
use crate::search::script::is_unigram;
use crate::search::tokenizer::{bits, is_token};
use crate::search::unicode_tables::{MARKS, contains};

/// The token before each run of parts in the index. Nobody types it.
pub(crate) const BOUNDARY: char = '\u{FDD00}';
/// What `++`, `#` and the dot of `.NET` are in the index.
const PLUS: char = '\u{FDD01}';
const SHARP: char = '\u{FDD02}';
const DOT: char = '\u{FDD03}';

/// Longer words, and words with more digits, are hashes, ids or encoded data.
const MAX_CHARS: usize = 40;
const MAX_DIGITS: usize = 4;
/// The maximum number of parts of an identifier.
pub(crate) const MAX_PARTS: usize = 8;
/// Twice the least mean length of a part.
const TWICE_MEAN_CHARS: usize = 5;

/// A part of a text that is not indexed as plain words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// A word with a sign, such as `C++`.
    Marked(Range<usize>),
    /// A run of parts of a word.
    Run(Vec<Range<usize>>),
}

/// Calls `take` with what is special in a text, in order.
pub(crate) fn each(text: &str, take: impl FnMut(Special)) {
    each_wanted(text, |_| true, take);
}

/// Calls `take` with what is special in a text, but for words of which no part begins with wanted bytes.
pub(crate) fn each_wanted(
    text: &str,
    wants: impl Fn(&[u8]) -> bool,
    mut take: impl FnMut(Special),
) {
    let bytes = text.as_bytes();
    let mut done = 0;
    hints(bytes, |at| {
        if at < done {
            return;
        }
        let is_alnum = |at: &usize| bytes[*at].is_ascii_alphanumeric();
        // The sign of `C++` or `.NET` is not part of the run of letters.
        let inside = match bytes[at] {
            b'+' | b'#' => at - 1,
            b'.' => at + 1,
            _ => at,
        };
        let start = (0..inside).rev().take_while(is_alnum).last().unwrap_or(inside);
        let end = (inside..bytes.len()).find(|at| !is_alnum(at)).unwrap_or(bytes.len());
        // The sign after a word that was seen is another hint for it.
        if end <= done {
            return;
        }
        done = end;
        if follows_letter(text, start) {
            return;
        }
        let may_begin = |at: usize| at == start || !bytes[at].is_ascii_lowercase();
        if !(start..end).any(|at| may_begin(at) && wants(&bytes[at..])) {
            return;
        }
        if let Some(marked) = marked_at(text, start) {
            take(Special::Marked(marked));
            return;
        }
        if text[end..].chars().next().is_some_and(is_inner) {
            return;
        }
        if let Some(parts) = version(text, start..end) {
            take(Special::Run(parts));
            return;
        }
        let parts: Vec<_> = parts(&text[start..end]);
        let shift = |part: &Range<usize>| start + part.start..start + part.end;
        if !parts.is_empty() {
            take(Special::Run(parts.iter().map(shift).collect()));
        }
        for part in parts.iter().map(shift) {
            let letters = text[part.clone()].trim_end_matches(|c: char| c.is_ascii_digit()).len();
            if letters > 1 && letters < part.len() {
                take(Special::Run(once(part.start..part.start + letters).collect()));
            }
        }
    });
}

/// Returns whether letters that are not ASCII are before a place.
fn follows_letter(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(is_inner)
}

/// Returns whether a character that is not ASCII continues the word beside it.
pub(crate) fn is_inner(c: char) -> bool {
    !c.is_ascii() && !is_unigram(c) && (is_token(c) || contains(MARKS, c) || is_left_out(c))
}

/// Calls `take` with the places where something special may be. Most words have none. The loop is free of branches, because
/// it reads every byte that is indexed.
fn hints(text: &[u8], mut take: impl FnMut(usize)) {
    let is_version = |v: u8, digit: u8| matches!(v, b'v' | b'V') & digit.is_ascii_digit();
    let is_dot_net = |dot: u8, n: u8| (dot == b'.') & matches!(n, b'n' | b'N');
    if let [first, second, ..] = *text
        && (is_version(first, second) || is_dot_net(first, second))
    {
        take(0);
    }
    let count = text.len().saturating_sub(2);
    let (before, here, after) =
        (&text[..count], &text[text.len().min(1)..], &text[text.len().min(2)..]);
    let mut flags = [0; 64];
    for (number, before) in before.chunks(64).enumerate() {
        let from = number * 64;
        flags.fill(0);
        let trios = before.iter().zip(&here[from..]).zip(&after[from..]);
        for (flag, ((&before, &here), &after)) in flags.iter_mut().zip(trios) {
            let follows_word = before.is_ascii_lowercase() | before.is_ascii_digit();
            let ends_acronym = before.is_ascii_uppercase() & after.is_ascii_lowercase();
            let is_part = here.is_ascii_uppercase() & (follows_word | ends_acronym);
            let starts = !before.is_ascii_alphanumeric()
                & (is_version(here, after) | is_dot_net(here, after));
            let is_sign = before.is_ascii_alphabetic()
                & ((here == b'#') | ((here == b'+') & (after == b'+')));
            *flag = u8::from(is_part | starts | is_sign);
        }
        let mut hints = bits(&flags);
        while hints != 0 {
            take(from + 1 + hints.trailing_zeros() as usize);
            hints &= hints - 1;
        }
    }
    // A sharp may be the last character.
    if let [.., letter, b'#'] = text
        && letter.is_ascii_alphabetic()
    {
        take(text.len() - 1);
    }
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

/// Returns the range of a word with a sign whose letters start at `start`.
pub(crate) fn marked_at(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let letter = byte(start).is_ascii_alphabetic() && !follows_letter(text, start);
    match (byte(start + 1), byte(start + 2)) {
        (b'#', next) if letter && !next.is_ascii_alphanumeric() && next != b'#' => {
            return Some(start..start + 2);
        }
        (b'+', b'+') if letter => {
            let next = byte(start + 3);
            return (!next.is_ascii_alphabetic() && next != b'+').then_some(start..start + 3);
        }
        _ => {}
    }
    let is_net = bytes.get(start..start + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"net"));
    let before = start.checked_sub(1).filter(|&at| is_net && byte(at) == b'.')?;
    let is_free = |c: Option<char>| {
        !c.is_some_and(|c| is_token(c) || is_inner(c) || matches!(c, '.' | '/' | '*'))
    };
    (is_free(text[..before].chars().next_back())
        && is_free(text[start + 3..].chars().next().filter(|c| *c != '.' && *c != '/')))
    .then_some(before..start + 3)
}

/// Returns a word with a sign as it is in the index; `None` for other words.
pub(crate) fn marked(word: &str) -> Option<String> {
    if let Some(letter) = word.strip_suffix("++") {
        return Some(format!("{letter}{PLUS}"));
    }
    if let Some(letter) = word.strip_suffix('#') {
        return Some(format!("{letter}{SHARP}"));
    }
    word.strip_prefix('.').map(|word| format!("{word}{DOT}"))
}

/// Returns a text with its marked words as in the index, and the parts of its identifiers after it. Borrowed if it has
/// none.
pub(crate) fn with_parts(text: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    let mut tail = String::new();
    let mut seen = HashSet::new();
    each(text, |special| match special {
        Special::Marked(range) => {
            let word = marked(&text[range.clone()]).unwrap_or_default();
            // `C++17` are two words.
            out.extend([&text[copied..range.start], &word, "\u{200B}"]);
            copied = range.end;
        }
        Special::Run(parts) => {
            let whole = parts.first().map_or(0, |first| first.start)
                ..parts.last().map_or(0, |last| last.end);
            if seen.insert(&text[whole]) {
                tail.extend([' ', BOUNDARY]);
                for part in parts {
                    tail.push(' ');
                    tail.push_str(&text[part]);
                }
            }
        }
    });
    if copied == 0 && tail.is_empty() {
        return Cow::Borrowed(text);
    }
    out.reserve(text.len() - copied + tail.len());
    out.push_str(&text[copied..]);
    out.push_str(&tail);
    Cow::Owned(out)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the parts of a word, joined with blanks.
    #[track_caller]
    fn splits(word: &str, expected: &str) {
        let found: Vec<_> = parts(word).into_iter().map(|part| &word[part]).collect();
        assert_eq!(found.join(" "), expected, "{word}");
    }

    /// Asserts the text in the index, with `|` for the boundary and the signs as they were.
    #[track_caller]
    fn indexed(text: &str, expected: &str) {
        let shown = with_parts(text)
            .replace(BOUNDARY, "|")
            .replace(PLUS, "<++>")
            .replace(SHARP, "<#>")
            .replace(DOT, "<.>")
            .replace('\u{200B}', "");
        assert_eq!(shown, expected);
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
        indexed("plain text, user_by_id", "plain text, user_by_id");
        indexed("HttpRequest and HttpRequest", "HttpRequest and HttpRequest | Http Request");
        indexed("a parseArgs2() b", "a parseArgs2() b | parse Args2 | Args");
        indexed("调用HttpRequest失败", "调用HttpRequest失败 | Http Request");
        indexed("GrößeBerechnen", "GrößeBerechnen");
        indexed("on v0.14.2, V2.1rc1 and v3", "on v0.14.2, V2.1rc1 and v3 | 0 14 2 | 2 1rc1");
        indexed("v1.2", "v1.2 | 1 2");
    }

    /// Each capital was a reason to look at the whole word again.
    #[test]
    fn a_long_word_is_read_once() {
        for start in ["", "ä", "a.", "C#"] {
            let text = format!("{start}{}", "aBcD1".repeat(1_000_000));
            assert!(!with_parts(&text).contains(BOUNDARY));
        }
    }

    #[test]
    fn signs_are_part_of_some_words() {
        indexed("C++ and C#, F#", "C<++> and C<#>, F<#>");
        indexed("C++17 (g++)", "C<++>17 (g<++>)");
        indexed(".NET, a .net app", "NET<.>, a net<.> app");
        indexed(
            "example.net ASP.NET a+b count++ #1 a##b a#b a++b x.net. ../.net/x",
            "example.net ASP.NET a+b count++ #1 a##b a#b a++b x.net. ../.net/x",
        );
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
