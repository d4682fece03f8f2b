//! How much memory this process holds, and how much it held at the most.
#![allow(unsafe_code, reason = "only the C library can give back what was freed")]

use crate::Result;

/// Measures the peak of memory from its start on.
#[derive(Debug)]
pub(crate) struct Meter {
    baseline: u64,
}

impl Meter {
    /// Forgets the peak so far; freed memory is given back first, so that using it again counts.
    pub(crate) fn start() -> Result<Self> {
        #[cfg(target_env = "gnu")]
        // SAFETY: it takes no pointer, and may be called at any time from any thread.
        unsafe {
            libc::malloc_trim(0);
        }
        std::fs::write("/proc/self/clear_refs", "5")?;
        Ok(Self { baseline: status("VmRSS:")? })
    }

    /// Returns by how many bytes memory has been above what it was at the start.
    pub(crate) fn peak(&self) -> Result<u64> {
        Ok(status("VmHWM:")?.saturating_sub(self.baseline))
    }
}

/// Returns a figure of the process, in bytes.
fn status(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no such figure")?;
    Ok(kib.parse::<u64>()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_and_is_free_again_is_in_the_peak() -> Result<()> {
        let meter = Meter::start()?;
        let held = vec![1u8; 64 << 20];
        assert_eq!(std::hint::black_box(&held).len(), 64 << 20);
        drop(held);
        assert!(meter.peak()? > 60 << 20);
        Ok(())
    }
}
