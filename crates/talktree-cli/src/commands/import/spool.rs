//! Temporary copies of streams: standard input, pipes, and the entries of archives.
//!
//! An importer seeks in its input, and a stream can only be read on. So it is copied to a temporary file, not to memory.
//! A stream may have no end, and an entry of an archive may unpack to thousands of times its size, so a copy has limits.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::text::plural;

/// The longest stream, in bytes: eight of the longest records that an importer reads.
const MAX_BYTES: u64 = 4 << 30;

/// How much of a stream is copied before its beginning is judged: the longest message of a store. What is shorter is judged
/// by the importer, which knows more formats by their name.
const JUDGED_AFTER: u64 = 64 << 20;
/// How many of its first bytes are judged.
const JUDGED_BYTES: usize = 1 << 20;

/// An entry of an archive may unpack to this many times its packed size. JSON is packed to a tenth, bombs to a thousandth.
const MAX_RATIO: u64 = 100;
/// An entry may have this many bytes in any case.
const ANY_RATIO_BYTES: u64 = 64 << 20;

/// How much a copy may hold, and why no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    bytes: u64,
    why: String,
}

impl Limit {
    /// Returns the limit of a stream.
    pub(super) fn of_stream() -> Self {
        Self { bytes: MAX_BYTES, why: format!("it is longer than the limit of {MAX_BYTES} bytes") }
    }

    /// Returns the limit of an entry with this many packed bytes, if its archive may unpack to this many more.
    pub(super) fn of_entry(packed: u64, left: u64) -> Self {
        let by_ratio = packed.saturating_mul(MAX_RATIO).max(ANY_RATIO_BYTES);
        let bytes = by_ratio.min(left);
        let why = match bytes {
            bytes if bytes == by_ratio => format!(
                "it unpacks to more than {MAX_RATIO} times its {}, and more than {ANY_RATIO_BYTES} bytes",
                plural(packed, "byte")
            ),
            _ => format!("the archive unpacks to more than the limit of {MAX_ARCHIVE_BYTES} bytes"),
        };
        Self { bytes, why }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Refuses a stream of this length.
    pub(super) fn check(&self, bytes: u64) -> io::Result<()> {
        match bytes > self.bytes {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, self.why.clone())),
            false => Ok(()),
        }
    }
}

/// How many bytes all entries of an archive may unpack to; each byte of an archive may be part of many entries.
pub(super) const MAX_ARCHIVE_BYTES: u64 = 16 << 30;

/// Returns a temporary file with the content of a stream, and its length; the file is deleted when it is closed.
pub(super) fn spool(input: &mut (impl Read + ?Sized), limit: &Limit) -> io::Result<(File, u64)> {
    let mut file = tempfile::tempfile()?;
    let mut input = Read::take(input, limit.bytes + 1);
    let mut bytes = io::copy(&mut input.by_ref().take(JUDGED_AFTER), &mut file)?;
    if bytes == JUDGED_AFTER {
        check_start(&mut file)?;
        bytes += io::copy(&mut input, &mut file)?;
    }
    limit.check(bytes)?;
    file.flush()?;
    file.seek(SeekFrom::Start(0))?;
    Ok((file, bytes))
}

/// Refuses a long stream that does not begin as text with a JSON object; a device may be read by mistake.
fn check_start(file: &mut File) -> io::Result<()> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(JUDGED_BYTES as u64).read_to_end(&mut start)?;
    file.seek(SeekFrom::End(0))?;
    let why = match start.iter().position(|byte| *byte == 0) {
        Some(at) => format!("it is not text: byte {at} is 0"),
        None if !start.contains(&b'{') => {
            format!("it is not JSON: no object begins in its first {JUDGED_BYTES} bytes")
        }
        None => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_limit_of_its_ratio_or_of_its_archive() {
        for (packed, left, bytes, why) in [
            (10, u64::MAX, ANY_RATIO_BYTES, "100 times its 10 bytes"),
            (1 << 20, u64::MAX, 100 << 20, "100 times its 1048576 bytes"),
            (1 << 20, 5, 5, "the archive unpacks to more than"),
        ] {
            let limit = Limit::of_entry(packed, left);
            assert_eq!(limit.bytes, bytes);
            assert!(limit.why.contains(why), "{limit:?}");
        }
    }

    #[test]
    fn a_stream_is_copied_up_to_its_limit() -> io::Result<()> {
        let limit = Limit { bytes: 4, why: "too long".to_owned() };
        let (mut file, bytes) = spool(&mut &b"abcd"[..], &limit)?;
        assert_eq!((io::read_to_string(&mut file)?, bytes), ("abcd".to_owned(), 4));
        let refused = spool(&mut &b"abcde"[..], &limit).map(drop);
        assert_eq!(refused.unwrap_err().to_string(), "too long");
        Ok(())
    }
}
