//! Keys for documents that are given none.
//!
//! A key begins with the letters and digits of the title, in any script. If these alone would not tell two titles apart, a
//! hash of the title follows. Keys are stored, so the rules must never change.
//!
//! Invariant: two different titles have different keys, up to a collision of 64 bits.

/// The longest readable part, in characters.
const MAX_SLUG_CHARS: usize = 60;

/// The length of a hash in a key: what 64 bits take in 36 digits.
const HASH_CHARS: usize = 13;

/// Returns the key for a title or, if it is missing or blank, for a content.
pub(crate) fn key(title: Option<&str>, content: &str) -> String {
    match title.filter(|title| !title.trim().is_empty()) {
        Some(title) => of_title(title),
        None => of_content(content),
    }
}

fn of_title(title: &str) -> String {
    let slug = slug(title);
    // A title that looks like a slug with a hash could be the key of another title.
    if slug == title && !ends_in_hash(title) {
        return slug;
    }
    with_hash(&slug, fnv(&[title.as_bytes()]))
}

/// Equal contents have equal keys: storing one twice stores it once.
fn of_content(content: &str) -> String {
    // The prefix tells a content from a title of the same words.
    with_hash(&slug(content), fnv(&[b"content\0", content.as_bytes()]))
}

/// Returns the letters and digits in lower case, with one hyphen for each run of anything else.
fn slug(text: &str) -> String {
    let (mut slug, mut chars) = (String::new(), 0);
    for c in text.chars() {
        if chars == MAX_SLUG_CHARS {
            break;
        }
        if c.is_alphanumeric() {
            // `İ` becomes `i` and a combining dot, which is not a letter.
            for lower in c.to_lowercase().filter(|c| c.is_alphanumeric()) {
                slug.push(lower);
                chars += 1;
            }
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
            chars += 1;
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

fn with_hash(slug: &str, mut hash: u64) -> String {
    let mut digits = [b'0'; HASH_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(hash % 36) as usize];
        hash /= 36;
    }
    let digits = digits.iter().copied().map(char::from);
    let between = if slug.is_empty() { "" } else { "-" };
    slug.chars().chain(between.chars()).chain(digits).collect()
}

fn ends_in_hash(title: &str) -> bool {
    let tail = title.rsplit('-').next().unwrap_or_default();
    tail.len() == HASH_CHARS && tail.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
}

/// FNV-1a with 64 bits: the hash of the standard library may change between versions of Rust.
fn fnv(pieces: &[&[u8]]) -> u64 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_stay_as_they_are() {
        let cases = [
            (Some("coffee"), "", "coffee"),
            (Some("how-to-deploy"), "", "how-to-deploy"),
            (Some("记忆"), "", "记忆"),
            (Some("How to deploy"), "", "how-to-deploy-2jozfmccxitxh"),
            (Some("C++"), "", "c-071a2iplh1y4w"),
            (Some("C#"), "", "c-04yko5g852j2b"),
            (Some("!!!"), "", "2uv2jd4b0npb6"),
            (Some("Größe  ändern"), "", "größe-ändern-0mros3nsp21qe"),
            (None, "Likes coffee.", "likes-coffee-1lnbx5vm8a3us"),
            (Some(" \n"), "Likes coffee.", "likes-coffee-1lnbx5vm8a3us"),
            (None, "", "3mkdj92tosb1i"),
        ];
        for (title, content, expected) in cases {
            assert_eq!(key(title, content), expected, "{title:?} {content:?}");
        }
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(&[b"foo", b"bar"]), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn titles_that_look_alike_have_keys_of_their_own() {
        let long = "x".repeat(MAX_SLUG_CHARS);
        let titles = [
            "foo",
            "Foo",
            "FOO",
            "foo ",
            " foo",
            "foo-",
            "-foo",
            "foo!",
            "foo?",
            "fo-o",
            "fo--o",
            "fo o",
            "fo_o",
            "FÓO",
            "ﬀ",
            "ff",
            "",
            "\u{0}",
            &long,
            &format!("{long}x"),
            &format!("{long}y"),
            "é",
            "e\u{301}",
            "İ",
            "i\u{307}",
            "content\0foo",
        ];
        let mut keys = HashMap::new();
        for title in titles.into_iter().filter(|title| !title.trim().is_empty()) {
            let key = key(Some(title), "");
            assert!(key.chars().count() <= MAX_SLUG_CHARS + 2 + HASH_CHARS, "{key}");
            if let Some(other) = keys.insert(key, title) {
                panic!("{title:?} and {other:?} have one key");
            }
            // The key of one title is no other title's key.
            let made = of_title(title);
            assert!(made == title || of_title(&made) != made, "{made}");
        }
        assert_ne!(key(Some("Likes coffee."), ""), key(None, "Likes coffee."));
    }

    proptest! {
        #[test]
        fn different_titles_have_different_keys(
            a in "[aA -]{0,3}[aA][aA -]{0,2}", b in "[aA -]{0,3}[aA][aA -]{0,2}"
        ) {
            prop_assert_eq!(key(Some(&a), "") == key(Some(&b), ""), a == b);
        }

        #[test]
        fn a_key_is_one_name(title in "\\PC{0,80}") {
            let key = key(Some(&title), &title);
            prop_assert!(!key.is_empty() && key.len() <= crate::id::MAX_ID_BYTES);
            prop_assert!(key.chars().all(|c| c == '-' || c.is_alphanumeric()), "{}", key);
        }
    }
}
