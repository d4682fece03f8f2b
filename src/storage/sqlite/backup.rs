//! Copying a live database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{Database, make_private_file};
use super::fault::{Fault, Outcome};
use super::interrupt::Watch;
use crate::error::{Error, Result};
use crate::report::Progress;

/// How many pages are copied between two looks at the interrupt.
const PAGES_PER_STEP: i32 = 256;

impl Database {
    /// Copies the database, as it is at one moment, to a file that is not there yet.
    ///
    /// It is written beside that place and moved there when it is whole: whatever happens, no half of a copy is ever
    /// taken for one.
    pub(crate) fn backup(&self, path: &Path, progress: impl FnMut(Progress)) -> Result<()> {
        if path.try_exists().map_err(|source| io(path, source))? {
            return Err(io(path, std::io::ErrorKind::AlreadyExists.into()));
        }
        let partial = beside(path, ".partial");
        // Of a backup that was cut off.
        remove(&partial);
        make_private_file(&partial)?;
        let copied = self
            .copy_to(&partial, &self.interrupt_signal().watch(), progress)
            .and_then(|()| settle(&partial, path));
        if copied.is_err() {
            remove(&partial);
        }
        copied
    }

    /// Copies the database into a file that was made for it.
    pub(super) fn copy_to(
        &self,
        path: &Path,
        watch: &Watch,
        mut progress: impl FnMut(Progress),
    ) -> Result<()> {
        // In memory the one connection is held meanwhile: nobody can be called from there.
        let is_alone = self.path().is_none();
        let pages = if is_alone { -1 } else { PAGES_PER_STEP };
        let total = self.read(|conn| {
            // The open read holds the moment: writers go on, and the copy does not begin anew.
            conn.query_row("SELECT count(*) FROM session", [], |_| Ok(()))?;
            let mut target = Connection::open(path)?;
            let backup = Backup::new(conn, &mut target)?;
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
            finish(target).map(|()| total)
        })?;
        if is_alone {
            progress(Progress::new(total, total));
        }
        Ok(())
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a copy; that it cannot be removed is less news than why it should be.
fn remove(partial: &Path) {
    let _ = std::fs::remove_file(partial);
    let _ = std::fs::remove_file(beside(partial, "-journal"));
}

/// Moves the whole copy to its place, so that a power cut finds it there, too.
fn settle(partial: &Path, path: &Path) -> Result<()> {
    std::fs::rename(partial, path).map_err(|source| io(path, source))?;
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| io(folder, source))?;
    }
    Ok(())
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

fn finish(target: Connection) -> Outcome<()> {
    target.close().map_err(|(_, error)| Fault::Sqlite(error))
}
