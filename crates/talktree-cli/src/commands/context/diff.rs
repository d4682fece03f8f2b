//! The difference of two texts by lines, in unified form.

use std::io;
use std::time::Duration;

use anstyle::Style;
use similar::{ChangeTag, TextDiff};

use crate::output::Output;
use crate::style;

/// After this long the difference need no longer be the shortest one. Two texts of many lines that have none in common
/// would take minutes.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the hunks of the difference, without a header; empty if the texts are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    // Only a line feed ends a line here, so that a carriage return that came or went is a change of its line.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        text += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            text.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            text += change.value();
            if !change.value().ends_with('\n') {
                text += "\n\\ No newline at end of text\n";
            }
        }
    }
    text
}

/// Writes what [`unified`] returned, in colour.
pub(super) fn write(out: &mut Output, diff: &str) -> io::Result<()> {
    // `lines` would drop a carriage return at the end of a line.
    for line in diff.split_terminator('\n') {
        out.line(&[(style(line), line)])?;
    }
    Ok(())
}

fn style(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => style::GOOD,
        Some(b'-') => style::BAD,
        Some(b'@') => style::COMPACTION,
        Some(b'\\') => style::FAINT,
        _ => style::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_difference_is_in_unified_form() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14";
        let new = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let diff = "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n\
                    @@ -11,4 +11,4 @@\n 11\n 12\n 13\n-14\n\\ No newline at end of text\n+14\n";
        assert_eq!(unified(old, new), diff);
        for (old, new, diff) in [
            ("", "", ""),
            ("a\n", "a\n", ""),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("", "a\n\nb", "@@ -0,0 +1,3 @@\n+a\n+\n+b\n\\ No newline at end of text\n"),
            ("a\nb\n", "a\r\nb\n", "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n"),
        ] {
            assert_eq!(unified(old, new), diff);
        }
    }

    #[test]
    fn a_large_difference_ends_soon() {
        let lines = |word| (0..100_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let diff = unified(&lines("old"), &lines("new"));
        assert_eq!(diff.lines().count(), 200_001);
    }
}
