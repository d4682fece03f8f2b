//! Scans the folder: the keys of its skills, and notices about what looks like a skill and is none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry};
use std::path::Path;

use super::check_key;
use super::notice::FileNotice;
use super::text_file::{DOCUMENT, is_absence, why};

/// The most skills of a folder: every prompt lists them.
const MAX_SKILLS: usize = 1_000;

/// The most notices of one reading.
pub(super) const MAX_NOTICES: usize = 1_000;

/// How many entries of a folder without a document are looked at.
const MAX_LOOKED_AT: usize = 100;

/// The keys in a folder, and what is left out or odd.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) keys: BTreeSet<String>,
    pub(super) notices: Vec<FileNotice>,
}

/// What an entry of the folder is.
enum Found {
    File(String),
    Folder(String),
    Nothing,
    Odd(FileNotice),
}

/// Reads the names in a folder. With `allowed` all others are ignored.
pub(super) fn scan(root: &Path, allowed: Option<&BTreeSet<String>>) -> std::io::Result<Scan> {
    let mut scan = Scan::default();
    // By key: whether there is a folder, and whether there is a file.
    let mut found: BTreeMap<String, [bool; 2]> = BTreeMap::new();
    let mut has_more = false;
    for entry in fs::read_dir(root)? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                scan.note(FileNotice::left_out(root, why(&error)));
                break;
            }
        };
        let (key, place) = match look_at(&entry) {
            Found::Folder(key) => (key, 0),
            Found::File(key) => (key, 1),
            Found::Nothing => continue,
            Found::Odd(notice) => {
                // Nobody has asked for it.
                if allowed.is_none() {
                    scan.note(notice);
                }
                continue;
            }
        };
        if allowed.is_some_and(|allowed| !allowed.contains(&key)) {
            continue;
        }
        if let Err((_, why)) = check_key(&key) {
            let why = format!("its name cannot be a key: {why}");
            scan.note(FileNotice::left_out(entry.path(), why));
            continue;
        }
        found.entry(key).or_default()[place] = true;
        if found.len() > MAX_SKILLS {
            has_more = true;
            found.pop_last();
        }
    }
    if has_more {
        let why = format!(
            "it holds over {MAX_SKILLS} skills; those after the first {MAX_SKILLS}, by name, are left out"
        );
        scan.note(FileNotice::left_out(root, why));
    }
    let missing = allowed.into_iter().flatten().filter(|key| !found.contains_key(*key));
    for key in missing {
        scan.note(FileNotice::left_out(
            root.join(key),
            "it is allowed, but there is no such skill",
        ));
    }
    scan.note_look_alikes(root, &found);
    scan.keys = found.into_keys().collect();
    Ok(scan)
}

impl Scan {
    pub(super) fn note(&mut self, notice: FileNotice) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice);
        }
    }

    /// Notes keys with two documents, and keys that differ by case alone.
    fn note_look_alikes(&mut self, root: &Path, found: &BTreeMap<String, [bool; 2]>) {
        let mut by_case: BTreeMap<String, &str> = BTreeMap::new();
        for (key, places) in found {
            let file = root.join(format!("{key}.md"));
            if *places == [true, true] {
                let why = format!("{key}/{DOCUMENT} is the document of this key");
                self.note(FileNotice::left_out(&file, why));
            }
            if let Some(other) = by_case.insert(key.to_lowercase(), key) {
                let path = if places[0] { root.join(key) } else { file };
                let why = format!(
                    "its key differs from {other:?} by case alone; a model may confuse them"
                );
                self.note(FileNotice::odd(path, why));
            }
        }
    }
}

fn look_at(entry: &DirEntry) -> Found {
    let path = entry.path();
    let name = entry.file_name();
    if name.as_encoded_bytes().starts_with(b".") {
        return Found::Nothing;
    }
    let Some(name) = name.to_str() else {
        // A model could not name it.
        return Found::Odd(FileNotice::left_out(path, "its name is not Unicode"));
    };
    let kind = match fs::metadata(&path) {
        Ok(kind) => kind,
        // It was removed since the folder was read.
        Err(error) if is_absence(&error) && fs::symlink_metadata(&path).is_err() => {
            return Found::Nothing;
        }
        Err(error) => return Found::Odd(FileNotice::left_out(path, why(&error))),
    };
    if kind.is_dir() {
        return match fs::symlink_metadata(path.join(DOCUMENT)) {
            Ok(_) => Found::Folder(name.to_owned()),
            Err(error) if is_absence(&error) => look_inside(&path),
            Err(error) => Found::Odd(FileNotice::left_out(path, why(&error))),
        };
    }
    match name.rsplit_once('.') {
        Some((key, "md")) => Found::File(key.to_owned()),
        Some((_, end))
            if end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("markdown") =>
        {
            Found::Odd(FileNotice::left_out(path, "only files whose names end in .md are skills"))
        }
        _ => Found::Nothing,
    }
}

/// Looks in a folder without a document for a file that its author may take for the document.
fn look_inside(folder: &Path) -> Found {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_LOOKED_AT);
    for entry in entries {
        let name = entry.file_name();
        if name.eq_ignore_ascii_case(DOCUMENT) {
            let why = format!("the document of a skill is named {DOCUMENT}");
            return Found::Odd(FileNotice::left_out(entry.path(), why));
        }
        let nested = entry.path().join(DOCUMENT);
        if fs::symlink_metadata(&nested).is_ok() {
            let why = "folders in folders are not read; move it one folder up";
            return Found::Odd(FileNotice::left_out(entry.path(), why));
        }
    }
    Found::Nothing
}
