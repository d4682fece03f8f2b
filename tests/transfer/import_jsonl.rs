//! Exports that are damaged, cut off, grown, of another conversation or changed since: each is
//! imported as far as it goes, and each fault is reported with its line.

use std::fmt::Write as _;
use std::io::Cursor;

use talktree::{Error, Message, MessageId, Result, Store, Usage};
use talktree_import::export::{content_hash, export_jsonl};
use talktree_import::{Format, ImportOptions, ImportReport, import_reader};

fn try_import(store: &Store, file: &str, options: &ImportOptions) -> Result<ImportReport> {
    // Some of these files are no exports.
    let options = ImportOptions { format: Some(Format::Own), ..options.clone() };
    let report = import_reader(store, "file", Cursor::new(file.as_bytes()), &options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

#[track_caller]
fn import(store: &Store, file: &str) -> ImportReport {
    try_import(store, file, &ImportOptions::default()).unwrap()
}

/// An export without its end, drawn: each word a message under the letter after it; what follows is
/// said, too; `!` a damaged line.
fn export(session: &str, tree: &str) -> String {
    let mut file = format!(
        "{}\n{}",
        r#"{"format":"talktree","version":2}"#,
        format_args!(
            r#"{{"type":"session","session":1,"id":"{session}","created_at":"2026-01-02T03:04:05Z"}}"#
        )
    );
    for node in tree.split_whitespace() {
        file.push('\n');
        let mut letters = node.chars();
        let (id, parent) = (letters.next().unwrap(), letters.next());
        if id == '!' {
            file.push_str(r#"{"type":"message","message":"#);
            continue;
        }
        let parent = parent.filter(|p| *p != '-').map_or("null".to_owned(), |p| format!("\"{p}\""));
        let said: String = letters.collect();
        write!(file, r#"{{"type":"message","session":1,"message":{{"id":"{id}","parent":{parent},"role":"user","parts":[{{"type":"text","text":"{id}{said}"}}],"created_at":"2026-01-02T03:04:05Z"}}}}"#).unwrap();
    }
    file
}

/// The paths to the leaves, oldest leaf first.
fn paths(store: &Store, session: &str) -> Result<String> {
    let chat = store.session(session)?;
    let mut paths = Vec::new();
    for leaf in chat.leaves()? {
        let path = chat.at(&leaf).raw_history()?;
        paths.push(path.iter().map(|message| message.id.as_str()).collect::<String>());
    }
    Ok(paths.join(" "))
}

/// The lines of faults, but for the end that all these files lack.
fn faults(report: &ImportReport) -> Vec<u64> {
    let faults = report.notes.iter().filter(|note| note.is_fault && !note.why.contains("cut off"));
    faults.filter_map(|note| note.line).collect()
}

#[test]
fn a_damaged_line_is_reported_with_its_number_and_skipped() -> Result<()> {
    let store = Store::open_in_memory()?;
    let report = import(&store, &export("s", "a- ! ba"));
    assert_eq!((report.kept, report.dropped, faults(&report)), (2, 1, vec![4]));
    assert_eq!(paths(&store, "s")?, "ab");

    for damage in ["[1]", "7", "\u{0}\u{0}", "{}}", "{\"type\":\"message\",\"message\":", "{}"] {
        let store = Store::open_in_memory()?;
        let report = import(&store, &format!("{}\n{damage}\n", export("s", "a-")));
        assert_eq!((report.kept, faults(&report)), (1, vec![4]), "{damage:?}");
    }
    let mut bytes = export("s", "a-").into_bytes();
    bytes.extend(b"\n{\"type\":\"\xFF\"}");
    let store = Store::open_in_memory()?;
    let report = import_reader(&store, "f", Cursor::new(bytes), &ImportOptions::default(), |_| {})?;
    assert!(report.notes[0].why.contains("UTF-8"), "{report:?}");
    Ok(())
}

#[test]
fn a_byte_order_mark_and_blank_lines_are_no_records() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = format!("\u{FEFF}{}\n", export("s", "a- ba").replace('\n', "\r\n\r\n "));
    let report = import(&store, &file);
    assert_eq!((report.records, report.kept, faults(&report)), (4, 2, vec![]), "{report:#?}");
    Ok(())
}

#[test]
fn strict_refuses_before_anything_is_written() -> Result<()> {
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    for (tree, line) in [("a- ba !", 5), ("a- bx", 4), ("ab ba", 3), ("a- a-other", 4), ("a-", 3)] {
        let store = Store::open_in_memory()?;
        let error = try_import(&store, &export("s", tree), &strict).unwrap_err();
        let Error::Import { line: found, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, Some(line), "{tree}: {error}");
        assert!(store.sessions()?.is_empty(), "{tree}");
    }
    Ok(())
}

#[test]
fn a_dry_run_writes_nothing_and_reports_everything() -> Result<()> {
    let dry = ImportOptions { is_dry_run: true, ..ImportOptions::default() };
    let file = export("s", "a- ! ba cx a-");
    let store = Store::open_in_memory()?;
    let rehearsed = try_import(&store, &file, &dry)?;
    assert!(store.sessions()?.is_empty());
    assert_eq!(rehearsed, import(&store, &file));
    let rehearsed = try_import(&store, &file, &dry)?;
    assert_eq!((rehearsed.added, rehearsed.known), (0, 3));
    Ok(())
}

#[test]
fn a_parent_that_is_nowhere_makes_a_reported_root() -> Result<()> {
    let store = Store::open_in_memory()?;
    assert_eq!(faults(&import(&store, &export("s", "a- bx cb"))), [4]);
    assert_eq!(paths(&store, "s")?, "a bc");
    // A later export that contains it adds a note; stored messages do not change.
    let report = import(&store, &export("s", "a- xa bx cb dc"));
    assert_eq!((report.added, report.known), (2, 3), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.why.contains("before its parent")));
    assert_eq!(paths(&store, "s")?, "ax bcd");
    Ok(())
}

#[test]
fn a_grown_export_adds_its_tail_and_moves_the_head() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &export("s", "a- ba"));
    let chat = store.session("s")?;
    chat.checkout(&"a".into())?;
    import(&store, &export("s", "a- ba"));
    assert_eq!(chat.head()?, Some("a".into()), "nothing new moves no head");
    let report = import(&store, &export("s", "a- ba ca dc"));
    assert_eq!((report.added, report.known), (2, 2));
    assert_eq!((chat.head()?, paths(&store, "s")?), (Some("d".into()), "ab acd".to_owned()));
    // An older one has nothing to say.
    assert_eq!(import(&store, &export("s", "a-")).added, 0);
    assert_eq!(chat.head()?, Some("d".into()));
    // And the tail alone is a piece of the same conversation.
    assert_eq!(import(&store, &export("s", "ed")).added, 1);
    assert_eq!(paths(&store, "s")?, "ab acde");
    Ok(())
}

#[test]
fn two_exports_that_claim_one_session_are_not_merged() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &export("s", "a- ba"));
    let hash = content_hash(&store)?;
    let compaction = r#"{"type":"compaction","id":"c","first":"a","last":"a","summary":"x"}"#;
    for other in ["a-other ba-other cb", "x- yx"] {
        let report = import(&store, &format!("{}\n{compaction}", export("s", other)));
        assert_eq!((report.added, report.kept), (0, 0), "{report:#?}");
        // The messages, the record of the session and the compaction.
        assert_eq!(report.dropped, other.split(' ').count() as u64 + 2);
        assert!(report.first_fault().unwrap().why.contains("another conversation"));
        assert_eq!(content_hash(&store)?, hash);
    }
    let options = ImportOptions { session: Some("t".into()), ..ImportOptions::default() };
    assert_eq!(try_import(&store, &export("s", "x- yx"), &options)?.added, 2);
    let two = format!("{}\n{}", export("s", "a-"), export("u", "b-"));
    let error = try_import(&store, &two, &options).unwrap_err();
    assert!(error.to_string().contains("holds 2 conversations"), "{error}");
    Ok(())
}

#[test]
fn the_child_of_a_deleted_message_goes_below_its_nearest_living_ancestor() -> Result<()> {
    for (deleted, grown, shape, lines) in [
        ("c", "a- ba cb dc", "abd", vec![6]),
        ("b c", "a- ba cb dc", "ad", vec![6]),
        ("a b c", "a- ba cb dc ed", "de", vec![6]),
        ("a", "a- ba cb da", "bc d", vec![6]),
    ] {
        let store = Store::open_in_memory()?;
        import(&store, &export("s", "a- ba cb"));
        let chat = store.session("s")?;
        chat.delete(&deleted.split(' ').map(MessageId::from).collect::<Vec<_>>())?;
        assert_eq!(import(&store, &export("s", "a- ba cb")).added, 0, "it stays deleted");
        let report = import(&store, &export("s", grown));
        let lines_of_notes: Vec<_> = report
            .notes
            .iter()
            .filter(|note| !note.why.contains("cut off"))
            .filter_map(|note| note.line)
            .collect();
        assert_eq!((lines_of_notes, report.dropped), (lines, 0), "{deleted}: {report:#?}");
        assert_eq!(paths(&store, "s")?, shape, "{deleted}, {grown}");
        assert_eq!(chat.head()?.unwrap().as_str(), grown[grown.len() - 2..].get(..1).unwrap());
    }
    Ok(())
}

#[test]
fn a_message_too_large_is_left_out_and_what_follows_it_is_not() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let big = export("s", "a- ba cb").replace("\"b\"}]", &format!("\"{}\"}}]", "b".repeat(2_000)));
    let report = import(&store, &big);
    assert_eq!((report.added, report.dropped, faults(&report)), (2, 1, vec![4]), "{report:?}");
    assert_eq!(paths(&store, "s")?, "ac");
    Ok(())
}

#[test]
fn a_message_that_differs_or_comes_twice_is_left_and_reported() -> Result<()> {
    let store = Store::open_in_memory()?;
    let report = import(&store, &export("s", "a- ba a- ba-other cb"));
    assert_eq!((report.kept, report.dropped, faults(&report)), (3, 2, vec![6]));
    let report = import(&store, &export("s", "a- ba-other cb dc"));
    assert_eq!((report.added, report.dropped, faults(&report)), (1, 1, vec![4]));
    // What was changed in the store is no fault of the file.
    store.session("s")?.update(Message::user("c, corrected").with_id("c"))?;
    assert_eq!(faults(&import(&store, &export("s", "a- ba cb dc"))), Vec::<u64>::new());
    Ok(())
}

#[test]
fn parents_in_a_circle_end_an_import_like_any_other() -> Result<()> {
    let store = Store::open_in_memory()?;
    assert_eq!(import(&store, &export("s", "ab ba cb")).added, 3);
    store.session("s")?.delete(&["a".into(), "b".into()])?;
    assert_eq!(import(&store, &export("s", "ab ba cb db")).added, 1);
    Ok(())
}

#[test]
fn a_file_that_is_not_an_export_imports_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    for (file, dropped) in [("", 0), ("hello", 1), ("{\"role\":\"user\"}\n{}", 2)] {
        let report = import(&store, file);
        assert_eq!((report.records, report.dropped), (dropped, dropped), "{file:?}");
    }
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn progress_ends_where_it_said_it_would() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = export("s", "a- ba");
    let mut told = Vec::new();
    import_reader(&store, "f", Cursor::new(&file), &ImportOptions::default(), |progress| {
        told.push((progress.done, progress.total));
    })?;
    assert!(told.is_sorted(), "{told:?}");
    let (done, total) = *told.last().unwrap();
    assert!(done == total && total >= file.len() as u64);
    Ok(())
}

#[test]
fn an_erased_session_is_left_out_and_the_others_are_imported() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &export("s", "a- ba"));
    let _ = store.erase(&talktree::Erasure::session("s").forbid_import())?;
    let report = import(&store, &export("s", "a- ba"));
    // Two messages, and the line of the session.
    assert_eq!((report.added, report.kept, report.dropped), (0, 0, 3), "{report:#?}");
    assert_eq!(report.erased, ["s"]);
    assert!(report.notes[0].why.contains("was erased") && !report.notes[0].is_fault, "{report:#?}");
    assert!(store.sessions()?.is_empty());
    assert_eq!(import(&store, &export("t", "a- ba")).added, 2);
    Ok(())
}

/// It was an error: the sessions before it in the file were imported, those after it were not.
#[test]
fn a_session_in_the_trash_is_left_out_and_the_others_are_imported() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = |tree: &str| {
        let other = Store::open_in_memory()?;
        for session in ["a", "b", "c"] {
            import(&other, &export(session, tree));
        }
        let mut file = Vec::new();
        export_jsonl(&other, &mut file).map(|_| String::from_utf8(file).expect("UTF-8"))
    };
    import(&store, &file("a-")?);
    store.change_session(&"b".into(), &talktree::SessionChange::Delete)?;
    let report = import(&store, &file("a- ba")?);
    // Two messages, the line of the session, and its head.
    assert_eq!((report.added, report.dropped, report.erased.len()), (2, 4, 0), "{report:#?}");
    assert!(report.notes[0].why.contains("is in the trash"), "{report:#?}");
    store.change_session(&"b".into(), &talktree::SessionChange::Restore)?;
    assert_eq!(import(&store, &file("a- ba")?).added, 1);
    Ok(())
}

/// Without its record, a session's messages came under the session before it: under another person.
#[test]
fn without_the_record_of_its_session_a_message_is_left_out() -> Result<()> {
    let store = Store::open_in_memory()?;
    let first = store.session("ann")?;
    let told = first.append_all(["1 of ann", "2 of ann", "3 of ann"].map(Message::user))?;
    let second = first.fork(&told[1].id, "of bob")?;
    second.append(Message::user("4 of bob"))?;
    let other = store.session("cid")?;
    other.append_all(["5 of cid", "6 of cid"].map(Message::user))?;
    let mut file = Vec::new();
    export_jsonl(&store, &mut file)?;
    let text = String::from_utf8(file).expect("UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    let at = |id: &str| lines.iter().position(|line| line.contains(id)).expect("a line");
    let (fork, last) = (at(r#""name":"of bob""#), at(r#""id":"cid""#));
    // Which lines are damaged, or missing, in the session after that of ann, and in the last one.
    let cases = [
        vec![fork],
        vec![last],
        vec![fork - 1, fork],
        vec![fork, last],
        vec![fork - 1, fork, fork + 1, fork + 2],
        vec![last - 1, last, last + 1],
    ];
    for (case, damaged) in cases.iter().flat_map(|case| [(case, true), (case, false)]) {
        let kept = lines.iter().enumerate().filter_map(|(n, line)| match case.contains(&n) {
            false => Some((*line).to_owned()),
            true => damaged.then(|| line.replacen('{', "{{", 1)),
        });
        let file = kept.collect::<Vec<_>>().join("\n");
        let copy = Store::open_in_memory()?;
        let name = format!("{case:?} {damaged}");
        let report =
            import_reader(&copy, "e", Cursor::new(file), &ImportOptions::default(), |_| {})?;
        assert!(report.dropped > 0, "{name}");
        for info in copy.sessions()? {
            let texts = copy.session(info.id.clone())?.all_messages().map(|it| Ok(it?.text()));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            let mut of = vec![if info.id == "cid" { "cid" } else { "ann" }];
            of.extend(info.name.as_deref().filter(|name| *name == "of bob").map(|_| "bob"));
            let is_own = |text: &String| of.iter().any(|of| text.ends_with(of));
            assert!(texts.iter().all(is_own), "{name}: {:?} has {texts:?}", info.id);
        }
        assert_eq!(copy.session("ann")?.path_length()?, 3, "{name}");
    }
    Ok(())
}

#[test]
fn what_a_stored_fork_gains_from_its_original_is_counted_once() -> Result<()> {
    let answer = |id: &str| {
        let usage = Usage { output: 5, ..Usage::default() };
        Message::assistant(format!("answer {id}")).with_id(id).with_usage(&usage)
    };
    let source = Store::open_in_memory()?;
    let chat = source.session("original")?;
    let answers = chat.append_all([answer("a"), answer("b")])?;
    chat.fork(&answers[1].id, "fork")?;
    let mut file = Vec::new();
    export_jsonl(&source, &mut file)?;
    let text = String::from_utf8(file).expect("UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    let fork = lines.iter().position(|line| line.contains(r#""name":"fork""#)).expect("a fork");
    // Of an export that was cut off, the fork with its first answer.
    let cut = [lines[0], lines[fork], lines[fork + 1]].join("\n");
    let store = Store::open_in_memory()?;
    assert_eq!(import(&store, &cut).added, 1);
    import(&store, &text);
    assert_eq!(store.usage().total()?.output, 10, "the first answer came before its original");
    Ok(())
}
