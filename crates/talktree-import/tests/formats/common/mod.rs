//! Files of a few drawn messages, their import, and what it leaves in a store.

#[path = "../../../../../tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of it is used")]
pub(crate) mod server;
pub(crate) mod sources;

use std::fmt::Write as _;
use std::io::Cursor;

use talktree::{Result, Store};
use talktree_import::ImportReport;
use talktree_import::{ImportOptions, import_reader};

pub(crate) fn try_import(
    store: &Store,
    file: &str,
    options: &ImportOptions,
) -> Result<ImportReport> {
    let report = import_reader(store, "file", Cursor::new(file.as_bytes()), options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

#[track_caller]
pub(crate) fn import(store: &Store, file: &str) -> ImportReport {
    try_import(store, file, &ImportOptions::default()).unwrap()
}

/// A Pi file of version 3, drawn: each word a message under the letter after it; `!` a damaged line.
pub(crate) fn pi(session: &str, tree: &str) -> String {
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
pub(crate) fn paths(store: &Store, session: &str) -> Result<String> {
    let chat = store.session(session)?;
    let mut paths = Vec::new();
    for leaf in chat.leaves()? {
        let path = chat.at(&leaf).raw_history()?;
        paths.push(path.iter().map(|message| message.id.as_str()).collect::<String>());
    }
    Ok(paths.join(" "))
}

/// The notes as `line:first word..`, faults with `!`.
pub(crate) fn faults(report: &ImportReport) -> Vec<u64> {
    report.notes.iter().filter(|note| note.is_fault).filter_map(|note| note.line).collect()
}
