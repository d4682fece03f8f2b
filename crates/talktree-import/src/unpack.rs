//! Files that are compressed by zstd.

use std::fs::File;
use std::io::{self, Read, SeekFrom, Write};

use ruzstd::decoding::StreamingDecoder;

use crate::formats::ZSTD;
use crate::records::ReadSeek;

/// The longest file that is unpacked: as long as the longest stream that the command reads.
const MAX_BYTES: u64 = 4 << 30;

/// Unpacks a file to a temporary one; `None` if it is not compressed.
pub(crate) fn unpack(source: &mut dyn ReadSeek) -> io::Result<Option<File>> {
    let is_packed = starts_with_frame(source)?;
    source.seek(SeekFrom::Start(0))?;
    if !is_packed {
        return Ok(None);
    }
    let mut file = tempfile::tempfile()?;
    let mut left = MAX_BYTES;
    // One stream may be several frames.
    while starts_with_frame(source)? {
        let frame = StreamingDecoder::new(&mut *source).map_err(io::Error::other)?;
        left -= io::copy(&mut frame.take(left), &mut file)?;
        if left == 0 {
            let why = format!("it unpacks to more than the limit of {MAX_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
    }
    file.flush()?;
    Ok(Some(file))
}

/// Returns whether a frame follows; goes back to where it begins.
fn starts_with_frame(source: &mut dyn ReadSeek) -> io::Result<bool> {
    let mut start = Vec::new();
    let at = source.stream_position()?;
    (&mut *source).take(ZSTD.len() as u64).read_to_end(&mut start)?;
    source.seek(SeekFrom::Start(at))?;
    Ok(start == ZSTD)
}
