//! Search: results, scopes, relaxation, and that no query is an error.

use std::error::Error;

use serde_json::json;
use talktree::{
    Hit, Matched, Message, Part, Role, SearchResults, SessionChange, SessionDetails, Store,
};

type Outcome = Result<(), Box<dyn Error>>;

fn ids(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.id.as_str()).collect()
}

fn sorted(found: &SearchResults) -> Vec<&str> {
    let mut ids = ids(found);
    ids.sort_unstable();
    ids
}

/// Asserts that a search of the store finds exactly these messages, in any order.
#[track_caller]
fn finds(store: &Store, query: &str, expected: &[&str]) {
    match store.search(query).run() {
        Ok(found) => assert_eq!(sorted(&found), expected, "{query:?}"),
        Err(error) => panic!("{query:?}: {error}"),
    }
}

fn only(found: SearchResults) -> Result<Hit, String> {
    let count = found.hits.len();
    found.into_iter().next().filter(|_| count == 1).ok_or(format!("{count} hits"))
}

fn user(id: &str, text: &str) -> Message {
    Message::user(text).with_id(id)
}

fn assistant(id: &str, text: &str) -> Message {
    Message::assistant(text).with_id(id)
}

/// A store in memory with one session, a path of these messages.
fn store(texts: &[(&str, &str)]) -> Result<Store, talktree::Error> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|(id, text)| user(id, text)))?;
    Ok(store)
}

#[test]
fn every_word_must_match_if_a_message_has_them_all() -> Outcome {
    let store = store(&[("a", "a red fox"), ("b", "a red apple"), ("c", "foxes are redder")])?;
    finds(&store, "red fox", &["a"]);
    finds(&store, "FOX", &["a", "c"]);
    assert_eq!(store.search("red fox").run()?.matched, Matched::All);
    Ok(())
}

#[test]
fn without_a_full_match_any_word_matches_and_the_result_says_so() -> Outcome {
    let store = store(&[("a", "a red apple"), ("b", "the fox"), ("c", "the end")])?;
    let found = store.search("the red fox").run()?;
    assert_eq!((sorted(&found), found.matched), (vec!["a", "b"], Matched::Relaxed));
    assert!(found.hits.iter().all(|hit| hit.matched == Matched::Relaxed));
    Ok(())
}

#[test]
fn a_question_is_relaxed_and_each_hit_says_whether_every_word_matched() -> Outcome {
    let store = store(&[("a", "We went to Lisbon."), ("b", "When did we go to Lisbon? In May.")])?;
    let found = store.search("When did we go to Lisbon?").run()?;
    assert_eq!((ids(&found), found.matched), (vec!["b", "a"], Matched::Relaxed));
    let matched: Vec<_> = found.hits.iter().map(|hit| hit.matched).collect();
    assert_eq!(matched, [Matched::All, Matched::Relaxed]);
    assert_eq!(found.hits[1].snippet.to_string(), "We went to **Lisbon**.");
    Ok(())
}

#[test]
fn terms_with_an_operator_are_never_relaxed() -> Outcome {
    let store = store(&[("a", "a red fox"), ("b", "a fox, red"), ("c", "redder compaction")])?;
    finds(&store, "\"red fox\"", &["a"]);
    finds(&store, "\"red fox\" nowhere", &["a"]);
    finds(&store, "\"fox red\" nowhere", &["b"]);
    finds(&store, "\"blue fox\" red", &[]);
    finds(&store, "fox -\"red fox\"", &["b"]);
    finds(&store, "nowhere fox -\"a\"", &[]);
    finds(&store, "comp*", &["c"]);
    finds(&store, "comp* red", &["c"]);
    finds(&store, "comp* nowhere", &["c"]);
    finds(&store, "compaction OR \"red fox\"", &["a", "c"]);
    finds(&store, "blue OR green fox", &[]);
    Ok(())
}

#[test]
fn words_with_punctuation_are_phrases_and_relaxed_to_their_pieces() -> Outcome {
    let store = store(&[("a", "write to me@home.org"), ("b", "I don't write home")])?;
    finds(&store, "me@home.org", &["a"]);
    finds(&store, "don't", &["b"]);
    finds(&store, "you@home.org", &["a", "b"]);
    Ok(())
}

#[test]
fn a_short_option_of_a_command_is_searched_with_its_command() -> Outcome {
    let store = store(&[("a", "ln -s a b"), ("b", "ln: it's no link"), ("c", "ln, no -n")])?;
    finds(&store, "ln -s", &["a"]);
    finds(&store, "ln -link", &["a", "c"]);
    finds(&store, "ln -\"n\"", &["a", "b"]);
    assert_eq!(store.search("ln -s").run()?.notices.len(), 1);
    Ok(())
}

#[test]
fn a_pasted_text_finds_the_message_that_has_it() -> Outcome {
    let store = store(&[])?;
    let page = |seed: u32| -> String {
        let word = |n: u32| format!("the w{} of ", (n * 7919 + seed * 104_729) % 3_000);
        (0..700).map(word).collect()
    };
    for seed in 0..20 {
        store.session("s")?.append(user(&seed.to_string(), &page(seed)))?;
    }
    let found = store.search(page(7).as_str()).run()?;
    assert_eq!((ids(&found)[0], found.matched), ("7", Matched::Relaxed));
    Ok(())
}

#[test]
fn scripts_without_spaces_are_found_by_any_part() -> Outcome {
    let store = store(&[
        ("a", "我在北京，今天天气很好"),
        ("b", "東京のRust言語"),
        ("c", "북경에 갔다 🚀"),
    ])?;
    finds(&store, "北京", &["a"]);
    finds(&store, "京", &["a", "b"]);
    finds(&store, "Rust言", &["b"]);
    finds(&store, "북경", &["c"]);
    finds(&store, "🚀", &["c"]);
    let found = store.search("北京天气怎么样").run()?;
    assert_eq!((ids(&found), found.matched), (vec!["a"], Matched::Relaxed));
    Ok(())
}

#[test]
fn filters_narrow_the_result() -> Outcome {
    let store = Store::open_in_memory()?;
    let at = |day: u32| format!("2026-01-{day:02}T12:00:00Z").parse().unwrap_or_default();
    let chat = store.session("my chat")?;
    chat.append(user("a", "fox").at(at(1)))?;
    chat.append(assistant("b", "fox").at(at(2)))?;
    store
        .session("other")?
        .append(Message::new(Role::System, vec![Part::text("fox")]).with_id("c").at(at(3)))?;
    finds(&store, "fox role:user", &["a"]);
    finds(&store, "fox role:user role:system", &["a", "c"]);
    finds(&store, "fox session:\"my chat\"", &["a", "b"]);
    finds(&store, "fox session:other session:\"my chat\"", &["a", "b", "c"]);
    finds(&store, "fox session:nowhere", &[]);
    finds(&store, "fox after:2026-01-02", &["b", "c"]);
    finds(&store, "fox before:2026-01-02", &["a"]);
    finds(&store, "fox after:2026-01-02T12:00:00Z before:2026-01-03T12:00:00Z", &["b"]);
    finds(&store, "fox nowhere role:system", &["c"]);
    let notices = store.search("fox session:nowhere").run()?.notices;
    assert_eq!(notices, ["no session is called \"nowhere\""]);
    store.change_session(&"other".into(), &talktree::SessionChange::Delete)?;
    let notices = store.search("fox session:other").run()?.notices;
    assert_eq!(notices, ["session \"other\" is in the trash, which is not searched"]);
    Ok(())
}

#[test]
fn a_query_of_filters_lists_the_newest_first() -> Outcome {
    let store = Store::open_in_memory()?;
    let at = |day: u32| format!("2026-01-{day:02}T12:00:00Z").parse().unwrap_or_default();
    for (session, id, day) in
        [("s", "a", 1), ("t", "b", 2), ("s", "c", 3), ("t", "d", 4), ("s", "e", 5)]
    {
        store.session(session)?.append(user(id, &format!("text {id}")).at(at(day)))?;
    }
    let found = store.search("role:user").run()?;
    assert_eq!((ids(&found), found.matched), (vec!["e", "d", "c", "b", "a"], Matched::All));
    assert_eq!(found.hits[0].snippet.to_string(), "text e");
    assert!(found.hits.windows(2).all(|pair| pair[0].score > pair[1].score));
    assert_eq!(ids(&store.search("role:user -\"c\"").limit(2).offset(1).run()?), ["d", "b"]);
    assert_eq!(ids(&store.search("session:s before:2026-01-05").run()?), ["c", "a"]);
    assert_eq!(ids(&store.session("t")?.search("after:2026-01-01").run()?), ["d", "b"]);
    let found = store.search("-\"c\"").run()?;
    assert_eq!((found.hits.len(), found.notices.len()), (0, 1));
    Ok(())
}

/// More than 16 sessions were listed as one, by when they were made.
#[test]
fn a_list_of_many_sessions_is_in_the_order_of_time() -> Outcome {
    let store = Store::open_in_memory()?;
    for number in 0..20 {
        let day = 1 + number * 7 % 20;
        let at = format!("2026-01-{day:02}T12:00:00Z").parse()?;
        store.session(format!("s{number}"))?.append(user(&format!("{day}"), "text").at(at))?;
    }
    let days: Vec<String> = (1..=20).rev().map(|day| day.to_string()).collect();
    let sessions = (0..20).map(|number| format!("s{number}"));
    let search = store.search("role:user").sessions(sessions);
    assert_eq!(ids(&search.clone().run()?), days);
    let found = search.run_by_session()?;
    let listed: Vec<&str> = found.hits.iter().map(|found| found.hits[0].id.as_str()).collect();
    assert_eq!(listed, days);
    Ok(())
}

#[test]
fn reasoning_and_tools_are_found_in_their_column() -> Outcome {
    let store = Store::open_in_memory()?;
    let call = Message::assistant("Let me look.")
        .with_id("a")
        .with_part(Part::reasoning("maybe the fox"))
        .with_part(Part::tool_call("weather", "1", json!({"city": "Jena"})));
    store.session("s")?.append_all([call, user("b", "the fox in Jena")])?;
    finds(&store, "fox", &["a", "b"]);
    finds(&store, "in:text fox", &["b"]);
    finds(&store, "in:tools fox", &["a"]);
    finds(&store, "in:all fox", &["a", "b"]);
    finds(&store, "in:tools weather jena", &["a"]);
    let hit = only(store.search("in:tools jena").run()?)?;
    assert!(hit.snippet.to_string().ends_with("weather **Jena**"));
    Ok(())
}

/// A server keeps 256 positions of a word at most: later phrases with it were not found.
#[test]
fn phrases_are_found_anywhere_in_a_long_text() -> Outcome {
    let text: String = (0..1_200).map(|n| format!("the w{n} ")).collect();
    let store = Store::open_in_memory()?;
    let called = Part::tool_result("look", "1", json!("the w7 of a tool, and w1190"));
    let message = assistant("long", &text).with_part(called);
    store.session("s")?.append_all([message, assistant("short", "w1190 the w3")])?;
    for n in (0..1_200).step_by(13).chain(250..258).chain([1_199]) {
        finds(&store, &format!("\"w{n} the\""), if n == 1_199 { &[] } else { &["long"] });
    }
    for (query, expected) in [
        ("\"the w1190\" w1", &["long"][..]),
        ("\"the w3\" -w1100", &["short"]),
        ("\"the w1190\" -w100", &[]),
        ("\"w1190 w3\"", &[]),
        ("in:text \"the w1190\"", &["long"]),
        ("in:text w7", &["long"]),
        ("in:tools w7", &["long"]),
        ("in:tools \"the w7\"", &["long"]),
        ("in:tools w1190", &["long"]),
        ("in:tools w8", &[]),
        ("in:tools the w1190", &["long"]),
    ] {
        finds(&store, query, expected);
    }
    let damages = store.verify(|_| {})?.damages;
    assert!(damages.is_empty(), "{damages:?}");
    Ok(())
}

#[test]
fn a_scope_is_a_path_a_session_or_the_store() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all([user("a", "fox one"), user("b", "fox two")])?;
    chat.append_to(&"a".into(), user("c", "fox three"))?;
    store.session("t")?.append(user("d", "fox four"))?;
    chat.checkout(&"b".into())?;
    finds(&store, "fox", &["a", "b", "c", "d"]);
    assert_eq!(sorted(&chat.search("fox").run()?), ["a", "b", "c"]);
    assert_eq!(sorted(&chat.search("fox").on_path().run()?), ["a", "b"]);
    assert_eq!(sorted(&chat.at(&"c".into()).search("fox").run()?), ["a", "c"]);
    assert_eq!(sorted(&store.search("fox").session("t").run()?), ["d"]);
    assert!(chat.at(&"d".into()).search("fox").run().is_err_and(|error| error.is_unknown()));
    assert_eq!(store.session("nobody")?.search("fox").on_path().run()?.hits, []);
    assert_eq!(chat.search("fox session:t").run()?.hits, []);
    for hit in store.search("fox").run()?.hits {
        assert_eq!(hit.on_path, hit.id != "c", "{}", hit.id);
    }
    Ok(())
}

#[test]
fn a_compacted_hit_is_on_the_path_and_names_its_compaction() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all([user("a", "fox"), user("b", "fox"), user("c", "fox"), user("d", "fox")])?;
    let inner = chat.add_compaction("inner", &"b".into(), &"b".into())?.id;
    let outer = chat.add_compaction("outer", &"a".into(), &"c".into())?.id;
    chat.append_to(&"b".into(), user("e", "fox"))?;
    chat.checkout(&"d".into())?;
    let flags = |found: SearchResults| {
        let mut flags: Vec<_> =
            found.into_iter().map(|hit| (hit.id.to_string(), hit.on_path, hit.under)).collect();
        flags.sort();
        flags
    };
    let under = |id: &str, on_path, under| (id.to_owned(), on_path, under);
    let (o, i) = (Some(outer), Some(inner));
    assert_eq!(
        flags(store.search("fox").run()?),
        [
            under("a", true, o.clone()),
            under("b", true, o.clone()),
            under("c", true, o),
            under("d", true, None),
            under("e", false, None)
        ]
    );
    chat.checkout(&"e".into())?;
    assert_eq!(
        flags(store.search("fox").run()?),
        [
            under("a", true, None),
            under("b", true, i),
            under("c", false, None),
            under("d", false, None),
            under("e", true, None)
        ]
    );
    Ok(())
}

#[test]
fn copies_in_forks_are_one_hit_with_all_its_sessions() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all([user("a", "fox"), user("b", "den")])?;
    let fork = chat.fork_as(&"t".into(), &"b".into(), "fork")?;
    fork.fork_as(&"u".into(), &"a".into(), "fork of it")?;
    let stranger = store.session("v")?;
    stranger.append(user("a", "fox"))?;

    let found = store.search("fox").run()?;
    let sessions: Vec<Vec<_>> = found
        .hits
        .iter()
        .map(|hit| hit.sessions.iter().map(|id| id.to_string()).collect())
        .collect();
    assert_eq!(sessions, [vec!["s", "t", "u"], vec!["v"]]);
    assert_eq!(found.hits[0].session, "s");

    // Only the newest copy is in scope.
    let hit = only(store.search("fox session:t session:u").run()?)?;
    assert_eq!((hit.session.as_str(), hit.sessions), ("u", vec!["t".into(), "u".into()]));
    assert_eq!(only(fork.search("fox").run()?)?.session, "t");

    // An updated copy is another message. If the original is deleted, a copy takes its place.
    fork.update(user("b", "burrow"))?;
    assert_eq!(only(store.search("burrow").run()?)?.session, "t");
    assert_eq!(only(store.search("den").run()?)?.sessions.len(), 1);
    chat.delete([&"a".into()])?;
    let found = store.search("fox").limit(1).run()?;
    assert_eq!((found.hits[0].session.as_str(), found.hits[0].sessions.len()), ("u", 2));
    assert_eq!(store.search("role:user").run()?.hits.len(), 4);
    Ok(())
}

#[test]
fn old_text_is_not_found_after_an_update_or_delete() -> Outcome {
    let store = store(&[("a", "fox"), ("b", "den"), ("c", "owl")])?;
    let chat = store.session("s")?;
    for is_indexed in [false, true] {
        if is_indexed {
            finds(&store, "fox", &["a"]);
        }
        chat.update(user("a", "badger"))?;
        finds(&store, "fox", &[]);
        finds(&store, "badger", &["a"]);
        chat.update(user("a", "fox"))?;
    }
    chat.delete([&"b".into()])?;
    finds(&store, "den", &[]);
    finds(&store, "fox OR den OR owl", &["a", "c"]);
    chat.clear()?;
    finds(&store, "fox OR den OR owl", &[]);
    chat.append(user("a", "fox"))?;
    store.session("t")?.append(user("d", "fox"))?;
    store.remove(&"s".into())?;
    finds(&store, "fox", &["d"]);
    Ok(())
}

#[test]
fn an_appended_message_is_found_at_once_by_every_handle() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("store.db");
    let (one, other) = (Store::open(&path)?, Store::open(&path)?);
    one.session("s")?.append(user("a", "fox"))?;
    let reader = Store::open_read_only(&path)?;
    finds(&reader, "fox", &["a"]);
    for id in ["b", "c", "d"] {
        other.session("s")?.append(user(id, "fox 北京"))?;
        // The result of the first call must not be cached.
        let found = reader.search("fox").run()?;
        assert!(ids(&found).contains(&id), "{found:?}");
        assert_eq!(
            reader.session("s")?.search("fox").on_path().run()?.hits.len(),
            found.hits.len()
        );
    }
    finds(&reader, "北京", &["b", "c", "d"]);
    finds(&reader, "nowhere 北京 -\"a\"", &["b", "c", "d"]);
    finds(&one, "fox", &["a", "b", "c", "d"]);
    other.session("s")?.append(user("e", "fox"))?;
    other.session("s")?.update(user("a", "owl"))?;
    other.session("s")?.delete([&"b".into()])?;
    finds(&reader, "fox", &["c", "d", "e"]);
    finds(&reader, "role:user -fox", &["a"]);
    Ok(())
}

#[test]
fn limit_and_offset_page_through_one_order() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(
        (0..1500).map(|n| user(&format!("m{n}"), &format!("fox {}", "x ".repeat(n % 9)))),
    )?;
    chat.fork(&"m1499".into(), "all again")?;
    let all = store.search("fox").limit(5000).run()?;
    assert_eq!(all.hits.len(), 1500);
    assert!(all.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    for (offset, limit) in [(0, 10), (10, 10), (195, 10), (1495, 10), (1500, 10), (0, 0)] {
        let page = store.search("fox").offset(offset).limit(limit).run()?;
        let expected: Vec<_> = ids(&all).into_iter().skip(offset).take(limit).collect();
        assert_eq!(ids(&page), expected, "{offset}");
    }
    assert_eq!(store.search("fox").limit(usize::MAX).offset(usize::MAX).run()?.hits.len(), 0);
    assert_eq!(chat.search("fox").limit(usize::MAX).run()?.hits.len(), 1500);
    assert_eq!(chat.search("fox").on_path().limit(10).run()?.hits.len(), 10);
    assert_eq!(store.search("role:user").limit(usize::MAX).run()?.hits.len(), 1500);
    Ok(())
}

#[test]
fn no_query_is_an_error() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("store.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    chat.append_all([user("a", "fox \0 NOT"), user("", "x").with_id("b")])?;
    let reader = Store::open_read_only(&path)?;
    let long = [
        "fox ".repeat(1 << 18),
        "重".repeat(350_000),
        "\"".repeat(1 << 20),
        "a*".repeat(1 << 19),
        "-ant ".repeat(300_000),
        "a OR ".repeat(200_000),
    ];
    for text in &long {
        store.search(text.as_str()).run()?;
        chat.search(text.as_str()).on_path().run()?;
    }
    let short = [
        "",
        " ",
        "\"",
        "\"\"",
        "\"\"\"",
        "*",
        "**",
        "-",
        "--",
        "OR",
        "NOT",
        "AND",
        "NEAR(a b)",
        "a NEAR b",
        "(",
        ")",
        "text:",
        "text : a",
        "{text} : a",
        "^a",
        "a + b",
        "a^2",
        "\0",
        "a\0b",
        "\"a\0b\"",
        "'; DROP TABLE message; --",
        "role:",
        "session:",
        "session:\"",
        "in:",
        "after:",
        "after:x",
        "-role:user",
        "rowid:1",
        "rank",
        "search",
        "fox*",
        "\"fox\"*",
        "fox -fox",
        "\u{200B}",
        "\u{FEFF}",
        "\u{FFFD}",
        "🚀",
        "e\u{301}",
        "\u{301}",
        "after:9999-12-31 before:0000-01-01",
        "role:\0",
        "?",
        "what?",
        "who are you?",
        "%",
        "_",
        "\\",
        "\r\n",
    ];
    for text in short {
        for store in [&store, &reader] {
            store.search(text).run()?;
            store.search(text).run_by_session()?;
            store.session("s")?.search(text).run()?;
            store.session("s")?.search(text).on_path().run()?;
            store.session("none")?.search(text).run()?;
        }
    }
    finds(&store, "fox \0 NOT", &["a"]);
    Ok(())
}

#[test]
fn sessions_are_found_with_their_best_messages() -> Outcome {
    let store = Store::open_in_memory()?;
    for (session, texts) in [
        ("a", ["fox", "owl", "fox den", "fox den owl", "fox"]),
        ("b", ["fox", "x", "x", "x", "x"]),
        ("c", ["x"; 5]),
    ] {
        let chat = store.session(session)?;
        chat.append_all(texts.map(Message::user))?;
    }
    store.rename(&"a".into(), "Animals")?;
    let found = store.search("fox").run_by_session()?;
    let drawn: Vec<_> = found
        .hits
        .iter()
        .map(|hit| (hit.session.as_str(), hit.name.as_deref(), hit.hits.len()))
        .collect();
    assert_eq!(drawn, [("a", Some("Animals"), 3), ("b", None, 1)]);
    assert!(found.hits[0].score > found.hits[1].score);
    assert_eq!(store.search("fox").limit(1).offset(1).run_by_session()?.hits[0].session, "b");
    let listed = store.search("role:user").run_by_session()?;
    assert_eq!(listed.hits.iter().map(|hit| hit.hits.len()).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(store.search("fox").session("b").run_by_session()?.hits.len(), 1);
    Ok(())
}

#[test]
fn a_question_about_last_week_prefers_last_week() -> Outcome {
    let store = Store::open_in_memory()?;
    for (session, day) in [("old", "2026-01-05"), ("new", "2026-02-24"), ("late", "2026-03-05")] {
        let time = format!("{day}T12:00:00Z").parse().unwrap_or_default();
        store.session(session)?.append(user(day, "my dentist").at(time))?;
    }
    let now = "2026-03-02T12:00:00Z".parse().unwrap_or_default();
    let found = store.search("Did I see the dentist last week?").now(now).run()?;
    assert_eq!((ids(&found)[0], found.hits.len()), ("2026-02-24", 3));
    Ok(())
}

#[test]
fn an_interrupt_before_a_search_does_not_stop_it() -> Outcome {
    let store = store(&[("a", "fox")])?;
    store.interrupt_handle().interrupt();
    finds(&store, "fox", &["a"]);
    Ok(())
}

/// A later call never widens a scope, whatever a person typed or a program passes.
#[test]
fn each_call_narrows_the_scope_of_a_search() -> Outcome {
    let store = Store::open_in_memory()?;
    let (one, two) = (store.session("one")?, store.session("two")?);
    for chat in [&one, &two] {
        chat.append(Message::user("fox").with_id(chat.id().as_str()))?;
    }
    assert_eq!(sorted(&store.search("fox").sessions(["one", "two"]).run()?), ["one", "two"]);
    assert_eq!(sorted(&store.search("fox").session("one").on_path().run()?), ["one"]);
    assert_eq!(sorted(&store.search("fox").on_path().session("one").run()?), ["one"]);
    for search in [
        one.search("fox").session("two"),
        one.search("fox").session("two").on_path(),
        one.search("fox session:two"),
        one.path().search("fox").session("two"),
        store.search("fox").session("one").session("two"),
    ] {
        let shown = format!("{search:?}");
        assert!(search.run()?.hits.is_empty(), "{shown}");
    }
    let refused = store.search("fox").on_path().run();
    assert!(matches!(refused, Err(talktree::Error::Unsupported { .. })), "{refused:?}");
    Ok(())
}

/// A person's text must not become a query: no operator, filter or date in it narrows or widens the search.
#[test]
fn a_plain_text_is_searched_as_words() -> Outcome {
    let store = Store::open_in_memory()?;
    let (mine, other) = (store.session("mine")?, store.session("other")?);
    mine.append_all([user("a", "session other"), user("b", "draft"), user("c", "a comp b")])?;
    mine.append(user("d", "role tool after 2023"))?;
    other.append(user("e", "session other draft"))?;
    for (text, expected) in [
        ("session:other", &["a"][..]),
        ("-draft", &["b"]),
        ("comp*", &["c"]),
        ("draft OR comp", &["b", "c"]),
        ("role:tool", &["d"]),
        ("after:2023", &["d"]),
        ("\"draft comp\"", &["b", "c"]),
        ("in:all", &[]),
    ] {
        let found = mine.search(text).plain().run()?;
        assert_eq!(sorted(&found), expected, "{text}");
        assert_eq!(found.notices, Vec::<String>::new(), "{text}");
    }
    assert_eq!(sorted(&store.search("session:other").plain().run()?), ["a", "e"]);
    Ok(())
}

/// `yesterday` in a plain text does not rank the messages of that day first.
#[test]
fn a_plain_text_has_no_date_hint() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let now = "2026-03-05T15:00:00Z".parse()?;
    let mut old = user("old", "the fox of yesterday");
    old.created_at = "2026-02-01T12:00:00Z".parse()?;
    let mut new = user("new", "the fox of yesterday, which is a bit longer");
    new.created_at = "2026-03-04T12:00:00Z".parse()?;
    chat.append_all([old, new])?;
    let search = chat.search("fox yesterday").now(now);
    assert_eq!(ids(&search.clone().run()?), ["new", "old"]);
    assert_eq!(ids(&search.plain().run()?), ["old", "new"]);
    Ok(())
}

/// Leaves of that fall came before plans of another year.
#[test]
fn a_message_with_only_the_words_of_a_date_is_not_one_of_its_time() -> Outcome {
    let store = Store::open_in_memory()?;
    for (session, time) in [("then", "2023-10-15T12:00:00Z"), ("before", "2021-05-01T12:00:00Z")] {
        for (id, text) in [("leaves", "leaves of fall 2023"), ("plans", "plans of fall 2023")] {
            let mut message = user(id, text);
            message.created_at = time.parse()?;
            store.session(format!("{session} {id}"))?.append(message)?;
        }
    }
    let then_is_first = |query: &str, id: &str| -> Result<bool, Box<dyn std::error::Error>> {
        let found = store.search(query).now("2024-01-31T12:00:00Z".parse()?).run()?;
        let score = |time: &str| {
            let session = format!("{time} {id}");
            found.hits.iter().find(|hit| hit.session == *session).map(|hit| hit.score)
        };
        assert!(score("then").is_some(), "{found:?}");
        Ok(score("then") > score("before"))
    };
    assert!(then_is_first("What were my plans in fall 2023?", "plans")?);
    assert!(!then_is_first("What were my plans in fall 2023?", "leaves")?);
    // There is nothing else to ask about.
    assert!(then_is_first("fall 2023", "leaves")?);
    Ok(())
}

/// The notice about an unknown session told whoever may search one session which others exist.
#[test]
fn a_query_does_not_say_whether_a_session_outside_the_scope_exists() -> Outcome {
    let store = Store::open_in_memory()?;
    let mine = store.session("mine")?;
    mine.append(user("a", "fox"))?;
    store.session("secret")?.append(user("b", "fox"))?;
    for search in [mine.search("fox session:secret"), mine.path().search("fox session:secret")] {
        let found = search.run()?;
        assert_eq!(found.notices, ["no session is called \"secret\""]);
        assert!(found.hits.is_empty());
    }
    assert_eq!(store.search("fox session:secret").run()?.notices, Vec::<String>::new());
    Ok(())
}

/// The sessions of the copies told whoever may search one owner's sessions which ones others have.
#[test]
fn a_hit_names_no_session_outside_the_scope() -> Outcome {
    let store = Store::open_in_memory()?;
    let owned = |id: &str, owner: &str| {
        let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
        store.create_session_as(id, details)
    };
    let chat = owned("s", "alice")?;
    chat.append(user("a", "zebra"))?;
    chat.fork_as(&"t".into(), &"a".into(), "fork")?;
    chat.fork_as(&"u".into(), &"a".into(), "fork")?;
    chat.fork_as(&"v".into(), &"a".into(), "fork")?;
    store.change_session(&"t".into(), &SessionChange::Owner(Some("bob".to_owned())))?;
    store.change_session(&"v".into(), &SessionChange::Delete)?;

    let zebra = || store.search("zebra");
    for (search, expected) in [
        (zebra(), "s t u"),
        (zebra().owner("alice"), "s u"),
        (zebra().owner("bob"), "t"),
        (zebra().sessions(["t", "u"]), "t u"),
        (zebra().sessions(["s", "v"]), "s"),
        (zebra().sessions(["s", "t"]).owner("alice"), "s"),
        (store.search("zebra session:u"), "u"),
        (store.search("zebra session:s session:t").owner("alice"), "s"),
        (chat.search("zebra"), "s"),
        (chat.path().search("zebra"), "s"),
        (chat.at(&"a".into()).search("zebra"), "s"),
    ] {
        let shown = format!("{search:?}");
        let sessions = |hit: &Hit| hit.sessions.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        let hit = only(search.clone().run()?)?;
        assert_eq!(sessions(&hit).join(" "), expected, "{shown}");
        let by_session = search.run_by_session()?.hits;
        assert_eq!(sessions(&by_session[0].hits[0]).join(" "), expected, "{shown}");
    }
    Ok(())
}

/// The dot of `.NET` is part of the word, but its letters tell whether it may match.
#[test]
fn dot_net_is_ranked_and_marked_in_every_text() -> Outcome {
    for text in ["use .NET core", "usé .NET core", "故 (.NET) core", "– .net core"] {
        let store = Store::open_in_memory()?;
        store.session("s")?.append(user("a", text))?;
        for query in [".NET", "core .net"] {
            let hit = only(store.search(query).run()?)?;
            assert!(hit.score > 0.0, "{text} {query}");
            assert!(hit.snippet.to_string().to_lowercase().contains("**.net"), "{}", hit.snippet);
        }
    }
    Ok(())
}

#[test]
fn dates_are_written_as_people_write_them() -> Outcome {
    let store = Store::open_in_memory()?;
    let times = [
        "2022-12-31T23:59:59Z",
        "2023-02-01T00:00:00Z",
        "2026-03-03T12:00:00Z",
        "2026-03-05T01:00:00Z",
    ];
    for (id, time) in ["a", "b", "c", "d"].into_iter().zip(times) {
        let mut message = user(id, "fox");
        message.created_at = time.parse()?;
        store.session("s")?.append(message)?;
    }
    let now = "2026-03-05T15:00:00Z".parse()?;
    for (query, expected) in [
        ("fox after:2023", &["b", "c", "d"][..]),
        ("fox before:2023", &["a"]),
        ("fox after:2023-02 before:2024", &["b"]),
        ("fox before:2023-02", &["a"]),
        ("fox after:yesterday", &["d"]),
        ("fox after:7d before:today", &["c"]),
        ("fox after:12h", &[]),
        ("fox after:\"2026-03-03 12:00\" before:24h", &["c"]),
    ] {
        assert_eq!(sorted(&store.search(query).now(now).run()?), expected, "{query}");
    }
    Ok(())
}

/// Beyond the limit a prefix is a word: true matches only, marked as partial. An excluded one is never cut short.
#[test]
fn a_prefix_of_too_many_words_is_searched_as_a_word() -> Outcome {
    let words: Vec<String> =
        (0..=talktree::search::MAX_EXPANSIONS).map(|n| format!("a{n}")).collect();
    let many = words.join(" ");
    let store = store(&[("many", &many), ("word", "a fox"), ("other", "apt fox")])?;
    for (query, expected, is_partial) in [
        ("a*", &["word"][..], true),
        ("fox a*", &["word"], true),
        ("ap* a*", &[], true),
        ("\"fox a*\"", &[], true),
        ("ap*", &["other"], false),
        ("fox -a*", &[], false),
        ("a* OR apt", &["other", "word"], true),
    ] {
        let found = store.search(query).run()?;
        assert_eq!((sorted(&found), found.is_partial), (expected.to_vec(), is_partial), "{query}");
        assert_eq!(found.notices.len(), usize::from(is_partial), "{query}: {:?}", found.notices);
    }
    Ok(())
}

/// A store of 3 101 messages about a fox, of which the oldest is the best.
fn many_foxes() -> Result<Store, Box<dyn Error>> {
    let store = Store::open_in_memory()?;
    store.session("old")?.append(user("best", "my fox, fox, fox den"))?;
    for n in 0..3_100 {
        let text = match n % 3 {
            0 => "my fox is in one of the long texts of this talk, and has a den",
            _ => "my fox is in one of the long texts of this talk",
        };
        store.session(format!("chat {n}"))?.append_all([text, "Yes."].map(Message::user))?;
    }
    Ok(store)
}

/// Only the newest 3 000 messages with a word, and 1 000 with two words, were ranked.
#[test]
fn the_best_of_many_matches_is_first_however_old_it_is() -> Outcome {
    let store = many_foxes()?;
    for query in ["fox", "fox den", "my fox", "fox OR den", "in:all fox"] {
        let found = store.search(query).run()?;
        assert_eq!(found.hits[0].id.as_str(), "best", "{query}");
        assert!(found.hits.iter().all(|hit| hit.matched == Matched::All), "{query}");
    }
    Ok(())
}

#[test]
fn the_pages_of_many_matches_are_in_one_order_and_have_each_once() -> Outcome {
    let store = many_foxes()?;
    let all = store.search("fox").limit(5_000).run()?;
    assert_eq!(
        all.hits.iter().map(|hit| &hit.id).collect::<std::collections::HashSet<_>>().len(),
        3_101
    );
    let page = store.search("fox").limit(10).offset(3_090).run()?;
    assert_eq!(ids(&page), ids(&all)[3_090..3_100]);
    Ok(())
}

/// With a filter, the newest 1 001 matches were of 26 sessions, and the others were left out of every page.
#[test]
fn a_search_by_session_finds_every_session_in_pages_without_gaps() -> Outcome {
    let store = Store::open_in_memory()?;
    for number in 0..40 {
        let turn = |n| [user(&format!("q{n}"), "a fox"), assistant(&format!("a{n}"), "a fox")];
        store.session(format!("s{number}"))?.append_all((0..40).flat_map(turn))?;
    }
    for query in ["fox", "fox role:user", "role:user", "what is a fox or a den?"] {
        let mut sessions = std::collections::BTreeSet::new();
        let mut sizes = Vec::new();
        for offset in (0..42).step_by(7) {
            let page = store.search(query).limit(7).offset(offset).run_by_session()?;
            let has_all = page.hits.iter().all(|found| found.hits.len() == 3);
            assert!(!page.is_partial && has_all, "{query} {offset}");
            sizes.push(page.hits.len());
            sessions.extend(page.into_iter().map(|found| found.session));
        }
        assert_eq!((sizes.as_slice(), sessions.len()), (&[7, 7, 7, 7, 7, 5][..], 40), "{query}");
    }
    Ok(())
}
