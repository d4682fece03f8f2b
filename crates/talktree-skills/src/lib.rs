//! Files as context blocks: skills, documents and texts that people keep in folders.
//!
//! A [`SkillFolder`] is a folder of documents that a model loads when it needs them. A [`DocumentFolder`] keeps its files as
//! documents of a stored block, which are searched. A [`TextFile`] is the content of a block.
//!
//! Invariant: a bad file affects no other file. The program gets a [`FileNotice`] about it; no path of the host is shown to a
//! model.

mod documents;
mod front_matter;
mod skills;
mod text_file;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use talktree::{Error, Result};
use talktree_text::foreign;

pub use documents::{DocumentFolder, FolderChanges};
pub use skills::SkillFolder;
pub use text_file::TextFile;

/// The longest key, in bytes: what file systems allow for a name.
const MAX_KEY_BYTES: usize = 255;

/// A file in a folder of skills or documents that a model does not see, or does not see as its author meant it.
///
/// [`SkillFolder`] has an example. `Display` writes path and reason on one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FileNotice {
    /// The file or folder.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
    /// Whether it is left out: not listed in the prompt, and not loaded.
    pub is_left_out: bool,
}

impl FileNotice {
    fn left_out(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), is_left_out: true }
    }

    fn listed(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), is_left_out: false }
    }
}

impl fmt::Display for FileNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = foreign::line(&self.path.to_string_lossy());
        let left_out = if self.is_left_out { "left out: " } else { "" };
        write!(f, "{path}: {left_out}{}", self.why)
    }
}

/// Returns the absolute path: a program may change its working directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|source| failed(path, source))
}

/// Returns the absolute path of a folder that can be read.
fn folder(path: &Path) -> Result<PathBuf> {
    fs::read_dir(path).map_err(|source| failed(path, source))?;
    absolute(path)
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Checks that a key is a plain file name on every system; the error is the reason.
fn check_key(key: &str) -> std::result::Result<(), String> {
    Err(if key.trim().is_empty() {
        "it is blank".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("it has {} bytes, over the limit of {MAX_KEY_BYTES}", key.len())
    } else if key.starts_with('.') {
        "it begins with a full stop".to_owned()
    } else if let Some(c) = key.chars().find(|c| matches!(c, '/' | '\\' | ':')) {
        // On Windows a colon separates a drive or an alternate data stream.
        format!("it has a {c:?}; a key is the name of a skill, no path")
    } else if key.contains(foreign::breaks_line) {
        "it has a line break or a control character".to_owned()
    } else {
        return Ok(());
    })
}
