//! Reads the bytes of the files of a store without SQLite.
//!
//! Invariant: a descriptor of a file that this process has open as a part of a store is kept until no store of this
//! process has the file open. To close it earlier would drop SQLite's locks, as `file` explains.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::{FileId, SUFFIXES, StoreFile, beside};

/// An open file with its identity.
type Kept = (FileId, Arc<File>);

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the files of which `is_in_use` is false.
pub(super) fn close_unused(is_in_use: impl Fn(FileId) -> bool) {
    kept().retain(|(id, _)| is_in_use(*id));
}

impl StoreFile {
    /// Opens the database, its log and its lock file for reading, those that exist.
    ///
    /// The caller keeps the store open while it reads.
    pub(super) fn raw_files(&self) -> io::Result<Vec<(PathBuf, Arc<File>)>> {
        let mut files = Vec::new();
        for suffix in SUFFIXES {
            let path = beside(self.path(), suffix);
            match open(&path) {
                Ok(file) => files.push((path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }
}

fn open(path: &Path) -> io::Result<Arc<File>> {
    let mut kept = kept();
    if let Some(id) = FileId::of(path)
        && let Some((_, file)) = kept.iter().find(|(known, _)| *known == id)
    {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(File::open(path)?);
    // Of the file that was opened: the name may lead to another one by now.
    if let Some(id) = FileId::of_metadata(&file.metadata()?) {
        kept.push((id, Arc::clone(&file)));
    }
    Ok(file)
}

/// Reads bytes from a place in a file, at most as many as there is room for.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
    #[cfg(not(any(unix, windows)))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read(bytes)
    }
}
