//! Input without an end, and input that is small until it is unpacked.
//!
//! The command used to read a device until the memory or the disk was full: `import - < /dev/zero` copied 16 GiB, and
//! `compact --summary-file /dev/zero` was killed by the system. An archive of 40 kB kept it busy for a minute.

#![cfg(unix)]

use std::io::Write;
use std::process::Command;

use crate::common::{Answer, Outcome, Rig, text};

const CHAT: &str = r#"{"id":"chat","messages":[{"role":"user","content":"hi"}]}"#;

/// Runs a line of shell with the command as `$T`, with 3 GB of memory and 200 MB for each file. Without the limits of the
/// command it would fail by these, with another code or another text.
fn run(rig: &Rig, line: &str) -> Answer {
    let script = format!("ulimit -v 3000000; ulimit -f 400000; {line}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("T", env!("CARGO_BIN_EXE_talktree"));
    command.env("TALKTREE_STORE", rig.store()).current_dir(rig.path(""));
    Answer::of(command.output().unwrap())
}

#[test]
fn a_text_is_read_up_to_the_limit_of_a_message() {
    let rig = Rig::toured();
    for line in [
        r#""$T" compact tour --summary-file /dev/zero"#,
        r#""$T" compact tour --summary - < /dev/zero"#,
        r#""$T" compact tour --summary - --from ask --to ask < /dev/zero"#,
        r#""$T" context import tour /dev/zero"#,
        r#""$T" context import tour - < /dev/zero"#,
        r#""$T" context set tour memory < /dev/zero"#,
    ] {
        let answer = run(&rig, line);
        assert_eq!(answer.code, 5, "{line}: {answer:?}");
        let why = "it is longer than the limit of 67108864 bytes";
        assert!(answer.stderr.contains(why), "{line}: {answer:?}");
    }
}

#[test]
fn an_import_of_an_endless_stream_ends() {
    let rig = Rig::empty();
    for (line, why) in [
        (r#""$T" import - < /dev/zero"#, "-: it is not text: byte 0 is 0"),
        (r#""$T" import /dev/zero"#, "/dev/zero: it is not text: byte 0 is 0"),
        (
            r#"yes | "$T" import -"#,
            "-: it is not JSON: no object begins in its first 1048576 bytes",
        ),
    ] {
        let answer = run(&rig, line);
        assert_eq!(answer.code, 5, "{line}: {answer:?}");
        assert!(answer.stderr.contains(why), "{line}: {answer:?}");
        assert!(!rig.store().exists(), "{line}");
    }
}

#[test]
fn a_pipe_is_imported() -> Outcome {
    let rig = Rig::empty();
    let pipe = rig.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    let child = rig.command(["import", &text(&pipe)]).spawn()?;
    std::fs::File::options().write(true).open(&pipe)?.write_all(CHAT.as_bytes())?;
    assert!(child.wait_with_output()?.status.success());
    assert_eq!(rig.json(["log", "chat"]).len(), 1);
    Ok(())
}

/// Compresses names and contents into an archive.
fn archive(entries: &[(&str, &[u8])]) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        archive.start_file(*name, zip::write::SimpleFileOptions::default())?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[test]
fn an_archive_on_stdin_is_imported() -> Outcome {
    let rig = Rig::empty();
    rig.file("chat.zip", archive(&[("chat.json", CHAT.as_bytes())])?);
    let answer = run(&rig, r#""$T" import - < chat.zip"#);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(rig.json(["log", "chat"]).len(), 1);
    Ok(())
}

#[test]
fn an_entry_that_unpacks_to_too_much_is_named_and_the_others_are_imported() -> Outcome {
    let rig = Rig::empty();
    let bomb = vec![b' '; 80 << 20];
    rig.file("chats.zip", archive(&[("bomb.json", &bomb), ("chat.json", CHAT.as_bytes())])?);
    let answer = run(&rig, r#""$T" import chats.zip"#);
    assert_eq!(answer.code, 5, "{answer:?}");
    let why = "chats.zip/bomb.json: it unpacks to more than 100 times its ";
    assert!(answer.stderr.contains(why), "{answer:?}");
    assert!(answer.stderr.contains("not imported: 1 of 2 files"), "{answer:?}");
    assert_eq!(rig.json(["log", "chat"]).len(), 1);
    Ok(())
}

/// A file on the disk has an end, so it is read to it; but no record of it is longer in memory than the limit.
#[test]
fn a_record_over_the_limit_is_named_and_the_others_are_imported() -> Outcome {
    let rig = Rig::empty();
    let path = rig.file("long.jsonl", r#"{"id":""#);
    let mut file = std::fs::File::options().append(true).open(&path)?;
    // A hole, which takes no room on the disk.
    file.set_len(130 << 20)?;
    writeln!(file, "\"}}\n{CHAT}")?;
    let answer = run(&rig, r#"ulimit -v 400000; "$T" import long.jsonl"#);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(
        answer.stderr.contains("line 1: longer than the limit of 134217728 bytes"),
        "{answer:?}"
    );
    assert_eq!(rig.json(["log", "chat"]).len(), 1);
    Ok(())
}
