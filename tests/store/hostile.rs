//! Hostile input: foreign ids, any text, any JSON, any file.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{self, Scratch, drawn, folder, letters};
use crate::tables::Tables;
use serde_json::{Value, json};
use talktree::{
    Budget, CompactionOptions, DrawOptions, Error, Json, MAX_ID_BYTES, Message, MessageId, Parent,
    Part, Result, Session, Store,
};
use talktree_import::export::export_session;

/// Texts that have broken other programs.
const TEXTS: &[&str] = &[
    "\0",
    "a\0b",
    "it's",
    "\"quoted\"",
    "x' OR 1=1 --",
    "'; DROP TABLE message; --",
    "\u{1F469}\u{200D}\u{1F680}",
    "\u{202E}abc",
    "\u{FEFF}",
    "\u{FFFF}",
    "line\nbreak\r\n",
    "%_*?[a]",
    "../../etc/passwd",
    "NULL",
    " ",
    "{}",
];

/// Those without a visible character: they are not valid summaries.
const UNSEEN: &[&str] = &["\0", "\u{FEFF}", " "];

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    |source| Error::Io { path: path.to_owned(), source }
}

#[test]
fn every_verb_refuses_ids_of_another_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (chat, other) = (store.session("s")?, store.session("other")?);
    chat.append_all(letters("a b"))?;
    other.append_all(letters("x y"))?;
    let compaction = other.add_compaction("summary", &"x".into(), &"y".into())?.id;
    let (a, x) = (MessageId::from("a"), MessageId::from("x"));
    let new = || Message::user("new");
    let before = (chat.raw_history()?, other.history()?);

    let answers = [
        chat.append_to(&x, new()).map(|_| ()),
        chat.append_all_to(&Parent::Message(x.clone()), [new(), new()]).map(|_| ()),
        chat.import_message(Some(&x), new()).map(|_| ()),
        chat.update(Message::user("new").with_id("x")).map(|_| ()),
        chat.delete([&a, &x]).map(|_| ()),
        chat.delete_branch(&x).map(|_| ()),
        chat.checkout(&x),
        chat.label("here", &x),
        chat.add_compaction("s", &x, &a).map(|_| ()),
        chat.add_compaction("s", &a, &x).map(|_| ()),
        chat.fork(&x, "fork").map(|_| ()),
        chat.at(&x).history().map(|_| ()),
        chat.at(&x).raw_history().map(|_| ()),
        chat.at(&x).path_length().map(|_| ()),
        chat.at(&x).row_stats().map(|_| ()),
        chat.branches(&x).map(|_| ()),
        chat.siblings(&x).map(|_| ()),
        chat.is_on_path(&x).map(|_| ()),
        chat.is_ancestor(&x, &a).map(|_| ()),
        chat.is_ancestor(&a, &x).map(|_| ()),
        chat.at(&x).iter().next().unwrap().map(|_| ()),
        chat.at(&x).recent(Budget::tokens(9)).map(|_| ()),
        chat.page().before(&x).run().map(|_| ()),
        chat.page().after(&x).run().map(|_| ()),
    ];
    for (at, answer) in answers.iter().enumerate() {
        assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "verb {at}: {answer:?}");
    }
    let answers = [
        chat.expand(&compaction).map(|_| ()),
        chat.remove_compaction(&compaction),
        chat.compaction(&compaction).map(|_| ()),
        chat.add_compaction("s", &compaction.as_message(), &a).map(|_| ()),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::UnknownCompaction { .. })), "{answer:?}");
    }
    assert_eq!((chat.message(&x)?, chat.message(&compaction.as_message())?), (None, None));
    assert_eq!((chat.raw_history()?, other.history()?), before);
    assert_eq!(store.sessions()?.len(), 2);
    Ok(())
}

#[test]
fn reading_creates_no_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("nobody")?;
    assert!(chat.history()?.is_empty() && chat.labels()?.is_empty() && chat.leaves()?.is_empty());
    assert_eq!((chat.head()?, chat.info()?, chat.iter().count()), (None, None, 0));
    assert!(chat.append_to(&"x".into(), Message::user("x")).is_err());
    assert!(chat.add_compaction("s", &"x".into(), &"x".into()).is_err());
    assert!(chat.checkout(&"x".into()).is_err());
    chat.clear()?;
    chat.unlabel("x")?;
    chat.checkout_start()?;
    assert!(!chat.undo_head()?);
    assert!(store.sessions()?.is_empty());
    for answer in [store.remove(&"nobody".into()), store.rename(&"nobody".into(), "n")] {
        assert!(matches!(answer, Err(Error::UnknownSession { .. })));
    }
    Ok(())
}

#[test]
fn a_message_over_the_limit_is_refused_and_nothing_is_stored() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let chat = store.session("s")?;
    chat.append(Message::user("small").with_id("a"))?;
    let large = || Message::user("x".repeat(1_000)).with_id("large");
    let metadata = Message::user("x").with_metadata(json!("y".repeat(1_000)));
    for answer in [
        chat.append(large()).map(|_| ()),
        chat.append(metadata).map(|_| ()),
        chat.append_all([Message::user("fits"), large()]).map(|_| ()),
        chat.import_message(None, large()).map(|_| ()),
        chat.update(large().with_id("a")).map(|_| ()),
        chat.upsert(large()).map(|_| ()),
    ] {
        match answer {
            Err(Error::MessageTooLarge { bytes, max, .. }) => assert!(bytes > max && max == 1_000),
            answer => panic!("{answer:?}"),
        }
    }
    // At the limit: `[{"type":"text","text":".."}]` is 27 bytes besides the text.
    chat.append(Message::user("x".repeat(1_000 - 27)))?;
    assert!(chat.append(Message::user("x".repeat(1_000 - 26))).is_err());
    assert_eq!(chat.path_length()?, 2);
    Ok(())
}

#[test]
fn names_that_are_not_allowed_are_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let id = chat.append(Message::user("a").with_id("a"))?.id;
    for name in [String::new(), "x".repeat(MAX_ID_BYTES + 1), "x".repeat(1 << 20)] {
        let answers = [
            store.session(name.as_str()).map(|_| ()),
            chat.append(Message::user("x").with_id(name.as_str())).map(|_| ()),
            chat.import_message(None, Message::user("x").with_id(name.as_str())).map(|_| ()),
            chat.label(&name, &id),
            chat.fork_as(&name.as_str().into(), &id, "fork").map(|_| ()),
            chat.fork(&id, &name).map(|_| ()),
            store.rename(chat.id(), &name),
            store.create_session(&name).map(|_| ()),
        ];
        for answer in answers {
            match &answer {
                Err(error @ Error::InvalidValue { .. }) => {
                    assert!(error.to_string().len() < 500, "an error stays readable");
                }
                answer => panic!("{answer:?}"),
            }
        }
        // As ids to look up they are just unknown.
        assert_eq!(chat.message(&name.as_str().into())?, None);
        assert!(matches!(
            chat.at(&name.as_str().into()).history(),
            Err(Error::UnknownMessage { .. })
        ));
    }
    let reserved = chat.append(Message::user("x").with_id("compaction_x"));
    assert!(matches!(reserved, Err(Error::InvalidValue { .. })));
    chat.append(Message::user("x").with_id("x".repeat(MAX_ID_BYTES)))?;
    assert_eq!((chat.path_length()?, store.sessions()?.len()), (2, 1));
    Ok(())
}

#[test]
fn any_text_is_safe_everywhere() -> Result<()> {
    let mut scratch = Scratch::new()?;
    for text in TEXTS {
        let chat = scratch.store.session(*text)?;
        let mut message = Message::new(*text, vec![Part::text(*text)])
            .with_id(*text)
            .with_metadata(json!({*text: text}));
        message.extra.insert(format!("x{text}"), json!(text).into());
        chat.append(message)?;
        let id = MessageId::from(*text);
        chat.label(&format!("{text}!"), &id)?;
        chat.append(Message::assistant("reply").with_id("reply"))?;
        chat.fork_as(&format!("fork {text}").into(), &"reply".into(), text)?;
        let compacted = chat.add_compaction(*text, &id, &id);
        match UNSEEN.contains(text) {
            false => drop(compacted?),
            true => assert!(matches!(compacted, Err(Error::SummaryRefused { .. })), "{text:?}"),
        }
    }
    scratch.reopen()?;
    for text in TEXTS {
        let chat = scratch.store.session(*text)?;
        let message = chat.message(&(*text).into())?.unwrap_or_else(|| panic!("{text:?} is lost"));
        assert_eq!((message.text(), message.role.as_str()), ((*text).to_owned(), *text));
        assert_eq!(message.metadata.as_ref().map(Json::value), Some(json!({*text: text})));
        assert_eq!(message.extra[&format!("x{text}")].value(), json!(text));
        assert_eq!(chat.labelled(&format!("{text}!"))?, Some((*text).into()));
        let fork = scratch.store.session(format!("fork {text}"))?;
        assert_eq!(fork.raw_history()?[0], message);
        let info = fork.info()?;
        assert_eq!(info.and_then(|info| info.name).as_deref(), Some(*text));
        // As a summary, or as the message.
        assert_eq!(chat.history()?[0].text(), *text);
        // A text that is a whole query or SQL is only searched for.
        chat.search(*text).run()?;
        scratch.store.search(*text).run()?;
    }
    assert_eq!(scratch.store.sessions()?.len(), 2 * TEXTS.len());
    Ok(())
}

/// Stores a message given as JSON, and reads it with another handle.
fn kept(json: &str) -> Result<(Message, Message)> {
    let scratch = Scratch::new()?;
    let given: Message = serde_json::from_str(json)
        .map_err(|source| Error::Json { what: "the test's message", source })?;
    scratch.store.session("s")?.append(given.clone())?;
    let read = common::open(&scratch.folder)?.session("s")?.raw_history()?;
    Ok((given, read.into_iter().next().unwrap_or_else(|| Message::user("lost"))))
}

#[test]
fn json_that_a_string_cannot_hold_is_unchanged() -> Result<()> {
    let (given, read) = kept(
        r#"{"role": "user", "parts": [
            {"type": "text", "text": "lone \ud83d and \u0000 and \ud83d\ude00"},
            {"type": "tool-x", "toolCallId": "1", "input": {"k": "\udc00"}, "output": "\u0000"},
            {"type": "data-x", "\ud800": 1}
        ], "metadata": {"m": "\ud800"}, "further": ["\udfff"]}"#,
    )?;
    assert_eq!(read, given);
    assert_eq!(read.text(), "lone \u{FFFD} and \0 and \u{1F600}");
    let texts: Vec<String> = [&given, &read].map(|m| format!("{:?}", m.parts)).to_vec();
    assert_eq!(texts[0], texts[1]);
    assert!(texts[1].contains(r"\ud83d and \u0000 and"));
    Ok(())
}

#[test]
fn deep_json_is_kept() -> Result<()> {
    const DEPTH: usize = 1_000_000;
    let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let (given, read) = kept(&format!(
        r#"{{"role": "user", "parts": [{{"type": "data-x", "data": {deep}}},
            {{"type": "text", "text": "said", "deep": {deep}}},
            {{"type": "tool-x", "toolCallId": "1", "input": {deep}}}], "metadata": {deep}}}"#
    ))?;
    assert_eq!(read, given);
    assert_eq!(read.text(), "said");
    assert!(read.tokens() > 4);
    assert_eq!(read.metadata.map(|json| json.as_str().len()), Some(2 * DEPTH));
    assert!(matches!(&read.parts[0], Part::Other(json) if json.as_str().len() > 2 * DEPTH));
    Ok(())
}

#[test]
fn duplicate_fields_and_long_numbers_are_kept() -> Result<()> {
    let (given, read) = kept(
        r#"{"role": "user", "parts": [
            {"type": "text", "text": "one", "text": "two"},
            {"type": "data-n", "n": 123456789012345678901234567890, "e": 1e999, "d": 0.10000000000000000001},
            {"type": "data-d", "x": 1, "x": 2}
        ], "n": -0.0}"#,
    )?;
    assert_eq!(read, given);
    let kept = format!("{:?} {:?}", read.parts, read.extra);
    for text in [
        "\"one\", \"text\": \"two\"",
        "123456789012345678901234567890",
        "1e999",
        "0.10000000000000000001",
        "\"x\": 1, \"x\": 2",
        "-0.0",
    ] {
        assert!(kept.contains(text), "{text} in {kept}");
    }
    Ok(())
}

/// Two numbers beyond `f64` compared equal, so the update was not written.
#[test]
fn an_update_of_a_long_number_is_written() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let with = |json: &str| -> Result<Message> {
        Ok(Message::user("x").with_id("x").with_metadata(Json::parse(json)?))
    };
    chat.append(with("123456789012345678901234567890")?)?;
    assert!(chat.update(with("123456789012345678901234567891")?)?.is_changed);
    assert!(!chat.update(with("123456789012345678901234567891")?)?.is_changed);
    let read = chat.message(&"x".into())?.and_then(|message| message.metadata);
    assert_eq!(
        read.map(|json| json.to_string()).as_deref(),
        Some("123456789012345678901234567891")
    );
    Ok(())
}

#[test]
fn text_that_is_not_json_is_refused() {
    for text in ["", "{", "[1,]", "nul", "\"\u{1}\"", "1 2", "{\"a\":}", "\u{FEFF}{}"] {
        assert!(matches!(Json::parse(text), Err(Error::Json { .. })), "{text:?}");
    }
    for text in [
        "{}",
        "[]",
        r#"{"role": 1}"#,
        r#"{"role": "user", "parts": {}}"#,
        r#"{"role": "user", "parts": ["x"]}"#,
        r#"{"role": "user", "role": "user"}"#,
        r#"{"role": "user", "created_at": "yesterday"}"#,
    ] {
        assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
    }
}

#[test]
fn ten_megabytes_are_read_back_whole() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    let text = "0123456789\u{1F600}".repeat(750_000);
    let id = chat.append(Message::user(text.as_str()))?.id;
    chat.append(Message::assistant("long"))?;
    assert_eq!(chat.message(&id)?.map(|message| message.text()), Some(text));
    assert_eq!((chat.iter().count(), chat.iter_rev().count()), (2, 2));
    Ok(())
}

#[test]
fn files_that_are_not_a_store_are_refused_and_unchanged() -> Result<()> {
    let folder = folder()?;
    let file = |name: &str, bytes: &[u8]| -> Result<std::path::PathBuf> {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).map_err(io(&path))?;
        Ok(path)
    };
    let mut noise = b"SQLite format 3\0".to_vec();
    noise.extend((0..8192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8));
    let mut paths = vec![
        file("text.db", b"Dear diary, this is no database at all.")?,
        file("noise.db", &noise)?,
        file("header.db", b"SQLite format 3\0")?,
        file("short.db", b"SQL")?,
        file("zeroes.db", &[0; 8_192])?,
        file("log.db", &[&0x377f_0682_u32.to_be_bytes()[..], &[0; 4_092]].concat())?,
    ];
    let foreign = folder.path().join("foreign.db");
    let other = rusqlite::Connection::open(&foreign).map_err(database)?;
    other.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").map_err(database)?;
    drop(other);
    paths.push(foreign);
    for path in paths {
        let before = std::fs::read(&path).map_err(io(&path))?;
        for answer in [Store::open(&path), Store::open_read_only(&path)] {
            let is_told = matches!(answer, Err(Error::NotAStore { .. } | Error::Corrupt { .. }));
            assert!(is_told, "{}: {answer:?}", path.display());
        }
        assert_eq!(std::fs::read(&path).map_err(io(&path))?, before, "{}", path.display());
    }
    assert!(matches!(Store::open(folder.path()), Err(Error::NotAStore { .. })));
    assert!(matches!(Store::open_read_only(folder.path()), Err(Error::NotAStore { .. })));
    Ok(())
}

/// Opening a pipe without a writer blocked forever, and SQLite created files next to a device.
#[cfg(unix)]
#[test]
fn a_file_that_is_not_regular_is_refused_at_once() -> Result<()> {
    let folder = folder()?;
    let socket = folder.path().join("socket.db");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).map_err(io(&socket))?;
    let mut paths = vec![socket, "/dev/null".into(), "/dev/zero".into()];
    let pipe = folder.path().join("pipe.db");
    if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()) {
        paths.push(pipe);
    }
    for path in paths {
        for answer in [Store::open(&path), Store::open_read_only(&path)] {
            assert!(
                matches!(answer, Err(Error::NotAStore { .. })),
                "{}: {answer:?}",
                path.display()
            );
        }
    }
    Ok(())
}

fn database(error: rusqlite::Error) -> Error {
    Error::Storage { source: Box::new(error) }
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_unchanged() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("talk.db");
    Store::open(&path)?.session("s")?.append(Message::user("kept"))?;
    let tables = Tables::of(&path);
    tables.set_version(99);
    let before = tables.bytes();
    for answer in [Store::open(&path), Store::open_read_only(&path)] {
        assert!(matches!(answer, Err(Error::NewerStore { found: 99, .. })), "{answer:?}");
    }
    assert_eq!(tables.bytes(), before);
    Ok(())
}

#[test]
fn missing_or_unwritable_files_are_an_io_error() -> Result<()> {
    let folder = folder()?;
    let missing = folder.path().join("missing").join("talk.db");
    assert!(matches!(Store::open(&missing), Err(Error::Io { path, .. }) if path == missing));
    let absent = folder.path().join("absent.db");
    assert!(matches!(Store::open_read_only(&absent), Err(Error::Io { .. })));
    assert!(!absent.exists(), "a store that is opened for reading is not made");
    assert!(matches!(Store::open(""), Err(Error::Io { .. })));
    Ok(())
}

#[test]
fn an_empty_file_becomes_a_store_but_is_not_one_read_only() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("empty.db");
    std::fs::write(&path, b"").map_err(io(&path))?;
    assert!(matches!(Store::open_read_only(&path), Err(Error::NotAStore { .. })));
    Store::open(&path)?.session("s")?.append(Message::user("first"))?;
    assert_eq!(Store::open_read_only(&path)?.session("s")?.path_length()?, 1);
    Ok(())
}

#[test]
fn a_read_only_store_refuses_writes() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    chat.append_all(letters("a b c"))?;
    let compaction = chat.add_compaction("summary", &"a".into(), &"b".into())?.id;
    let store = Store::open_read_only(scratch.folder.path().join("talk.db"))?;
    let read_only = store.session("s")?;
    assert_eq!(read_only.history()?, chat.history()?);
    assert_eq!(drawn(&read_only.raw_history()?), "a b c");
    let a = MessageId::from("a");
    let answers = [
        read_only.append(Message::user("d")).map(|_| ()),
        read_only.update(Message::user("d").with_id("a")).map(|_| ()),
        read_only.delete([&a]).map(|_| ()),
        read_only.clear(),
        read_only.checkout(&a),
        read_only.label("x", &a),
        read_only.remove_compaction(&compaction),
        read_only.add_compaction("s", &a, &a).map(|_| ()),
        read_only.fork(&a, "fork").map(|_| ()),
        read_only.import_message(None, Message::user("i")).map(|_| ()),
        store.remove(chat.id()),
        store.rename(chat.id(), "n"),
        store.rebuild_search(),
    ];
    for (at, answer) in answers.iter().enumerate() {
        assert!(matches!(answer, Err(Error::ReadOnly)), "verb {at}: {answer:?}");
    }
    // It sees the writes of other handles.
    chat.append(Message::user("d").with_id("d"))?;
    assert_eq!(read_only.head()?, Some("d".into()));
    Ok(())
}

#[test]
fn unusual_times_are_kept() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    for time in ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z"] {
        let json = json!({"id": time, "role": "user", "parts": [], "created_at": time});
        let message: Message = serde_json::from_value(json)
            .map_err(|source| Error::Json { what: "the test's message", source })?;
        chat.append(message.clone())?;
        assert_eq!(chat.message(&time.into())?.map(|m| m.created_at), Some(message.created_at));
    }
    Ok(())
}

/// The number of messages of the wide and of the deep tree.
const MANY: usize = match (cfg!(talktree_on_postgres), cfg!(debug_assertions)) {
    (true, _) => 10_000,
    (_, true) => 100_000,
    _ => 1_000_000,
};

fn numbers(range: std::ops::Range<usize>) -> impl Iterator<Item = Message> {
    range.map(|n| Message::user("x").with_id(n.to_string()))
}

fn long(count: usize) -> Result<(Scratch, Session)> {
    let scratch = Scratch::new()?;
    let chat = scratch.store.session("s")?;
    for start in (0..count).step_by(10_000) {
        chat.append_all(numbers(start..count.min(start + 10_000)))?;
    }
    Ok((scratch, chat))
}

/// Runs `work` on a small stack, which any recursion along a path overflows.
fn on_small_stack(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work);
    let thread = thread.map_err(|source| Error::Io { path: "a thread".into(), source })?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn a_very_deep_path_can_be_read_and_deleted() -> Result<()> {
    on_small_stack(|| {
        let begun = Instant::now();
        let (scratch, chat) = long(MANY)?;
        let (last, middle) = ((MANY - 1).to_string(), MessageId::from((MANY / 2).to_string()));
        assert_eq!(chat.path_length()?, MANY as u64);
        assert_eq!(chat.at(&last.as_str().into()).history()?.len(), MANY);
        assert_eq!(chat.recent(Budget::messages(10))?.left_out, MANY as u64 - 10);
        let newest = chat.iter_rev().take(3).collect::<Result<Vec<Message>>>()?;
        assert_eq!(newest[0].id, last.as_str());
        assert_eq!(chat.iter_rev().count(), MANY);
        chat.delete([&middle, &"0".into()])?;
        assert_eq!(chat.path_length()?, MANY as u64 - 2);
        assert_eq!(chat.roots()?[0].id, "1");
        let compaction =
            chat.add_compaction("all", &"1".into(), &(MANY - 2).to_string().into())?.id;
        assert_eq!(chat.history()?.len(), 2);
        assert_eq!(chat.page().before(&compaction.as_message()).run()?.messages.len(), 0);
        assert_eq!(chat.fork(&last.as_str().into(), "fork")?.path_length()?, MANY as u64 - 2);
        assert_eq!(scratch.store.stats()?.max_depth, MANY as u64 - 2);
        chat.remove_compaction(&compaction)?;
        // A branch from each of a thousand messages.
        let step = MANY / 1_000;
        let parents = (1..1_000).map(|n| Some((n * step + 2).to_string().into()));
        chat.import_messages(parents.zip(numbers(MANY..2 * MANY)))?;
        assert!(chat.tree()?.lines(&DrawOptions::everything()).count() > 1_000);
        drop(chat.plan_compaction(&CompactionOptions::default())?);
        assert!(chat.visible_tokens()? > MANY as u64);
        export_session(&chat, &mut std::io::sink())?;
        assert!(!chat.search("x").on_path().run()?.hits.is_empty());
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
        chat.delete_branch(&middle_child())?;
        // The last branch before the middle.
        assert_eq!(chat.latest_leaf()?.map(|m| m.id), Some((MANY + 498).to_string().into()));
        // Minutes on a busy machine; quadratic work would take hours.
        assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
        Ok(())
    })
}

/// The child of the message in the middle, which is deleted.
fn middle_child() -> MessageId {
    (MANY / 2 + 1).to_string().into()
}

#[test]
fn a_long_chain_of_tombstones_is_skipped() -> Result<()> {
    on_small_stack(|| {
        const COUNT: usize = 20_000;
        let (_scratch, chat) = long(COUNT)?;
        let inner: Vec<MessageId> = (1..COUNT - 1).map(|n| n.to_string().into()).collect();
        assert_eq!(chat.delete(&inner)?.messages.len(), COUNT - 2);
        let last = MessageId::from((COUNT - 1).to_string());
        assert_eq!(chat.history()?.len(), 2);
        assert_eq!(chat.message(&last)?.and_then(|m| m.parent), Some("0".into()));
        assert_eq!(drawn(&chat.branches(&"0".into())?), last.as_str());
        assert_eq!((chat.path_length()?, chat.iter_rev().count()), (2, 2));
        chat.delete([&last])?;
        assert_eq!((chat.head()?, drawn(&chat.raw_history()?)), (Some("0".into()), "0".into()));
        Ok(())
    })
}

#[test]
fn very_many_children_of_one_message_can_be_read_and_deleted() -> Result<()> {
    on_small_stack(|| {
        let scratch = Scratch::new()?;
        let chat = scratch.store.session("s")?;
        chat.append(Message::user("root").with_id("root"))?;
        let root = MessageId::from("root");
        const COUNT: usize = if MANY < 100_000 { MANY } else { 100_000 };
        for start in (0..COUNT).step_by(COUNT / 10) {
            let messages = numbers(start..start + COUNT / 10);
            chat.import_messages(messages.map(|message| (Some(root.clone()), message)))?;
        }
        assert_eq!(chat.branches(&root)?.len(), COUNT);
        assert_eq!(chat.siblings(&"7".into())?.len(), COUNT);
        assert_eq!(chat.leaves()?.len(), COUNT);
        let last = (COUNT - 1).to_string();
        assert_eq!(drawn(&chat.at(&last.as_str().into()).history()?), format!("root {last}"));
        assert_eq!(scratch.store.stats()?.max_children, COUNT as u64);
        chat.delete([&root])?;
        assert_eq!(chat.roots()?.len(), COUNT);
        assert_eq!(chat.at(&"5".into()).path_length()?, 1);
        Ok(())
    })
}

#[test]
fn a_value_is_that_of_its_text() -> Result<()> {
    assert_eq!(Json::parse(r#"{"a": [1, "\ud83d"]}"#)?.value(), json!({"a": [1, "\u{FFFD}"]}));
    assert_eq!(Json::parse("1e999")?.value(), Value::String("1e999".to_owned()));
    assert_eq!(Json::parse(r#"{"b":1,"a":2}"#)?, Json::parse(r#"{ "a": 2, "b": 1 }"#)?);
    Ok(())
}

#[test]
fn an_extra_field_with_the_name_of_a_message_field_is_refused() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("hi").with_id("m"))?;
    for name in ["id", "parent", "role", "parts", "metadata", "created_at", "createdAt", "hidden"] {
        let mut message = Message::user("ho").with_id("m");
        message.extra.insert(name.to_owned(), Json::parse("1")?);
        let refused =
            |error: Error| matches!(error, Error::InvalidValue { what: "extra field", .. });
        assert!(chat.update(message.clone()).is_err_and(refused), "{name}");
        assert!(chat.append(message.with_id("n")).is_err_and(refused), "{name}");
    }
    assert_eq!(chat.raw_history()?.len(), 1);
    Ok(())
}
