//! ZIP archives: the export that ChatGPT sends.
//!
//! Invariant: what an archive unpacks to is limited, for each entry and for all. An entry over its limit is named, and the
//! others follow. Of several entries with one name, `ZipArchive` reads the last one: the others are named, too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
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
    let mut copy = file.try_clone().map_err(|error| cannot(error.into()))?;
    let mut archive = ZipArchive::new(file).map_err(cannot)?;
    let hidden = match archive.has_duplicate_names() {
        true => hidden_entries(&mut copy, archive.central_directory_start())
            .map_err(|error| cannot(error.into()))?,
        false => BTreeMap::new(),
    };
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
        for _ in 0..hidden.get(name.as_bytes()).copied().unwrap_or_default() {
            let why = "a later entry of the archive has the same name; this one is not read";
            with(Entry { name: name.clone(), kind, file: Err(named(why.to_owned())) })?;
        }
        with(Entry { name: name.clone(), kind, file })?;
    }
    Ok(())
}

/// Returns how many entries before the last one have each name, from the central directory of the archive.
fn hidden_entries(file: &mut File, start: u64) -> io::Result<BTreeMap<Vec<u8>, u64>> {
    /// The length of a header up to its name. The lengths of its name, extra field and comment are at bytes 28, 30 and 32.
    const HEADER: usize = 46;
    file.seek(SeekFrom::Start(start))?;
    let mut directory = BufReader::new(file);
    let mut hidden: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut header = [0; HEADER];
    while directory.read_exact(&mut header).is_ok() && header.starts_with(b"PK\x01\x02") {
        let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let mut name = vec![0; length(28)];
        directory.read_exact(&mut name)?;
        directory.seek_relative((length(30) + length(32)) as i64)?;
        hidden.entry(name).and_modify(|count| *count += 1).or_default();
    }
    Ok(hidden)
}

fn is_chatgpt(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("conversations") && name.ends_with(".json")
}

fn is_json(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.contains("__macosx") && (name.ends_with(".json") || name.ends_with(".jsonl"))
}
