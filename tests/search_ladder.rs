//! A query that finds nothing as it is written takes steps, and the answer names them.

use talktree::search::Step;
use talktree::{Found, Matched, Message, Part, Result, Role, Store};

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all(texts.iter().map(|text| Message::user(*text)))?;
    Ok(store)
}

/// Returns the texts that are found, and what was done.
fn answer(found: &Found) -> (Vec<&str>, Vec<String>) {
    let texts = found.hits.iter().map(|hit| hit.snippet.text.as_str()).collect();
    (texts, found.steps.iter().map(Step::to_string).collect())
}

#[test]
fn each_step_is_named_and_finds_what_was_meant() -> Result<()> {
    let texts =
        ["a compaction of history", "the session manager", "sessionstore opens", "a hard link"];
    let store = store(&texts)?;
    for (query, text, step) in [
        ("compac", 0, "searched for words that begin with \"compac\""),
        ("seesion manager", 1, "searched for \"session\" instead of \"seesion\""),
        ("session store", 2, "searched for \"sessionstore*\" instead of \"session store\""),
        ("hardlink", 3, "searched for \"hard link\" instead of \"hardlink\""),
    ] {
        let found = store.search(query).run()?;
        assert_eq!(answer(&found), (vec![texts[text]], vec![step.to_owned()]), "{query}");
        assert_eq!(found.matched, Matched::All, "{query}");
        let sessions = store.search(query).by_session().run()?;
        assert_eq!((sessions.sessions.len(), sessions.steps), (1, found.steps), "{query}");
    }
    Ok(())
}

#[test]
fn what_only_tools_have_is_found_unless_the_query_names_a_part() -> Result<()> {
    let store = store(&["fox"])?;
    let call = Part::tool_call("shell", "c", serde_json::json!({"command": "kubectl apply"}));
    store.session("s")?.append(Message::new(Role::Assistant, vec![call]))?;
    assert_eq!(store.search("kubectl").run()?.steps, [Step::Tools]);
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
