//! The stores that are searched, made of real conversations.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDateTime, Utc};
use flate2::read::GzDecoder;
use serde::Deserialize;
use talktree::{Message, Store};
use talktree_import::{ImportOptions, import_folder};

use crate::{Result, librechat};

/// The time of every search, so that `last week` means the same in each run.
pub(crate) const NOW: &str = "2024-03-01T12:00:00Z";

pub(crate) fn now() -> Result<DateTime<Utc>> {
    Ok(NOW.parse()?)
}

/// Returns the folder of the conversations; `None`, with a notice, if it is absent.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TALKTREE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if !folder.is_dir() {
        println!("skipped: {} does not exist; set TALKTREE_DATA", folder.display());
        return None;
    }
    Some(folder)
}

/// Returns a store with the transcripts of coding agents, chats and trees.
pub(crate) fn transcripts(folder: &Path) -> Result<Store> {
    let store = Store::open_in_memory()?;
    for name in ["pi", "claude-code", "chatgpt", "openassistant"] {
        import_folder(&store, folder.join(name), &ImportOptions::default(), |_| {})?;
    }
    librechat::import(&store, &folder.join("librechat"))?;
    Ok(store)
}

/// A chat of LongMemEval.
#[derive(Deserialize)]
pub(crate) struct Chat {
    session_id: String,
    date: String,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Deserialize)]
pub(crate) struct Turn {
    role: String,
    pub(crate) content: String,
}

pub(crate) fn long_chats(folder: &Path) -> Result<Vec<Chat>> {
    let file = std::fs::File::open(folder.join("longmemeval/sessions.jsonl.gz"))?;
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// A question about chats of LongMemEval.
#[derive(Deserialize)]
pub(crate) struct Question {
    pub(crate) question: String,
    question_date: String,
    pub(crate) answer_session_ids: Vec<String>,
}

impl Question {
    pub(crate) fn asked_at(&self) -> Result<DateTime<Utc>> {
        time(&self.question_date)
    }
}

pub(crate) fn questions(folder: &Path) -> Result<Vec<Question>> {
    let text = std::fs::read_to_string(folder.join("longmemeval/questions.jsonl"))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns a store with the chats of LongMemEval: one person talks to an assistant.
pub(crate) fn chats(folder: &Path) -> Result<Store> {
    let store = Store::open_in_memory()?;
    add_chats(&store, folder)?;
    Ok(store)
}

pub(crate) fn add_chats(store: &Store, folder: &Path) -> Result<()> {
    for chat in long_chats(folder)? {
        let time = time(&chat.date)?;
        let messages = chat.turns.iter().enumerate().map(|(index, turn)| {
            let message = match turn.role.as_str() {
                "user" => Message::user(turn.content.as_str()),
                _ => Message::assistant(turn.content.as_str()),
            };
            message.with_id(format!("{}#{index}", chat.session_id)).at(time)
        });
        store.session(chat.session_id.as_str())?.append_all(messages)?;
    }
    Ok(())
}

fn time(text: &str) -> Result<DateTime<Utc>> {
    let (day, rest) = text.split_once(' ').ok_or("a date without a space")?;
    let clock = rest.rsplit(' ').next().unwrap_or("00:00");
    Ok(NaiveDateTime::parse_from_str(&format!("{day} {clock}"), "%Y/%m/%d %H:%M")?.and_utc())
}
