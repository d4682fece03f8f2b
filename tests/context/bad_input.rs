//! Mistakes of people, programs and models: each gives a clear error, writes nothing, and leaves the other blocks
//! unchanged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::common::Scratch;
use serde_json::{Value, json};
use talktree::{
    Block, BoxError, Document, Error, MAX_ID_BYTES, Message, ReadProvider, Result, SearchProvider,
    Session, SkillProvider, Store, StoreStats, WriteProvider,
};

type Answer<T> = std::result::Result<T, BoxError>;

/// Labels, keys and sessions that would collide if a store concatenated them.
const NAMES: [&str; 9] = [
    "memory",
    "memory_s",
    "memory_",
    "_system_prompt",
    "a",
    "a_b",
    "a_b_c",
    "b_c",
    "memory_s_memory",
];

#[test]
fn a_label_is_one_short_line_that_is_not_blank() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (longest, too_long) = ("é".repeat(80), "é".repeat(81));
    let bad = ["", " ", "\t", " x", "x ", "a\nb", "a\0b", "a\u{2028}b", "\u{7f}", &too_long];
    let context = store.session_builder("s").open()?.context().clone();
    for label in bad {
        let by_builder = store.session_builder("s").block(label, Block::stored()).open().map(drop);
        let by_session = store.session_builder("s").block(label, Block::text("x")).open();
        let later = context.add(label, Block::stored());
        for answer in [by_builder, by_session.map(drop), later] {
            let error = answer.unwrap_err();
            assert!(matches!(error, Error::InvalidValue { .. }), "{label:?}: {error}");
            let text = error.to_string();
            assert!(text.starts_with("context label ") && text.len() < 300, "{text}");
        }
    }
    for label in [longest.as_str(), "house rules", "记忆", "'; DROP TABLE message; --", "%"] {
        context.add(label, Block::stored())?;
        context.set(label, label)?;
    }
    assert_eq!(context.blocks()?.len(), 5);
    assert!(context.blocks()?.iter().all(|block| block.content == block.label));
    Ok(())
}

#[test]
fn a_label_is_unique() -> Result<()> {
    let store = Store::open_in_memory()?;
    let first = || store.session_builder("s").block("memory", Block::stored());
    let twice = first().block("memory", Block::text("x")).open().unwrap_err();
    assert_eq!(twice.to_string(), "there is already a context block \"memory\"");
    let chat = first().open()?;
    chat.context().set("memory", "Likes tea.")?;
    let again = chat.context().add("memory", Block::knowledge());
    assert!(matches!(again, Err(Error::BlockExists { .. })), "{again:?}");
    let twice = chat.context().import("# new\n\none\n\n# new\n\ntwo\n");
    assert!(matches!(twice, Err(Error::BlockExists { .. })), "{twice:?}");
    assert_eq!(chat.blocks()?.len(), 1, "the import has added nothing");
    assert_eq!(chat.block("memory")?.unwrap_or_default().content, "Likes tea.");
    Ok(())
}

#[test]
fn a_context_has_at_most_a_thousand_blocks() -> Result<()> {
    let context = Store::open_in_memory()?.session_builder("s").open()?.context().clone();
    for n in 0..1_000 {
        context.add(&n.to_string(), Block::stored())?;
    }
    let more = context.add("more", Block::stored()).unwrap_err();
    assert_eq!(more.to_string(), "a context holds at most 1000 blocks");
    assert!(context.remove("7"));
    context.add("more", Block::stored())
}

fn text_of(session: &str, label: &str, key: &str) -> String {
    format!("<{session}|{label}|{key}>")
}

fn named(store: &Store, session: &str) -> Result<Session> {
    let builder = store.session_builder(session).cached_prompt();
    let builder = NAMES.iter().fold(builder, |builder, label| {
        let documents = format!("{label} documents");
        builder.block(*label, Block::stored()).block(documents, Block::knowledge())
    });
    builder.open()
}

#[test]
fn names_that_were_chosen_to_collide_do_not() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let mut prompts = Vec::new();
    for session in NAMES {
        let chat = named(&scratch.store, session)?;
        for label in NAMES {
            chat.context().set(label, &text_of(session, label, ""))?;
            let document = |key: &str| Document::new(key, text_of(session, label, key));
            chat.context().set_documents(&format!("{label} documents"), NAMES.map(document))?;
        }
        prompts.push(chat.prompt()?);
    }
    scratch.store.remove(&"a_b".into())?;
    scratch.reopen()?;
    for (session, prompt) in NAMES.into_iter().zip(prompts) {
        let chat = named(&scratch.store, session)?;
        let is_there = session != "a_b";
        assert_eq!(chat.context().frozen_prompt()?, is_there.then_some(prompt));
        for label in NAMES {
            let expected = if is_there { text_of(session, label, "") } else { String::new() };
            assert_eq!(chat.block(label)?.unwrap_or_default().content, expected);
            let count = chat.context().versions(label, None)?.len();
            assert_eq!(count, usize::from(is_there));
            for key in NAMES {
                let found = chat.context().load(&format!("{label} documents"), key)?;
                assert_eq!(found, is_there.then(|| text_of(session, label, key)));
            }
        }
    }
    let verified = scratch.store.verify(|_| {})?;
    assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    Ok(())
}

/// A provider of every kind that fails on request.
#[derive(Debug, Clone, Default)]
struct Weak(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    fails_at: Option<&'static str>,
    begun: Vec<String>,
    content: String,
}

impl Weak {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail_at(&self, call: &'static str) {
        self.state().fails_at = Some(call);
    }

    fn mend(&self) {
        self.state().fails_at = None;
    }

    fn call(&self, call: &'static str) -> Answer<MutexGuard<'_, State>> {
        let state = self.state();
        match state.fails_at == Some(call) {
            true => Err(format!("no {call} today").into()),
            false => Ok(state),
        }
    }
}

impl ReadProvider for Weak {
    fn init(&self, label: &str) -> Answer<()> {
        self.call("init")?.begun.push(label.to_owned());
        Ok(())
    }

    fn get(&self) -> Answer<String> {
        Ok(self.call("get")?.content.clone())
    }
}

impl WriteProvider for Weak {
    fn set(&self, content: &str) -> Answer<()> {
        content.clone_into(&mut self.call("set")?.content);
        Ok(())
    }
}

impl SkillProvider for Weak {
    fn load(&self, key: &str) -> Answer<Option<String>> {
        let state = self.call("load")?;
        Ok((key == "pdf").then(|| state.content.clone()))
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn set_keyed(&self, document: &Document) -> Answer<()> {
        document.content.clone_into(&mut self.call("set_keyed")?.content);
        Ok(())
    }
}

impl SearchProvider for Weak {
    fn search(&self, _: &str, _: usize) -> Answer<Vec<Document>> {
        Ok(vec![Document::new("pdf", self.call("search")?.content.as_str())])
    }
}

/// One session with a provider of each kind between blocks that do not fail.
fn with_weak(store: &Store, weak: &Weak) -> Result<Session> {
    let chat = store
        .session_builder("s")
        .block("before", Block::stored())
        .block("note", Block::write(weak.clone()))
        .block("skills", Block::skills(weak.clone()))
        .block("lookup", Block::searchable(weak.clone()))
        .block("after", Block::stored())
        .cached_prompt()
        .open()?;
    chat.context().set("before", "one")?;
    chat.context().set("after", "two")?;
    Ok(chat)
}

/// Checks that a result is the failure of a provider, with the label and the provider's own error.
#[track_caller]
fn assert_failed<T: std::fmt::Debug>(answer: Result<T>, label: &str, call: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Provider { .. }), "{error:?}");
    let text = format!("the provider of context block \"{label}\" failed: no {call} today");
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_provider_that_cannot_be_read_does_not_affect_other_blocks() -> Result<()> {
    let store = Store::open_in_memory()?;
    let weak = Weak::default();
    let chat = with_weak(&store, &weak)?;
    weak.fail_at("get");
    for label in ["note", "skills", "lookup"] {
        assert_failed(chat.block(label), label, "get");
    }
    assert_failed(chat.blocks(), "note", "get");
    assert_failed(chat.prompt(), "note", "get");
    assert_failed(chat.refresh_prompt(), "note", "get");
    assert_eq!(chat.context().frozen_prompt()?, None, "half a prompt is none");
    assert_failed(chat.context().append("note", "more"), "note", "get");
    assert_eq!(chat.block("before")?.unwrap_or_default().content, "one");
    chat.context().set("after", "three")?;
    let input = json!({"label": "note", "content": "more", "action": "append"});
    let answer = chat.tools().call("set_context", input)?;
    let text = "Error: the provider of context block \"note\" failed: no get today";
    assert_eq!(answer, text);

    weak.mend();
    let frozen = chat.prompt()?;
    assert!(frozen.contains("three"));
    weak.fail_at("get");
    chat.context().set("after", "four")?;
    // A frozen prompt needs no provider, and stays if it cannot be rendered again.
    assert_eq!(chat.prompt()?, frozen);
    assert_failed(chat.refresh_prompt(), "note", "get");
    assert_failed(chat.drift(), "note", "get");
    assert_eq!(chat.prompt()?, frozen);
    weak.mend();
    assert!(chat.refresh_prompt()?.contains("four"));
    Ok(())
}

#[test]
fn a_provider_that_fails_to_write_or_search_is_an_error_and_keeps_its_content() -> Result<()> {
    let store = Store::open_in_memory()?;
    let weak = Weak::default();
    let chat = with_weak(&store, &weak)?;
    let context = chat.context();
    context.set("note", "old")?;
    let document = Document::new("pdf", "new");
    weak.fail_at("set");
    assert_failed(context.set("note", "new"), "note", "set");
    assert_failed(context.append("note", "new"), "note", "set");
    weak.fail_at("set_keyed");
    assert_failed(context.set_document("skills", &document), "skills", "set_keyed");
    weak.fail_at("load");
    assert_failed(context.load("skills", "pdf"), "skills", "load");
    weak.fail_at("search");
    assert_failed(context.search("lookup", "x", 5), "lookup", "search");
    weak.fail_at("nothing");
    assert_eq!(chat.block("note")?.unwrap_or_default().content, "old");
    // A provider that does not support writes is not called.
    let refused = context.set_document("lookup", &document);
    assert!(matches!(refused, Err(Error::BlockReadOnly { .. })), "{refused:?}");

    let calls = [
        ("set", "set_context", json!({"label": "note", "content": "new"})),
        ("set_keyed", "set_context", json!({"label": "skills", "content": "new"})),
        ("load", "load_context", json!({"label": "skills", "key": "pdf"})),
        ("search", "search_context", json!({"label": "lookup", "query": "x"})),
    ];
    for (call, tool, input) in calls {
        weak.fail_at(call);
        let answer = chat.tools().call(tool, &input)?;
        let label = input["label"].as_str().unwrap_or_default();
        let text =
            format!("Error: the provider of context block \"{label}\" failed: no {call} today");
        assert_eq!(answer, text);
        weak.mend();
        let answer = chat.tools().call(tool, &input)?;
        assert!(!answer.starts_with("Error: "), "{answer}");
    }
    let read = |label: &str| Ok::<_, Error>(chat.block(label)?.unwrap_or_default().content);
    assert_eq!((read("before")?.as_str(), read("after")?.as_str()), ("one", "two"));
    Ok(())
}

#[test]
fn a_failed_init_is_retried_and_succeeds_once() -> Result<()> {
    let store = Store::open_in_memory()?;
    let weak = Weak::default();
    let builder = store.session_builder("s").block("note", Block::write(weak.clone()));
    let chat = builder.block("after", Block::stored()).open()?;
    weak.fail_at("init");
    assert_failed(chat.block("note"), "note", "init");
    assert_failed(chat.context().set("note", "new"), "note", "init");
    assert_failed(chat.prompt(), "note", "init");
    assert_eq!(weak.state().content, "", "it was written before it had begun");
    chat.context().set("after", "two")?;
    weak.mend();
    for _ in 0..3 {
        chat.context().append("note", "x")?;
    }
    assert_eq!(weak.state().begun, ["note"]);
    Ok(())
}

/// A session with a block of each stored kind, each with a limit, and a text in each.
fn limited(store: &Store) -> Result<Session> {
    let chat = store
        .session_builder("s")
        .block("memory", Block::stored().max_tokens(5))
        .block("house", Block::shared().max_tokens(5))
        .block("skills", Block::stored_skills().max_tokens(5))
        .block("facts", Block::knowledge().max_tokens(5))
        .block("note", Block::write(Weak::default()).max_tokens(5))
        .open()?;
    for label in ["memory", "house", "note"] {
        chat.context().set(label, "Likes tea.")?;
    }
    for label in ["skills", "facts"] {
        chat.context().set_document(label, &Document::new("tea", "Likes tea."))?;
    }
    Ok(chat)
}

/// Checks that a refusal names the block and both figures.
#[track_caller]
fn assert_over<T: std::fmt::Debug>(answer: Result<T>, label: &str, tokens: u64) {
    let text = format!("context block \"{label}\" holds {tokens} tokens, over its limit of 5");
    assert_eq!(answer.unwrap_err().to_string(), text);
}

#[test]
fn a_text_over_the_limit_is_refused_with_both_figures() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = limited(&store)?;
    let context = chat.context();
    let (before, hash) = (chat.blocks()?, figures(&store)?);
    let long = "Likes coffee, and very much so.";
    for label in ["memory", "house", "note"] {
        assert_over(context.set(label, long), label, 8);
        assert_over(context.append(label, "And milk."), label, 6);
    }
    let documents = ["a", "b", "c"].map(|key| {
        let content = if key == "c" { long } else { "Short." };
        Document::new(key, content)
    });
    for label in ["skills", "facts"] {
        assert_over(context.set_document(label, &documents[2]), label, 8);
        assert_over(context.set_documents(label, documents.clone()), label, 8);
        let input = json!({"label": label, "content": "And milk.", "action": "append",
                           "metadata": {"key": "tea"}});
        let answer = chat.tools().call("set_context", input)?;
        let text = format!("Error: context block \"{label}\" holds 6 tokens, over its limit of 5");
        assert_eq!(answer, text);
    }
    let text = format!("# memory\n\nShort.\n\n# house\n\n{long}\n");
    assert_over(context.import(&text), "house", 8);
    assert_eq!((chat.blocks()?, figures(&store)?), (before, hash));

    // A lowered limit applies to later writes.
    let lowered = store
        .session_builder("s")
        .block("memory", Block::stored().max_tokens(2))
        .open()?
        .context()
        .clone();
    assert_eq!(lowered.block("memory")?.unwrap_or_default().content, "Likes tea.");
    lowered.set("memory", "Tea")?;
    assert!(matches!(lowered.restore("memory", None, 1), Err(Error::BlockOverLimit { .. })));
    assert_eq!(lowered.block("memory")?.unwrap_or_default().content, "Tea");
    Ok(())
}

/// The statistics of the store but its size, which a server changes by itself.
fn figures(store: &Store) -> Result<StoreStats> {
    let mut figures = store.stats()?;
    figures.bytes = 0;
    Ok(figures)
}

#[test]
fn a_block_of_ten_megabytes_is_kept_and_one_over_the_limit_of_the_store_refused() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let open = |store: &Store| {
        let builder = store.session_builder("s").block("memory", Block::stored());
        let builder = builder.block("facts", Block::knowledge()).cached_prompt();
        builder.open().map(|chat| chat.context().clone())
    };
    let large = "A line of the large text, 大.\n".repeat(10_000_000 / 31);
    let context = open(&scratch.store)?;
    context.set("memory", &large)?;
    context.set_document("facts", &Document::new("large", format!("{large}umbrella")))?;
    let prompt = context.prompt()?;
    assert!(prompt.len() > large.len() && prompt.contains(&large));
    context.append("memory", "the end")?;
    scratch.reopen()?;
    let context = open(&scratch.store)?;
    assert!(context.prompt()? == prompt);
    let memory = context.block("memory")?.unwrap_or_default().content;
    assert!(memory == format!("{large}\nthe end") || memory == format!("{large}the end"));
    let drift = context.drift()?;
    let texts = (drift[0].frozen.as_ref(), drift[0].current.as_ref());
    assert!(drift.len() == 1 && texts == (Some(&large), Some(&memory)));
    let found = context.search("facts", "umbrella", 5)?;
    assert_eq!(found.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["large"]);

    // The store's limit for messages holds for texts, documents and the frozen prompt.
    let path = scratch.folder.path().join("small.db");
    let small = Store::options().max_message_bytes(1_000).open(path)?;
    let context = open(&small)?;
    context.set("memory", "small")?;
    let before = figures(&small)?;
    let document = Document::new("k", "x".repeat(1_001));
    let refused = [
        context.set("memory", &document.content).map(drop),
        context.append("memory", &document.content).map(drop),
        context.set_document("facts", &document).map(drop),
        context.set_documents("facts", [Document::new("a", "b"), document.clone()]).map(drop),
        context.set_document("facts", &Document::new("k", "").titled("x".repeat(1_001))).map(drop),
    ];
    for answer in refused {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::TooLarge { max: 1_000, .. }), "{error}");
    }
    assert_eq!(figures(&small)?, before);
    let tool = context.tools().call("set_context", json!({"label": "memory", "content": large}))?;
    assert!(tool.starts_with("Error: a context text is 99") && tool.len() < 100, "{tool}");
    context.set("memory", &"x".repeat(990))?;
    assert!(matches!(context.prompt(), Err(Error::TooLarge { .. })));
    assert_eq!(context.frozen_prompt()?, None);
    Ok(())
}

#[test]
fn keys_of_documents_have_the_limit_of_names() -> Result<()> {
    let store = Store::open_in_memory()?;
    let context =
        store.session_builder("s").block("facts", Block::knowledge()).open()?.context().clone();
    let longest = "k".repeat(MAX_ID_BYTES);
    let too_long = Document::new("k".repeat(MAX_ID_BYTES + 1), "x");
    let refused = context.set_documents("facts", [Document::new("fine", "x"), too_long.clone()]);
    assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    assert!(context.documents("facts")?.is_empty(), "all of them or none");
    assert_eq!(context.load("facts", &too_long.key)?, None);
    for odd in ["a\0b", " ", "a\nb"] {
        let refused = context.set_document("facts", &Document::new(odd, "x"));
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    }
    let odd = [longest.as_str(), "../x", "/etc/passwd", "'", "memory", "a b", "键"];
    context.set_documents("facts", odd.map(|key| Document::new(key, key)))?;
    for key in odd {
        assert_eq!(context.load("facts", key)?.as_deref(), Some(key));
        assert_eq!(context.versions("facts", Some(key))?.len(), 1);
    }
    assert_eq!(context.documents("facts")?.len(), odd.len());
    Ok(())
}

fn every_kind(store: &Store) -> Result<Session> {
    let chat = store
        .session_builder("s")
        .block("soul", Block::text("Be brief."))
        .block("memory", Block::stored())
        .block("skills", Block::stored_skills())
        .block("facts", Block::knowledge())
        .history_tools()
        .session_search()
        .cached_prompt()
        .open()?;
    chat.context().set("memory", "Likes tea.")?;
    chat.context().set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    chat.append(Message::user("hello").with_id("m1"))?;
    chat.prompt()?;
    Ok(chat)
}

#[test]
fn an_invalid_call_does_nothing_and_its_error_says_how_to_correct_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = every_kind(&store)?;
    let memory = |content: Value| json!({"label": "memory", "content": content});
    // The tool, its input, and parts of the answer.
    let cases = [
        ("set_memory", json!({}), vec!["there is no tool \"set_memory\""]),
        ("set_contxt", memory(json!("x")), vec!["\"set_contxt\"; did you mean \"set_context\"?"]),
        ("", json!({}), vec!["there is no tool \"\""]),
        ("SET_CONTEXT", memory(json!("x")), vec!["did you mean \"set_context\"?"]),
        ("set_context", json!({}), vec!["\"label\"", "\"content\"", "missing"]),
        ("set_context", json!(null), vec!["missing"]),
        ("set_context", json!({"label": "memory"}), vec!["field \"content\" is missing"]),
        ("set_context", json!({"content": "x"}), vec!["field \"label\" is missing"]),
        ("set_context", memory(json!(5)), vec!["\"content\"", "expected text", "number 5"]),
        ("set_context", memory(json!(["x"])), vec!["\"content\"", "expected text", "a list"]),
        ("set_context", memory(json!(null)), vec!["\"content\""]),
        ("set_context", json!({"label": 7, "content": "x"}), vec!["\"label\"", "number 7"]),
        (
            "set_context",
            json!({"label": "memry", "content": "x"}),
            vec!["\"label\"", "did you mean \"memory\"?"],
        ),
        ("set_context", json!({"label": "Memory", "content": "x"}), vec!["\"memory\""]),
        (
            "set_context",
            json!({"label": "soul", "content": "x"}),
            vec!["\"soul\" cannot be written"],
        ),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "mode": "append"}),
            vec!["\"mode\" is not known"],
        ),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "action": "delete"}),
            vec!["\"action\"", "\"replace\", \"append\""],
        ),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "title": "t"}),
            vec!["it belongs in \"metadata\""],
        ),
        (
            "set_context",
            json!({"label": "skills", "content": "x", "metadata": "t"}),
            vec!["\"metadata\": expected an object"],
        ),
        (
            "set_context",
            json!({"label": "skills", "content": "x", "metadata": {"title": 1}}),
            vec!["\"metadata.title\": expected text"],
        ),
        (
            "set_context",
            json!({"label": "skills", "content": "x", "metadata": {"key": "a\nb"}}),
            vec!["a key is one line"],
        ),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "metadata": {"key": "k"}}),
            vec!["holds one text"],
        ),
        ("set_context", json!({"label": "skills", "content": ""}), vec!["\"content\" is blank"]),
        ("set_context", json!([memory(json!("x"))]), vec!["not a JSON object"]),
        ("set_context", json!(true), vec!["not a JSON object"]),
        ("set_context", json!("label=memory"), vec!["not valid JSON"]),
        ("set_context", json!("[1]"), vec!["not a JSON object"]),
        (
            "set_context",
            json!("{\"label\": \"memory\", \"content\": \"x\""),
            vec!["not valid JSON"],
        ),
        ("set_context", json!("{\"label\": \"memory\", \"content\": 1}"), vec!["expected text"]),
        (
            "load_context",
            json!({"label": "memory", "key": "pdf"}),
            vec!["\"memory\" cannot be loaded from", "\"skills\""],
        ),
        ("load_context", json!({"label": "skills", "key": ""}), vec!["\"key\" is blank"]),
        ("load_context", json!({"label": "skills", "key": "pdf2"}), vec!["did you mean \"pdf\"?"]),
        ("unload_context", json!({"label": "facts", "key": "pdf"}), vec!["\"facts\" cannot be"]),
        ("unload_context", json!({"label": "skills", "key": "pdf"}), vec!["is not loaded"]),
        ("search_context", json!({"label": "memory", "query": "x"}), vec!["cannot be searched"]),
        ("search_context", json!({"label": "facts", "query": {}}), vec!["expected text"]),
        ("session_search", json!({"query": ["x"]}), vec!["expected text"]),
        ("history_search", json!({"query": "x", "branches": "here"}), vec!["\"all\", \"current\""]),
        ("history_expand", json!({"id": 5}), vec!["expected text"]),
        ("history_expand", json!({"id": "m1"}), vec!["no compaction \"m1\""]),
        ("history_branches", json!({"id": "m2"}), vec!["no message \"m2\""]),
    ];
    let state = || talktree::Result::Ok((chat.blocks()?, figures(&store)?, chat.prompt()?));
    let before = state()?;
    for (name, input, expected) in cases {
        let answer = chat.tools().call(name, &input)?;
        assert!(answer.starts_with("Error: "), "{name} {input}: {answer}");
        assert!(answer.len() < 400, "{name} {input}: {answer}");
        for part in expected {
            assert!(answer.contains(part), "{name} {input}: {answer}");
        }
    }
    assert_eq!(state()?, before);
    assert!(chat.drift()?.is_empty());

    // Valid input is accepted in any form.
    let text = json!("{\"label\": \"memory\", \"content\": \"Likes \\\"coffee\\\".\"}");
    assert!(chat.tools().call("set_context", text)?.starts_with("Written to \"memory\": "));
    assert_eq!(chat.block("memory")?.unwrap_or_default().content, "Likes \"coffee\".");
    let nulls = json!({"label": "memory", "content": "x", "action": null, "metadata": null});
    assert!(chat.tools().call("set_context", nulls)?.starts_with("Written to \"memory\": "));
    Ok(())
}

#[test]
fn a_call_of_any_size_and_depth_gets_a_short_answer() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = every_kind(&store)?;
    let before = figures(&store)?;
    let huge = "x".repeat(1 << 20);
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!({ "label": deep });
    }
    let inputs = [
        json!({"label": huge, "content": "x"}),
        json!({"label": "memory", "content": "x", "action": huge}),
        json!({"label": "skills", "content": "x", "metadata": {huge.as_str(): "x"}}),
        json!({huge.as_str(): "x"}),
        deep,
        json!(huge),
        json!("[".repeat(100_000)),
    ];
    for input in inputs {
        for name in ["set_context", "load_context", "history_branches", huge.as_str()] {
            let answer = chat.tools().call(name, &input)?;
            assert!(answer.starts_with("Error: ") && answer.len() < 500, "{answer}");
        }
    }
    let keys = [("load_context", "key"), ("history_expand", "id"), ("history_branches", "id")];
    for (name, field) in keys {
        let input = match field {
            "key" => json!({"label": "skills", "key": huge}),
            _ => json!({"id": huge}),
        };
        let answer = chat.tools().call(name, input)?;
        assert!(answer.starts_with("Error: "), "{name}");
        assert!(talktree::estimate_tokens(&answer) <= 10_000, "{name}");
    }
    assert_eq!(figures(&store)?, before);
    Ok(())
}

#[test]
fn an_operation_that_a_block_does_not_support_is_an_error() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = every_kind(&store)?;
    let context = chat.context();
    let (before, blocks) = (figures(&store)?, chat.blocks()?);
    let document = Document::new("k", "x");
    let is_cannot = |answer: Result<()>| matches!(answer, Err(Error::BlockCannot { .. }));
    for label in ["soul", "memory"] {
        assert!(is_cannot(context.set_document(label, &document).map(drop)), "{label}");
        assert!(is_cannot(context.remove_document(label, "k").map(drop)), "{label}");
        assert!(is_cannot(context.documents(label).map(drop)), "{label}");
        assert!(is_cannot(context.load(label, "k").map(drop)), "{label}");
        assert!(is_cannot(context.unload(label, "k").map(drop)), "{label}");
        assert!(is_cannot(context.search(label, "k", 5).map(drop)), "{label}");
    }
    assert!(is_cannot(context.versions("soul", None).map(drop)));
    assert!(is_cannot(context.restore("soul", None, 1)));
    assert!(matches!(context.set("soul", "x"), Err(Error::BlockReadOnly { .. })));
    for label in ["skills", "facts"] {
        for answer in [context.set(label, "x"), context.append(label, "x")] {
            let error = answer.unwrap_err().to_string();
            assert!(error.ends_with("write one with set_document"), "{error}");
        }
    }
    let unknown = |answer: Result<()>| matches!(answer, Err(Error::UnknownBlock { .. }));
    assert!(unknown(context.set("none", "x").map(drop)));
    assert!(unknown(context.append("none", "x").map(drop)));
    assert!(unknown(context.set_document("none", &document).map(drop)));
    assert!(unknown(context.remove_document("none", "k").map(drop)));
    assert!(unknown(context.load("none", "k").map(drop)));
    assert!(unknown(context.search("none", "k", 5).map(drop)));
    assert!(unknown(context.versions("none", None).map(drop)));
    assert!(unknown(context.restore("none", None, 1)));
    for version in [0, 2, u64::MAX] {
        let error = context.restore("memory", None, version).unwrap_err();
        assert!(matches!(error, Error::UnknownVersion { .. }), "{error}");
        let error = context.version("skills", Some("pdf"), version).unwrap_err().to_string();
        let text = format!("context block \"skills\" has no version {version} of document \"pdf\"");
        assert_eq!(error, text);
    }
    assert_eq!((figures(&store)?, chat.blocks()?), (before, blocks));
    Ok(())
}

/// A heading was checked only when its block was made, and a size only when it was written: the blocks before it were
/// stored by then.
#[test]
fn a_refused_import_writes_nothing() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let context =
        store.session_builder("s").block("memory", Block::stored()).open()?.context().clone();
    context.set("memory", "Likes tea.")?;
    let before = figures(&store)?;
    let large = "x".repeat(1_001);
    let rule = "═".repeat(46);
    let long = "L".repeat(81);
    let headings: String = (0..1_000).map(|n| format!("# {n}\n\nx\n\n")).collect();
    let refused = [
        headings,
        format!("# memory\n\nLikes coffee.\n\n# new\n\nx\n\n# {long}\n\nx\n"),
        format!("# memory\n\nLikes coffee.\n\n# new\n\n{large}\n"),
        format!(
            "{rule}\nMEMORY [writable]\n{rule}\nLikes coffee.\n\n{rule}\n{long} [writable]\n{rule}\nx"
        ),
    ];
    for text in refused {
        let answer = context.import(&text);
        let is_refused = matches!(
            answer,
            Err(Error::InvalidValue { .. } | Error::TooLarge { .. } | Error::TooManyBlocks { .. })
        );
        assert!(is_refused, "{answer:?}");
        assert_eq!(context.block("memory")?.unwrap_or_default().content, "Likes tea.");
        assert_eq!(context.blocks()?.len(), 1);
        assert_eq!(figures(&store)?, before);
    }
    Ok(())
}

#[test]
fn a_failure_of_the_store_is_an_error_and_not_an_answer() -> Result<()> {
    let scratch = Scratch::new()?;
    every_kind(&scratch.store)?;
    let read_only = Store::open_read_only(scratch.folder.path().join("talk.db"))?;
    let builder = read_only.session_builder("s").block("memory", Block::stored());
    let chat = builder.block("facts", Block::knowledge()).cached_prompt().open()?;
    let calls = [
        json!({"label": "memory", "content": "x"}),
        json!({"label": "memory", "content": "x", "action": "append"}),
        json!({"label": "facts", "content": "x"}),
    ];
    for input in calls {
        let answer = chat.tools().call("set_context", input);
        assert!(matches!(answer, Err(Error::ReadOnly)), "{answer:?}");
    }
    assert!(matches!(chat.refresh_prompt(), Err(Error::ReadOnly)));
    assert!(chat.prompt()?.contains("Likes tea."));
    assert_eq!(chat.block("memory")?.unwrap_or_default().content, "Likes tea.");
    let nonsense = chat.tools().call("set_context", json!({"label": "memory"}))?;
    assert!(nonsense.starts_with("Error: "), "{nonsense}");
    Ok(())
}

#[test]
fn an_invalid_session_id_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    for id in [String::new(), "x".repeat(MAX_ID_BYTES + 1)] {
        let answer = store.session_builder(id.as_str()).block("memory", Block::stored()).open();
        assert!(matches!(answer, Err(Error::InvalidValue { .. })), "{answer:?}");
    }
    assert!(store.sessions()?.is_empty());
    Ok(())
}
