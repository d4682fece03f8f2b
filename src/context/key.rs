//! Names: the labels of blocks and the keys of documents.
//!
//! A document that is given no key gets one. It is the letters and digits of the title, in any script: `guide`. If another document has that key, a hash of the
//! title follows: `guide-2jozfmccxitxh`. A document without a title is named by its content.
//!
//! A key is stored with its document, and the same title finds the same document again: so the rules must never change.

use talktree_text::foreign::breaks_line;

use crate::error::{Error, Result};
use crate::id::shorten;
use crate::storage::context::{Document, StoredText};

/// The longest label, in characters.
const MAX_LABEL_CHARS: usize = 80;

/// How many keys with a hash are tried; each is taken only if someone chose it for another document.
const MAX_CANDIDATES: usize = 1_000;

/// The longest readable part, in characters.
const MAX_SLUG_CHARS: usize = 60;

/// The length of a hash in a key: what 64 bits take in 36 digits.
const HASH_CHARS: usize = 13;

/// Checks that a block may have this label.
///
/// The prompt shows it in one line, and the model has to repeat it exactly.
pub(super) fn check_label(label: &str) -> Result<()> {
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
pub(super) fn check_key(key: &str) -> Result<()> {
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

/// Returns the key for a document without one. `look` returns the stored document of a key.
///
/// If the document is stored already, its key; else the readable key if that is free; else one with a hash. The key with a
/// hash is looked up first: the document got it if the readable key was taken then, and that may be free by now.
pub(super) fn choose<E>(
    document: &Document,
    look: impl Fn(&str) -> std::result::Result<Option<StoredText>, E>,
) -> std::result::Result<String, E> {
    let (short, mut long) = candidates(document.title.as_deref(), &document.content);
    let hashed = long.next().unwrap_or_default();
    let at_hashed = look(&hashed)?;
    let is_own = at_hashed.as_ref().is_some_and(|stored| is_same(stored, document));
    if !is_own && !short.is_empty() && look(&short)?.is_none_or(|stored| is_same(&stored, document))
    {
        return Ok(short);
    }
    if is_own || at_hashed.is_none() {
        return Ok(hashed);
    }
    for key in long.take(MAX_CANDIDATES) {
        if look(&key)?.is_none_or(|stored| is_same(&stored, document)) {
            return Ok(key);
        }
    }
    Ok(hashed)
}

/// Returns whether a document without a key replaces a stored one: both have the same title or, without titles, the same
/// content.
fn is_same(stored: &StoredText, document: &Document) -> bool {
    let own = titled(stored.title.as_deref());
    match titled(document.title.as_deref()) {
        Some(title) => own.unwrap_or(&stored.key) == title,
        None => own.is_none() && stored.content.as_deref() == Some(document.content.as_str()),
    }
}

/// Returns the keys that a document without a key may get: a readable one, which is empty if title or content has no letter
/// and no digit; and those with a hash. The second and later ones are needed only if a program chose the first for another
/// document.
fn candidates(
    title: Option<&str>,
    content: &str,
) -> (String, impl Iterator<Item = String> + use<>) {
    let named = titled(title).unwrap_or(content);
    let hash = match titled(title) {
        Some(title) => fnv(&[title.as_bytes()]),
        // The prefix tells a content from a title of the same words.
        None => fnv(&[b"content\0", content.as_bytes()]),
    };
    let short = slug(named);
    let further = (2_u64..).map(move |n| fnv(&[&hash.to_le_bytes(), &n.to_le_bytes()]));
    let begin = short.clone();
    let long = std::iter::once(hash).chain(further).map(move |hash| with_hash(&begin, hash));
    (short, long)
}

/// Returns the title, unless it is blank.
fn titled(title: Option<&str>) -> Option<&str> {
    title.filter(|title| !title.trim().is_empty())
}

/// Returns a key that no other title or, without a title, no other content has. For a block that cannot be asked which keys
/// are taken. Equal contents have equal keys: storing one twice stores it once.
pub(super) fn unique(title: Option<&str>, content: &str) -> String {
    match titled(title) {
        // A title that looks like a slug with a hash could be the key of another title.
        Some(title) if slug(title) == title && !ends_in_hash(title) => title.to_owned(),
        _ => candidates(title, content).1.next().unwrap_or_default(),
    }
}

/// Returns the letters and digits in lower case, with one hyphen for each run of anything else. Accents and vowel signs stay:
/// without them, words of many scripts would be split.
fn slug(text: &str) -> String {
    let (mut slug, mut chars) = (String::new(), 0);
    for c in text.chars() {
        if chars == MAX_SLUG_CHARS {
            break;
        }
        // A mark alone is no letter.
        let is_kept = c.is_alphanumeric() || (is_mark(c) && slug.ends_with(|last| last != '-'));
        if is_kept {
            // `İ` becomes `i` and a combining dot, which is not a letter.
            for lower in c.to_lowercase().filter(|lower| lower.is_alphanumeric() || *lower == c) {
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

/// Returns whether the character changes the letter before it and is no letter itself: accents, vowel signs, tones.
fn is_mark(c: char) -> bool {
    match c {
        // The blocks of the scripts of India have the same layout.
        '\u{900}'..='\u{DFF}' => {
            matches!(u32::from(c) & 0x7F, 0x00..=0x03 | 0x3A..=0x3C | 0x3E..=0x4F | 0x51..=0x57 | 0x62..=0x63)
        }
        _ => matches!(c,
            '\u{300}'..='\u{36F}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}'
            | '\u{5C2}' | '\u{5C4}' | '\u{5C5}' | '\u{5C7}' | '\u{610}'..='\u{61A}' | '\u{64B}'..='\u{65F}'
            | '\u{670}' | '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E4}' | '\u{6E7}' | '\u{6E8}'
            | '\u{6EA}'..='\u{6ED}' | '\u{711}' | '\u{730}'..='\u{74A}' | '\u{7A6}'..='\u{7B0}'
            | '\u{E31}' | '\u{E34}'..='\u{E3A}' | '\u{E47}'..='\u{E4E}' | '\u{EB1}'
            | '\u{EB4}'..='\u{EBC}' | '\u{EC8}'..='\u{ECE}' | '\u{F71}'..='\u{F84}'
            | '\u{F8D}'..='\u{FBC}' | '\u{102B}'..='\u{103E}' | '\u{17B6}'..='\u{17D3}'
            | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{3099}' | '\u{309A}'
            | '\u{FE20}'..='\u{FE2F}'),
    }
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
            assert_eq!(unique(title, content), expected, "{title:?} {content:?}");
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
            let key = unique(Some(title), "");
            assert!(key.chars().count() <= MAX_SLUG_CHARS + 2 + HASH_CHARS, "{key}");
            if let Some(other) = keys.insert(key, title) {
                panic!("{title:?} and {other:?} have one key");
            }
            // The key of one title is no other title's key.
            let made = unique(Some(title), "");
            assert!(made == title || unique(Some(&made), "") != made, "{made}");
        }
        assert_ne!(unique(Some("Likes coffee."), ""), unique(None, "Likes coffee."));
    }

    #[test]
    fn the_first_candidate_is_readable_in_every_script() {
        for (title, short) in [
            ("Guide", "guide"),
            ("How to deploy", "how-to-deploy"),
            ("C++", "c"),
            ("  Größe \n ändern! ", "größe-ändern"),
            ("हिन्दी गाइड", "हिन्दी-गाइड"),
            ("คู่มือการใช้งาน", "คู่มือการใช้งาน"),
            ("Cafe\u{301} menu", "cafe\u{301}-menu"),
            ("記憶の使い方", "記憶の使い方"),
            ("\u{301}x", "x"),
        ] {
            assert_eq!(candidates(Some(title), "text").0, short, "{title}");
        }
        assert_eq!(candidates(Some(" "), "Likes coffee.").0, "likes-coffee");
        assert_eq!(candidates(Some("!!!"), "text").0, "");
        for (title, content) in [(Some("How to deploy"), ""), (None, "Likes coffee.")] {
            let long: Vec<_> = candidates(title, content).1.take(3).collect();
            assert_eq!(long[0], unique(title, content));
            assert!(long[0] != long[1] && long[1] != long[2]);
        }
    }

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

    proptest! {
        #[test]
        fn different_titles_have_different_keys(
            a in "[aA -]{0,3}[aA][aA -]{0,2}", b in "[aA -]{0,3}[aA][aA -]{0,2}"
        ) {
            prop_assert_eq!(unique(Some(&a), "") == unique(Some(&b), ""), a == b);
        }

        #[test]
        fn a_key_is_one_name(title in "\\PC{0,80}") {
            let key = unique(Some(&title), &title);
            prop_assert!(!key.is_empty() && key.len() <= crate::id::MAX_ID_BYTES);
            let is_kept = |c: char| c == '-' || c.is_alphanumeric() || is_mark(c);
            prop_assert!(key.chars().all(is_kept), "{}", key);
        }
    }
}
