//! Failing system calls: every n-th one, under every verb.
//!
//! A store that holds something of everything is put into a fresh file, a fault is armed, a verb is run. Whatever the
//! verb answers must be true: done, with its effect there for all; or an error, with nothing of it there. A write whose
//! failure comes after its commit (the log is written, its sync fails) may be there as a whole. Then the fault is over,
//! and the same handle goes on; the file, opened again, holds the same and is sound.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::builder::PossibleValuesParser;

use crate::fixture::{Figures, Fixture, OPENINGS, Trouble, Try};
use crate::verbs;
use crate::vfs::{self, Call, Fault};
use crate::{Report, Result};

/// What fails, with its name.
const KINDS: &[(&str, Call, bool)] = &[
    ("write EIO", Call::Write, false),
    ("write ENOSPC", Call::Write, true),
    ("sync", Call::Sync, false),
    ("read", Call::Read, false),
    ("open", Call::Open, false),
    ("delete", Call::Delete, false),
    ("lock", Call::Lock, false),
    ("shared memory", Call::ShmMap, false),
    ("lock of shared memory", Call::ShmLock, false),
];

/// What fails.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this verb.
    #[arg(long, value_parser = PossibleValuesParser::new(names()))]
    pub verb: Option<String>,
    /// Only this kind of failure.
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.0)))]
    pub kind: Option<String>,
    /// Only this many calls after the beginning.
    #[arg(long)]
    pub after: Option<u64>,
    /// Every how many calls one is let fail.
    #[arg(long, default_value_t = 1)]
    pub step: u64,
}

/// Returns the names of all verbs.
fn names() -> Vec<&'static str> {
    verbs::all().chain(&OPENINGS).map(|verb| verb.name).collect()
}

/// Lets every call fail under every verb.
///
/// # Errors
/// If something fails where nothing should.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let _use = vfs::exclusive();
    let fixture = Fixture::new()?;
    let mut all: BTreeMap<&str, Figures> = BTreeMap::new();
    let mut count_of_verbs = 0;
    for verb in verbs::all().chain(&OPENINGS) {
        if args.verb.as_deref().is_some_and(|only| only != verb.name) {
            continue;
        }
        count_of_verbs += 1;
        eprintln!("faults: {}", verb.name);
        let expected = fixture.expected(verb)?;
        for &(name, call, is_full) in KINDS {
            if args.kind.as_deref().is_some_and(|only| only != name) {
                continue;
            }
            let figures = all.entry(name).or_default();
            for is_sticky in [false, true] {
                let mut count = args.after.unwrap_or(0);
                loop {
                    let fault = Fault { call, after: count, is_sticky, is_full };
                    let one = Try { verb, trouble: &fault, expected: &expected };
                    let tried = catch_unwind(AssertUnwindSafe(|| fixture.attempt(one, figures)));
                    let again = format!(
                        "just torture faults --verb '{}' --kind '{name}' --after {count}",
                        verb.name
                    );
                    let how = if is_sticky { "for good" } else { "once" };
                    match tried {
                        Ok(Ok(true)) => figures.points += 1,
                        // There were no more calls.
                        Ok(Ok(false)) => break,
                        Ok(Err(what)) => {
                            report.failure(format!("{}, failing {how}: {what}", verb.name), again)
                        }
                        Err(_) => {
                            report.failure(format!("{}, failing {how}: a panic", verb.name), again)
                        }
                    }
                    if args.after.is_some() {
                        break;
                    }
                    count += args.step;
                }
            }
        }
    }
    report.fact("verbs", count_of_verbs);
    for (name, figures) in all {
        let Figures { points, told, silent, committed, half, errors } = figures;
        report.fact(
            format!("{name}: calls failed"),
            format!(
                "{points} (told {told}, of these there as a whole {committed}; without effect {silent}, \
                 or on the compaction after an append alone {half})"
            ),
        );
        for (error, count) in errors {
            report.fact(format!("{name}: {count} x"), error);
        }
    }
    Ok(())
}

impl Trouble for Fault {
    fn begin(&self) {
        vfs::arm(*self);
    }

    fn end(&self) -> u64 {
        vfs::disarm()
    }

    fn is_full_disk(&self) -> bool {
        self.is_full
    }
}
