//! A database file that is not complete yet.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::file::{self, SUFFIXES};
use crate::error::Result;

const PREFIX: &str = "talktree-";
const SUFFIX: &str = ".partial";

/// Returns whether a path has a name as [`PartialFile::create`] makes them.
pub(super) fn is_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// A new database file, removed on drop with SQLite's files beside it: after an error, and after a panic of a callback.
pub(super) struct PartialFile(PathBuf);

impl PartialFile {
    /// Creates an empty file, which only its owner can read, with a name that ends in `.partial`.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let name = format!("{PREFIX}{}{SUFFIX}", crate::clock::uuid());
        let file = Self(folder.join(name));
        file::make_private(&file.0)?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens it, whatever the name of its folder looks like.
    pub(super) fn open(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.0, flags)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        for suffix in SUFFIXES {
            // Most of these files do not exist, and an error before matters more than a failure to remove one.
            let _ = std::fs::remove_file(file::beside(&self.0, suffix));
        }
    }
}
