//! The part of a message that shows why it was found.
//!
//! Words are compared as in the index. The snippet is the part with the greatest value of
//! matches; rare and long words count more, so `what did I say about Lisbon` shows Lisbon.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::chars::{is_attached, is_space_or_control, is_unigram};
use crate::exact;
use crate::finder::Finder;
use crate::query::{Phrase, Query, Term};

/// The maximum number of matches: more are not marked.
const MAX_MATCHES: usize = 1024;

/// A word is worth one point a letter, up to this many; a unigram is worth four.
const LONG_WORD_CHARS: usize = 8;
const UNIGRAM_VALUE: usize = 4;

/// The target length of a snippet, in characters.
pub const SNIPPET_CHARS: usize = 200;

/// How far an end of the snippet may move inward to a word boundary, in characters.
const SNAP_CHARS: usize = 24;

/// Marks a match in `Display`.
const MARK: &str = "**";

/// Marks omitted text.
const ELLIPSIS: char = '…';

/// Joins several emoji into one.
const ZERO_WIDTH_JOINER: char = '\u{200D}';

/// A part of a message, with the positions of the matches.
///
/// On one line: any sequence of white space and control characters becomes one blank. `Display` writes matches as
/// `**match**`; marks that the text itself has there are not doubled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// The text, with `…` at an end where the message continues.
    pub text: String,
    /// The matches, as byte ranges of `text`: ascending and disjoint.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    /// Returns the text in pieces, each with whether it is a match, so that a caller can escape each piece.
    ///
    /// ```
    /// # use talktree_text::Snippet;
    /// let snippet = Snippet { text: "a red fox".into(), marks: vec![2..5] };
    /// let pieces: Vec<_> = snippet.pieces().collect();
    /// assert_eq!(pieces, [("a ", false), ("red", true), (" fox", false)]);
    /// ```
    pub fn pieces(&self) -> impl Iterator<Item = (&str, bool)> {
        let ends = self.marks.iter().flat_map(|mark| [(mark.start, false), (mark.end, true)]);
        let mut from = 0;
        ends.chain([(self.text.len(), false)])
            .map(move |(to, is_match)| {
                // The fields are public: a range outside the text is ignored.
                let piece = self.text.get(from..to).unwrap_or_default();
                from = if self.text.is_char_boundary(to) { to.max(from) } else { from };
                (piece, is_match)
            })
            .filter(|(piece, _)| !piece.is_empty())
    }

    /// Returns the text with `open` and `close` around each match. Nothing is escaped.
    ///
    /// ```
    /// # use talktree_text::Snippet;
    /// let snippet = Snippet { text: "a red fox".into(), marks: vec![2..5] };
    /// assert_eq!(snippet.marked("<b>", "</b>"), "a <b>red</b> fox");
    /// assert_eq!(snippet.to_string(), "a **red** fox");
    /// ```
    #[must_use]
    pub fn marked(&self, open: &str, close: &str) -> String {
        let mut out =
            String::with_capacity(self.text.len() + self.marks.len() * (open.len() + close.len()));
        for (piece, is_match) in self.pieces() {
            if is_match {
                out.extend([open, piece, close]);
            } else {
                out.push_str(piece);
            }
        }
        out
    }
}

impl Serialize for Snippet {
    /// Serializes the text with matches marked as in `Display`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = self.pieces().peekable();
        let mut before = "";
        while let Some((piece, is_match)) = pieces.next() {
            let after = pieces.peek().map_or("", |(next, _)| *next);
            // The text may be Markdown with its own marks at the same place.
            let open = if is_match && !before.ends_with(MARK) { MARK } else { "" };
            let close = if is_match && !after.starts_with(MARK) { MARK } else { "" };
            write!(f, "{open}{piece}{close}")?;
            before = piece;
        }
        Ok(())
    }
}

/// A match of a target, with its value for the snippet: greater for long phrases and for targets that are rare in the text.
struct Match {
    range: Range<usize>,
    target: usize,
    value: usize,
}

/// Returns the part of `text`, about `width` characters long, with the greatest value of matches of a query; the start of the text
/// if nothing matches.
#[must_use]
pub fn snippet(text: &str, query: &Query, width: usize) -> Snippet {
    let matches = matches(text, query);
    let shown = &matches[best_window(text, &matches, width)];
    let core = match (shown.first(), shown.last()) {
        (Some(first), Some(last)) => first.range.start..last.range.end,
        _ => 0..0,
    };
    // Matches inside the context are marked, too.
    write(text, &with_context(text, core, width), &matches)
}

/// Returns the matches of a query in a text, by their start. The pieces of a term match where the whole term does not.
fn matches(text: &str, query: &Query) -> Vec<Match> {
    let led: Vec<Term> = query.filters.exact.iter().filter_map(|run| exact::words(run)).collect();
    let mut finder = Finder::default();
    // The value of each target, and the target that it is a piece of.
    let mut targets: Vec<(usize, Option<usize>)> = Vec::new();
    for term in query.clauses.iter().flatten().filter(|term| !led.contains(term)) {
        let phrases = term.phrases();
        let whole = finder.add(&phrases);
        targets.push((value_of(&phrases), None));
        for piece in term.pieces() {
            let phrases = piece.phrases();
            finder.add(&phrases);
            targets.push((value_of(&phrases), Some(whole)));
        }
    }
    let found = finder.find(text).0;
    let mut counts = vec![0_usize; targets.len() + query.filters.exact.len()];
    found.iter().for_each(|found| counts[found.target] += 1);
    let mut matches: Vec<Match> = found
        .into_iter()
        .filter(|found| targets[found.target].1.is_none_or(|whole| counts[whole] == 0))
        .take(MAX_MATCHES)
        .map(|found| Match {
            range: found.range,
            target: found.target,
            value: targets[found.target].0,
        })
        .collect();
    for (number, run) in query.filters.exact.iter().enumerate() {
        let target = targets.len() + number;
        for (start, run) in text.match_indices(run.as_str()).take(MAX_MATCHES) {
            counts[target] += 1;
            let value = run.chars().count().max(UNIGRAM_VALUE);
            matches.push(Match { range: start..start + run.len(), target, value });
        }
    }
    for found in &mut matches {
        found.value = found.value * 16 / (1 + counts[found.target].max(1).ilog2() as usize);
    }
    matches.sort_by_key(|found| (found.range.start, found.range.end));
    matches
}

fn value_of(phrases: &[Phrase]) -> usize {
    let words = phrases.first().into_iter().flat_map(|phrase| &phrase.words);
    let value = |word: &String| match word.chars().next() {
        Some(first) if is_unigram(first) => UNIGRAM_VALUE,
        _ => word.chars().take(LONG_WORD_CHARS).count(),
    };
    words.map(value).sum()
}

/// Returns the range of matches that fit into `width` characters and have the greatest total value; the first of
/// equals.
fn best_window(text: &str, matches: &[Match], width: usize) -> Range<usize> {
    let starts: Vec<usize> = char_offsets(text, matches.iter().map(|found| found.range.start));
    let mut present =
        vec![0_usize; matches.iter().map(|found| found.target + 1).max().unwrap_or(0)];
    let (mut best, mut best_value) = (0..0, 0);
    let (mut from, mut value) = (0, 0);
    for (to, found) in matches.iter().enumerate() {
        value += if present[found.target] == 0 { found.value } else { 0 };
        present[found.target] += 1;
        let end = starts[to] + text[found.range.clone()].chars().take(width).count();
        while from < to && end - starts[from] > width {
            present[matches[from].target] -= 1;
            value -= if present[matches[from].target] == 0 { matches[from].value } else { 0 };
            from += 1;
        }
        if value > best_value {
            (best, best_value) = (from..to + 1, value);
        }
    }
    best
}

/// Converts ascending byte offsets to character offsets.
fn char_offsets(text: &str, offsets: impl Iterator<Item = usize>) -> Vec<usize> {
    let count = |(bytes, chars): &mut (usize, usize), offset: usize| {
        *chars += text[*bytes..offset].chars().count();
        *bytes = offset;
        Some(*chars)
    };
    offsets.scan((0, 0), count).collect()
}

/// Returns `core` with context: a third of the remaining width before it, the rest after it, with both ends between
/// words.
fn with_context(text: &str, core: Range<usize>, width: usize) -> Range<usize> {
    let core_end = forward(text, core.start, width).min(core.end);
    let room = width - text[core.start..core_end].chars().count().min(width);
    let mut start = back(text, core.start, room / 3);
    let used = text[start..core.start].chars().count();
    let mut end = forward(text, core_end, room - used.min(room));
    // Width that is not used after the match is added before it.
    let left = width.saturating_sub(text[start..end].chars().count());
    start = back(text, start, left);
    let mut starts =
        text[start..core.start].char_indices().map(|(at, _)| start + at).take(SNAP_CHARS);
    let start = starts.find(|&at| is_boundary(text, at)).unwrap_or(start);
    if !is_boundary(text, end) {
        let ends = text[core_end..end].char_indices().rev().map(|(at, _)| core_end + at);
        end = ends.take(SNAP_CHARS).find(|&at| is_boundary(text, at)).unwrap_or(end);
    }
    start..end.max(core_end)
}

/// Returns the offset `count` characters after `at`, or the end.
fn forward(text: &str, at: usize, count: usize) -> usize {
    text[at..].char_indices().nth(count).map_or(text.len(), |(offset, _)| at + offset)
}

/// Returns the offset `count` characters before `at`, or 0.
fn back(text: &str, at: usize, count: usize) -> usize {
    text[..at].char_indices().rev().take(count).last().map_or(at, |(offset, _)| offset)
}

/// Returns whether the text may be cut at `at`: not inside a word or before a combining character.
fn is_boundary(text: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (text[..at].chars().next_back(), text[at..].chars().next())
    else {
        return true;
    };
    let divides = |c: char| is_unigram(c) || is_space_or_control(c);
    !is_combining(after) && before != ZERO_WIDTH_JOINER && (divides(before) || divides(after))
}

/// Returns whether `c` belongs to the character before it.
fn is_combining(c: char) -> bool {
    is_attached(c) || matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Returns `shown` on one line, with the matches in it marked.
fn write(text: &str, shown: &Range<usize>, matches: &[Match]) -> Snippet {
    let mut snippet = Snippet::default();
    let out = &mut snippet.text;
    out.reserve(shown.len() + 2 * ELLIPSIS.len_utf8());
    if text[..shown.start].contains(|c| !is_space_or_control(c)) {
        out.push(ELLIPSIS);
    }
    let head = out.len();
    let mut marks = merged(text, matches, shown).into_iter().peekable();
    let mut open = None;
    let mut at = shown.start;
    for piece in text[shown.clone()].split(is_space_or_control) {
        let (start, end) = (at, at + piece.len());
        at = end + text[end..].chars().next().map_or(0, char::len_utf8);
        if piece.is_empty() {
            continue;
        }
        if out.len() > head {
            out.push(' ');
        }
        // A match starts and ends inside a piece, and may span several.
        let base = out.len();
        while let Some(mark) = marks.peek().filter(|mark| mark.start < end) {
            let from = *open.get_or_insert(base + mark.start.max(start) - start);
            if mark.end > end {
                break;
            }
            snippet.marks.push(from..base + mark.end - start);
            open = None;
            marks.next();
        }
        out.push_str(piece);
    }
    if text[shown.end..].contains(|c| !is_space_or_control(c)) {
        out.push(ELLIPSIS);
    }
    snippet
}

/// Returns the matches inside `shown`, extended by the characters that combine with their last one; adjacent ones are
/// joined.
fn merged(text: &str, matches: &[Match], shown: &Range<usize>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for found in matches
        .iter()
        .filter(|found| found.range.start < shown.end && found.range.end > shown.start)
    {
        let (start, end) = (found.range.start.max(shown.start), found.range.end.min(shown.end));
        let end = text[end..shown.end]
            .char_indices()
            .find(|&(_, c)| !is_combining(c))
            .map_or(shown.end, |(at, _)| end + at);
        match merged.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => merged.push(start..end),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Query;

    fn snippet(text: &str, query: &str, width: usize) -> Snippet {
        super::snippet(text, &Query::parse(query), width)
    }

    /// Asserts the snippet of `text`, 30 characters wide.
    #[track_caller]
    fn shows(query: &str, text: &str, expected: &str) {
        assert_eq!(snippet(text, query, 30).to_string(), expected, "{query}");
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        shows("fox", "a red fox", "a red **fox**");
        shows("fox", " \n a\t\u{1b} fox\0 \n", "a **fox**");
        shows("fox", "", "");
    }

    /// A match in bold text used to be shown as `****fox****`.
    #[test]
    fn marks_of_the_text_are_not_doubled() {
        shows("fox", "a **fox**", "a **fox**");
        shows("red fox", "a **red fox** *fox*", "a **red** **fox** ***fox***");
        shows("red", "**red fox**", "**red** fox**");
        let html = snippet("**fox**", "fox", 30).marked("<b>", "</b>");
        assert_eq!(html, "**<b>fox</b>**");
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        shows("seven", text, "…six **seven** eight nine ten…");
        shows("two", text, "one **two** three four five six…");
        shows("twelve", text, "…eight nine ten eleven **twelve**");
        shows("nothing", text, "one two three four five six…");
    }

    #[test]
    fn the_part_with_most_of_the_query_is_shown() {
        let far = "x ".repeat(50);
        shows(
            "red fox",
            &format!("red red red {far} red fox {far} fox"),
            "…x x x **red** **fox** x x x x x x x x…",
        );
        shows(
            "the lisbon",
            &format!("the the the the {far} Lisbon"),
            &format!("…{}**Lisbon**", "x ".repeat(11)),
        );
    }

    #[test]
    fn a_phrase_is_one_mark() {
        shows("\"red fox\"", "a red\n  fox, red", "a **red fox**, red");
        shows("北京", "我在北京，北边", "我在**北京**，北边");
        shows("气怎 天气怎么样", "今天天气怎么好", "今天**天气怎么**好");
    }

    #[test]
    fn combining_characters_are_not_cut_off() {
        shows("が", "か\u{3099}x", "**か\u{3099}**x");
        shows("👍", "👍🏽 ok", "**👍🏽** ok");
        shows("กี่", "กี่ ok", "**กี่** ok");
        shows("နေ့", "နေ့ ok", "**နေ့** ok");
        shows("नमस्", "नमस् ok", "**नमस्** ok");
    }

    #[test]
    fn a_word_wider_than_the_snippet_is_cut_anywhere() {
        let text = format!("{} fox {}", "a".repeat(1000), "b".repeat(1000));
        let found = snippet(&text, "fox", 60);
        assert_eq!(found.to_string(), format!("…**fox** {}…", "b".repeat(37)));
        shows("none", &"é".repeat(1000), &format!("{}…", "é".repeat(30)));
    }

    #[test]
    fn a_match_wider_than_the_snippet_is_cut() {
        let text = format!("a{}b c", "-".repeat(100));
        shows("\"a b\"", &text, &format!("**a{}**…", "-".repeat(29)));
    }

    #[test]
    fn ranges_outside_the_text_are_ignored() {
        let snippet = Snippet { text: "é北".into(), marks: vec![1..2, 4..99, 0..2] };
        assert_eq!(snippet.pieces().map(|(piece, _)| piece).collect::<String>(), "é北");
    }

    #[test]
    fn a_message_of_ten_megabytes_has_a_snippet() {
        let text = "lorem ipsum dolor 北京 sit amet ".repeat(300_000) + "needle";
        assert!(snippet(&text, "needle", SNIPPET_CHARS).to_string().ends_with("**needle**"));
        let query = "lorem ipsum 北京 a* \"dolor sit\"";
        assert!(!snippet(&text, query, SNIPPET_CHARS).marks.is_empty());
    }
}
