//! The vocabulary: every word that was indexed, as written.
//!
//! The index has stems only, and FTS5 takes seconds to list those of a large store. So the words of each message are
//! recorded when it is indexed. Most of them were recorded before: a handle remembers the last ones, and looks up no
//! word that it remembers.
//!
//! A new word belongs to some page of a large table. A hundred new words would change nearly a hundred pages, and each page
//! is written to the log. So new words are *recent* at first, in a small table in the order in which they came, and are
//! moved when there are many. Whatever reads the vocabulary reads the recent words, too.
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
//! Invariant: a word of an indexed message is in the vocabulary, unless that setting exists or [`known`] took it for another
//! one.

mod known;
mod recorder;

use rusqlite::{Connection, OptionalExtension, params};

pub(super) use self::known::KnownWords;
pub(super) use self::recorder::{Recorder, move_many};
use super::connection::Database;
use super::error::BackendResult;
use super::interrupt::Watch;
use crate::error::Result;
use crate::message::{Part, parts_from_text};
use crate::search::vocabulary::Words;
use crate::search::{indexed_text, vocabulary};
use crate::tree::Address;

/// The setting that counts the removals.
const EPOCH: &str = "vocabulary_epoch";
/// The setting that exists while an erasure records the words again: the address of the next message.
const LEFT: &str = "vocabulary_left";
/// The words of how many messages one transaction records again: about ten milliseconds.
const MESSAGES_PER_STEP: u32 = 1_000;

/// The words of how many pending messages are read for a spelling: about ten milliseconds.
const MAX_PENDING: u32 = 2_000;

/// Records the words of one message.
pub(super) fn add(conn: &Connection, address: Address) -> BackendResult<()> {
    let parts: Option<Vec<Part>> = conn
        .prepare_cached("SELECT parts FROM message WHERE address = ?1")?
        .query_row([address], |row| Ok(parts_of(row, 0)))
        .optional()?
        .flatten();
    let known = KnownWords::of_one_message();
    let mut words = known.recorder(conn)?;
    words.add_parts(parts)?;
    words.write().map(drop)
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
    words.write().map(drop)
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
    conn.prepare_cached("DELETE FROM recent_words")?.execute([])?;
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
    Ok(conn.prepare_cached(LANGUAGES)?.exists([entry])?)
}

const LANGUAGES: &str = "SELECT languages FROM vocabulary WHERE word = ?1
 UNION ALL
SELECT languages FROM recent_words WHERE word = ?1";

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

const BEGINNING: &str = "SELECT 1 FROM vocabulary WHERE word >= ?1 AND word < ?2
 UNION ALL
SELECT 1 FROM recent_words WHERE word >= ?1 AND word < ?2";

/// Returns the languages of a word; `None` if it was never indexed.
#[cfg(feature = "stemmers")]
pub(super) fn languages(conn: &Connection, word: &str) -> BackendResult<Option<u32>> {
    let mut statement = conn.prepare_cached(LANGUAGES)?;
    let mut rows = statement.query([word])?;
    let mut all = None;
    while let Some(row) = rows.next()? {
        all = Some(all.unwrap_or(0) | row.get::<_, u32>(0)?);
    }
    Ok(all)
}

/// Calls `look` with every word that begins with `start` and has one of the languages, and with its languages; with a recent
/// word once more.
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
  WHERE word >= ?1 AND word < ?2 AND languages & ?3 <> 0
  UNION ALL
 SELECT word, languages
   FROM recent_words
  WHERE word >= ?1 AND word < ?2 AND languages & ?3 <> 0";

/// Calls `look` with every word that begins with a letter; with a recent word once more.
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

const WITH_FIRST: &str = "SELECT word FROM vocabulary WHERE word >= ?1 AND word < ?2
 UNION ALL
SELECT word FROM recent_words WHERE word >= ?1 AND word < ?2";

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
                words.write().map(Some)
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
            let sql = "SELECT coalesce(group_concat(word, ' ' ORDER BY word), '')
                FROM (SELECT word FROM vocabulary UNION SELECT word FROM recent_words)";
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

    #[cfg(feature = "stemmers")]
    #[test]
    fn a_word_has_the_languages_of_all_texts_that_have_it() -> Result<()> {
        use crate::search::language::Language;
        let (database, chat) = store()?;
        let languages = |word: &str| {
            words(&database)?;
            database.read(|conn| Ok(super::languages(conn, word)?.expect("a word")))
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
}
