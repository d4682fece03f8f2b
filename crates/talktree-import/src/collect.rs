//! Files that programs go on writing: imported again and again, as far as they are new.
//!
//! The store keeps the state of each file that was imported, and which sessions came from one. So a file that is as it was costs
//! one look, and a session that is not in the store any more does not come back. Both are kept as hashes of paths and ids.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use talktree::{Error, Progress, Result, SessionId, Store};

use crate::draft::derive;
use crate::report::ImportReport;
use crate::{ImportOptions, Importer};

/// How much of the end of a file is read at a time to find the end of its last line.
const STEP: u64 = 64 << 10;

/// Imports files that programs go on writing.
///
/// Unlike an [`Importer`] it passes over a file that is as it was when it was imported last, reads a `*.jsonl` file up to its last
/// whole line, and leaves out sessions that it imported before and that were removed or erased since. Nothing is ever deleted
/// from the store because a file became shorter or is gone.
///
/// ```
/// use talktree::Store;
/// use talktree_import::{Collector, ImportOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("chat.jsonl");
/// std::fs::write(&path, "{\"role\": \"user\", \"content\": \"hi\"}\n{\"role\": \"assist").unwrap();
/// let store = Store::open_in_memory()?;
/// let mut collector = Collector::new(&store, ImportOptions::default());
/// assert!(collector.add(&path, |_| {})?); // it was read
/// let report = &collector.finish()?[0];
/// assert_eq!((report.added, report.dropped), (1, 0)); // the second message is still being written
///
/// let mut again = Collector::new(&store, ImportOptions::default());
/// assert!(!again.add(&path, |_| {})?); // it is as it was
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug)]
pub struct Collector<'a> {
    store: &'a Store,
    importer: Importer<'a>,
    /// What to keep of each file when it is stored to the end.
    waiting: HashMap<PathBuf, String>,
    sessions: HashSet<SessionId>,
}

impl<'a> Collector<'a> {
    /// Returns a collector for a store; the options hold for every file.
    #[must_use]
    pub fn new(store: &'a Store, options: ImportOptions) -> Self {
        let importer = Importer::of_live_files(store, options);
        Self { store, importer, waiting: HashMap::new(), sessions: HashSet::new() }
    }

    /// Returns whether a file is new, or not as it was when it was imported last.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be looked at; as every read.
    pub fn is_new(store: &Store, path: &Path) -> Result<bool> {
        let state = State::of(path)?.to_string();
        Ok(store.kept(&file_name(path))?.as_ref() != Some(&state))
    }

    /// Reads a file unless it is as it was; returns whether it was read. What it holds may wait to be stored with the next files.
    ///
    /// # Errors
    /// As [`Importer::add`].
    pub fn add(&mut self, path: &Path, progress: impl FnMut(Progress)) -> Result<bool> {
        // Before it is read: what is written meanwhile makes it new.
        let found = State::of(path)?;
        let state = found.to_string();
        if found.is_empty() || self.store.kept(&file_name(path))?.as_ref() == Some(&state) {
            return Ok(false);
        }
        let file = crate::open(path)?;
        let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
        match is_lines {
            true => {
                let lines = WholeLines::of(file).map_err(|source| io_error(path, source))?;
                if lines.end == 0 {
                    return Ok(false);
                }
                self.importer.add(path, lines, progress)?;
            }
            false => self.importer.add(path, file, progress)?,
        }
        self.waiting.insert(path.to_owned(), state);
        Ok(true)
    }

    /// Returns the reports of the files that are stored to the end, in order, each once.
    ///
    /// # Errors
    /// As every write.
    pub fn take_reports(&mut self) -> Result<Vec<ImportReport>> {
        let reports = self.importer.take_reports();
        self.keep(&reports)?;
        Ok(reports)
    }

    /// Stores what waits, and returns the remaining reports.
    ///
    /// # Errors
    /// As every write.
    pub fn finish(mut self) -> Result<Vec<ImportReport>> {
        let reports = self.importer.flush()?;
        self.keep(&reports)?;
        Ok(reports)
    }

    /// Keeps what was stored: after it, so that what is interrupted is read again.
    fn keep(&mut self, reports: &[ImportReport]) -> Result<()> {
        if self.importer.options().is_dry_run {
            return Ok(());
        }
        let mut values = Vec::new();
        for report in reports {
            if let Some(state) = self.waiting.remove(&report.path) {
                values.push((file_name(&report.path), state));
            }
            for id in &report.sessions {
                if self.sessions.insert(id.clone())
                    && self.store.session(id.clone())?.info()?.is_some()
                {
                    values.push((session_name(id), String::new()));
                }
            }
        }
        if values.is_empty() { Ok(()) } else { self.store.keep(&values) }
    }
}

/// Returns whether a session was imported by a collector once.
pub(crate) fn was_imported(store: &Store, id: &SessionId) -> Result<bool> {
    Ok(store.kept(&session_name(id))?.is_some())
}

fn file_name(path: &Path) -> String {
    format!("import:file:{}", derive(&["file", &path.to_string_lossy()]))
}

fn session_name(id: &SessionId) -> String {
    format!("import:session:{}", derive(&["imported", id.as_str()]))
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// What changes when a file does: its length and time, and those of the log of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State([(u64, u128); 2]);

impl State {
    fn is_empty(&self) -> bool {
        self.0[0].0 == 0 && self.0[1].0 == 0
    }

    pub(crate) fn of(path: &Path) -> Result<Self> {
        let about = |found: Metadata| {
            let time = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            (found.len(), time.unwrap_or_default().as_nanos())
        };
        let file = std::fs::metadata(path).map_err(|source| io_error(path, source))?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self([about(file), std::fs::metadata(log).map(about).unwrap_or_default()]))
    }
}

impl std::fmt::Display for State {
    /// A later version may read more of a file, so it is of this one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [(length, time), (log, log_time)] = self.0;
        write!(f, "{} {length} {time} {log} {log_time}", env!("CARGO_PKG_VERSION"))
    }
}

/// A file of lines up to the end of its last whole one, as long as it was when it was opened.
struct WholeLines {
    file: File,
    at: u64,
    end: u64,
}

impl WholeLines {
    fn of(mut file: File) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        let (mut start, mut found) = (length, None);
        while start > 0 && found.is_none() {
            let end = start;
            start = end.saturating_sub(STEP);
            file.seek(SeekFrom::Start(start))?;
            let mut piece = Vec::new();
            Read::by_ref(&mut file).take(end - start).read_to_end(&mut piece)?;
            found = piece.iter().rposition(|byte| *byte == b'\n').map(|at| start + at as u64 + 1);
        }
        let line = found.unwrap_or(0);
        file.seek(SeekFrom::Start(line))?;
        // Not every program ends its last line.
        let rest = io::BufReader::new(Read::by_ref(&mut file).take(length - line));
        let is_whole = serde_json::from_reader::<_, serde::de::IgnoredAny>(rest).is_ok();
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { file, at: 0, end: if is_whole { length } else { line } })
    }
}

impl Read for WholeLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read(&mut buffer[..wanted])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for WholeLines {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let place = match place {
            SeekFrom::End(offset) => SeekFrom::Start(self.end.saturating_add_signed(offset)),
            place => place,
        };
        self.at = self.file.seek(place)?;
        Ok(self.at)
    }
}
