//! Files that are rewritten while they are imported.
//!
//! A conversation of many records is read twice: once for the ids, once for the texts. If a file was rotated or
//! rewritten in between, the texts at the old places were stored under the old ids, without an error: up to 49 806 of
//! 60 000 messages had the text of another.

use std::fmt::Write as _;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use talktree::{Error, Result, Store};
use talktree_import::ImportReport;
use talktree_import::{ImportOptions, import_reader};

const COUNT: usize = 20_000;

/// A file whose content is replaced when it was read to its end and then so many bytes again.
struct Rewritten {
    before: Cursor<Vec<u8>>,
    after: Vec<u8>,
    has_ended: bool,
    left: usize,
}

impl Read for Rewritten {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.after.is_empty() {
            *self.before.get_mut() = std::mem::take(&mut self.after);
        }
        let read = self.before.read(buffer)?;
        self.has_ended |= read == 0;
        self.left = self.left.saturating_sub(if self.has_ended { read } else { 0 });
        Ok(read)
    }
}

impl Seek for Rewritten {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.before.seek(to)
    }
}

/// A Pi file of these messages; each says its own id.
fn log(numbers: impl Iterator<Item = usize>) -> Vec<u8> {
    let mut file = String::from(r#"{"type":"session","version":3,"id":"s"}"#);
    for n in numbers {
        let line = r#"{"type":"message","message":{"role":"user","content":"#;
        write!(file, "\n{line}\"m{n:06}\"}},\"id\":\"m{n:06}\",\"parentId\":null}}").unwrap();
    }
    file.into_bytes()
}

/// Imports a file that becomes another while its texts are stored, when it is read a second time.
fn import(store: &Store, after: Vec<u8>, options: &ImportOptions) -> Result<ImportReport> {
    let before = Cursor::new(log(0..COUNT));
    let file = Rewritten { before, after, has_ended: false, left: 1 << 18 };
    import_reader(store, "f", file, options, |_| {})
}

#[test]
fn a_text_is_stored_under_its_own_id_or_not_at_all() -> Result<()> {
    for (name, after) in [
        ("rotated", log(COUNT / 3..COUNT)),
        ("rewritten", log((0..COUNT).rev())),
        ("cut", log(0..COUNT / 2)),
        ("emptied", vec![b'\n']),
        ("no text", vec![0xFF; log(0..COUNT).len()]),
    ] {
        let store = Store::open_in_memory()?;
        let report = import(&store, after, &ImportOptions::default())?;
        let mut wrong = 0;
        for message in store.session("s")?.all_messages() {
            let message = message?;
            wrong += usize::from(message.text() != message.id.as_str());
        }
        assert_eq!(wrong, 0, "{name}");
        assert_eq!(report.records, report.kept + report.converted + report.dropped, "{name}");
        assert!(report.kept >= 1_000 && report.dropped > 0, "{name}: {} kept", report.kept);
        assert_eq!(store.stats()?.messages, report.kept, "{name}");
        let why = &report.first_fault().expect("a fault").why;
        assert!(why.contains("changed while it was imported"), "{name}: {why}");

        // What is missing comes with the next import of the whole file.
        let whole = Cursor::new(log(0..COUNT));
        let again = import_reader(&store, "f", whole, &ImportOptions::default(), |_| {})?;
        assert_eq!((again.known, again.added), (report.kept, report.dropped), "{name}");
    }
    Ok(())
}

#[test]
fn a_strict_import_says_that_the_file_was_rewritten() -> Result<()> {
    let store = Store::open_in_memory()?;
    let options = ImportOptions { is_strict: true, ..ImportOptions::default() };
    let refused = import(&store, log((0..COUNT).rev()), &options);
    let Err(Error::Import { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("changed while it was imported"), "{why}");
    Ok(())
}
