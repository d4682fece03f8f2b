//! Copying a live database.

use std::path::Path;
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
    pub(crate) fn backup(&self, path: &Path, progress: impl FnMut(Progress)) -> Result<()> {
        if !make_private_file(path)? {
            let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(Error::Io { path: path.to_owned(), source });
        }
        let copied = self.copy_to(path, &self.interrupt_signal().watch(), progress);
        if copied.is_err() {
            // The half of a copy is of no use; that it cannot be removed is less news than why.
            let _ = std::fs::remove_file(path);
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

fn finish(target: Connection) -> Outcome<()> {
    target.close().map_err(|(_, error)| Fault::Sqlite(error))
}
