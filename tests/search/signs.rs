//! Vowel signs: in Thai `ดี` (good) and `ดู` (look) are two words.
//!
//! A search used to find every word with the same consonants, also in quotes, with the same score.

use std::time::Duration;

use talktree::{Block, Document, Matched, Message, Part, Result, Role, Store};

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|text| Message::user(*text)))?;
    Ok(store)
}

/// Returns the snippets of the hits, best first.
fn shown(store: &Store, query: &str) -> Result<Vec<String>> {
    let found = store.search(query).limit(99).run()?;
    assert_eq!((found.is_partial, found.notices), (false, vec![]), "{query}");
    Ok(found.hits.iter().map(|hit| hit.snippet.to_string()).collect())
}

#[test]
fn words_of_scripts_without_spaces_have_their_signs() -> Result<()> {
    for (query, texts, expected) in [
        ("ดี", &["ดี", "ดาว", "เด็ก", "ดู", "ด"][..], "**ดี**"),
        ("ดี", &["ดู", "วันนี้อากาศดีมาก"], "วันนี้อากาศ**ดี**มาก"),
        ("มี", &["มี", "มา", "มือ", "แม่", "เขามาแล้ว"], "**มี**"),
        ("กิน", &["กิน", "กัน", "เรากันเอง", "กน", "ประเทศกินี"], "**กิน**"),
        ("หมู", &["หมู", "หมี", "หมอ"], "**หมู**"),
        ("ป้า", &["ป้า", "ป่า", "ปา"], "**ป้า**"),
        ("ສີ", &["ສີ", "ສາ"], "**ສີ**"),
        ("បី", &["បី", "បា", "បុ"], "**បី**"),
        ("စား", &["စား", "စုံ", "စ"], "**စား**"),
    ] {
        let store = store(texts)?;
        for query in [query, &format!("\"{query}\"")] {
            assert_eq!(shown(&store, query)?, [expected], "{query}");
        }
    }
    Ok(())
}

/// The last sign of a word of Hindi says its gender, number or case, so its forms are found, too, unless it is quoted.
#[test]
fn in_hindi_forms_with_another_last_sign_are_found() -> Result<()> {
    let store = store(&["लड़का", "लड़के", "लड़कियों", "लड़ाई", "मैल", "मेल"])?;
    assert_eq!(shown(&store, "लड़का")?.len(), 3);
    assert_eq!(shown(&store, "\"लड़के\"")?, ["**लड़के**"]);
    assert_eq!(shown(&store, "मेल")?, ["**मेल**"]);
    Ok(())
}

#[test]
fn marks_that_are_no_vowels_of_a_word_are_ignored_as_before() -> Result<()> {
    let store = store(&["café", "cafe", "שָׁלוֹם", "שלום", "عَرَبِيّ", "عربي"])?;
    for query in ["\"cafe\u{301}\"", "\"cafe\"", "\"שָׁלוֹם\"", "\"שלום\"", "\"عَرَبِيّ\"", "\"عربي\""]
    {
        assert_eq!(shown(&store, query)?.len(), 2, "{query}");
    }
    Ok(())
}

#[test]
fn a_quoted_word_that_nobody_wrote_is_not_found() -> Result<()> {
    let store = store(&["ดู", "ดาว", "ดู red"])?;
    for query in ["\"ดี\"", "ดี", "\"ดี\" red", "\"ดี\" OR \"ดื\"", "ดี red role:user", "\"के\""]
    {
        let found = store.search(query).run()?;
        let texts: Vec<_> = found.hits.iter().map(|hit| hit.snippet.to_string()).collect();
        if query.starts_with("ดี red") {
            // Any of the words is enough, and the result says so.
            assert_eq!((texts, found.matched), (vec!["ดู **red**".to_owned()], Matched::Relaxed));
        } else {
            assert_eq!((texts.as_slice(), found.steps.as_slice()), (&[][..], &[][..]), "{query}");
        }
    }
    Ok(())
}

#[test]
fn an_alternative_is_found_without_the_signs_of_the_other() -> Result<()> {
    let store = store(&["ดู red", "ดี", "ดู", "ดู running"])?;
    let mut found = shown(&store, "\"ดี\" OR red OR runn*")?;
    found.sort();
    assert_eq!(found, ["**ดี**", "ดู **red**", "ดู **running**"]);
    Ok(())
}

#[test]
fn an_excluded_word_excludes_its_own_signs_only() -> Result<()> {
    let store = store(&["red ดู", "red ดี", "ดู"])?;
    for query in ["red -\"ดี\"", "\"ดู\" red -\"ดี\"", "red role:user -\"ดี\""] {
        assert_eq!(store.search(query).run()?.hits.len(), 1, "{query}");
    }
    assert_eq!(store.search("role:user -\"ดี\"").run()?.hits.len(), 2);
    Ok(())
}

#[test]
fn hits_in_tools_have_their_own_signs() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let reasoning = |text: &str| Message::assistant("ok").with_part(Part::reasoning(text));
    chat.append_all([reasoning("ดู"), reasoning("ดี"), Message::user("ดู")])?;
    assert_eq!(store.search("ดี").run()?.hits.len(), 1);
    chat.append(Message::user("ดี"))?;
    assert_eq!(store.search("ดี").run()?.hits.len(), 2);
    Ok(())
}

#[test]
fn pages_filters_and_scopes_have_the_same_matches() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    // More than are ranked, and the newest have other signs.
    let role = |number: usize| match number % 2 {
        0 => Role::User,
        _ => Role::Assistant,
    };
    let texts = (0..3_400).map(|number| {
        let word = if number < 3_100 { "ดี" } else { "ดู" };
        Message::new(role(number), vec![Part::text(format!("{word} {number}"))])
    });
    chat.append_all(texts)?;
    store.index(|_| {})?;
    chat.append_all(["ดู", "ดี"].map(Message::user))?;
    for (query, count) in [("ดี", 3_101), ("\"ดี\" role:user", 1_551), ("\"ดู\"", 301)]
    {
        for searched in [store.search(query), chat.search(query), chat.search(query).on_path()] {
            let mut seen = std::collections::HashSet::new();
            for page in 0..4 {
                let found = searched.clone().limit(1_000).offset(page * 1_000).run()?;
                seen.extend(found.hits.into_iter().map(|hit| hit.id));
            }
            assert_eq!(seen.len(), count, "{query}");
        }
    }
    let found = store.search("ดี").timeout(Duration::ZERO).run()?;
    assert!(found.is_partial && found.hits.iter().all(|hit| hit.snippet.text.contains("ดี")));
    Ok(())
}

#[test]
fn any_word_of_a_question_has_its_signs() -> Result<()> {
    let store = store(&["ดูปี", "กินปลา", "กันหมู", "xกิน"])?;
    let mut found = shown(&store, "กิน ดี?")?;
    found.sort();
    assert_eq!(found, ["**กิน**ปลา", "x**กิน**"]);
    Ok(())
}

#[test]
fn documents_of_a_block_have_the_signs() -> Result<()> {
    let store = Store::open_in_memory()?;
    let context =
        store.session_builder("s").block("notes", Block::knowledge()).open()?.context().clone();
    for (key, text) in [("pork", "หมู"), ("bear", "หมี"), ("both", "หมูหมี")]
    {
        context.set_document("notes", &Document::new(key, text))?;
    }
    for query in ["หมู", "\"หมู\"", "กิน หมู"] {
        let found = context.search("notes", query, 10)?;
        let mut keys: Vec<_> = found.into_iter().map(|document| document.key).collect();
        keys.sort();
        assert_eq!(keys, ["both", "pork"], "{query}");
    }
    Ok(())
}
