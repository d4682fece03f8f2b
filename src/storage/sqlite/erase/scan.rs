//! Looks for erased texts in every byte of the files. A sequence that is found does not count if a stored row contains
//! it: it belongs to a copy that was kept, or to another message with the same words. Nor does it count if all but a few of its
//! bytes are the beginning or the end of a stored text: what lies before and after a text in a row is numbers, which may look like a letter. Nor does it count if it crosses
//! the number at the beginning of a page: a long text continues on overflow pages, and each begins with the number of the next one.
//!
//! The rows are read after the bytes. Others may delete in between what the bytes had, and another erasure deletes rows before
//! it overwrites their bytes. So a proof does not count what it finds while the store changes or another erasure is not
//! complete: it looks again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;

use super::super::connection::{Database, busy_ms};
use super::super::file::{self, read_at};
use super::texts::{Passed, Sequence, Texts};
use crate::erasure::ErasureProof;
use crate::error::{Error, Result};
use crate::sql::{BackendResult, Connection};

/// How long a proof waits before it looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// How many bytes are read at once.
const CHUNK: usize = 1 << 20;
/// Up to one byte of so many may be foreign at the edge of a text.
const FOREIGN: usize = 4;
/// How many places a proof lists.
const MAX_PLACES: usize = 100;

/// The bytes of a write-ahead log before its first frame, and of a frame before its page.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// The fewest bytes before any text of a page: an overflow page begins with the number of the next one.
const PAGE_HEADER: u64 = 4;

/// How often each sequence was found, and where it was first: the number of the file and the offset.
type Places = BTreeMap<Sequence, (u64, (usize, u64))>;

impl Database {
    /// Looks for the texts of an erasure in the files of its store, until nothing is found or nobody else writes. If others write
    /// until the busy timeout is over, what is found may be theirs: then the store is busy.
    pub(super) fn prove(&self, texts: &Texts) -> Result<ErasureProof> {
        let watch = self.watch();
        let public = |error| self.public_error(error, busy_ms(&self.config));
        // One connection, which writes nothing: its `data_version` counts the commits of all others.
        let reader = self.open_reader().map_err(public)?;
        let version = || -> Result<i64> {
            let version = reader.pragma_query_value(None, "data_version", |row| row.get(0));
            version.map_err(|error| public(error.into()))
        };
        let until = Instant::now() + self.config.busy_timeout;
        loop {
            watch.check()?;
            let is_last = Instant::now() >= until;
            let before = version()?;
            let proof = self.scan_for(texts)?;
            if proof.found == 0 {
                return Ok(proof);
            }
            // Under the lock, nothing of a write that has not committed is in the log.
            let is_alone = self.write(|conn| Ok(!super::has_unfinished(conn)?))?;
            match version()? == before {
                true if is_alone || is_last => return Ok(proof),
                false if is_last => return Err(Error::Busy { waited_ms: busy_ms(&self.config) }),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Looks for texts in the database, its log and its lock file.
    pub(super) fn scan_for(&self, texts: &Texts) -> Result<ErasureProof> {
        let mut proof = ErasureProof {
            texts: texts.count,
            too_short: texts.too_short,
            sequences: texts.sequences(),
            is_sample: texts.is_sample(),
            ..ErasureProof::default()
        };
        let Some(store) = &self.file else { return Ok(proof) };
        let watch = self.watch();
        let files = store.raw_files().map_err(|source| file::io(store.path(), source))?;
        let mut places = Places::new();
        let mut buffer = vec![0; CHUNK];
        let page_size = self.read(|conn| conn.one::<u64>("PRAGMA page_size", ()))?;
        for (number, (path, opened)) in files.iter().enumerate() {
            let is_log = path.as_os_str().as_encoded_bytes().ends_with(b"-wal");
            let (mut passed, mut offset) = (Passed::default(), 0);
            let io = |source| file::io(path, source);
            // What is appended meanwhile was not erased before.
            let end = opened.metadata().map_err(io)?.len();
            while offset < end {
                watch.check()?;
                let count = read_at(opened, &mut buffer, offset).map_err(io)?;
                if count == 0 {
                    break;
                }
                passed = texts.find(passed, &buffer[..count], |sequence, at| {
                    if is_in_page(at, page_size, is_log) {
                        places.entry(sequence).or_insert((0, (number, at))).0 += 1;
                    }
                });
                offset += count as u64;
            }
            proof.bytes += offset;
        }
        if !places.is_empty() {
            let all = places.len();
            self.read_long(|conn| forget_stored(conn, texts, &mut places))?;
            proof.kept = (all - places.len()) as u64;
        }
        proof.found = places.values().map(|(count, _)| count).sum();
        let mut firsts: Vec<_> = places.into_values().map(|(_, first)| first).collect();
        firsts.sort_unstable();
        firsts.truncate(MAX_PLACES);
        proof.occurrences =
            firsts.into_iter().map(|(number, offset)| (files[number].0.clone(), offset)).collect();
        Ok(proof)
    }
}

/// Returns whether an offset is in the part of a page that may have text.
fn is_in_page(offset: u64, size: u64, is_log: bool) -> bool {
    match is_log {
        true => offset
            .checked_sub(LOG_HEADER)
            .is_some_and(|offset| offset % (FRAME_HEADER + size) >= FRAME_HEADER + PAGE_HEADER),
        false => offset % size >= PAGE_HEADER,
    }
}

/// Removes the sequences that stored texts contain, or of which all but a few bytes are the beginning or the end of one.
fn forget_stored(conn: &Connection, texts: &Texts, places: &mut Places) -> BackendResult<()> {
    each_text(conn, |text| {
        texts.find(Passed::default(), text, |sequence, _| _ = places.remove(&sequence));
        let text = String::from_utf8_lossy(text);
        // As the search index has it.
        let lower = text.to_lowercase();
        if lower != text {
            let lower = lower.as_bytes();
            texts.find(Passed::default(), lower, |sequence, _| _ = places.remove(&sequence));
        }
    })?;
    let mut edges: [HashMap<Sequence, Vec<Sequence>>; 2] = Default::default();
    for sequence in places.keys() {
        for length in sequence.length - sequence.length / FOREIGN..sequence.length {
            edges[0].entry(sequence.last(length)).or_default().push(*sequence);
            edges[1].entry(sequence.first(length)).or_default().push(*sequence);
        }
    }
    let lengths: BTreeSet<usize> = edges[0].keys().map(|edge| edge.length).collect();
    if lengths.is_empty() {
        return Ok(());
    }
    each_text(conn, |text| {
        for length in lengths.iter().take_while(|length| **length <= text.len()) {
            let beginning = edges[0].get(&Sequence::of(&text[..*length]));
            let end = edges[1].get(&Sequence::of(&text[text.len() - length..]));
            for sequence in beginning.into_iter().chain(end).flatten() {
                places.remove(sequence);
            }
        }
    })
}

/// Calls `look` with every text in the rows of all tables, and in the schema.
fn each_text(conn: &Connection, mut look: impl FnMut(&[u8])) -> BackendResult<()> {
    for table in conn.rows::<String>(TABLES, ())? {
        let name = table.replace('"', "\"\"");
        let mut statement = conn.sqlite()?.prepare(&format!("SELECT * FROM \"{name}\""))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for at in 0..columns {
                if let ValueRef::Text(text) = row.get_ref(at)? {
                    look(text);
                }
            }
        }
    }
    Ok(())
}

/// The tables of the indexes and the terms hold words of stored texts in a form of their own. Their settings are names.
const TABLES: &str = "SELECT 'sqlite_schema'
 UNION ALL
SELECT name
  FROM sqlite_schema
 WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
   AND name NOT IN ('search_data', 'search_idx', 'search_docsize',
                    'context_search_data', 'context_search_idx', 'context_search_docsize',
                    'term')";

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::super::connection::Config;
    use super::super::super::session::SqliteSession;
    use super::super::texts::LENGTH;
    use super::*;
    use crate::id::SessionId;
    use crate::message::Message;
    use crate::view::{ExpectedHead, Parent};

    /// The last byte of the number before the continuation of a long stored text looked like a letter of an erased text with
    /// nearly the same words, so a proof reported that the erased text was left.
    #[test]
    fn the_number_before_the_continuation_of_a_text_is_no_letter_of_it() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bot.db");
        let database = Arc::new(Database::open(&path, Config::default())?);
        let chat = SqliteSession::new(Arc::clone(&database), SessionId::from("s"));
        let words: Vec<_> = (0..100_000).map(|n| format!("word{n}")).collect();
        chat.append(&Parent::Head, &ExpectedHead::Any, &[Message::user(words.join(" "))], None)?;
        assert!(database.empty_log(&database.watch())?);
        let bytes = std::fs::read(&path).expect("a file");
        let is_text = |at: &usize| {
            bytes[at - 1] == 0
                && bytes[*at..at + LENGTH].iter().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let at = (4_096 + 3..bytes.len() - LENGTH).step_by(4_096).find(is_text).expect("a page");
        let mut texts = Texts::default();
        texts.add_name(&String::from_utf8_lossy(&bytes[at..at + LENGTH]));
        let proof = database.scan_for(&texts)?;
        assert_eq!((proof.found, proof.sequences), (0, 1));
        Ok(())
    }

    /// A proof in a store that others wrote to all the time took their words for what was erased.
    #[test]
    fn what_is_found_while_others_write_is_no_proof() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { busy_timeout: Duration::from_millis(50), ..Config::default() };
        let database = Arc::new(Database::open(&folder.path().join("bot.db"), config)?);
        let chat = SqliteSession::new(Arc::clone(&database), SessionId::from("s"));
        let text = "The vault opens with 7-1-9-4.";
        chat.append(&Parent::Head, &ExpectedHead::Any, &[Message::user(text)], None)?;
        // Keeps the log.
        let _reader = database.snapshot()?;
        database.remove(&"s".into())?;
        let mut texts = Texts::default();
        texts.add_name(text);
        let is_over = AtomicBool::new(false);
        let proof = std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = SqliteSession::new(Arc::clone(&database), SessionId::from("other"));
                while !is_over.load(Ordering::Relaxed) {
                    let message = Message::user("Something else.");
                    other.append(&Parent::Head, &ExpectedHead::Any, &[message], None)?;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok::<(), Error>(())
            });
            let proof = database.prove(&texts);
            is_over.store(true, Ordering::Relaxed);
            proof
        });
        assert!(matches!(proof, Err(Error::Busy { .. })), "{proof:?}");
        assert!(database.prove(&texts)?.found > 0);
        Ok(())
    }

    #[test]
    fn a_text_is_after_the_header_of_its_page() {
        for (offset, expected) in [(0, false), (3, false), (4, true), (4_095, true)] {
            assert_eq!(is_in_page(offset, 4_096, false), expected, "{offset}");
            assert_eq!(is_in_page(offset + 3 * 4_096, 4_096, false), expected, "{offset}");
            let of_log = offset + LOG_HEADER + FRAME_HEADER + 2 * (FRAME_HEADER + 4_096);
            assert_eq!(is_in_page(of_log, 4_096, true), expected, "{offset}");
        }
        assert!(!is_in_page(8, 4_096, true));
    }
}
