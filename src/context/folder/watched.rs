//! A text in a file, read again each time.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::super::provider::ReadProvider;
use super::io;
use super::text_file::TextFile;
use crate::error::{BoxError, Error, Result};

/// The text of a file. If the file cannot be read any more, it is the last text that was: a prompt must not fail while an
/// editor replaces the file.
#[derive(Debug)]
pub(crate) struct WatchedText {
    path: PathBuf,
    last: Mutex<String>,
}

impl WatchedText {
    pub(crate) fn open(given: &Path) -> Result<Self> {
        // Absolute: a program may change its working directory.
        let path = std::path::absolute(given).map_err(|source| io(given, source))?;
        let text = TextFile::open_path(&path).and_then(TextFile::whole);
        let text = text.map_err(|notice| Error::Io {
            path: given.to_owned(),
            source: std::io::Error::other(notice.why),
        })?;
        Ok(Self { path, last: Mutex::new(text) })
    }
}

impl ReadProvider for WatchedText {
    fn get(&self) -> std::result::Result<String, BoxError> {
        let now = TextFile::open_path(&self.path).and_then(TextFile::whole);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(now) = now {
            *last = now;
        }
        Ok(last.clone())
    }
}
