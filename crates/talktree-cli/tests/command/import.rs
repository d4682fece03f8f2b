//! The inputs of `import`: files, folders, archives, stdin.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Answer, Outcome, Rig, text};

const CHAT: &str = r#"{"id":"chat","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}"#;

#[test]
fn a_new_store_is_reported() {
    let rig = Rig::empty();
    let file = text(&rig.file("chat.json", CHAT));
    let answer = rig.run(["import", &file]);
    assert!(
        answer.stderr.contains(&format!("created a new store: {}", rig.store().display())),
        "{answer:?}"
    );
    assert!(
        answer.stdout.contains("2 records: 2 kept, 0 converted, 0 dropped; 2 new messages"),
        "{answer:?}"
    );
    let again = rig.run(["import", &file]);
    assert_eq!(again.stderr, "");
    assert!(again.stdout.contains("0 new messages, 2 known"), "{again:?}");
}

#[test]
fn a_session_is_printed_by_its_short_id() {
    let rig = Rig::empty();
    let chat = CHAT.replace("\"chat\"", "\"7f3a0c12-1111-4222-8333-444455556666\"");
    let printed = rig.ok(["import", &text(&rig.file("chat.json", &chat))]);
    assert!(printed.contains("  session 55556666\n"), "{printed}");
    assert!(rig.ok(["log", "55556666"]).contains("ho"));
}

#[test]
fn the_default_store_is_in_the_data_folder() -> Outcome {
    let rig = Rig::empty();
    let file = text(&rig.file("chat.json", CHAT));
    let data = rig.path("data");
    let mut command = rig.command(["import", &file]);
    let output = command
        .env_remove("TALKTREE_STORE")
        .env("XDG_DATA_HOME", &data)
        .env("HOME", rig.path("home"))
        .output()?;
    let answer = Answer::of(output);
    assert_eq!(answer.code, 0, "{answer:?}");
    if cfg!(unix) {
        assert!(data.join("talktree").join("talktree.db").exists(), "{answer:?}");
    }
    Ok(())
}

/// An empty variable used to be refused as a value that `--store` lacks.
#[test]
fn an_empty_variable_names_no_store() -> Outcome {
    let rig = Rig::empty();
    let mut command = rig.command(["sessions"]);
    let output = command
        .env("TALKTREE_STORE", "")
        .env("XDG_DATA_HOME", rig.path("data"))
        .env("HOME", rig.path("home"))
        .output()?;
    let answer = Answer::of(output);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.stderr.contains("there is no store at "), "{answer:?}");
    Ok(())
}

/// `import FOLDER | head` used to end without an error after the files whose reports fit into a buffer.
#[test]
fn an_import_goes_on_if_nobody_reads_its_reports() -> Outcome {
    let rig = Rig::empty();
    // Files of talktree's own format are reported one by one.
    let header = r#"{"format":"talktree","version":2}"#;
    for n in 0..300 {
        let session = format!("{header}\n{{\"type\":\"session\",\"id\":\"s{n}\"}}\n");
        rig.file(&format!("chats/{n}.jsonl"), session);
    }
    let mut command = rig.command(["import", &text(&rig.path("chats"))]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let answer = Answer::of(child.wait_with_output()?);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(rig.json(["sessions", "--limit", "1000"]).len(), 300);
    Ok(())
}

#[test]
fn a_dry_run_writes_nothing() {
    let rig = Rig::empty();
    let file = text(&rig.file("chat.json", CHAT));
    assert_eq!(rig.json(["import", "--dry-run", &file])[0]["added"], 2);
    assert!(!rig.store().exists());
    rig.ok(["import", &file]);
    let longer =
        text(&rig.file("chat.json", CHAT.replace("]}", r#",{"role":"user","content":"more"}]}"#)));
    assert_eq!(rig.json(["import", "--dry-run", &longer])[0]["added"], 1);
    assert_eq!(rig.json(["log", "chat"]).len(), 2);
}

#[test]
fn a_folder_is_searched_for_conversations() {
    let rig = Rig::empty();
    rig.file("projects/a/one.json", CHAT.replace("chat", "one"));
    rig.file(
        "projects/b/c/two.jsonl",
        "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":\"y\"}\n",
    );
    rig.file("projects/b/settings.json", r#"{"theme":"dark"}"#);
    rig.file("projects/b/notes.txt", "not read");
    let projects = text(&rig.path("projects"));
    let answer = rig.run(["import", &projects]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stdout.contains("imported: 4 new messages, 2 sessions, 2 files"), "{answer:?}");
    assert!(
        answer.stderr.contains("settings.json") && answer.stderr.contains("skipped files: 1"),
        "{answer:?}"
    );
    rig.fails(5, ["import", "--strict", &projects]);
}

#[cfg(unix)]
#[test]
fn a_cycle_of_links_is_followed_once() -> Outcome {
    let rig = Rig::empty();
    rig.file("projects/one.json", CHAT);
    std::os::unix::fs::symlink(rig.path("projects"), rig.path("projects/again"))?;
    assert_eq!(rig.json(["import", &text(&rig.path("projects"))]).len(), 1);
    Ok(())
}

#[test]
fn the_conversations_of_an_archive_are_imported() -> Outcome {
    let rig = Rig::empty();
    let node = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#""{id}":{{"id":"{id}","parent":{parent},"children":[],"message":{{"id":"{id}","author":{{"role":"{role}"}},"create_time":1700000000.5,"content":{{"content_type":"text","parts":["{text}"]}}}}}}"#
        )
    };
    let export = format!(
        r#"[{{"conversation_id":"c1","title":"Trip","create_time":1700000000,"current_node":"b","mapping":{{{},{}}}}}]"#,
        node("a", "null", "user", "Where to?"),
        node("b", "\"a\"", "assistant", "To Jena."),
    );
    let path = rig.path("export.zip");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path)?);
    for (name, content) in [
        ("user.json", r#"{"email":"x"}"#),
        ("conversations.json", &export),
        ("chat.html", "<html>"),
        // It was left out without a word.
        ("a/chat.jsonl", r#"{"role":"user","content":"beside"}"#),
    ] {
        archive.start_file(name, zip::write::SimpleFileOptions::default())?;
        archive.write_all(content.as_bytes())?;
    }
    archive.finish()?;
    let reports = rig.json(["import", &text(&path)]);
    assert_eq!(
        (reports.len(), &reports[0]["format"], &reports[0]["added"]),
        (2, &"chatgpt".into(), &2.into())
    );
    assert_eq!((&reports[1]["format"], &reports[1]["added"]), (&"openai".into(), &1.into()));
    let again = rig.run(["import", &text(&path)]);
    let passed_over = "export.zip: no conversations are recognised in user.json\n";
    assert!(again.code == 0 && again.stderr.ends_with(passed_over), "{again:?}");
    assert!(
        reports[0]["path"]
            .as_str()
            .is_some_and(|path| path.ends_with("export.zip/conversations.json"))
    );
    assert!(rig.ok(["log", "Trip"]).contains("To Jena."));

    let broken = text(&rig.file("broken.zip", b"PK\x03\x04 and no more"));
    rig.fails(5, ["import", &broken]);
    Ok(())
}

/// A damaged entry stopped the import of all that came after it.
#[test]
fn a_bad_entry_of_an_archive_is_reported_and_the_others_are_imported() -> Outcome {
    let rig = Rig::empty();
    let path = rig.path("export.zip");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path)?);
    let plain =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in [
        ("a.json", CHAT.replace("chat", "one")),
        ("b.json", CHAT.replace("chat", "spoiled")),
        ("c.json", r#"{"theme":"dark"}"#.to_owned()),
        ("d.json", CHAT.replace("chat", "two")),
    ] {
        archive.start_file(name, plain)?;
        archive.write_all(content.as_bytes())?;
    }
    archive.finish()?;
    let mut bytes = std::fs::read(&path)?;
    let at = bytes.windows(7).position(|part| part == b"spoiled").ok_or("no entry")?;
    bytes[at] = b'S';
    std::fs::write(&path, bytes)?;

    let answer = rig.run(["import", &text(&path)]);
    assert_eq!(answer.code, 5, "{answer:?}");
    assert!(answer.stderr.contains("b.json") && answer.stderr.contains("c.json"), "{answer:?}");
    assert!(answer.stderr.contains("not imported: 2 of 4 files"), "{answer:?}");
    let sessions = rig.json(["sessions"]);
    let mut ids: Vec<_> = sessions.iter().filter_map(|session| session["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["one", "two"]);
    Ok(())
}

#[test]
fn a_file_in_an_unsupported_format_is_refused_by_the_name_of_its_program() {
    let rig = Rig::empty();
    let kimi =
        r#"{"type":"turn.prompt","time":1767323045000,"input":[{"type":"text","text":"hi"}]}"#;
    let file = text(&rig.file("kimi.jsonl", kimi));
    let answer = rig.run(["import", &file]);
    assert_eq!(answer.code, 5, "{answer:?}");
    assert!(
        answer.stderr.contains("Kimi") && answer.stderr.contains("claude-code, pi, chatgpt"),
        "{answer:?}"
    );
    assert!(!rig.store().exists());
}

#[test]
fn stdin_can_be_imported() -> Outcome {
    let rig = Rig::empty();
    let mut child = rig
        .command(["import", "-", "--session", "piped"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(CHAT.as_bytes())?;
    assert!(child.wait_with_output()?.status.success());
    assert_eq!(rig.json(["log", "piped"]).len(), 2);
    Ok(())
}

#[test]
fn options_reach_the_import() {
    let rig = Rig::empty();
    let file = text(&rig.file("chat.json", CHAT));
    rig.ok(["import", &file, "--session", "mine", "--format", "openai", "--keep-source"]);
    let log = rig.json(["log", "mine"]);
    assert_eq!(log[0]["metadata"]["source"]["content"], "hi");
}

/// To open and close the store's own file would drop its locks; an import of the folder around it does that.
#[cfg(unix)]
#[test]
fn the_files_of_the_store_itself_are_skipped_by_whatever_name() -> Outcome {
    let rig = Rig::empty();
    rig.file("chats/chat.json", CHAT);
    let (store, folder) = (text(&rig.path("chats/store.json")), text(&rig.path("chats")));
    let chat = text(&rig.path("chats/chat.json"));
    rig.ok(["--store", &store, "import", &chat]);
    std::os::unix::fs::symlink(&store, rig.path("chats/soft.json"))?;
    let answer = rig.run(["--store", &store, "import", &folder]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for name in ["store.json", "soft.json"] {
        let skipped = format!("{name}: it belongs to the open store");
        assert!(answer.stderr.contains(&skipped), "{answer:?}");
    }
    assert!(answer.stderr.contains("skipped files: 2"), "{answer:?}");
    let refused = rig.run(["--store", &store, "import", &store]);
    assert_eq!(refused.code, 5, "{refused:?}");
    let text = rig.run(["--store", &store, "context", "import", "chat", &store]);
    assert!(text.stderr.contains("it belongs to the open store"), "{text:?}");
    // With a second name the store is not opened at all.
    std::fs::hard_link(&store, rig.path("chats/hard.json"))?;
    let refused = rig.run(["--store", &store, "import", &folder]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("chats/hard.json"), "{refused:?}");
    Ok(())
}

/// An export of talktree was left out with exit code 0.
#[test]
fn importing_an_erased_session_fails_in_each_format_and_says_why() {
    let rig = Rig::empty();
    let own = rig.path("own.jsonl");
    let chat = r#"{"id": "s", "messages": [{"role": "user", "content": "hi"}]}"#;
    let chat = text(&rig.file("chat.json", chat));
    rig.ok(["import", &chat]);
    rig.ok(["export", "s", "--output", &text(&own)]);
    rig.ok(["erase", "s", "--forbid-import", "--yes"]);
    for file in [&chat, &text(&own)] {
        let answer = rig.run(["import", file]);
        assert_eq!(answer.code, 5, "{answer:?}");
        let line = "  1 session left out: erased, and must not be imported again\n";
        assert!(answer.stdout.contains(line) && answer.stdout.contains(" 0 kept"), "{answer:?}");
        assert!(answer.stderr.contains("was erased, and must not be imported again"), "{answer:?}");
        let report = rig.run(["import", file, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
        assert_eq!((&report["erased"][0], &report["kept"]), (&"s".into(), &0.into()));
        assert_eq!(
            report["records"],
            report["converted"].as_u64().unwrap() + report["dropped"].as_u64().unwrap()
        );
    }
    // A file with another session is imported.
    let both = concat!(
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"s\"}\n",
        "{\"type\":\"session\",\"id\":\"other\"}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[]}}\n",
    );
    assert!(
        rig.ok(["import", &text(&rig.file("both.jsonl", both))]).contains("1 session left out")
    );
    rig.fails(1, ["log", "s"]);
}

/// Its first and its last line are no conversations, and a lost export was a success.
#[test]
fn an_export_whose_sessions_are_all_lost_is_a_failure_and_one_without_sessions_is_not() -> Outcome {
    let rig = Rig::toured();
    let export = rig.ok(["export", "--all"]);
    let other = Rig::empty();
    let of = |lines: Vec<&str>| other.file("export.jsonl", lines.join("\n"));
    let lost = export.replace("\"created_at\":\"2", "\"created_at\":\"x");
    let without_sessions = export.lines().filter(|line| !line.contains(r#""type":"session""#));
    for lines in [lost.lines().collect(), without_sessions.collect()] {
        let why = other.fails(5, ["import", &text(&of(lines))]);
        assert!(why.contains("not imported: 1 of 1 files"), "{why}");
    }
    let none = Rig::empty();
    none.ok(["new"]);
    none.ok(["rm", none.json(["sessions"])[0]["id"].as_str().ok_or("an id")?, "--yes"]);
    let empty = none.ok(["export", "--all"]);
    assert!(other.ok(["import", &text(&of(empty.lines().collect()))]).contains("0 sessions"));
    Ok(())
}

/// An export of which only a session without messages was left was a success, and so was one that ends after its first line.
#[test]
fn an_export_whose_messages_are_all_left_out_is_a_failure() {
    let rig = Rig::toured();
    let export = rig.ok(["export", "--all"]);
    let other = Rig::empty();
    let mut lines: Vec<&str> = export.lines().collect();
    lines[1..].reverse();
    let header = other.file("header.jsonl", lines[0]);
    let reversed = other.file("reversed.jsonl", lines.join("\n"));
    lines[1..].reverse();
    // The session record comes after its messages.
    let session = lines.remove(1);
    lines.insert(lines.len() - 1, session);
    let late = other.file("late.jsonl", lines.join("\n"));
    for file in [header, reversed, late] {
        let why = other.fails(5, ["import", &text(&file)]);
        assert!(why.contains("not imported: 1 of 1 files"), "{why}");
    }
}

/// `ZipWriter` writes no name twice, but other programs do.
fn archive_with_one_name(path: &std::path::Path) -> Outcome {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path)?);
    let plain =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, id) in [("one.json", "one"), ("two.json", "two")] {
        archive.start_file(name, plain)?;
        archive.write_all(CHAT.replace("chat", id).as_bytes())?;
    }
    archive.finish()?;
    let mut bytes = std::fs::read(path)?;
    for at in 0..bytes.len() - 8 {
        if bytes[at..].starts_with(b"two.json") {
            bytes[at..at + 3].copy_from_slice(b"one");
        }
    }
    Ok(std::fs::write(path, bytes)?)
}

/// The first of them was left out without a word.
#[test]
fn an_archive_in_which_two_entries_have_one_name_is_refused() -> Outcome {
    let rig = Rig::empty();
    let path = rig.path("export.zip");
    archive_with_one_name(&path)?;
    let why = rig.fails(5, ["import", &text(&path)]);
    assert!(why.contains("two entries of the archive have the same name"), "{why}");
    assert!(why.contains("not imported: 1 of 1 files"), "{why}");
    Ok(())
}

/// What a strict import refuses was said to hold no conversations.
#[test]
fn a_damaged_chat_beside_the_conversations_of_an_archive_is_refused_by_a_strict_import() -> Outcome
{
    let rig = Rig::empty();
    let path = rig.path("export.zip");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path)?);
    for (name, content) in [
        ("conversations.json", CHAT),
        ("user.json", r#"{"email":"x"}"#),
        ("chat.jsonl", "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\n"),
    ] {
        archive.start_file(name, zip::write::SimpleFileOptions::default())?;
        archive.write_all(content.as_bytes())?;
    }
    archive.finish()?;
    let why = rig.fails(5, ["import", "--strict", &text(&path)]);
    assert!(why.contains("chat.jsonl") && why.contains("line 2"), "{why}");
    assert!(why.contains("no conversations are recognised in user.json\n"), "{why}");
    Ok(())
}

/// A pipe and a broken link were passed over without a word, and a folder was not counted.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_in_a_folder_is_named_once() -> Outcome {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let rig = Rig::empty();
    rig.file("chats/chat.json", CHAT);
    let pipe = rig.path("chats/pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
    symlink("nowhere", rig.path("chats/broken.json"))?;
    symlink("turn.json", rig.path("chats/turn.json"))?;
    let locked = rig.path("chats/locked");
    std::fs::create_dir(&locked)?;
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o0))?;
    let mut names = vec!["pipe.jsonl", "broken.json", "turn.json"];
    // A superuser can read it.
    if std::fs::read_dir(&locked).is_err() {
        names.push("locked");
    }
    let answer = rig.run(["import", &text(&rig.path("chats"))]);
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700))?;
    assert_eq!(answer.code, 0, "{answer:?}");
    for name in &names {
        assert_eq!(answer.stderr.matches(&format!("{name}: ")).count(), 1, "{name}: {answer:?}");
    }
    assert!(answer.stderr.contains(&format!("skipped files: {}\n", names.len())), "{answer:?}");
    assert_eq!(rig.json(["sessions"]).len(), 1);
    Ok(())
}

/// The error was followed by the claim that the folder holds no conversations; with another file the import succeeded.
#[cfg(target_os = "linux")]
#[test]
fn a_named_folder_that_cannot_be_read_is_not_imported() -> Outcome {
    let rig = Rig::empty();
    let chat = text(&rig.file("chat.json", CHAT));
    // A superuser may read every folder, but nobody one that is gone.
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" import . \"$@\"";
    for (others, failed) in [(&[][..], "1 of 1"), (&[&*chat], "1 of 2")] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_talktree")]).args(others);
        command.env("TALKTREE_STORE", rig.store()).current_dir(rig.path(""));
        let answer = Answer::of(command.output()?);
        assert_eq!(answer.code, 5, "{answer:?}");
        assert!(answer.stderr.contains("talktree: .: "), "{answer:?}");
        assert!(!answer.stderr.contains("holds no"), "{answer:?}");
        assert!(answer.stderr.contains(&format!("not imported: {failed} files\n")), "{answer:?}");
    }
    assert_eq!(rig.json(["sessions"]).len(), 1);
    Ok(())
}

#[test]
fn the_usage_of_an_import_is_found_by_its_source() -> Outcome {
    let rig = Rig::empty();
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../talktree-import/tests/fixtures/pi_v3.jsonl");
    rig.ok(["import", file]);
    assert_eq!(rig.json(["usage", "--source", "pi"])[0]["answers"], 1);
    assert_eq!(rig.json(["usage", "--by", "source"])[0]["group"], "pi");
    Ok(())
}
