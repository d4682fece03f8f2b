//! The nearest name: what an unknown name was probably meant to be.

use talktree_text::foreign::quoted;

use crate::id::shorten;

/// The most names that an answer lists.
const MAX_LISTED: usize = 20;

/// Returns the name that is most like the given one, if it is close enough. Case does not count.
pub(super) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // What a model gives may have any length.
    let given: Vec<char> = shorten(given).to_lowercase().chars().collect();
    let near = names.iter().filter_map(|name| {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let distance = distance(&given, &letters);
        let allowed = (given.len().max(letters.len()) * 2 / 5).max(1);
        (distance <= allowed && distance < letters.len()).then_some((distance, *name))
    });
    let near = near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name);
    // A key may end in a hash, which nobody types: the beginning is enough if only one name has it.
    let begun = || {
        let mut begun = names.iter().filter(|name| {
            let mut letters = name.chars().flat_map(char::to_lowercase);
            !given.is_empty() && given.iter().all(|letter| letters.next() == Some(*letter))
        });
        begun.next().filter(|_| begun.next().is_none()).copied()
    };
    near.or_else(begun)
}

/// Returns `; did you mean "name"?`, or nothing if no name is near.
pub(super) fn suggestion(given: &str, names: &[&str]) -> String {
    nearest(given, names)
        .map(|name| format!("; did you mean {}?", quoted(name)))
        .unwrap_or_default()
}

/// Returns the names with quotes and commas; of many only the first.
pub(super) fn list(names: &[&str]) -> String {
    let shown = names.iter().take(MAX_LISTED).map(|name| quoted(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the number of letters to insert, remove or replace to make one of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        // The cells to the upper left and to the left.
        let (mut corner, mut left) = (i, i + 1);
        for (cell, to) in row.iter_mut().skip(1).zip(b) {
            let replaced = corner + usize::from(from != to);
            corner = *cell;
            left = replaced.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_letters() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("memry", "memory", 1),
        ];
        for (a, b, letters) in cases {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(distance(&chars(a), &chars(b)), letters, "{a} {b}");
        }
    }

    #[test]
    fn a_name_that_is_much_like_another_is_found() {
        let names = ["memory", "skills", "soul", "记忆"];
        let cases = [
            ("memry", Some("memory")),
            ("MEMORY", Some("memory")),
            ("skill", Some("skills")),
            ("souls", Some("soul")),
            ("记", Some("记忆")),
            ("knowledge", None),
            ("", None),
            ("x", None),
        ];
        for (given, name) in cases {
            assert_eq!(nearest(given, &names), name, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(10_000_000), &names), None);
        assert_eq!(suggestion("memry", &names), "; did you mean \"memory\"?");
        assert_eq!(suggestion("x", &names), "");
    }

    #[test]
    fn a_long_list_is_cut() {
        assert_eq!(list(&["a", "b"]), "\"a\", \"b\"");
        assert!(list(&["a"; 25]).ends_with("\"a\" and 5 more"));
    }
}
