//! The exit codes.

use std::process::Stdio;

use crate::common::{self, Outcome, Rig, text};

#[test]
fn other_commands_than_import_create_no_store() {
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
        &["compact", "x", "--plan"],
        &["compact", "x", "--summarizer-cmd", "cat"],
        &["expand", "x", "y"],
        &["fork", "x", "y", "z"],
        &["rename", "x", "y"],
        &["rm", "x"],
        &["tag", "x", "y"],
        &["pin", "x"],
        &["end", "x"],
        &["restore", "x"],
        &["trash", "list"],
        &["trash", "empty", "--yes"],
        &["lineage", "x"],
        &["owners"],
        &["bindings"],
        &["usage"],
        &["erase", "x", "--yes"],
    ] {
        let printed = rig.fails(3, args);
        assert!(printed.contains("there is no store at"), "{args:?}: {printed}");
    }
    assert!(!rig.store().exists());
}

#[test]
fn reading_creates_no_session() {
    let rig = Rig::toured();
    for args in [
        &["log", "nobody"][..],
        &["tree", "nobody"],
        &["show", "nobody", "x"],
        &["search", "x", "--session", "nobody"],
        &["export", "nobody"],
        &["checkout", "nobody", "x"],
        &["compact", "nobody", "--list"],
        &["compact", "nobody", "--summarizer-cmd", "cat"],
        &["expand", "nobody", "x"],
    ] {
        let printed = rig.fails(1, args);
        assert!(printed.contains("talktree sessions"), "{args:?}: {printed}");
    }
    assert_eq!(rig.json(["sessions"]).len(), 1);
}

#[test]
fn an_unknown_message_comes_with_a_hint() {
    let rig = Rig::toured();
    let printed = rig.fails(1, ["show", "tour", "nobody"]);
    assert!(printed.contains("talktree tree tour"), "{printed}");
}

#[test]
fn nothing_found_is_one() {
    let rig = Rig::toured();
    assert!(rig.fails(1, ["search", "xylophone"]).contains("nothing found"));
    rig.fails(1, ["search", "xylophone", "--sessions"]);
    let found = rig.fails(1, ["search", "planetarium", "--timeout", "0.000001"]);
    assert!(found.contains("nothing found in 1µs; --timeout gives"), "{found}");
    rig.ok(["search", "planetarium", "--timeout", "0"]);
}

/// A bare command used to be an error if the store was named by a variable.
#[test]
fn a_bare_command_prints_the_help() {
    let rig = Rig::empty();
    assert_eq!(rig.ok(std::iter::empty::<&str>()), rig.ok(["-h"]));
}

#[test]
fn wrong_usage_is_two() {
    let rig = Rig::toured();
    for args in [
        &["frobnicate"][..],
        &["search"],
        &["search", ""],
        &["search", "x", "--sesion", "y"],
        &["tour", "--store", "x.db"],
        &["search", "x", "--branch", "ask"],
        &["search", "x", "--after", "someday"],
        &["search", "x", "--timeout", "-1"],
        &["search", "x", "--timeout", "soon"],
        &["checkout", "tour"],
        &["checkout", "tour", "ask", "--undo"],
        &["compact", "tour"],
        &["compact", "tour", "--prompt"],
        &["compact", "tour", "--plan", "--timeout", "9"],
        &["compact", "tour", "--plan", "--from", "ask", "--to", "ask"],
        &["compact", "tour", "--plan", "--model", "m"],
        &["compact", "tour", "--list", "--min-tail", "9"],
        &["compact", "tour", "--summarizer-cmd", "cat", "--summary", "x"],
        &["compact", "tour", "--summarizer-cmd", "cat", "--timeout", "0"],
        &["compact", "tour", "--summary", "x", "--from", "ask", "--to", "ask", "--at", "ask"],
        &["rm", "tour", "--forever"],
        &["import"],
        &["import", "x", "--format", "tea-leaves"],
        &["completions", "csh"],
        &["label", "tour", "name"],
    ] {
        rig.fails(2, args);
    }
}

#[test]
fn a_file_that_is_not_a_store_is_three() {
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
    // Overwrites the text of a message in the file.
    let mut bytes = std::fs::read(rig.path("copy.db"))?;
    let needle = b"Do we need tickets for the planetarium?";
    let at =
        bytes.windows(needle.len()).position(|window| window == needle).ok_or("not in the file")?;
    bytes[at..at + 12].copy_from_slice(b"\"\"\"\"\"\"\"\"\"\"\"\"");
    std::fs::write(rig.path("copy.db"), bytes)?;
    let answer = rig.run(["--store", &text(&rig.path("copy.db")), "verify"]);
    assert_eq!(answer.code, 4, "{answer:?}");
    // Every command reports it with the same code.
    let printed = rig.fails(4, ["--store", &text(&rig.path("copy.db")), "log", "tour", "--raw"]);
    assert!(printed.contains("damaged"), "{printed}");
    Ok(())
}

/// A damaged store that could not be opened used to exit with 3.
#[test]
fn a_truncated_store_is_four_for_every_command() -> Outcome {
    let rig = Rig::toured();
    rig.ok(["backup", &text(&rig.path("whole.db"))]);
    let whole = std::fs::read(rig.path("whole.db"))?;
    let sample = text(&rig.path("sample.jsonl"));
    for length in [60, 4096, whole.len() / 2 + 1] {
        for args in [
            &["sessions"][..],
            &["stats"],
            &["log", "tour"],
            &["search", "tickets"],
            &["export", "--all"],
            &["checkout", "tour", "--undo"],
            &["import", &sample],
            &["verify"],
        ] {
            // Each command gets its own copy: the one before may have left lock files.
            let store = text(&rig.file(&format!("{length}-{}.db", args[0]), &whole[..length]));
            let printed = rig.fails(4, ["--store", &store].iter().chain(args));
            assert_eq!(
                printed.contains(" verify` lists every damage"),
                args[0] != "verify",
                "{printed}"
            );
        }
    }
    // Damages the header, which is in the first page.
    let mut bytes = whole;
    bytes[16..24].fill(0xFF);
    let store = text(&rig.file("marks.db", bytes));
    rig.fails(4, ["--store", &store, "sessions"]);
    Ok(())
}

#[test]
fn a_file_that_cannot_be_imported_is_five() {
    let rig = Rig::empty();
    rig.fails(5, ["import", "not-there.jsonl"]);
    assert!(!rig.store().exists(), "no store is created for a missing file");
    let file = text(&rig.file("recipe.json", r#"{"flour": 500}"#));
    rig.fails(5, ["import", &file]);
    rig.fails(5, ["import", "--format", "openai", &file]);
    assert!(!rig.store().exists(), "the store created for a failed import is removed");
    let nowhere = text(&rig.path("nowhere/talk.db"));
    let printed = rig.fails(3, ["--store", &nowhere, "import", &text(&rig.file("a.json", "[]"))]);
    assert!(printed.contains("there is no folder"), "{printed}");
    assert!(!rig.path("nowhere").exists());
    let damaged = text(&rig.file("damaged.json", r#"[{"role":"user","content":"hi"},7]"#));
    rig.fails(5, ["import", "--strict", &damaged]);
    rig.ok(["import", &damaged]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_six() -> Outcome {
    let rig = Rig::toured();
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    for args in [&["log", "tour"][..], &["--help"], &["help", "log"], &["--version"], &[]] {
        let status = rig.command(args).stdout(full.try_clone()?).stderr(Stdio::null()).status()?;
        assert_eq!(status.code(), Some(6), "{args:?}");
    }
    Ok(())
}

#[test]
fn compacting_only_hidden_messages_is_wrong_usage() {
    let rig = Rig::empty();
    let file = concat!(
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"s\"}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[],\"hidden\":true}}\n",
    );
    rig.ok(["import", &text(&rig.file("s.jsonl", file))]);
    rig.fails(2, ["compact", "s", "--summary", "x", "--from", "a", "--to", "a"]);
}

/// `search` and `verify` used to fail where `log` succeeded.
#[cfg(target_os = "linux")]
#[test]
fn a_store_on_a_read_only_medium_can_be_read() -> Outcome {
    let rig = Rig::toured();
    rig.ok(["backup", &text(&rig.path("copy.db"))]);
    std::fs::create_dir(rig.path("medium"))?;
    // A mount in its own namespace: no other process sees it and it ends with this one.
    let script = "mount -t tmpfs none medium && cp copy.db medium && mount -o remount,ro medium \
                  || exit 99; \"$0\" --store medium/copy.db \"$@\"";
    for args in [&["log", "tour"][..], &["search", "planetarium"], &["verify"], &["stats"]] {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_talktree")).args(args).current_dir(rig.path(""));
        let Ok(output) = command.output() else { return Ok(()) };
        let answer = common::Answer::of(output);
        if answer.code == 99 || answer.stderr.contains("unshare") {
            return Ok(()); // Not allowed here.
        }
        assert_eq!(answer.code, 0, "{args:?}: {answer:?}");
    }
    Ok(())
}

/// A name of 120 kB was printed whole.
#[test]
fn an_error_does_not_print_all_of_a_very_long_name() {
    let rig = Rig::toured();
    let long = "n".repeat(120_000);
    for (code, args) in [
        (1, &["log", &*long][..]),
        (1, &["show", "tour", &long]),
        (1, &["erase", &long, "--yes"]),
        (1, &["restore", &long]),
        (1, &["context", "show", "tour", &long]),
        (1, &["label", "tour", "--remove", &long]),
        (2, &["new", &long]),
        (2, &["new", "--owner", &long]),
        (2, &["sessions", "--after", &long]),
        (2, &["trash", "empty", "--older-than", &long]),
        (2, &["export", "tour", "--format", &long]),
    ] {
        let why = rig.fails(code, args);
        assert!(why.len() < 3_000, "{} bytes of {}", why.len(), &why[..200]);
    }
}

#[test]
fn an_empty_owner_source_model_or_tag_is_refused() {
    let rig = Rig::toured();
    for args in [
        &["new", "x", "--source", ""][..],
        &["new", "x", "--model", ""],
        &["new", "x", "--owner", ""],
        &["new", "x", "--tag", ""],
        &["sessions", "--owner", ""],
        &["sessions", "--source", ""],
        &["sessions", "--model", ""],
        &["sessions", "--tag", ""],
        &["export", "--owner", ""],
        &["usage", "--owner", ""],
        &["erase", "--owner", "", "--yes"],
        &["erase", "--key", "", "--yes"],
    ] {
        assert!(rig.fails(2, args).contains("it is empty"), "{args:?}");
    }
}

/// A session that was removed or never there had a row of zeros.
#[test]
fn usage_of_an_unknown_session_says_so() {
    let rig = Rig::toured();
    rig.ok(["usage", "tour"]);
    rig.ok(["rm", "tour", "--forever", "--yes"]);
    assert!(rig.fails(1, ["usage", "tour"]).contains("no session has the id, name or key"));
    assert!(rig.fails(1, ["usage", "nobody", "--by", "model"]).contains("no session has"));
}

/// The commands said it, and succeeded. Later `erase` failed, but its JSON said that something was erased.
#[test]
fn an_owner_or_a_key_without_data_is_not_found() {
    let rig = Rig::toured();
    for args in [
        &["export", "--owner", "nobody"][..],
        &["export", "--owner", "nobody", "--format", "markdown"],
        &["erase", "--owner", "nobody", "--yes"],
        &["erase", "--owner", "nobody", "--dry-run"],
    ] {
        for json in [&[][..], &["--json"]] {
            let answer = rig.run([args, json].concat());
            let why = "talktree: the store has no data of owner \"nobody\"\n";
            assert_eq!((answer.code, &*answer.stderr), (1, why), "{args:?}");
            // An export of nothing has its first line, too.
            assert_eq!(answer.stdout.is_empty(), args[0] == "erase", "{answer:?}");
        }
    }
    let file = rig.store().with_file_name("nobody.jsonl");
    rig.fails(1, ["export", "--owner", "nobody", "--output", file.to_str().unwrap()]);
    assert!(!file.exists());
    let said = rig.fails(1, ["erase", "--key", "k", "--yes"]);
    assert_eq!(said, "talktree: the store has no data under key \"k\"\n");
}
