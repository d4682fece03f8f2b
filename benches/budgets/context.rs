//! What do a frozen prompt, a refreshed prompt, and a search in knowledge cost?

use rusqlite::{Connection, OptionalExtension};
use talktree::{Block, Document, Durability, Session, Store};

use crate::measure::{Rounds, alternate, timed};
use crate::messages::{Length, Speaker, common_word, usual_words};
use crate::stores::open;
use crate::table::Row;
use crate::{Bench, Result, floor, short};

const BLOCKS: usize = 10;
/// How many documents a search returns, in talktree and in the floor.
const HITS: usize = 10;

const TABLES: &str = "CREATE TABLE frozen (session TEXT PRIMARY KEY, prompt TEXT NOT NULL);
    CREATE TABLE block (label TEXT PRIMARY KEY, content TEXT NOT NULL);";

/// Measures the prompt of ten stored blocks: reading the frozen one, refreshing it, and writing a block.
pub(crate) fn prompt(bench: &mut Bench) -> Result<()> {
    let store = open(&bench.stores.fresh("context.db")?, Durability::Normal)?;
    let chat = with_blocks(&store)?;
    let prompt = chat.prompt()?;
    let conn = floor::open(&bench.stores.fresh("context-floor.db")?, Durability::Normal)?;
    conn.execute_batch(TABLES)?;
    conn.execute("INSERT INTO frozen VALUES ('s', ?1)", [&prompt])?;
    for block in chat.blocks()? {
        conn.execute("INSERT INTO block VALUES (?1, ?2)", [&block.label, &block.content])?;
    }
    let frozen = alternate(
        Rounds::default(),
        || timed(|| select(&conn, "SELECT prompt FROM frozen WHERE session = ?1", "s")),
        || timed(|| Ok(chat.prompt()?)),
    )?;
    let row = Row::seconds("prompt of 10 blocks, frozen", frozen.ours.median());
    bench.table.add(row.floor(frozen.floor.median()));
    let refreshed = alternate(
        Rounds::default(),
        || timed(|| refresh(&conn)),
        || timed(|| Ok(chat.refresh_prompt()?)),
    )?;
    let row = Row::seconds("prompt of 10 blocks, refreshed", refreshed.ours.median());
    bench.table.add(row.floor(refreshed.floor.median()));
    let written = alternate(
        Rounds::default(),
        {
            let mut number = 0;
            let conn = &conn;
            move || {
                number += 1;
                timed(|| {
                    floor::run(conn, "BEGIN IMMEDIATE")?;
                    conn.prepare_cached("UPDATE block SET content = ?1 WHERE label = 'block 1'")?
                        .execute([format!("fact {number}")])?;
                    floor::run(conn, "COMMIT")
                })
            }
        },
        {
            let mut number = 0;
            let chat = &chat;
            move || {
                number += 1;
                timed(|| Ok(chat.context().set("block 1", &format!("fact {number}"))?))
            }
        },
    )?;
    let row = Row::seconds("write a block and its version", written.ours.median());
    bench.table.add(row.floor(written.floor.median()));
    Ok(())
}

fn with_blocks(store: &Store) -> Result<Session> {
    let mut speaker = Speaker::new(11, Length::Chat);
    let labels: Vec<String> = (0..BLOCKS).map(|n| format!("block {n}")).collect();
    let builder = store.session_builder("s").cached_prompt();
    let chat = labels
        .iter()
        .fold(builder, |builder, label| builder.block(label, Block::stored().max_tokens(10_000)))
        .open()?;
    for label in &labels {
        let text: Vec<String> = (0..5).map(|_| speaker.text()).collect();
        chat.context().set(label, &text.join("\n"))?;
    }
    Ok(chat)
}

/// The floor of a refresh: reads each block, joins the prompt and stores it.
fn refresh(conn: &Connection) -> Result<()> {
    floor::run(conn, "BEGIN IMMEDIATE")?;
    let mut prompt = Vec::new();
    for n in 0..BLOCKS {
        let label = format!("block {n}");
        prompt.push(select(conn, "SELECT content FROM block WHERE label = ?1", &label)?);
    }
    conn.prepare_cached("UPDATE frozen SET prompt = ?1 WHERE session = 's'")?
        .execute([prompt.join("\n\n")])?;
    floor::run(conn, "COMMIT")
}

fn select(conn: &Connection, sql: &str, key: &str) -> Result<String> {
    Ok(conn.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?.unwrap_or_default())
}

/// Measures searches of 100 000 documents; the floor is FTS5, which ranks the same texts and reads the best.
pub(crate) fn knowledge(bench: &mut Bench) -> Result<()> {
    let count = bench.million / 10;
    let mut speaker = Speaker::new(12, Length::Short);
    let texts: Vec<String> = (0..count).map(|_| speaker.text()).collect();
    let store = open(&bench.stores.fresh("knowledge.db")?, Durability::Normal)?;
    let context =
        store.session_builder("s").block("knowledge", Block::knowledge()).open()?.context().clone();
    // The same documents in another session, which must not add to the cost.
    let other = store
        .session_builder("other")
        .block("knowledge", Block::knowledge())
        .open()?
        .context()
        .clone();
    let documents = || texts.iter().enumerate().map(|(n, text)| Document::new(n.to_string(), text));
    let time = timed(|| Ok(context.set_documents("knowledge", documents())?))?;
    other.set_documents("knowledge", documents())?;
    let work = format!("knowledge: set {} documents, each", short(count));
    bench.table.add(Row::seconds(work, time.as_secs_f64() / count as f64));
    let conn = floor::open(&bench.stores.fresh("knowledge-floor.db")?, Durability::Normal)?;
    conn.execute_batch(
        "CREATE VIRTUAL TABLE knowledge USING fts5 (
             text, tokenize = \"porter unicode61 remove_diacritics 2 categories 'L* N* Co So'\");",
    )?;
    floor::run(&conn, "BEGIN IMMEDIATE")?;
    for text in &texts {
        conn.prepare_cached("INSERT INTO knowledge VALUES (?1)")?.execute([text])?;
    }
    floor::run(&conn, "COMMIT")?;
    for (name, words) in [("two words", usual_words()), ("a common word", common_word())] {
        let pair = alternate(
            Rounds::default(),
            || timed(|| best(&conn, &words)),
            || timed(|| Ok(context.search("knowledge", &words, HITS)?)),
        )?;
        assert!(!context.search("knowledge", &words, HITS)?.is_empty(), "{words}");
        let work = format!("knowledge of {}: {name}", short(count));
        bench.table.add(Row::seconds(work, pair.ours.median()).floor(pair.floor.median()));
    }
    Ok(())
}

fn best(conn: &Connection, words: &str) -> Result<Vec<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT text FROM knowledge WHERE knowledge MATCH ?1 ORDER BY rank LIMIT 10",
    )?;
    let texts = statement.query_map([words], |row| row.get(0))?;
    Ok(texts.collect::<rusqlite::Result<_>>()?)
}
