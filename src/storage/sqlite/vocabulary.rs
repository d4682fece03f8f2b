//! The vocabulary: every word that was indexed, as written.
//!
//! The index has stems only, and FTS5 takes seconds to list those of a large store. So the words of each message are
//! recorded when it is indexed. Most of them were recorded before: a handle remembers the last ones, and looks up no
//! word that it remembers. The others of a transaction are written at its end, in order.
//!
//! With each word are the languages of the texts that have it, as a set of bits: those languages decide which other words
//! are forms of it. A text whose language cannot be told adds none.
//!
//! A word stays when its last message is deleted or changed. An erasure removes all words and records those of the
//! messages again: that takes about as long as to look for the erased texts in the file. It begins an *epoch*: what a
//! handle remembers of an earlier one is void.
//!
//! While an erasure records the words again, a setting holds the address of the next message. If a process was killed, the
//! next one continues there.
//!
//! Invariant: a word of an indexed message is in the vocabulary, unless that setting exists or [`Remembered`] took it for
//! another one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use crate::error::Result;
use crate::message::{Part, parts_from_text};
use crate::search::language::Language;
use crate::search::vocabulary::Words;
use crate::search::word::WordHasher;
use crate::search::{indexed_text, vocabulary};
use crate::tree::Address;

/// How many words a handle remembers: so many sets, each of so many words. Together they take a quarter of a MiB: to look up
/// words in a table larger than the cache of a core costs more than to hash them.
const SETS: usize = 1 << 12;
const WORDS_PER_SET: usize = 8;
/// A word that is used moves up by one place if its place is this or a later one. A new word takes the last place.
const FIRST_MOVING_PLACE: usize = WORDS_PER_SET / 2;
/// How many sets serve for one message.
const SETS_FOR_ONE: usize = 1 << 6;
/// After so many new words they are written, so that their number has a limit.
const MAX_NEW: usize = 1 << 15;
/// About how long it takes to write a new word.
const TIME_PER_WORD: Duration = Duration::from_micros(1);
/// The setting that counts the removals.
const EPOCH: &str = "vocabulary_epoch";
/// The setting that exists while an erasure records the words again: the address of the next message.
const LEFT: &str = "vocabulary_left";
/// The words of how many messages one transaction records again: about ten milliseconds.
const MESSAGES_PER_STEP: u32 = 1_000;

/// The words of how many pending messages are read for a spelling: about ten milliseconds.
const MAX_PENDING: u32 = 2_000;

/// Words with the languages in which they are recorded. The first bits of a word's hash tell its set, and its last 32 bits tell
/// it from others there: about one of 500 million new words is taken for a known one, and is not recorded. A word among the
/// last places of its set moves up by one whenever it is used, and a full set forgets the last one: so the frequent ones stay.
#[derive(Default)]
struct Remembered {
    /// The hashes and the languages of each set. There is a power of two of them, and none until the first word.
    sets: Vec<[[u32; WORDS_PER_SET]; 2]>,
    count: usize,
}

impl Remembered {
    fn with_sets(count: usize) -> Self {
        // Zeros take no memory until they are written.
        Self { sets: vec![[[0; WORDS_PER_SET]; 2]; count], count: 0 }
    }

    /// Returns whether a word is remembered with these languages, and remembers it.
    fn has_or_adds(&mut self, hash: u64, languages: u32) -> bool {
        if self.sets.is_empty() {
            *self = Self::with_sets(SETS);
        }
        let number = hash >> (u64::BITS - self.sets.len().ilog2());
        let [words, known] = &mut self.sets[number as usize];
        // 0 is a free place.
        let word = (hash as u32).max(1);
        let Some(place) = place_of(word, words) else {
            let place = place_of(0, words);
            self.count += usize::from(place.is_some());
            let place = place.unwrap_or(WORDS_PER_SET - 1);
            (words[place], known[place]) = (word, languages);
            return false;
        };
        let is_known = known[place] & languages == languages;
        known[place] |= languages;
        if place >= FIRST_MOVING_PLACE {
            words.swap(place - 1, place);
            known.swap(place - 1, place);
        }
        is_known
    }
}

/// Returns the first place of a word in a set. All places are compared, without branches: an early end would mostly be
/// mispredicted.
fn place_of(word: u32, words: &[u32; WORDS_PER_SET]) -> Option<usize> {
    let hits = words.iter().enumerate().map(|(place, it)| u32::from(*it == word) << place);
    let hits = hits.fold(0, |all, hit| all | hit);
    (hits != 0).then_some(hits.trailing_zeros() as usize)
}

/// The words that a handle knows to be recorded.
#[derive(Default)]
pub(super) struct KnownWords {
    hasher: WordHasher,
    words: Mutex<Recorded>,
}

impl KnownWords {
    /// Begins to record words in a transaction.
    pub(super) fn recorder<'a>(&'a self, conn: &'a Connection) -> BackendResult<Recorder<'a>> {
        let epoch = epoch(conn)?;
        let mut known = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken: if the transaction fails, all are forgotten, with those that it did not record.
        let mut known = std::mem::take(&mut *known);
        if known.epoch != epoch {
            known = Recorded { epoch, words: Remembered::default() };
        }
        Ok(Recorder { conn, hasher: &self.hasher, known, new: Vec::new() })
    }

    /// Remembers what was recorded, after the commit.
    pub(super) fn remember(&self, recorded: Recorded) {
        let mut known = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have recorded others meanwhile.
        if known.epoch != recorded.epoch || known.words.count < recorded.words.count {
            *known = recorded;
        }
    }
}

/// The words that are recorded once a transaction is committed.
#[derive(Default)]
pub(super) struct Recorded {
    epoch: String,
    words: Remembered,
}

/// Records the words of messages, in one transaction.
pub(super) struct Recorder<'a> {
    conn: &'a Connection,
    hasher: &'a WordHasher,
    known: Recorded,
    /// The words that were not known, with their languages: written together, in order.
    new: Vec<(String, u32)>,
}

impl Recorder<'_> {
    /// Records the words of the texts of a message, at the latest when this [finishes](Self::finish).
    pub(super) fn add(&mut self, texts: [&str; 2]) -> BackendResult<()> {
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            let words = Words::of(text);
            let languages = words.language().map_or(0, Language::bit);
            words.each_candidate(|word| {
                if !self.known.words.has_or_adds(self.hasher.hash(word), languages)
                    && let Some(entry) = vocabulary::entry(word.text)
                {
                    self.new.push((entry.into_owned(), languages));
                }
            });
        }
        if self.new.len() > MAX_NEW { self.write() } else { Ok(()) }
    }

    /// Returns about how long it will take to write the new words.
    pub(super) fn time_left(&self) -> Duration {
        TIME_PER_WORD * self.new.len() as u32
    }

    /// Writes the new words. In order, those of one page of the table are written together.
    fn write(&mut self) -> BackendResult<()> {
        let mut insert = self.conn.prepare_cached(INSERT)?;
        self.new.sort_unstable();
        for same in self.new.chunk_by(|a, b| a.0 == b.0) {
            let languages = same.iter().fold(0, |all, (_, languages)| all | languages);
            insert.execute(params![same[0].0, languages])?;
        }
        self.new.clear();
        Ok(())
    }

    fn add_parts(&mut self, parts: Option<Vec<Part>>) -> BackendResult<()> {
        let parts = parts.unwrap_or_default();
        self.add([&indexed_text::plain_text(&parts), &indexed_text::plain_tools(&parts)])
    }

    pub(super) fn finish(mut self) -> BackendResult<Recorded> {
        self.write()?;
        Ok(self.known)
    }
}

const INSERT: &str = "INSERT INTO vocabulary (word, languages) VALUES (?1, ?2)
    ON CONFLICT (word) DO UPDATE SET languages = languages | excluded.languages
                           WHERE languages & excluded.languages <> excluded.languages";

/// Records the words of one message.
pub(super) fn add(conn: &Connection, address: Address) -> BackendResult<()> {
    let parts: Option<Vec<Part>> = conn
        .prepare_cached("SELECT parts FROM message WHERE address = ?1")?
        .query_row([address], |row| Ok(parts_of(row, 0)))
        .optional()?
        .flatten();
    let known = KnownWords::default();
    let mut recorder = known.recorder(conn)?;
    recorder.known.words = Remembered::with_sets(SETS_FOR_ONE);
    recorder.add_parts(parts)?;
    recorder.finish().map(|_| ())
}

/// Records the words of all messages again.
pub(super) fn rebuild(conn: &Connection) -> BackendResult<()> {
    clear(conn)?;
    let known = KnownWords::default();
    let mut words = known.recorder(conn)?;
    let mut from = Some(Address::from_raw(i64::MIN));
    while let Some(address) = from {
        from = add_some(conn, &mut words, address)?;
    }
    words.finish().map(|_| ())
}

/// Records the words of the next messages; returns where to go on.
fn add_some(
    conn: &Connection,
    words: &mut Recorder<'_>,
    from: Address,
) -> BackendResult<Option<Address>> {
    let mut statement = conn.prepare_cached(NEXT)?;
    let mut rows = statement.query(params![from, MESSAGES_PER_STEP])?;
    let (mut count, mut last) = (0, from);
    while let Some(row) = rows.next()? {
        (count, last) = (count + 1, row.get(0)?);
        words.add_parts(parts_of(row, 1))?;
    }
    Ok((count == MESSAGES_PER_STEP).then(|| last.after()))
}

pub(super) const NEXT: &str = "SELECT address, parts
   FROM message
  WHERE address >= ?1 AND id IS NOT NULL
  ORDER BY address
  LIMIT ?2";

/// Damaged parts have no words, as in the index.
fn parts_of(row: &rusqlite::Row<'_>, column: usize) -> Option<Vec<Part>> {
    parts_from_text(row.get_ref(column).ok()?.as_str().ok()?).ok()
}

/// Removes all words, and voids what handles remember.
pub(super) fn clear(conn: &Connection) -> BackendResult<()> {
    conn.prepare_cached("DELETE FROM vocabulary")?.execute([])?;
    store_left(conn, None)?;
    conn.prepare_cached(
        "INSERT INTO setting (name, value) VALUES (?1, '1')
             ON CONFLICT (name) DO UPDATE SET value = CAST(value + 1 AS TEXT)",
    )?
    .execute([EPOCH])?;
    Ok(())
}

fn epoch(conn: &Connection) -> BackendResult<String> {
    let epoch: Option<String> = conn
        .prepare_cached("SELECT value FROM setting WHERE name = ?1")?
        .query_row([EPOCH], |row| row.get(0))
        .optional()?;
    Ok(epoch.unwrap_or_default())
}

/// Returns from which message on the words are to be recorded again; `None` if they are.
pub(super) fn left(conn: &Connection) -> BackendResult<Option<Address>> {
    let value: Option<i64> = conn
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM setting WHERE name = ?1")?
        .query_row([LEFT], |row| row.get(0))
        .optional()?;
    Ok(value.map(Address::from_raw))
}

fn store_left(conn: &Connection, from: Option<Address>) -> BackendResult<()> {
    match from {
        Some(from) => conn
            .prepare_cached("INSERT OR REPLACE INTO setting (name, value) VALUES (?1, ?2)")?
            .execute(params![LEFT, from.raw().to_string()])?,
        None => conn.prepare_cached("DELETE FROM setting WHERE name = ?1")?.execute([LEFT])?,
    };
    Ok(())
}

/// Returns whether a word was ever indexed.
pub(super) fn has(conn: &Connection, word: &str) -> BackendResult<bool> {
    let Some(entry) = vocabulary::entry(word) else { return Ok(false) };
    Ok(conn.prepare_cached("SELECT 1 FROM vocabulary WHERE word = ?1")?.exists([entry])?)
}

/// Returns whether a word that begins so was ever indexed; `true` also if only the index can tell.
///
/// Words of more than 40 letters are in the index only. They are found by ten letters or more of their beginning: for a
/// shorter one nothing but the vocabulary is asked, because to look for a beginning in the index took 6 ms if a common word
/// comes before it. FTS5 reads all of that word's list to find the next word.
pub(super) fn has_beginning(conn: &Connection, start: &str) -> BackendResult<bool> {
    // Words with many digits are in the index only.
    let is_plain = start.chars().take(LONG_BEGINNING).count() < LONG_BEGINNING
        && start.chars().all(char::is_alphabetic);
    let Some(entry) = vocabulary::entry(start).filter(|_| is_plain) else { return Ok(true) };
    let mut statement = conn.prepare_cached(BEGINNING)?;
    Ok(statement.exists([entry.as_ref(), &format!("{entry}\u{10FFFF}")])?)
}

/// A beginning of this many letters is looked up in the index.
const LONG_BEGINNING: usize = 10;

const BEGINNING: &str = "SELECT 1 FROM vocabulary WHERE word >= ?1 AND word < ?2";

/// Returns the languages of a word; `None` if it was never indexed.
#[cfg(feature = "stemmers")]
pub(super) fn languages(conn: &Connection, word: &str) -> BackendResult<Option<u32>> {
    let sql = "SELECT languages FROM vocabulary WHERE word = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([word], |row| row.get(0)).optional()?)
}

/// Calls `look` with every word that begins with `start` and has one of the languages, and with its languages.
#[cfg(feature = "stemmers")]
pub(super) fn each_in_languages(
    conn: &Connection,
    start: &str,
    languages: u32,
    watch: &Watch,
    mut look: impl FnMut(&str, u32),
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(IN_LANGUAGES)?;
    let mut rows = statement.query(params![start, format!("{start}\u{10FFFF}"), languages])?;
    while let Some(row) = rows.next()? {
        watch.check()?;
        look(row.get_ref(0)?.as_str()?, row.get(1)?);
    }
    Ok(())
}

#[cfg(feature = "stemmers")]
const IN_LANGUAGES: &str = "SELECT word, languages
   FROM vocabulary
  WHERE word >= ?1
    AND word < ?2
    AND languages & ?3 <> 0";

/// Calls `look` with every word that begins with a letter.
pub(super) fn each_with_first(
    conn: &Connection,
    first: char,
    watch: &Watch,
    look: &mut impl FnMut(&str),
) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(WITH_FIRST)?;
    let mut rows = statement.query([first.to_string(), format!("{first}\u{10FFFF}")])?;
    while let Some(row) = rows.next()? {
        watch.check()?;
        look(row.get_ref(0)?.as_str()?);
    }
    Ok(())
}

const WITH_FIRST: &str = "SELECT word FROM vocabulary WHERE word >= ?1 AND word < ?2";

/// Calls `look` with the words of the newest messages that only the temporary index has.
pub(super) fn each_pending(conn: &Connection, look: &mut impl FnMut(&str)) -> BackendResult<()> {
    let mut statement = conn.prepare_cached(PENDING)?;
    let mut rows = statement.query([MAX_PENDING])?;
    while let Some(row) = rows.next()? {
        let parts = parts_of(row, 0).unwrap_or_default();
        for text in [indexed_text::plain_text(&parts), indexed_text::plain_tools(&parts)] {
            Words::of(&text).each_candidate(|word| {
                if let Some(entry) = vocabulary::entry(word.text) {
                    look(&entry);
                }
            });
        }
    }
    Ok(())
}

const PENDING: &str = "SELECT message.parts
   FROM temp.pending_index_docsize AS pending
  CROSS JOIN message ON message.address = pending.id
  ORDER BY pending.id DESC
  LIMIT ?1";

impl Database {
    /// Removes all words, those that no message has any more among them.
    pub(super) fn clear_vocabulary(&self) -> Result<()> {
        self.write(|conn| {
            clear(conn)?;
            store_left(conn, Some(Address::from_raw(i64::MIN)))
        })
    }

    /// Records the words of the messages that are left, in short transactions.
    ///
    /// If this is interrupted, the next call goes on. Another process may do it at the same time, or remove all words again:
    /// so each transaction reads where to go on.
    pub(super) fn record_vocabulary(&self) -> Result<()> {
        let watch = self.interrupt_signal().watch();
        while self.read(left)?.is_some() {
            watch.check()?;
            let recorded = self.write(|conn| {
                let Some(from) = left(conn)? else { return Ok(None) };
                let mut words = self.known_words.recorder(conn)?;
                let next = add_some(conn, &mut words, from)?;
                store_left(conn, next)?;
                words.finish().map(Some)
            })?;
            if let Some(recorded) = recorded {
                self.known_words.remember(recorded);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::connection::Config;
    use super::super::session::SqliteSession;
    use super::*;
    use crate::id::SessionId;
    use crate::message::Message;
    use crate::search::word::Word;
    use crate::storage::SessionProvider;
    use crate::view::{ExpectedHead, Parent};

    fn store() -> Result<(Arc<Database>, SqliteSession)> {
        let database = Arc::new(Database::open_in_memory(Config::default())?);
        let chat = SqliteSession::new(Arc::clone(&database), SessionId::from("s"));
        Ok((database, chat))
    }

    fn append(chat: &SqliteSession, message: Message) -> Result<()> {
        chat.append(&Parent::Head, &ExpectedHead::Any, &[message]).map(|_| ())
    }

    /// Indexes what is pending, and returns all words.
    fn words(database: &Database) -> Result<String> {
        database.catch_up_for_search(&database.interrupt_signal().watch())?;
        database.read(|conn| {
            let sql = "SELECT coalesce(group_concat(word, ' ' ORDER BY word), '') FROM vocabulary";
            Ok(conn.query_row(sql, [], |row| row.get(0))?)
        })
    }

    #[test]
    fn the_words_of_texts_and_tools_are_recorded_as_written() -> Result<()> {
        let (database, chat) = store()?;
        append(&chat, Message::user("Running 42 Été"))?;
        let call = Part::tool_call("weather", "c", serde_json::json!({"city": "Jena"}));
        append(&chat, Message::new(crate::message::Role::Assistant, vec![call]))?;
        assert_eq!(words(&database)?, "ete jena running weather");
        Ok(())
    }

    #[test]
    fn a_word_has_the_languages_of_all_texts_that_have_it() -> Result<()> {
        let (database, chat) = store()?;
        let languages = |word: &str| {
            words(&database)?;
            database.read(|conn| {
                let sql = "SELECT languages FROM vocabulary WHERE word = ?1";
                Ok(conn.query_row(sql, [word], |row| row.get::<_, u32>(0))?)
            })
        };
        append(&chat, Message::user("Server Hamburg"))?;
        assert_eq!(languages("server")?, 0);
        append(&chat, Message::user("Das ist der Server, und er ist nicht neu."))?;
        assert_eq!(languages("server")?, Language::German.bit());
        append(&chat, Message::user("The server is not the one that we had."))?;
        append(&chat, Message::user("Server Hamburg"))?;
        assert_eq!(languages("server")?, Language::German.bit() | Language::English.bit());
        assert_eq!(languages("hamburg")?, 0);
        Ok(())
    }

    #[test]
    fn the_words_of_an_indexed_message_that_is_changed_are_recorded() -> Result<()> {
        let (database, chat) = store()?;
        append(&chat, Message::user("first").with_id("a"))?;
        append(&chat, Message::user("second"))?;
        words(&database)?;
        chat.update(&Message::user("changed").with_id("a"))?;
        assert_eq!(words(&database)?, "changed first second");
        Ok(())
    }

    #[test]
    fn a_word_that_was_removed_is_recorded_again() -> Result<()> {
        let (database, chat) = store()?;
        append(&chat, Message::user("fox"))?;
        assert_eq!(words(&database)?, "fox");
        database.write(clear)?;
        append(&chat, Message::user("fox den"))?;
        assert_eq!(words(&database)?, "den fox");
        Ok(())
    }

    #[test]
    fn a_word_of_a_write_that_failed_is_not_remembered() -> Result<()> {
        let (database, chat) = store()?;
        append(&chat, Message::user("fox"))?;
        let failed = database.write(|conn| {
            let mut words = database.known_words.recorder(conn)?;
            words.add(["fox", ""])?;
            Err::<(), _>(super::super::error::corrupt("stopped".to_owned()))
        });
        assert!(failed.is_err());
        assert_eq!(words(&database)?, "fox");
        Ok(())
    }

    #[test]
    fn only_words_of_stored_messages_are_left_when_it_is_made_again() -> Result<()> {
        let (database, chat) = store()?;
        append(&chat, Message::user("fox").with_id("a"))?;
        let many = MESSAGES_PER_STEP as usize + 10;
        let texts: Vec<_> = (0..many).map(|n| Message::user(format!("den{n}"))).collect();
        chat.append(&Parent::Head, &ExpectedHead::Any, &texts)?;
        words(&database)?;
        chat.delete(&["a".into()])?;
        assert!(words(&database)?.ends_with(" fox"));
        database.clear_vocabulary()?;
        database.record_vocabulary()?;
        assert_eq!(words(&database)?.split(' ').count(), many);
        database.write(rebuild)?;
        assert_eq!(words(&database)?.split(' ').count(), many);
        Ok(())
    }

    /// An erasure that was stopped while it recorded the words again left the others out for ever.
    #[test]
    fn words_are_recorded_from_where_it_was_interrupted() -> Result<()> {
        let (database, chat) = store()?;
        let many = 2 * MESSAGES_PER_STEP as usize + 10;
        let texts: Vec<_> = (0..many).map(|n| Message::user(format!("den{n}"))).collect();
        chat.append(&Parent::Head, &ExpectedHead::Any, &texts)?;
        words(&database)?;
        database.clear_vocabulary()?;
        assert!(database.has_unfinished_erasure()?);
        database.write(|conn| {
            let mut words = database.known_words.recorder(conn)?;
            let next = add_some(conn, &mut words, left(conn)?.unwrap())?;
            words.finish()?;
            store_left(conn, next)
        })?;
        assert_eq!(words(&database)?.split(' ').count(), MESSAGES_PER_STEP as usize);
        assert!(database.finish_erasure()?.0);
        assert!(!database.has_unfinished_erasure()?);
        assert_eq!(words(&database)?.split(' ').count(), many);
        // What records all words itself leaves nothing to record.
        database.clear_vocabulary()?;
        database.write(rebuild)?;
        assert!(!database.has_unfinished_erasure()?);
        Ok(())
    }

    #[test]
    fn the_words_that_are_remembered_are_limited() {
        let hasher = WordHasher::default();
        let mut remembered = Remembered::default();
        let mut is_known =
            |n: usize| remembered.has_or_adds(hasher.hash(Word::new(&format!("w{n}"))), 0);
        let max = SETS * WORDS_PER_SET;
        assert!((0..3 * max).all(|n| !is_known(n)));
        assert!(is_known(3 * max - 1));
        let known = (0..3 * max).filter(|n| is_known(*n)).count();
        assert!((max / 2..=max).contains(&known), "{known}");
        assert_eq!(remembered.sets.len(), SETS);
        assert!((max - SETS / 8..=max).contains(&remembered.count), "{}", remembered.count);
        assert_eq!(size_of_val(&remembered.sets[..]), 1 << 18);
    }

    #[test]
    fn frequent_words_are_not_forgotten() {
        let mut remembered = Remembered::default();
        for word in 1..=WORDS_PER_SET as u64 {
            assert!(!remembered.has_or_adds(word, 1));
        }
        assert!(remembered.has_or_adds(5, 0) && !remembered.has_or_adds(5, 2));
        for rare in 100..200 {
            assert!(!remembered.has_or_adds(rare, 0));
            assert!(remembered.has_or_adds(5, 3) && remembered.has_or_adds(1, 1));
        }
        assert!(!remembered.has_or_adds(100, 0));
    }
}
