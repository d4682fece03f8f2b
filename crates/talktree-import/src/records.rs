//! Splits a file into records.
//!
//! A file is lines of JSON, one JSON array, or JSON objects that each run over several lines. Its first bytes say
//! which. It is read once from front to back, and one record at a time is in memory. The line and position of a record
//! are returned, so that it can be read a second time.
//!
//! Invariant: every byte that is not white space or punctuation between records is in exactly one
//! record or one damage.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use serde::Deserialize;

/// The largest record that is read: 128 MiB, twice the longest message of a store. A longer one is damage. While a record
/// is parsed, its content is in memory up to eight times.
pub(crate) const MAX_RECORD_BYTES: usize = 128 << 20;

/// A file, or an entry of an archive.
pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// One record, as text.
#[derive(Debug)]
pub(crate) struct Record {
    /// The line it begins on, from 1.
    pub(crate) line: u64,
    /// The position of its first byte.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

/// Where a record is, to be read a second time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    offset: u64,
    pub(crate) bytes: usize,
    /// Tells this text from another one that is there later.
    hash: u64,
}

impl Record {
    pub(crate) fn place(&self) -> Place {
        Place { offset: self.offset, bytes: self.text.len(), hash: hash(&self.text) }
    }
}

/// A range of the file that is not a record.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) line: u64,
    pub(crate) why: String,
    /// The bytes of a damaged line or element, as far as they are kept.
    pub(crate) text: Vec<u8>,
}

impl Damage {
    fn without_text(line: u64, why: impl Into<String>) -> Self {
        Self { line, why: why.into(), text: Vec::new() }
    }
}

/// How the records of a file are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One per line.
    Lines,
    /// The elements of one array.
    Array,
    /// Objects one after the other, each on several lines.
    Values,
}

/// A file as a sequence of records.
pub(crate) struct Records<'a> {
    reader: BufReader<&'a mut dyn ReadSeek>,
    shape: Shape,
    /// The position of the next byte.
    at: u64,
    /// The line of the next byte.
    line: u64,
    /// The position of the first record.
    start: u64,
    /// The bytes of the file.
    pub(crate) size: u64,
    is_over: bool,
}

impl<'a> Records<'a> {
    pub(crate) fn open(source: &'a mut dyn ReadSeek) -> io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let reader = BufReader::with_capacity(1 << 18, source);
        let mut records =
            Self { reader, shape: Shape::Lines, at: 0, line: 1, start: 0, size, is_over: false };
        if records.reader.fill_buf()?.starts_with(b"\xEF\xBB\xBF") {
            records.reader.consume(3);
            records.at = 3;
        }
        records.start = records.at;
        records.shape = records.find_shape()?;
        records.rewind()?;
        Ok(records)
    }

    /// Goes back to the first record.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(self.start))?;
        (self.at, self.line, self.is_over) = (self.start, 1, false);
        if self.shape == Shape::Array {
            // After the bracket; only white space is before it.
            while self.byte()?.is_some_and(|byte| byte != b'[') {}
        }
        Ok(())
    }

    /// Returns the next record, or the damage in its place.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<Record, Damage>>> {
        match self.shape {
            Shape::Lines => self.next_line(),
            Shape::Array | Shape::Values => self.next_value(),
        }
    }

    /// Returns the record that was read at this place before; `None` if another text is there now.
    pub(crate) fn record_at(&mut self, line: u64, place: &Place) -> io::Result<Option<Record>> {
        let Place { offset, bytes, hash: expected } = *place;
        // Keeps the buffer if the next record is in it, as it usually is.
        self.reader.seek_relative(offset.wrapping_sub(self.at) as i64)?;
        self.at = offset;
        let mut text = vec![0; bytes];
        if let Err(error) = self.reader.read_exact(&mut text) {
            if error.kind() != io::ErrorKind::UnexpectedEof {
                return Err(error);
            }
            // How much was read is unknown.
            self.at = self.reader.stream_position()?;
            return Ok(None);
        }
        self.at += bytes as u64;
        let text = String::from_utf8(text).ok().filter(|text| hash(text) == expected);
        Ok(text.map(|text| Record { line, offset, text }))
    }

    /// Returns the place of the next record, for [`go_to`](Self::go_to).
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.at, self.line)
    }

    /// Goes to a place in the file.
    pub(crate) fn go_to(&mut self, (at, line): (u64, u64)) -> io::Result<()> {
        // Keeps the buffer if the place is in it.
        self.reader.seek_relative(at.wrapping_sub(self.at) as i64)?;
        (self.at, self.line) = (at, line);
        Ok(())
    }

    /// Returns the first bytes of the file.
    pub(crate) fn start(&mut self) -> io::Result<Vec<u8>> {
        self.reader.seek(SeekFrom::Start(0))?;
        let buffered = self.reader.fill_buf()?;
        Ok(buffered[..buffered.len().min(64)].to_vec())
    }

    fn find_shape(&mut self) -> io::Result<Shape> {
        match self.byte_after_space()? {
            Some(b'[') => return Ok(Shape::Array),
            Some(b'{') => {}
            _ => return Ok(Shape::Lines),
        }
        let mut first = vec![b'{'];
        self.line_into(&mut first)?;
        if serde_json::from_slice::<serde::de::IgnoredAny>(&first).is_ok() {
            return Ok(Shape::Lines);
        }
        // If an object continues on the second line, that line usually begins with a field or the closing brace; a line
        // that is a record never does. Any other beginning may be either, because the first line may be damaged: then
        // the object is tried.
        match self.byte_after_space()? {
            Some(b'"' | b'}') => Ok(Shape::Values),
            Some(_) if self.begins_with_an_object()? => Ok(Shape::Values),
            _ => Ok(Shape::Lines),
        }
    }

    /// Returns whether the file begins with one whole object, over any number of lines.
    ///
    /// Keeps none of it in memory, and ends at the first byte that is not valid there.
    fn begins_with_an_object(&mut self) -> io::Result<bool> {
        self.rewind()?;
        let mut values = serde_json::Deserializer::from_reader(&mut self.reader);
        match serde::de::IgnoredAny::deserialize(&mut values) {
            Err(error) if error.is_io() => Err(error.into()),
            tried => Ok(tried.is_ok()),
        }
    }

    fn byte_after_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let byte = self.byte()?;
            if !byte.is_some_and(|byte| byte.is_ascii_whitespace()) {
                return Ok(byte);
            }
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.reader.fill_buf()?.first().copied())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.reader.consume(1);
            self.at += 1;
            self.line += u64::from(byte == b'\n');
        }
        Ok(byte)
    }

    /// Reads past the end of the line, and returns its length; keeps as much as the limit allows.
    fn line_into(&mut self, text: &mut Vec<u8>) -> io::Result<usize> {
        let mut length = text.len();
        loop {
            let buffered = self.reader.fill_buf()?;
            if buffered.is_empty() {
                return Ok(length);
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let piece = &buffered[..end.unwrap_or(buffered.len())];
            length += piece.len();
            match length <= MAX_RECORD_BYTES {
                true => text.extend_from_slice(piece),
                false => *text = Vec::new(),
            }
            let passed = piece.len() + usize::from(end.is_some());
            self.reader.consume(passed);
            self.at += passed as u64;
            if end.is_some() {
                self.line += 1;
                return Ok(length);
            }
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Result<Record, Damage>>> {
        while self.peek()?.is_some() {
            let (line, offset) = (self.line, self.at);
            let mut bytes = Vec::new();
            let length = self.line_into(&mut bytes)?;
            let record = finish(bytes, length, line, offset);
            if !record.as_ref().is_ok_and(|record| record.text.is_empty()) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn next_value(&mut self) -> io::Result<Option<Result<Record, Damage>>> {
        loop {
            let Some(byte) = self.peek()? else {
                let is_cut = self.shape == Shape::Array && !self.is_over;
                self.is_over = true;
                let why = "the file ends before its array does";
                return Ok(is_cut.then(|| Err(Damage::without_text(self.line, why))));
            };
            match byte {
                b',' if self.shape == Shape::Array && !self.is_over => {}
                b']' if self.shape == Shape::Array && !self.is_over => self.is_over = true,
                byte if byte.is_ascii_whitespace() => {}
                _ if self.is_over => return self.rest().map(Some),
                _ => return self.value().map(Some),
            }
            self.byte()?;
        }
    }

    /// Reads the rest of the file after the array.
    fn rest(&mut self) -> io::Result<Result<Record, Damage>> {
        let line = self.line;
        while self.byte()?.is_some() {}
        Ok(Err(Damage::without_text(line, "something follows the end of the array")))
    }

    fn value(&mut self) -> io::Result<Result<Record, Damage>> {
        let (line, offset) = (self.line, self.at);
        let (mut depth, mut in_string, mut is_escaped) = (0_u64, false, false);
        let mut bytes = Vec::new();
        let mut length = 0_usize;
        while let Some(byte) = self.peek()? {
            let is_scalar_end = matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
            if depth == 0 && !in_string && length > 0 && is_scalar_end {
                return Ok(finish(bytes, length, line, offset));
            }
            self.byte()?;
            length += 1;
            if length <= MAX_RECORD_BYTES {
                bytes.push(byte);
            }
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && !in_string && matches!(byte, b'}' | b']' | b'"') {
                return Ok(finish(bytes, length, line, offset));
            }
        }
        self.is_over = true;
        Ok(Err(Damage::without_text(line, "the file ends inside this record")))
    }
}

/// Returns the record of these bytes, of which no more are kept than a record may have.
fn finish(bytes: Vec<u8>, length: usize, line: u64, offset: u64) -> Result<Record, Damage> {
    if length > MAX_RECORD_BYTES {
        let why = format!("longer than the limit of {MAX_RECORD_BYTES} bytes");
        return Err(Damage::without_text(line, why));
    }
    let text = String::from_utf8(bytes).map_err(|error| Damage {
        line,
        why: format!("not UTF-8 at byte {} of the record", error.utf8_error().valid_up_to()),
        text: error.into_bytes(),
    })?;
    let leading = text.len() - text.trim_start().len();
    let text = match text.trim() {
        trimmed if trimmed.len() == text.len() => text,
        trimmed => trimmed.to_owned(),
    };
    Ok(Record { line, offset: offset + leading as u64, text })
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// The records of a file as `line:text`, damage as `line!`.
    #[track_caller]
    fn cut(file: &str) -> Vec<String> {
        let mut source = Cursor::new(file.as_bytes().to_vec());
        let mut records = Records::open(&mut source).unwrap();
        let (mut cut, mut places) = (Vec::new(), Vec::new());
        while let Some(record) = records.next().unwrap() {
            cut.push(match record {
                Ok(record) => {
                    places.push((record.place(), record.text.clone()));
                    format!("{}:{}", record.line, record.text)
                }
                Err(damage) => format!("{}!", damage.line),
            });
        }
        for (place, text) in places.iter().rev() {
            assert_eq!(records.record_at(1, place).unwrap().unwrap().text, *text);
            let other = Place { hash: place.hash ^ 1, ..*place };
            assert!(records.record_at(1, &other).unwrap().is_none());
        }
        cut
    }

    #[test]
    fn files_are_cut_into_records() {
        for (file, records) in [
            ("", vec![]),
            (" \n\n", vec![]),
            ("{\"a\":1}\n\n{\"b\":2}", vec!["1:{\"a\":1}", "3:{\"b\":2}"]),
            ("\u{FEFF}{}\r\n {} \r\n", vec!["1:{}", "2:{}"]),
            ("{\"a\":\n{\"b\":2}\n", vec!["1:{\"a\":", "2:{\"b\":2}"]),
            ("[{\"a\":\"]\\\"\"},\n {}\n]\n", vec!["1:{\"a\":\"]\\\"\"}", "2:{}"]),
            ("[1, \"x\",[2]]", vec!["1:1", "1:\"x\"", "1:[2]"]),
            ("[{},\n{\"a\":", vec!["1:{}", "2!"]),
            ("[{}", vec!["1:{}", "1!"]),
            ("[]x", vec!["1!"]),
            ("[]", vec![]),
            ("{\n\"a\": 1\n}\n{\n}\n", vec!["1:{\n\"a\": 1\n}", "4:{\n}"]),
            ("{\"a\":[\n{},\n{}]}\n", vec!["1:{\"a\":[\n{},\n{}]}"]),
            ("{\"a\":[\n{}\n{}\n", vec!["1:{\"a\":[", "2:{}", "3:{}"]),
            ("{\"a\":\n[{}]}", vec!["1:{\"a\":\n[{}]}"]),
            ("{\"a\": {\"b\":[{},\n{}, 1\n]}}", vec!["1:{\"a\": {\"b\":[{},\n{}, 1\n]}}"]),
            ("{\"a\": [{},\n{}]}\n{}\n", vec!["1:{\"a\": [{},\n{}]}", "3:{}"]),
            ("{\"a\":\n{\"b\":2}\n{}\n", vec!["1:{\"a\":", "2:{\"b\":2}", "3:{}"]),
            ("{\"a\" 1}\n{}\n", vec!["1:{\"a\" 1}", "2:{}"]),
            ("nonsense", vec!["1:nonsense"]),
        ] {
            assert_eq!(cut(file), records, "{file:?}");
        }
    }
}
