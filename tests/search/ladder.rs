//! A query that finds little or nothing as it is written takes steps, and the answer names them and counts what they find.

use talktree::search::Step;
use talktree::{Matched, Message, Part, Result, Role, SearchResults, Store};

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|text| Message::user(*text)))?;
    Ok(store)
}

/// Returns the texts that are found, and what was done.
fn answer(found: &SearchResults) -> (Vec<&str>, Vec<String>) {
    let texts = found.hits.iter().map(|hit| hit.snippet.text.as_str()).collect();
    (texts, found.steps.iter().map(Step::to_string).collect())
}

#[test]
fn each_step_is_named_and_finds_what_was_meant() -> Result<()> {
    let texts =
        ["a compaction of history", "the session manager", "sessionstore opens", "a hard link"];
    let store = store(&texts)?;
    for (query, text, step) in [
        ("compac", 0, "1 hit: searched for \"compac*\" instead of \"compac\""),
        ("seesion manager", 1, "1 hit: searched for \"session\" instead of \"seesion\""),
        ("session store", 2, "1 hit: searched for \"sessionstore*\" instead of \"session store\""),
        ("hardlink", 3, "1 hit: searched for \"hard link\" instead of \"hardlink\""),
    ] {
        let found = store.search(query).run()?;
        assert_eq!(answer(&found), (vec![texts[text]], vec![step.to_owned()]), "{query}");
        assert_eq!(found.matched, Matched::All, "{query}");
        let sessions = store.search(query).run_by_session()?;
        assert_eq!((sessions.hits.len(), sessions.steps), (1, found.steps), "{query}");
    }
    Ok(())
}

/// The table of terms has no word of more than 40 letters, so nothing was found.
#[test]
fn the_beginning_of_a_very_long_identifier_is_enough() -> Result<()> {
    let text = "getUserByIdentifierOrElseCreateANewOneAtOnce()";
    let found = store(&[text])?.search("getUserById").run()?;
    let step = "1 hit: searched for \"getUserById*\" instead of \"getUserById\"";
    assert_eq!(answer(&found), (vec![text], vec![step.to_owned()]));
    Ok(())
}

#[test]
fn what_only_tools_have_is_found_unless_the_query_names_a_part() -> Result<()> {
    let store = store(&["fox"])?;
    let call = Part::tool_call("shell", "c", serde_json::json!({"command": "kubectl apply"}));
    store.session("s")?.append(Message::new(Role::Assistant, vec![call]))?;
    let found = store.search("kubectl").run()?;
    assert_eq!((found.hits.len(), &found.steps[..]), (1, &[][..]));
    assert_eq!(store.search("kubectl in:text").run()?.hits.len(), 0);
    Ok(())
}

#[test]
fn a_query_that_finds_something_takes_no_step_and_operators_are_never_changed() -> Result<()> {
    let store = store(&["the session manager", "sessions", "a seesion"])?;
    assert_eq!(answer(&store.search("seesion").run()?), (vec!["a seesion"], vec![]));
    for query in ["\"sesion manager\"", "sesion OR mnager", "sesiom*", "role:tool sesion"] {
        assert_eq!(answer(&store.search(query).run()?), (vec![], vec![]), "{query}");
    }
    Ok(())
}

#[test]
fn a_word_of_a_session_out_of_scope_is_not_revealed() -> Result<()> {
    let store = store(&["a passphrase"])?;
    store.session("other")?.append(Message::user("fox"))?;
    let found = store.search("pasphrase").session("other").run()?;
    assert_eq!(answer(&found), (vec![], vec![]));
    assert_eq!(store.search("pasphrase").run()?.hits.len(), 1);
    Ok(())
}

#[test]
fn pages_of_a_step_do_not_overlap() -> Result<()> {
    let store = Store::open_in_memory()?;
    let texts = (0..30).map(|n| Message::user(format!("compaction {n}")));
    store.session("s")?.append_all(texts)?;
    let page = |offset| store.search("compactoin").limit(10).offset(offset).run();
    let mut ids = Vec::new();
    for offset in [0, 10, 20] {
        let found = page(offset)?;
        assert_eq!((found.hits.len(), found.steps.len()), (10, 1));
        ids.extend(found.hits.into_iter().map(|hit| hit.id));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 30);
    let after = page(30)?;
    assert_eq!((after.hits.len(), after.steps.len()), (0, 1));
    Ok(())
}

fn call(command: &str) -> Message {
    let part = Part::tool_call("shell", "c", serde_json::json!({"command": command}));
    Message::new(Role::Assistant, vec![part])
}

#[test]
fn what_has_the_words_as_written_comes_first_and_steps_add_to_little() -> Result<()> {
    let store = store(&["a session store", "sessionstore opens", "sessionstores", "a fox"])?;
    let found = store.search("session store").run()?;
    let step = "2 hits: searched for \"sessionstore*\" instead of \"session store\"";
    assert_eq!(answer(&found).1, [step]);
    assert_eq!((found.hits.len(), found.hits[0].snippet.text.as_str()), (3, "a session store"));
    assert_eq!(found.matched, Matched::All);
    assert!(found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{found:?}");
    assert!(found.hits[0].score > found.hits[1].score);
    // Pages are of one order, and each names the same steps.
    for (offset, hit) in found.hits.iter().enumerate() {
        let page = store.search("session store").limit(1).offset(offset).run()?;
        assert_eq!((&page.hits[..], &page.steps), (&[hit.clone()][..], &found.steps));
    }
    Ok(())
}

#[test]
fn what_tools_say_is_ranked_beside_texts() -> Result<()> {
    let store = store(&["kubectl applies", "a fox said that it was not there"])?;
    let chat = store.session("s")?;
    chat.append_all((0..2).map(|n| call(&format!("kubectl apply {n}"))))?;
    chat.append(call("cat log: the connection was refused by peer"))?;
    let found = store.search("kubectl").run()?;
    assert_eq!((found.hits.len(), answer(&found).0[0]), (3, "kubectl applies"));
    // A pasted message looks like a question, and needs only some of its words.
    let found = store.search("connection was refused by that peer").run()?;
    assert!(found.hits[0].snippet.text.contains("refused"), "{found:?}");
    assert_eq!(store.search("connection in:text").run()?.hits.len(), 0);
    Ok(())
}

#[test]
fn a_version_or_identifier_that_is_nowhere_is_told() -> Result<()> {
    let store = store(&["the release v1.2.3 is out", "a release of fox_den"])?;
    for (query, notices) in [
        ("release v9.99.3", vec!["no message in scope has \"v9.99.3\""]),
        (
            "what is in the release of getFoxByName?",
            vec!["no message in scope has \"getFoxByName\""],
        ),
        ("release v1.2.3 paint", vec![]),
        ("release fox_den paint", vec![]),
    ] {
        let found = store.search(query).run()?;
        assert_eq!(
            (found.hits.is_empty(), found.notices),
            (false, notices.iter().map(|it| (*it).to_owned()).collect()),
            "{query}"
        );
    }
    Ok(())
}

#[test]
fn words_of_two_letters_are_found() -> Result<()> {
    let store = store(&["ok", "that is ok then", "go to bed", "a fox"])?;
    assert_eq!(store.search("ok").run()?.hits.len(), 2);
    assert_eq!(store.search("is it ok?").run()?.hits.len(), 2);
    assert_eq!(answer(&store.search("go").run()?), (vec!["go to bed"], vec![]));
    Ok(())
}

#[test]
fn of_two_people_neither_is_preferred() -> Result<()> {
    let store = Store::open_in_memory()?;
    let person = |role, text: &str, name: &str| {
        Message::new(role, vec![Part::text(text)])
            .with_metadata(serde_json::json!({"author": name}))
    };
    store.session("s")?.append_all([
        person(Role::User, "we saw a boat and many other things there", "ann"),
        person(Role::Assistant, "my boat is red", "bob"),
    ])?;
    let found = store.search("where is my boat?").run()?;
    assert_eq!(answer(&found).0[0], "my boat is red");
    Ok(())
}

#[test]
fn some_of_the_words_are_enough_only_if_no_message_has_them_all() -> Result<()> {
    let store = store(&["red fox", "a red sky", "red paint", "a fox", "blue"])?;
    let found = store.search("red fox").run()?;
    assert_eq!(answer(&found), (vec!["red fox"], vec![]));
    let found = store.search("fox sky").run()?;
    assert_eq!(answer(&found).1.len(), 0);
    assert_eq!((found.hits.len(), found.matched), (3, Matched::Relaxed));
    Ok(())
}
