//! Files that grew, diverged or were imported before: what is known is not added again, and what was deleted or removed since
//! does not come back.

use std::fmt::Write as _;
use std::io::Cursor;

use crate::common::{faults, import, paths, pi, try_import};
use talktree::{Erasure, Error, Message, MessageId, Result, Store};
use talktree_import::export::{content_hash, export_jsonl};
use talktree_import::{ImportOptions, import_reader};

#[test]
fn a_file_that_holds_only_the_missing_parent_is_a_piece_of_the_same_conversation() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "bx cb"));
    let report = import(&store, &pi("s", "x-"));
    assert_eq!((report.added, faults(&report)), (1, vec![]));
    let report = import(&store, &pi("s", "dc"));
    assert_eq!((report.added, faults(&report)), (1, vec![]), "{report:#?}");
    assert_eq!(paths(&store, "s")?, "x bcd");
    Ok(())
}

#[test]
fn a_grown_file_adds_its_tail_and_moves_the_head() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba"));
    let chat = store.session("s")?;
    chat.checkout(&"a".into())?;
    import(&store, &pi("s", "a- ba"));
    assert_eq!(chat.head()?, Some("a".into()), "nothing new moves no head");
    let report = import(&store, &pi("s", "a- ba ca dc"));
    assert_eq!((report.added, report.known), (2, 2));
    assert_eq!((chat.head()?, paths(&store, "s")?), (Some("d".into()), "ab acd".to_owned()));
    Ok(())
}

#[test]
fn lists_without_ids_keep_their_common_messages_when_they_grow_or_diverge() -> Result<()> {
    let list = |texts: &str| {
        let said: Vec<_> = texts
            .split(' ')
            .map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#))
            .collect();
        format!("[{}]", said.join(","))
    };
    let store = Store::open_in_memory()?;
    let first = import(&store, &list("a a b"));
    assert_eq!(first.added, 3);
    let grown = import(&store, &list("a a b c"));
    assert_eq!((grown.added, grown.known, &grown.sessions), (1, 3, &first.sessions));
    let other = import(&store, &list("a a x"));
    assert_eq!((other.added, &other.sessions), (1, &first.sessions));
    let chat = store.session(&first.sessions[0])?;
    assert_eq!(chat.leaves()?.len(), 2);
    let apart = import(&store, &list("z"));
    assert_ne!(apart.sessions, first.sessions);
    Ok(())
}

#[test]
fn what_was_deleted_does_not_come_back() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = pi("s", "a- ba cb");
    import(&store, &file);
    let chat = store.session("s")?;
    chat.delete([&"b".into()])?;
    let report = import(&store, &file);
    assert_eq!((report.added, report.known, paths(&store, "s")?.as_str()), (0, 3, "ac"));

    // Its child in a grown file goes below the nearest living ancestor.
    let report = import(&store, &pi("s", "a- ba cb db ec"));
    assert_eq!(report.added, 2, "{report:#?}");
    assert_eq!(paths(&store, "s")?, "ad ace");
    chat.clear()?;
    assert_eq!(import(&store, &file).dropped, 0);
    Ok(())
}

#[test]
fn a_removed_compaction_or_label_stays_removed() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pi_v3.jsonl");
    let file = std::fs::read_to_string(path).unwrap();
    let store = Store::open_in_memory()?;
    import(&store, &file);
    let chat = store.session("P")?;
    chat.remove_compaction(&chat.compactions()?[0].id)?;
    chat.unlabel("run")?;
    store.rename(chat.id(), "mine")?;
    let hash = content_hash(&store)?;
    import(&store, &file);
    assert_eq!(content_hash(&store)?, hash);
    Ok(())
}

/// A label that means something else failed for the step that set it, after all messages were stored.
#[test]
fn a_label_that_means_something_else_is_left_out() -> Result<()> {
    let label = |name: &str| {
        format!(
            "\n{{\"type\":\"label\",\"id\":\"l-{name}\",\"parentId\":\"b\",\"targetId\":\"a\",\"label\":\"{name}\"}}"
        )
    };
    let file = format!("{}{}{}{}", pi("s", "a- ba"), label("b"), label("head"), label("x"));
    // Pi keeps one label of a message, the last one.
    for (entries, name, is_kept) in [(1, "b", false), (2, "head", false), (3, "x", true)] {
        let end = file.find(&label(name)).unwrap() + label(name).len();
        for is_dry_run in [true, false] {
            let store = Store::open_in_memory()?;
            let options = ImportOptions { is_dry_run, ..ImportOptions::default() };
            let report = try_import(&store, &file[..end], &options)?;
            assert_eq!(report.first_fault().is_none(), is_kept, "{name}: {report:#?}");
            // The entries of labels are hidden messages, too.
            assert_eq!((report.added, report.dropped), (2 + entries, 0), "{name}: {report:#?}");
            if !is_dry_run {
                let labels = store.session("s")?.labels()?;
                assert_eq!(labels.len(), usize::from(is_kept), "{name}: {labels:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn two_sources_that_claim_one_session_are_not_merged() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba"));
    let hash = content_hash(&store)?;
    for other in ["a-other ba-other cb", "x- yx"] {
        let report = import(&store, &pi("s", other));
        assert_eq!((report.added, report.kept), (0, 0), "{report:#?}");
        assert_eq!(report.dropped, other.split(' ').count() as u64);
        assert!(report.first_fault().unwrap().why.contains("another conversation"));
        assert_eq!(content_hash(&store)?, hash);
    }
    // Under another id it is imported.
    let options = ImportOptions { session: Some("t".into()), ..ImportOptions::default() };
    assert_eq!(try_import(&store, &pi("s", "x- yx"), &options)?.added, 2);
    Ok(())
}

#[test]
fn a_message_with_other_parts_is_reported_each_time_and_refused_by_strict() -> Result<()> {
    let chat = |output: &str, more: &str| {
        format!(
            r#"{{"id":"s","messages":[{{"id":"q","role":"user","parts":[{{"type":"text","text":"q"}}]}},
            {{"id":"a","role":"assistant","parts":[{{"type":"tool-brew","toolCallId":"t","state":"output-available",
            "input":{{}},"output":"{output}"}}]}}{more}]}}"#
        )
    };
    let store = Store::open_in_memory()?;
    import(&store, &chat("hot", ""));
    let hash = content_hash(&store)?;
    for _ in 0..2 {
        let report = import(&store, &chat("cold", ""));
        assert!(report.first_fault().unwrap().why.contains("other content"), "{report:#?}");
    }
    let longer = chat("cold", r#",{"id":"n","role":"user","parts":[{"type":"text","text":"n"}]}"#);
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    assert!(matches!(try_import(&store, &longer, &strict), Err(Error::Import { .. })));
    assert_eq!(content_hash(&store)?, hash);
    Ok(())
}

#[test]
fn a_dry_run_compares_the_conversations_of_a_file_with_each_other() -> Result<()> {
    let chat = |texts: [&str; 2]| {
        let messages = texts.iter().enumerate();
        let messages: Vec<String> = messages
            .map(|(n, text)| format!(r#"{{"id":"m{n}","role":"user","content":"{text}"}}"#))
            .collect();
        format!(r#"{{"id":"s","messages":[{}]}}"#, messages.join(","))
    };
    for (second, is_fault) in [(["a", "b"], false), (["a", "other"], true), (["x", "y"], true)] {
        let file = format!("[{},{}]", chat(["a", "b"]), chat(second));
        let store = Store::open_in_memory()?;
        let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
        assert_eq!(try_import(&store, &file, &strict).is_err(), is_fault);
        assert_eq!(store.sessions()?.is_empty(), is_fault);
        let (dry, store) = (
            ImportOptions { is_dry_run: true, ..ImportOptions::default() },
            Store::open_in_memory()?,
        );
        let foreseen = try_import(&store, &file, &dry)?;
        assert_eq!(foreseen, import(&store, &file));
    }
    Ok(())
}

/// Returns a Pi file with a long session.
fn long(session: &str) -> String {
    let mut file = pi(session, "");
    for n in 0..5_000 {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    file
}

#[test]
fn an_interrupt_stops_an_import_between_sessions_and_a_second_one_completes_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = format!("{}\n{}", long("s"), long("t"));
    let handle = store.interrupt_handle();
    let bytes = file.len() as u64;
    let stopped =
        import_reader(&store, "f", Cursor::new(&file), &ImportOptions::default(), |progress| {
            if progress.done > bytes + bytes / 3 {
                handle.interrupt();
            }
        });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    // Each is there as a whole or not at all.
    assert_eq!(store.stats()?.messages, 5_000);
    let report = import(&store, &file);
    assert_eq!((report.known, report.added), (5_000, 5_000));
    for session in ["s", "t"] {
        assert_eq!(store.session(session)?.path_length()?, 5_000);
        assert_eq!(store.session(session)?.head()?, Some("m4999".into()));
    }
    Ok(())
}

/// A name that was made from a text came back with the next import, although the text had been changed or deleted.
#[test]
fn a_name_that_was_made_from_an_old_text_does_not_come_back() -> Result<()> {
    let file = pi("s", "a-secret ba");
    let changes: [fn(&talktree::Session) -> Result<()>; 2] = [
        |chat| chat.update(Message::user(" ").with_id("a")).map(drop),
        |chat| chat.delete([&"a".into()]).map(drop),
    ];
    for change in changes {
        let store = Store::open_in_memory()?;
        import(&store, &file);
        let chat = store.session("s")?;
        assert!(chat.info()?.unwrap().name.is_some());
        change(&chat)?;
        assert_eq!(chat.info()?.unwrap().name, None);
        import(&store, &file);
        assert_eq!(chat.info()?.unwrap().name, None);
    }
    Ok(())
}

/// The messages of a long session are read a second time, and then the lines after it were read again, too.
#[test]
fn what_follows_a_long_session_of_an_export_is_read_once() -> Result<()> {
    let store = Store::open_in_memory()?;
    for id in ["a", "b"] {
        let long = (0..10).map(|_| Message::user("x".repeat(1 << 20)));
        store.session(id)?.append_all(long)?;
    }
    let mut file = Vec::new();
    export_jsonl(&store, &mut file)?;
    let copy = Store::open_in_memory()?;
    let options = ImportOptions::default();
    let report = import_reader(&copy, "f", Cursor::new(&file), &options, |_| {})?;
    assert_eq!((report.added, report.notes.len(), report.records), (20, 0, 26), "{report:#?}");
    assert_eq!(content_hash(&copy)?, content_hash(&store)?);
    Ok(())
}

#[test]
fn the_child_of_a_deleted_message_goes_below_its_nearest_living_ancestor() -> Result<()> {
    for (deleted, grown, shape, lines) in [
        ("c", "a- ba cb dc", "abd", vec![5]),
        ("b c", "a- ba cb dc", "ad", vec![5]),
        ("a b c", "a- ba cb dc ed", "de", vec![5]),
        ("a", "a- ba cb da", "bc d", vec![5]),
        // The file holds the tail only: what it follows is neither in the file nor in the store.
        ("c", "ba dc ed fb", "de abf", vec![3]),
    ] {
        let store = Store::open_in_memory()?;
        import(&store, &pi("s", "a- ba cb"));
        let chat = store.session("s")?;
        chat.delete(&deleted.split(' ').map(MessageId::from).collect::<Vec<_>>())?;
        let report = import(&store, &pi("s", grown));
        let noted: Vec<_> = report.notes.iter().filter_map(|note| note.line).collect();
        assert_eq!((noted, report.dropped), (lines, 0), "{deleted}, {grown}: {report:#?}");
        assert_eq!(paths(&store, "s")?, shape, "{deleted}, {grown}");
        assert_eq!(chat.head()?.unwrap().as_str(), grown[grown.len() - 2..].get(..1).unwrap());
    }
    Ok(())
}

#[test]
fn a_conversation_that_was_deleted_and_replaced_is_still_known_by_its_file() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba"));
    let chat = store.session("s")?;
    chat.append_root(Message::user("mine").with_id("m"))?;
    chat.delete(&["a".into(), "b".into()])?;
    let report = import(&store, &pi("s", "a- ba cb"));
    assert_eq!((report.added, report.known, report.dropped), (1, 2, 0), "{report:#?}");
    assert_eq!(paths(&store, "s")?, "m c");
    // Another conversation is still told apart.
    assert_eq!(import(&store, &pi("s", "x- yx")).dropped, 2);
    Ok(())
}

#[test]
fn an_erased_session_is_left_out_and_the_others_are_imported() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba"));
    let _ = store.erase(&Erasure::session("s").forbid_import())?;
    for options in [
        ImportOptions::default(),
        ImportOptions { session: Some("s".into()), ..ImportOptions::default() },
    ] {
        let report = try_import(&store, &pi("s", "a- ba"), &options)?;
        assert_eq!((report.added, report.dropped, faults(&report)), (0, 2, vec![]), "{report:#?}");
        assert!(report.notes[0].why.contains("was erased"), "{report:#?}");
    }
    assert!(store.sessions()?.is_empty());
    assert_eq!(import(&store, &pi("t", "a- ba")).added, 2);
    Ok(())
}

#[test]
fn a_session_in_the_trash_is_left_out() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a-"));
    store.change_session(&"s".into(), &talktree::SessionChange::Delete)?;
    let report = try_import(&store, &pi("s", "a- ba"), &ImportOptions::default())?;
    assert_eq!((report.added, report.dropped, faults(&report)), (0, 2, vec![]), "{report:#?}");
    assert!(report.notes[0].why.contains("is in the trash"), "{report:#?}");
    store.change_session(&"s".into(), &talktree::SessionChange::Restore)?;
    assert_eq!(import(&store, &pi("s", "a- ba")).added, 1);
    Ok(())
}
