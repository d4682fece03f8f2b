//! Files that are damaged, circular, deep, contradictory or cut off: each is imported as far as it
//! goes, each fault is reported with its line, and none hangs or is fatal unless asked for.

use std::fmt::Write as _;
use std::io::Cursor;
use std::time::{Duration, Instant};

use talktree::import::{ImportReport, MAX_NOTES};
use talktree::{Error, Message, MessageId, Part, Result, Store};
use talktree_import::{ImportOptions, import_reader};

const DEPTH: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

fn try_import(store: &Store, file: &str, options: &ImportOptions) -> Result<ImportReport> {
    let report = import_reader(store, "file", Cursor::new(file.as_bytes()), options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

#[track_caller]
fn import(store: &Store, file: &str) -> ImportReport {
    try_import(store, file, &ImportOptions::default()).unwrap()
}

/// A Pi file of version 3, drawn: each word a message under the letter after it; `!` a damaged line.
fn pi(session: &str, tree: &str) -> String {
    let mut file = format!(
        r#"{{"type":"session","version":3,"id":"{session}","timestamp":"2026-01-02T03:04:05Z"}}"#
    );
    for node in tree.split_whitespace() {
        file.push('\n');
        let mut letters = node.chars();
        let (id, parent) = (letters.next().unwrap(), letters.next());
        if id == '!' {
            file.push_str(r#"{"type":"message","id":"#);
            continue;
        }
        let parent = parent.filter(|p| *p != '-').map_or("null".to_owned(), |p| format!("\"{p}\""));
        let said: String = letters.collect();
        write!(
            file,
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02T03:04:05Z","message":{{"role":"user","content":"{id}{said}"}}}}"#
        )
        .unwrap();
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

/// The notes as `line:first word..`, faults with `!`.
fn faults(report: &ImportReport) -> Vec<u64> {
    report.notes.iter().filter(|note| note.is_fault).filter_map(|note| note.line).collect()
}

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
    let hash = store.content_hash()?;
    import(&store, &file);
    assert_eq!(store.content_hash()?, hash);
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
    let hash = store.content_hash()?;
    for other in ["a-other ba-other cb", "x- yx"] {
        let report = import(&store, &pi("s", other));
        assert_eq!((report.added, report.kept), (0, 0), "{report:#?}");
        assert_eq!(report.dropped, other.split(' ').count() as u64);
        assert!(report.first_fault().unwrap().why.contains("another conversation"));
        assert_eq!(store.content_hash()?, hash);
    }
    // Under another id it is imported.
    let options = ImportOptions { session: Some("t".into()), ..ImportOptions::default() };
    assert_eq!(try_import(&store, &pi("s", "x- yx"), &options)?.added, 2);
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
fn text_that_a_rust_string_cannot_hold_is_unchanged() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = pi("s", "a-").replace("\"content\":\"a\"", r#""content":"a\ud800\u0000""#);
    assert_eq!(import(&store, &file).kept, 1);
    let message = store.session("s")?.message(&"a".into())?.unwrap();
    assert!(matches!(&message.parts[0], Part::Other(json) if json.as_str().contains(r"\ud800")));
    assert_eq!(message.text(), "a\u{FFFD}\0");
    assert_eq!(import(&store, &file).added, 0);
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
fn an_interrupt_stops_an_import_and_a_second_one_completes_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut file = pi("s", "");
    for n in 0..5_000 {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    let handle = store.interrupt_handle();
    let bytes = file.len() as u64;
    let stopped =
        import_reader(&store, "f", Cursor::new(&file), &ImportOptions::default(), |progress| {
            if progress.done > bytes + bytes / 3 {
                handle.interrupt();
            }
        });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    let stored = store.stats()?.messages;
    assert!(stored > 0 && stored < 5_000, "{stored}");
    let report = import(&store, &file);
    assert_eq!((report.known, report.added), (stored, 5_000 - stored));
    assert_eq!(store.session("s")?.path_length()?, 5_000);
    assert_eq!(store.session("s")?.head()?, Some("m4999".into()));
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

#[test]
fn a_chain_of_a_million_messages_backwards_takes_no_stack_and_little_time() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut file = pi("s", "");
    for n in (0..DEPTH).rev() {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    let start = Instant::now();
    let report = import(&store, &file);
    println!("{DEPTH} messages backwards in {:?}", start.elapsed());
    assert_eq!((report.added, report.notes.len()), (DEPTH as u64, 0));
    let chat = store.session("s")?;
    assert_eq!(chat.leaves()?.len(), 1);
    assert_eq!(chat.at(&format!("m{}", DEPTH - 1).as_str().into()).path_length()?, DEPTH as u64);
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    Ok(())
}

#[test]
fn a_circle_of_a_million_messages_is_broken() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut file = pi("s", "");
    for n in 0..DEPTH {
        let parent = (n + DEPTH - 1) % DEPTH;
        write!(file, "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":\"m{parent}\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    }
    let start = Instant::now();
    let report = import(&store, &file);
    println!("a circle of {DEPTH} in {:?}", start.elapsed());
    assert_eq!((report.added, faults(&report)), (DEPTH as u64, vec![2]));
    assert!(start.elapsed() < Duration::from_secs(120));
    Ok(())
}

#[test]
fn an_open_assistant_tree_may_be_nested_any_depth() -> Result<()> {
    let depth = DEPTH / 10;
    let mut file = String::from(r#"{"message_tree_id":"t","prompt":"#);
    for n in 0..depth {
        write!(file, r#"{{"message_id":"m{n}","text":"x","role":"prompter","replies":["#).unwrap();
    }
    file.push_str(&"]}".repeat(depth));
    file.push('}');
    let store = Store::open_in_memory()?;
    let report = import(&store, &file);
    assert_eq!(report.kept, depth as u64);
    assert_eq!(store.session("t")?.path_length()?, depth as u64);
    Ok(())
}

#[test]
fn a_mapping_of_a_chatgpt_export_may_be_a_circle_or_a_long_chain_of_nothing() -> Result<()> {
    let node = |id: usize, parent: String, message: bool| {
        let message = match message {
            true => format!(
                r#"{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{id}"]}}}}"#
            ),
            false => "null".to_owned(),
        };
        format!(r#""{id}":{{"id":"{id}","parent":{parent},"children":[],"message":{message}}}"#)
    };
    let count = 10_000;
    let circle: Vec<_> =
        (0..count).map(|n| node(n, format!("\"{}\"", (n + 1) % count), true)).collect();
    let store = Store::open_in_memory()?;
    let report = import(&store, &format!(r#"{{"id":"c","mapping":{{{}}}}}"#, circle.join(",")));
    assert_eq!((report.kept, faults(&report).len()), (count as u64, 1));

    let parent = |n: usize| if n == 0 { "null".to_owned() } else { format!("\"{}\"", n - 1) };
    let chain: Vec<_> = (0..count).map(|n| node(n, parent(n), n == 0 || n == count - 1)).collect();
    let report = import(&store, &format!(r#"{{"id":"d","mapping":{{{}}}}}"#, chain.join(",")));
    assert_eq!((report.kept, report.dropped), (2, count as u64 - 2));
    assert_eq!(store.session("d")?.path_length()?, 2);
    Ok(())
}

#[test]
fn rows_of_progress_entries_are_passed_over_in_little_time() -> Result<()> {
    let mut file = String::new();
    for n in 0..DEPTH {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"e{}\"", n - 1) };
        let kind = if n % 1_000 == 0 { "user" } else { "progress" };
        writeln!(file, r#"{{"type":"{kind}","uuid":"e{n}","parentUuid":{parent},"sessionId":"S","message":{{"role":"user","content":"x"}}}}"#).unwrap();
    }
    // And many that hang from the end of the last row.
    for n in 0..1_000 {
        writeln!(file, r#"{{"type":"user","uuid":"f{n}","parentUuid":"e{}","sessionId":"S","message":{{"role":"user","content":"x"}}}}"#, DEPTH - 1).unwrap();
    }
    let store = Store::open_in_memory()?;
    let start = Instant::now();
    let report = import(&store, &file);
    assert_eq!(report.kept, (DEPTH / 1_000 + 1_000) as u64);
    assert_eq!(store.session("S")?.path_length()?, (DEPTH / 1_000 + 1) as u64);
    assert!(start.elapsed() < Duration::from_secs(60));
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
fn parents_that_are_deleted_while_a_file_is_imported_fail_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    import(&store, &pi("s", "a- ba"));
    let chat = store.session("s")?;
    // In the second thousand one message hangs from one of the store, one from one of the file.
    let mut file = pi("s", "");
    let mut say = |id: &str, parent: &str| {
        write!(file, "\n{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}").unwrap();
    };
    for n in 0..1_000 {
        say(&format!("m{n}"), &if n == 0 { "a".to_owned() } else { format!("m{}", n - 1) });
    }
    say("outside", "b");
    say("inside", "m999");
    let report = import_reader(&store, "f", Cursor::new(&file), &ImportOptions::default(), |_| {
        if matches!(chat.message(&"m999".into()), Ok(Some(_))) {
            let _ = chat.delete(&["b".into(), "m999".into()]);
        }
    })?;
    let noted: Vec<_> = report.notes.iter().map(|note| (note.line, note.is_fault)).collect();
    assert_eq!(noted, [(Some(1002), false), (Some(1003), false)], "{report:#?}");
    assert_eq!(chat.message(&"outside".into())?.unwrap().parent, None);
    assert_eq!(chat.message(&"inside".into())?.unwrap().parent, Some("m998".into()));
    assert_eq!((report.added, chat.head()?), (1_002, Some("inside".into())));
    Ok(())
}

/// Imports a file, and its export into a second store; both have the same content.
#[track_caller]
fn comes_back_from_an_export(file: &str) -> Store {
    let (store, other) = (Store::open_in_memory().unwrap(), Store::open_in_memory().unwrap());
    assert!(import(&store, file).added > 0);
    let mut exported = Vec::new();
    store.export_jsonl(&mut exported).unwrap();
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let exported = String::from_utf8(exported).unwrap();
    try_import(&other, &exported, &strict).unwrap_or_else(|error| panic!("{error}: {exported}"));
    assert_eq!(store.content_hash().unwrap(), other.content_hash().unwrap(), "{exported}");
    store
}

#[test]
fn a_time_that_cannot_be_read_is_kept_and_comes_back_from_an_export() -> Result<()> {
    for name in ["created_at", "createdAt"] {
        let file = format!(
            r#"[{{"id":"a","role":"user","parts":[{{"type":"text","text":"hi"}}],"{name}":"-01-01T00:00:00Z"}}]"#
        );
        let store = comes_back_from_an_export(&file);
        let session = store.session(store.sessions()?[0].id.clone())?;
        let message = session.message(&"a".into())?.unwrap();
        assert_eq!(message.extra[&format!("unread_{name}")].value(), "-01-01T00:00:00Z");
    }
    Ok(())
}

#[test]
fn times_of_far_years_come_back_from_an_export() {
    for time in ["8e15", "-6e13"] {
        comes_back_from_an_export(&format!(
            r#"[{{"id":"c","title":"t","create_time":{time},"current_node":"n","mapping":{{"n":{{"id":"n","parent":null,"children":[],"message":{{"id":"n","author":{{"role":"user"}},"content":{{"content_type":"text","parts":["hi"]}},"create_time":{time}}}}}}}}}]"#
        ));
    }
}

#[test]
fn a_block_with_a_field_that_a_part_writes_itself_stays_as_it_came() -> Result<()> {
    for block in [
        r#"{"type":"thinking","thinking":"so","text":"other"}"#,
        r#"{"type":"tool_use","id":"t","name":"look","input":{},"state":"odd"}"#,
        r#"{"type":"tool_use","id":"t","name":"look","input":{},"toolCallId":"u"}"#,
    ] {
        let store = comes_back_from_an_export(&format!(
            r#"[{{"role":"user","content":"hi"}},{{"id":"a","role":"assistant","content":[{block}]}}]"#
        ));
        let session = store.session(store.sessions()?[0].id.clone())?;
        let message = session.message(&"a".into())?.unwrap();
        assert_eq!(serde_json::to_string(&message.parts[0]).unwrap(), block);
    }
    Ok(())
}
