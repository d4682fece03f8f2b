//! Quoting of words for commands that users paste into a shell.

use crate::text::is_unsafe;

/// Returns the word, quoted if a shell would change it.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_unsafe) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // A line break in quotation marks would begin a line of its own in a message.
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_unsafe(c) => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, quoted) in [
            ("log", "log"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("a\nb's", r"$'a\u000ab\'s'"),
            ("博物馆", "博物馆"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
