//! Every tool, called as a model calls it: by name and input, each call and its answer kept in the conversation.

use crate::common::Scratch;
use serde_json::{Value, json};
use talktree::{
    Block, BoxError, Document, Message, MessageId, Part, ReadProvider, Result, Role, Session,
    SessionBuilder, SkillProvider, Store, Tool, estimate_tokens,
};

/// The text of the skill that is loaded and unloaded.
const SKILL: &str = "Use pdftotext with the elephant option.";

fn all(store: &Store, id: &str) -> SessionBuilder {
    store
        .session_builder(id)
        .block("soul", Block::text("Be brief."))
        .block("memory", Block::stored().max_tokens(20))
        .block("skills", Block::stored_skills())
        .block("facts", Block::knowledge())
        .block("log", Block::history())
        .history_tools()
        .session_search()
}

/// Returns a session with every block and tool, and a skill to load.
fn chat(store: &Store) -> Result<Session> {
    let chat = all(store, "s").open()?;
    let skill = Document::new("pdf", SKILL).titled("PDF").described("Reads PDFs");
    chat.context().set_document("skills", &skill)?;
    Ok(chat)
}

/// Runs a call as a program does: the call and its answer are two messages.
fn play(chat: &Session, call: &str, name: &str, input: Value) -> Result<String> {
    let asked = Part::tool_call(name, call, input.clone());
    chat.append(Message::new(Role::Assistant, vec![asked]).with_id(format!("ask {call}")))?;
    let answer = chat.tools().call(name, input)?;
    let told = Part::tool_result(name, call, json!(answer));
    chat.append(Message::new(Role::Tool, vec![told]).with_id(format!("told {call}")))?;
    Ok(answer)
}

fn pdf() -> Value {
    json!({"label": "skills", "key": "pdf"})
}

/// Returns the answers of tools in these messages, oldest first.
fn outputs(messages: &[Message]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let outputs = parts.filter_map(|part| match part {
        Part::Tool(Tool { output: Some(output), .. }) => Some(output.value()),
        _ => None,
    });
    outputs.map(|output| output.as_str().unwrap_or_default().to_owned()).collect()
}

fn content(chat: &Session, label: &str) -> Result<String> {
    Ok(chat.block(label)?.unwrap_or_default().content)
}

fn loaded(chat: &Session) -> Result<Vec<String>> {
    Ok(chat.context().loaded()?.into_iter().map(|(label, key)| format!("{label}/{key}")).collect())
}

#[test]
fn only_tools_with_something_to_do_are_offered_and_can_be_called() -> Result<()> {
    let store = Store::open_in_memory()?;
    let names = |builder: SessionBuilder| -> Result<String> {
        let tools = builder.open()?.tools();
        Ok(tools.definitions().iter().map(|tool| tool.name).collect::<Vec<_>>().join(" "))
    };
    let new = || store.session_builder("s");
    assert_eq!(names(new())?, "");
    assert_eq!(names(new().block("soul", Block::text("x")))?, "");
    assert_eq!(names(new().block("memory", Block::stored()))?, "set_context");
    assert_eq!(names(new().block("log", Block::history()))?, "search_context");
    let skills = new().block("skills", Block::stored_skills());
    assert_eq!(names(skills)?, "set_context load_context unload_context");
    let everything = "set_context load_context unload_context search_context session_search \
                      history_search history_expand history_branches";
    assert_eq!(names(all(&store, "s"))?, everything);

    let bare = new().open()?.tools();
    for name in everything.split(' ') {
        let answer = bare.call(name, json!({"label": "memory", "query": "x", "key": "k"}))?;
        assert!(answer.starts_with("Error: "), "{name}: {answer}");
    }
    Ok(())
}

#[test]
fn set_context_replaces_and_appends_a_text() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = chat(&store)?;
    let set = |input: Value| chat.tools().call("set_context", input);
    let answer = set(json!({"label": "memory", "content": "Likes coffee."}))?;
    assert_eq!(answer, "Written to \"memory\": 20% (4/20 tokens)");
    set(json!({"label": "memory", "content": "Likes tea.", "action": "replace"}))?;
    assert_eq!(content(&chat, "memory")?, "Likes tea.");
    let more = json!({"label": "memory", "content": "Lives in Jena.", "action": "append"});
    assert_eq!(set(more)?, "Written to \"memory\": 35% (7/20 tokens)");
    assert_eq!(content(&chat, "memory")?, "Likes tea.\nLives in Jena.");

    // Over the limit: both figures, and nothing was written.
    for action in ["replace", "append"] {
        let long = "x".repeat(100);
        let answer = set(json!({"label": "memory", "content": long, "action": action}))?;
        let tokens = if action == "append" { 32 } else { 25 };
        let expected =
            format!("Error: context block \"memory\" holds {tokens} tokens, over its limit of 20");
        assert_eq!(answer, expected);
    }
    assert_eq!(content(&chat, "memory")?, "Likes tea.\nLives in Jena.");
    assert_eq!(chat.context().versions("memory", None)?.len(), 3);
    Ok(())
}

#[test]
fn set_context_writes_documents_by_title_and_by_key() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    let set = |content: &str, action: &str, metadata: Value| {
        let input = json!({"label": "skills", "content": content, "action": action,
                           "metadata": metadata});
        chat.tools().call("set_context", input)
    };
    let load = |key: &str| chat.context().load("skills", key);
    let answer =
        set("Use curl.", "replace", json!({"title": "web", "description": "Reads pages"}))?;
    assert_eq!(answer, "Written to \"skills\" under the key \"web\": 3 tokens");
    assert_eq!(content(&chat, "skills")?, "- web: Reads pages");

    // The same title is the same document; one that only looks like it is not.
    set("Use wget.", "replace", json!({"title": "web"}))?;
    assert_eq!(load("web")?.as_deref(), Some("Use wget."));
    assert_eq!(content(&chat, "skills")?, "- web: Reads pages");
    let answer = set("A spider's.", "replace", json!({"title": "Web"}))?;
    assert_eq!(chat.context().documents("skills")?.len(), 2, "{answer}");
    assert_eq!(load("web")?.as_deref(), Some("Use wget."));

    // By key, whatever the title; an append keeps the title.
    set("Use aria2.", "replace", json!({"key": "web", "title": "The web"}))?;
    let answer = set("And curl.", "append", json!({"key": "web"}))?;
    assert!(answer.starts_with("Written to \"skills\" under the key \"web\": "), "{answer}");
    assert_eq!(load("web")?.as_deref(), Some("Use aria2.\nAnd curl."));
    assert!(content(&chat, "skills")?.contains("- web: Reads pages"));
    let titles = chat.context().documents("skills")?.into_iter().map(|document| document.title);
    assert!(titles.flatten().any(|title| title == "The web"));
    set("By title.", "append", json!({"title": "new"}))?;
    set("Again.", "append", json!({"title": "new"}))?;
    assert_eq!(load("new")?.as_deref(), Some("By title.\nAgain."));

    // Without either, the same content is the same document, and there is nothing to add to.
    let first = chat.tools().call("set_context", json!({"label": "facts", "content": "One."}))?;
    let again = chat.tools().call("set_context", json!({"label": "facts", "content": "One."}))?;
    assert_eq!(first, again);
    assert_eq!(content(&chat, "facts")?, "1 entry indexed.");
    let input = json!({"label": "facts", "content": "Two.", "action": "append"});
    let answer = chat.tools().call("set_context", input)?;
    assert!(answer.starts_with("Error: ") && answer.contains("title or key"), "{answer}");
    assert_eq!(content(&chat, "facts")?, "1 entry indexed.");
    Ok(())
}

#[test]
fn an_unloaded_skill_is_a_marker_in_histories_and_stays_stored() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let chat = chat(&scratch.store)?;
    assert_eq!(play(&chat, "1", "load_context", pdf())?, SKILL);
    assert_eq!(loaded(&chat)?, ["skills/pdf"]);
    assert_eq!(outputs(&chat.history()?), [SKILL]);

    let answer = play(&chat, "2", "unload_context", pdf())?;
    assert_eq!(answer, "Unloaded \"pdf\" of \"skills\".");
    assert!(loaded(&chat)?.is_empty());
    let marker = "[unloaded; load_context with label \"skills\" and key \"pdf\" gives it again]";
    assert_eq!(outputs(&chat.history()?), [marker, &answer]);
    assert_eq!(outputs(&chat.raw_history()?), [SKILL, &answer]);
    let message = chat.message(&"told 1".into())?;
    assert_eq!(outputs(message.as_slice()), [SKILL]);
    let found = chat.search("in:tools elephant").run()?;
    let found: Vec<_> = found.hits.iter().map(|hit| hit.id.as_str()).collect();
    assert_eq!(found, ["told 1"], "what is stored is found");

    let again = play(&chat, "3", "unload_context", pdf())?;
    assert_eq!(again, "Error: document \"pdf\" of \"skills\" is not loaded");

    // It can be loaded again; the first copy stays a marker, also after the store is reopened.
    assert_eq!(play(&chat, "4", "load_context", pdf())?, SKILL);
    scratch.reopen()?;
    let chat = all(&scratch.store, "s").open()?;
    assert_eq!(loaded(&chat)?, ["skills/pdf"]);
    assert_eq!(outputs(&chat.history()?), [marker, &answer, &again, SKILL]);
    play(&chat, "5", "unload_context", pdf())?;
    assert!(!outputs(&chat.history()?).contains(&SKILL.to_owned()));
    assert_eq!(outputs(&chat.raw_history()?).iter().filter(|text| *text == SKILL).count(), 2);
    let verified = scratch.store.verify(|_| {})?;
    assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    Ok(())
}

#[test]
fn unloading_replaces_every_copy_even_one_under_a_summary() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = chat(&store)?;
    play(&chat, "1", "load_context", pdf())?;
    play(&chat, "2", "load_context", pdf())?;
    let compaction =
        chat.add_compaction("A skill was loaded.", &"ask 1".into(), &"told 1".into())?.id;
    // A call and its answer in one part, as UIs store them.
    let mut part = Part::tool_call("load_context", "3", pdf());
    if let Part::Tool(tool) = &mut part {
        tool.state = Some("output-available".to_owned());
        tool.output = Some(json!(SKILL).into());
    }
    chat.append(Message::new(Role::Assistant, vec![part]).with_id("both"))?;
    let other = Document::new("web", "Use curl.");
    chat.context().set_document("skills", &other)?;
    play(&chat, "4", "load_context", json!({"label": "skills", "key": "web"}))?;
    assert_eq!(loaded(&chat)?, ["skills/pdf", "skills/web"]);

    play(&chat, "5", "unload_context", pdf())?;
    assert_eq!(loaded(&chat)?, ["skills/web"]);
    chat.remove_compaction(&compaction)?;
    let shown = outputs(&chat.history()?);
    assert_eq!(shown.iter().filter(|text| text.starts_with("[unloaded; ")).count(), 3, "{shown:?}");
    assert!(!shown.contains(&SKILL.to_owned()));
    assert!(shown.contains(&"Use curl.".to_owned()), "another document stays");
    assert_eq!(outputs(&chat.raw_history()?).iter().filter(|text| *text == SKILL).count(), 3);
    Ok(())
}

#[test]
fn a_program_unloads_as_a_model_does() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = chat(&store)?;
    play(&chat, "1", "load_context", pdf())?;
    assert_eq!(chat.context().unload("skills", "pdf")?, Some(1));
    assert!(loaded(&chat)?.is_empty());
    assert_eq!(chat.context().unload("skills", "pdf")?, None);
    play(&chat, "2", "load_context", pdf())?;
    assert_eq!(loaded(&chat)?, ["skills/pdf"]);
    Ok(())
}

#[test]
fn loaded_skills_are_those_of_the_path_to_the_head() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let chat = chat(&scratch.store)?;
    let start = chat.append(Message::user("hello").with_id("start"))?.id;
    play(&chat, "1", "load_context", pdf())?;
    let wrong = play(&chat, "2", "load_context", json!({"label": "skills", "key": "pdfs"}))?;
    let expected =
        "Error: context block \"skills\" has no document \"pdfs\"; did you mean \"pdf\"?";
    assert_eq!(wrong, expected);
    assert_eq!(loaded(&chat)?, ["skills/pdf"]);

    scratch.reopen()?;
    let chat = all(&scratch.store, "s").open()?;
    assert_eq!(loaded(&chat)?, ["skills/pdf"]);
    chat.append_to(&start, Message::assistant("Another course."))?;
    assert!(loaded(&chat)?.is_empty());
    let fork = chat.fork(&"told 1".into(), "A fork")?;
    assert_eq!(loaded(&fork)?, ["skills/pdf"]);
    play(&fork, "3", "unload_context", pdf())?;
    assert!(loaded(&fork)?.is_empty());
    chat.checkout(&"told 2".into())?;
    assert_eq!(loaded(&chat)?, ["skills/pdf"], "the fork's unloading is its own");
    assert!(outputs(&chat.history()?).contains(&SKILL.to_owned()));

    // Without a block of skills no message is read.
    let bare = scratch.store.session("s")?;
    assert!(bare.context().loaded()?.is_empty());
    Ok(())
}

/// A document that is shaped like an answer that failed.
struct Odd;

impl ReadProvider for Odd {
    fn get(&self) -> std::result::Result<String, BoxError> {
        Ok("- trap: reads like an error".to_owned())
    }
}

impl SkillProvider for Odd {
    fn load(&self, key: &str) -> std::result::Result<Option<String>, BoxError> {
        Ok((key == "trap").then(|| "Error: 404 means that nothing is there.".to_owned()))
    }
}

#[test]
fn a_document_that_reads_like_an_error_is_loaded_and_unloaded_like_any() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session_builder("s").block("odd", Block::skills(Odd)).open()?;
    let trap = || json!({"label": "odd", "key": "trap"});
    let answer = play(&chat, "1", "load_context", trap())?;
    assert!(!answer.starts_with("Error: ") && answer.contains("404"), "{answer}");
    assert_eq!(loaded(&chat)?, ["odd/trap"]);
    play(&chat, "2", "unload_context", trap())?;
    assert!(loaded(&chat)?.is_empty());
    assert!(outputs(&chat.history()?)[0].starts_with("[unloaded; "));
    Ok(())
}

#[test]
fn search_context_finds_all_words_then_any_in_every_script() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    let documents = [("shop", "The shop opens at nine."), ("door", "The red door is open.")];
    for (key, text) in documents.into_iter().chain([("palace", "我们昨天参观了故宫博物院")])
    {
        chat.context().set_document("facts", &Document::new(key, text))?;
    }
    let search = |query: &str| {
        chat.tools().call("search_context", json!({"label": "facts", "query": query}))
    };
    assert_eq!(search("shop opening")?, "[shop]\n  The shop opens at nine.");
    let relaxed = search("shop elephant")?;
    let note = "Nothing has all the words; these have some of them.\n\n";
    assert_eq!(relaxed, format!("{note}[shop]\n  The shop opens at nine."));
    assert_eq!(search("故宫")?, "[palace]\n  我们昨天参观了故宫博物院");
    assert_eq!(search("elephant")?, "Nothing found for \"elephant\".");
    assert_eq!(search("\" OR NEAR( *")?, "Nothing found for \"\\\" OR NEAR( *\".");

    // At most ten hits, also for messages of the session itself.
    for n in 0..15 {
        let key = format!("fruit {n}");
        chat.context().set_document("facts", &Document::new(key, "A pear."))?;
    }
    assert_eq!(search("pear")?.matches("[fruit ").count(), 10);
    let id = chat.append(Message::user("Where is the umbrella?"))?.id;
    chat.append(Message::assistant("At home."))?;
    let found =
        chat.tools().call("search_context", json!({"label": "log", "query": "umbrella"}))?;
    assert!(found.starts_with(&format!("[{id}]\n")) && found.contains("umbrella"), "{found}");
    Ok(())
}

#[test]
fn session_search_reads_every_session_and_only_if_it_was_enabled() -> Result<()> {
    let store = Store::open_in_memory()?;
    let elsewhere = store.session("elsewhere")?;
    let id = elsewhere.append(Message::user("The umbrella is in the hall."))?.id;
    let chat = all(&store, "s").open()?;
    chat.append(Message::assistant("Which umbrella?"))?;
    let found = chat.tools().call("session_search", json!({"query": "umbrella hall"}))?;
    assert!(found.starts_with(&format!("[conversation elsewhere, {id}, user, ")), "{found}");
    let both = chat.tools().call("session_search", json!({"query": "umbrella"}))?;
    assert_eq!(both.matches("[conversation ").count(), 2, "{both}");
    let none = chat.tools().call("session_search", json!({"query": "zebra"}))?;
    assert_eq!(none, "Nothing found for \"zebra\".");

    let closed = store.session_builder("s").history_tools().open()?.tools();
    let refused = closed.call("session_search", json!({"query": "umbrella"}))?;
    assert!(refused.starts_with("Error: there is no tool \"session_search\""), "{refused}");
    let own = closed.call("history_search", json!({"query": "umbrella"}))?;
    assert!(!own.contains("hall"), "{own}");
    Ok(())
}

/// Appends two answers to one question; the second leads to the head.
fn branched(chat: &Session) -> Result<()> {
    let question = chat.append(Message::user("Name an elephant").with_id("q"))?.id;
    chat.append(Message::assistant("The elephant Jumbo").with_id("first"))?;
    chat.append_to(&question, Message::assistant("The elephant Babar").with_id("second"))?;
    Ok(())
}

#[test]
fn history_search_marks_branches_and_summaries() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    branched(&chat)?;
    let search = |input: Value| chat.tools().call("history_search", input);
    let everywhere = search(json!({"query": "elephant"}))?;
    assert_eq!(everywhere, search(json!({"query": "elephant", "branches": "all"}))?);
    for id in ["[q, user, ", "[first, assistant, ", "[second, assistant, "] {
        assert!(everywhere.contains(id), "{everywhere}");
    }
    let heads = everywhere.lines().filter(|line| line.starts_with('['));
    let off: Vec<_> = heads.filter(|line| line.contains("on another branch")).collect();
    assert!(matches!(&off[..], [one] if one.starts_with("[first, ")), "{off:?}");

    let current = search(json!({"query": "elephant", "branches": "current"}))?;
    assert!(current.contains("[second, ") && !current.contains("[first, "), "{current}");
    let compaction = chat.add_compaction("About animals.", &"q".into(), &"second".into())?.id;
    let compacted = search(json!({"query": "Babar", "branches": "current"}))?;
    assert!(compacted.contains(&format!("under summary {compaction}")), "{compacted}");
    assert_eq!(search(json!({"query": "zebra"}))?, "Nothing found for \"zebra\".");
    Ok(())
}

#[test]
fn history_expand_pages_through_the_messages_of_a_summary() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").max_answer_tokens(150).open()?;
    let message = |n: usize| {
        let text = format!("This is what was said as number {n}. {}", "word ".repeat(n * 5 % 90));
        Message::user(text).with_id(format!("m{n}"))
    };
    chat.append_all((0..30).map(message))?;
    let compaction = chat.add_compaction("Numbers.", &"m0".into(), &"m29".into())?.id;
    let expand = |input: Value| chat.tools().call("history_expand", input);
    // The id of the summary in a history is accepted, too.
    let by_message = expand(json!({"id": compaction.as_message()}))?;
    assert_eq!(by_message, expand(json!({"id": compaction}))?);

    let (mut seen, mut after) = (Vec::new(), Value::Null);
    for _ in 0..60 {
        let page = expand(json!({"id": compaction, "after": after}))?;
        assert!(estimate_tokens(&page) <= 150, "{page}");
        if page == "That was all." {
            break;
        }
        let heads = page.lines().filter(|line| line.starts_with("[m"));
        let ids = heads.filter_map(|line| line[1..].split(", ").next());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        assert!(!ids.is_empty(), "{page}");
        after = json!(ids.last());
        let left = 30 - seen.len() - ids.len();
        let hint = format!("[{left} more; call again with after {after}]");
        assert_eq!(page.ends_with(&hint), left > 0, "{page}");
        seen.extend(ids);
    }
    assert_eq!(seen, (0..30).map(|n| format!("m{n}")).collect::<Vec<_>>());

    for (input, expected) in [
        (json!({"id": "nobody"}), "no compaction \"nobody\""),
        (json!({"id": compaction, "after": "m30"}), "no message \"m30\""),
        (json!({"id": "m3"}), "no compaction \"m3\""),
    ] {
        let answer = expand(input)?;
        assert!(answer.starts_with("Error: ") && answer.contains(expected), "{answer}");
    }
    Ok(())
}

#[test]
fn history_branches_lists_places_and_the_current_branch() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    let branches = |input: Value| chat.tools().call("history_branches", input);
    assert_eq!(branches(json!({}))?, "This conversation has no branches.");
    branched(&chat)?;
    let list = "After [q]:\n- [first, assistant] The elephant Jumbo\n\
                - [second, assistant, leads here] The elephant Babar";
    assert_eq!(branches(json!({}))?, list);
    assert_eq!(branches(json!(null))?, list);
    assert_eq!(branches(json!({"id": "q"}))?, list);
    chat.checkout(&"first".into())?;
    assert!(branches(json!({}))?.contains("[first, assistant, leads here] "));
    assert_eq!(branches(json!({"id": "first"}))?, "Nothing follows first.");
    chat.append_root(Message::user("Another start").with_id("root"))?;
    assert!(branches(json!({}))?.starts_with("At the beginning:\n- [q, user] Name an elephant\n"));
    let unknown = branches(json!({"id": "nobody"}))?;
    assert!(unknown.starts_with("Error: ") && unknown.contains("\"nobody\""), "{unknown}");
    Ok(())
}

/// The tools searched and expanded all stored messages, so a model read those that its history leaves out.
#[test]
fn no_tool_shows_a_hidden_message() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    let hidden = |text: &str, id: &str| Message::system(text).hidden().with_id(id);
    chat.append(Message::user("The zebra is late.").with_id("a"))?;
    chat.append(hidden("A platypus and a zebra.", "b"))?;
    chat.append(Message::user("Where is it?").with_id("c"))?;
    let elsewhere = store.session("elsewhere")?;
    elsewhere.append(hidden("Another platypus.", "d"))?;
    elsewhere.append(Message::user("A zebra elsewhere.").with_id("e"))?;
    let summary = chat.add_compaction("Animals.", &"a".into(), &"c".into())?.id;

    let call = |name: &str, input: Value| chat.tools().call(name, input);
    // `platypuss` is not corrected by a word that only hidden messages have.
    for query in ["platypus", "platypuss", "platy*", "system platypus"] {
        let none = format!("Nothing found for \"{query}\".");
        assert_eq!(call("history_search", json!({"query": query}))?, none);
        assert_eq!(call("history_search", json!({"query": query, "branches": "current"}))?, none);
        assert_eq!(call("session_search", json!({"query": query}))?, none);
        assert_eq!(call("search_context", json!({"label": "log", "query": query}))?, none);
    }
    for query in ["zebra", "zebra platypus", "role:system", "after:1999", "what zebra was it?"] {
        for (name, input) in [
            ("history_search", json!({"query": query})),
            ("session_search", json!({"query": query})),
            ("search_context", json!({"label": "log", "query": query})),
        ] {
            let answer = call(name, input)?.replace("\"zebra platypus\"", "");
            assert!(!answer.contains("platypus"), "{name} {query}: {answer}");
            assert_eq!(answer.contains("**zebra**"), query.contains("zebra"), "{name}: {answer}");
        }
    }
    let expanded = call("history_expand", json!({"id": summary}))?;
    assert!(expanded.contains("late") && expanded.contains("Where"), "{expanded}");
    assert!(!expanded.contains("platypus"), "{expanded}");
    let after = call("history_expand", json!({"id": summary, "after": "b"}))?;
    assert!(after.starts_with("Error: ") && after.contains("no message \"b\""), "{after}");

    // The program finds them.
    assert_eq!(store.search("platypus").run()?.hits.len(), 2);
    assert_eq!(chat.search("platypus").run()?.hits[0].id.as_str(), "b");
    assert_eq!(chat.expand_raw(&summary)?.len(), 3);
    Ok(())
}

#[test]
fn a_model_reads_full_pages_of_what_is_not_hidden() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    chat.append_all((0..40).map(|n| {
        let message = Message::user(format!("zebra {n}")).with_id(format!("m{n}"));
        if n < 10 { message } else { message.hidden() }
    }))?;
    chat.append(Message::assistant("I see."))?;
    for query in ["zebra", "role:user zebra", "role:user", "zebra OR lion"] {
        let answer = chat.tools().call("history_search", json!({"query": query}))?;
        assert_eq!(answer.matches("[m").count(), 10, "{query}: {answer}");
        for n in 0..10 {
            assert!(answer.contains(&format!("[m{n}, user, ")), "{query}: {answer}");
        }
    }
    Ok(())
}

/// A hidden message is no branch; what follows it is.
#[test]
fn history_branches_steps_over_hidden_messages() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").open()?;
    let branches = |input: Value| chat.tools().call("history_branches", input);
    chat.append(Message::user("Name an animal").with_id("q"))?;
    chat.append(Message::assistant("A lion").with_id("first"))?;
    chat.append_to(&"q".into(), Message::system("platypus").hidden().with_id("h"))?;
    assert_eq!(branches(json!({}))?, "This conversation has no branches.");
    assert_eq!(branches(json!({"id": "q"}))?, "After [q]:\n- [first, assistant] A lion");
    chat.append(Message::assistant("A zebra").with_id("second"))?;
    let list = "After [q]:\n- [first, assistant] A lion\n\
                - [second, assistant, leads here] A zebra";
    assert_eq!(branches(json!({}))?, list);
    assert_eq!(branches(json!({"id": "q"}))?, list);
    Ok(())
}

#[test]
fn answers_are_cut_to_the_budget_and_say_so() -> Result<()> {
    const MAX: u64 = 80;
    let store = Store::open_in_memory()?;
    let chat = all(&store, "s").max_answer_tokens(MAX).open()?;
    let long = "The elephant goes on and on and on.\n".repeat(200);
    chat.context().set_document("skills", &Document::new("pdf", long.as_str()))?;
    for n in 0..12 {
        let fact = Document::new(format!("fact {n}"), long.as_str());
        chat.context().set_document("facts", &fact)?;
    }
    let parent = chat.append(Message::user("elephant ".repeat(300)).with_id("m0"))?.id;
    for n in 1..40 {
        chat.append_to(
            &parent,
            Message::user(format!("elephant {long}")).with_id(format!("m{n}")),
        )?;
    }
    let head = MessageId::from("m39");
    let compaction = chat.add_compaction("Elephants.", &head, &head)?.id;
    let calls = [
        ("load_context", pdf()),
        ("search_context", json!({"label": "facts", "query": "elephant"})),
        ("search_context", json!({"label": "log", "query": "elephant"})),
        ("session_search", json!({"query": "elephant"})),
        ("history_search", json!({"query": "elephant"})),
        ("history_expand", json!({"id": compaction})),
        ("history_branches", json!({})),
        ("load_context", json!({"label": "x".repeat(9_999), "key": "y".repeat(9_999)})),
        ("x", json!("y".repeat(9_999))),
    ];
    for (name, input) in calls {
        let answer = chat.tools().call(name, input)?;
        let tokens = estimate_tokens(&answer);
        assert!(tokens <= MAX, "{name}: {tokens} tokens: {answer}");
        let is_cut = answer.contains("[cut: ") && answer.contains(" tokens are left out]");
        assert_eq!(is_cut, !answer.starts_with("Error: "), "{name}: {answer}");
    }
    // Without a custom limit the default applies.
    let chat = all(&store, "s").open()?;
    let long = "The elephant goes on. ".repeat(9_000);
    chat.context().set_document("skills", &Document::new("pdf", long.as_str()))?;
    let answer = chat.tools().call("load_context", pdf())?;
    let range = 9_900..=10_000;
    assert!(range.contains(&estimate_tokens(&answer)), "{}", estimate_tokens(&answer));
    Ok(())
}

/// A program and [`Context::loaded`](talktree::Context::loaded) recognise failures by `Error: `.
#[test]
fn every_error_begins_alike() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = chat(&store)?;
    let calls = [
        ("set_context", json!({"label": "soul", "content": "x"})),
        ("set_context", json!({"label": "memory", "content": "x", "metadata": {"key": "k"}})),
        ("set_context", json!({"label": "skills", "content": " "})),
        ("load_context", json!({"label": "memory", "key": "pdf"})),
        ("load_context", json!({"label": "skills", "key": "none"})),
        ("unload_context", pdf()),
        ("search_context", json!({"label": "skills", "query": "x"})),
        ("search_context", json!({"label": "facts", "query": " "})),
        ("session_search", json!({})),
        ("history_search", json!({"query": "x", "branches": "some"})),
        ("history_expand", json!({"id": "x"})),
        ("history_branches", json!({"id": "x"})),
        ("history", json!({})),
    ];
    let before = chat.blocks()?;
    for (name, input) in calls {
        let answer = chat.tools().call(name, &input)?;
        assert!(answer.starts_with("Error: "), "{name} {input}: {answer}");
        assert!(answer.len() < 300 && !answer.contains('\n'), "{answer}");
    }
    assert_eq!(chat.blocks()?, before);
    Ok(())
}
