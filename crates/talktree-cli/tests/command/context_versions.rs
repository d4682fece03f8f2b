//! `talktree context`: what was written before: versions, their differences, and what is removed and restored.

use crate::common::context::{feed, filled, show};
use crate::common::{Rig, fields};
use serde_json::json;

#[test]
fn a_document_is_removed_and_restored() {
    let rig = filled();
    assert_eq!(
        rig.ok(["context", "rm", "tour", "knowledge", "bus"]),
        "tour (A trip to Jena): knowledge bus is removed, version 2\n"
    );
    rig.fails(1, ["context", "show", "tour", "knowledge", "bus"]);
    rig.fails(1, ["context", "search", "tour", "knowledge", "bus"]);
    let history = rig.ok(["context", "history", "tour", "knowledge", "bus"]);
    assert!(history.ends_with("0       (removed)\n"), "{history}");
    let told = &rig.json(["context", "restore", "tour", "knowledge", "1", "--key", "bus"])[0];
    assert_eq!((&told["version"], &told["key"]), (&json!(3), &json!("bus")));
    assert_eq!(rig.json(["context", "search", "tour", "knowledge", "bus"]).len(), 1);

    let told = &rig.json(["context", "rm", "tour", "skills", "pdf"])[0];
    assert_eq!((&told["version"], &told["tokens"]), (&json!(2), &json!(0)));
    rig.fails(1, ["context", "rm", "tour", "skills", "pdf"]);
    let told = rig.fails(2, ["context", "rm", "tour", "memory", "k"]);
    assert!(told.contains("is one text"), "{told}");
}

/// Only documents could be removed; a text could at most be emptied.
#[test]
fn a_text_is_removed_and_restored() {
    let rig = filled();
    let told = rig.ok(["context", "rm", "tour", "memory"]);
    assert_eq!(told, "tour (A trip to Jena): memory is removed, version 3\n");
    rig.fails(1, ["context", "show", "tour", "memory"]);
    assert!(!rig.ok(["context", "list", "tour"]).contains("memory"));
    rig.fails(1, ["context", "rm", "tour", "memory"]);
    let told = &rig.json(["context", "restore", "tour", "memory", "2"])[0];
    assert_eq!((&told["version"], &told["key"]), (&json!(4), &json!(null)));
    assert!(rig.ok(["context", "show", "tour", "memory"]).contains("Likes coffee."));
    let told = rig.fails(2, ["context", "rm", "tour", "knowledge"]);
    assert!(told.contains("name the key of one"), "{told}");
}

/// The second removal proposed an option that removes the text of the owner, and the first could not be undone.
#[test]
fn a_text_that_hid_that_of_the_owner_is_removed_and_restored() {
    let rig = filled();
    let owner = talktree::SessionDetails {
        owner: Some("ann".to_owned()),
        ..talktree::SessionDetails::default()
    };
    let store = talktree::Store::open(rig.store()).unwrap();
    store.session("tour").unwrap().set_details(&owner).unwrap();
    drop(store);
    rig.ok(["context", "set", "tour", "memory", "Of Ann.", "--owner", "ann"]);
    rig.ok(["context", "rm", "tour", "memory"]);
    assert_eq!(show(&rig, "memory"), "Of Ann.\n");
    let told = rig.fails(1, ["context", "rm", "tour", "memory"]);
    assert!(told.contains("has nothing under") && !told.contains("--owner"), "{told}");
    rig.ok(["context", "restore", "tour", "memory", "2"]);
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
}

#[test]
fn the_last_document_of_a_label_can_be_restored() {
    let rig = filled();
    for key in ["shop", "bus"] {
        rig.ok(["context", "rm", "tour", "knowledge", key]);
    }
    rig.fails(1, ["context", "show", "tour", "knowledge"]);
    assert_eq!(rig.json(["context", "history", "tour", "knowledge", "bus"]).len(), 2);
    let told = rig.fails(2, ["context", "restore", "tour", "knowledge", "1", "--key", "bus"]);
    assert!(told.contains("--kind"), "{told}");
    let restore = ["context", "restore", "tour", "knowledge", "1", "--key", "bus"];
    rig.ok(restore.iter().chain(&["--kind", "knowledge"]));
    assert_eq!(rig.json(["context", "search", "tour", "knowledge", "bus"]).len(), 1);
    rig.fails(
        2,
        ["context", "restore", "tour", "knowledge", "1", "--key", "shop", "--kind", "skills"],
    );
}

#[test]
fn history_lists_versions_and_what_each_changed() {
    let rig = filled();
    let history = rig.ok(["context", "history", "tour", "memory"]);
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[0].starts_with("version  changed"), "{history}");
    assert!(lines[1].starts_with("1  ") && lines[1].ends_with("  Likes tea."), "{history}");
    assert!(
        lines[2].starts_with("2  ") && lines[2].ends_with("7       Likes coffee."),
        "{history}"
    );

    let diff = rig.ok(["context", "history", "tour", "memory", "--diff"]);
    let first = "@@ -0,0 +1,2 @@\n+Likes tea.\n+Lives in Bern.\n\\ No newline at end of text\n\nversion 2  20";
    assert!(diff.starts_with("version 1  20") && diff.contains(first), "{diff}");
    let second = "@@ -1,2 +1,2 @@\n-Likes tea.\n+Likes coffee.\n Lives in Bern.\n";
    assert!(diff.contains(second), "{diff}");
    let newest = rig.ok(["context", "history", "tour", "memory", "--diff", "--limit", "1"]);
    assert!(newest.starts_with("version 2") && newest.contains(second), "{newest}");

    let history = ["context", "history", "tour", "memory", "--diff"];
    let coloured = rig.ok(history.iter().chain(&["--color", "always"]));
    assert!(coloured.contains("\u{1b}[32m+Likes coffee.\u{1b}[0m"), "{coloured}");
    assert!(coloured.contains("\u{1b}[31m-Likes tea.\u{1b}[0m"), "{coloured}");

    let versions = rig.json(["context", "history", "tour", "memory"]);
    let known = ["changed_at", "content", "description", "key", "title", "tokens", "version"];
    assert_eq!(fields(&versions[1]), known);
    assert_eq!(versions[1]["content"], "Likes coffee.\nLives in Bern.");
    assert_eq!(
        rig.json(history)[1]["diff"].as_str().unwrap().lines().next(),
        Some("@@ -1,2 +1,2 @@")
    );
    assert_eq!(rig.json(["context", "history", "tour", "skills", "pdf"])[0]["title"], "PDF");
}

#[test]
fn a_difference_shows_a_changed_line_ending() {
    let rig = Rig::toured();
    feed(&rig, &["context", "set", "tour", "memory"], "a\nb\n\n");
    feed(&rig, &["context", "set", "tour", "memory"], "a\r\nb\n\n");
    let diff = rig.ok(["context", "history", "tour", "memory", "--diff"]);
    assert!(diff.contains("-a\n+a\\u{d}\n b\n"), "{diff}");
}

#[test]
fn restore_makes_an_old_version_the_newest() {
    let rig = filled();
    assert_eq!(
        rig.ok(["context", "restore", "tour", "memory", "1"]),
        "tour (A trip to Jena): memory holds 7 tokens, version 3\n"
    );
    assert_eq!(show(&rig, "memory"), "Likes tea.\nLives in Bern.\n");
    let told = rig.fails(1, ["context", "restore", "tour", "memory", "9"]);
    assert!(told.contains("has no version 9"), "{told}");
    let told = rig.fails(1, ["context", "restore", "tour", "skills", "9", "--key", "pdf"]);
    assert!(told.contains("of document \"pdf\""), "{told}");
    rig.fails(1, ["context", "restore", "tour", "skills", "1", "--key", "nobody"]);
    rig.fails(2, ["context", "restore", "tour", "memory", "one"]);
    rig.fails(2, ["context", "restore", "tour", "skills", "1"]);
    rig.fails(2, ["context", "restore", "tour", "memory", "1", "--key", "k"]);
}
