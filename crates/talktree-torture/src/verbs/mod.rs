//! Every verb once, on a store with every kind of content: what runs while a system call fails.

mod compaction;

use std::path::Path;

use chrono::{DateTime, Utc};
use talktree::{
    Block, Compaction, CompactionId, Context, Document, DrawOptions, Json, Message, MessageId,
    Part, Role, SessionDetails, SessionManager, Store, TranscriptKey, Usage,
};
use talktree_claude::SessionStore;
use talktree_import::export::export_session;

/// One verb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    /// Whether it changes what the store holds.
    pub(crate) changes: bool,
    /// Runs it and returns what a read returns; the path is that of a file that does not exist.
    pub(crate) run: Run,
    /// The first of two commits, if the second may fail without failing the verb.
    pub(crate) first: Option<Run>,
}

/// Runs a verb.
pub(crate) type Run = fn(&Store, &Path) -> talktree::Result<String>;

const fn write(name: &'static str, run: Run) -> Verb {
    Verb { name, changes: true, run, first: None }
}

const fn read(name: &'static str, run: Run) -> Verb {
    Verb { name, changes: false, run, first: None }
}

/// The result of a verb without a comparable value.
fn done<T>(_: T) -> String {
    String::new()
}

/// The result of a verb that reads messages.
fn ids(messages: Vec<Message>) -> String {
    messages.iter().map(|message| format!("{} {}\n", message.id, message.text())).collect()
}

/// Returns a fixed time plus so many seconds.
fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap_or_default()
}

fn message(id: &str, text: &str) -> Message {
    Message::user(text).with_id(id).at(time(1))
}

fn compaction(id: &str, first: &str, last: &str) -> Compaction {
    let mut compaction = Compaction::new(format!("Summary {id}"), first.into(), last.into());
    compaction.id = CompactionId::from(format!("{}{id}", CompactionId::PREFIX));
    compaction.created_at = time(2);
    compaction
}

/// Fills a store: a long chat with branches, labels, a compaction and a moved head, a fork of it, a context, and a transcript. The names
/// of all begin with `name`. The index has caught up with most of it.
///
/// # Errors
/// As the verbs.
pub(crate) fn fill(store: &Store, name: &str) -> talktree::Result<()> {
    let own = |id: &str| format!("{name}{id}");
    let chat = store.session(own("chat"))?;
    let turn = |n: usize| {
        let text = format!("turn {n}: {}", "coffee garden 故宫 latency ".repeat(1 + n % 40));
        let mut message = message(&format!("m{n}"), &text);
        if n.is_multiple_of(7) {
            let input = serde_json::json!({ "q": n });
            message = message.with_part(Part::tool_call("look", format!("c{n}"), input));
        }
        if n.is_multiple_of(29) {
            message = message.with_part(Part::reasoning("hm")).hidden();
        }
        if n.is_multiple_of(31) {
            // Longer than a page.
            let file = Part::file("image/png", "data:,".repeat(1_000));
            message = message.with_part(file).with_metadata(serde_json::json!({"cost": n}));
            message.extra.insert("note".to_owned(), serde_json::json!(text).into());
        }
        message
    };
    chat.append_all((1..=300).map(turn))?;
    for n in 0..20 {
        let to = format!("m{}", 10 + n * 7);
        chat.append_to(&to.as_str().into(), message(&format!("b{n}"), "another branch"))?;
    }
    chat.checkout(&"m300".into())?;
    chat.import_compaction(&compaction("old", "m20", "m80"))?;
    chat.label("best", &"m100".into())?;
    chat.delete([&"m150".into()])?;
    chat.fork_as(&own("fork").into(), &"m50".into(), "A fork")?;
    chat.set_details(&SessionDetails {
        name: Some("A chat".to_owned()),
        model: Some("model-1".to_owned()),
        source: Some("notes.jsonl".to_owned()),
        metadata: Some(serde_json::json!({"rank": 1}).into()),
        owner: Some(own("owner")),
        tags: vec!["garden".to_owned()],
        ..SessionDetails::default()
    })?;
    let usage = Usage { model: Some("model-1".to_owned()), input: 90, ..Usage::default() };
    chat.add_usage(Some(&"m1".into()), &usage)?;
    let bot = SessionManager::builder(store).build()?;
    bot.resume(own("key")).owner(own("owner")).new_id(own("bound")).open()?;
    let key = TranscriptKey::new("project", own("log"));
    let entry = |n: usize| {
        let said = serde_json::json!({"role": "user", "content": format!("entry {n} of a log")});
        serde_json::json!({"type": "user", "uuid": n.to_string(), "message": said}).into()
    };
    let entries: Vec<Json> = (0..40).map(entry).collect();
    let log = SessionStore::new(store).owned_by(own("owner"));
    log.append(&key, &entries)?;
    log.append(&key.subpath("subagents/agent-1"), &entries)?;
    store.search("coffee").run()?;
    chat.append_all((1..=40).map(|n| message(&format!("p{n}"), "pending rollback budget")))?;
    let loaded = serde_json::json!({"label": "skills", "key": "report"});
    let call = Part::tool_call("load_context", "load", loaded);
    chat.append(Message::new(Role::Assistant, vec![call]).with_id("load"))?;
    let result = Part::tool_result("load_context", "load", serde_json::json!("Say it briefly."));
    chat.append(Message::new(Role::Tool, vec![result]).with_id("loaded"))?;
    let context = context_of(store, name)?;
    context.set("memory", "Likes tea.")?;
    context.set("memory", "Likes coffee.")?;
    context.set_document("skills", &Document::new("report", "Say it briefly."))?;
    let fact = |n| Document::new(format!("f{n}"), format!("fact {n} of the garden"));
    context.set_documents("knowledge", (0..100).map(fact))?;
    context.prompt().map(drop)
}

/// Returns the context of the chat.
fn context(store: &Store) -> talktree::Result<Context> {
    context_of(store, "")
}

fn context_of(store: &Store, name: &str) -> talktree::Result<Context> {
    let chat = store
        .session_builder(format!("{name}chat"))
        .block("memory", Block::stored())
        .block("skills", Block::stored_skills())
        .block("knowledge", Block::knowledge())
        .cached_prompt()
        .open()?;
    Ok(chat.context().clone())
}

/// Returns all verbs.
pub(crate) fn all() -> impl Iterator<Item = &'static Verb> {
    VERBS.iter().chain(compaction::VERBS)
}

const VERBS: &[Verb] = &[
    write("append", |store, _| {
        store.session("chat")?.append(message("new", "a new turn")).map(done)
    }),
    write("append-all", |store, _| {
        let text = "many words of many turns ".repeat(20);
        let messages = (0..2_000).map(|n| message(&format!("new{n}"), &text));
        store.session("chat")?.append_all(messages).map(done)
    }),
    write("append-to", |store, _| {
        store.session("chat")?.append_to(&"m40".into(), message("new", "a branch")).map(done)
    }),
    write("update", |store, _| {
        store.session("chat")?.update(message("m200", "another text")).map(done)
    }),
    write("upsert", |store, _| {
        store.session("chat")?.upsert(message("p40", "more of a streamed answer")).map(done)
    }),
    write("delete a leaf", |store, _| store.session("chat")?.delete([&"b3".into()]).map(done)),
    write("delete an inner message", |store, _| {
        store.session("chat")?.delete([&"m30".into()]).map(done)
    }),
    write("delete-branch", |store, _| {
        store.session("chat")?.delete_branch(&"m200".into()).map(done)
    }),
    write("clear", |store, _| store.session("chat")?.clear().map(done)),
    write("remove a session", |store, _| store.remove(&"chat".into()).map(done)),
    write("fork", |store, _| {
        store.session("chat")?.fork_as(&"new".into(), &"m250".into(), "New").map(done)
    }),
    write("import", |store, _| {
        let messages = (0..200_usize).map(|n| {
            let parent = n.checked_sub(1).map(|before| MessageId::from(format!("i{before}")));
            (parent, message(&format!("i{n}"), "a turn of another program"))
        });
        store.session("old")?.import_messages(messages).map(done)
    }),
    write("import a compaction", |store, _| {
        let new = compaction("new", "m90", "m140");
        store.session("chat")?.import_compaction(&new).map(done)
    }),
    write("remove a compaction", |store, _| {
        let id = CompactionId::from(format!("{}old", CompactionId::PREFIX));
        store.session("chat")?.remove_compaction(&id).map(done)
    }),
    write("label", |store, _| store.session("chat")?.label("best", &"m7".into()).map(done)),
    write("checkout", |store, _| store.session("chat")?.checkout(&"m60".into()).map(done)),
    write("undo the head", |store, _| store.session("chat")?.undo_head().map(done)),
    write("details", |store, _| {
        let name = Some("Renamed".to_owned());
        let details = SessionDetails { name, ..SessionDetails::default() };
        store.session("chat")?.set_details(&details).map(done)
    }),
    write("set a block", |store, _| context(store)?.set("memory", "Likes neither.").map(done)),
    write("add to a block", |store, _| context(store)?.append("memory", "Often.").map(done)),
    write("restore a version", |store, _| context(store)?.restore("memory", None, 1).map(done)),
    write("put documents", |store, _| {
        let text = "many words of many facts ".repeat(20);
        let documents = (50..250).map(|n| Document::new(format!("f{n}"), text.as_str()));
        context(store)?.set_documents("knowledge", documents).map(done)
    }),
    write("remove a document", |store, _| {
        context(store)?.remove_document("knowledge", "f7").map(done)
    }),
    write("refresh the prompt", |store, _| {
        let context = context(store)?;
        context.add("task", Block::text("Book a table."))?;
        context.refresh_prompt().map(done)
    }),
    write("unload a document", |store, _| {
        context(store)?.unload("skills", "report").map(|copies| format!("{copies:?}"))
    }),
    read("search documents", |store, _| {
        let found = context(store)?.search("knowledge", "garden", 200)?;
        let mut keys: Vec<_> = found.into_iter().map(|found| found.key).collect();
        keys.sort();
        Ok(keys.join(" "))
    }),
    read("frozen prompt", |store, _| context(store)?.prompt()),
    read("search and catch-up", |store, _| {
        let found = store.search("rollback").limit(100).run()?;
        let mut ids: Vec<_> = found.hits.iter().map(|hit| hit.id.to_string()).collect();
        ids.sort();
        Ok(ids.join(" "))
    }),
    read("search in a session", |store, _| {
        let found = store.session("chat")?.search("故宫").limit(500).run()?;
        let mut ids: Vec<_> = found.hits.iter().map(|hit| hit.id.to_string()).collect();
        ids.sort();
        Ok(ids.join(" "))
    }),
    read("rebuild the index", |store, _| store.rebuild_search().map(done)),
    read("history", |store, _| store.session("chat")?.history().map(ids)),
    read("raw history", |store, _| store.session("fork")?.raw_history().map(ids)),
    read("branches", |store, _| store.session("chat")?.branches(&"m10".into()).map(ids)),
    read("stream all messages", |store, _| {
        store.session("chat")?.all_messages().collect::<talktree::Result<Vec<_>>>().map(ids)
    }),
    read("tree", |store, _| {
        let tree = store.session("chat")?.tree()?;
        Ok(tree.lines(&DrawOptions::default()).map(|line| format!("{line:?}\n")).collect())
    }),
    read("export", |store, _| {
        let mut output = Vec::new();
        export_session(&store.session("chat")?, &mut output)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }),
    read("verify", |store, _| Ok(format!("{:?}", store.verify(|_| {})?))),
    read("stats", |store, _| store.stats().map(done)),
    read("backup", |store, copy| store.backup(copy, |_| {}).map(done)),
];
