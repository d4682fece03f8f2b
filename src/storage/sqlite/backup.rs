//! Copying a live database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::connection::{Database, unlock};
use super::file;
use super::file::SUFFIXES;
use super::interrupt::Watch;
use crate::error::{Error, Result};
use crate::report::Progress;
use crate::sql::BackendError;

/// How many pages are copied between two checks for an interrupt.
const PAGES_PER_STEP: i32 = 256;

impl Database {
    /// Copies a snapshot of the database to a new file.
    ///
    /// The file gets its name when it is complete: an incomplete copy left by a crash could open as a store without
    /// sessions.
    pub(crate) fn backup(&self, path: &Path, progress: impl FnMut(Progress)) -> Result<()> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        if path.symlink_metadata().is_ok() {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()));
        }
        if file::is_open(path) {
            let given = path.to_string_lossy().into_owned();
            let why =
                "SQLite uses a file of this name for an open store, and deletes it".to_owned();
            return Err(Error::InvalidValue { what: "path of a backup", given, why });
        }
        let target = file::resolve_new(path)?;
        let folder = target.parent().unwrap_or(&target);
        let partial = PartialFile::create(folder).map_err(|error| match error {
            Error::Io { source, .. } => io(source),
            error => error,
        })?;
        let copy = self.copy_to(|| partial.open(), &self.watch(), progress)?;
        copy.close().map_err(|(_, error)| BackendError::from(error).into_error(0))?;
        name_copy(partial.path(), &target).map_err(io)
    }

    /// Copies the database into an empty one and returns that.
    pub(super) fn copy_to(
        &self,
        open: impl FnOnce() -> rusqlite::Result<Connection>,
        watch: &Watch,
        mut progress: impl FnMut(Progress),
    ) -> Result<Connection> {
        // In memory there is one connection, which is locked here, so no callback may run.
        let is_alone = self.path().is_none();
        let pages = if is_alone { -1 } else { PAGES_PER_STEP };
        let (total, copy) = self.read(|conn| {
            let conn = conn.sqlite()?;
            // The open read pins the snapshot: writers continue, and the backup does not start over.
            conn.query_row("SELECT count(*) FROM session", [], |_| Ok(()))?;
            let mut copy = open()?;
            // SQLCipher copies between two encrypted databases only, each with its key.
            unlock(&copy, &self.config)?;
            let backup = Backup::new(conn, &mut copy)?;
            let total = loop {
                watch.check()?;
                let step = backup.step(pages)?;
                let state = backup.progress();
                let total = state.pagecount.max(0) as u64;
                if !is_alone {
                    progress(Progress::new(total - state.remaining.max(0) as u64, total));
                }
                match step {
                    StepResult::Done => break total,
                    StepResult::More => {}
                    _ => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            drop(backup);
            Ok((total, copy))
        })?;
        if is_alone {
            progress(Progress::new(total, total));
        }
        Ok(copy)
    }
}

/// Renames a file; an existing file is an error.
fn name_copy(file: &Path, name: &Path) -> std::io::Result<()> {
    // Unlike a rename, a hard link does not replace a file that was created meanwhile. Not every file system has hard
    // links.
    match std::fs::hard_link(file, name) {
        Ok(()) => std::fs::remove_file(file)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => std::fs::rename(file, name)?,
    }
    #[cfg(unix)]
    {
        // Without it a power failure may lose the new name.
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

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
