//! A new file that gets its name when it is complete.
//!
//! Until then it has another name beside its own, which ends in `.partial`, and only its owner can read it. It is removed
//! if the command fails or a signal stops it. A file that has the name already is never replaced, also if another program
//! creates it meanwhile.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use talktree::Store;
use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};
use crate::signals::Signals;
use crate::text::shown;

/// A file while it is written.
pub(crate) struct NewFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    signals: Signals,
}

impl NewFile {
    /// Creates the file; refuses a name that exists.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        // A symbolic link to nowhere is there, too.
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        if Store::is_open_file(path) {
            return Err(Failure::Usage(format!(
                "{} cannot be written: SQLite uses a file of this name for the store, and deletes it",
                shown(path)
            )));
        }
        let cannot = |error| Failure::Output(named(path, &error));
        let signals = Signals::catch().map_err(cannot)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let why = format!("there is no folder {}", shown(folder));
            return Err(cannot(io::Error::new(io::ErrorKind::NotFound, why)));
        }
        let file = tempfile::Builder::new()
            .prefix("talktree-")
            .suffix(".partial")
            .tempfile_in(folder)
            .map_err(|error| cannot(without_path(error)))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), signals })
    }

    /// Gives the complete file its name; returns its length in bytes.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self { path, file, signals } = self;
        let cannot = |error| Failure::Output(named(&path, &error));
        let file = file.into_inner().map_err(|error| cannot(error.into_error()))?;
        // A name that survives a power loss must not lead to a file whose bytes did not.
        file.as_file().sync_all().map_err(cannot)?;
        let bytes = file.as_file().metadata().map_err(cannot)?.len();
        signals.check()?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(bytes),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(exists(&path)),
            Err(error) => Err(cannot(error.error)),
        }
    }

    /// Interrupts the work of the store whose data is written when a signal arrives.
    pub(crate) fn interrupt(&self, store: &Store) {
        self.signals.interrupt(store);
    }

    /// Returns why the file was not written: a signal, or a failure of a write, with the name of the file.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        match (self.signals.check(), failure) {
            (Err(stopped), _) => stopped,
            (Ok(()), Failure::Output(error)) => Failure::Output(named(&self.path, &error)),
            (Ok(()), failure) => failure,
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Another kind than `Interrupted`, after which a write is tried again.
        self.signals.check().map_err(|_| io::Error::other("stopped by a signal"))?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn exists(path: &Path) -> Failure {
    Failure::Usage(format!("{} already exists; nothing was written", shown(path)))
}

/// Returns the error with the name of the file.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", shown(path)))
}

/// Returns the error without the random name that tempfile adds.
fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(std::error::Error::source);
    let code = inner.and_then(|inner| inner.downcast_ref::<io::Error>()?.raw_os_error());
    code.map_or(error, io::Error::from_raw_os_error)
}
