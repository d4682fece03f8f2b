//! The header of a file: what its first bytes tell of it.
//!
//! A file that a store of this process has open is not read: closing it again would drop the store's locks.

use std::path::Path;

use super::file::is_open;

/// The length of the header of a database. A shorter file is no database, though SQLite takes some for empty ones.
pub(super) const BYTES: u64 = 100;

/// What each database begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns whether a file has another header than SQLite's; `false` if it is not read.
pub(super) fn is_other(path: &Path) -> bool {
    of(path).is_some_and(|header| {
        let name = &header[..header.len().min(SQLITE.len())];
        !SQLITE.starts_with(name)
    })
}

/// Returns whether a file has the header of an SQLite database; `false` if it is not read.
pub(super) fn is_of_database(path: &Path) -> bool {
    of(path).is_some_and(|header| header.starts_with(SQLITE))
}

/// Returns whether a file that SQLite calls no database may be an encrypted one: whole pages of random bytes.
pub(super) fn looks_encrypted(path: &Path) -> bool {
    let is_paged = std::fs::metadata(path).is_ok_and(|file| file.len() % PAGE_BYTES == 0);
    let Some(page) = beginning(path, PAGE_BYTES) else {
        // A store of this process has it open, so it is one.
        return is_open(path);
    };
    let mut seen = [false; 256];
    page.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    is_paged
        && !page.starts_with(SQLITE)
        && seen.iter().filter(|seen| **seen).count() >= MIN_DISTINCT_BYTES
}

/// The size of a page of a new store.
const PAGE_BYTES: u64 = 4096;
/// A page with fewer different byte values is not encrypted. A page of random bytes lacks one of the 256 values with a
/// probability of 1 in 30 000; a page of text has about a hundred.
const MIN_DISTINCT_BYTES: usize = 250;

/// Returns how a file was cut off, by its header; `None` if it was not, or if it is not read.
pub(super) fn cut_off(path: &Path) -> Option<String> {
    let header = of(path)?;
    let bytes = std::fs::metadata(path).ok()?.len();
    let number =
        |at: usize| Some(u64::from(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?)));
    let told = match (number(16), number(28)) {
        (Some(page), Some(pages)) => match page >> 16 {
            1 => pages << 16,
            page => page * pages,
        },
        _ => BYTES,
    };
    let why = format!("it was cut off: it has {bytes} bytes, and its header says {told}");
    (bytes < told).then_some(why)
}

/// Returns the header of a database; `None` if it is not read.
fn of(path: &Path) -> Option<Vec<u8>> {
    beginning(path, BYTES)
}

/// Returns the first bytes of a file; `None` if it is not read.
pub(super) fn beginning(path: &Path, bytes: u64) -> Option<Vec<u8>> {
    use std::io::Read;
    if is_open(path) {
        return None;
    }
    let mut read = Vec::new();
    std::fs::File::open(path).ok()?.take(bytes).read_to_end(&mut read).ok()?;
    Some(read)
}
