//! Files that are not stores, and paths that are not files: opening must fail with a clear error and change nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use talktree::{Error, Store};

use super::case::Baseline;
use super::threads;
use crate::{Report, Result};

/// The time limit of a refusal.
const LIMIT: Duration = Duration::from_secs(20);

/// Opens everything that is not a store.
pub(super) fn run(baseline: &Baseline, folder: &Path, report: &mut Report) -> Result<()> {
    let folder = folder.join("foreign");
    std::fs::create_dir(&folder)?;
    let paths = make(baseline, &folder)?;
    let before = names(&folder)?;
    let count = paths.len() as u64;
    let case = |_, round: u64| refused(&paths[round as usize]);
    let mut refusals = 0;
    threads::run_cases(1, count, LIMIT, case, |round, ended| {
        let path = paths[round as usize].display();
        match ended.answer {
            Some(Ok(())) => refusals += 1,
            Some(Err(error)) => report.failure(format!("{path}: {error}"), "just torture damage"),
            None => report.failure(format!("{path}: a panic"), "just torture damage"),
        }
    })?;
    let after = names(&folder)?;
    // SQLite creates a log beside a valid database as soon as it reads it.
    let is_log = |name: &OsString| {
        name.to_string_lossy().ends_with("-wal") || name.to_string_lossy().ends_with("-shm")
    };
    if let Some(name) = after.iter().find(|name| !before.contains(name) && !is_log(name)) {
        report.failure(format!("{name:?} was created beside the files"), "just torture damage");
    }
    report.fact("files that are not stores, refused", format!("{refusals} of {count}"));
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

/// Creates the files, folders and special files.
fn make(baseline: &Baseline, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut file = |name: &str, bytes: &[u8]| -> Result<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, bytes)?;
        paths.push(path.clone());
        Ok(path)
    };
    file("text.db", b"Dear diary, this is no database at all.\n")?;
    file("picture.db", b"\xFF\xD8\xFF\xE0\x00\x10JFIF\x00\x01\x01\x00\x00\x48\x00\x48\x00\x00")?;
    file("zeroes.db", &[0; 8_192])?;
    file("short.db", b"SQL")?;
    file("name-alone.db", b"SQLite format 3\0")?;
    file("log.db", &[&0x377f_0682_u32.to_be_bytes()[..], &[0; 4_092]].concat())?;
    // Begins as a database and continues with garbage.
    file("half.db", &[&baseline.bytes[..100], &[0xA5; 8_092][..]].concat())?;
    let mut newer = baseline.bytes.clone();
    newer[60..64].copy_from_slice(&u32::MAX.to_be_bytes());
    file("far-newer.db", &newer)?;
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    file("newer.db", &newer)?;
    let mut other = baseline.bytes.clone();
    other[68..72].copy_from_slice(b"noth");
    let target = file("another-program.db", &other)?;
    let foreign = rusqlite::Connection::open(folder.join("foreign.db"))?;
    foreign.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")?;
    drop(foreign);
    paths.push(folder.join("foreign.db"));
    let directory = folder.join("directory.db");
    std::fs::create_dir(&directory)?;
    paths.push(directory);
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        for (name, to) in [
            ("dangling.db", Path::new("nothing-here")),
            ("loop.db", Path::new("loop.db")),
            ("link.db", &target),
        ] {
            symlink(to, folder.join(name))?;
            paths.push(folder.join(name));
        }
        let socket = folder.join("socket.db");
        drop(std::os::unix::net::UnixListener::bind(&socket)?);
        paths.push(socket);
        let pipe = folder.join("pipe.db");
        if Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
            paths.push(pipe);
        }
        paths.extend(["/dev/null", "/dev/zero"].map(PathBuf::from));
    }
    Ok(paths)
}

/// Checks that opening for writing and for reading is refused, and that the bytes stay the same.
fn refused(path: &Path) -> Result<()> {
    let bytes =
        || std::fs::metadata(path).is_ok_and(|it| it.is_file()).then(|| std::fs::read(path).ok());
    let before = bytes();
    for (how, answer) in [("writing", Store::open(path)), ("reading", Store::open_read_only(path))]
    {
        match answer {
            Err(
                Error::NotAStore { .. }
                | Error::NewerStore { .. }
                | Error::Io { .. }
                | Error::Corrupt { .. },
            ) => {}
            answer => return Err(format!("opened for {how}: {answer:?}").into()),
        }
    }
    if bytes() != before {
        return Err("the file was changed".into());
    }
    Ok(())
}
