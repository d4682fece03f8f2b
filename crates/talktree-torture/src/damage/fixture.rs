//! The store that is damaged: it has every kind of content.

use std::path::Path;

use talktree::{Durability, Message, Session, Store};

use crate::Result;
use crate::compaction::by_words;
use crate::verbs;

/// How the names of each part begin: the same content, in sessions of its own.
const NAMES: [&str; 2] = ["a ", "b "];

/// Builds the store and returns the ids of its sessions.
pub(super) fn build(path: &Path) -> Result<Vec<String>> {
    let store = Store::options().durability(Durability::Normal).open(path)?;
    for name in NAMES {
        verbs::fill(&store, name)?;
    }
    // The pages of a removed session are free.
    let gone = store.session("gone")?;
    gone.append_all((0..100).map(|n| Message::user(format!("message {n} that goes"))))?;
    store.remove(gone.id())?;
    let mut ids: Vec<String> = store.sessions()?.iter().map(|it| it.id.to_string()).collect();
    ids.sort();
    // One rebuild gives the index the same pages each time; later messages stay pending.
    store.rebuild_search()?;
    for (at, id) in ids.iter().enumerate() {
        let chat = session(&store, at, id)?;
        chat.append_all((0..5).map(|n| Message::user(format!("pending {n}"))))?;
        chat.visible_tokens()?;
    }
    Ok(ids)
}

/// Returns the session at this position; every fifth one counts tokens in words.
pub(super) fn session(store: &Store, at: usize, id: &str) -> talktree::Result<Session> {
    if at.is_multiple_of(5) { by_words(store, id) } else { store.session(id) }
}
