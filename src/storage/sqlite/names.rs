//! The names of a file: hard links.
//!
//! SQLite puts the log and the lock file beside the name that a database is opened by. Two names have two logs, and each
//! connection sees and checkpoints only its own, so acknowledged writes are lost. Therefore a file with a second name is
//! refused when it is opened. A name that is added later does no harm: nobody can open the file by it while both exist.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::partial_file;
use crate::error::{Error, Result};

/// Returns an error if the file has another name.
#[cfg(unix)]
pub(super) fn require_one(path: &Path, file: &Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
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
