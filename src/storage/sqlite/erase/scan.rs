//! Looks for erased texts in every byte of the files. A sequence that is found does not count if a stored row contains
//! it: it belongs to a copy that was kept, or to another message with the same words. Nor does it count if all but a few of its
//! bytes are the beginning or the end of a stored text: what lies before and after a text in a row is numbers, which may look like a letter. Nor does it count if it crosses
//! the border of a page: a long text continues on overflow pages, and each begins with the number of the next one, so no text
//! runs across a border.
//!
//! The rows are read after the bytes. Others may delete in between what the bytes had, and another erasure deletes rows before
//! it overwrites their bytes. So a proof does not count what it finds while the store changes or another erasure is not
//! complete: it looks again.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::super::connection::{Database, busy_ms};
use super::super::error::BackendResult;
use super::super::file::{self, read_at};
use super::note;
use super::texts::{Found, Hashes, Itself, Passed, Texts};
use crate::erasure::{ErasureProof, ErasureProver};
use crate::error::{Error, Result};

/// How long a proof waits before it looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// How many bytes are read at once.
const CHUNK: usize = 1 << 20;
/// Up to one byte of so many may be foreign at the edge of a text.
const FOREIGN: usize = 4;
/// How many places a proof lists.
const MAX_PLACES: usize = 100;

/// The fewest bytes before any text of a page: an overflow page begins with the four bytes of the number of the next one, and
/// other pages begin with a longer header.
const MIN_PAGE_HEADER: u64 = 4;
/// The bytes of a write-ahead log before its first frame, and of a frame before its page.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// How often a sequence was found, its length, and where it was first: the number of the file and the offset.
#[derive(Debug, Clone, Copy)]
struct Place {
    count: u64,
    length: usize,
    first: (usize, u64),
}

type Places = HashMap<u64, Place, BuildHasherDefault<Itself>>;

/// Looks for the texts of an erasure in the files of its store.
pub(super) struct Prover {
    pub(super) database: Arc<Database>,
    pub(super) texts: Texts,
    /// Whether the texts are not all that were named.
    pub(super) is_partial: bool,
}

impl ErasureProver for Prover {
    fn scan(&self) -> Result<ErasureProof> {
        if self.is_partial {
            return Err(Error::NotProved);
        }
        let database = &self.database;
        let watch = database.watch();
        let public = |error| database.public_error(error, busy_ms(&database.config));
        // One connection, which writes nothing: its `data_version` counts the commits of all others.
        let reader = database.open_reader().map_err(public)?;
        let version = || -> Result<i64> {
            let version = reader.pragma_query_value(None, "data_version", |row| row.get(0));
            version.map_err(|error| public(error.into()))
        };
        let until = Instant::now() + database.config.busy_timeout;
        loop {
            watch.check()?;
            let is_last = Instant::now() >= until;
            let before = version()?;
            let proof = database.scan_for(&self.texts)?;
            if proof.found == 0 || is_last {
                return Ok(proof);
            }
            // Under the lock, nothing of a write that has not committed is in the log.
            let is_alone = database.write(|conn| Ok(note::all(conn)?.is_empty()))?;
            if is_alone && version()? == before {
                return Ok(proof);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Database {
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
        let mut places = Places::default();
        let mut buffer = vec![0; CHUNK];
        let page_size = self.read(page_size)?;
        for (number, (path, opened)) in files.iter().enumerate() {
            let pages = Pages::of(path, store.path(), page_size);
            let mut passed = Passed::default();
            let mut offset = 0;
            loop {
                watch.check()?;
                let count = read_at(opened, &mut buffer, offset)
                    .map_err(|source| file::io(path, source))?;
                if count == 0 {
                    break;
                }
                passed = texts.find(passed, &buffer[..count], |Found { hash, offset, length }| {
                    if pages.can_hold(offset, length as u64) {
                        let place = Place { count: 0, length, first: (number, offset) };
                        places.entry(hash).or_insert(place).count += 1;
                    }
                });
                offset += count as u64;
            }
            proof.bytes += offset;
        }
        if !places.is_empty() {
            let before = places.len();
            let stored = self.read_long(|conn| stored(conn, texts))?;
            places.retain(|hash, _| !stored.contains(hash));
            let mut edges = Edges::default();
            for (hash, place) in &places {
                let (number, offset) = place.first;
                let (path, opened) = &files[number];
                let mut sequence = vec![0; place.length];
                read_at(opened, &mut sequence, offset).map_err(|source| file::io(path, source))?;
                edges.add(*hash, &sequence);
            }
            let stored = self.read_long(|conn| edges.in_rows(conn))?;
            places.retain(|hash, _| !stored.contains(hash));
            proof.kept = (before - places.len()) as u64;
        }
        proof.found = places.values().map(|place| place.count).sum();
        let mut firsts: Vec<_> = places.values().map(|place| place.first).collect();
        firsts.sort_unstable();
        firsts.truncate(MAX_PLACES);
        proof.occurrences =
            firsts.into_iter().map(|(number, offset)| (files[number].0.clone(), offset)).collect();
        Ok(proof)
    }
}

fn page_size(conn: &Connection) -> BackendResult<u64> {
    Ok(conn.query_row("PRAGMA page_size", [], |row| row.get(0))?)
}

/// How a file is divided into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    Database { size: u64 },
    Log { size: u64 },
    Other,
}

impl Pages {
    fn of(path: &Path, database: &Path, size: u64) -> Self {
        let is_log = || path.as_os_str().as_encoded_bytes().ends_with(b"-wal");
        match path == database {
            true => Self::Database { size },
            false if is_log() => Self::Log { size },
            false => Self::Other,
        }
    }

    /// Returns whether a text can be at this place.
    fn can_hold(self, offset: u64, length: u64) -> bool {
        let (before, header, size) = match self {
            Self::Database { size } => (0, 0, size),
            Self::Log { size } => (LOG_HEADER, FRAME_HEADER, size),
            Self::Other => return true,
        };
        offset.checked_sub(before).is_some_and(|offset| {
            let at = offset % (header + size);
            at >= header + MIN_PAGE_HEADER && at + length <= header + size
        })
    }
}

/// Returns which sequences the rows of all tables contain, and the schema.
fn stored(conn: &Connection, texts: &Texts) -> BackendResult<Hashes> {
    let mut found = Hashes::default();
    each_text(conn, |text| {
        texts.find(Passed::default(), text, |it| _ = found.insert(it.hash));
        let text = String::from_utf8_lossy(text);
        // As the search index has it.
        let lower = text.to_lowercase();
        if lower != text {
            texts.find(Passed::default(), lower.as_bytes(), |it| _ = found.insert(it.hash));
        }
    })?;
    Ok(found)
}

/// Sequences that were found, without the bytes at their beginning or end that may belong to no text.
#[derive(Debug, Default)]
struct Edges {
    beginnings: HashMap<Vec<u8>, Vec<u64>>,
    ends: HashMap<Vec<u8>, Vec<u64>>,
    lengths: BTreeSet<usize>,
}

impl Edges {
    fn add(&mut self, hash: u64, sequence: &[u8]) {
        for foreign in 1..=sequence.len() / FOREIGN {
            let length = sequence.len() - foreign;
            self.beginnings.entry(sequence[foreign..].to_vec()).or_default().push(hash);
            self.ends.entry(sequence[..length].to_vec()).or_default().push(hash);
            self.lengths.insert(length);
        }
    }

    /// Returns which sequences are at the beginning or the end of a stored text.
    fn in_rows(&self, conn: &Connection) -> BackendResult<Hashes> {
        let mut found = Hashes::default();
        if self.lengths.is_empty() {
            return Ok(found);
        }
        each_text(conn, |text| {
            for length in self.lengths.iter().take_while(|length| **length <= text.len()) {
                let beginning = self.beginnings.get(&text[..*length]);
                let end = self.ends.get(&text[text.len() - length..]);
                found.extend(beginning.into_iter().chain(end).flatten());
            }
        })?;
        Ok(found)
    }
}

/// Calls `look` with every text in the rows of all tables, and in the schema.
fn each_text(conn: &Connection, mut look: impl FnMut(&[u8])) -> BackendResult<()> {
    let mut tables = conn.prepare(TABLES)?;
    let tables = tables.query_map([], |row| row.get::<_, String>(0))?;
    for table in tables {
        let name = table?.replace('"', "\"\"");
        let mut statement = conn.prepare(&format!("SELECT * FROM \"{name}\""))?;
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
        assert!(database.empty_log()?);
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

    #[test]
    fn a_text_is_within_one_page() {
        let (path, log) = (Path::new("bot.db"), Path::new("bot.db-wal"));
        let pages = Pages::of(path, path, 4_096);
        for (offset, expected) in [(0, false), (3, false), (4, true), (4_080, true), (4_081, false)]
        {
            assert_eq!(pages.can_hold(offset, 16), expected, "{offset}");
            assert_eq!(pages.can_hold(offset + 3 * 4_096, 16), expected, "{offset}");
            let of_log = offset + LOG_HEADER + FRAME_HEADER + 2 * (FRAME_HEADER + 4_096);
            assert_eq!(Pages::of(log, path, 4_096).can_hold(of_log, 16), expected, "{offset}");
        }
        assert!(!Pages::of(log, path, 4_096).can_hold(8, 16));
        assert!(Pages::of(Path::new("bot.db-shm"), path, 4_096).can_hold(0, 16));
    }
}
