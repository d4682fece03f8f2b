//! The throughput of 1 to 64 threads on a disk whose sync takes milliseconds.

use std::time::{Duration, Instant};

use talktree::{Durability, Store};

use super::{Args, in_threads, message, session};
use crate::scratch::scratch;
use crate::spread::Spread;
use crate::{Report, Result, vfs};

/// Measures each number of threads.
pub(super) fn run(args: &Args, report: &mut Report) -> Result<()> {
    let mut alone = None;
    for &count in &args.threads {
        eprintln!("commits: {count} threads, a sync takes {} ms", args.sync_ms);
        let (waits, time) = measure(args, count)?;
        let speed = waits.len() as f64 / time.as_secs_f64();
        let alone = *alone.get_or_insert(speed);
        let (median, longest) = (waits.percentile(0.5), waits.max());
        report.fact(
            format!("threads: {count}, a sync takes {} ms", args.sync_ms),
            format!(
                "{speed:.0} appends/s, {:.1} times those of the first row; {waits}, {:.1} medians",
                speed / alone,
                longest.as_secs_f64() / median.as_secs_f64(),
            ),
        );
    }
    Ok(())
}

fn measure(args: &Args, count: usize) -> Result<(Spread, Duration)> {
    let folder = scratch()?;
    let store =
        Store::options().durability(Durability::Full).open(folder.path().join("talk.db"))?;
    for thread in 0..count {
        session(&store, thread)?.append(message(thread, 0))?;
    }
    vfs::slow_syncs(Duration::from_secs_f64(args.sync_ms / 1e3));
    let until = Duration::from_secs_f64(args.seconds);
    let began = Instant::now();
    let waits = in_threads(count, |thread| -> talktree::Result<Vec<Duration>> {
        let chat = session(&store, thread)?;
        let mut waits = Vec::new();
        while began.elapsed() < until {
            let message = message(thread, waits.len() + 1);
            let asked = Instant::now();
            chat.append(message)?;
            waits.push(asked.elapsed());
        }
        Ok(waits)
    });
    let time = began.elapsed();
    vfs::slow_syncs(Duration::ZERO);
    let mut all = Spread::default();
    for waits in waits? {
        all.extend(waits?);
    }
    Ok((all, time))
}
