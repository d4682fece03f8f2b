//! Folders for stores that are broken.

use std::path::Path;

/// Returns a folder in memory where there is one, which goes when it is dropped.
///
/// # Errors
/// If none can be made.
pub(crate) fn scratch() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(folder)
}
