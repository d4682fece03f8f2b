//! The lines of a file with their numbers; the reader can go back to an earlier line.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// The longest line that is read: 512 MiB. A longer one is damage.
const MAX_LINE_BYTES: u64 = 512 << 20;

/// The size of the read buffer.
pub(super) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// One line that is not blank.
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    /// The text, or why it cannot be read.
    pub(super) text: Result<String, String>,
}

/// A place between two lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) offset: u64,
    line: u64,
}

pub(super) struct Lines<'a> {
    reader: BufReader<&'a mut dyn ReadSeek>,
    place: Place,
    size: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn open(source: &'a mut dyn ReadSeek) -> io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let reader = BufReader::with_capacity(1 << 18, source);
        Ok(Self { reader, place: Place { offset: 0, line: 0 }, size })
    }

    /// Returns the bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn go_back(&mut self, place: Place) -> io::Result<()> {
        // Keeps the buffer if the position is in it, as it usually is.
        self.reader.seek_relative(place.offset.wrapping_sub(self.place.offset) as i64)?;
        self.place = place;
        Ok(())
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.reader).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            let is_first = self.place.offset == 0;
            self.place.offset += read as u64;
            self.place.line += 1;
            let number = self.place.line;
            if read as u64 > MAX_LINE_BYTES {
                self.skip_rest_of_line()?;
                let why = format!("longer than the limit of {MAX_LINE_BYTES} bytes");
                return Ok(Some(Line { number, text: Err(why) }));
            }
            let start = if is_first && bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
            let trimmed = bytes[start..].trim_ascii();
            if trimmed.is_empty() {
                continue;
            }
            let text = std::str::from_utf8(trimmed).map(str::to_owned);
            let not_utf8 = |error: std::str::Utf8Error| {
                format!("not UTF-8 at byte {} of the record", error.valid_up_to())
            };
            return Ok(Some(Line { number, text: text.map_err(not_utf8) }));
        }
    }

    fn skip_rest_of_line(&mut self) -> io::Result<()> {
        loop {
            let buffered = self.reader.fill_buf()?;
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let passed = end.map_or(buffered.len(), |end| end + 1);
            self.reader.consume(passed);
            self.place.offset += passed as u64;
            if end.is_some() || passed == 0 {
                return Ok(());
            }
        }
    }
}
