//! Files that are damaged, circular, contradictory or cut off: each is imported as far as it goes, each
//! fault is reported with its line, and none hangs or is fatal unless asked for.

use std::io::Cursor;

use crate::common::{faults, import, paths, pi, try_import};
use talktree::{Error, Message, Result, Store};
use talktree_import::MAX_NOTES;
use talktree_import::{ImportOptions, import_reader};

#[test]
fn a_damaged_line_is_reported_with_its_number_and_skipped() -> Result<()> {
    let store = Store::open_in_memory()?;
    let report = import(&store, &pi("s", "a- ! ba"));
    assert_eq!((report.kept, report.dropped, faults(&report)), (2, 1, vec![3]));
    assert_eq!(paths(&store, "s")?, "ab");

    for damage in ["[1]", "7", "\u{0}\u{0}", "{}}", "{\"type\":\"message\",\"message\":"] {
        let store = Store::open_in_memory()?;
        let report = import(&store, &format!("{}\n{damage}", pi("s", "a-")));
        assert_eq!((report.kept, faults(&report)), (1, vec![3]), "{damage:?}");
    }
    let mut bytes = pi("s", "a-").into_bytes();
    bytes.extend(b"\n{\"type\":\"\xFF\"}");
    let store = Store::open_in_memory()?;
    let report = import_reader(&store, "f", Cursor::new(bytes), &ImportOptions::default(), |_| {})?;
    assert!(report.notes[0].why.contains("UTF-8"), "{report:?}");
    Ok(())
}

#[test]
fn strict_refuses_before_anything_is_written() -> Result<()> {
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    for (tree, line) in [("a- ba !", 4), ("a- bx", 3), ("ab ba", 2), ("a- a-other", 3)] {
        let store = Store::open_in_memory()?;
        let error = try_import(&store, &pi("s", tree), &strict).unwrap_err();
        let Error::Import { line: found, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, Some(line), "{tree}: {error}");
        assert!(store.sessions()?.is_empty(), "{tree}");
    }
    let store = Store::open_in_memory()?;
    assert_eq!(try_import(&store, &pi("s", "a- ba"), &strict)?.added, 2);
    Ok(())
}

#[test]
fn a_dry_run_writes_nothing_and_reports_everything() -> Result<()> {
    let dry = ImportOptions { is_dry_run: true, ..ImportOptions::default() };
    let file = pi("s", "a- ! ba cx");
    let store = Store::open_in_memory()?;
    let rehearsed = try_import(&store, &file, &dry)?;
    assert!(store.sessions()?.is_empty());
    let done = import(&store, &file);
    assert_eq!(rehearsed, done);
    let rehearsed = try_import(&store, &file, &dry)?;
    assert_eq!((rehearsed.added, rehearsed.known), (0, 3));
    Ok(())
}

#[test]
fn parents_that_come_later_in_the_file_come_first_in_the_store() -> Result<()> {
    for (tree, shape) in [("cb ba a-", "abc"), ("ba a- cb da", "abc ad"), ("a- cb ba da", "abc ad")]
    {
        let store = Store::open_in_memory()?;
        let report = import(&store, &pi("s", tree));
        assert_eq!((report.added, report.notes.len()), (report.kept, 0), "{report:?}");
        assert_eq!(paths(&store, "s")?, shape);
    }
    Ok(())
}

#[test]
fn a_parent_that_is_nowhere_makes_a_reported_root() -> Result<()> {
    let store = Store::open_in_memory()?;
    let report = import(&store, &pi("s", "a- bx cb"));
    assert_eq!(faults(&report), [3]);
    assert_eq!(paths(&store, "s")?, "a bc");

    // A later file that contains it adds a note; stored messages do not change.
    let report = import(&store, &pi("s", "a- xa bx cb dc"));
    assert_eq!((report.added, report.known), (2, 3), "{report:#?}");
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.line == Some(4) && note.why.contains("before its parent"))
    );
    assert_eq!(paths(&store, "s")?, "ax bcd");
    Ok(())
}

#[test]
fn circles_are_broken_at_a_reported_root() -> Result<()> {
    for (tree, shape, lines) in [
        ("aa", "a", vec![2]),
        ("ab ba", "ab", vec![2]),
        ("x- da ab bc ca", "x ad acb", vec![4]),
        ("x- ax bc cd db", "xa bdc", vec![4]),
    ] {
        let store = Store::open_in_memory()?;
        let report = import(&store, &pi("s", tree));
        assert_eq!(faults(&report), lines, "{tree}");
        let mut found: Vec<_> = paths(&store, "s")?.split(' ').map(str::to_owned).collect();
        let mut expected: Vec<_> = shape.split(' ').map(str::to_owned).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{tree}");
        assert_eq!(import(&store, &pi("s", tree)).added, 0);
    }
    Ok(())
}

#[test]
fn a_message_that_differs_is_left_and_reported() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba cb"));
    let report = import(&store, &pi("s", "a- ba-other cb dc"));
    assert_eq!((report.added, report.dropped, faults(&report)), (1, 1, vec![3]));
    assert_eq!(store.session("s")?.message(&"b".into())?.unwrap().text(), "b");
    // What was changed in the store is no fault of the file.
    let chat = store.session("s")?;
    chat.update(Message::user("c, corrected").with_id("c"))?;
    assert_eq!(faults(&import(&store, &pi("s", "a- ba cb dc"))), Vec::<u64>::new());
    Ok(())
}

#[test]
fn a_record_that_comes_twice_is_kept_once() -> Result<()> {
    let store = Store::open_in_memory()?;
    let report = import(&store, &pi("s", "a- ba a- ba-other cb"));
    assert_eq!((report.kept, report.dropped, faults(&report)), (3, 2, vec![5]));
    assert_eq!(paths(&store, "s")?, "abc");
    Ok(())
}

#[test]
fn a_session_can_be_given_for_one_conversation_only() -> Result<()> {
    let store = Store::open_in_memory()?;
    let options = ImportOptions { session: Some("mine".into()), ..ImportOptions::default() };
    try_import(&store, &pi("s", "a- ba"), &options)?;
    assert_eq!(paths(&store, "mine")?, "ab");
    let two = r#"{"messages":[{"role":"user","content":"a"}]}
{"messages":[{"role":"user","content":"b"}]}"#;
    let error = try_import(&store, two, &options).unwrap_err();
    assert!(error.to_string().contains("holds 2 conversations"), "{error}");
    assert_eq!(store.sessions()?.len(), 1);
    Ok(())
}

#[test]
fn ids_that_no_message_may_have_are_replaced_the_same_way_each_time() -> Result<()> {
    let long = "x".repeat(2_000);
    let line = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{}"}}}}"#,
            id.len()
        )
    };
    let file = format!(
        "{}\n{}\n{}\n{}",
        pi("s", ""),
        line(&long, "null"),
        line("compaction_1", &format!("\"{long}\"")),
        line("", "\"compaction_1\""),
    );
    let store = Store::open_in_memory()?;
    assert_eq!(import(&store, &file).added, 3);
    assert_eq!(store.session("s")?.path_length()?, 3);
    assert_eq!(import(&store, &file).added, 0);
    Ok(())
}

#[test]
fn a_message_too_large_is_left_out_and_what_hangs_from_it_is_not() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let big = pi("s", "a- ba cb").replace("\"b\"}}", &format!("\"{}\"}}}}", "b".repeat(2_000)));
    let report = import(&store, &big);
    assert_eq!((report.added, report.dropped, faults(&report)), (2, 1, vec![3]), "{report:?}");
    assert_eq!(paths(&store, "s")?, "ac");
    Ok(())
}

#[test]
fn a_file_that_is_not_a_transcript_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    for file in ["", "\n", "hello", "[]", "[1,2]", "{\"a\":1}", "[[[[", "\u{FEFF}"] {
        let error = try_import(&store, file, &ImportOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("file: in no format"), "{file:?}: {error}");
    }
    let error = talktree_import::import(&store, "/no/such/file", &ImportOptions::default(), |_| {})
        .unwrap_err();
    assert!(matches!(error, Error::Io { .. }));
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn notes_are_bounded_and_counts_are_not() -> Result<()> {
    let store = Store::open_in_memory()?;
    let count = MAX_NOTES + 500;
    let report = import(&store, &format!("{}{}", pi("s", "a-"), "\n!".repeat(count)));
    assert_eq!((report.dropped, report.notes.len()), (count as u64, MAX_NOTES));
    assert_eq!(report.notes_left_out, 500);
    Ok(())
}

#[test]
fn progress_ends_where_it_said_it_would() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut told = Vec::new();
    let file = pi("s", "a- ba");
    import_reader(&store, "f", Cursor::new(&file), &ImportOptions::default(), |progress| {
        told.push((progress.done, progress.total));
    })?;
    assert!(told.is_sorted(), "{told:?}");
    let (done, total) = *told.last().unwrap();
    assert!(done == total && total >= file.len() as u64);
    Ok(())
}
