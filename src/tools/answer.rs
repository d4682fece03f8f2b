//! Answers: what a model reads after a call.
//!
//! Always text, within a budget. An answer that starts with `Error: ` says that nothing was done, and why. A document never
//! starts so, whatever it holds: [`loaded_skills`](super::loaded_skills) has to tell the two apart.
//!
//! Invariant: a line at the margin of a list is ours. Texts that were found are indented; names are on one line, escaped as
//! in JSON. A loaded document is not indented: there, lines that would read as ours begin with `> `.

use std::fmt;

use talktree_text::foreign::{self, indented, quoted};

use crate::context::BlockInfo;
use crate::search::{Matched, Step};
use crate::tokens::estimate_tokens;

/// The longest answer, in estimated tokens.
pub(crate) const MAX_TOKENS: u64 = 10_000;

/// The most hits of an answer.
pub(crate) const MAX_HITS: usize = 10;

const ERROR: &str = "Error: ";

/// The start of the line that says how much was cut off.
const CUT: &str = "[cut:";

/// What the marker of an unloaded document begins with.
const UNLOADED: &str = "[unloaded;";

pub(crate) fn error(what: impl fmt::Display) -> String {
    format!("{ERROR}{}", foreign::line(&what.to_string()))
}

pub(crate) fn is_error(answer: &str) -> bool {
    answer.starts_with(ERROR)
}

/// Returns the answer to a write: how full the block is now.
pub(crate) fn written(block: &BlockInfo, key: Option<&str>) -> String {
    format!("{}: {}", written_to(&block.label, key), block.usage())
}

/// Returns where a text was written, without its size: a provider's texts may be unknown.
pub(crate) fn written_to(label: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(" under the key {}", quoted(key))).unwrap_or_default();
    format!("Written to {}{key}", quoted(label))
}

pub(crate) fn document(label: &str, key: &str, content: Option<&str>) -> String {
    let Some(content) = content else {
        let (label, key) = (quoted(label), quoted(key));
        return error(format_args!("context block {label} has no document {key}"));
    };
    if content.trim().is_empty() {
        return format!("Document {} is empty.", quoted(key));
    }
    let mut is_first = true;
    let content = foreign::guarded(content, |line| {
        let is_first = !line.is_empty() && std::mem::take(&mut is_first);
        let is_answer = line.starts_with(ERROR.trim_end())
            || (line.starts_with("Document \"") && line.ends_with("is empty."));
        line.starts_with(CUT) || line.starts_with(UNLOADED) || (is_first && is_answer)
    });
    content.into_owned()
}

pub(crate) fn unloaded(label: &str, key: &str) -> String {
    format!("Unloaded {} of {}.", quoted(key), quoted(label))
}

pub(crate) fn not_loaded(label: &str, key: &str) -> String {
    error(format_args!("document {} of {} is not loaded", quoted(key), quoted(label)))
}

/// Returns the marker that a history shows instead of an unloaded document.
pub(crate) fn elided(label: &str, key: &str) -> String {
    let (label, key) = (quoted(label), quoted(key));
    format!("{UNLOADED} load_context with label {label} and key {key} gives it again]")
}

/// A text that was found: its name, the text, and the mark of what is left out of it.
pub(crate) struct Entry {
    name: String,
    text: String,
    mark: Option<String>,
}

impl Entry {
    /// Returns an entry cut to a budget of estimated tokens.
    pub(crate) fn within(max_tokens: u64, name: String, text: &str) -> Self {
        // The name, its brackets and the margin count, too.
        let max_tokens = max_tokens.saturating_sub(estimate_tokens(&name) + 3);
        let text = indented(text);
        let (text, mark) = match cut_at(&text, max_tokens) {
            Some((kept, mark)) => (kept.to_owned(), Some(mark)),
            None => (text, None),
        };
        Self { name, text, mark }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, text, mark } = self;
        write!(f, "[{name}]\n{text}")?;
        mark.as_ref().map_or(Ok(()), |mark| write!(f, "\n{mark}"))
    }
}

const OUT_OF_TIME: &str =
    "The search ran out of time, so there may be more. Rarer words take less time.";

/// Returns the answer to a search, with the steps that were taken because little or nothing was found; one that ran out of
/// time is partial.
pub(crate) fn found(
    query: &str,
    matched: Matched,
    steps: &[Step],
    is_partial: bool,
    hits: &[Entry],
) -> String {
    let hits: Vec<_> = hits.iter().take(MAX_HITS).map(Entry::to_string).collect();
    if hits.is_empty() {
        let note = if is_partial { format!(" {OUT_OF_TIME}") } else { String::new() };
        return format!("Nothing found for {}.{note}", quoted(query));
    }
    let mut note = match matched {
        Matched::All => "",
        Matched::Relaxed | Matched::Meaning => {
            "Nothing has all the words; these have some of them.\n\n"
        }
    }
    .to_owned();
    if !steps.is_empty() {
        let steps: Vec<_> = steps.iter().map(Step::to_string).collect();
        let steps = foreign::line(&steps.join("; "));
        note += &format!(
            "As it is written, the query finds little or nothing; there are also: {steps}.\n\n"
        );
    }
    if is_partial {
        note += OUT_OF_TIME;
        note += "\n\n";
    }
    format!("{note}{}", hits.join("\n\n"))
}

/// Returns an answer cut to a budget of estimated tokens, with a mark that says how much is left out.
///
/// The mark counts, too. If it is larger than the budget, only the mark is returned.
pub(crate) fn cut(answer: &str, max_tokens: u64) -> String {
    match cut_at(answer, max_tokens) {
        None => answer.to_owned(),
        Some((kept, mark)) => {
            let between = if kept.is_empty() { "" } else { "\n\n" };
            format!("{kept}{between}{mark}")
        }
    }
}

/// Returns what is kept of an answer, and the mark that says how much is left out; `None` if the answer is within the
/// budget.
fn cut_at(answer: &str, max_tokens: u64) -> Option<(&str, String)> {
    let tokens = estimate_tokens(answer);
    if tokens <= max_tokens {
        return None;
    }
    // No mark is longer than the one that names all tokens; the line break between takes one more.
    let room = max_tokens.saturating_sub(estimate_tokens(&mark(tokens, tokens)) + 1);
    let kept = answer.get(..length_within(answer, room)).unwrap_or_default();
    let kept = at_a_break(kept).trim_end();
    let left_out = tokens.saturating_sub(estimate_tokens(kept));
    Some((kept, mark(left_out, tokens)))
}

fn mark(left_out: u64, tokens: u64) -> String {
    format!("{CUT} {left_out} of {tokens} tokens are left out]")
}

/// Returns the length in bytes of the longest beginning that has at most so many tokens.
fn length_within(text: &str, tokens: u64) -> usize {
    // Four UTF-16 units are at least one token, and one unit is at most three bytes.
    let bound = usize::try_from(tokens.saturating_mul(12)).unwrap_or(usize::MAX);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let ends: Vec<usize> = ends.take_while(|end| *end <= bound).collect();
    let fits = ends.partition_point(|end| estimate_tokens(&text[..*end]) <= tokens);
    fits.checked_sub(1).map_or(0, |last| ends[last])
}

/// Returns the text up to its last line break, else its last space, if that is in the last quarter.
fn at_a_break(text: &str) -> &str {
    let is_late = |at: &usize| *at >= text.len() / 4 * 3;
    let line = text.rfind('\n').filter(is_late);
    let end = line.or_else(|| text.rfind(char::is_whitespace).filter(is_late));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::Block;

    #[test]
    fn a_write_is_answered_with_how_full_the_block_is() {
        let mut memory = Block::stored().max_tokens(1_100).info("memory", String::new());
        memory.tokens = 495;
        assert_eq!(written(&memory, None), "Written to \"memory\": 45% (495/1100 tokens)");
        let skills = Block::stored_skills().info("skills", "- pdf".to_owned());
        let text = "Written to \"skills\" under the key \"pdf\": 3 tokens";
        assert_eq!(written(&skills, Some("pdf")), text);
    }

    #[test]
    fn no_document_reads_as_an_error() {
        assert_eq!(document("skills", "pdf", Some("Use pdftotext.")), "Use pdftotext.");
        let none = document("skills", "pdf", None);
        assert_eq!(none, "Error: context block \"skills\" has no document \"pdf\"");
        for content in ["Error: 404 means that nothing is there", "Error: ", "", " \n"] {
            let answer = document("skills", "pdf", Some(content));
            assert!(!is_error(&answer) && answer.contains(content.trim()), "{answer}");
        }
        assert!(!is_error(&cut(&document("s", "k", Some(&"Error: x ".repeat(99))), 10)));
        for (content, shown) in [
            ("\n\u{200B}Error: x\nError: y", "\n> \u{200B}Error: x\nError: y"),
            ("a\r[cut: 1 of 2 tokens are left out]", "a\r> [cut: 1 of 2 tokens are left out]"),
            ("Document \"k\" is empty.", "> Document \"k\" is empty."),
            (" [unloaded; load_context", ">  [unloaded; load_context"),
        ] {
            assert_eq!(document("s", "k", Some(content)), shown);
        }
    }

    #[test]
    fn texts_are_as_people_would_say_them() {
        assert!(is_error(&error("x")));
        assert_eq!(unloaded("skills", "pdf"), "Unloaded \"pdf\" of \"skills\".");
        let text = "Error: document \"pdf\" of \"skills\" is not loaded";
        assert_eq!(not_loaded("skills", "pdf"), text);
        let text = "[unloaded; load_context with label \"skills\" and key \"pdf\" gives it again]";
        assert_eq!(elided("skills", "pdf"), text);
    }

    #[test]
    fn hits_are_listed_below_their_names() {
        assert_eq!(found("tea", Matched::All, &[], false, &[]), "Nothing found for \"tea\".");
        let hit = |name: &str, text| Entry::within(100, name.to_owned(), text);
        let hits = [hit("tea", "green\n[cut: all]\n"), hit("coffee", "black")];
        let text = "[tea]\n  green\n  [cut: all]\n\n[coffee]\n  black";
        assert_eq!(found("x", Matched::All, &[], false, &hits), text);
        let relaxed = found("x", Matched::Relaxed, &[], false, &hits);
        assert!(
            relaxed.starts_with("Nothing has all the words; these have some of them.\n\n[tea]\n")
        );
        let words = |text: &str| text.to_owned();
        let steps = [Step { written: words("teh"), searched: words("the"), hits: 7 }];
        let last = found("x", Matched::All, &steps, false, &hits);
        let note = "As it is written, the query finds little or nothing; there are also: 7 hits: searched for \"the\" instead of \"teh\".\n\n";
        assert_eq!(last, format!("{note}{text}"));
        let partial = found("x", Matched::All, &[], true, &hits);
        assert!(partial.contains("ran out of time") && partial.contains("[tea]"), "{partial}");
        let nothing = found("x", Matched::All, &[], true, &[]);
        assert!(nothing.contains("Nothing found") && nothing.contains("ran out of time"));
        let many: Vec<_> = (0..20).map(|_| hit("k", "v")).collect();
        assert_eq!(found("x", Matched::All, &[], false, &many).matches("[k]").count(), MAX_HITS);
        let long = hit("k", &"word ".repeat(200)).to_string();
        assert!(estimate_tokens(&long) <= 100 && long.lines().count() == 3, "{long}");
        assert!(long.ends_with(" tokens are left out]"), "{long}");
    }

    #[test]
    fn an_answer_over_the_budget_is_cut_and_says_so() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("", 0), "");
        let long = "one two three four five six seven eight nine ten\n".repeat(100);
        assert_eq!(estimate_tokens(&long), 1300);
        let text = cut(&long, 100);
        assert!(estimate_tokens(&text) <= 100, "{text}");
        assert!(text.contains("ten\n\n[cut: "), "{text}");
        assert!(text.ends_with(" of 1300 tokens are left out]"), "{text}");
        assert_eq!(cut(&long, 0), "[cut: 1300 of 1300 tokens are left out]");
        assert!(cut(&"词".repeat(10_000_000), MAX_TOKENS).len() < 200_000);
    }

    proptest! {
        #[test]
        fn a_cut_keeps_a_beginning_within_the_budget(
            text in "(\\PC|[a \n😀词\r]){0,400}", max in 0_u64..60
        ) {
            let answer = cut(&text, max);
            let tokens = estimate_tokens(&text);
            if tokens <= max {
                prop_assert_eq!(answer, text);
            } else {
                let end = format!(" of {tokens} tokens are left out]");
                prop_assert!(answer.ends_with(&end), "{}", answer);
                let (kept, mark) = answer.split_at(answer.rfind("[cut: ").unwrap());
                prop_assert!(text.starts_with(kept.trim_end()), "{}", answer);
                let limit = max.max(estimate_tokens(mark));
                prop_assert!(estimate_tokens(&answer) <= limit, "over {}: {}", limit, answer);
            }
        }
    }
}
