//! The names of a file: hard links and mounts.
//!
//! SQLite puts the log and the lock file beside the name that a database is opened by. Two names in two folders, or two in one,
//! have two logs, and each connection sees and checkpoints only its own, so acknowledged writes are lost. Therefore a file with
//! a second name is refused when it is opened. A name that is added later does no harm: nobody can open the file by it while
//! both exist. A mounted folder has no second name for its files: the log is beside them by every path.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::partial_file;
use crate::error::{Error, Result};

/// Returns an error if the file has another name.
#[cfg(unix)]
pub(super) fn require_one(path: &Path, file: &Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    if is_mounted(path, file) {
        return Err(Error::MountedFile { path: path.to_owned() });
    }
    if file.nlink() <= 1 {
        return Ok(());
    }
    let is_same = |other: &Path| {
        other != path
            && std::fs::symlink_metadata(other)
                .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
    };
    let other = beside(path, is_same);
    // A backup has two names for a moment, or after a crash, and nobody opens it by the first.
    if file.nlink() == 2 && other.as_deref().is_some_and(partial_file::is_partial) {
        return Ok(());
    }
    Err(Error::HardLinked { path: path.to_owned(), other })
}

/// Returns whether a file is mounted by itself, as containers get one by `-v /srv/bot.db:/data/bot.db`. The path is without
/// symbolic links.
#[cfg(unix)]
fn is_mounted(path: &Path, file: &Metadata) -> bool {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    match std::fs::read("/proc/self/mountinfo") {
        Ok(mounts) => {
            let mut points = mounts.split(|byte| *byte == b'\n').filter_map(mount_point);
            points.any(|point| point == path.as_os_str().as_bytes())
        }
        // Not on Linux, where a device would prove nothing: in an overlay, a file may have that of its layer.
        Err(_) => {
            let folder = path.parent().and_then(|folder| std::fs::metadata(folder).ok());
            folder.is_some_and(|folder| folder.dev() != file.dev())
        }
    }
}

/// Returns where a line of `mountinfo` says that something is mounted: its fifth field, in which blanks, line breaks and
/// backslashes are three octal digits after a backslash.
#[cfg(unix)]
fn mount_point(line: &[u8]) -> Option<Vec<u8>> {
    let mut point = Vec::new();
    let mut rest = line.split(|byte| *byte == b' ').nth(4)?;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                point.push(escaped);
                rest = &after[3..];
            }
            None => {
                point.push(*byte);
                rest = after;
            }
        }
    }
    Some(point)
}

/// Other systems do not tell how many names a file has.
#[cfg(not(unix))]
pub(super) fn require_one(_: &Path, _: &Metadata) -> Result<()> {
    Ok(())
}

/// Returns another name in the same folder, where most are.
#[cfg(unix)]
fn beside(path: &Path, is_same: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(path.parent()?).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|other| is_same(other))
}
