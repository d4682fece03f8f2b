//! A text file: where it is, and its text.
//!
//! Invariant: of a file in a folder, nothing outside the folder is read, whatever a key, a path or a symbolic link says. The
//! canonical path is checked before the file is opened and again when it is open: it may have been replaced by a link in
//! between. [`TextFile::open_path`] is for a path that the program's author chose: it follows links.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::notice::FileNotice;
use crate::regular_file;

/// The maximum size of a file, in bytes: 1 MiB.
const MAX_BYTES: usize = 1 << 20;

/// How much of a skill is read to find its description, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// The file in the folder of a skill.
pub(super) const DOCUMENT: &str = "SKILL.md";

/// An open file.
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    file: File,
}

impl TextFile {
    /// Opens the skill of a key; `None` if there is none. `root` is the canonical path of the folder.
    ///
    /// A folder has priority over a file of the same key, even if the file in the folder cannot be read.
    pub(super) fn open(root: &Path, key: &str) -> Result<Option<Self>, FileNotice> {
        let places = [Path::new(key).join(DOCUMENT), PathBuf::from(format!("{key}.md"))];
        let place = places.into_iter().find(|place| {
            let found = fs::symlink_metadata(root.join(place));
            !found.is_err_and(|error| is_absence(&error))
        });
        place.map(|place| Self::open_at(root, &place)).transpose()
    }

    /// Opens the file at a place in the folder. `root` is the canonical path of the folder.
    pub(super) fn open_at(root: &Path, place: &Path) -> Result<Self, FileNotice> {
        let path = root.join(place);
        let failed = |error: &std::io::Error| FileNotice::left_out(&path, why(error));
        let real = resolved(root, place)?;
        // Opening a device may have an effect, so it is not tried.
        if fs::metadata(&real).is_ok_and(|found| !found.is_file()) {
            return Err(FileNotice::left_out(&path, "it is not a file"));
        }
        let file = regular_file::open(&real).map_err(|error| failed(&error))?;
        if resolved(root, place)? != real || !is_at(&file, &real).map_err(|error| failed(&error))? {
            return Err(FileNotice::left_out(&path, "it was replaced while it was opened"));
        }
        let document = Self { path, file };
        match document.file.metadata() {
            Ok(found) if found.len() > MAX_BYTES as u64 => Err(document.too_large(found.len())),
            _ => Ok(document),
        }
    }

    /// Opens a file by its path, links followed.
    pub(super) fn open_path(path: &Path) -> Result<Self, FileNotice> {
        let file =
            regular_file::open(path).map_err(|error| FileNotice::left_out(path, why(&error)))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Returns the start of the text, and whether it is the whole.
    pub(super) fn head(self) -> Result<(String, bool), FileNotice> {
        let (path, bytes) = self.bytes(HEAD_BYTES)?;
        let is_whole = bytes.len() <= HEAD_BYTES;
        let mut head = &bytes[..bytes.len().min(HEAD_BYTES)];
        // A character may be cut at the end.
        if let Err(error) = std::str::from_utf8(head)
            && error.error_len().is_none()
            && !is_whole
        {
            head = &head[..error.valid_up_to()];
        }
        Ok((text(&path, head)?.to_owned(), is_whole))
    }

    /// Returns the whole text.
    pub(super) fn whole(self) -> Result<String, FileNotice> {
        let (path, bytes) = self.bytes(MAX_BYTES)?;
        if bytes.len() > MAX_BYTES {
            return Err(too_large(&path, bytes.len() as u64));
        }
        Ok(text(&path, &bytes)?.to_owned())
    }

    /// Reads so many bytes, and one more if there is one: the file may grow while it is read.
    fn bytes(self, max: usize) -> Result<(PathBuf, Vec<u8>), FileNotice> {
        let mut bytes = Vec::new();
        let mut limited = self.file.take(max as u64 + 1);
        match limited.read_to_end(&mut bytes) {
            Ok(_) => Ok((self.path, bytes)),
            Err(error) => Err(FileNotice::left_out(self.path, why(&error))),
        }
    }

    fn too_large(&self, bytes: u64) -> FileNotice {
        too_large(&self.path, bytes)
    }
}

fn too_large(path: &Path, bytes: u64) -> FileNotice {
    FileNotice::left_out(path, format!("it has {bytes} bytes, over the limit of {MAX_BYTES}"))
}

fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, FileNotice> {
    let why = match std::str::from_utf8(bytes) {
        _ if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") => {
            "it is text in UTF-16; only UTF-8 is read".to_owned()
        }
        _ if bytes.contains(&0) => "it is not a text".to_owned(),
        Ok(text) => return Ok(text),
        Err(error) => format!("it is not a text in UTF-8, from byte {} on", error.valid_up_to()),
    };
    Err(FileNotice::left_out(path, why))
}

/// Returns the canonical path of a place in the folder.
fn resolved(root: &Path, place: &Path) -> Result<PathBuf, FileNotice> {
    let path = root.join(place);
    match path.canonicalize() {
        Ok(real) if real.starts_with(root) => Ok(real),
        Ok(_) => Err(FileNotice::left_out(path, "it leads out of the folder")),
        Err(error) => Err(FileNotice::left_out(path, why(&error))),
    }
}

/// Returns why a place cannot be read, without its path: a model reads it, too.
pub(super) fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it does not exist, or is a link to nothing".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}

/// Returns whether the open file is the one at a path, and the path is not a link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
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
fn is_at(_: &File, path: &Path) -> std::io::Result<bool> {
    Ok(fs::symlink_metadata(path).is_ok_and(|at| at.is_file()))
}

/// Returns whether nothing is there; a file in place of a folder counts.
pub(super) fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
