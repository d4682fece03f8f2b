//! Notices: which files of a folder a model does not see, and why.

use std::fmt;
use std::path::PathBuf;

/// A file in a folder of skills or documents that a model does not see, or does not see as its author meant it.
///
/// [`SkillFolder`](crate::SkillFolder) has an example. `Display` writes path and reason on one line.
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
    pub(super) fn left_out(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), is_left_out: true }
    }

    pub(super) fn odd(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), is_left_out: false }
    }
}

impl fmt::Display for FileNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = talktree_text::foreign::line(&self.path.to_string_lossy());
        let left_out = if self.is_left_out { "left out: " } else { "" };
        write!(f, "{path}: {left_out}{}", self.why)
    }
}
