//! Copying a live database.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{Database, make_private_file};
use super::error::{BackendError, BackendResult};
use super::interrupt::Watch;
use crate::error::{Error, Result};
use crate::report::Progress;

/// How many pages are copied between two looks at the interrupt.
const PAGES_PER_STEP: i32 = 256;

impl Database {
    /// Copies the database, as it is at one moment, to a file that is not there yet.
    ///
    /// The copy gets its name when it is whole: the half that a crash leaves would open as a store without sessions.
    pub(crate) fn backup(&self, path: &Path, progress: impl FnMut(Progress)) -> Result<()> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        if path.symlink_metadata().is_ok() {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()));
        }
        let half = path.with_file_name(format!("talktree-{}.partial", uuid::Uuid::now_v7()));
        make_private_file(&half).map_err(|error| match error {
            Error::Io { source, .. } => io(source),
            error => error,
        })?;
        let copied = self
            .copy_to(&half, &self.interrupt_signal().watch(), progress)
            .and_then(|()| give_name(&half, path).map_err(io));
        if copied.is_err() {
            // The half of a copy is of no use; that it cannot be removed is less news than why.
            let _ = std::fs::remove_file(&half);
            let mut log = half.into_os_string();
            log.push("-journal");
            let _ = std::fs::remove_file(log);
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

/// Moves a file to a name that no file may bear yet.
fn give_name(file: &Path, name: &Path) -> std::io::Result<()> {
    // A link leaves a file that has come by that name meanwhile alone; not every medium has links.
    match std::fs::hard_link(file, name) {
        Ok(()) => std::fs::remove_file(file)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => std::fs::rename(file, name)?,
    }
    #[cfg(unix)]
    {
        // Else the name may be lost with the power.
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn finish(target: Connection) -> BackendResult<()> {
    target.close().map_err(|(_, error)| BackendError::Sqlite(error))
}
