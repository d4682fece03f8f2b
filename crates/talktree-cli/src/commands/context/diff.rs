//! Differences of texts, coloured.

use std::io;

use anstyle::Style;

use crate::output::Output;
use crate::paint;

/// Writes a unified difference without a head.
pub(super) fn write(out: &mut Output, diff: &str) -> io::Result<()> {
    // Not `lines`, which would hide that a line ends otherwise now.
    for line in diff.split_terminator('\n') {
        out.line(&[(style(line), line)])?;
    }
    Ok(())
}

fn style(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => paint::GOOD,
        Some(b'-') => paint::BAD,
        Some(b'@') => paint::COMPACTION,
        Some(b'\\') => paint::FAINT,
        _ => paint::PLAIN,
    }
}

/// Returns the difference of nothing and a text, which has no version before it.
pub(super) fn added(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut diff = match lines.len() {
        0 => return String::new(),
        1 => "@@ -0,0 +1 @@\n".to_owned(),
        count => format!("@@ -0,0 +1,{count} @@\n"),
    };
    for line in lines {
        diff.push('+');
        diff.push_str(line);
    }
    if !text.ends_with('\n') {
        diff.push_str("\n\\ No newline at end of text\n");
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::added;

    #[test]
    fn a_first_text_is_all_added() {
        for (text, diff) in [
            ("", ""),
            ("a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("a\n\nb", "@@ -0,0 +1,3 @@\n+a\n+\n+b\n\\ No newline at end of text\n"),
        ] {
            assert_eq!(added(text), diff);
        }
    }
}
