//! A layer between SQLite and the system: it records the system calls that change the disk, and makes calls fail.
//!
//! [`install`] makes it the default of the process, so talktree uses it unchanged. Every call is passed on to the real
//! layer. While a [`Record`] is taken, changes of the disk are recorded in order, so that the disk can be rebuilt as a
//! power cut would leave it. While a [`Fault`] is armed, the n-th call of its kind fails, once or from then on.
//! [`slow_syncs`] makes the disk a slow one.
//!
//! There is one layer per process, so tests that use it run one at a time: [`exclusive`].

mod calls;
mod disk;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::ffi;

pub use calls::install;
pub use disk::{Cut, Disk, Event, Files, Record, write_files};

/// A kind of system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Opening a file.
    Open,
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Write,
    /// Syncing a file to the disk.
    Sync,
    /// Removing a file.
    Delete,
    /// Locking the file.
    Lock,
    /// Mapping the shared memory of the write-ahead log.
    ShmMap,
    /// Locking a part of that memory.
    ShmLock,
}

/// Which call fails, and how.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The kind of call that fails.
    pub call: Call,
    /// How many calls of the kind succeed before.
    pub after: u64,
    /// Whether all later calls of the kind fail, too.
    pub is_sticky: bool,
    /// Whether a write fails because the disk is full, not because it is broken.
    pub is_full: bool,
}

impl Fault {
    /// Returns the error code that SQLite gets.
    fn code(self) -> i32 {
        match self.call {
            Call::Open => ffi::SQLITE_CANTOPEN,
            Call::Read => ffi::SQLITE_IOERR_READ,
            Call::Write if self.is_full => ffi::SQLITE_FULL,
            Call::Write => ffi::SQLITE_IOERR_WRITE,
            Call::Sync => ffi::SQLITE_IOERR_FSYNC,
            Call::Delete => ffi::SQLITE_IOERR_DELETE,
            Call::Lock => ffi::SQLITE_IOERR_LOCK,
            Call::ShmMap => ffi::SQLITE_IOERR_SHMMAP,
            Call::ShmLock => ffi::SQLITE_IOERR_SHMLOCK,
        }
    }
}

struct Armed {
    fault: Fault,
    seen: u64,
    failed: u64,
}

/// An open file.
struct Handle {
    path: PathBuf,
    /// Whether the next sync also syncs its folder, as SQLite does with logs it has created.
    is_folder_due: bool,
}

struct State {
    record: Option<Record>,
    armed: Option<Armed>,
    handles: BTreeMap<u64, Handle>,
    next_handle: u64,
}

static STATE: Mutex<State> =
    Mutex::new(State { record: None, armed: None, handles: BTreeMap::new(), next_handle: 1 });
static USE: Mutex<()> = Mutex::new(());

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no other test of this process uses the layer, and reserves it.
pub fn exclusive() -> MutexGuard<'static, ()> {
    install();
    USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to record changes of the disk.
pub fn start_record() {
    state().record = Some(Record::default());
}

/// Returns the number of events recorded so far.
pub fn recorded() -> usize {
    state().record.as_ref().map_or(0, Record::len)
}

/// Ends the record and returns it.
pub fn end_record() -> Record {
    state().record.take().unwrap_or_default()
}

/// Makes a call fail from now on.
pub fn arm(fault: Fault) {
    state().armed = Some(Armed { fault, seen: 0, failed: 0 });
}

/// Disarms the fault; returns how many calls failed.
pub fn disarm() -> u64 {
    state().armed.take().map_or(0, |armed| armed.failed)
}

/// How many microseconds each sync takes longer.
static SYNC_DELAY: AtomicU64 = AtomicU64::new(0);

/// Makes each sync take this much longer from now on, as on a slower disk.
pub fn slow_syncs(by: Duration) {
    SYNC_DELAY.store(by.as_micros() as u64, Ordering::Relaxed);
}

/// Waits as long as a sync of the slower disk takes.
fn delay_sync() {
    let micros = SYNC_DELAY.load(Ordering::Relaxed);
    if micros > 0 {
        std::thread::sleep(Duration::from_micros(micros));
    }
}

/// Counts a call; returns the error code if it must fail.
fn failure(call: Call) -> Option<i32> {
    let mut state = state();
    let armed = state.armed.as_mut().filter(|armed| armed.fault.call == call)?;
    armed.seen += 1;
    let nth = armed.fault.after + 1;
    let fails = if armed.fault.is_sticky { armed.seen >= nth } else { armed.seen == nth };
    if !fails {
        return None;
    }
    armed.failed += 1;
    Some(armed.fault.code())
}
