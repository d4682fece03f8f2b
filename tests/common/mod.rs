//! Helpers for several test programs.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

pub mod data;
pub mod example;
pub mod model;
pub mod process;
pub mod random;
pub mod server;

use talktree::{Durability, Message, Result, Store};

/// A store in a temporary folder, which is removed with it.
pub struct Scratch {
    pub store: Store,
    pub folder: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Result<Self> {
        let folder = folder()?;
        let store = open(&folder)?;
        Ok(Self { store, folder })
    }

    /// Closes and reopens the store.
    pub fn reopen(&mut self) -> Result<()> {
        self.store = Store::open_in_memory()?;
        self.store = open(&self.folder)?;
        Ok(())
    }
}

/// Returns a temporary folder, removed when it is dropped.
pub fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|source| talktree::Error::Io { path: std::env::temp_dir(), source })
}

/// Opens the store in a folder, without waiting for the disk.
pub fn open(folder: &tempfile::TempDir) -> Result<Store> {
    Store::options().durability(Durability::Normal).open(folder.path().join("talk.db"))
}

/// Returns the ids as one text, to compare with a drawn tree.
pub fn drawn(messages: &[Message]) -> String {
    let ids: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
    ids.join(" ")
}

/// Returns one message per letter; the letter is text and id.
pub fn letters(text: &str) -> Vec<Message> {
    let message = |letter: char| Message::user(letter.to_string()).with_id(letter.to_string());
    text.chars().filter(|letter| *letter != ' ').map(message).collect()
}
