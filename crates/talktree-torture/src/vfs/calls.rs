//! The system calls as SQLite makes them: each checks for a fault or records the event, and calls the real layer.
//!
//! A file of this layer is a [`Shim`], followed in memory by the file of the real layer; SQLite allocates both as one.

#![allow(unsafe_code, reason = "SQLite calls its layer through C pointers")]

use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rusqlite::ffi;

use super::{Call, Event, Handle, delay_sync, failure, state};

/// The header of an open file.
#[repr(C)]
struct Shim {
    base: ffi::sqlite3_file,
    handle: u64,
}

/// Makes this layer the default one of the process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite is initialized first; the layer found is static, as is the copy, which is leaked on purpose.
        unsafe {
            ffi::sqlite3_initialize();
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!real.is_null(), "SQLite has no layer for this system");
            let mut layer = *real;
            layer.zName = c"torture".as_ptr();
            layer.szOsFile = size_of::<Shim>() as c_int + (*real).szOsFile;
            layer.pNext = std::ptr::null_mut();
            layer.pAppData = real.cast();
            layer.xOpen = Some(open);
            layer.xDelete = Some(delete);
            let code = ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 1);
            assert_eq!(code, ffi::SQLITE_OK, "the layer was not registered");
        }
    });
}

/// Returns the file of the real layer that belongs to a file of this layer.
///
/// # Safety
/// `file` was opened by [`open`] or is being opened by it.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite allocated `szOsFile` bytes: the header and, after it, the real file.
    unsafe { file.cast::<u8>().add(size_of::<Shim>()).cast() }
}

/// Returns the number of an open file.
///
/// # Safety
/// `file` was opened by [`open`].
unsafe fn handle(file: *mut ffi::sqlite3_file) -> u64 {
    // SAFETY: `open` has set the header.
    unsafe { (*file.cast::<Shim>()).handle }
}

/// # Safety
/// `name` is null or a string that ends with 0.
unsafe fn path(name: *const std::ffi::c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    Some(PathBuf::from(std::ffi::OsStr::new(std::str::from_utf8(bytes).ok()?)))
}

/// Calls a method of the real file.
macro_rules! forward {
    ($method:ident, $file:expr $(, $argument:expr)*) => {{
        // SAFETY: the real file was opened by the real layer, so its methods are there and take these arguments.
        unsafe {
            let real = real($file);
            match (*(*real).pMethods).$method {
                Some(method) => method(real $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    }};
}

macro_rules! fail_if_armed {
    ($call:expr) => {
        if let Some(code) = failure($call) {
            return code;
        }
    };
}

fn note(handle: u64, event: impl FnOnce(usize) -> Event) {
    let mut state = state();
    let state = &mut *state;
    if let (Some(record), Some(handle)) = (&mut state.record, state.handles.get(&handle)) {
        record.push(&handle.path, event);
    }
}

unsafe extern "C" fn open(
    layer: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite hands over its own layer, a file of `szOsFile` bytes and a name or null.
    unsafe {
        (*file).pMethods = std::ptr::null();
        // Temporary files have no name and are not recorded.
        let path = path(name);
        if path.is_some() {
            fail_if_armed!(Call::Open);
        }
        let real_layer = (*layer).pAppData.cast::<ffi::sqlite3_vfs>();
        let Some(real_open) = (*real_layer).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = real_open(real_layer, name, real(file), flags, out_flags);
        if (*real(file)).pMethods.is_null() {
            return code;
        }
        (*file).pMethods = &raw const METHODS;
        (*file.cast::<Shim>()).handle = 0;
        if let Some(path) = path.filter(|_| code == ffi::SQLITE_OK) {
            (*file.cast::<Shim>()).handle = opened(&path, flags);
        }
        code
    }
}

fn opened(path: &Path, flags: c_int) -> u64 {
    let logs =
        ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    let is_folder_due = flags & logs != 0 && flags & ffi::SQLITE_OPEN_CREATE != 0;
    let mut state = state();
    let number = state.next_handle;
    state.next_handle += 1;
    state.handles.insert(number, Handle { path: path.to_owned(), is_folder_due });
    if let Some(record) = &mut state.record {
        record.push(path, |file| Event::Open { file });
    }
    number
}

unsafe extern "C" fn delete(
    layer: *mut ffi::sqlite3_vfs,
    name: *const std::ffi::c_char,
    sync_folder: c_int,
) -> c_int {
    fail_if_armed!(Call::Delete);
    // SAFETY: as in `open`.
    unsafe {
        let real_layer = (*layer).pAppData.cast::<ffi::sqlite3_vfs>();
        let Some(real_delete) = (*real_layer).xDelete else { return ffi::SQLITE_IOERR_DELETE };
        let code = real_delete(real_layer, name, sync_folder);
        if let (ffi::SQLITE_OK, Some(path), Some(record)) = (code, path(name), &mut state().record)
        {
            record.push(&path, |file| Event::Delete { file, with_folder: sync_folder != 0 });
        }
        code
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes what `open` has opened.
    let number = unsafe { handle(file) };
    state().handles.remove(&number);
    forward!(xClose, file)
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    to: *mut c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    fail_if_armed!(Call::Read);
    forward!(xRead, file, to, count, at)
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    if let Some(code) = failure(Call::Write) {
        // Half of the bytes reach the disk: a torn write.
        forward!(xWrite, file, from, count / 2, at);
        return code;
    }
    let code = forward!(xWrite, file, from, count, at);
    if code == ffi::SQLITE_OK {
        // SAFETY: SQLite hands over `count` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count as usize) };
        // SAFETY: the file is open.
        let number = unsafe { handle(file) };
        note(number, |file| Event::Write { file, at: at as usize, bytes: bytes.into() });
    }
    code
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let code = forward!(xTruncate, file, size);
    if code == ffi::SQLITE_OK {
        // SAFETY: the file is open.
        let number = unsafe { handle(file) };
        note(number, |file| Event::Truncate { file, size: size as usize });
    }
    code
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    fail_if_armed!(Call::Sync);
    delay_sync();
    let code = forward!(xSync, file, flags);
    if code == ffi::SQLITE_OK {
        // SAFETY: the file is open.
        let number = unsafe { handle(file) };
        let with_folder = state()
            .handles
            .get_mut(&number)
            .is_some_and(|handle| std::mem::take(&mut handle.is_folder_due));
        note(number, |file| Event::Sync { file, with_folder });
    }
    code
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    forward!(xFileSize, file, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    fail_if_armed!(Call::Lock);
    forward!(xLock, file, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    forward!(xUnlock, file, level)
}

unsafe extern "C" fn check_reserved(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    forward!(xCheckReservedLock, file, out)
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    op: c_int,
    argument: *mut c_void,
) -> c_int {
    forward!(xFileControl, file, op, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    forward!(xSectorSize, file)
}

unsafe extern "C" fn characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    forward!(xDeviceCharacteristics, file)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    fail_if_armed!(Call::ShmMap);
    forward!(xShmMap, file, page, size, extend, out)
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // Releasing a lock does not fail on any system.
    if flags & ffi::SQLITE_SHM_LOCK != 0 {
        fail_if_armed!(Call::ShmLock);
    }
    forward!(xShmLock, file, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: as in `forward!`.
    unsafe {
        let real = real(file);
        if let Some(method) = (*(*real).pMethods).xShmBarrier {
            method(real);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    forward!(xShmUnmap, file, delete)
}

/// Version 2: with shared memory, without memory-mapped files.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
