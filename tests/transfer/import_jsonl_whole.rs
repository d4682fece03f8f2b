//! Short sessions of an export share commits. Each was once committed by itself, five times: on a disk that syncs, an export
//! of a thousand short sessions spent most of its time waiting.
//!
//! Sharing changes nothing else: what it stores is what the import of one session at a time stores.

use std::io::Cursor;

use crate::tables::Tables;
use talktree::{Compaction, Message, Result, Store};
use talktree_import::export::{content_hash, export_jsonl, export_session};
use talktree_import::{ImportOptions, ImportReport, import_reader};

fn import(store: &Store, file: &[u8]) -> Result<ImportReport> {
    let report =
        import_reader(store, "file", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

fn exported(store: &Store) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    export_jsonl(store, &mut file)?;
    Ok(file)
}

/// Returns a store with many plain sessions of two messages.
fn many(count: usize) -> Result<Store> {
    let store = Store::open_in_memory()?;
    for n in 0..count {
        let asked = Message::user(format!("question {n}")).with_id("a");
        let answer = Message::assistant(format!("answer {n}")).with_id("b");
        store.session(format!("s{n:04}"))?.append_all([asked, answer])?;
    }
    Ok(store)
}

#[test]
fn a_thousand_sessions_take_few_commits() -> Result<()> {
    let file = exported(&many(1_000)?)?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (store, tables) = (Store::open(&path)?, Tables::of(&path));
    let before = tables.commits();
    let report = import(&store, &file)?;
    assert_eq!((report.added, report.sessions.len(), report.notes.len()), (2_000, 1_000, 0));
    let taken = tables.commits() - before;
    assert!(taken <= 20, "{taken} commits");

    store.search("question").run()?;
    let (before, hash) = (tables.commits(), content_hash(&store)?);
    let again = import(&store, &file)?;
    assert_eq!((again.added, again.known), (0, 2_000));
    assert_eq!((tables.commits(), content_hash(&store)?), (before, hash));
    assert!(store.verify(|_| {})?.damages.is_empty());
    Ok(())
}

/// Returns a store with a session of each shape.
fn shapes() -> Result<Store> {
    let store = Store::open_in_memory()?;
    let text = |id: &str| Message::user(format!("This is message {id} of many.")).with_id(id);
    // No message; one; a branch with the head on the first; the head before the first; labels and hidden messages.
    store.session("empty")?.set_details(&talktree::SessionDetails::named("Empty"))?;
    store.session("one")?.append(text("a"))?;
    let branch = store.session("branch")?;
    branch.append_all([text("a"), text("b"), text("c")])?;
    branch.append_to(&"a".into(), text("d"))?;
    branch.checkout(&"b".into())?;
    branch.label("best", &"d".into())?;
    branch.label("first", &"a".into())?;
    branch.append_to(&"d".into(), text("e").hidden())?;
    branch.checkout(&"c".into())?;
    let start = store.session("start")?;
    start.append_all([text("a"), text("b")])?;
    start.checkout_start()?;
    // What is not plain: a summary, a tombstone, a head that is a summary.
    let summary = store.session("summary")?;
    summary.append_all([text("a"), text("b"), text("c")])?;
    summary.import_compaction(&Compaction::new("Short.", "a".into(), "b".into()))?;
    let grave = store.session("tombstone")?;
    grave.append_all([text("a"), text("b"), text("c")])?;
    grave.delete(&["b".into()])?;
    // As many messages as one commit does not hold.
    let long = store.session("long")?;
    long.append_all((0..1_100).map(|n| text(&format!("m{n}"))))?;
    Ok(store)
}

#[test]
fn sessions_imported_together_and_one_by_one_end_equal() -> Result<()> {
    let store = shapes()?;
    let (whole, steps) = (Store::open_in_memory()?, Store::open_in_memory()?);
    let file = exported(&store)?;
    let report = import(&whole, &file)?;
    assert_eq!((report.dropped, report.notes.len()), (0, 0), "{report:#?}");
    // An import into a named session waits for no other.
    for info in store.sessions()? {
        let mut one = Vec::new();
        export_session(&store.session(&info.id)?, &mut one)?;
        let options = ImportOptions { session: Some(info.id.clone()), ..ImportOptions::default() };
        import_reader(&steps, "file", Cursor::new(&one), &options, |_| {})?;
        let (a, b) = (whole.session(&info.id)?, steps.session(&info.id)?);
        assert_eq!(a.head()?, b.head()?, "{}", info.id);
        let (a, b) = (a.info()?, b.info()?);
        assert_eq!(a.map(|a| a.updated_at), b.map(|b| b.updated_at), "{}", info.id);
    }
    assert_eq!(content_hash(&steps)?, content_hash(&store)?);
    assert_eq!(content_hash(&whole)?, content_hash(&store)?);
    assert_eq!(exported(&whole)?, file);
    assert!(whole.verify(|_| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn what_was_removed_since_does_not_come_back() -> Result<()> {
    let file = exported(&shapes()?)?;
    let store = Store::open_in_memory()?;
    import(&store, &file)?;
    let branch = store.session("branch")?;
    branch.unlabel("best")?;
    branch.delete(&["c".into()])?;
    branch.checkout(&"d".into())?;
    let hash = content_hash(&store)?;
    let again = import(&store, &file)?;
    assert_eq!((again.added, again.notes.len()), (0, 0), "{again:#?}");
    assert_eq!(content_hash(&store)?, hash);
    assert_eq!(branch.head()?, Some("d".into()));
    assert_eq!(branch.labels()?.len(), 1);
    Ok(())
}

/// Returns the lines of an export with sessions of one message, `text` in that of session 1.
fn three(text: &str) -> String {
    let mut file = "{\"format\":\"talktree\",\"version\":2}\n".to_owned();
    for n in 0..3 {
        let said = if n == 1 { text } else { "hello" };
        file += &format!(
            "{{\"type\":\"session\",\"session\":{n},\"id\":\"s{n}\"}}\n{{\"type\":\"message\",\"session\":{n},\"message\":{{\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"{said}\"}}]}}}}\n"
        );
    }
    file
}

#[test]
fn if_the_store_refuses_a_session_the_report_says_why_and_the_others_are_stored() -> Result<()> {
    let store = Store::options().max_message_bytes(1_000).open_in_memory()?;
    let report = import(&store, three(&"long ".repeat(500)).as_bytes())?;
    assert_eq!((report.added, report.dropped, report.sessions.len()), (2, 1, 3));
    let fault = report.first_fault().expect("a fault");
    assert_eq!(fault.line, Some(5), "{report:#?}");
    assert!(fault.why.contains("over the store's limit of 1000"), "{fault:?}");
    assert_eq!(store.session("s2")?.history()?[0].text(), "hello");
    Ok(())
}

#[test]
fn a_session_that_comes_twice_in_a_file_is_one() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = three("hello") + &three("hello");
    let report = import(&store, file.as_bytes())?;
    assert_eq!((report.added, report.known, report.sessions.len()), (3, 3, 3), "{report:#?}");
    assert_eq!(store.sessions()?.len(), 3);
    Ok(())
}

/// A damaged line inside a session that turns out not to be plain is read twice, and counted once.
#[test]
fn a_damaged_line_is_counted_once() -> Result<()> {
    let store = Store::open_in_memory()?;
    let file = three("hello")
        + "{\"type\":\"message\",\n"
        + "{\"type\":\"message\",\"session\":2,\"message\":{\"id\":\"b\",\"parent\":\"nowhere\",\"role\":\"user\",\"parts\":[]}}\n";
    let report = import(&store, file.as_bytes())?;
    assert_eq!((report.added, report.dropped), (4, 1), "{report:#?}");
    let lines: Vec<_> = report.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [Some(8), Some(9), Some(9)], "{report:#?}");
    Ok(())
}
