//! A new file that gets its name when it is complete.
//!
//! Only its owner can read it. Until it is complete it has no name: if the command fails or is killed, nothing is left of it.
//! Where the system has no such files, it has another name beside its own, which ends in `.partial`, and is removed if the
//! command fails or a signal stops it. A file that has the name already is never replaced, also if another program
//! creates it meanwhile.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use talktree::Store;
use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};
use crate::text::shown;
use crate::work::Signals;

/// A file while it is written.
pub(crate) struct NewFile {
    path: PathBuf,
    file: BufWriter<Incomplete>,
    signals: Signals,
}

enum Incomplete {
    #[cfg(target_os = "linux")]
    WithoutName(File),
    Named(NamedTempFile),
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
        let file = Incomplete::create(folder).map_err(|error| cannot(without_path(error)))?;
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
        match file.name(&path) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(&path)),
            Err(error) => Err(cannot(error)),
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

impl Incomplete {
    fn create(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(file) = without_name(folder) {
            return Ok(Self::WithoutName(file));
        }
        tempfile::Builder::new()
            .prefix("talktree-")
            .suffix(".partial")
            .tempfile_in(folder)
            .map(Self::Named)
    }

    fn as_file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::WithoutName(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Gives the file a name that is not in use.
    fn name(self, path: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::WithoutName(file) => {
                use rustix::fs::{AtFlags, CWD, linkat};
                let same = descriptor(&file);
                Ok(linkat(CWD, same, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            }
            Self::Named(file) => Ok(file.persist_noclobber(path).map(drop)?),
        }
    }
}

/// Opens a new file without a name; `None` where there are no such files, or if none could get a name.
#[cfg(target_os = "linux")]
fn without_name(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
    std::fs::metadata(descriptor(&file)).is_ok().then_some(file)
}

/// Returns a path that leads to an open file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

impl Write for Incomplete {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.as_file().flush()
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
