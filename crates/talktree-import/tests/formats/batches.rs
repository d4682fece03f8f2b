//! Many short conversations are stored together; if one fails, the others are stored. Each was once synced to disk by
//! itself, four times: 1 800 of them took 12.6 s, of which 11 s were spent waiting for the disk.

use std::fmt::Write as _;
use std::io::Cursor;

use crate::tables::Tables;
use talktree::{Message, Result, Store};
use talktree_import::export::content_hash;
use talktree_import::{Format, ImportOptions, Importer, import_reader};

/// Conversations of two messages each.
fn chats(ids: impl Iterator<Item = usize>) -> String {
    let mut file = String::new();
    for n in ids {
        let messages = format!(
            r#"[{{"role":"user","content":"question {n}"}},{{"role":"assistant","content":"answer {n}"}}]"#
        );
        writeln!(file, r#"{{"id":"c{n}","messages":{messages}}}"#).unwrap();
    }
    file
}

#[test]
fn five_hundred_conversations_take_few_commits() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (store, tables) = (Store::open(&path)?, Tables::of(&path));
    let options = ImportOptions::default();
    let before = tables.commits();
    let report = import_reader(&store, "f", Cursor::new(chats(0..500)), &options, |_| {})?;
    assert_eq!((report.added, report.sessions.len()), (1_000, 500));
    let of_one_file = tables.commits() - before;
    assert!(of_one_file <= 20, "{of_one_file} commits");

    let mut importer = Importer::new(&store, options);
    for n in 500..1_000 {
        importer.add(format!("{n}.json"), Cursor::new(chats(n..n + 1)), |_| {})?;
    }
    let reports = importer.finish()?;
    assert_eq!(reports.len(), 500);
    assert!(reports.iter().all(|report| report.added == 2 && report.sessions.len() == 1));
    let of_many_files = tables.commits() - before - of_one_file;
    assert!(of_many_files <= 20, "{of_many_files} commits");
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_second_import_of_many_conversations_commits_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (store, tables) = (Store::open(&path)?, Tables::of(&path));
    let import = || {
        let file = Cursor::new(chats(0..100));
        import_reader(&store, "f", file, &ImportOptions::default(), |_| {})
    };
    import()?;
    store.search("question").run()?;
    let (before, hash) = (tables.commits(), content_hash(&store)?);
    let again = import()?;
    assert_eq!((again.added, again.known), (0, 200));
    assert_eq!((tables.commits(), content_hash(&store)?), (before, hash));
    Ok(())
}

#[test]
fn if_a_conversation_fails_the_others_are_stored() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let long = format!("answer 1{}", "!".repeat(2_000));
    let file = chats(0..3).replace("answer 1", &long);
    let report = import_reader(&store, "f", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!((report.records, report.kept, report.dropped, report.added), (6, 5, 1, 5));
    assert_eq!(report.first_fault().and_then(|fault| fault.line), Some(2));
    assert_eq!(store.session("c1")?.path_length()?, 1);
    assert_eq!(store.session("c2")?.path_length()?, 2);
    Ok(())
}

#[test]
fn a_session_that_another_writes_meanwhile_is_not_merged() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut importer = Importer::new(&store, ImportOptions::default());
    importer.add("a.json", Cursor::new(chats(0..2)), |_| {})?;
    store.session("c1")?.append(Message::user("mine"))?;
    importer.add("b.json", Cursor::new(chats(2..3)), |_| {})?;
    assert!(importer.take_reports().is_empty(), "they wait");
    let reports = importer.finish()?;
    assert_eq!((reports[0].added, reports[0].dropped, reports[1].added), (2, 2, 2));
    let fault = reports[0].first_fault().expect("a fault");
    assert!(fault.why.contains("another conversation"), "{fault:?}");
    assert_eq!(store.session("c1")?.path_length()?, 1);
    Ok(())
}

#[test]
fn if_a_file_fails_the_others_of_the_folder_are_imported() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut importer = Importer::new(&store, ImportOptions::default());
    importer.add("a.json", Cursor::new(chats(0..1)), |_| {})?;
    assert!(importer.add("b.json", Cursor::new("nonsense"), |_| {}).is_err());
    // The same session again, in another file.
    importer.add("c.json", Cursor::new(chats(0..2)), |_| {})?;
    let mut reports = importer.take_reports();
    reports.extend(importer.finish()?);
    let counts: Vec<_> = reports.iter().map(|report| (report.added, report.known)).collect();
    assert_eq!(counts, [(2, 0), (2, 2)]);
    assert_eq!(store.sessions()?.len(), 2);
    Ok(())
}

/// Lists without ids, each a file.
fn list(texts: &str) -> String {
    let said = texts.split(' ').map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#));
    format!("[{}]", said.collect::<Vec<_>>().join(","))
}

/// A list without an id was known by the name of its file: a copy, a renamed file or standard input came in again.
#[test]
fn a_copy_of_a_list_without_ids_adds_nothing_whatever_it_is_called() -> Result<()> {
    let store = Store::open_in_memory()?;
    let import = |name: &str, texts: &str| {
        import_reader(&store, name, Cursor::new(list(texts)), &ImportOptions::default(), |_| {})
    };
    let first = import("a.json", "hi ho so")?;
    for name in ["b.json", "/elsewhere/a.json", "-"] {
        let copy = import(name, "hi ho so")?;
        assert_eq!((copy.added, copy.known, &copy.sessions), (0, 3, &first.sessions), "{name}");
    }
    // Part of it, and a copy that has grown.
    assert_eq!(import("c.json", "hi ho")?.sessions, first.sessions);
    let grown = import("d.json", "hi ho so on")?;
    assert_eq!((grown.added, &grown.sessions), (1, &first.sessions));

    // Others begin alike and are sessions of their own, in any order and under any name.
    let other = import("e.json", "hi you")?;
    let third = import("f.json", "hi you there")?;
    assert_ne!(other.sessions, first.sessions);
    assert_eq!(
        (third.added, &third.sessions),
        (1, &other.sessions),
        "it begins with all of the other"
    );
    let fourth = import("g.json", "hi all")?;
    assert!(fourth.sessions != first.sessions && fourth.sessions != other.sessions);
    for (name, texts, of) in [
        ("h.json", "hi all", &fourth),
        ("-", "hi you there", &other),
        ("i.json", "hi ho so on", &first),
    ] {
        let copy = import(name, texts)?;
        assert_eq!((copy.added, &copy.sessions), (0, &of.sessions), "{name}");
    }
    assert_eq!(store.sessions()?.len(), 3);
    // The same file, whose end has changed, stays one session.
    let changed = import("a.json", "hi ho no")?;
    assert_eq!((changed.added, &changed.sessions), (1, &first.sessions));
    assert_eq!(store.session(&first.sessions[0])?.leaves()?.len(), 2);
    Ok(())
}

#[test]
fn equal_lists_of_one_file_stay_apart() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = format!("{{\"messages\":{0}}}\n{{\"messages\":{0}}}\n", list("hi ho"));
    let options = ImportOptions { format: Some(Format::OpenAi), ..ImportOptions::default() };
    for (name, added) in [("a", 4), ("b", 0)] {
        let report = import_reader(&store, name, Cursor::new(&file), &options, |_| {})?;
        assert_eq!((report.added, report.sessions.len()), (added, 2), "{name}");
    }
    Ok(())
}
