//! Imports transcripts from the files of the agent's command, and exports them.
//!
//! A project is a folder. It has `<session>.jsonl` with one entry a line, and `<session>/<subpath>.jsonl` for each other
//! transcript. The content of `<subpath>.meta.json`, about a subagent, is stored as an entry of type `agent_metadata`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use talktree::{Error, Json, Result, Store, TranscriptKey};

use crate::chain::is_metadata;
use crate::store::SessionStore;
use crate::text::Object;

/// The most entries in one append of an import.
const MAX_ENTRIES: usize = 500;
/// The size, in bytes, at which an append of an import gets no more entries.
const MAX_BYTES: usize = 1 << 20;
/// How many folders deep the files of subagents are looked for.
const MAX_DEPTH: usize = 32;

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
        let session_folder = folder.join(session);
        let mut found = Vec::new();
        find(&session_folder.join("subagents"), "subagents", MAX_DEPTH, &mut found)?;
        for (file, subpath) in found {
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
            write(&file, entries.iter(), &mut written)?;
        }
        for subpath in subpaths {
            if !is_safe_subpath(&subpath) {
                written.refused.push(subpath);
                continue;
            }
            let Some(entries) = self.log().load(&key.clone().subpath(&subpath))? else { continue };
            export_subpath(projects, &key, &subpath, &entries, &mut written)?;
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
            match entry(&line.map_err(|source| at(path, source))?) {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    bytes += entry.as_str().len();
                    batch.push(entry);
                }
                Err(why) => {
                    read.unread.push(UnreadLine { file: path.to_owned(), line: number, why });
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
        let mut file = match open(path) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            file => file?,
        };
        let mut metadata = Vec::new();
        file.read_to_end(&mut metadata).map_err(|source| at(path, source))?;
        let Ok(Some(metadata)) = entry(&metadata) else { return Ok(()) };
        let mut metadata = Object::of(metadata.as_str());
        metadata.set("type", "\"agent_metadata\"");
        read.files.push(path.to_owned());
        self.add(key, &[Json::parse(&metadata.to_text())?], read)
    }
}

fn check_names(project: &str, session: &str) -> Result<()> {
    for (what, name) in [("project", project), ("transcript's session", session)] {
        if !is_safe_name(name) {
            let given = name.chars().take(80).collect();
            let why = "it is no safe name of a file".to_owned();
            return Err(Error::InvalidValue { what, given, why });
        }
    }
    Ok(())
}

fn at(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Opens a file to read, unless it is a part of an open store.
fn open(path: &Path) -> Result<fs::File> {
    if Store::is_open_file(path) {
        return Err(at(path, io::Error::other("it is a file of an open store")));
    }
    let open = || match fs::metadata(path)?.is_file() {
        true => fs::File::open(path),
        false => Err(io::Error::other("it is not a file")),
    };
    open().map_err(|source| at(path, source))
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

/// Finds the files of transcripts below a folder, in order of their names, with their subpaths. Symbolic links are not
/// followed.
fn find(
    folder: &Path,
    subpath: &str,
    depth: usize,
    found: &mut Vec<(PathBuf, String)>,
) -> Result<()> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let mut listed = listed.map_err(|source| at(folder, source))?;
    listed.sort_by_key(fs::DirEntry::file_name);
    for file in listed {
        let name = file.file_name();
        let kind = file.file_type().map_err(|source| at(folder, source))?;
        let Some(name) = name.to_str() else { continue };
        match name.strip_suffix(".jsonl") {
            _ if kind.is_dir() && depth > 0 => {
                find(&file.path(), &format!("{subpath}/{name}"), depth - 1, found)?;
            }
            Some(name) if kind.is_file() => found.push((file.path(), format!("{subpath}/{name}"))),
            _ => {}
        }
    }
    Ok(())
}

fn export_subpath(
    projects: &Path,
    key: &TranscriptKey,
    subpath: &str,
    entries: &[Json],
    written: &mut TranscriptFiles,
) -> Result<()> {
    let parts: Vec<&str> = subpath.split(['/', '\\']).collect();
    let Some((name, folders)) = parts.split_last() else { return Ok(()) };
    let above = [&[&*key.project, &*key.session], folders].concat();
    let folder = folder_in(projects, &above)?;
    let (metadata, lines): (Vec<&Json>, Vec<&Json>) =
        entries.iter().partition(|entry| is_metadata(entry));
    if !lines.is_empty() {
        write(&folder.join(format!("{name}.jsonl")), lines.into_iter(), written)?;
    }
    if let Some(last) = metadata.last() {
        let mut metadata = Object::of(last.as_str());
        metadata.remove("type");
        let metadata = Json::parse(&metadata.to_text())?;
        write(&folder.join(format!("{name}.meta.json")), [&metadata].into_iter(), written)?;
    }
    Ok(())
}

/// Returns a folder below another one, which is created. None of the folders on the way may be a symbolic link.
fn folder_in(above: &Path, names: &[&str]) -> Result<PathBuf> {
    fs::create_dir_all(above).map_err(|source| at(above, source))?;
    let mut folder = above.to_owned();
    for name in names {
        folder.push(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created.map_err(|source| at(&folder, source))?,
        }
        let found = fs::symlink_metadata(&folder).map_err(|source| at(&folder, source))?;
        if !found.is_dir() {
            return Err(at(&folder, io::ErrorKind::NotADirectory.into()));
        }
    }
    Ok(folder)
}

/// Writes entries to a new file, one a line.
fn write<'a>(
    path: &Path,
    entries: impl Iterator<Item = &'a Json>,
    written: &mut TranscriptFiles,
) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|source| at(path, source))?;
    let save = || -> io::Result<u64> {
        let (mut file, mut count) = (BufWriter::new(file), 0);
        for entry in entries {
            // No string of valid JSON has the end of a line.
            file.write_all(entry.as_str().replace(['\n', '\r'], " ").as_bytes())?;
            file.write_all(b"\n")?;
            count += 1;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(count)
    };
    written.entries += save().map_err(|source| {
        // A file with a part of a transcript would look complete.
        let _ = fs::remove_file(path);
        at(path, source)
    })?;
    written.files.push(path.to_owned());
    Ok(())
}

/// Returns whether a project or session can be the name of a file.
fn is_safe_name(name: &str) -> bool {
    is_safe_subpath(name) && !name.contains(['/', '\\'])
}

/// Returns whether a subpath leads to a file below its session's folder, on every system.
fn is_safe_subpath(subpath: &str) -> bool {
    let is_safe = |part: &str| !matches!(part, "" | "." | "..");
    !subpath.contains(['\0', ':']) && subpath.split(['/', '\\']).all(is_safe)
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
        assert!(is_safe_name("-home-ann") && !is_safe_name("a/b") && !is_safe_name("a\\b"));
    }
}
