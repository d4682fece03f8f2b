//! A folder whose files are the documents of a block.
//!
//! Invariant: a file that did not change since the last update is not read, and a document with the same text is not written,
//! so no version is added.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use talktree::{Context, Document, Result};

use crate::text_file::{open_in, whole, why};
use crate::{FileNotice, check_key, failed, folder};

/// The maximum number of documents of a folder.
const MAX_DOCUMENTS: usize = 10_000;

/// When a file changed last, and its size.
type Stamp = (Option<SystemTime>, u64);

/// A folder whose `.md` and `.txt` files are the documents of a stored block. Their names are the keys.
///
/// [`update`](Self::update) stores what changed. Files that have more than 1 MiB, are not UTF-8, or are links out of the folder are
/// left out, and so are all after the first 10 000 by name. Hidden files and folders in the folder are not looked at.
///
/// ```
/// use talktree::{Block, Store};
/// use talktree_skills::DocumentFolder;
///
/// # let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("shop.md"), "The shop opens at nine.")?;
/// let store = Store::open_in_memory()?;
/// // Chats read the block; this session writes it.
/// let knowledge = Block::knowledge().across_sessions();
/// let files = store.session_builder("files").block("knowledge", knowledge).open()?;
///
/// let folder = DocumentFolder::open(dir.path())?;
/// assert_eq!(folder.update(files.context(), "knowledge")?.written, ["shop.md"]);
/// assert_eq!(folder.update(files.context(), "knowledge")?.written.len(), 0); // nothing changed
///
/// let chat = store
///     .session_builder("telegram:4711")
///     .block("knowledge", Block::knowledge().across_sessions().read_only())
///     .open()?;
/// assert_eq!(chat.context().search("knowledge", "when does the shop open", 1)?[0].key, "shop.md");
/// # Ok::<(), talktree::BoxError>(())
/// ```
#[derive(Debug)]
pub struct DocumentFolder {
    path: PathBuf,
    /// The files as the last update saw them; `None` before the first, and while one runs or after it failed.
    seen: Mutex<Option<BTreeMap<String, Stamp>>>,
}

/// What [`DocumentFolder::update`] changed in a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderChanges {
    /// The keys of the documents that were stored.
    pub written: Vec<String>,
    /// The keys of the documents that were removed, because their file is gone.
    pub removed: Vec<String>,
    /// The changed files that are not stored.
    pub left_out: Vec<FileNotice>,
}

impl DocumentFolder {
    /// Returns the folder at this path. Nothing is stored before [`update`](Self::update).
    ///
    /// # Errors
    /// [`Error::Io`](talktree::Error::Io) if it is missing, is not a folder, or cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { path: folder(path.as_ref())?, seen: Mutex::default() })
    }

    /// Stores the files that changed since the last call as documents of a block, and removes the documents without a file.
    ///
    /// Without a change it only lists the folder with the size and time of each file. A file that is left out keeps the
    /// document that it had. Threads may call it at the same time.
    ///
    /// # Errors
    /// [`Error::Io`](talktree::Error::Io) if the folder cannot be read; as [`Context::set_document`] and
    /// [`Context::remove_document`]. What was stored until then stays, and the next call goes on.
    pub fn update(&self, context: &Context, label: &str) -> Result<FolderChanges> {
        // Taken, so that no lock is held while a block is written: it may be one of the program's.
        let before = self.seen().take();
        let mut changes = FolderChanges::default();
        let root = self.path.canonicalize().map_err(|source| failed(&self.path, source))?;
        let (files, notices) = files(&root).map_err(|source| failed(&self.path, source))?;
        if before.as_ref() == Some(&files) {
            *self.seen() = before;
            return Ok(changes);
        }
        changes.left_out = notices;
        let before = before.unwrap_or_default();
        let stored = context.documents(label)?;
        let stored: BTreeSet<String> = stored.into_iter().map(|entry| entry.key).collect();
        for (name, stamp) in &files {
            if before.get(name) == Some(stamp) && stored.contains(name) {
                continue;
            }
            let text = open_in(&root, Path::new(name)).and_then(|file| {
                whole(file).map_err(|why| FileNotice::left_out(root.join(name), why))
            });
            let text = match text {
                Ok(text) => text,
                Err(notice) => {
                    changes.left_out.push(notice);
                    continue;
                }
            };
            if context.load(label, name)?.as_ref() != Some(&text) {
                context.set_document(label, &Document::new(name, text))?;
                changes.written.push(name.clone());
            }
        }
        for key in stored {
            if !files.contains_key(&key) && context.remove_document(label, &key)? {
                changes.removed.push(key);
            }
        }
        *self.seen() = Some(files);
        Ok(changes)
    }

    fn seen(&self) -> MutexGuard<'_, Option<BTreeMap<String, Stamp>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the files of a folder that are documents, and notices of those that look like one and are left out.
fn files(root: &Path) -> std::io::Result<(BTreeMap<String, Stamp>, Vec<FileNotice>)> {
    let (mut files, mut notices, mut has_more) = (BTreeMap::new(), Vec::new(), false);
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let ends =
            [".md", ".txt"].iter().any(|end| name.as_encoded_bytes().ends_with(end.as_bytes()));
        if !ends || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        let Some(name) = name.to_str() else {
            notices.push(FileNotice::left_out(path, "its name is not Unicode"));
            continue;
        };
        if let Err(why) = check_key(name) {
            notices.push(FileNotice::left_out(path, format!("its name cannot be a key: {why}")));
            continue;
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => {
                files.insert(name.to_owned(), (found.modified().ok(), found.len()));
            }
            Ok(_) => {}
            Err(error) => notices.push(FileNotice::left_out(path, why(error))),
        }
        if files.len() > MAX_DOCUMENTS {
            has_more = true;
            files.pop_last();
        }
    }
    if has_more {
        let why = format!(
            "it has over {MAX_DOCUMENTS} documents; those after the first {MAX_DOCUMENTS}, by name, are left out"
        );
        notices.push(FileNotice::left_out(root, why));
    }
    Ok((files, notices))
}
