//! Real histories: every path of every conversation in the folder of real data.

#[path = "../../../tests/common/data.rs"]
mod data;

use std::path::{Path, PathBuf};

use talktree::{Message, Store};
use talktree_import::ImportOptions;

use crate::Result;

/// Returns the histories with the names of their files; none if the folder is absent.
pub(crate) fn histories() -> Result<Vec<(String, Vec<Message>)>> {
    let mut found = Vec::new();
    let mut paths = Vec::new();
    if let Some(folder) = data::folder() {
        files(&folder, &mut paths)?;
    }
    for path in paths {
        let store = Store::open_in_memory()?;
        // Some files of the folder are no conversations, or of formats that are not read.
        let imported = talktree_import::import(&store, &path, &ImportOptions::default(), |_| {});
        let Ok(report) = imported else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for session in &report.sessions {
            let chat = store.session(session)?;
            for leaf in chat.leaves()? {
                let (view, raw) = (chat.at(&leaf).history()?, chat.at(&leaf).raw_history()?);
                if raw != view {
                    found.push((name.clone(), raw));
                }
                // A window may begin at any message.
                found.push((name.clone(), view[view.len() / 2..].to_vec()));
                found.push((name.clone(), view));
            }
        }
    }
    Ok(found)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if path.is_dir() => files(&path, found)?,
            Some("json" | "jsonl") => found.push(path),
            _ => {}
        }
    }
    Ok(())
}
