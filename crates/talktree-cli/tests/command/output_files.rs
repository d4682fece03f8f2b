//! Files that a command writes: complete and private, or not there.
//!
//! `export --output` used to write to the file itself, with the permissions of any file. A failure left a part of an
//! export, which looked like a whole one.

use std::path::Path;
#[cfg(unix)]
use std::process::{Child, Stdio};

use crate::common::{Outcome, Rig, text};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

/// Returns the names in a folder.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?;
    let mut names: Vec<String> = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(unix)]
#[test]
fn an_export_can_be_read_by_its_owner_only() -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::toured();
    let file = rig.path("tour.jsonl");
    let answer = rig.json(["export", "tour", "--output", &text(&file)]);
    assert_eq!(answer[0]["bytes"], std::fs::metadata(&file)?.len());
    assert_eq!(std::fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file)?, rig.ok(["export", "tour"]));
    Ok(())
}

/// Damages the text of a message in a copy of the store, and returns its path.
fn damaged(rig: &Rig) -> Result<String, Box<dyn std::error::Error>> {
    let store = rig.path("damaged.db");
    rig.ok(["backup", &text(&store)]);
    let mut bytes = std::fs::read(&store)?;
    let needle = b"Do we need tickets for the planetarium?";
    let at = bytes.windows(needle.len()).position(|part| part == needle).ok_or("no message")?;
    bytes[at..at + 12].copy_from_slice(b"\"\"\"\"\"\"\"\"\"\"\"\"");
    std::fs::write(&store, bytes)?;
    Ok(text(&store))
}

#[test]
fn a_failed_export_leaves_no_file() -> Outcome {
    let rig = Rig::toured();
    let store = damaged(&rig)?;
    std::fs::create_dir(rig.path("out"))?;
    for format in ["talktree", "markdown", "openai"] {
        let file = text(&rig.path("out/tour"));
        rig.fails(4, ["--store", &store, "export", "tour", "-o", &file, "--format", format]);
        assert_eq!(names(&rig.path("out"))?, [""; 0], "{format}");
    }
    Ok(())
}

#[test]
fn a_file_that_exists_is_left_as_it_is() -> Outcome {
    let rig = Rig::toured();
    let file = rig.file("out/tour.jsonl", "mine");
    let why = rig.fails(2, ["export", "tour", "-o", &text(&file)]);
    assert!(why.contains("tour.jsonl already exists; nothing was written"), "{why}");
    assert_eq!(std::fs::read_to_string(&file)?, "mine");
    assert_eq!(names(&rig.path("out"))?, ["tour.jsonl"]);
    Ok(())
}

/// Waits until a process writes to a folder: there is a file in it, or, on Linux, one without a name; or it has ended.
#[cfg(unix)]
fn wait_until_begun(child: &mut Child, folder: &Path) -> Outcome {
    let open = format!("/proc/{}/fd", child.id());
    let is_open = || {
        let files = std::fs::read_dir(&open).into_iter().flatten().flatten();
        files
            .map(|file| file.path().read_link())
            .any(|file| file.is_ok_and(|file| file.starts_with(folder)))
    };
    while names(folder)?.is_empty() && !is_open() && child.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    Ok(())
}

/// The file of a killed export kept what it had written, under a name that nobody knew.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_export_leaves_no_file() -> Outcome {
    let rig = Rig::empty();
    let message = format!(r#"{{"role":"user","content":"long {}"}}"#, "x".repeat(20_000));
    let chat = format!(r#"{{"id":"long","messages":[{}]}}"#, vec![message; 1_000].join(","));
    rig.ok(["import", &text(&rig.file("long.json", chat))]);
    let (folder, file) = (rig.path("out"), text(&rig.path("out/long")));
    std::fs::create_dir(&folder)?;
    for pause in 0..20 {
        let mut child =
            rig.command(["export", "long", "-o", &file]).stdout(Stdio::null()).spawn()?;
        wait_until_begun(&mut child, &folder)?;
        // With any part of it written.
        std::thread::sleep(std::time::Duration::from_millis(pause * 5));
        child.kill()?;
        child.wait()?;
        match names(&folder)?.as_slice() {
            [] => {}
            // The kill came too late.
            [name] if name == "long" => {
                assert!(std::fs::read_to_string(&file)?.contains("checksum"));
                std::fs::remove_file(&file)?;
            }
            names => panic!("{names:?}"),
        }
    }
    Ok(())
}

/// How often a stop may come too late.
#[cfg(unix)]
const MAX_TRIES: usize = 50;

/// A stopped export used to leave a part of itself, and a stopped backup a file `.partial`.
#[cfg(unix)]
#[test]
fn an_export_or_a_backup_that_is_stopped_leaves_no_file() -> Outcome {
    let rig = Rig::empty();
    // A backup of a smaller store is done before the signal is there.
    let message = format!(r#"{{"role":"user","content":"long {}"}}"#, "x".repeat(20_000));
    let messages = vec![message; 3_000].join(",");
    let chat = format!(r#"{{"id":"long","messages":[{messages}]}}"#);
    rig.ok(["import", &text(&rig.file("long.json", chat))]);
    let (folder, file) = (rig.path("out"), text(&rig.path("out/long")));
    std::fs::create_dir(&folder)?;
    let mut stopped = Vec::new();
    for _ in 0..MAX_TRIES {
        let args = match stopped.len() {
            0 => vec!["export", "long", "-o", &file],
            1 => vec!["backup", &file],
            _ => break,
        };
        let mut child = rig.command(&args).stdout(Stdio::null()).spawn()?;
        wait_until_begun(&mut child, &folder)?;
        kill_process(Pid::from_child(&child), Signal::INT)?;
        match child.wait()?.code() {
            // The signal came too late: once more.
            Some(0) => std::fs::remove_file(&file)?,
            code => stopped.push(code),
        }
        assert_eq!(names(&folder)?, [""; 0], "{args:?}");
    }
    assert_eq!(stopped, [Some(130), Some(130)]);
    Ok(())
}

/// The errors used to leave out which file they are about, and a missing folder for a backup to be one of the store.
#[test]
fn an_output_file_that_cannot_be_created_is_named() {
    let rig = Rig::toured();
    for args in [["export", "tour", "-o", "nowhere/x"], ["backup", "nowhere/x", "--color", "never"]]
    {
        let why = rig.fails(6, args);
        assert!(why.contains("the output cannot be written: nowhere/x: "), "{why}");
    }
}

/// The openai format used to leave out reasoning and unknown parts without a word.
#[test]
fn an_openai_export_counts_what_it_leaves_out() {
    let rig = Rig::empty();
    let chat = r#"{"id":"s","messages":[
        {"id":"m1","role":"user","parts":[{"type":"text","text":"hi"},{"type":"data-mood","data":1}]},
        {"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},
            {"type":"data-mood","data":2},{"type":"text","text":"ho"}]}]}"#;
    rig.ok(["import", "--session", "s", &text(&rig.file("chat.json", chat))]);
    let answer = rig.run(["export", "s", "--format", "openai"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let why = "3 parts left out; the openai format has no place for: data-mood (2), reasoning (1)";
    assert!(answer.stderr.contains(why), "{answer:?}");
    assert_eq!(rig.run(["export", "s", "--format", "markdown"]).stderr, "");
}

/// SQLite deletes a file that has the name of the store's journal.
#[test]
fn no_file_is_named_as_a_file_of_the_store() -> Outcome {
    let rig = Rig::toured();
    let name = text(&rig.path("talk.db-journal"));
    for args in [&["backup", &name][..], &["export", "--all", "--output", &name]] {
        let why = rig.fails(2, args);
        assert!(why.contains("SQLite uses a file of this name"), "{why}");
        assert!(!rig.path("talk.db-journal").exists());
    }
    Ok(())
}

/// A line break in a name made a line of its own, which began like those of talktree.
#[cfg(unix)]
#[test]
fn a_name_with_a_line_break_is_one_line_of_an_error() -> Outcome {
    let rig = Rig::toured();
    let file = text(&rig.file("one/b\nall files were imported.jsonl", "x"));
    let missing = text(&rig.path("no\nsuch"));
    for args in [
        &["import", &file][..],
        &["import", &missing],
        &["--store", &missing, "stats"],
        &["--store", &file, "stats"],
        &["export", "tour", "--output", &file],
        &["backup", &file],
        &["backup", &format!("{missing}/x")],
    ] {
        let answer = rig.run(args);
        assert_ne!(answer.code, 0, "{answer:?}");
        let forged = ["talktree: such", "talktree: all files"];
        assert!(!forged.iter().any(|line| answer.stderr.contains(line)), "{}", answer.stderr);
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() -> Outcome {
    let rig = Rig::empty();
    for args in [&["--help"][..], &["--version"], &[]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
        assert_eq!(rig.command(args).stdout(full).status()?.code(), Some(6), "{args:?}");
    }
    Ok(())
}

#[test]
fn a_limit_of_nothing_does_not_say_that_there_is_nothing() {
    let rig = Rig::toured();
    let why = rig.fails(1, ["search", "planetarium", "--limit", "0"]);
    assert_eq!(why, "talktree: no hits are printed with --limit 0\n");
    for list in
        [&["log", "tour"][..], &["sessions"], &["owners"], &["bindings"], &["trash", "list"]]
    {
        let nothing = rig.run([list, &["--limit", "0"]].concat());
        assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", ""), "{list:?}");
    }
    rig.ok(["rm", "tour", "--yes"]);
    let all_gone = rig.run(["sessions"]).stderr;
    assert!(all_gone.contains("all sessions are in the trash"), "{all_gone}");
}

#[test]
fn an_export_of_an_owner_holds_nothing_of_another() -> Outcome {
    let rig = Rig::empty();
    let store = talktree::Store::open(rig.store())?;
    for owner in ["ann", "bob"] {
        let details = talktree::SessionDetails {
            owner: Some(owner.to_owned()),
            ..talktree::SessionDetails::named("Talk")
        };
        store.create_session(details)?.append(talktree::Message::user(format!("I am {owner}.")))?;
    }
    drop(store);
    for format in ["jsonl", "markdown"] {
        let page = rig.ok(["export", "--owner", "ann", "--format", format]);
        assert!(page.contains("I am ann.") && !page.contains("bob"), "{page}");
    }
    let file = rig.path("ann.jsonl");
    rig.ok(["export", "--owner", "ann", "--output", &text(&file)]);
    assert_eq!(std::fs::read_to_string(&file)?, rig.ok(["export", "--owner", "ann"]));
    rig.fails(2, ["export", "--owner", "ann", "--format", "openai"]);
    rig.fails(2, ["export", "--owner", "ann", "--all"]);
    Ok(())
}
