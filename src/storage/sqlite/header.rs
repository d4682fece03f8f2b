//! What a file tells before it is opened: its header, and its other names.
//!
//! A file that a store of this process has open is not read: closing it again would drop the store's locks.
//!
//! SQLite puts the log and the lock file beside the name that a database is opened by. Two names in two folders, or two in one,
//! have two logs, and each connection sees and checkpoints only its own, so acknowledged writes are lost. Therefore a file with
//! a second name is refused when it is opened. A name that is added later does no harm: nobody can open the file by it while
//! both exist. A mounted folder has no second name for its files: the log is beside them by every path.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::backup;
use super::file::is_open;
use crate::error::{Error, Result};

/// The length of the header of a database. A shorter file is no database, though SQLite takes some for empty ones.
pub(super) const BYTES: u64 = 100;

/// What each database begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns whether a file has another header than SQLite's; `false` if it is not read.
pub(super) fn is_other(path: &Path) -> bool {
    of(path).is_some_and(|header| {
        let name = &header[..header.len().min(SQLITE.len())];
        !SQLITE.starts_with(name)
    })
}

/// Returns whether a file has the header of an SQLite database; `false` if it is not read.
pub(super) fn is_of_database(path: &Path) -> bool {
    of(path).is_some_and(|header| header.starts_with(SQLITE))
}

/// Returns whether a file that SQLite calls no database may be an encrypted one: whole pages of random bytes.
pub(super) fn looks_encrypted(path: &Path) -> bool {
    let is_paged = std::fs::metadata(path).is_ok_and(|file| file.len() % PAGE_BYTES == 0);
    let Some(page) = beginning(path, PAGE_BYTES) else {
        // A store of this process has it open, so it is one.
        return is_open(path);
    };
    let mut seen = [false; 256];
    page.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    is_paged
        && !page.starts_with(SQLITE)
        && seen.iter().filter(|seen| **seen).count() >= MIN_DISTINCT_BYTES
}

/// The size of a page of a new store.
const PAGE_BYTES: u64 = 4096;
/// A page with fewer different byte values is not encrypted. A page of random bytes lacks one of the 256 values with a
/// probability of 1 in 30 000; a page of text has about a hundred.
const MIN_DISTINCT_BYTES: usize = 250;

/// Returns how a file was cut off, by its header; `None` if it was not, or if it is not read.
pub(super) fn cut_off(path: &Path) -> Option<String> {
    let header = of(path)?;
    let bytes = std::fs::metadata(path).ok()?.len();
    let number =
        |at: usize| Some(u64::from(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?)));
    let told = match (number(16), number(28)) {
        (Some(page), Some(pages)) => match page >> 16 {
            1 => pages << 16,
            page => page * pages,
        },
        _ => BYTES,
    };
    let why = format!("it was cut off: it has {bytes} bytes, and its header says {told}");
    (bytes < told).then_some(why)
}

/// Returns the header of a database; `None` if it is not read.
fn of(path: &Path) -> Option<Vec<u8>> {
    beginning(path, BYTES)
}

/// Returns the first bytes of a file; `None` if it is not read.
pub(super) fn beginning(path: &Path, bytes: u64) -> Option<Vec<u8>> {
    use std::io::Read;
    if is_open(path) {
        return None;
    }
    let mut read = Vec::new();
    std::fs::File::open(path).ok()?.take(bytes).read_to_end(&mut read).ok()?;
    Some(read)
}

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
    if file.nlink() == 2 && other.as_deref().is_some_and(backup::is_partial) {
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
