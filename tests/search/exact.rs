//! Exact runs of characters: found by their words, or without words by reading the messages.

use std::time::Duration;

use talktree::search::Columns;
use talktree::{Message, Part, Query, Result, Role, Store};

fn shown(store: &Store, query: &str) -> Result<Vec<String>> {
    let found = store.search(query).run()?;
    assert!(!found.is_partial && found.notices.is_empty(), "{query}: {:?}", found.notices);
    let mut shown: Vec<String> = found.hits.iter().map(|hit| hit.snippet.to_string()).collect();
    shown.sort();
    Ok(shown)
}

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|text| Message::user(*text)))?;
    Ok(store)
}

#[test]
fn characters_are_compared_as_they_are_written() -> Result<()> {
    let store = store(&[
        "let x = a ?? b;",
        "let x = a ? b : c;",
        "call foo(bar) now",
        "call foo bar now",
        "CALL FOO(BAR) NOW",
        "the Straße",
        "the Strasse",
        "我在北京。",
        "北 京",
    ])?;
    for (query, expected) in [
        ("exact:\"a ?? b\"", &["let x = **a ?? b**;"][..]),
        ("exact:??", &["let x = a **??** b;"]),
        ("exact:\"foo(bar)\"", &["call **foo(bar)** now"]),
        ("exact:oo(ba", &["call f**oo(ba**r) now"]),
        ("exact:\"raße\"", &["the St**raße**"]),
        ("exact:北京", &["我在**北京**。"]),
        ("let exact:\"? b :\"", &["**let** x = a **? b :** c;"]),
        ("exact:\"call \" exact:\") now\"", &["**call **foo(bar**) now**"]),
        ("exact:nowhere", &[]),
        ("exact:\"foo(baz)\"", &[]),
        ("foo exact:nowhere", &[]),
    ] {
        let mut expected: Vec<String> = expected.iter().map(|text| text.to_string()).collect();
        expected.sort();
        assert_eq!(shown(&store, query)?, expected, "{query}");
    }
    Ok(())
}

#[test]
fn every_run_of_a_text_is_found_in_it() -> Result<()> {
    let text = "C++17 (g++) .NET v0.14.2 HttpRequest??Straße—é\u{301} ｶﾞﾗｽ 電腦x ‑ 2٣ sha\u{AD}re \u{200D}z";
    let store = store(&[text, "Ж"])?;
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    for (from, start) in places.iter().enumerate() {
        for end in places[from + 1..].iter().step_by(5) {
            let run = &text[*start..*end];
            let hits = store.search("").exact(run).run()?.hits;
            assert_eq!(hits.len(), 1, "{run:?}");
        }
    }
    Ok(())
}

#[test]
fn a_run_without_a_word_is_looked_for_in_the_time_that_there_is() -> Result<()> {
    let store = store(&["a !! b", "c"])?;
    let search = store.search("exact:!!");
    assert_eq!(search.clone().timeout(Duration::from_secs(60)).run()?.hits.len(), 1);
    let found = search.timeout(Duration::ZERO).run()?;
    assert!(found.is_partial);
    Ok(())
}

#[test]
fn the_part_that_is_searched_and_the_filters_apply() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let call = Part::tool_call("shell", "c", serde_json::json!({"command": "a && b"}));
    chat.append(Message::new(Role::Assistant, vec![call]))?;
    chat.append(Message::user("it was a && b"))?;
    for (query, expected) in [
        ("exact:\"a && b\" in:text", 1),
        ("exact:\"a && b\" in:tools", 1),
        ("exact:&&", 2),
        ("exact:&& role:user", 1),
        ("was exact:&&", 1),
        ("exact:&& -was in:text", 0),
    ] {
        assert_eq!(store.search(query).run()?.hits.len(), expected, "{query}");
    }
    assert_eq!(store.search("exact:&& in:all").run_by_session()?.hits.len(), 1);
    Ok(())
}

#[test]
fn a_builder_may_require_a_run_with_quotes() -> Result<()> {
    let store = store(&["say \"yes\" now", "say yes now"])?;
    let found = store.search("").exact("say \"yes\"").run()?;
    assert_eq!((found.hits.len(), found.notices.len()), (1, 0));
    assert_eq!(store.search("now").exact("\"").run()?.hits.len(), 1);
    let query = Query::parse("exact:\"x y\" in:tools");
    assert_eq!((&*query.filters.exact[0], query.filters.columns), ("x y", Columns::Tools));
    Ok(())
}
