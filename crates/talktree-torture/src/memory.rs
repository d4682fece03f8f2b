//! How much memory this process holds, and its peak.
#![allow(unsafe_code, reason = "only the C library can return freed memory to the system")]

use crate::Result;

/// Measures peak memory from the moment it is created.
#[derive(Debug)]
pub(crate) struct Meter {
    baseline: u64,
}

impl Meter {
    /// Returns freed memory to the system and resets the peak.
    pub(crate) fn start() -> Result<Self> {
        #[cfg(target_env = "gnu")]
        // SAFETY: the function takes no pointer, and may be called at any time from any thread.
        unsafe {
            libc::malloc_trim(0);
        }
        std::fs::write("/proc/self/clear_refs", "5")?;
        Ok(Self { baseline: status("VmRSS:")? })
    }

    /// Returns how many bytes the peak is above the memory at the start.
    pub(crate) fn peak(&self) -> Result<u64> {
        Ok(status("VmHWM:")?.saturating_sub(self.baseline))
    }
}

/// Returns how many bytes of memory a process holds.
pub(crate) fn of_process(id: u32) -> Result<u64> {
    figure(&format!("/proc/{id}/status"), "VmRSS:")
}

fn status(name: &str) -> Result<u64> {
    figure("/proc/self/status", name)
}

/// Returns a figure from a file such as `/proc/self/status`, in bytes.
fn figure(file: &str, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(file)?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no such figure")?;
    Ok(kib.parse::<u64>()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_includes_memory_that_is_free_again() -> Result<()> {
        let meter = Meter::start()?;
        let held = vec![1u8; 64 << 20];
        assert_eq!(std::hint::black_box(&held).len(), 64 << 20);
        drop(held);
        assert!(meter.peak()? > 60 << 20);
        Ok(())
    }
}
