//! Identifiers are found by their parts and in other spellings, and names with a sign are words of their own.

use talktree::{Matched, Message, Result, Store};

/// Returns the snippets of a search among these texts, one message each; best first.
fn shown(texts: &[&str], query: &str) -> Result<Vec<String>> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(texts.iter().map(|text| Message::user(*text)))?;
    let found = store.search(query).run()?;
    assert!(
        found.hits.iter().all(|hit| hit.matched == Matched::All) && found.steps.is_empty(),
        "{query}"
    );
    Ok(found.hits.iter().map(|hit| hit.snippet.to_string()).collect())
}

#[test]
fn an_identifier_is_found_by_its_parts() -> Result<()> {
    let texts = ["It is an HttpRequest.", "Call user_by_id here.", "Then parseArgs2() runs."];
    assert_eq!(shown(&texts, "request")?, ["It is an Http**Request**."]);
    assert_eq!(shown(&texts, "http request")?, ["It is an **HttpRequest**."]);
    assert_eq!(shown(&texts, "\"http request\"")?, ["It is an **HttpRequest**."]);
    assert_eq!(shown(&texts, "user id")?, ["Call **user**_by_**id** here."]);
    assert_eq!(shown(&texts, "parse args")?, ["Then **parseArgs**2() runs."]);
    assert_eq!(shown(&texts, "args2")?, ["Then parse**Args2**() runs."]);
    assert_eq!(shown(&texts, "HTTPREQUEST")?, ["It is an **HttpRequest**."]);
    assert_eq!(shown(&texts, "reque*")?, ["It is an Http**Request**."]);
    Ok(())
}

#[test]
fn the_spelling_of_the_query_ranks_first() -> Result<()> {
    let texts = ["an http_request", "an http request", "an HttpRequest", "a request over http"];
    assert_eq!(
        shown(&texts, "HttpRequest")?,
        ["an **HttpRequest**", "an **http_request**", "an **http request**"]
    );
    let mut found = shown(&texts, "http_request")?;
    found.sort();
    assert_eq!(found, ["an **HttpRequest**", "an **http request**", "an **http_request**"]);
    assert_eq!(
        shown(&["the request", "a HttpRequest"], "request")?,
        ["the **request**", "a Http**Request**"]
    );
    Ok(())
}

#[test]
fn a_phrase_does_not_reach_from_one_identifier_to_another() -> Result<()> {
    let texts = ["see AutoIt, then CompactionPlan", "see checkAutoCompaction"];
    assert_eq!(shown(&texts, "\"auto compaction\"")?, ["see check**AutoCompaction**"]);
    assert!(shown(&["it ends with http HttpRequest"], "\"http http\"")?.is_empty());
    assert!(shown(&["HttpRequest http"], "\"http http\"")?.is_empty());
    assert!(shown(&["HttpRequest FooBar"], "\"request foo\"")?.is_empty());
    Ok(())
}

#[test]
fn names_with_a_sign_are_words_of_their_own() -> Result<()> {
    let texts = [
        "I like C and tea.",
        "C++17 is out.",
        "Use C# today.",
        "An F# and .NET app.",
        "the net result",
    ];
    for (query, expected) in [
        ("C++", "**C++**17 is out."),
        ("c#", "Use **C#** today."),
        ("F#", "An **F#** and .NET app."),
        (".net", "An F# and **.NET** app."),
        ("C", "I like **C** and tea."),
        ("net", "the **net** result"),
    ] {
        assert_eq!(shown(&texts, query)?, [expected], "{query}");
    }
    assert_eq!(shown(&["count++ and a+b"], "count")?, ["**count**++ and a+b"]);
    Ok(())
}

#[test]
fn a_version_is_found_with_and_without_its_letter() -> Result<()> {
    let texts = ["pi-tui@0.14.2 is new", "we run v0.14.2 here", "0.14.3 is next"];
    assert_eq!(shown(&texts, "v0.14.2")?, ["we run **v0.14.2** here", "pi-tui@**0.14.2** is new"]);
    let mut found = shown(&texts, "0.14.2")?;
    found.sort();
    assert_eq!(found, ["pi-tui@**0.14.2** is new", "we run v**0.14.2** here"]);
    assert_eq!(shown(&["an RTX 3060 card"], "RTX3060")?, ["an **RTX 3060** card"]);
    Ok(())
}

#[test]
fn paths_flags_addresses_and_tickets_are_phrases() -> Result<()> {
    for (query, text, expected) in [
        ("src/main.rs", "in src/main.rs now", "in **src/main.rs** now"),
        ("foo::bar", "call foo::bar() now", "call **foo::bar**() now"),
        ("--no-run", "with --no-run now", "with --**no-run** now"),
        (
            "https://example.org/a?b=1",
            "at https://example.org/a?b=1 now",
            "at **https://example.org/a?b=1** now",
        ),
        ("ann@example.org", "to ann@example.org now", "to **ann@example.org** now"),
        ("127.0.0.1", "on 127.0.0.1 now", "on **127.0.0.1** now"),
        ("ABC-123", "in ABC-123 now", "in **ABC-123** now"),
        ("0e96b15f", "at 0e96b15f now", "at **0e96b15f** now"),
    ] {
        assert_eq!(shown(&[text, "none of it"], query)?, [expected], "{query}");
    }
    Ok(())
}
