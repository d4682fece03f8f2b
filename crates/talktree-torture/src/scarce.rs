//! Scarce resources: a full disk, a read-only disk, little memory.
//!
//! A real disk is filled to the last byte, if a small one can be mounted. Every verb runs with less and less memory.
//! Acknowledged messages stay, reads keep working, and when the resource is back, the same handle works again.

#![allow(
    unsafe_code,
    reason = "mounting and the limits of the system and of SQLite are C functions"
)]

use std::ffi::CString;
use std::path::{Path, PathBuf};

use rusqlite::ffi;
use talktree::{Error, Message, Store};

use crate::compaction::brief;
use crate::fixture::{Figures, Fixture, OPENINGS, Trouble, Try};
use crate::verbs;
use crate::{Report, Result, snapshot, vfs};

/// The token limit after which the session compacts automatically.
const THRESHOLD: u64 = 20_000;

/// How scarce each resource is.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The size of the disk that is filled, in MiB.
    #[arg(long, default_value_t = 8)]
    pub mebibytes: u32,
    /// How many memory limits each verb is tried with.
    #[arg(long, default_value_t = 150)]
    pub limits: u32,
}

/// Runs every verb with each resource scarce.
///
/// # Errors
/// If something fails that does not depend on the resource.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let _use = vfs::exclusive();
    let replay =
        format!("just torture scarce --mebibytes {} --limits {}", args.mebibytes, args.limits);
    if let Err(what) = full_disk(args.mebibytes, report) {
        report.failure(format!("full disk: {what}"), &replay);
    }
    little_memory(args.limits, report, &replay)
}

/// A small disk in memory, unmounted when it is dropped.
pub(crate) struct Disk {
    pub(crate) folder: tempfile::TempDir,
    target: CString,
}

impl Disk {
    pub(crate) fn mount(mebibytes: u32) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let target = CString::new(folder.path().to_string_lossy().as_bytes())?;
        let disk = Self { folder, target };
        disk.call(mebibytes, 0)?;
        Ok(disk)
    }

    fn make_read_only(&self, mebibytes: u32) -> std::io::Result<()> {
        self.call(mebibytes, libc::MS_REMOUNT | libc::MS_RDONLY)
    }

    fn call(&self, mebibytes: u32, flags: libc::c_ulong) -> std::io::Result<()> {
        let options = CString::new(format!("size={mebibytes}m"))?;
        let kind = c"tmpfs".as_ptr();
        // SAFETY: all pointers are strings that end with 0 and live through the call.
        let code = unsafe {
            libc::mount(kind, self.target.as_ptr(), kind, flags, options.as_ptr().cast())
        };
        if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // SAFETY: a string that ends with 0. The folder itself is removed after this.
        unsafe { libc::umount2(self.target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Appends to a session that compacts automatically until an append is refused; returns the acknowledged messages and
/// the error. A failed compaction does not undo the append before it.
fn append_until_refused(store: &Store) -> Result<(Vec<String>, Error)> {
    let chat = store.session_builder("chat").summarizer(brief).compact_after(THRESHOLD).open()?;
    let text = "coffee garden latency budget ".repeat(70);
    let mut acknowledged = Vec::new();
    loop {
        let id = format!("m{}", acknowledged.len());
        match chat.append(Message::user(format!("{id} {text}")).with_id(id.as_str())) {
            Ok(_) => acknowledged.push(id),
            Err(error) => return Ok((acknowledged, error)),
        }
        if acknowledged.len() > 100_000 {
            return Err("the disk does not fill".into());
        }
    }
}

/// Checks that all acknowledged messages can be read and found.
fn check_all_present(store: &Store, acknowledged: &[String]) -> Result<()> {
    let chat = store.session("chat")?;
    let ids: Vec<String> =
        chat.raw_history()?.into_iter().map(|message| message.id.to_string()).collect();
    if ids[..] != *acknowledged {
        return Err(
            format!("{} messages acknowledged, {} present", acknowledged.len(), ids.len()).into()
        );
    }
    for id in [acknowledged.first(), acknowledged.last()].into_iter().flatten() {
        let hits = store.search(id.as_str()).run()?.hits;
        if hits.len() != 1 || hits[0].id.as_str() != id {
            return Err(format!("a search for {id:?} finds {} messages", hits.len()).into());
        }
    }
    Ok(())
}

fn full_disk(mebibytes: u32, report: &mut Report) -> Result<()> {
    let disk = match Disk::mount(mebibytes) {
        Ok(disk) => disk,
        Err(error) => {
            report.fact("full disk", format!("skipped: cannot mount a disk ({error})"));
            return Ok(());
        }
    };
    let folder = disk.folder.path();
    let (path, filler) = (folder.join("talk.db"), folder.join("filler"));
    std::fs::write(&filler, vec![1; 1 << 20])?;
    let store = Store::open(&path)?;
    let (acknowledged, error) = append_until_refused(&store)?;
    if !matches!(error, Error::DiskFull) {
        return Err(format!("reported as: {error}").into());
    }
    // Use up the last bytes.
    let rest = fill(&folder.join("rest"));
    check_all_present(&store, &acknowledged)?;
    let verified = store.verify(|_| {});
    let many = (0..2_000).map(|n| Message::user(format!("of many {n} {}", "word ".repeat(50))));
    match store.session("chat")?.append_all(many) {
        Err(Error::DiskFull) => {}
        other => return Err(format!("append_all of 2 000 messages: {other:?}").into()),
    }
    match store.backup(folder.join("copy.db"), |_| {}) {
        Err(Error::DiskFull | Error::Io { .. }) => {}
        other => return Err(format!("backup: {other:?}").into()),
    }
    let names: Vec<_> =
        std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    if names.iter().any(|name| name.to_string_lossy().starts_with("copy")) {
        return Err(format!("a failed backup left a file behind: {names:?}").into());
    }
    if store.session("chat")?.compactions()?.is_empty() {
        return Err("nothing was compacted while the disk filled".into());
    }
    let deleted = store.session("chat")?.delete([&acknowledged[0].as_str().into()]);
    let left = &acknowledged[usize::from(deleted.is_ok())..];
    check_all_present(&store, left)?;
    std::fs::remove_file(&filler)?;
    std::fs::remove_file(folder.join("rest"))?;
    store.session("other")?.append(Message::user("space again"))?;
    check_all_present(&store, left)?;
    let held = snapshot(&store)?;
    let damages = store.verify(|_| {})?.damages;
    drop(store);
    let store = Store::open(&path)?;
    if !damages.is_empty() || held != snapshot(&store)? {
        return Err(format!("after reopening: {damages:?}").into());
    }
    report.fact("full disk: acknowledged before, all present", acknowledged.len());
    report.fact("full disk: bytes filled after the first refusal", rest);
    report.fact(
        "full disk: verify",
        match verified {
            Ok(verified) => format!("{} damages", verified.damages.len()),
            Err(error) => error.to_string(),
        },
    );
    report.fact(
        "full disk: delete",
        match deleted {
            Ok(_) => "done".to_owned(),
            Err(error) => error.to_string(),
        },
    );
    drop(store);
    read_only(&disk, mebibytes, &path, &held, report)
}

/// Writes until the disk is full; returns how many bytes were written.
fn fill(path: &Path) -> usize {
    use std::io::Write;
    let Ok(mut file) = std::fs::File::create(path) else { return 0 };
    let mut written = 0;
    while let Ok(count @ 1..) = file.write(&[1; 4096]) {
        written += count;
    }
    written
}

/// Checks the store on a read-only disk.
fn read_only(
    disk: &Disk,
    mebibytes: u32,
    path: &PathBuf,
    held: &str,
    report: &mut Report,
) -> Result<()> {
    disk.make_read_only(mebibytes)?;
    let store = Store::open_read_only(path)?;
    if snapshot(&store)? != held || store.search("space again").run()?.hits.len() != 1 {
        return Err("the store reads differently on a read-only disk".into());
    }
    match store.session("chat")?.append(Message::user("no")) {
        Err(Error::ReadOnly) => {}
        other => return Err(format!("append on a read-only disk: {other:?}").into()),
    }
    drop(store);
    // Opening for writing is either refused, or the store can be read but not appended to.
    let answer = match Store::open(path) {
        Ok(store) => match store.session("chat")?.append(Message::user("no")) {
            Err(error) => error.to_string(),
            Ok(_) => return Err("an append on a read-only disk succeeded".into()),
        },
        Err(error) => error.to_string(),
    };
    report.fact("read-only disk: opening for writing", answer);
    Ok(())
}

/// A limit on SQLite's memory: this many bytes more than it holds when the verb begins.
struct LittleMemory(i64);

impl Trouble for LittleMemory {
    fn begin(&self) {
        // SAFETY: plain functions of numbers.
        unsafe { ffi::sqlite3_hard_heap_limit64(ffi::sqlite3_memory_used() + self.0) };
    }

    fn end(&self) -> u64 {
        // SAFETY: as above; 0 means no limit.
        unsafe { ffi::sqlite3_hard_heap_limit64(0) };
        1
    }

    fn is_full_disk(&self) -> bool {
        false
    }
}

fn little_memory(limits: u32, report: &mut Report, replay: &str) -> Result<()> {
    let fixture = Fixture::new()?;
    let mut figures = Figures::default();
    for verb in verbs::all().chain(&OPENINGS) {
        let expected = fixture.expected(verb)?;
        for step in 0..limits {
            // The limits are denser where they are small.
            let bytes = i64::from(step) * i64::from(step) * 150;
            let trouble = LittleMemory(bytes);
            let one = Try { verb, trouble: &trouble, expected: &expected };
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                fixture.attempt(one, &mut figures)
            }));
            trouble.end();
            match tried {
                Ok(Ok(_)) => figures.injected += 1,
                Ok(Err(what)) => {
                    report.failure(format!("{} with {bytes} bytes: {what}", verb.name), replay);
                }
                Err(_) => {
                    report.failure(format!("{} with {bytes} bytes: a panic", verb.name), replay)
                }
            }
        }
    }
    let Figures { injected, failed, succeeded, errors, .. } = figures;
    report.fact("little memory: attempts", injected);
    report.fact("little memory: verb failed", failed);
    report.fact("little memory: verb succeeded", succeeded);
    for (error, count) in errors {
        report.fact(format!("little memory: {count} x"), error);
    }
    Ok(())
}
