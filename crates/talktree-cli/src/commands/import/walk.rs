//! The files of a folder that may be conversations.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::failure::tell;
use crate::text::shown;

/// Returns the *.jsonl, *.json and *.zip below a folder, in order of their names.
///
/// Links are followed, and each folder is visited once, so a cycle of links ends. A folder that
/// cannot be read is reported and skipped.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut visited = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed = std::fs::canonicalize(&folder).and_then(|real| {
            Ok(if visited.insert(real) { Some(std::fs::read_dir(&folder)?) } else { None })
        });
        let entries = match listed {
            Ok(Some(entries)) => entries,
            Ok(None) => continue,
            Err(error) => {
                tell(&format!("{}: {error}", shown(&folder)));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_conversation(&path) && path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    files
}

fn is_conversation(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["jsonl", "json", "zip"].iter().any(|known| known.eq_ignore_ascii_case(extension))
    })
}
