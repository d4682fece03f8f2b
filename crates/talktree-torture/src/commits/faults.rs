//! A system call fails while threads share commits: each of them must get the outcome of its own write.

use talktree::{Durability, Store};

use super::{Args, THREADS, count, in_threads, message, session};
use crate::scratch::scratch;
use crate::vfs::{self, Call, Fault};
use crate::{Report, Result};

/// How many messages each thread appends in a round.
const EACH: usize = 6;
/// The system calls that fail, and whether a write fails because the disk is full.
const CALLS: [(Call, bool); 7] = [
    (Call::Write, false),
    (Call::Write, true),
    (Call::Sync, false),
    (Call::Read, false),
    (Call::Lock, false),
    (Call::ShmMap, false),
    (Call::ShmLock, false),
];

/// The figures of all rounds.
#[derive(Default)]
struct Figures {
    struck: u64,
    acknowledged: u64,
    failed: u64,
    committed: u64,
    /// The most appends that failed in a round with one failing call.
    most: u64,
}

pub(super) fn run(args: &Args, report: &mut Report) -> Result<()> {
    let mut figures = Figures::default();
    for round in 0..args.faults {
        let mut dice = fastrand::Rng::with_seed(report.seed().wrapping_add(round));
        let (call, is_full) = CALLS[dice.usize(..CALLS.len())];
        let after = dice.u64(..[400, 120][usize::from(call == Call::Sync)]) / 4;
        let fault = Fault { call, after, is_sticky: dice.u32(..4) == 0, is_full };
        for wrong in one(fault, &mut figures)? {
            let replay =
                format!("just torture commits --seed {} --faults {}", report.seed(), round + 1);
            report.failure(format!("{fault:?}: {wrong}"), replay);
        }
        if round % 500 == 499 {
            eprintln!("commits: {} of {} rounds with faults", round + 1, args.faults);
        }
    }
    report.fact("rounds in which a call failed", figures.struck);
    report.fact("appends acknowledged", figures.acknowledged);
    report.fact("appends failed", figures.failed);
    report.fact("appends failed by one call, most", figures.most);
    report.fact("appends failed, but committed", figures.committed);
    Ok(())
}

/// Lets threads append while a call fails; returns what was wrong.
fn one(fault: Fault, figures: &mut Figures) -> Result<Vec<String>> {
    let folder = scratch()?;
    let path = folder.path().join("talk.db");
    let store = Store::options().durability(Durability::Full).open(&path)?;
    vfs::arm(fault);
    // A thread goes on with the next message only when the one before is acknowledged.
    let acknowledged = in_threads(THREADS, |thread| -> (usize, u64) {
        let Ok(chat) = session(&store, thread) else { return (0, 0) };
        let mut failed = 0;
        let mut number = 0;
        while number < EACH && failed < 3 {
            match chat.append(message(thread, number)) {
                Ok(_) => number += 1,
                Err(_) => failed += 1,
            }
        }
        (number, failed)
    });
    let struck = vfs::disarm();
    let acknowledged = acknowledged?;
    let mut wrong = Vec::new();
    for (thread, (told, _)) in acknowledged.iter().enumerate() {
        match count(&store, thread)? {
            Err(what) => wrong.push(what),
            Ok(held) if held < *told => wrong.push(format!("{held} of {told} acknowledged")),
            // The one that failed last may be there: its commit was written, and the sync failed.
            Ok(held) if held > told + 1 => wrong.push(format!("{held} messages, not {told}")),
            Ok(held) => figures.committed += u64::from(held > *told),
        }
    }
    // The same handle keeps working, and a retry is a no-op if the message is there.
    let retried = in_threads(THREADS, |thread| -> talktree::Result<()> {
        let chat = session(&store, thread)?;
        (acknowledged[thread].0..EACH)
            .try_for_each(|number| chat.append(message(thread, number)).map(drop))
    })?;
    wrong.extend(retried.into_iter().filter_map(|answer| Some(answer.err()?.to_string())));
    drop(store);
    let store = Store::open(&path)?;
    for thread in 0..THREADS {
        match count(&store, thread)? {
            Ok(EACH) => {}
            found => wrong.push(format!("thread {thread} has {found:?} of {EACH} in the end")),
        }
    }
    wrong.extend(store.verify(|_| {})?.damages.iter().map(|damage| format!("{damage:?}")));
    let failed = acknowledged.iter().map(|(_, failed)| failed).sum::<u64>();
    figures.struck += u64::from(struck > 0);
    figures.acknowledged += acknowledged.iter().map(|(told, _)| *told as u64).sum::<u64>();
    figures.failed += failed;
    if !fault.is_sticky {
        figures.most = figures.most.max(failed);
    }
    Ok(wrong)
}
