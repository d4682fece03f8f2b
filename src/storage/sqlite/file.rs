//! The file of a database: its path, which is resolved once, and its identity, which must stay.
//!
//! Invariant: nothing but SQLite opens the files of a database that this process has open. On POSIX, closing any
//! descriptor of a file drops all locks that this process holds on it, those of other stores included; the next process
//! that closes the database would then remove the log under those that still write to it. [`is_open`] answers for every
//! file that a caller names.
//!
//! An erasure reads the bytes of these files. Its descriptors are kept until no store of this process has the file open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talktree_text::foreign;

use super::header;
use crate::error::{Error, Result};
use crate::id::shorten;
use crate::sql::{BackendError, BackendResult};

/// The longest path of a file that SQLite opens on Unix, in bytes; it appends up to eight.
const MAX_PATH_BYTES: usize = 504;

/// The longest name of a file in its folder: what file systems allow, less the eight bytes that SQLite appends.
const MAX_NAME_BYTES: usize = 255 - 8;

/// What SQLite appends to the name of a database.
pub(super) const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// A folder that was changed later than this may be changed again without another time: some systems count in ticks of
/// 10 ms.
const FRESH: Duration = Duration::from_millis(50);
/// Names are checked at every so many calls, whatever the time of the folder: not every file system keeps that.
const CHECKS_BETWEEN: u64 = 16;

/// The file of an open database. It is known to this process as open until this is dropped.
pub(super) struct StoreFile {
    path: PathBuf,
    log: PathBuf,
    /// SQLite's index of the log, through which connections lock each other out.
    lock_file: PathBuf,
    id: Option<FileId>,
    folder: PathBuf,
    folder_id: Option<FileId>,
    /// When the folder was last changed before the last check that found every name in place, in nanoseconds; 0 if unknown.
    settled: AtomicU64,
    checks: AtomicU64,
    /// The log of the writer and its lock file; they last as long as the writer.
    log_ids: OnceLock<[FileId; 2]>,
    /// What the file was when it was opened without locks; `None` if it was opened with locks.
    unlocked: Option<Stamp>,
    number: u64,
}

impl StoreFile {
    /// Resolves the path of a file that exists.
    pub(super) fn of(path: &Path) -> Result<Self> {
        require_regular_file(path)?;
        let path = resolve(path)?;
        check_name(&path)?;
        let file = std::fs::metadata(&path).map_err(|source| io(&path, source))?;
        header::require_one(&path, &file)?;
        let id = FileId::of_metadata(&file);
        let number = register(&path, id);
        let folder = path.parent().unwrap_or(&path).to_owned();
        Ok(Self {
            log: beside(&path, "-wal"),
            id,
            folder_id: FileId::of(&folder),
            folder,
            settled: AtomicU64::new(0),
            checks: AtomicU64::new(0),
            lock_file: beside(&path, "-shm"),
            log_ids: OnceLock::new(),
            unlocked: None,
            number,
            path,
        })
    }

    /// Returns the same file, to be read without locks, if that is safe now.
    ///
    /// # Errors
    /// [`Error::UnreadableLog`] if there is a log or a journal.
    pub(super) fn without_locks(mut self) -> BackendResult<Self> {
        self.unlocked = Stamp::of(&self.path);
        self.check_unwritten()?;
        Ok(self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what tells this file from every other one.
    pub(super) fn identity(&self) -> String {
        match self.id {
            Some(FileId { device, inode }) => format!("file {device}:{inode}"),
            None => format!("file {}", self.path.display()),
        }
    }

    /// Returns whether the file is read without locks.
    pub(super) fn is_without_locks(&self) -> bool {
        self.unlocked.is_some()
    }

    /// Remembers the log, which the writer has open.
    pub(super) fn remember_log(&self) {
        let ids = [FileId::of(&self.log), FileId::of(&self.lock_file)];
        if let [Some(log), Some(lock_file)] = ids {
            // The writer stays the same, so both do.
            let _ = self.log_ids.set([log, lock_file]);
        }
        if let Some(open) = registry().iter_mut().find(|open| open.number == self.number) {
            open.beside.extend(ids.into_iter().flatten());
        }
    }

    /// Forgets the log and the lock file: the last connection removes them when it is closed, and the system then gives their
    /// numbers to new files, which do not belong to the store. So it is with a database that has lost its name.
    pub(super) fn forget_removed(&self) {
        let is_named = FileId::of(&self.path) == self.id;
        if let Some(open) = registry().iter_mut().find(|open| open.number == self.number) {
            open.beside.clear();
            open.id = open.id.filter(|_| is_named);
        }
    }

    /// Checks that the path still leads to the file, and to the log and the lock file that the writer has open.
    ///
    /// What is written to a log without a name is lost to others, and the file without its log is old. Without the lock file,
    /// the next process creates another one, and both write at once.
    ///
    /// A change of a name changes the time of its folder, so most calls read only that. They do not read the time of the log:
    /// some systems then record the exact time of its next change on disk, which makes each sync slower.
    pub(super) fn check(&self) -> BackendResult<()> {
        let folder = std::fs::metadata(&self.folder).map_err(|_| self.moved())?;
        if FileId::of_metadata(&folder) != self.folder_id {
            return Err(self.moved());
        }
        let changed = folder.modified().ok();
        let nanos = changed.map_or(0, nanos);
        let is_due = self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_BETWEEN);
        if is_due || nanos == 0 || self.settled.load(Ordering::Relaxed) != nanos {
            self.check_names()?;
            let is_fresh = changed.is_none_or(|at| at.elapsed().is_ok_and(|age| age < FRESH));
            self.settled.store(if is_fresh { 0 } else { nanos }, Ordering::Relaxed);
        }
        self.check_unwritten()
    }

    fn check_names(&self) -> BackendResult<()> {
        let is_log_moved = self.log_ids.get().is_some_and(|[log, lock_file]| {
            FileId::of(&self.log) != Some(*log) || FileId::of(&self.lock_file) != Some(*lock_file)
        });
        if is_log_moved || FileId::of(&self.path) != self.id {
            return Err(self.moved());
        }
        Ok(())
    }

    /// Returns the size of the database without its log.
    pub(super) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(u64::MAX, |file| file.len())
    }

    /// Checks that nobody has written to a file that is read without locks.
    fn check_unwritten(&self) -> BackendResult<()> {
        let Some(stamp) = &self.unlocked else { return Ok(()) };
        let has =
            |suffix| std::fs::metadata(beside(&self.path, suffix)).is_ok_and(|file| file.len() > 0);
        match Stamp::of(&self.path).as_ref() != Some(stamp) || has("-wal") || has("-journal") {
            true => Err(BackendError::Own(Error::UnreadableLog { path: self.path.clone() })),
            false => Ok(()),
        }
    }

    fn moved(&self) -> BackendError {
        BackendError::Own(Error::StoreMoved { path: self.path.clone() })
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        let mut registry = registry();
        registry.retain(|open| open.number != self.number);
        // Under the lock: another thread may open the same file, which it registers first.
        close_unused(|id| {
            registry.iter().any(|open| open.id == Some(id) || open.beside.contains(&id))
        });
    }
}

/// A database that this process has open.
struct Open {
    number: u64,
    path: PathBuf,
    id: Option<FileId>,
    /// The log and the lock file, which others may have renamed since.
    beside: Vec<FileId>,
}

static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

fn registry() -> MutexGuard<'static, Vec<Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register(path: &Path, id: Option<FileId>) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    registry().push(Open { number, path: path.to_owned(), id, beside: Vec::new() });
    number
}

/// Returns whether this process has a file open as the database, log or lock file of a store, by whatever name; or, if
/// there is no file, whether SQLite would take one of this name for the log, lock file or journal of an open store.
pub(crate) fn is_open(path: &Path) -> bool {
    let Some(id) = FileId::of(path) else { return is_named(path) };
    let is_beside =
        |open: &Open| SUFFIXES.iter().any(|s| FileId::of(&beside(&open.path, s)) == Some(id));
    registry()
        .iter()
        .any(|open| open.id == Some(id) || open.beside.contains(&id) || is_beside(open))
}

/// Does what [`is_open`] does for a name without a file, and where the system has no ids of files.
fn is_named(path: &Path) -> bool {
    let Ok(path) = path.canonicalize().or_else(|_| in_real_folder(path)) else { return false };
    let folder = path.parent().and_then(FileId::of);
    let is_same = |other: PathBuf| {
        // A folder may be mounted at two places.
        let is_in_folder = || folder.is_some() && other.parent().and_then(FileId::of) == folder;
        other == path || other.file_name() == path.file_name() && is_in_folder()
    };
    registry().iter().any(|open| SUFFIXES.iter().any(|suffix| is_same(beside(&open.path, suffix))))
}

/// Returns the path with a suffix, as SQLite names the files beside a database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Identifies a file while it exists, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id of the file at a path; `None` if there is none, or if the system has no such ids.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().and_then(Self::of_metadata)
    }

    #[cfg(unix)]
    pub(super) fn of_metadata(file: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self { device: file.dev(), inode: file.ino() })
    }

    #[cfg(not(unix))]
    pub(super) fn of_metadata(_: &std::fs::Metadata) -> Option<Self> {
        None
    }
}

fn nanos(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Tells whether a file was written.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        Some(Self { bytes: file.len(), modified: file.modified().ok() })
    }
}

/// Creates the file of a new database, which only its owner can read; does nothing if it exists.
pub(super) fn make_private(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    require_own_files_beside(&resolve_new(path)?)?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.exists() => Ok(()),
        Err(source) => Err(io(path, explained(path, source))),
    }
}

/// Returns an error if there is a file of somebody else where SQLite puts its files beside a new database: SQLite would delete
/// it.
fn require_own_files_beside(path: &Path) -> Result<()> {
    let is_foreign = |suffix: &str| {
        let other = beside(path, suffix);
        // Opening a pipe would wait until another program writes to it.
        if std::fs::metadata(&other).is_ok_and(|other| !other.is_file()) {
            return true;
        }
        let Some(first) = header::beginning(&other, 4) else { return false };
        // A file of SQLite that is not in use may be empty, or begin with zeros.
        !first.is_empty() && first != [0; 4] && !OWN.contains(&first.as_slice())
    };
    match SUFFIXES[1..].iter().find(|suffix| is_foreign(suffix)) {
        Some(suffix) => {
            let other = beside(path, suffix);
            let why = format!(
                "there is a file {}, which SQLite would take for its own and delete; move it, or choose another name",
                foreign::path(&other)
            );
            Err(Error::NotAStore { path: path.to_owned(), why })
        }
        None => Ok(()),
    }
}

/// What the files beside a database begin with: a log and its lock file, in either byte order, and a journal.
const OWN: [&[u8]; 5] = [
    b"\x37\x7F\x06\x82",
    b"\x37\x7F\x06\x83",
    b"\x18\xE2\x2D\x00",
    b"\x00\x2D\xE2\x18",
    b"\xD9\xD5\x05\xF9",
];

/// Says why a file cannot be created, where the system's own words do not.
fn explained(path: &Path, error: std::io::Error) -> std::io::Error {
    let missing = |why: String| std::io::Error::new(std::io::ErrorKind::NotFound, why);
    if is_loop(path) {
        return std::io::Error::other("it is a loop of symbolic links");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (std::fs::read_link(path), folder) {
        (Ok(target), _) => missing(format!(
            "it is a symbolic link to {}, which does not exist",
            foreign::path(&target)
        )),
        (_, Some(folder)) if !folder.exists() => {
            missing(format!("there is no folder {} for it", foreign::path(folder)))
        }
        _ => error,
    }
}

/// Returns whether a path is a symbolic link that leads back to itself.
fn is_loop(path: &Path) -> bool {
    /// No system follows more.
    const MAX_LINKS: usize = 64;
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = std::fs::read_link(&at) else { return false };
        at = at.parent().unwrap_or(Path::new("")).join(target);
    }
    true
}

/// Returns the absolute path of a file that may not exist, in a folder without symbolic links.
pub(super) fn resolve_new(path: &Path) -> Result<PathBuf> {
    let absolute = in_real_folder(path).map_err(|source| io(path, source))?;
    check_name(&absolute)?;
    Ok(absolute)
}

fn in_real_folder(path: &Path) -> std::io::Result<PathBuf> {
    let mut absolute = std::path::absolute(path)?;
    if let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name())
        // Without the folder, creating the file fails and says so.
        && let Ok(folder) = folder.canonicalize()
    {
        absolute = folder.join(name);
    }
    Ok(absolute)
}

/// Returns the absolute path of a file, without symbolic links.
///
/// A store keeps this path: a later change of the current folder or of a link must not lead a new connection to another
/// file, and SQLite must not read a name as a URI. SQLite also puts the write-ahead log beside the resolved file.
fn resolve(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|source| io(path, source))
}

pub(super) fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Returns an error if SQLite cannot use the path. If it is too long, SQLite's own error does not say so. If it is the name of
/// a file beside another database, SQLite deletes the file when that database is opened or closed.
fn check_name(path: &Path) -> Result<()> {
    let bytes = path.as_os_str().len();
    let name = path.file_name().map_or(&[][..], std::ffi::OsStr::as_encoded_bytes);
    let name_bytes = name.len();
    let suffix = SUFFIXES[1..].iter().find(|suffix| name.ends_with(suffix.as_bytes()));
    let why = match suffix {
        Some(suffix) => {
            format!("SQLite takes a file whose name ends with {suffix} for its own, and deletes it")
        }
        None if cfg!(not(unix)) => return Ok(()),
        None if bytes > MAX_PATH_BYTES => {
            format!("it has {bytes} bytes, over SQLite's limit of {MAX_PATH_BYTES}")
        }
        None if name_bytes > MAX_NAME_BYTES => format!(
            "its last name has {name_bytes} bytes, over the limit of {MAX_NAME_BYTES}: SQLite appends up to eight"
        ),
        None => return Ok(()),
    };
    let given = shorten(&path.to_string_lossy()).into_owned();
    Err(Error::InvalidValue { what: "path of a store", given, why })
}

/// Returns an error unless the path is a regular file. SQLite checks its content.
fn require_regular_file(path: &Path) -> Result<()> {
    let file = std::fs::metadata(path).map_err(|source| match is_loop(path) {
        true => io(path, explained(path, source)),
        false => io(path, source),
    })?;
    let why = match file.file_type() {
        kind if kind.is_file() => match file.len() {
            bytes @ 1..header::BYTES => {
                let why = format!("it has {bytes} bytes, less than the header of a database");
                if !header::is_other(path) {
                    let what = format!("{}: it was cut off: {why}", path.display());
                    return Err(Error::Corrupt { what });
                }
                why
            }
            _ => return Ok(()),
        },
        kind if kind.is_dir() => "it is a directory".to_owned(),
        // Opening a pipe blocks until someone writes into it.
        _ => "it is not a regular file".to_owned(),
    };
    Err(Error::NotAStore { path: path.to_owned(), why })
}

/// Returns why a file cannot be opened for reading; `None` if it can, or if a store of this process has it open.
pub(super) fn unreadable(path: &Path) -> Option<Error> {
    if is_open(path) {
        return None;
    }
    let error = std::fs::File::open(path).err()?;
    let why = format!("it cannot be read: {error}");
    Some(io(path, std::io::Error::new(error.kind(), why)))
}

/// Returns the URI that makes SQLite read a file without locks.
pub(super) fn immutable_uri(path: &Path) -> String {
    use std::fmt::Write;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'\\' | b':' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            // Writing to a string does not fail.
            byte => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// An open file with its identity.
type Kept = (FileId, Arc<File>);

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the files of which `is_in_use` is false.
pub(super) fn close_unused(is_in_use: impl Fn(FileId) -> bool) {
    kept().retain(|(id, _)| is_in_use(*id));
}

impl StoreFile {
    /// Opens the database, its log and its lock file for reading, those that exist.
    ///
    /// The caller keeps the store open while it reads.
    pub(super) fn raw_files(&self) -> io::Result<Vec<(PathBuf, Arc<File>)>> {
        let mut files = Vec::new();
        for suffix in SUFFIXES {
            let path = beside(self.path(), suffix);
            match open(&path) {
                Ok(file) => files.push((path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }
}

fn open(path: &Path) -> io::Result<Arc<File>> {
    let mut kept = kept();
    if let Some(id) = FileId::of(path)
        && let Some((_, file)) = kept.iter().find(|(known, _)| *known == id)
    {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(File::open(path)?);
    // Of the file that was opened: the name may lead to another one by now.
    if let Some(id) = FileId::of_metadata(&file.metadata()?) {
        kept.push((id, Arc::clone(&file)));
    }
    Ok(file)
}

/// Reads bytes from a place in a file, at most as many as there is room for.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, offset);
    #[cfg(not(any(unix, windows)))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read(bytes)
    }
}
