//! Labels of blocks and keys of documents: what may be one,

use talktree_text::foreign::breaks_line;

use crate::error::{Error, Result};
use crate::id::shorten;

/// The longest label, in characters.
pub(crate) const MAX_LABEL_CHARS: usize = 80;

/// Checks that a block may have this label.
///
/// The prompt shows it in one line, and the model has to repeat it exactly.
pub(crate) fn check_label(label: &str) -> Result<()> {
    let chars = label.chars().count();
    let why = if label.trim().is_empty() {
        "it is blank".to_owned()
    } else if chars > MAX_LABEL_CHARS {
        format!("it has {chars} characters, over the limit of {MAX_LABEL_CHARS}")
    } else if label.contains(breaks_line) {
        "it has a line break or a control character".to_owned()
    } else if label.trim() != label {
        "it begins or ends with white space".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::InvalidValue { what: "context label", given: shorten(label).into_owned(), why })
}

/// Checks that a document may have this key: the prompt lists it in one line.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let why = if key.trim().is_empty() {
        "it is blank"
    } else if key.contains(breaks_line) {
        "it has a line break or a control character"
    } else {
        return Ok(());
    };
    let (what, given) = ("document key", shorten(key).into_owned());
    Err(Error::InvalidValue { what, given, why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_one_line_of_at_most_80_characters() {
        for label in
            ["memory", "memory_s", "_system_prompt", "记忆", "what I know", &"é".repeat(80)]
        {
            check_label(label).unwrap_or_else(|error| panic!("{error}"));
        }
        let cases = [
            ("", "it is blank"),
            (" \u{3000}", "it is blank"),
            ("a\nb", "it has a line break or a control character"),
            ("a\u{2028}b", "it has a line break or a control character"),
            ("a\0", "it has a line break or a control character"),
            ("a\u{85}b", "it has a line break or a control character"),
            (" memory", "it begins or ends with white space"),
            (&"é".repeat(81), "it has 81 characters, over the limit of 80"),
        ];
        for (label, rule) in cases {
            let Err(Error::InvalidValue { what: "context label", why, .. }) = check_label(label)
            else {
                panic!("{label:?} is refused");
            };
            assert_eq!(why, rule, "{label:?}");
        }
    }
}
