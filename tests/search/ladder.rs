//! A query that finds little or nothing as it is written takes steps, and the answer names them and counts what they find.

use talktree::search::{Step, Taken};
use talktree::{Found, Matched, Message, Part, Result, Role, Store};

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|text| Message::user(*text)))?;
    Ok(store)
}

/// Returns the texts that are found, and what was done.
fn answer(found: &Found) -> (Vec<&str>, Vec<String>) {
    let texts = found.hits.iter().map(|hit| hit.snippet.text.as_str()).collect();
    (texts, found.steps.iter().map(Taken::to_string).collect())
}

#[test]
fn each_step_is_named_and_finds_what_was_meant() -> Result<()> {
    let texts =
        ["a compaction of history", "the session manager", "sessionstore opens", "a hard link"];
    let store = store(&texts)?;
    for (query, text, step) in [
        ("compac", 0, "1 hit: searched for words that begin with \"compac\""),
        ("seesion manager", 1, "1 hit: searched for \"session\" instead of \"seesion\""),
        ("session store", 2, "1 hit: searched for \"sessionstore*\" instead of \"session store\""),
        ("hardlink", 3, "1 hit: searched for \"hard link\" instead of \"hardlink\""),
    ] {
        let found = store.search(query).run()?;
        assert_eq!(answer(&found), (vec![texts[text]], vec![step.to_owned()]), "{query}");
        assert_eq!(found.matched, Matched::All, "{query}");
        let sessions = store.search(query).by_session().run()?;
        assert_eq!((sessions.sessions.len(), sessions.steps), (1, found.steps), "{query}");
    }
    Ok(())
}

/// The table of terms has no word of more than 40 letters, so nothing was found.
#[test]
fn the_beginning_of_a_very_long_identifier_is_enough() -> Result<()> {
    let text = "getUserByIdentifierOrElseCreateANewOneAtOnce()";
    let found = store(&[text])?.search("getUserById").run()?;
    let step = "1 hit: searched for words that begin with \"getUserById\"";
    assert_eq!(answer(&found), (vec![text], vec![step.to_owned()]));
    Ok(())
}

#[test]
fn what_only_tools_have_is_found_unless_the_query_names_a_part() -> Result<()> {
    let store = store(&["fox"])?;
    let call = Part::tool_call("shell", "c", serde_json::json!({"command": "kubectl apply"}));
    store.session("s")?.append(Message::new(Role::Assistant, vec![call]))?;
    let found = store.search("kubectl").run()?;
    assert_eq!(found.steps, [Taken::new(Step::Tools, 1)]);
    assert_eq!(found.steps[0].to_string(), "1 hit in reasoning and tools");
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
    assert!(found.hits[1].words[0].starts_with("sessionstore"), "{found:?}");
    // Pages are of one order, and each names the same steps.
    for (offset, hit) in found.hits.iter().enumerate() {
        let page = store.search("session store").limit(1).offset(offset).run()?;
        assert_eq!((&page.hits[..], &page.steps), (&[hit.clone()][..], &found.steps));
    }
    Ok(())
}

#[test]
fn hits_in_tools_are_counted_where_the_text_has_little() -> Result<()> {
    let store = store(&["kubectl applies", "a fox"])?;
    let chat = store.session("s")?;
    chat.append_all((0..7).map(|n| call(&format!("kubectl apply {n}"))))?;
    let found = store.search("kubectl").run()?;
    let step = "7 hits more in reasoning and tools, which `in:all` finds";
    assert_eq!(answer(&found), (vec!["kubectl applies"], vec![step.to_owned()]));
    assert_eq!(found.steps, [Taken::new(Step::MoreInTools, 7)]);
    assert_eq!(store.search("kubectl").by_session().run()?.steps, found.steps);
    assert_eq!(store.search("in:all kubectl").run()?.hits.len(), 8);
    // Only what passes the filters counts.
    assert_eq!(store.search("role:user kubectl").run()?.steps, []);
    assert_eq!(store.search("what is the kubectl fox?").run()?.steps, found.steps);
    assert_eq!(store.search("kubectl in:text").run()?.steps, []);

    // Two more in the text are enough.
    chat.append_all(["kubectl once", "kubectl twice"].map(Message::user))?;
    let found = store.search("kubectl").run()?;
    assert_eq!((found.hits.len(), found.steps.len()), (3, 0));
    // If the text has nothing, they are hits.
    chat.append_all((0..2).map(|n| call(&format!("helm upgrade {n}"))))?;
    let found = store.search("helm").run()?;
    assert_eq!((found.hits.len(), &found.steps[..]), (2, &[Taken::new(Step::Tools, 2)][..]));
    Ok(())
}

#[test]
fn some_of_the_words_are_enough_only_if_no_message_has_them_all() -> Result<()> {
    let store = store(&["red fox", "a red sky", "red paint", "a fox", "blue"])?;
    let found = store.search("red fox").run()?;
    assert_eq!(answer(&found), (vec!["red fox"], vec![]));
    let found = store.search("fox sky").run()?;
    assert_eq!(answer(&found).1, ["3 hits: searched for any of the words"]);
    assert_eq!((found.hits.len(), found.matched), (3, Matched::Relaxed));
    Ok(())
}
