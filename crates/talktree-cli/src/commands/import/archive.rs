//! ZIP archives: the export that ChatGPT sends.
//!
//! An importer seeks in its input, and an entry of an archive is a stream. So each entry is copied to a temporary file,
//! not to memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use zip::ZipArchive;

use crate::failure::{Failure, Result};

/// What a ZIP archive begins with.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

/// The largest entry, in bytes: an archive may hold far more than its own size.
const MAX_ENTRY_BYTES: u64 = 16 << 30;

/// An entry of an archive: its name, whether it is named as conversations are, and its content.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_named: bool,
    pub(super) file: Result<File>,
}

/// Calls `with` for each entry with conversations: `conversations*.json`, or all JSON if there is no
/// such entry. An entry that cannot be read is given with its failure, and the others follow.
pub(super) fn each_conversation(
    path: &Path,
    file: File,
    mut with: impl FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let cannot =
        |error: zip::result::ZipError| Failure::Input(format!("{}: {error}", path.display()));
    let mut archive = ZipArchive::new(file).map_err(cannot)?;
    // An entry whose name cannot be read is not a conversation.
    let names: Vec<String> =
        archive.file_names().flatten().map(std::borrow::Cow::into_owned).collect();
    let mut chosen: Vec<&String> = names.iter().filter(|name| is_chatgpt(name)).collect();
    let is_named = !chosen.is_empty();
    if !is_named {
        chosen = names.iter().filter(|name| is_json(name)).collect();
    }
    if chosen.is_empty() {
        return Err(Failure::Input(format!(
            "{}: the archive holds no conversations",
            path.display()
        )));
    }
    chosen.sort_unstable();
    for name in chosen {
        let path = path.join(name);
        let file = match archive.by_name(name) {
            Ok(entry) if !entry.is_file() => continue,
            Ok(mut entry) => spool(&mut entry, &path),
            Err(error) => Err(Failure::Input(format!("{}: {error}", path.display()))),
        };
        with(Entry { name: name.clone(), is_named, file })?;
    }
    Ok(())
}

/// Returns a temporary file with the content of a reader; it is deleted when it is closed.
pub(super) fn spool(reader: &mut impl Read, path: &Path) -> Result<File> {
    let cannot = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let mut file = tempfile::tempfile().map_err(cannot)?;
    let bytes = std::io::copy(&mut reader.take(MAX_ENTRY_BYTES + 1), &mut file).map_err(cannot)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    match bytes > MAX_ENTRY_BYTES {
        true => Err(Failure::Input(format!(
            "{} unpacks to more than the limit of {MAX_ENTRY_BYTES} bytes",
            path.display()
        ))),
        false => Ok(file),
    }
}

fn is_chatgpt(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("conversations") && name.ends_with(".json")
}

fn is_json(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.contains("__macosx") && (name.ends_with(".json") || name.ends_with(".jsonl"))
}
