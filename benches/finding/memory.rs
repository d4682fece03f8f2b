//! How much memory this process took at most, where the system tells it.

/// Forgets the peak until now. Only Linux can.
pub(crate) fn reset_peak() {
    // A failure shows in the table: without a peak there is no figure.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the memory in use and the peak since [`reset_peak`], in MiB.
pub(crate) fn now_and_peak() -> Option<(f64, f64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / 1024.0)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}
