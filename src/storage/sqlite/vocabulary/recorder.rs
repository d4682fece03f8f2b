//! Records the words of messages: as recent ones, or in their places.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::super::error::BackendResult;
use super::known::Recorded;
use crate::message::Part;
use crate::search::language::Language;
use crate::search::vocabulary::Words;
use crate::search::word::WordHasher;
use crate::search::{indexed_text, vocabulary};

/// After so many new words they are written, so that their number has a limit.
const MAX_NEW: usize = 1 << 15;
/// With so many new words they are written to their places, and so are so many recent ones: in about a millisecond.
const MANY: usize = 1_024;
/// About how long it takes to write a recent word.
const TIME_PER_WORD: Duration = Duration::from_nanos(500);

/// Records the words of messages, in one transaction.
pub(in super::super) struct Recorder<'a> {
    conn: &'a Connection,
    hasher: &'a WordHasher,
    known: Recorded,
    /// The words that were not known, with their languages.
    new: Vec<(String, u32)>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(conn: &'a Connection, hasher: &'a WordHasher, known: Recorded) -> Self {
        Self { conn, hasher, known, new: Vec::new() }
    }

    /// Records the words of the texts of a message, at the latest when this finishes.
    pub(in super::super) fn add(&mut self, texts: [&str; 2]) -> BackendResult<()> {
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            let words = Words::of(text);
            let languages = words.language().map_or(0, Language::bit);
            words.each_candidate(|word| {
                if !self.known.has_or_adds(self.hasher.hash(word), languages)
                    && let Some(entry) = vocabulary::entry(word.text)
                {
                    self.new.push((entry.into_owned(), languages));
                }
            });
        }
        if self.new.len() > MAX_NEW { self.write_new() } else { Ok(()) }
    }

    pub(super) fn add_parts(&mut self, parts: Option<Vec<Part>>) -> BackendResult<()> {
        let parts = parts.unwrap_or_default();
        self.add([&indexed_text::plain_text(&parts), &indexed_text::plain_tools(&parts)])
    }

    /// Returns about how long it will take to write the new words.
    pub(in super::super) fn time_left(&self) -> Duration {
        TIME_PER_WORD * self.new.len() as u32
    }

    /// Writes the new words. In order, those of one page of the table are written together.
    fn write_new(&mut self) -> BackendResult<()> {
        let mut insert = self.conn.prepare_cached(INSERT)?;
        self.new.sort_unstable();
        for same in self.new.chunk_by(|a, b| a.0 == b.0) {
            let languages = same.iter().fold(0, |all, (_, languages)| all | languages);
            insert.execute(params![same[0].0, languages])?;
        }
        self.new.clear();
        Ok(())
    }

    /// Finishes, and leaves the new words to [`move_many`], unless there are many.
    pub(in super::super) fn finish(self) -> BackendResult<Recorded> {
        if self.new.len() >= MANY {
            return self.write();
        }
        let mut insert = self.conn.prepare_cached(INSERT_RECENT)?;
        for (word, languages) in &self.new {
            insert.execute(params![word, languages])?;
        }
        Ok(self.known)
    }

    /// Finishes, and writes the new words to their places.
    pub(super) fn write(mut self) -> BackendResult<Recorded> {
        self.write_new()?;
        Ok(self.known)
    }
}

const INSERT: &str = "INSERT INTO vocabulary (word, languages) VALUES (?1, ?2)
    ON CONFLICT (word) DO UPDATE SET languages = languages | excluded.languages
                           WHERE languages & excluded.languages <> excluded.languages";

const INSERT_RECENT: &str = "INSERT INTO recent_words (word, languages) VALUES (?1, ?2)";

/// Moves the recent words to their places if there are many. Returns whether it did.
pub(in super::super) fn move_many(conn: &Connection) -> BackendResult<bool> {
    // The table is emptied at once, and the next number is 1 then.
    let count: Option<usize> = conn
        .prepare_cached("SELECT max(number) FROM recent_words")?
        .query_row([], |row| row.get(0))?;
    let is_due = count.is_some_and(|count| count >= MANY);
    if is_due {
        conn.prepare_cached(MOVE_RECENT)?.execute([])?;
        conn.prepare_cached("DELETE FROM recent_words")?.execute([])?;
    }
    Ok(is_due)
}

const MOVE_RECENT: &str = "INSERT INTO vocabulary (word, languages)
 SELECT word, languages FROM recent_words WHERE true ORDER BY word
    ON CONFLICT (word) DO UPDATE SET languages = languages | excluded.languages
                           WHERE languages & excluded.languages <> excluded.languages";

#[cfg(test)]
mod tests {
    use super::super::super::connection::{Config, Database};
    use super::super::{clear, each_with_first, has};
    use super::*;
    use crate::error::Result;

    /// Records words of a transaction, as appends do; returns how many are recent then.
    fn record(database: &Database, words: &[String]) -> Result<usize> {
        let recorded = database.write(|conn| {
            let mut recorder = database.known_words.recorder(conn)?;
            recorder.add([&words.join(" "), ""])?;
            recorder.finish()
        })?;
        database.known_words.remember(recorded);
        count(database, "recent_words")
    }

    fn count(database: &Database, table: &str) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM {table}");
        database.read(|conn| Ok(conn.query_row(&sql, [], |row| row.get(0))?))
    }

    fn words(prefix: &str, count: usize) -> Vec<String> {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        (0..count)
            .map(|n| format!("{prefix}{}{}{}", letter(n), letter(n / 26), letter(n / 676)))
            .collect()
    }

    #[test]
    fn recent_words_are_found_and_move_when_there_are_many() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        for prefix in ["a", "b"] {
            let half = words(prefix, MANY / 2 - 1);
            assert!(record(&database, &half)? < MANY);
            // They are known now.
            assert!(record(&database, &half)? < MANY);
            assert!(!database.write(move_many)?);
        }
        assert_eq!(count(&database, "vocabulary")?, 0);
        let found = |word: &str| database.read(|conn| has(conn, word));
        assert!(found("aaaa")? && found("bbaa")? && !found("caaa")?);
        assert_eq!(record(&database, &words("c", 2))?, MANY);
        assert!(database.write(move_many)? && !database.write(move_many)?);
        assert_eq!(count(&database, "recent_words")?, 0);
        assert_eq!(count(&database, "vocabulary")?, MANY);
        assert!(found("aaaa")? && found("cbaa")? && !found("caab")?);
        // Counted from the beginning.
        assert_eq!(record(&database, &words("d", 3))?, 3);
        assert!(!database.write(move_many)?);
        let mut with_d = 0;
        let watch = database.interrupt_signal().watch();
        database.read(|conn| each_with_first(conn, 'd', &watch, &mut |_| with_d += 1))?;
        assert_eq!(with_d, 3);
        Ok(())
    }

    #[test]
    fn many_new_words_are_written_to_their_places_at_once() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        assert_eq!(record(&database, &words("a", MANY))?, 0);
        assert_eq!(count(&database, "vocabulary")?, MANY);
        Ok(())
    }

    #[test]
    fn recent_words_are_removed_with_the_others() -> Result<()> {
        let database = Database::open_in_memory(Config::default())?;
        assert_eq!(record(&database, &words("a", 3))?, 3);
        database.write(clear)?;
        assert_eq!(count(&database, "recent_words")?, 0);
        assert!(!database.read(|conn| has(conn, "aaaa"))?);
        Ok(())
    }
}
