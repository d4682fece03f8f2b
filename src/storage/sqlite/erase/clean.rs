//! Overwrites what remains of deleted rows: in the search indexes, in the write-ahead log, in the pages of the file.
//!
//! `secure_delete` overwrites rows and pages when they are deleted. An entry of a search index stays in its segment until
//! that is merged, so all segments are merged into one, a part in each transaction. FTS5's option `secure-delete` is not
//! used: it makes a delete twenty times as slow, leaves the words that pages of the index begin with, and no SQLite
//! before 3.42 could read the index.
//!
//! Then it looks for erased texts in every byte of the files. A sequence that is found does not count if a stored row contains
//! it: it belongs to a copy that was kept, or to another message with the same words. Nor does it count if all but a few of its bytes are the beginning or the end of a stored
//! text: what lies before and after a text in a row is numbers, which may look like a letter. Nor does it count if it crosses
//! the border of a page: a long text continues on overflow pages, and each begins with the number of the next one, so no text
//! runs across a border.
//!
//! The rows are read after the bytes. Others may delete in between what the bytes had, and another erasure deletes rows before
//! it overwrites their bytes. So a proof does not count what it finds while the store changes or another erasure is not
//! complete: it looks again.
//!
//! A text is stored as the hashes of all its sequences of [`LENGTH`] bytes, a shorter one as the hash of the whole. Its
//! words are stored too, because the search index contains words. The memory is bounded: if there are too many sequences,
//! only those are kept whose hash begins with enough zeros. That is an even sample of all texts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::super::connection::{Database, busy_ms};
use super::super::error::BackendResult;
use super::super::file::{self, read_at};
use super::super::index::{Index, sweep};
use super::super::transaction::run;
use super::note;
use crate::erasure::{ErasureProof, ErasureProver};
use crate::error::{Error, Result};

/// How many pages of an index one transaction merges: about ten milliseconds.
const PAGES_PER_STEP: i64 = 1_000;
/// How long one attempt to empty the log waits for readers. Writers wait, too.
const ATTEMPT: Duration = Duration::from_millis(50);
/// How long writers can work between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

impl Database {
    /// Merges the segments of both search indexes, so that no removed entry is left in them.
    ///
    /// A merge of all segments is begun and goes on in steps. Others may write segments meanwhile; those have no removed entry.
    pub(super) fn merge_indexes(&self) -> Result<()> {
        for index in [Index::Messages, Index::Context] {
            let mut begins = true;
            while self.write(|conn| index.merge(conn, PAGES_PER_STEP, begins))? {
                begins = false;
            }
        }
        Ok(())
    }

    /// Removes the terms that no message has any more.
    pub(super) fn sweep_terms(&self) -> Result<()> {
        let watch = self.watch();
        let mut after = Some(String::new());
        while let Some(term) = after {
            watch.check()?;
            after = self.write(|conn| sweep(conn, &term))?;
        }
        Ok(())
    }

    /// Empties the write-ahead log; `false` if a reader used it until the busy timeout was over.
    pub(super) fn empty_log(&self) -> Result<bool> {
        if self.path().is_none() {
            return Ok(true);
        }
        let until = Instant::now() + self.config.busy_timeout;
        loop {
            let usual = self.config.busy_timeout;
            let is_empty = self.with_writer(|conn| {
                conn.busy_timeout(ATTEMPT.min(usual))?;
                let answer = conn
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
                conn.busy_timeout(usual)?;
                Ok(answer? == 0)
            });
            match is_empty {
                Ok(false) | Err(crate::error::Error::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Ok(is_empty) => return Ok(is_empty),
                Err(crate::error::Error::Busy { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Rewrites the file with its present rows only.
    pub(super) fn rewrite(&self) -> Result<()> {
        if self.path().is_none() {
            return Ok(());
        }
        self.with_writer(vacuum)
    }
}

/// The new file is first written to a temporary one, which would be as large in memory.
fn vacuum(conn: &Connection) -> BackendResult<()> {
    conn.pragma_update(None, "temp_store", "FILE")?;
    let vacuumed = run(conn, "VACUUM");
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    vacuumed
}

/// How long a proof waits before it looks again.
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
type Hashes = HashSet<u64, BuildHasherDefault<Itself>>;

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

/// How many bytes a sequence has.
pub(super) const LENGTH: usize = 16;
/// Shorter texts are not looked for: they occur by chance.
const SHORTEST: usize = 8;
/// How many hashes of a length are kept: 8 MiB of memory.
const MAX_HASHES: usize = 1 << 19;

/// A hasher for values that are hashes already.
#[derive(Debug, Default, Clone)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The hashes of the sequences of one length.
#[derive(Debug, Default, Clone)]
struct OfLength {
    hashes: Hashes,
    /// A hash is kept if these bits are zero.
    mask: u64,
}

impl OfLength {
    fn insert(&mut self, hash: u64) {
        if hash & self.mask != 0 {
            return;
        }
        self.hashes.insert(hash);
        while self.hashes.len() > MAX_HASHES {
            // The highest bits: a table finds a hash by the lowest ones.
            self.mask = self.mask >> 1 | 1 << 63;
            let mask = self.mask;
            self.hashes.retain(|hash| hash & mask == 0);
        }
    }
}

/// What to look for.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    /// Random, so that no text can be made whose sequences have the hashes of others.
    keys: [u64; 2],
    by_length: BTreeMap<usize, OfLength>,
    pub(super) count: u64,
    pub(super) too_short: u64,
}

impl Default for Texts {
    fn default() -> Self {
        let random = RandomState::new();
        let keys = [random.hash_one(1), random.hash_one(2)];
        Self { keys, by_length: BTreeMap::new(), count: 0, too_short: 0 }
    }
}

impl Texts {
    /// Adds a text with its words.
    pub(super) fn add(&mut self, text: &str) {
        self.add_name(text);
        let is_in_word = |c: char| c.is_alphanumeric();
        for word in text.split(|c| !is_in_word(c)).filter(|word| word.len() >= SHORTEST) {
            self.add_sequences(word.to_lowercase().as_bytes());
        }
    }

    /// Adds a text that is in no search index.
    pub(super) fn add_name(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.count += 1;
        match text.len() >= SHORTEST {
            true => self.add_sequences(text.as_bytes()),
            false => self.too_short += 1,
        }
    }

    /// Adds an id. Ids that were made in one millisecond begin in the same way, so only its end is looked for.
    pub(super) fn add_id(&mut self, id: &str) {
        let bytes = id.as_bytes();
        self.count += 1;
        match bytes.len() >= SHORTEST {
            true => self.add_sequences(&bytes[bytes.len().saturating_sub(LENGTH)..]),
            false => self.too_short += 1,
        }
    }

    fn add_sequences(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(LENGTH);
        if length < SHORTEST {
            return;
        }
        for sequence in bytes.windows(length) {
            // Sequences of one repeated byte, such as blanks, are in every file.
            if sequence.iter().any(|byte| *byte != sequence[0]) {
                let value =
                    sequence.iter().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
                let hash = self.hash(value, length);
                self.by_length.entry(length).or_default().insert(hash);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_length.is_empty()
    }

    pub(super) fn sequences(&self) -> u64 {
        self.by_length.values().map(|of| of.hashes.len() as u64).sum()
    }

    pub(super) fn is_sample(&self) -> bool {
        self.by_length.values().any(|of| of.mask != 0)
    }

    fn hash(&self, value: u128, length: usize) -> u64 {
        let (low, high) = (value as u64, (value >> 64) as u64);
        let product =
            u128::from(low ^ self.keys[0]) * u128::from(high ^ self.keys[1] ^ length as u64);
        (product as u64) ^ ((product >> 64) as u64)
    }

    /// Calls `found` for each known sequence, and returns what the next bytes of the same text continue.
    pub(super) fn find(
        &self,
        mut passed: Passed,
        bytes: &[u8],
        mut found: impl FnMut(Found),
    ) -> Passed {
        let lengths: Vec<(&usize, &OfLength)> = self.by_length.iter().collect();
        for byte in bytes {
            passed.value = passed.value << 8 | u128::from(*byte);
            passed.count += 1;
            for (length, of) in &lengths {
                if passed.count < **length as u64 {
                    break;
                }
                let value = match **length {
                    LENGTH => passed.value,
                    shorter => passed.value & ((1 << (8 * shorter)) - 1),
                };
                let hash = self.hash(value, **length);
                if hash & of.mask == 0 && of.hashes.contains(&hash) {
                    let offset = passed.count - **length as u64;
                    found(Found { hash, offset, length: **length });
                }
            }
        }
        passed
    }

    /// Returns whether a text has a known sequence.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let mut is_any = false;
        self.find(Passed::default(), text.as_bytes(), |_| is_any = true);
        is_any
    }
}

/// A known sequence in a text: its hash, where it starts, and its length in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) hash: u64,
    pub(super) offset: u64,
    pub(super) length: usize,
}

/// The bytes before the next piece of a text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Passed {
    value: u128,
    count: u64,
}

#[cfg(test)]
mod tests {
    use super::super::super::connection::Config;
    use super::super::super::session::SqliteSession;
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

#[cfg(test)]
mod tests_of_texts {
    use super::*;

    fn places(texts: &Texts, bytes: &[u8]) -> Vec<u64> {
        let mut places = Vec::new();
        texts.find(Passed::default(), bytes, |found| places.push(found.offset));
        places
    }

    #[test]
    fn a_part_of_a_text_is_found_where_it_is() {
        let mut texts = Texts::default();
        texts.add_name("The vault opens with 7-1-9-4.");
        assert_eq!(places(&texts, b"....opens with 7-1-9...."), [4]);
        assert_eq!(places(&texts, b"....opens with 7-1-...."), [0; 0]);
        assert_eq!((texts.count, texts.too_short), (1, 0));
    }

    #[test]
    fn a_sequence_over_two_pieces_is_found() {
        let mut texts = Texts::default();
        texts.add_name("0123456789abcdef");
        let mut places = Vec::new();
        let passed = texts.find(Passed::default(), b"xx0123456", |found| places.push(found.offset));
        texts.find(passed, b"789abcdefxx", |found| places.push(found.offset));
        assert_eq!(places, [2]);
    }

    #[test]
    fn a_short_text_is_found_as_a_whole_and_a_word_without_its_capitals() {
        let mut texts = Texts::default();
        texts.add_name("user:4711");
        texts.add("My Passphrase!");
        texts.add_name("no");
        assert_eq!(places(&texts, b"--user:4711--"), [2]);
        assert_eq!(places(&texts, b"\x04passphrase\x01"), [1]);
        assert_eq!(places(&texts, b"--user:471--"), [0; 0]);
        assert_eq!((texts.count, texts.too_short), (3, 1));
    }

    #[test]
    fn of_very_long_texts_a_sample_is_kept() {
        let mut texts = Texts::default();
        let long: Vec<String> = (0..200_000).map(|n| format!("{n:x}/")).collect();
        texts.add_name(&long.concat());
        assert!(texts.is_sample());
        assert!(texts.sequences() <= MAX_HASHES as u64 && texts.sequences() > 100_000);
        assert!(texts.are_in(&long[1_000..1_100].concat()));
    }
}
