//! The limits in docs/reliability.md are the real ones, and the files exist that CONTRIBUTING.md and ARCHITECTURE.md name.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::DateTime;
use serde_json::json;
use talktree::search::{MAX_EXPANSIONS, MAX_TERM_TOKENS, MAX_TERMS};
use talktree::{
    Block, Document, Error, Json, Message, Result, Role, Store, TranscriptKey, estimate_tokens,
};
use talktree_import::MAX_NOTES;

use crate::tables::{Tables, is_on_server};

fn document(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns the rows of the table of limits: the name of the value, and its limit.
fn documented() -> Vec<(String, u64)> {
    let page = document("docs/reliability.md");
    let (_, rows) = page.split_once("| what | limit |\n|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let (what, limit) = row.trim_matches('|').split_once(" | ").unwrap();
        // A space groups digits: `4 294 967 294`.
        let groups = limit.split_whitespace().map(|word| word.trim_end_matches([';', ',']));
        let groups = groups.take_while(|word| word.chars().all(|c| c.is_ascii_digit()));
        (what.trim().to_owned(), groups.collect::<String>().parse().unwrap_or_default())
    })
    .collect()
}

/// Returns the real limit of the value with this name.
fn real(what: &str, documented: u64) -> Result<u64> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let count = usize::try_from(documented).unwrap_or(usize::MAX);
    Ok(match what {
        "messages that a session can hold in its life" => {
            let full = |tables: &Tables| {
                tables.run("UPDATE session SET next = 4294967295");
            };
            match changed(full, |store| store.session("s")?.append(Message::user("x")).map(|_| ()))
            {
                Err(Error::SessionFull { max, .. }) => max,
                other => panic!("{other:?}"),
            }
        }
        "sessions that a store can hold in its life" => {
            let full = |tables: &Tables| tables.set_last_key("session", 2_147_483_647);
            match changed(full, |store| store.create_session("x").map(|_| ())) {
                Err(Error::StoreFull { max }) => u64::try_from(max).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        "entries that a transcript can hold" => {
            let full = |tables: &Tables| {
                tables.run("UPDATE transcript SET next = 4294967295");
            };
            match changed(full, append_entry) {
                Err(Error::TranscriptFull { what: "entries", max }) => max,
                other => panic!("{other:?}"),
            }
        }
        // Tests beside these three limits hold them.
        "the entries of one append to a transcript, together" => 1,
        "the items of one `receive` of an inbox, together" => 1,
        "handled items of a source whose ids are remembered" => 100_000,
        "a message, as JSON" => match chat.append(Message::user("x".repeat(64 << 20))) {
            Err(Error::MessageTooLarge { max, .. }) => (max >> 20) as u64,
            other => panic!("{other:?}"),
        },
        "a summary with its details, the metadata of a session" => {
            let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
            let chat = store.session("s")?;
            let id = chat.append(Message::user("x"))?.id;
            let refused = chat.add_compaction(&*"x".repeat(2_000), &id, &id);
            assert!(matches!(refused, Err(Error::TooLarge { max: 1_000, .. })), "{refused:?}");
            0 // The document gives no number.
        }
        "an id, a name, a label, a role" => {
            let id = chat.append(Message::user("x"))?.id;
            let fits = |length| {
                let name = "x".repeat(length);
                let with_role = Message::new(Role::from(&*name), vec!["x".into()]);
                [
                    chat.append(Message::user("x").with_id(&*name)).is_ok(),
                    store.rename(chat.id(), &name).is_ok(),
                    chat.label(&"l".repeat(length), &id).is_ok(),
                    chat.append(with_role).is_ok(),
                ]
            };
            assert_eq!((fits(count), fits(count + 1)), ([true; 4], [false; 4]));
            documented
        }
        "head moves that can be undone" => {
            let ids = [chat.append(Message::user("a"))?.id, chat.append(Message::user("b"))?.id];
            for at in 0..count + 9 {
                chat.checkout(&ids[at % 2])?;
            }
            let mut undone = 0;
            while chat.undo_head()? {
                undone += 1;
            }
            undone
        }
        "terms in a query" => MAX_TERMS as u64,
        "words in a term" => MAX_TERM_TOKENS as u64,
        "words of the index that the prefixes of a query expand to, together" => {
            MAX_EXPANSIONS as u64
        }
        "versions kept of a text of a context block" => {
            let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
            for version in 0..count + 9 {
                chat.context().set("memory", &format!("version {version}"))?;
            }
            chat.context().versions("memory", None)?.len() as u64
        }
        "context blocks in a session" => {
            let many = (0..=count).fold(store.session_builder("s"), |builder, number| {
                builder.block(format!("block {number}"), Block::text("x"))
            });
            match many.open() {
                Err(Error::TooManyBlocks { max }) => max as u64,
                other => panic!("{other:?}"),
            }
        }
        "the label of a context block" => {
            let fits = |length| {
                store
                    .session_builder("s")
                    .block("x".repeat(length), Block::text("x"))
                    .open()
                    .is_ok()
            };
            assert_eq!((fits(count), fits(count + 1)), (true, false));
            documented
        }
        "what a tool returns to a model" => {
            let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
            let long = Document::new("long", "word ".repeat(3 * count));
            chat.context().set_document("skills", &long)?;
            let input = json!({"label": "skills", "key": "long"});
            let tokens = estimate_tokens(&chat.tools().call("load_context", &input)?);
            assert!((documented * 9 / 10..=documented).contains(&tokens), "{tokens}");
            documented
        }
        "notes in the report of an import" => MAX_NOTES as u64,
        "the resolution of times" => {
            let time = DateTime::from_timestamp(1, 123_456_789).unwrap();
            chat.append(Message::user("x").at(time))?;
            let kept = chat.history()?[0].created_at.timestamp_subsec_nanos();
            assert_eq!(kept, 123_456_000);
            1
        }
        // On a server there is no path.
        "the absolute path of a store, on Unix" if is_on_server() => documented,
        "the absolute path of a store, on Unix" => {
            let folder = tempfile::tempdir().unwrap();
            let mut path = folder.path().canonicalize().unwrap();
            path.extend(["d".repeat(200), "d".repeat(150)]);
            std::fs::create_dir_all(&path).unwrap();
            let rest = count - path.as_os_str().len();
            assert!(Store::open(path.join("f".repeat(rest - 1))).is_ok());
            let refused = Store::open(path.join("f".repeat(rest))).map(drop);
            assert!(
                matches!(refused, Err(Error::InvalidValue { .. })) || !cfg!(unix),
                "{refused:?}"
            );
            documented
        }
        other => panic!("no limit is known as {other:?}"),
    })
}

fn append_entry(store: &Store) -> Result<()> {
    let entry = Json::parse(r#"{"type":"user"}"#)?;
    store.transcripts().append(&TranscriptKey::new("p", "s"), &[entry]).map(drop)
}

/// Runs a verb on a store that was brought to its limit.
fn changed(full: impl Fn(&Tables), verb: impl Fn(&Store) -> Result<()>) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.db");
    Store::open(&path)?.session("s")?.append(Message::user("hello"))?;
    append_entry(&Store::open(&path)?)?;
    full(&Tables::of(&path));
    verb(&Store::open(&path)?)
}

#[test]
fn the_documented_limits_are_the_real_ones() -> Result<()> {
    let rows = documented();
    assert_eq!(rows.len(), 20);
    for (what, limit) in rows {
        assert_eq!(limit, real(&what, limit)?, "{what}");
    }
    Ok(())
}

#[test]
fn the_front_page_is_short() {
    let lines = document("README.md").lines().count();
    assert!(
        lines < 160,
        "README.md has {lines} lines: what it says in more than a few belongs in docs/"
    );
}

/// Adds the paths of all files and folders below a folder, without their extensions, too.
fn add_paths(folder: &Path, root: &Path, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if ["target", ".git", "node_modules"].iter().any(|skipped| name == *skipped) {
            continue;
        }
        let named = path.strip_prefix(root).unwrap().to_str().unwrap_or_default();
        paths.push(format!("/{named}"));
        if path.is_dir() {
            add_paths(&path, root, paths);
        } else if let Some(stem) = named.strip_suffix(".rs") {
            paths.push(format!("/{stem}"));
        }
    }
}

#[test]
fn every_file_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    add_paths(root, root, &mut paths);
    let is_path = |span: &str| {
        let is_file = [".rs", ".md", ".sql", ".toml", ".py", ".pyi"];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        span.chars().all(is_plain)
            && (span.contains('/') || is_file.iter().any(|end| span.ends_with(end)))
            // A placeholder, or a folder beside this one.
            && !["NAME", "000N", ".."].iter().any(|word| span.contains(word))
    };
    for page in ["CONTRIBUTING.md", "ARCHITECTURE.md"] {
        let text = document(page);
        let named: Vec<&str> =
            text.split('`').skip(1).step_by(2).filter(|span| is_path(span)).collect();
        assert!(named.len() > 20, "{page}: {named:?}");
        for name in named {
            let end = format!("/{}", name.trim_matches('/'));
            assert!(paths.iter().any(|path| path.ends_with(&end)), "{page} names {name:?}");
        }
    }
}

/// A route is a line of `file.rs: function` in the order of the calls.
#[test]
fn the_routes_of_the_architecture_lead_through_functions_that_exist() {
    let page = document("ARCHITECTURE.md");
    let (_, rest) = page.split_once("## Routes").unwrap();
    let routes = rest.split("\n## ").next().unwrap();
    let routes: Vec<&str> = routes.split("\n- ").skip(1).collect();
    assert_eq!(routes.len(), 5, "append, history, search, set_context and resume");
    for route in routes {
        let steps = route.split('`').skip(1).step_by(2).filter_map(|span| span.split_once(": "));
        let mut files = BTreeSet::new();
        for (file, function) in steps {
            let code = document(&format!("src/{file}"));
            let is_there =
                ["(", "<"].iter().any(|end| code.contains(&format!("fn {function}{end}")));
            assert!(is_there, "{file} has no function {function}");
            files.insert(file);
        }
        assert!((3..=10).contains(&files.len()), "{route}");
    }
}
