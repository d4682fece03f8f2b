//! Folders: which of their files may be conversations, and the import of all of them.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::driver::is_of_file;
use crate::formats::opencode;
use crate::report::ImportReport;
use talktree::{Error, Progress, Result, Store};

use crate::{ImportOptions, Importer};

/// What [`import_folder`] read and what it could not.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FolderImport {
    /// The reports of the files, in order of their names.
    pub reports: Vec<ImportReport>,
    /// The files and folders that were not imported, each with the reason; not every file in a folder is a conversation.
    pub skipped: Vec<(PathBuf, Error)>,
}

/// Imports the conversations of all files below a folder, such as `~/.claude/projects`.
///
/// [`conversation_files`] finds the files. One that cannot be imported is skipped, and the outcome says why. Archives are
/// skipped, too: the command `talktree import` reads them. `progress` receives files.
///
/// ```
/// use talktree::Store;
/// use talktree_import::{ImportOptions, import_folder};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("chats");
/// std::fs::create_dir_all(path.join("monday")).unwrap();
/// std::fs::write(path.join("monday/chat.json"), r#"[{"role": "user", "content": "hi"}]"#).unwrap();
/// std::fs::write(path.join("settings.json"), r#"{"colour": "blue"}"#).unwrap();
///
/// let store = Store::open_in_memory()?;
/// let imported = import_folder(&store, &path, &ImportOptions::default(), |_| {})?;
/// assert_eq!((imported.reports.len(), imported.reports[0].added), (1, 1));
/// assert_eq!(imported.skipped[0].0, path.join("settings.json"));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] if the folder cannot be read; [`Error::Interrupted`]; as every write. What was imported until then stays,
/// and a second import completes it.
pub fn import_folder(
    store: &Store,
    folder: impl AsRef<Path>,
    options: &ImportOptions,
    mut progress: impl FnMut(Progress),
) -> Result<FolderImport> {
    let folder = folder.as_ref();
    std::fs::read_dir(folder).map_err(|source| Error::Io { path: folder.to_owned(), source })?;
    let mut imported = FolderImport::default();
    let files = conversation_files(folder, |path, source| {
        imported.skipped.push((path.to_owned(), Error::Io { path: path.to_owned(), source }));
    });
    let total = files.len() as u64;
    let mut importer = Importer::new(store, options.clone());
    for (done, path) in files.into_iter().enumerate() {
        progress(Progress::new(done as u64, total));
        let added = open(&path).and_then(|file| importer.add(&path, file, |_| {}));
        imported.reports.extend(importer.take_reports());
        match added {
            Ok(()) => {}
            Err(error) if is_of_file(&error) => imported.skipped.push((path, error)),
            // One of the store: the next file would have it, too.
            Err(error) => return Err(error),
        }
    }
    imported.reports.extend(importer.finish()?);
    progress(Progress::new(total, total));
    Ok(imported)
}

fn open(path: &Path) -> Result<File> {
    match has_extension(path, &["zip"]) {
        false => crate::open(path),
        true => {
            let why = "only the command `talktree import` reads archives".to_owned();
            Err(Error::Import { path: path.to_owned(), line: None, why })
        }
    }
}

/// Returns the `*.jsonl`, `*.json`, `*.zip`, `*.zst`, `*.db` and `*.vscdb` below a folder, in order of their names. Of a session that
/// opencode keeps in a file for each message, only the file of the session is there.
///
/// Links are followed, and each folder is visited once, so a cycle of links ends. What cannot be read is skipped, and
/// `unreadable` is called once with it: a folder, a link that leads nowhere, and what has the name of such a file but is a
/// pipe, a device or a socket.
///
/// ```
/// use talktree_import::conversation_files;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// for name in ["b.jsonl", "a.json", "notes.txt"] {
///     std::fs::write(path.join(name), "").unwrap();
/// }
/// let found = conversation_files(path, |_, _| {});
/// assert_eq!(found, [path.join("a.json"), path.join("b.jsonl")]);
/// ```
pub fn conversation_files(
    folder: &Path,
    mut unreadable: impl FnMut(&Path, io::Error),
) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut visited = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed = std::fs::canonicalize(&folder).and_then(|real| match visited.insert(real) {
            true => Ok(std::fs::read_dir(&folder)?.collect()),
            false => Ok(Vec::new()),
        });
        for entry in listed.unwrap_or_else(|error| vec![Err(error)]) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    unreadable(&folder, error);
                    continue;
                }
            };
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder || path.is_dir() {
                if !opencode::is_beside_sessions(&path) {
                    folders.push(path);
                }
            } else if has_extension(&path, &["jsonl", "json", "zip", "zst", "db", "vscdb"]) {
                match is_readable(&path) {
                    Ok(()) => files.push(path),
                    Err(error) => unreadable(&path, error),
                }
            }
        }
    }
    files.sort_unstable();
    files
}

/// Returns why a path cannot be opened as a file.
fn is_readable(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(io::Error::other("it is a pipe, a device or a socket, not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), "it is a symbolic link that leads nowhere"))
        }
        Err(error) => Err(error),
    }
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|it| wanted.iter().any(|known| known.eq_ignore_ascii_case(it)))
}
