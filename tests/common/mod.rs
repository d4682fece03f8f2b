//! Helpers for several test programs.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

pub mod content;
pub mod data;
pub mod example;
pub mod model;
pub mod process;
pub mod random;
pub mod server;

use std::path::{Path, PathBuf};

use talktree::{Durability, Message, Result, Store};

/// A store in a temporary folder, which is removed with it, or on a server.
pub struct Scratch {
    pub store: Store,
    pub folder: tempfile::TempDir,
    address: PathBuf,
}

impl Scratch {
    pub fn new() -> Result<Self> {
        let folder = folder()?;
        let address = folder.path().join("talk.db");
        Self::at(folder, address)
    }

    /// Creates a store in a file, also where the tests run on a server.
    pub fn in_file() -> Result<Self> {
        let folder = folder()?;
        let address = folder.path().join("talk.sqlite");
        Self::at(folder, address)
    }

    /// Creates a store on the server of the tests, if there is one.
    pub fn on_server() -> Result<Option<Self>> {
        on_server().map(|address| Self::at(folder()?, address.into())).transpose()
    }

    fn at(folder: tempfile::TempDir, address: PathBuf) -> Result<Self> {
        Ok(Self { store: open_at(&address)?, folder, address })
    }

    /// Closes and reopens the store.
    pub fn reopen(&mut self) -> Result<()> {
        self.store = Store::open_in_memory()?;
        self.store = open_at(&self.address)?;
        Ok(())
    }
}

/// Returns the URL of a new store on the server of the tests, if there is one.
pub fn on_server() -> Option<String> {
    let server = std::env::var("TALKTREE_TEST_POSTGRES").ok();
    let server = server.filter(|_| cfg!(feature = "postgres"))?;
    Some(format!("{server}schema=t{}", uuid::Uuid::now_v7().simple()))
}

/// Returns a temporary folder, removed when it is dropped.
pub fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|source| talktree::Error::Io { path: std::env::temp_dir(), source })
}

/// Opens the store in a folder, without waiting for the disk.
pub fn open(folder: &tempfile::TempDir) -> Result<Store> {
    open_at(&folder.path().join("talk.db"))
}

fn open_at(address: &Path) -> Result<Store> {
    Store::options().durability(Durability::Normal).open_at(address)
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
