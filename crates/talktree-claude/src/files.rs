//! Imports transcripts from the files of the agent's command, and exports them.
//!
//! A project is a folder. It has `<session>.jsonl` with one entry a line, and `<session>/<subpath>.jsonl` for each other
//! transcript. The content of `<subpath>.meta.json`, about a subagent, is stored as an entry of type `agent_metadata`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use talktree::records::fields::Fields;
use talktree::{Error, Json, Result, Store, TranscriptKey};

use crate::chain::is_metadata;
use crate::invalid;
use crate::store::SessionStore;

/// The most entries in one append of an import.
const MAX_ENTRIES: usize = 500;
/// The size, in bytes, at which an append of an import gets no more entries.
const MAX_BYTES: usize = 1 << 20;

/// The result of an import or an export of transcripts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TranscriptFiles {
    /// The files that were read or written.
    pub files: Vec<PathBuf>,
    /// The number of entries that were added, or written to the files.
    pub entries: u64,
    /// In an import: the number of entries that the store had already.
    pub known: u64,
    /// In an import: the lines that are no entries. They were skipped.
    pub unread: Vec<UnreadLine>,
    /// In an export: the subpaths that are not safe in a path. They were not written.
    pub refused: Vec<String>,
}

/// A line of a file that is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// The reason.
    pub why: String,
}

impl SessionStore {
    /// Imports a session from the folder of its project, such as `~/.claude/projects/-home-ann-shop`, with its subagents.
    ///
    /// The project is the name of the folder. Lines that are no entries are skipped and reported. Entries are appended 500
    /// at a time. A second import adds only the entries without a `uuid` again.
    ///
    /// ```
    /// use talktree::{Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let folder = home.path().join("-home-ann-shop");
    /// std::fs::create_dir(&folder).unwrap();
    /// std::fs::write(folder.join("s.jsonl"), "{\"type\":\"user\",\"uuid\":\"1\"}\n{\"type\":").unwrap();
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let read = sessions.import_session(&folder, "s")?;
    /// assert_eq!((read.entries, read.unread[0].line), (1, 2));
    /// assert_eq!(sessions.log().load(&TranscriptKey::new("-home-ann-shop", "s"))?.unwrap().len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::InvalidValue`] if the session or the folder has no name that is safe
    /// in a path; as [`append`](Self::append).
    pub fn import_session(
        &self,
        project_folder: impl AsRef<Path>,
        session: &str,
    ) -> Result<TranscriptFiles> {
        let folder = project_folder.as_ref();
        let project = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        check_names(project, session)?;
        let key = TranscriptKey::new(project, session);
        let mut read = TranscriptFiles::default();
        self.import_file(&folder.join(format!("{session}.jsonl")), &key, &mut read)?;
        for (subpath, file) in find(&folder.join(session), "subagents")? {
            let key = key.clone().subpath(subpath);
            self.import_file(&file, &key, &mut read)?;
            self.import_metadata(&file.with_extension("meta.json"), &key, &mut read)?;
        }
        Ok(read)
    }

    /// Writes a session to a folder of projects, as the agent's command keeps it: to `<project>/<session>.jsonl`, its other
    /// transcripts below `<project>/<session>/`.
    ///
    /// Only new files are written, with mode 0600. A subpath that is not safe in a path is not written but reported.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let (key, entry) = (TranscriptKey::new("p", "s"), Json::parse(r#"{"type":"user"}"#)?);
    /// sessions.append(&key, &[entry.clone()])?;
    /// sessions.append(&key.subpath("../../.ssh/config"), &[entry])?;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let written = sessions.export_session("p", "s", folder.path())?;
    /// assert_eq!(written.refused, ["../../.ssh/config"]);
    /// assert_eq!(std::fs::read_to_string(folder.path().join("p/s.jsonl")).unwrap(), "{\"type\":\"user\"}\n");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if the session has no transcript, [`Error::InvalidValue`] if the project or session is not
    /// safe in a path, [`Error::Io`] if a file exists or cannot be written, or a folder below `projects` is a symbolic link.
    pub fn export_session(
        &self,
        project: &str,
        session: &str,
        projects: impl AsRef<Path>,
    ) -> Result<TranscriptFiles> {
        check_names(project, session)?;
        let key = TranscriptKey::new(project, session);
        let mut subpaths = self.log().subpaths(project, session)?;
        subpaths.sort();
        let main = self.log().load(&key)?;
        if main.is_none() && subpaths.is_empty() {
            return Err(Error::UnknownSession { id: session.into() });
        }
        let mut written = TranscriptFiles::default();
        let projects = projects.as_ref();
        if let Some(entries) = main {
            let file = folder_in(projects, &[project])?.join(format!("{session}.jsonl"));
            write(&file, &entries, &mut written)?;
        }
        for subpath in subpaths {
            if !is_safe_subpath(&subpath) {
                written.refused.push(subpath);
                continue;
            }
            let entries = self.log().load(&key.clone().subpath(&subpath))?.unwrap_or_default();
            let parts: Vec<&str> =
                [project, session].into_iter().chain(subpath.split(['/', '\\'])).collect();
            let Some((name, above)) = parts.split_last() else { continue };
            let file = folder_in(projects, above)?.join(format!("{name}.jsonl"));
            let (metadata, lines): (Vec<Json>, Vec<Json>) =
                entries.into_iter().partition(is_metadata);
            if !lines.is_empty() {
                write(&file, &lines, &mut written)?;
            }
            if let Some(metadata) = metadata.last().and_then(Fields::of) {
                let metadata = metadata.without(&["type"]).into_json();
                let metadata = metadata.unwrap_or_else(|| Value::Object(Default::default()).into());
                write(&file.with_extension("meta.json"), &[metadata], &mut written)?;
            }
        }
        Ok(written)
    }

    fn import_file(
        &self,
        path: &Path,
        key: &TranscriptKey,
        read: &mut TranscriptFiles,
    ) -> Result<()> {
        let lines = BufReader::with_capacity(1 << 18, open(path)?).split(b'\n');
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (number, line) in (1..).zip(lines) {
            match entry(&at(path, line)?) {
                Ok(Some(entry)) => {
                    bytes += entry.as_str().len();
                    batch.push(entry);
                }
                Ok(None) => {}
                Err(why) => {
                    read.unread.push(UnreadLine { file: path.to_owned(), line: number, why })
                }
            }
            if batch.len() >= MAX_ENTRIES || bytes >= MAX_BYTES {
                self.add(key, &std::mem::take(&mut batch), read)?;
                bytes = 0;
            }
        }
        read.files.push(path.to_owned());
        self.add(key, &batch, read)
    }

    fn add(&self, key: &TranscriptKey, batch: &[Json], read: &mut TranscriptFiles) -> Result<()> {
        let appended = self.append(key, batch)?;
        read.entries += appended.added;
        read.known += appended.known;
        Ok(())
    }

    /// Appends the metadata of a subagent from its file; ignores a file that is missing or is not an object.
    fn import_metadata(
        &self,
        path: &Path,
        key: &TranscriptKey,
        read: &mut TranscriptFiles,
    ) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        let mut metadata = Vec::new();
        at(path, open(path)?.read_to_end(&mut metadata))?;
        let Ok(metadata) = serde_json::from_slice::<Fields>(&metadata) else { return Ok(()) };
        let metadata = metadata.with("type", Some(Value::from("agent_metadata"))).into_json();
        read.files.push(path.to_owned());
        self.add(key, metadata.as_slice(), read)
    }
}

fn check_names(project: &str, session: &str) -> Result<()> {
    let names = [("project", project), ("transcript's session", session)].into_iter();
    match names.into_iter().find(|(_, name)| !is_safe_subpath(name) || name.contains(['/', '\\'])) {
        Some((what, name)) => Err(invalid(what, name, "it is no safe name of a file")),
        None => Ok(()),
    }
}

/// Returns whether a subpath leads to a file below its session's folder, on every system.
fn is_safe_subpath(subpath: &str) -> bool {
    let is_safe = |part: &str| !matches!(part, "" | "." | "..");
    !subpath.contains(['\0', ':']) && subpath.split(['/', '\\']).all(is_safe)
}

fn at<T>(path: &Path, done: io::Result<T>) -> Result<T> {
    done.map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// Opens a file to read, unless it is a part of an open store.
fn open(path: &Path) -> Result<fs::File> {
    at(
        path,
        match Store::is_open_file(path) {
            true => Err(io::Error::other("it is a file of an open store")),
            false if at(path, fs::metadata(path))?.is_file() => fs::File::open(path),
            false => Err(io::Error::other("it is not a file")),
        },
    )
}

/// Returns the entry in a line; none if it is blank.
fn entry(line: &[u8]) -> Result<Option<Json>, String> {
    let line = std::str::from_utf8(line)
        .map_err(|bad| format!("not UTF-8 at byte {}", bad.valid_up_to()))?;
    if line.trim().is_empty() {
        return Ok(None);
    }
    let entry = Json::parse(line).map_err(|error| error.to_string())?;
    match entry.as_str().starts_with('{') {
        true => Ok(Some(entry)),
        false => Err("not a JSON object".to_owned()),
    }
}

/// Finds the files of transcripts below a subpath of a folder, in order of their subpaths. Symbolic links are not followed.
fn find(folder: &Path, subpath: &str) -> Result<Vec<(String, PathBuf)>> {
    let (mut folders, mut found) = (vec![subpath.to_owned()], Vec::new());
    while let Some(subpath) = folders.pop() {
        let below = folder.join(&subpath);
        let listed = match fs::read_dir(&below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listed => at(&below, listed)?,
        };
        for file in listed {
            let file = at(&below, file)?;
            let kind = at(&below, file.file_type())?;
            let Ok(name) = file.file_name().into_string() else { continue };
            match name.strip_suffix(".jsonl") {
                _ if kind.is_dir() => folders.push(format!("{subpath}/{name}")),
                Some(name) if kind.is_file() => {
                    found.push((format!("{subpath}/{name}"), file.path()))
                }
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns a folder below another one, which is created. None of the folders on the way may be a symbolic link.
fn folder_in(above: &Path, names: &[&str]) -> Result<PathBuf> {
    at(above, fs::create_dir_all(above))?;
    let mut folder = above.to_owned();
    for name in names {
        folder.push(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => at(&folder, created)?,
        }
        if !at(&folder, fs::symlink_metadata(&folder))?.is_dir() {
            return at(&folder, Err(io::ErrorKind::NotADirectory.into()));
        }
    }
    Ok(folder)
}

/// Writes entries to a new file, one a line.
fn write(path: &Path, entries: &[Json], written: &mut TranscriptFiles) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(at(path, options.open(path))?);
    let save = || -> io::Result<()> {
        for entry in entries {
            // No string of valid JSON has the end of a line.
            writeln!(file, "{}", entry.as_str().replace(['\n', '\r'], " "))?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    // A file with a part of a transcript would look complete.
    at(path, save().inspect_err(|_| drop(fs::remove_file(path))))?;
    written.entries += entries.len() as u64;
    written.files.push(path.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_subpaths_are_refused() {
        for safe in ["subagents/agent-1", "subagents/workflows/run-1/agent-2", "a..b/.c"] {
            assert!(is_safe_subpath(safe), "{safe}");
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "\\a",
            "..",
            "a/../b",
            "a\\..\\b",
            "./a",
            "a/.",
            "C:a",
            "C:\\a",
            "\\\\host\\a",
            "a\0b",
            "a//b",
            "a/",
        ] {
            assert!(!is_safe_subpath(bad), "{bad:?}");
        }
        for bad in ["a/b", "a\\b", ""] {
            assert!(check_names("-home-ann", bad).is_err(), "{bad:?}");
        }
        assert!(check_names("-home-ann", "s").is_ok());
    }
}
