//! Files and streams that a command reads.
//!
//! A stream may have no end: a device, a pipe of a program that goes on for ever. So a text is read up to a limit. The
//! store's own files are refused.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use talktree::Store;

use crate::failure::{Failure, Result};
use crate::text::shown;

/// The longest text that is read, in bytes: the store's limit for one message, so a longer one could not be stored.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Returns whether the argument means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file for reading, unless it belongs to an open store: to close it again would drop the store's locks.
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    if Store::is_open_file(path) {
        return Err(io::Error::other("it belongs to the open store"));
    }
    File::open(path).map_err(|error| match dangling(path) {
        Some(why) if error.kind() == io::ErrorKind::NotFound => io::Error::new(error.kind(), why),
        _ => error,
    })
}

/// Returns what is wrong if the path is a symbolic link that leads nowhere.
pub(crate) fn dangling(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok()?;
    match std::fs::metadata(path).err()? {
        error if is_of_loop(&error) => Some("it is a loop of symbolic links".to_owned()),
        error if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("it is a symbolic link to {}, which does not exist", shown(&target)))
        }
        _ => None,
    }
}

#[cfg(unix)]
fn is_of_loop(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

#[cfg(not(unix))]
fn is_of_loop(_: &io::Error) -> bool {
    false
}

/// Reads a text from a file, or from standard input for `-`; errors name the text as `what`.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String> {
    if is_stdin(path) {
        return read_stdin(what);
    }
    let cannot =
        |error| Failure::Input(format!("{what} cannot be read from {}: {error}", shown(path)));
    read(open_input(path).map_err(cannot)?).map_err(cannot)
}

/// Reads a text from standard input.
pub(crate) fn read_stdin(what: &str) -> Result<String> {
    let cannot = |error| Failure::Input(format!("{what} cannot be read from stdin: {error}"));
    read(io::stdin().lock()).map_err(cannot)
}

fn read(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        let why = format!("it is longer than the limit of {MAX_TEXT_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 after byte {valid}"))
    })
}
