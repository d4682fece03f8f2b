//! The exit codes: what a script can tell from them.

mod common;

use common::{Outcome, Rig, text};

#[test]
fn reading_never_makes_a_store() {
    let rig = Rig::empty();
    for args in [
        &["sessions"][..],
        &["stats"],
        &["log", "x"],
        &["tree", "x"],
        &["show", "x", "y"],
        &["search", "x"],
        &["export", "x"],
        &["verify"],
        &["backup", "x.db"],
        &["checkout", "x", "y"],
        &["label", "x", "--list"],
        &["compact", "x", "--list"],
        &["fork", "x", "y", "z"],
        &["rename", "x", "y"],
        &["rm", "x", "--yes"],
    ] {
        let told = rig.fails(3, args);
        assert!(told.contains("there is no store at"), "{args:?}: {told}");
    }
    assert!(!rig.store().exists());
}

#[test]
fn reading_never_makes_a_session() {
    let rig = Rig::toured();
    for args in [
        &["log", "nobody"][..],
        &["tree", "nobody"],
        &["show", "nobody", "x"],
        &["search", "x", "--session", "nobody"],
        &["export", "nobody"],
        &["checkout", "nobody", "x"],
        &["compact", "nobody", "--list"],
    ] {
        let told = rig.fails(1, args);
        assert!(told.contains("talktree sessions"), "{args:?}: {told}");
    }
    assert_eq!(rig.json(["sessions"]).len(), 1);
}

#[test]
fn an_unknown_message_is_told_with_a_hint() {
    let rig = Rig::toured();
    let told = rig.fails(1, ["show", "tour", "nobody"]);
    assert!(told.contains("talktree tree tour"), "{told}");
}

#[test]
fn nothing_found_is_one() {
    let rig = Rig::toured();
    assert!(rig.fails(1, ["search", "xylophone"]).contains("nothing found"));
    rig.fails(1, ["search", "xylophone", "--sessions"]);
}

#[test]
fn wrong_usage_is_two() {
    let rig = Rig::toured();
    for args in [
        &["frobnicate"][..],
        &["search"],
        &["search", "x", "--branch", "ask"],
        &["search", "x", "--after", "yesterday"],
        &["checkout", "tour"],
        &["checkout", "tour", "ask", "--undo"],
        &["compact", "tour"],
        &["rm", "tour"],
        &["import"],
        &["import", "x", "--format", "tea-leaves"],
        &["completions", "csh"],
        &["label", "tour", "name"],
    ] {
        rig.fails(2, args);
    }
}

#[test]
fn a_file_that_is_no_store_is_three() {
    let rig = Rig::empty();
    for (name, content) in [
        ("text", "not a database, but long enough to look at".repeat(99)),
        ("empty", String::new()),
    ] {
        let file = text(&rig.file(name, content));
        rig.fails(3, ["--store", &file, "sessions"]);
    }
    let folder = text(&rig.path(""));
    rig.fails(3, ["--store", &folder, "sessions"]);
}

#[test]
fn a_damaged_store_is_four() -> Outcome {
    let rig = Rig::toured();
    rig.ok(["backup", &text(&rig.path("copy.db"))]);
    // The text of a message is overwritten where it lies in the file.
    let mut bytes = std::fs::read(rig.path("copy.db"))?;
    let needle = b"Do we need tickets for the planetarium?";
    let at =
        bytes.windows(needle.len()).position(|window| window == needle).ok_or("not in the file")?;
    bytes[at..at + 12].copy_from_slice(b"\"\"\"\"\"\"\"\"\"\"\"\"");
    std::fs::write(rig.path("copy.db"), bytes)?;
    let answer = rig.run(["--store", &text(&rig.path("copy.db")), "verify"]);
    assert_eq!(answer.code, 4, "{answer:?}");
    Ok(())
}

#[test]
fn what_cannot_be_imported_is_five() {
    let rig = Rig::empty();
    rig.fails(5, ["import", "not-there.jsonl"]);
    assert!(!rig.store().exists(), "no store is made for nothing");
    let file = text(&rig.file("recipe.json", r#"{"flour": 500}"#));
    rig.fails(5, ["import", &file]);
    rig.fails(5, ["import", "--format", "openai", &file]);
    let damaged = text(&rig.file("damaged.json", r#"[{"role":"user","content":"hi"},7]"#));
    rig.fails(5, ["import", "--strict", &damaged]);
    rig.ok(["import", &damaged]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_six() -> Outcome {
    let rig = Rig::toured();
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    let status =
        rig.command(["log", "tour"]).stdout(full).stderr(std::process::Stdio::null()).status()?;
    assert_eq!(status.code(), Some(6));
    Ok(())
}
