//! A text file: where it is, and its text.
//!
//! Invariant: of a file in a folder, nothing outside the folder is read, whatever a key, a path or a symbolic link says. The
//! canonical path is checked before the file is opened and again when it is open: it may have been replaced by a link in
//! between. [`TextFile`] is a path that the program's author chose: it follows links.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use talktree::{BoxError, Error, ReadProvider, Result};

use crate::{FileNotice, absolute};

/// The maximum size of a file, in bytes: 1 MiB.
const MAX_BYTES: usize = 1 << 20;

/// How much of a skill is read to find its description, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// A text file that a context block shows as it is now.
///
/// If the file cannot be read any more, the block shows the last text that was read: a prompt must not fail while an editor
/// replaces the file.
///
/// ```
/// use talktree::{Block, Store};
/// use talktree_skills::TextFile;
///
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("soul.md");
/// std::fs::write(&path, "Be brief.")?;
/// let store = Store::open_in_memory()?;
/// let soul = Block::read(TextFile::open(&path)?);
/// let chat = store.session_builder("s").block("soul", soul).open()?;
/// assert!(chat.prompt()?.ends_with("\nBe brief."));
/// std::fs::write(&path, "Be kind.")?;
/// assert!(chat.prompt()?.ends_with("\nBe kind."));
/// # Ok::<(), talktree::BoxError>(())
/// ```
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    last: Mutex<String>,
}

impl TextFile {
    /// Opens the file at this path.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, is not UTF-8 or has more than 1 MiB.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        let path = absolute(given)?;
        let text = read(&path)
            .map_err(|why| Error::Io { path: given.to_owned(), source: io::Error::other(why) })?;
        Ok(Self { path, last: Mutex::new(text) })
    }
}

impl ReadProvider for TextFile {
    fn get(&self) -> std::result::Result<String, BoxError> {
        let now = read(&self.path);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(now) = now {
            *last = now;
        }
        Ok(last.clone())
    }
}

fn read(path: &Path) -> std::result::Result<String, String> {
    whole(open(path)?)
}

/// Opens the file at a place in a folder. `root` is the canonical path of the folder.
pub(crate) fn open_in(root: &Path, place: &Path) -> std::result::Result<File, FileNotice> {
    let path = root.join(place);
    let opened = || {
        let real = resolved(root, &path)?;
        let file = open(&real)?;
        let is_there = resolved(root, &path)? == real && is_at(&file, &real).map_err(why)?;
        is_there.then_some(file).ok_or_else(|| "it was replaced while it was opened".to_owned())
    };
    opened().map_err(|why| FileNotice::left_out(&path, why))
}

/// Opens a file by its path, links followed. The error is the reason.
fn open(path: &Path) -> std::result::Result<File, String> {
    // Opening a device may have an effect, and opening a pipe may wait, so neither is tried. One that replaces the file
    // after this look is opened.
    let found = fs::metadata(path).map_err(why)?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    check_size(found.len())?;
    File::open(path).map_err(why)
}

/// Returns the start of the text, and whether it is the whole.
pub(crate) fn head(file: File) -> std::result::Result<(String, bool), String> {
    let bytes = bytes(file, HEAD_BYTES)?;
    let is_whole = bytes.len() <= HEAD_BYTES;
    let mut head = &bytes[..bytes.len().min(HEAD_BYTES)];
    // A character may be cut at the end.
    if let Err(error) = std::str::from_utf8(head)
        && error.error_len().is_none()
        && !is_whole
    {
        head = &head[..error.valid_up_to()];
    }
    Ok((text(head)?, is_whole))
}

/// Returns the whole text.
pub(crate) fn whole(file: File) -> std::result::Result<String, String> {
    let bytes = bytes(file, MAX_BYTES)?;
    check_size(bytes.len() as u64)?;
    text(&bytes)
}

/// Reads so many bytes, and one more if there is one: the file may grow while it is read.
fn bytes(file: File, max: usize) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(why)?;
    Ok(bytes)
}

fn check_size(bytes: u64) -> std::result::Result<(), String> {
    match bytes <= MAX_BYTES as u64 {
        true => Ok(()),
        false => Err(format!("it has {bytes} bytes, over the limit of {MAX_BYTES}")),
    }
}

fn text(bytes: &[u8]) -> std::result::Result<String, String> {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err("it is text in UTF-16; only UTF-8 is read".to_owned());
    }
    if bytes.contains(&0) {
        return Err("it is not a text".to_owned());
    }
    let text = std::str::from_utf8(bytes);
    let not_utf8 = |error: std::str::Utf8Error| {
        format!("it is not a text in UTF-8, from byte {} on", error.valid_up_to())
    };
    text.map(str::to_owned).map_err(not_utf8)
}

/// Returns the canonical form of a path in the folder.
fn resolved(root: &Path, path: &Path) -> std::result::Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(real) if real.starts_with(root) => Ok(real),
        Ok(_) => Err("it leads out of the folder".to_owned()),
        Err(error) => Err(why(error)),
    }
}

/// Returns why a place cannot be read, without its path: a model reads it, too.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
pub(crate) fn why(error: io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it does not exist, or is a link to nothing".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}

/// Returns whether the open file is the one at a path, and the path is not a link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let at = match fs::symlink_metadata(path) {
        Err(error) if is_absence(&error) => return Ok(false),
        at => at?,
    };
    let open = file.metadata()?;
    Ok((open.dev(), open.ino()) == (at.dev(), at.ino()))
}

/// Returns whether the path is a file and not a link; this system does not tell which file is open.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path).is_ok_and(|at| at.is_file()))
}

/// Returns whether nothing is there; a file in place of a folder counts.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
