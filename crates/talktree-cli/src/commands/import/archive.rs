//! ZIP archives: the export that ChatGPT sends.
//!
//! Invariant: what an archive unpacks to is limited, for each entry and for all. An entry over its limit is named, and the
//! others follow. An archive in which two entries have one name is refused: `ZipArchive` reads only the last of them.

use std::fs::File;
use std::path::Path;

use zip::ZipArchive;

use super::spool::{Limit, MAX_ARCHIVE_BYTES, spool};
use crate::failure::{Failure, Result};
use crate::text::shown;

/// What a ZIP archive begins with.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

/// An entry of an archive.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) file: Result<File>,
}

/// What an entry seems to be, by its name and by the names beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `conversations*.json`, as in an export of ChatGPT.
    Conversations,
    /// Other JSON beside these: an export also has settings and feedback.
    Beside,
    /// JSON in an archive without `conversations*.json`.
    Json,
}

/// Calls `with` for each entry that is JSON, `conversations*.json` first. An entry that cannot be read is given with its
/// failure, and the others follow.
pub(super) fn each_conversation(
    path: &Path,
    file: File,
    mut with: impl FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let cannot = |error: zip::result::ZipError| Failure::Input(format!("{}: {error}", shown(path)));
    let mut archive = ZipArchive::new(file).map_err(cannot)?;
    if archive.has_duplicate_names() {
        let why = "two entries of the archive have the same name";
        return Err(Failure::Input(format!("{}: {why}", shown(path))));
    }
    // An entry whose name cannot be read is not a conversation.
    let names: Vec<String> =
        archive.file_names().flatten().map(std::borrow::Cow::into_owned).collect();
    let is_export = names.iter().any(|name| is_chatgpt(name));
    let mut chosen: Vec<&String> =
        names.iter().filter(|name| is_json(name) || is_chatgpt(name)).collect();
    if chosen.is_empty() {
        return Err(Failure::Input(format!("{}: the archive holds no conversations", shown(path))));
    }
    chosen.sort_unstable_by_key(|name| (!is_chatgpt(name), *name));
    let mut left = MAX_ARCHIVE_BYTES;
    for name in chosen {
        let spooled = match archive.by_name(name) {
            Ok(entry) if !entry.is_file() => continue,
            Ok(mut entry) => {
                let limit = Limit::of_entry(entry.compressed_size(), left);
                // The archive says how long an entry is. If it lies, unpacking fails where the entry should end.
                let spooled = limit.check(entry.size()).and_then(|()| {
                    let spooled = spool(&mut entry, &limit);
                    let read = spooled.as_ref().map_or(limit.bytes(), |(_, bytes)| *bytes);
                    left = left.saturating_sub(read);
                    spooled
                });
                spooled.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let named = |why| Failure::Input(format!("{}: {why}", shown(&path.join(name))));
        let file = spooled.map(|(file, _)| file).map_err(named);
        let kind = match is_export {
            true if is_chatgpt(name) => Kind::Conversations,
            true => Kind::Beside,
            false => Kind::Json,
        };
        with(Entry { name: name.clone(), kind, file })?;
    }
    Ok(())
}

fn is_chatgpt(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("conversations") && name.ends_with(".json")
}

fn is_json(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.contains("__macosx") && (name.ends_with(".json") || name.ends_with(".jsonl"))
}
