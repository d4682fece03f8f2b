//! The time and the peak memory of a verb.

#![allow(
    unsafe_code,
    reason = "freed memory is returned to the system before the peak is measured"
)]

use std::fmt::Debug;
use std::time::Instant;

use crate::{Report, Result};

/// Measures verbs and reports wrong results.
pub(super) struct Meter<'r> {
    shape: &'static str,
    report: &'r mut Report,
}

impl<'r> Meter<'r> {
    pub(super) fn new(shape: &'static str, report: &'r mut Report) -> Self {
        Self { shape, report }
    }

    /// Runs a verb and reports its time and memory.
    pub(super) fn time<T>(&mut self, verb: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        release_memory();
        let before = memory_kib("VmRSS")?;
        // Resets the peak; where the system does not allow it, the peak counts from the start of the process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let begun = Instant::now();
        let answer = work()?;
        let took = begun.elapsed();
        let more = memory_kib("VmHWM")?.saturating_sub(before) / 1024;
        eprintln!("{}: {verb}: {took:.1?}, {more} MiB", self.shape);
        self.report.fact(format!("{}: {verb}", self.shape), format!("{took:.1?}, {more} MiB"));
        Ok(answer)
    }

    /// Runs a verb, reports its time and memory, and compares its result.
    pub(super) fn check<T: PartialEq + Debug>(
        &mut self,
        verb: &str,
        expected: T,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<()> {
        let answer = self.time(verb, work)?;
        if answer != expected {
            let what = format!("{}: {verb} returns {answer:?}, not {expected:?}", self.shape);
            self.report.failure(what, "just torture extremes");
        }
        Ok(())
    }
}

/// Returns freed memory to the system, so that the memory of one verb does not hide in that of the previous one.
fn release_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes no pointer and only returns memory that the allocator holds unused.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns a memory figure of this process; 0 if the system has none.
fn memory_kib(name: &str) -> Result<u64> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(0) };
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.map(str::parse).transpose()?.unwrap_or(0))
}
