//! Waiting for the turn to write.
//!
//! SQLite's lock has no queue: once it is let go, whoever asks first has it. SQLite's own way of waiting asks less and
//! less often, ten times a second in the end, so that those who have waited longest are the least likely to get it;
//! among many processes that write without a pause some would not write at all. Here one asks every few milliseconds,
//! and the oftener the longer one has waited.

use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;

use super::connection::run;
use super::fault::Outcome;

/// Begins a write on a connection whose busy timeout is zero, or finds the database held for longer than `patience`.
pub(super) fn begin(conn: &Connection, patience: Duration) -> Outcome<()> {
    let began = Instant::now();
    loop {
        match run(conn, "BEGIN IMMEDIATE") {
            Err(fault) if fault.is_busy() && began.elapsed() < patience => {
                let left = patience.saturating_sub(began.elapsed());
                std::thread::sleep(spread(pause(began.elapsed())).min(left));
            }
            answer => return answer,
        }
    }
}

/// Returns how long to wait before asking again, after having waited so long.
fn pause(waited: Duration) -> Duration {
    match waited.as_millis() {
        0..2 => Duration::from_micros(200),
        2..20 => Duration::from_millis(1),
        20..500 => Duration::from_millis(3),
        500..2_000 => Duration::from_millis(1),
        _ => Duration::from_micros(300),
    }
}

/// Lengthens or shortens a pause by up to a half, so that those who wait do not ask in step.
pub(super) fn spread(pause: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let dice = (now.subsec_nanos() ^ std::process::id()).wrapping_mul(0x9e37_79b9) >> 22;
    pause / 2 + pause * dice / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_spread_around_itself() {
        let pause = Duration::from_millis(4);
        for _ in 0..1_000 {
            let spread = spread(pause);
            assert!(spread >= pause / 2 && spread <= pause * 3 / 2, "{spread:?}");
        }
    }
}
