//! How long a verb takes and how much memory more than before it needs at its peak.

#![allow(
    unsafe_code,
    reason = "what was freed is given back to the system before the peak is taken"
)]

use std::fmt::Debug;
use std::time::Instant;

use crate::{Report, Result};

/// Takes the time of verbs, and notes those that answer wrongly.
pub(super) struct Meter<'r> {
    shape: &'static str,
    report: &'r mut Report,
}

impl<'r> Meter<'r> {
    pub(super) fn new(shape: &'static str, report: &'r mut Report) -> Self {
        Self { shape, report }
    }

    /// Runs a verb and notes what it took.
    pub(super) fn time<T>(&mut self, verb: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        give_back();
        let before = memory_kib("VmRSS")?;
        // From here on the peak counts anew; where the system does not allow it, it counts from the beginning.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let begun = Instant::now();
        let answer = work()?;
        let took = begun.elapsed();
        let more = memory_kib("VmHWM")?.saturating_sub(before) / 1024;
        eprintln!("{}: {verb}: {took:.1?}, {more} MiB more", self.shape);
        self.report.fact(format!("{}: {verb}", self.shape), format!("{took:.1?}, {more} MiB"));
        Ok(answer)
    }

    /// Runs a verb, notes what it took, and compares its answer.
    pub(super) fn check<T: PartialEq + Debug>(
        &mut self,
        verb: &str,
        expected: T,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<()> {
        let answer = self.time(verb, work)?;
        if answer != expected {
            let what = format!("{}: {verb} answers {answer:?}, not {expected:?}", self.shape);
            self.report.failure(what, "just torture extremes");
        }
        Ok(())
    }
}

/// Gives freed memory back to the system, so that one verb's is not hidden in that of the one before.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes no pointer and only gives back what the allocator holds unused.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns a figure of this process's memory; 0 where the system tells none.
fn memory_kib(name: &str) -> Result<u64> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(0) };
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.map(str::parse).transpose()?.unwrap_or(0))
}
