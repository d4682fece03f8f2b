//! Contexts of several sessions in several processes: each session sees its own content at once and nothing of others,
//! no appended line is lost, and a frozen prompt has the same bytes everywhere.
//!
//! [`child`] is what the child processes run.

use std::path::Path;
use std::thread;

use crate::common::folder;
use crate::common::process::{Other, say, task};
use serde_json::{Value, json};
use talktree::{Block, Document, Durability, Error, Result, Session, Store};

/// How many threads add lines at once in each process, and how many each adds.
const THREADS: usize = 4;
const LINES: usize = 200;

/// Returns the next line of a child as JSON; null when it has ended.
fn hear(child: &mut Other) -> Value {
    child.hear().map_or(Value::Null, |line| serde_json::from_str(&line).unwrap())
}

fn ask(child: &mut Other, what: &Value) -> Value {
    child.tell(what);
    hear(child)
}

fn open_store(path: &Path) -> Result<Store> {
    Store::options().durability(Durability::Normal).open(path)
}

fn open(store: &Store, id: &str) -> Result<Session> {
    store
        .session_builder(id)
        .block("memory", Block::stored())
        .block("facts", Block::knowledge())
        .cached_prompt()
        .open()
}

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((task, path)) = task() else { return Ok(()) };
    let store = open_store(&path)?;
    match task.split_once(' ').unwrap_or((&task, "")) {
        ("serve", id) => serve(&store, id),
        ("add", name) => add(&store, name),
        ("freeze", name) => freeze(&store, name),
        other => panic!("no such task: {other:?}"),
    }
}

/// Writes the content of each line, and answers with the whole context of the session.
fn serve(store: &Store, id: &str) -> Result<()> {
    let chat = open(store, id)?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|source| Error::Io { path: "stdin".into(), source })?;
        let told: Value = serde_json::from_str(&line).unwrap();
        if let Some(text) = told["memory"].as_str() {
            chat.context().set("memory", text)?;
        }
        if let Some(text) = told["fact"].as_str() {
            chat.context().set_document("facts", &Document::new("fact", text))?;
        }
        if told["refresh"] == true {
            chat.refresh_prompt()?;
        }
        say(held(&chat)?);
    }
    Ok(())
}

/// Returns the whole context of a session.
fn held(chat: &Session) -> Result<Value> {
    let context = chat.context();
    let prompt = chat.prompt()?;
    let found = context.search("facts", "fact", 10)?;
    let versions = context.versions("memory", None)?;
    Ok(json!({
        "blocks": chat.blocks()?,
        "found": found.iter().map(|found| found.content.as_str()).collect::<Vec<_>>(),
        "document": context.load("facts", "fact").ok(),
        "versions": versions.iter().map(|version| version.content.as_deref()).collect::<Vec<_>>(),
        "frozen": context.frozen_prompt()?,
        "prompt": prompt,
        "drift": chat.drift()?.iter().map(|drift| format!("{drift:?}")).collect::<Vec<_>>(),
    }))
}

/// Adds lines from several threads at once.
fn add(store: &Store, name: &str) -> Result<()> {
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            scope.spawn(move || -> Result<()> {
                // Some have a handle of their own.
                let store = store.clone();
                let chat = open(&store, "s")?;
                for n in 0..LINES {
                    chat.context().append("memory", &format!("{name}{thread}-{n}"))?;
                }
                Ok(())
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

/// How many prompts are frozen by several processes at once.
const PROMPTS: usize = 60;

fn frozen_by(store: &Store, name: &str, n: usize) -> Result<String> {
    let soul = Block::text(format!("You were frozen by {name}."));
    let builder = store.session_builder(format!("s{n}")).block("soul", soul);
    builder.block("memory", Block::stored()).cached_prompt().open()?.prompt()
}

fn freeze(store: &Store, name: &str) -> Result<()> {
    say(json!("ready"));
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    let prompts = (0..PROMPTS).map(|n| frozen_by(store, name, n));
    say(json!(prompts.collect::<Result<Vec<_>>>()?));
    Ok(())
}

#[test]
fn each_session_sees_its_own_content_at_once_in_every_process() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = open_store(&path)?;
    // Their ids and the labels would collide if they were concatenated.
    let ids = ["a", "a_memory"];
    let mut children = [Other::start("serve a", &path)?, Other::start("serve a_memory", &path)?];
    let here = [open(&store, ids[0])?, open(&store, ids[1])?];
    for round in 0..6 {
        for which in 0..2 {
            let text = |what: &str| format!("{what} {round} of {}", ids[which]);
            // This process and the other one write in turn.
            if round % 2 == 0 {
                let context = here[which].context();
                context.set("memory", &text("memory"))?;
                context.set_document("facts", &Document::new("fact", text("fact")))?;
                if round == 4 {
                    here[which].refresh_prompt()?;
                }
            } else {
                let told = json!({"memory": text("memory"), "fact": text("fact"),
                                  "refresh": round == 3});
                children[which].tell(&told);
                assert!(hear(&mut children[which]).is_object());
            }
            let own = held(&here[which])?;
            assert_eq!(own["blocks"][0]["content"], text("memory"));
            assert_eq!(own["found"], json!([text("fact")]));
            assert_eq!(own["versions"].as_array().map(Vec::len), Some(round + 1));
            assert_eq!(ask(&mut children[which], &json!({})), own, "the two processes disagree");
            // Nothing of it is in the other session, here or there.
            for seen in [held(&here[1 - which])?, ask(&mut children[1 - which], &json!({}))] {
                assert!(!seen.to_string().contains(&format!("of {}\"", ids[which])), "{seen}");
                assert!(!seen.to_string().contains(&format!("of {}\\n", ids[which])), "{seen}");
            }
        }
    }
    // The other session still has its own content.
    assert_eq!(held(&here[0])?["document"], "fact 5 of a");
    assert_eq!(held(&here[1])?["document"], "fact 5 of a_memory");
    children.into_iter().for_each(|child| drop(child.wait()));
    Ok(())
}

#[test]
fn no_line_that_processes_and_threads_append_at_once_is_lost() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    open_store(&path)?;
    let children = [Other::start("add a", &path)?, Other::start("add b", &path)?];
    children.into_iter().for_each(|child| drop(child.wait()));

    let chat = open(&open_store(&path)?, "s")?;
    let memory = chat.block("memory")?.unwrap_or_default().content;
    let lines: Vec<&str> = memory.lines().collect();
    for name in ["a", "b"] {
        for thread in 0..THREADS {
            let prefix = format!("{name}{thread}-");
            let own = lines.iter().filter_map(|line| line.strip_prefix(prefix.as_str()));
            // Each once, and in the order in which its thread added them.
            let expected: Vec<String> = (0..LINES).map(|n| n.to_string()).collect();
            assert_eq!(own.collect::<Vec<_>>(), expected, "lines of {prefix}");
        }
    }
    assert_eq!(lines.len(), 2 * THREADS * LINES);
    let versions = chat.context().versions("memory", None)?;
    assert_eq!(versions.last().map(|last| last.version), Some((2 * THREADS * LINES) as u64));
    Ok(())
}

#[test]
fn a_frozen_prompt_is_the_same_bytes_in_another_process_and_after_reopening() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = open_store(&path)?;
    let chat = open(&store, "s")?;
    chat.context().set("memory", "故宫, 茶 and \u{301}\u{0}\r\n\ttea \u{2028}\n\n")?;
    let frozen = chat.prompt()?;
    assert!(frozen.contains("\u{0}\r\n\ttea \u{2028}\n\n\n\n"));

    let mut other = Other::start("serve s", &path)?;
    let answer = ask(&mut other, &json!({"memory": "Likes coffee."}));
    assert_eq!(answer["prompt"], frozen);
    assert_eq!(answer["frozen"], frozen);
    assert_eq!(answer["blocks"][0]["content"], "Likes coffee.");
    drop((chat, store));

    // One is continued by another process, one by this process.
    let chat = open(&open_store(&path)?, "s")?;
    assert_eq!(chat.prompt()?, frozen);
    let refreshed = ask(&mut other, &json!({"refresh": true}));
    assert_ne!(refreshed["prompt"], frozen);
    assert_eq!(refreshed["prompt"], chat.prompt()?);
    other.wait();
    let read_only = open(&Store::open_read_only(&path)?, "s")?;
    assert_eq!(refreshed["prompt"], read_only.prompt()?);
    Ok(())
}

#[test]
fn processes_that_freeze_at_once_get_the_same_bytes() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    let store = open_store(&path)?;
    let mut children = [Other::start("freeze left", &path)?, Other::start("freeze right", &path)?];
    for child in &mut children {
        assert_eq!(hear(child), "ready");
    }
    children.iter_mut().for_each(|child| child.tell(json!("go")));
    let [left, right] = children.each_mut().map(hear);
    children.into_iter().for_each(|child| drop(child.wait()));
    assert_eq!(left.as_array().map(Vec::len), Some(PROMPTS));
    assert_eq!(left, right);
    for (n, prompt) in left.as_array().into_iter().flatten().enumerate() {
        // This process would render it differently, but comes too late.
        assert_eq!(*prompt, frozen_by(&store, "the parent", n)?);
        let text = prompt.as_str().unwrap_or_default();
        let by = ["left", "right"].map(|name| text.contains(&format!("frozen by {name}.")));
        assert!(by[0] != by[1], "a prompt of two halves: {text}");
    }
    Ok(())
}
