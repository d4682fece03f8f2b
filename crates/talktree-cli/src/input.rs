//! Files that a command reads. The store's own files are refused.

use std::fs::File;
use std::io;
use std::path::Path;

use talktree::Store;

/// Opens a file for reading, unless it belongs to an open store: to close it again would drop the store's locks.
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    if Store::is_open_file(path) {
        return Err(io::Error::other("it belongs to the open store"));
    }
    File::open(path)
}

/// Reads a file as text.
pub(crate) fn read_input(path: &Path) -> io::Result<String> {
    io::read_to_string(open_input(path)?)
}
