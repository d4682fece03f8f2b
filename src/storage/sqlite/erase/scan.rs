//! Looks for erased texts in every byte of the files.
//!
//! A sequence that is found does not count if a stored row contains it: it belongs to a copy that was kept, or to another
//! message with the same words. Nor does it count if all but a few of its bytes are the beginning or the end of a stored
//! text: what lies before and after a text in a row is numbers, which may look like a letter.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::super::connection::Database;
use super::super::error::BackendResult;
use super::super::file;
use super::super::raw_file::read_at;
use super::texts::{Found, Itself, Passed, Texts};
use crate::erasure::{ErasureProof, ErasureProver, Occurrence};
use crate::error::Result;

const CHUNK: usize = 1 << 20;
/// Up to one byte of so many may be foreign at the edge of a text.
const FOREIGN: usize = 4;
/// How many places a proof lists.
const MAX_PLACES: usize = 100;

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
}

impl ErasureProver for Prover {
    fn scan(&self) -> Result<ErasureProof> {
        self.database.scan_for(&self.texts)
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
        let watch = self.interrupt_signal().watch();
        let files = store.raw_files().map_err(|source| file::io(store.path(), source))?;
        let mut places = Places::default();
        let mut buffer = vec![0; CHUNK];
        for (number, (path, opened)) in files.iter().enumerate() {
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
                    let place = Place { count: 0, length, first: (number, offset) };
                    places.entry(hash).or_insert(place).count += 1;
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
        proof.occurrences = firsts
            .into_iter()
            .map(|(number, offset)| Occurrence::new(files[number].0.clone(), offset))
            .collect();
        Ok(proof)
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

/// The tables of the indexes and the vocabulary hold words of stored texts in a form of their own. Their settings are names.
const TABLES: &str = "SELECT 'sqlite_schema'
 UNION ALL
SELECT name
  FROM sqlite_schema
 WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
   AND name NOT IN ('search_data', 'search_idx', 'search_docsize',
                    'context_search_data', 'context_search_idx', 'context_search_docsize',
                    'vocabulary')";
