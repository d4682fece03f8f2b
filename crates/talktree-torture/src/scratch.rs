//! Temporary folders for stores that are broken.

use std::path::Path;

/// Returns a temporary folder, in memory if the system has a memory disk. It is removed when dropped.
///
/// # Errors
/// If no folder can be created.
pub(crate) fn scratch() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(folder)
}
