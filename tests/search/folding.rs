//! Spellings of a word that people do not tell apart, in the index and in the query.
//!
//! What is shown is the text as it was written, with marks at characters of it.

use proptest::prelude::*;
use talktree::{Message, Query, Result, Store};

/// Asserts that each of the spellings finds each other one, and that a hit shows the text as it was written.
#[track_caller]
fn one_word(spellings: &[&str]) {
    let store = Store::open_in_memory().unwrap();
    let chat = store.session("s").unwrap();
    for spelling in spellings {
        chat.append(Message::user(format!("so {spelling} it is"))).unwrap();
    }
    chat.append(Message::user("another one")).unwrap();
    for query in spellings {
        let hits = chat.search(format!("\"{query}\"")).run().unwrap().hits;
        let mut shown: Vec<_> = hits.iter().map(|hit| hit.snippet.to_string()).collect();
        let mut expected: Vec<_> =
            spellings.iter().map(|spelling| format!("so **{spelling}** it is")).collect();
        shown.sort();
        expected.sort();
        assert_eq!(shown, expected, "{query}");
    }
}

#[test]
fn letters_of_latin_cyrillic_and_greek() {
    one_word(&["straße", "STRASSE", "Straße", "stra\u{AD}sse"]);
    one_word(&["ёлка", "Елка", "ЁЛКА"]);
    one_word(&["łódź", "lodz", "Łódź"]);
    one_word(&["Đặng", "dang"]);
    one_word(&["rødgrød", "rodgrod", "RØDGRØD"]);
    one_word(&["œuf", "oeuf", "Œuf"]);
    one_word(&["æra", "aera", "Æra"]);
    one_word(&["ışık", "ISIK", "isik"]);
    one_word(&["İstanbul", "istanbul", "ISTANBUL"]);
    one_word(&["Ελλάδα", "ΕΛΛΑΔΑ", "ελλαδα"]);
    one_word(&["σοφός", "ΣΟΦΟΣ", "σοφοσ"]);
}

#[test]
fn marks_and_letter_forms_of_arabic_and_hebrew() {
    one_word(&["عَرَبِيّ", "عربي", "عربى"]);
    one_word(&["ســـلام", "سلام"]);
    one_word(&["أحمد", "احمد"]);
    one_word(&["مدرسة", "مدرسه"]);
    one_word(&["שָׁלוֹם", "שלום"]);
}

#[test]
fn wide_and_narrow_forms_digits_and_joiners() {
    one_word(&["ＡＰＩ", "API", "api"]);
    one_word(&["ｶﾞﾗｽ", "ガラス", "カ\u{3099}ラス"]);
    one_word(&["２０２４", "2024", "٢٠٢٤", "२०२४", "๒๐๒๔", "۲۰۲۴"]);
    one_word(&["क\u{200D}ष", "कष"]);
    one_word(&["deploy\u{2060}ment", "deployment"]);
}

#[test]
fn traditional_and_simplified_chinese() {
    one_word(&["電腦", "电脑"]);
    one_word(&["臺灣", "台灣", "台湾"]);
    one_word(&["圖書館", "图书馆"]);
}

#[test]
fn a_prefix_is_folded() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append(Message::user("Die Grosse Straßenbahn, ЁЛКИ, βιβλία"))?;
    for query in ["groß*", "strasse*", "straß*", "елк*", "βιβλι*", "βιβλί*"] {
        assert_eq!(store.search(query).run()?.hits.len(), 1, "{query}");
    }
    Ok(())
}

/// Characters that are folded, left out, unigrams, marks, or none of these.
const CHARS: &[char] = &[
    'a', 'B', '1', ' ', ' ', '-', '_', '.', 'ß', 'ø', 'Ł', 'œ', 'İ', 'ё', 'Ж', 'ά', 'Σ', 'ς', 'é',
    '\u{301}', '\u{AD}', '\u{200B}', '\u{200C}', '\u{200D}', '\u{FE0F}', 'ع', 'َ', 'ـ', 'أ', 'ة',
    '٢', 'ש', '\u{5C1}', '電', '电', '北', 'か', 'カ', 'ｶ', 'ﾞ', '\u{3099}', 'Ａ', '２', '๒', 'ป',
    '\u{E35}', '한', '👩', '🔬', '\u{F8FF}', '，',
];

fn text() -> impl Strategy<Value = String> {
    let chars = prop::collection::vec(prop::sample::select(CHARS), 1..24);
    chars.prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// FTS5 reads the folded text, and the query is folded apart from it: every word of a text is found in it.
    #[test]
    fn index_and_query_fold_alike(text in text()) {
        let store = Store::open_in_memory()?;
        store.session("s")?.append(Message::user(&text))?;
        for word in text.split([' ', '-', '_', '.', '，']) {
            let query = format!("\"{word}\"");
            if Query::parse(&query).is_empty() {
                continue;
            }
            let hits = store.search(query).run()?.hits;
            prop_assert_eq!(hits.len(), 1, "{:?} in {:?}", word, text);
            let snippet = &hits[0].snippet;
            prop_assert!(!snippet.marks.is_empty(), "{:?} in {:?}", word, text);
            for mark in &snippet.marks {
                prop_assert!(snippet.text.get(mark.clone()).is_some_and(|marked| !marked.is_empty()));
            }
            let shown: String = snippet.text.chars().filter(|c| !c.is_whitespace()).collect();
            let written: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            prop_assert_eq!(shown, written);
        }
    }
}
