//! The sessions of the list that was printed last on a terminal: `@1` names the first of them.
//!
//! They are in a file of the user's cache folder. What other programs read is no list for people, and is not kept.

use std::io::Write;
use std::path::PathBuf;

use talktree::SessionId;
use tempfile::NamedTempFile;

/// How many sessions are kept.
const MAX_KEPT: usize = 1_000;

fn file() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let folders = etcetera::choose_base_strategy().ok()?;
    Some(folders.cache_dir().join("talktree").join("last-list.json"))
}

/// Keeps the sessions of a list; a list that cannot be kept is printed all the same.
pub(crate) fn keep<'a>(ids: impl Iterator<Item = &'a SessionId>) {
    let ids: Vec<&SessionId> = ids.take(MAX_KEPT).collect();
    let write = |path: PathBuf| -> Option<()> {
        let folder = path.parent()?;
        std::fs::create_dir_all(folder).ok()?;
        let mut file = NamedTempFile::new_in(folder).ok()?;
        file.write_all(&serde_json::to_vec(&ids).ok()?).ok()?;
        file.persist(&path).ok().map(drop)
    };
    let _ = file().and_then(write);
}

/// Returns the ids of the sessions, the first one of the list first; none if no list is kept.
pub(crate) fn read() -> Vec<String> {
    let text = file().and_then(|path| std::fs::read(path).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Forgets the list: of what is erased, no id may be left.
pub(crate) fn forget() {
    let _ = file().map(std::fs::remove_file);
}
